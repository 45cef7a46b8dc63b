//! Which room imports which? Three tables of ARCHITECTURE.md say what is allowed in the three crates, and these tests hold
//! them. `cargo test --test house -- --nocapture` prints the rooms, their imports, and what imports each other in a
//! circle within a room.

// What it prints is for whoever asks for it.
#![allow(clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::Peekable;

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{TokenStream, TokenTree};

use crate::{root, sources};

/// A crate: its sources, and what the first column of its table is called.
struct Crate {
    folder: &'static str,
    column: &'static str,
    /// Modules without a row: the root, and what only tests have.
    without_row: &'static [&'static str],
}

const CRATES: [Crate; 3] = [
    Crate { folder: "wrappers/src", column: "wing", without_row: &["lib", "fuzzed"] },
    Crate { folder: "src", column: "room", without_row: &["lib", "main"] },
    Crate {
        folder: "results-schema/src",
        column: "datum",
        without_row: &["lib", "properties", "schema"],
    },
];

/// A row: rooms, and the paths that they may import.
type Row = (Vec<String>, Vec<String>);

impl Crate {
    /// The rows of its table, in their order.
    fn table(&self) -> Vec<Row> {
        let text = include_str!("../../ARCHITECTURE.md");
        let begin = format!("| {} |", self.column);
        let (_, table) = text.split_once(&begin).expect("the table of the crate");
        let (table, _) = table.split_once("\n\n").expect("the end of the table");
        let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let cells = |row: &str| -> Row {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            (names(cells[1]), names(cells[3]))
        };
        table.lines().skip(2).map(cells).collect()
    }

    /// The sources without their unit tests, which may look at anything.
    fn sources(&self) -> impl Iterator<Item = (String, String)> {
        let is_test = |path: &String| path.rsplit("::").next() == Some("tests");
        let sources = sources(self.folder).into_iter().filter(move |(path, _)| !is_test(path));
        sources.map(|(path, source)| (path, code(&source)))
    }

    /// The modules that the root makes public under other paths: `pub use module::Name`.
    fn re_exports(&self) -> BTreeMap<String, String> {
        let root = root().join(self.folder).join("lib.rs");
        let root = fs::read_to_string(root).unwrap();
        let mut owners = BTreeMap::new();
        for statement in root.split("pub use ").skip(1) {
            let (module, rest) = statement.split_once("::").expect("a path");
            let names = rest.split(';').next().unwrap();
            for name in names.split(|c: char| !c.is_alphanumeric() && c != '_') {
                owners.insert(name.to_owned(), module.to_owned());
            }
        }
        owners
    }
}

/// A source without its unit tests, which come last in a file.
fn code(source: &str) -> String {
    source.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned()
}

/// The paths after every `crate::` in a source.
fn imports(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    visit(source.parse().expect("tokens of Rust"), &mut found);
    found
}

fn visit(tokens: TokenStream, found: &mut BTreeSet<String>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if word == "crate" => rest_of_path("", &mut tokens, found),
            TokenTree::Group(group) => visit(group.stream(), found),
            _ => {}
        }
    }
}

/// Adds what `::name::{a, b::c}` stands for, after `path`.
fn rest_of_path(path: &str, tokens: &mut Peekable<IntoIter>, found: &mut BTreeSet<String>) {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ':');
    let mut path = path.to_owned();
    while tokens.next_if(is_colon).is_some() && tokens.next_if(is_colon).is_some() {
        match tokens.next() {
            Some(TokenTree::Ident(name)) if path.is_empty() => path = name.to_string(),
            Some(TokenTree::Ident(name)) => path = format!("{path}::{name}"),
            Some(TokenTree::Group(list)) => {
                let mut list = list.stream().into_iter().peekable();
                while let Some(token) = list.next() {
                    if let TokenTree::Ident(name) = token {
                        let below = if path.is_empty() {
                            name.to_string()
                        } else {
                            format!("{path}::{name}")
                        };
                        rest_of_path(&below, &mut list, found);
                    }
                }
                return;
            }
            _ => break,
        }
    }
    found.insert(path);
}

/// The first part of a path: a room.
fn room(path: &str) -> &str {
    path.split("::").next().unwrap()
}

/// The first two parts of a path: a module of a room.
fn module(path: &str) -> String {
    path.split("::").take(2).collect::<Vec<_>>().join("::")
}

/// Whether `may` is the path or a module that it is in.
fn covers(may: &str, path: &str) -> bool {
    path.strip_prefix(may).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
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
fn each_room_imports_only_what_its_row_allows_and_no_room_above_it() {
    for of in CRATES {
        let table = of.table();
        let mut below: Vec<&str> = Vec::new();
        for (rooms, may) in &table {
            below.extend(rooms.iter().map(String::as_str));
            let upwards = may.iter().find(|path| !below.contains(&room(path)));
            assert_eq!(upwards, None, "{}: the table lets {rooms:?} import upwards", of.folder);
        }
        let re_exports = of.re_exports();
        let mut forbidden = Vec::new();
        let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut between: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, source) in of.sources() {
            let from = room(&path);
            if of.without_row.contains(&from) {
                continue;
            }
            let Some((_, may)) =
                table.iter().find(|(rooms, _)| rooms.iter().any(|name| name == from))
            else {
                forbidden.push(format!("{from} has no row"));
                continue;
            };
            for import in imports(&source) {
                // The root has constants of its own, such as exit codes.
                if !import.contains("::") && import.to_uppercase() == import {
                    continue;
                }
                let import = match re_exports.get(&import) {
                    Some(module) => format!("{module}::{import}"),
                    None => import,
                };
                if room(&import) != from {
                    if !may.iter().any(|may| covers(may, &import)) {
                        forbidden.push(format!("{path} imports {import}"));
                    }
                    between.entry(from.to_owned()).or_default().insert(room(&import).to_owned());
                }
                if module(&import) != module(&path) {
                    arrows.entry(module(&path)).or_default().insert(module(&import));
                }
            }
        }
        for (rooms, may) in &table {
            println!("{} {}: may import {}", of.folder, rooms.join(", "), may.join(", "));
            for module in arrows.keys().filter(|path| rooms.iter().any(|name| name == room(path))) {
                if reached(&arrows, module).contains(module.as_str()) {
                    println!("    in a circle: {module}");
                }
            }
        }
        forbidden.dedup();
        assert_eq!(forbidden, [""; 0], "{}", of.folder);
        // Rooms of one row may import each other.
        let in_circles: Vec<&String> =
            between.keys().filter(|room| reached(&between, room).contains(room.as_str())).collect();
        assert_eq!(in_circles, [""; 0], "{between:#?}");
    }
}

#[test]
fn imports_are_found_in_lists_and_in_macros() {
    let source =
        "use crate::a::{b, c::{d, e}}; use crate::{f, g::h}; // crate::no\nx!(crate::i::j::<K>());";
    let found: Vec<String> = imports(source).into_iter().collect();
    assert_eq!(found, ["a::b", "a::c::d", "a::c::e", "f", "g::h", "i::j"]);
}
