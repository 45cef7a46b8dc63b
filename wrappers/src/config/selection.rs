//! Which variables does the user want? `name[:CLASS];...`, with `*` and `?`; a leading `-` leaves them out. The
//! original GYAN's `MPIT_VAR_TO_TRACE` is a list of the first kind.

use gyan_results::Class;
use wildmatch::WildMatch;

use crate::config::denylist::Exclusions;

/// Which variables are wanted, and which of them are sampled while the program runs.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) pvars: Selection,
    pub(crate) sampled: Selection,
    /// Those that must not be touched.
    pub(crate) exclusions: Exclusions,
}

impl Wanted {
    /// A warning for each item that no variable matched.
    pub(crate) fn unmatched(&self) -> impl Iterator<Item = String> {
        self.pvars.unmatched().chain(self.sampled.unmatched())
    }
}

/// A list of patterns; the empty list selects everything.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    /// The setting and the item, for messages.
    source: String,
    name: WildMatch,
    class: Option<Class>,
    leave_out: bool,
    matched: bool,
}

impl Selection {
    /// Adds the items of `text`, the value of `setting`; an item that makes no sense is left out
    /// with a warning.
    pub(crate) fn extend(&mut self, setting: &str, text: &str, warnings: &mut Vec<String>) {
        for item in text.split([';', ',']).map(str::trim).filter(|item| !item.is_empty()) {
            let (leave_out, rest) = match item.strip_prefix('-') {
                Some(rest) => (true, rest),
                None => (false, item),
            };
            let (name, class) = rest
                .split_once(':')
                .map_or((rest, None), |(name, class)| (name, Some(class_of(class))));
            if class == Some(None) {
                warnings.push(format!("{setting}: {item}: no such class; item ignored"));
                continue;
            }
            self.patterns.push(Pattern {
                source: format!("{setting}: {item}"),
                name: WildMatch::new(name.trim()),
                class: class.flatten(),
                leave_out,
                matched: false,
            });
        }
    }

    /// Whether a variable is wanted: any, when no item says which.
    pub(crate) fn selects(&mut self, name: &str, class: Class) -> bool {
        let otherwise = self.patterns.iter().all(|pattern| pattern.leave_out);
        self.selects_or(name, class, otherwise)
    }

    /// Whether a variable is wanted; `otherwise` applies if no item matches.
    pub(crate) fn selects_or(&mut self, name: &str, class: Class, otherwise: bool) -> bool {
        let mut wanted = otherwise;
        let mut left_out = false;
        for pattern in &mut self.patterns {
            if pattern.name.matches(name) && pattern.class.is_none_or(|wanted| wanted == class) {
                pattern.matched = true;
                if pattern.leave_out {
                    left_out = true;
                } else {
                    wanted = true;
                }
            }
        }
        wanted && !left_out
    }

    /// A warning for each pattern that has matched nothing so far.
    pub(crate) fn unmatched(&self) -> impl Iterator<Item = String> {
        self.patterns
            .iter()
            .filter(|pattern| !pattern.matched)
            .map(|pattern| format!("{}: this MPI library exports no such variable", pattern.source))
    }
}

/// A class by its name in the standard, with or without prefix, or by the original GYAN's
/// abbreviation; capitals do not matter.
fn class_of(text: &str) -> Option<Class> {
    let text = text.trim().to_ascii_uppercase();
    let text = text.strip_prefix("MPI_T_PVAR_CLASS_").unwrap_or(&text);
    Some(match text {
        "HIGHWAT" => Class::HighWatermark,
        "LOWWAT" => Class::LowWatermark,
        "PERCENT" => Class::Percentage,
        "AGGR" => Class::Aggregate,
        _ => *Class::ALL.iter().find(|class| class.name() == text)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(text: &str) -> (Selection, Vec<String>) {
        let (mut selection, mut warnings) = (Selection::default(), Vec::new());
        selection.extend("GYAN_PVARS", text, &mut warnings);
        (selection, warnings)
    }

    #[test]
    fn nothing_said_selects_everything() {
        assert!(Selection::default().selects("idle", Class::Timer));
        assert!(selection(" ; ").0.selects("idle", Class::Timer));
    }

    #[test]
    fn a_class_tells_two_variables_of_one_name_apart() {
        let (mut selection, warnings) = selection("mem_allocated:LEVEL");
        assert!(warnings.is_empty());
        assert!(selection.selects("mem_allocated", Class::Level));
        assert!(!selection.selects("mem_allocated", Class::HighWatermark));
    }

    #[test]
    fn a_leading_minus_leaves_out_and_wins() {
        let (mut selection, _) = selection("-mtl_*");
        assert!(!selection.selects("mtl_psm2_rx", Class::Counter));
        assert!(selection.selects("pml_ob1", Class::Size));
        let (mut selection, _) = super::tests::selection("pml_*;-pml_m?nitoring_*");
        assert!(selection.selects("pml_ob1_posted_recvq_length", Class::Size));
        assert!(!selection.selects("pml_monitoring_flush", Class::Generic));
        assert!(!selection.selects("osc_rdma_put_retry_count", Class::Counter));
    }

    #[test]
    fn the_abbreviations_of_the_original_are_understood() {
        for (text, class) in [
            ("highwat", Class::HighWatermark),
            ("LOWWAT", Class::LowWatermark),
            ("Percent", Class::Percentage),
            ("aggr", Class::Aggregate),
            ("MPI_T_PVAR_CLASS_TIMER", Class::Timer),
            ("highwatermark", Class::HighWatermark),
        ] {
            assert_eq!(class_of(text), Some(class), "{text}");
        }
    }

    #[test]
    fn what_matches_nothing_is_named() {
        let (mut selection, warnings) = selection("idle;nosuch*;x:FOO");
        assert_eq!(warnings, ["GYAN_PVARS: x:FOO: no such class; item ignored"]);
        selection.selects("idle", Class::Timer);
        let unmatched: Vec<String> = selection.unmatched().collect();
        assert_eq!(unmatched, ["GYAN_PVARS: nosuch*: this MPI library exports no such variable"]);
    }
}
