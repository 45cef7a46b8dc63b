//! Variables that are known to kill or to hang, from the file that `GYAN_QUIRKS` names: they are never
//! touched. `gyan doctor --probe` writes such a file, and a user may edit it.
//!
//! A line is a name, with `*` and `?`, or `index N` for a variable whose name cannot be asked for; what
//! follows a `#` is for the reader.

use std::collections::BTreeSet;

use wildmatch::WildMatch;

/// Why a variable is not touched.
pub(crate) const REASON: &str = "left out by the file of GYAN_QUIRKS";

/// Performance variables that must not be touched.
#[derive(Debug, Default)]
pub(crate) struct Exclusions {
    names: Vec<WildMatch>,
    indices: BTreeSet<usize>,
}

impl Exclusions {
    /// Adds the lines of `text`, which is the file `path`; a line that makes no sense is left out with a
    /// warning.
    pub(crate) fn extend(&mut self, path: &str, text: &str, warnings: &mut Vec<String>) {
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] => {}
                [name] => self.names.push(WildMatch::new(name)),
                ["index", index] if index.parse::<usize>().is_ok() => {
                    self.indices.extend(index.parse::<usize>());
                }
                _ => warnings.push(format!(
                    "GYAN_QUIRKS: {path}:{number}: {}: is neither a name nor `index N`; line ignored",
                    line.trim()
                )),
            }
        }
    }

    /// Whether not even the name of variable `index` may be asked for.
    pub(crate) fn has_index(&self, index: usize) -> bool {
        self.indices.contains(&index)
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|pattern| pattern.matches(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_indices_are_understood_and_other_lines_are_named() {
        let (mut exclusions, mut warnings) = (Exclusions::default(), Vec::new());
        let text = "# of fakempi\n\nmtl_*   # crashes\nindex 7 # hangs\nindex x\n two words\n";
        exclusions.extend("file", text, &mut warnings);
        assert!(exclusions.has_name("mtl_psm2_rx") && !exclusions.has_name("pml_ob1"));
        assert!(exclusions.has_index(7) && !exclusions.has_index(3));
        assert_eq!(
            warnings,
            [
                "GYAN_QUIRKS: file:5: index x: is neither a name nor `index N`; line ignored",
                "GYAN_QUIRKS: file:6: two words: is neither a name nor `index N`; line ignored",
            ]
        );
    }
}
