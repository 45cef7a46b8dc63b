//! The console blocks of the manual that depend on a machine: `scripts/docs blocks` has run their commands and kept the profiles,
//! from which gyan prints the same once more. A launcher and a compiler of their own put what was kept where it would be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::common::{command, root, run};
use crate::golden::is_golden;
use crate::manual::{BEGIN, END, Example, examples, pages, read};

/// The line above such a block begins with this; the name of the group whose commands run in one directory follows.
const MARK: &str = "\n<!-- scripts/docs: ";
/// What the blocks call that directory.
const HOME: &str = "/home/me";

fn kept() -> PathBuf {
    root().join("tests/manual")
}

/// The blocks of a page with their groups.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let marked = page.split(MARK).skip(1);
    let block = |text| {
        let (mark, rest): (&str, &str) = str::split_once(text, " -->\n").unwrap();
        let block = rest.strip_prefix(BEGIN).expect("a console block comes after the mark");
        (mark.split(' ').next().unwrap(), block.split_once(END).unwrap().0)
    };
    marked.map(block).collect()
}

/// What a command prints in a directory in which the earlier ones of its group were run; or what it printed, of one that
/// asks an MPI.
fn replayed(line: &str, group: &str, directory: &Path) -> String {
    let name = line.replace(|c: char| !c.is_ascii_alphanumeric(), "-") + ".txt";
    if let Ok(printed) = fs::read_to_string(kept().join(group).join(name)) {
        return printed;
    }
    let bin = Path::new(env!("CARGO_BIN_EXE_gyan"));
    let replay = kept().join("replay");
    let search = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{search}", replay.display(), bin.parent().unwrap().display());
    let mut shell = command(&["bash", "-c", line]);
    shell.current_dir(directory).env("PATH", path).env("COLUMNS", "100");
    // Nothing is started that it could be preloaded into.
    shell.env("GYAN_LIBRARY", bin).env("KEPT", kept().join(group));
    let outcome = run(&mut shell);
    assert_eq!(outcome.code, 0, "{line}: {}", outcome.stderr);
    let text = outcome.stdout + &outcome.stderr;
    text.replace(directory.to_str().unwrap(), HOME)
}

/// The sections of `printed` that `shown` has, where a line `...` stands for others. A section is known by the first two words
/// of its first line.
fn as_shown(shown: &str, printed: &str) -> String {
    let sections: Vec<&str> = printed.trim_end().split("\n\n").collect();
    let begins = |section: &str| -> Vec<String> {
        section.split_whitespace().take(2).map(str::to_owned).collect()
    };
    let mut lines = Vec::new();
    let mut is_open = false;
    let shown = format!("\n{}", shown.trim_end());
    for part in shown.split("\n...") {
        let part = part.trim_matches('\n');
        if is_open {
            lines.push("...".to_owned());
        }
        if !part.is_empty() {
            let wanted = begins(part);
            let from = sections.iter().position(|section| is_open && begins(section) == wanted);
            let from = from.unwrap_or(0);
            let number = part.split("\n\n").count().min(sections.len() - from);
            lines.push(sections[from..from + number].join("\n\n"));
        }
        is_open = true;
    }
    lines.join("\n") + "\n"
}

#[test]
fn what_was_kept_prints_as_shown() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    let mut directories: BTreeMap<String, TempDir> = BTreeMap::new();
    for page in pages() {
        let text = read(&page);
        let mut written = text.clone();
        for (group, block) in blocks(&text) {
            let directory =
                directories.entry(group.to_owned()).or_insert_with(|| TempDir::new().unwrap());
            for Example { command, shown } in examples(block) {
                let printed = replayed(command, group, directory.path());
                let expected =
                    if shown.contains("...\n") { as_shown(shown, &printed) } else { printed };
                if shown == expected {
                    continue;
                }
                wrong.push(format!("{}: $ {command}\n{expected}", page.display()));
                let old = format!("$ {command}\n{shown}");
                written = written.replace(&old, &format!("$ {command}\n{expected}"));
            }
        }
        if bless && written != text {
            fs::write(&page, written).unwrap();
        }
    }
    assert!(bless || wrong.is_empty(), "BLESS=1 writes:\n{}", wrong.join("\n"));
    let used: BTreeSet<String> = directories.into_keys().collect();
    let directories = fs::read_dir(kept()).unwrap();
    let names = directories.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let kept: BTreeSet<String> = names.filter(|name| name != "replay").collect();
    assert_eq!(used, kept, "groups of the manual, and what is kept in tests/manual");
}

/// A run with threads in each form, and next to one with ranks instead.
#[test]
fn a_kept_run_with_threads_is_the_golden_one() {
    let directory = TempDir::new().unwrap();
    let page = read(&root().join("docs/openmp.md"));
    let of_page = blocks(&page).into_iter().flat_map(|(_, block)| examples(block));
    for Example { command, .. } in of_page.filter(|of| !of.command.starts_with("gyan diff")) {
        replayed(command, "openmp", directory.path());
    }
    for (name, line) in [
        ("openmp-first.txt", "gyan report threads"),
        ("openmp.md", "gyan report --openmp --format markdown threads"),
        ("openmp.csv", "gyan report --openmp --format csv threads"),
        ("openmp.json", "gyan report --openmp --format json threads"),
        ("openmp-export.csv", "gyan export --table openmp --format csv threads"),
    ] {
        is_golden(name, &replayed(line, "openmp", directory.path()));
    }
    let page = replayed("gyan report --format html threads", "openmp", directory.path());
    let block = page.split_once("<section id=\"threads\"").unwrap().1;
    let block = block.split_once("</section>").unwrap().0;
    is_golden("openmp.html", &block.replace("<tr", "\n<tr").replace("<figure", "\n<figure"));
}
