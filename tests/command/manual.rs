//! What the manual says is so: its links lead somewhere, and what it prints is what gyan prints.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::common::{command, root, run};

/// Runs in the repository, and their names in the manual.
const RUNS: [(&str, &str); 2] = [
    ("gyan.rank-1-running", "gyan-halo_exchange-1718744833"),
    ("gyan.rank-1-quickstart", "gyan-halo_exchange-1593"),
];

/// What a console block begins and ends with.
pub(crate) const BEGIN: &str = "```console\n";
pub(crate) const END: &str = "```\n";

pub(crate) fn pages() -> Vec<PathBuf> {
    let files = ["docs", "docs/findings", "docs/developers"]
        .map(|directory| fs::read_dir(root().join(directory)));
    let files = files.into_iter().flat_map(|files| files.unwrap().map(|file| file.unwrap().path()));
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let mut pages: Vec<PathBuf> = files.filter(is_page).collect();
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

pub(crate) fn read(path: &Path) -> String {
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

/// A command of a console block, and what stands below it.
pub(crate) struct Example<'a> {
    pub(crate) command: &'a str,
    pub(crate) shown: &'a str,
}

pub(crate) fn examples(block: &str) -> Vec<Example<'_>> {
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

/// Whether the output matches the manual, where a line `...` stands for any lines.
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

/// What a command prints in a directory that has the runs under their names in the manual.
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
    assert!(number > 1, "only {number} commands were run");
    let directory = TempDir::new().unwrap();
    let (fixture, name) = RUNS[1];
    copy(&root().join("tests/fixtures").join(fixture), &directory.path().join(name));
    let screen = printed(&format!("gyan report {name}"), directory.path());
    let readme = root().join("README.md");
    let text = read(&readme);
    if bless
        && let Some((before, rest)) = text.split_once("./halo_exchange: ")
        && let Some((_, after)) = rest.split_once("\nprofiles in ")
    {
        fs::write(&readme, format!("{before}{screen}\nprofiles in {after}")).unwrap();
    }
    assert!(read(&readme).contains(&screen), "README.md does not show\n{screen}");
    assert!(wrong.is_empty(), "BLESS=1 writes those without ...:\n{}", wrong.join("\n"));
}
