//! Which wing imports which? The table of ARCHITECTURE.md says what is allowed, and this test holds it.
//! `cargo test -p gyan-wrappers wings -- --nocapture` prints the wings, their imports, and what imports each
//! other in a circle within a wing.

// What it prints is for whoever asks for it.
#![allow(clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The wings in their order, each with the paths that it may import.
fn allowed() -> Vec<(String, Vec<String>)> {
    let text = include_str!("../../ARCHITECTURE.md");
    let (_, table) = text.split_once("| wing |").expect("the table of wings");
    let (table, _) = table.split_once("\n\n").expect("the end of the table");
    let rows = table.lines().skip(2).map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let wing: Vec<String> = names(cells[1]);
        (wing.into_iter().next().expect("a wing in each row"), names(cells[3]))
    });
    rows.collect()
}

/// The sources in a folder of the project, each with its path below that as a path of modules.
pub(crate) fn sources(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(folder);
    let mut folders = vec![root.clone()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let module = path.strip_prefix(&root).unwrap().with_extension("");
                let module = module.to_str().unwrap().replace('/', "::");
                let module = module.strip_suffix("::mod").unwrap_or(&module).to_owned();
                sources.push((module, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    sources.sort();
    sources
}

/// The paths after every `crate::` in a source, without anything in braces after them.
fn imports(source: &str) -> BTreeSet<String> {
    let code: Vec<&str> =
        source.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code)).collect();
    let code = code.join("\n");
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        assert!(
            !rest.starts_with('{'),
            "one `use crate::` for each wing, so that this test reads it"
        );
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        found.insert(rest[..end.unwrap_or(rest.len())].trim_end_matches(':').to_owned());
    }
    found
}

fn wing(path: &str) -> &str {
    path.split("::").next().unwrap()
}

/// The first two parts of a path: a module of a wing.
fn module(path: &str) -> String {
    path.split("::").take(2).collect::<Vec<_>>().join("::")
}

/// What can be reached from `start`.
fn reached<'a>(
    arrows: &'a BTreeMap<String, BTreeSet<String>>,
    start: &'a str,
) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut ahead = vec![start];
    while let Some(module) = ahead.pop() {
        for next in arrows.get(module).into_iter().flatten() {
            if reached.insert(next.as_str()) {
                ahead.push(next);
            }
        }
    }
    reached
}

#[test]
fn each_wing_imports_only_what_its_row_allows_and_no_wing_above_it() {
    let allowed = allowed();
    let order: Vec<&str> = allowed.iter().map(|(wing, _)| wing.as_str()).collect();
    assert_eq!(order.len(), 8, "{order:?}");
    for (at, (wing, may)) in allowed.iter().enumerate() {
        let upwards = may.iter().find(|path| !order[..at].contains(&self::wing(path)));
        assert_eq!(upwards, None, "the table lets `{wing}` import upwards");
    }
    let sources = sources("wrappers/src");
    let modules: BTreeSet<String> = sources.iter().map(|(path, _)| module(path)).collect();
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut forbidden = Vec::new();
    for (path, source) in &sources {
        let Some((from, may)) = allowed.iter().find(|(name, _)| name == wing(path)) else {
            continue;
        };
        for import in imports(source) {
            let is_allowed = wing(&import) == from
                || may.iter().any(|may| {
                    import
                        .strip_prefix(may)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
                });
            if !is_allowed {
                forbidden.push(format!("{path} imports {import}"));
            }
            let to = module(&import);
            if modules.contains(&to) && to != module(path) {
                arrows.entry(module(path)).or_default().insert(to);
            }
        }
    }
    for (name, _) in &allowed {
        let own = |path: &&String| wing(path) == name;
        let imports: BTreeSet<&str> = arrows
            .iter()
            .filter(|(from, _)| own(from))
            .flat_map(|(_, to)| to)
            .map(|to| wing(to))
            .filter(|to| to != name)
            .collect();
        println!("{name:8} {} modules, imports {imports:?}", modules.iter().filter(own).count());
        for module in modules.iter().filter(own) {
            if reached(&arrows, module).contains(module.as_str()) {
                println!("         in a circle: {module}");
            }
        }
    }
    assert_eq!(forbidden, [""; 0]);
}

/// Tests may look at anything: they come last in a file.
#[test]
fn no_rooms_of_the_command_import_each_other_in_a_circle() {
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // Those above all others, which nobody imports.
    let tops = ["commands", "lib", "main", "print", "shown"];
    for (path, source) in sources("src") {
        if tops.contains(&wing(&path)) {
            continue;
        }
        let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let others = imports(code).into_iter().map(|import| wing(&import).to_owned());
        let room = wing(&path);
        arrows.entry(room.to_owned()).or_default().extend(others.filter(|other| other != room));
    }
    assert!(arrows.len() > 10, "{arrows:?}");
    let in_circles: Vec<&String> =
        arrows.keys().filter(|room| reached(&arrows, room).contains(room.as_str())).collect();
    assert_eq!(in_circles, [""; 0], "{arrows:#?}");
}
