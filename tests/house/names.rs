//! Is there one type of each name in a crate? A name that a search finds is worth more than a short one.

use std::collections::BTreeMap;

use crate::sources;

/// The folders of the crates, each with the names that stand for more than one type.
const TWINS: [(&str, &[&str]); 3] = [
    // Two that are alternatives: the program loads its MPI or contains it, and the processor has a guard or none.
    ("wrappers/src", &["LoadedObject", "Record"]),
    ("results-schema/src", &[]),
    ("src", &[]),
];

/// The type that a line of a source defines.
fn defined(line: &str) -> Option<&str> {
    let mut words =
        line.split_whitespace().skip_while(|word| word.starts_with("pub") || *word == "unsafe");
    let is_definition = match words.next()? {
        "struct" | "enum" | "union" | "trait" => true,
        // Not one that belongs to a trait or its implementation.
        "type" => !line.starts_with(' ') || line.trim_start().starts_with("pub"),
        _ => false,
    };
    let name = words.next().filter(|_| is_definition)?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end]).filter(|name| !name.is_empty())
}

#[test]
fn no_two_types_of_a_crate_have_one_name() {
    for (folder, twins) in TWINS {
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (module, source) in sources(folder) {
            for name in source.lines().filter_map(defined) {
                places.entry(name.to_owned()).or_default().push(module.clone());
            }
        }
        assert!(places.len() > 100, "{folder}: {}", places.len());
        places.retain(|_, modules| modules.len() > 1);
        let new: Vec<_> =
            places.iter().filter(|(name, _)| !twins.contains(&name.as_str())).collect();
        assert!(new.is_empty(), "{folder}: types of one name: {new:?}");
        let gone: Vec<_> = twins.iter().filter(|name| !places.contains_key(**name)).collect();
        assert!(
            gone.is_empty(),
            "{folder}: take from the list, they are no twins any more: {gone:?}"
        );
    }
}
