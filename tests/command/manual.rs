//! What the manual says is so: its links lead somewhere, what it prints is what gyan prints, and nothing that gyan has is
//! missing in it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::common::{command, gyan, root, run};

/// Runs in the repository, and what the manual calls them.
const RUNS: [(&str, &str); 2] = [
    ("gyan.rank-1-running", "gyan-halo_exchange-1718744833"),
    ("gyan.rank-1-quickstart", "gyan-halo_exchange-1593"),
];

/// What a console block begins and ends with.
const BEGIN: &str = "```console\n";
const END: &str = "```\n";

fn pages() -> Vec<PathBuf> {
    let files = ["docs", "docs/findings"].map(|directory| fs::read_dir(root().join(directory)));
    let files = files.into_iter().flat_map(|files| files.unwrap().map(|file| file.unwrap().path()));
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let mut pages: Vec<PathBuf> = files.filter(is_page).collect();
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// The anchors of a page, as mdBook and GitHub make them of headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut code = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        code ^= line.starts_with("```");
        if let Some(title) = line.strip_prefix('#').filter(|_| !code) {
            let title = title.trim_start_matches('#').trim().to_lowercase();
            let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
            anchors.insert(title.chars().filter(kept).collect::<String>().replace(' ', "-"));
        }
    }
    anchors
}

/// The targets of the links in a page, without those in code.
fn links(text: &str) -> Vec<String> {
    let prose: String = text.split("```").step_by(2).collect();
    let prose: String = prose.split('`').step_by(2).collect();
    let after = prose.split("](").skip(1);
    after.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

#[test]
fn no_link_is_dead() {
    let mut dead = Vec::new();
    let mut number = 0;
    for page in pages() {
        let text = read(&page);
        for link in links(&text).iter().filter(|link| !link.contains("://")) {
            number += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            let is_there =
                target.exists() && (anchor.is_empty() || anchors(&read(&target)).contains(anchor));
            if !is_there {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(number > 50, "only {number} links found");
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn each_page_is_in_the_table_of_contents_once() {
    let mut contents = links(&read(&root().join("docs/SUMMARY.md")));
    contents.sort();
    let name = |page: PathBuf| {
        Some(page.strip_prefix(root().join("docs")).ok()?.to_string_lossy().into_owned())
    };
    let others = |page: &String| page != "SUMMARY.md";
    let mut there_are: Vec<String> = pages().into_iter().filter_map(name).filter(others).collect();
    there_are.sort();
    assert_eq!(contents, there_are);
}

/// The names of the subcommands in the help.
fn subcommands(help: &str) -> Vec<&str> {
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\n\n").unwrap();
    let is_name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let names = commands.lines().filter(is_name);
    names.filter_map(|line| line.split_whitespace().next()).collect()
}

fn help(arguments: &[&str]) -> String {
    run(gyan().args(arguments).arg("--help").env("COLUMNS", "100")).stdout
}

#[test]
fn the_reference_of_commands_is_their_help() {
    let whole = help(&[]);
    let mut text = String::from(
        "# Commands and options\n\nWhat `gyan --help` and `gyan COMMAND --help` print.\n",
    );
    let names = subcommands(&whole);
    assert!(names.len() > 9, "{names:?}");
    for name in [""].into_iter().chain(names) {
        let arguments: Vec<&str> = if name.is_empty() { Vec::new() } else { vec![name] };
        let title = format!("gyan {name}");
        let printed = help(&arguments);
        write!(text, "\n## {}\n\n```text\n{}\n```\n", title.trim(), printed.trim()).unwrap();
    }
    let path = root().join("docs/commands.md");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert!(read(&path) == text, "docs/commands.md is not what --help prints; run with BLESS=1");
}

#[test]
fn each_file_format_is_in_the_manual() {
    let formats = read(&root().join("docs/formats.md"));
    for entry in fs::read_dir(root().join("results-schema/schemas")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(formats.contains(&name), "docs/formats.md lacks {name}");
    }
}

#[test]
fn each_schema_in_the_manual_is_there() {
    let schemas = root().join("results-schema/schemas");
    for page in pages() {
        let text = read(&page);
        let names = text.split(|sign: char| !sign.is_alphanumeric() && !".-_".contains(sign));
        for name in names.filter(|name| name.ends_with(".schema.json")) {
            assert!(schemas.join(name).exists(), "{}: {name}", page.display());
        }
    }
}

#[test]
fn each_finding_has_a_page_and_the_other_way_round() {
    let listed = run(gyan().arg("explain")).stdout;
    let (findings, _) = listed.split_once("\n\n").unwrap();
    let findings = findings.lines().skip(1).filter(|line| !line.starts_with("   "));
    let names = findings.filter_map(|line| line.split_whitespace().next());
    let listed: BTreeSet<String> = names.map(str::to_owned).collect();
    let pages = pages().into_iter().filter(|page| page.parent().unwrap().ends_with("findings"));
    let pages: BTreeSet<String> =
        pages.map(|page| page.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    assert!(pages.len() > 25);
    assert_eq!(listed, pages);
}

/// What stands in code in a page: between backticks, and on the lines of blocks.
fn code(text: &str) -> Vec<&str> {
    let mut code = Vec::new();
    let mut is_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if is_block {
            code.push(line);
        } else {
            code.extend(line.split('`').skip(1).step_by(2));
        }
    }
    code
}

/// Long options, each once.
fn options(text: &str) -> BTreeSet<&str> {
    let is_name = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    let words = text.split(|sign: char| !is_name(sign));
    words
        .filter(|word| word.starts_with("--") && word.len() > 3 && !word[2..].starts_with('-'))
        .collect()
}

/// Options of launchers, compilers and MPI libraries that the manual speaks of.
const OF_OTHERS: [&str; 17] = [
    "--as-needed",
    "--cap-add",
    "--control-port",
    "--disable-dlopen",
    "--enable-fortran",
    "--enable-mpit-events",
    "--enable-mpit-pvars",
    "--enable-peruse",
    "--enable-spc",
    "--env",
    "--export",
    "--map-by",
    "--mca",
    "--no-as-needed",
    "--oversubscribe",
    "--pgid",
    "--rounds",
];

/// Variables that are no settings of gyan: of scripts and of examples.
const NO_SETTINGS: [&str; 5] =
    ["GYAN_BENCH_PEER", "GYAN_CLUSTER", "GYAN_JOB", "GYAN_TARBALL", "GYAN_WHEEL"];

/// The part of a line of code that is the arguments of a subcommand.
fn arguments(of_gyan: &str) -> &str {
    let ends = [" -- ", " ./", " | ", "; ", " > ", " # ", " mpirun", " srun", "  "];
    let end = ends.iter().filter_map(|end| of_gyan.find(end)).min();
    &of_gyan[..end.unwrap_or(of_gyan.len())]
}

#[test]
fn no_page_names_an_option_that_is_not_there() {
    let whole = help(&[]);
    let names = subcommands(&whole);
    let helps: Vec<(&str, String)> = names.iter().map(|name| (*name, help(&[name]))).collect();
    let all: String = helps.iter().map(|(_, help)| help.as_str()).collect();
    let known: BTreeSet<&str> = options(&all).into_iter().chain(options(&whole)).collect();
    let mut wrong = Vec::new();
    let mut number = 0;
    for page in pages() {
        let text = read(&page);
        for line in code(&text) {
            for part in line.split("gyan ").skip(1).map(arguments) {
                let subcommand = part.split_whitespace().next().unwrap_or_default();
                let Some((_, help)) = helps.iter().find(|(name, _)| *name == subcommand) else {
                    continue;
                };
                for option in options(part).difference(&options(help)) {
                    wrong.push(format!("{}: gyan {subcommand} {option}", page.display()));
                }
                number += options(part).len();
            }
            // One that stands for itself.
            let alone = line.split(['=', ' ']).next().filter(|word| word.starts_with("--"));
            for option in alone.map(options).unwrap_or_default().difference(&known) {
                if !OF_OTHERS.contains(option) {
                    wrong.push(format!("{}: {option}", page.display()));
                }
            }
        }
    }
    assert!(number > 100, "only {number} options found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_page_names_a_setting_that_is_not_there() {
    let settings = read(&root().join("docs/settings.md"));
    let is_setting = |name: &str| settings.contains(&format!("\n| `{name}` |"));
    let mut number = 0;
    for page in pages() {
        let text = read(&page);
        for line in code(&text) {
            let words = line.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
            for name in words.filter(|word| word.starts_with("GYAN_") && word.len() > 5) {
                number += 1;
                let is_known = is_setting(name) || NO_SETTINGS.contains(&name);
                assert!(is_known, "{}: {name} is no setting", page.display());
            }
        }
    }
    assert!(number > 100, "only {number} found");
}

#[test]
fn each_setting_in_the_manual_is_read_by_something() {
    let places = ["wrappers/src/config/mod.rs", "src/launch/preload.rs", "scripts/testbed"];
    let places = places.into_iter().chain(["packaging/modulefiles/gyan.lua"]);
    let sources: String = places.map(|place| read(&root().join(place))).collect();
    let settings = read(&root().join("docs/settings.md"));
    let rows = settings.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let rows: Vec<&str> = rows.collect();
    assert!(rows.len() > 30, "{rows:?}");
    for name in rows {
        assert!(sources.contains(name), "nothing reads {name}");
    }
}

#[test]
fn each_subcommand_has_a_man_page_with_its_options_and_examples() {
    let directory = TempDir::new().unwrap();
    assert_eq!(run(gyan().arg("man").arg(directory.path())).code, 0);
    let whole = help(&[]);
    let names = subcommands(&whole);
    for name in [""].into_iter().chain(names.iter().copied()) {
        let file = if name.is_empty() { "gyan.1".into() } else { format!("gyan-{name}.1") };
        let page = read(&directory.path().join(&file)).replace("\\-", "-");
        let parts = [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "OPTIONS",
            "EXAMPLES",
            "EXIT STATUS",
            "\"SEE ALSO\"",
        ];
        for part in parts {
            let heading = format!(".SH {part}\n");
            let quoted = format!(".SH \"{part}\"\n");
            assert!(page.contains(&heading) || page.contains(&quoted), "{file} has no {part}");
        }
        let arguments: Vec<&str> = if name.is_empty() { Vec::new() } else { vec![name] };
        for option in options(&help(&arguments)) {
            assert!(page.contains(option), "{file} lacks {option}");
        }
    }
    let files = fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().path());
    let files: Vec<PathBuf> = files.collect();
    assert_eq!(files.len(), names.len() + 1);
    if run(&mut command(&["sh", "-c", "command -v groff"])).code == 0 {
        let mut groff = command(&["groff", "-man", "-ww", "-z"]);
        let checked = run(groff.args(&files));
        assert_eq!((checked.code, checked.stderr.as_str()), (0, ""));
    } else {
        assert!(std::env::var_os("CI").is_none(), "there is no groff");
        println!("skipped: there is no groff");
    }
}

#[test]
fn a_topic_of_the_manual_is_printed() {
    let topic = |topic: &str| run(gyan().args(["help", topic]));
    let chapter = topic("first-screen");
    assert_eq!(chapter.code, 0);
    assert!(chapter.stdout.starts_with("Reading the first screen\n"), "{}", chapter.stdout);
    assert!(!chapter.stdout.contains('\x1b'));
    assert_eq!(topic("run").stdout, run(gyan().args(["run", "--help"])).stdout);
    assert_eq!(topic("late-senders").stdout, run(gyan().args(["explain", "late-senders"])).stdout);
    let unknown = topic("first-scren");
    let line = "gyan: gyan help first-scren: nothing has that name; did you mean first-screen? gyan help lists the names\n";
    assert_eq!((unknown.code, unknown.stderr.as_str()), (2, line));
    let all = run(gyan().arg("help")).stdout;
    for name in ["run", "first-screen", "late-senders"] {
        assert!(all.contains(&format!("\n  {name} ")), "{all}");
    }
}

/// A command of a console block, and what stands below it.
struct Example<'a> {
    command: &'a str,
    shown: &'a str,
}

fn examples(block: &str) -> Vec<Example<'_>> {
    let starts: Vec<usize> = block.match_indices("$ ").map(|(at, _)| at).collect();
    let starts = starts.into_iter().filter(|at| *at == 0 || block[..*at].ends_with('\n'));
    let starts: Vec<usize> = starts.chain([block.len()]).collect();
    let each = starts.windows(2).map(|range| &block[range[0]..range[1]]);
    each.map(|text| {
        let (command, shown) = text[2..].split_once('\n').unwrap();
        Example { command, shown }
    })
    .collect()
}

/// Whether what is printed is what is shown, where a line `...` stands for any lines.
fn is_as_shown(shown: &str, printed: &str) -> bool {
    let shown = format!("\n{}\n", shown.trim());
    let printed = format!("\n{}\n", printed.trim());
    let mut parts = shown.split("\n...\n");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    let mut is_open = false;
    for part in parts {
        is_open = true;
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || (is_open && shown.ends_with("\n...\n"))
}

/// What a command prints in a directory that has the runs under the names that the manual gives them.
fn printed(line: &str, directory: &Path) -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_gyan")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = command(&["bash", "-c", line]);
    let outcome = run(shell.current_dir(directory).env("PATH", path).env("COLUMNS", "100"));
    assert_eq!(outcome.code, 0, "{line}: {}", outcome.stderr);
    outcome.stdout + &outcome.stderr
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let file = entry.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

#[test]
fn what_the_manual_prints_is_what_gyan_prints() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    let mut number = 0;
    for page in pages() {
        let directory = TempDir::new().unwrap();
        for (fixture, name) in RUNS {
            copy(&root().join("tests/fixtures").join(fixture), &directory.path().join(name));
        }
        let text = read(&page);
        let mut written = text.clone();
        let blocks = text.split(BEGIN).skip(1).filter_map(|rest| Some(rest.split_once(END)?.0));
        for Example { command, shown } in blocks.flat_map(examples) {
            let is_of_a_run = RUNS.iter().any(|(_, name)| command.contains(name));
            if !is_of_a_run || shown.is_empty() || command.contains('|') {
                continue;
            }
            number += 1;
            let printed = printed(command, directory.path());
            if is_as_shown(shown, &printed) {
                continue;
            }
            if bless && !shown.contains("...\n") {
                written = written
                    .replace(&format!("$ {command}\n{shown}"), &format!("$ {command}\n{printed}"));
            } else {
                wrong.push(format!("{}: $ {command}\n{printed}", page.display()));
            }
        }
        if written != text {
            fs::write(&page, written).unwrap();
        }
    }
    assert!(number > 3, "only {number} commands were run");
    let directory = TempDir::new().unwrap();
    let (fixture, name) = RUNS[1];
    copy(&root().join("tests/fixtures").join(fixture), &directory.path().join(name));
    let screen = printed(&format!("gyan report {name}"), directory.path());
    assert!(read(&root().join("README.md")).contains(&screen), "README.md does not show\n{screen}");
    assert!(wrong.is_empty(), "BLESS=1 writes those without ...:\n{}", wrong.join("\n"));
}
