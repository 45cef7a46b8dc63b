//! Nothing that gyan has is missing in the manual, and the manual names nothing that gyan has not: subcommands, options,
//! settings, findings, file formats, man pages, topics of `gyan help`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use tempfile::TempDir;

use crate::common::{command, gyan, quiet, root, run};
use crate::manual::{pages, read};

/// The names of the subcommands in the help.
fn subcommands(help: &str) -> Vec<&str> {
    let Some((_, commands)) = help.split_once("Commands:\n") else { return Vec::new() };
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
    let mut add = |arguments: &[&str]| {
        let title = format!("gyan {}", arguments.join(" "));
        let printed = help(arguments);
        write!(text, "\n## {}\n\n```text\n{}\n```\n", title.trim(), printed.trim()).unwrap();
        printed
    };
    add(&[]);
    for name in names {
        for nested in subcommands(&add(&[name])).iter().filter(|nested| **nested != "help") {
            add(&[name, nested]);
        }
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
    let pages =
        pages().into_iter().filter(|page| page.parent().unwrap().ends_with("docs/findings"));
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
const OF_OTHERS: [&str; 19] = [
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
    "--gyan",
    "--map-by",
    "--mca",
    "--no-as-needed",
    "--oversubscribe",
    "--pgid",
    "--rounds",
    "--with-device",
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
    let with_nested = |name: &str| {
        let own = help(&[name]);
        let nested: String = subcommands(&own).iter().map(|nested| help(&[name, nested])).collect();
        own + &nested
    };
    let helps: Vec<(&str, String)> = names.iter().map(|name| (*name, with_nested(name))).collect();
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
    let places = ["wrappers/src/config/table.rs", "src/launch/preload.rs", "scripts/testbed"];
    let places = places
        .into_iter()
        .chain(["packaging/modulefiles/gyan.lua", "packaging/wheel/gyan/_command.py"]);
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
        quiet(groff.args(&files));
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

#[test]
fn on_a_terminal_a_topic_is_paged() {
    if run(&mut command(&["sh", "-c", "command -v script"])).code != 0 {
        assert!(std::env::var_os("CI").is_none(), "there is no script");
        println!("skipped: there is no script, which makes a terminal");
        return;
    }
    let shown = |pager: &str| {
        let line = format!("{} help faq", gyan().get_program().display());
        let mut terminal = command(&["script", "-qec", &line, "/dev/null"]);
        terminal.env("PAGER", pager).env("TERM", "xterm").env_remove("NO_COLOR");
        run(terminal.stdin(Stdio::null())).stdout
    };
    assert!(shown("sed s/^/paged:/").contains("paged:"));
    // No pager, and styles, which are for a terminal.
    assert!(shown("").contains("Questions and answers\x1b[0m"));
}
