//! What a check fails on: rules in TOML, laid over those that come with gyan.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};
use wildmatch::WildMatch;

/// The default rules, with comments, for users who want to change them.
pub(crate) const DEFAULT: &str = include_str!("rules.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    ended: bool,
    ignore: Vec<String>,
    pub(super) calls: OfFunctions,
    pub(super) bytes: OfFunctions,
    pub(super) messages: OfMessages,
    pub(super) findings: OfFindings,
    pub(super) times: OfTimes,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfFunctions {
    growth_percent: Limit,
    functions: BTreeMap<String, Limit>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfMessages {
    pub(super) growth_percent: Limit,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfFindings {
    new: Names,
    pub(super) least_share_percent: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfTimes {
    pub(super) judge: Vec<String>,
    pub(super) growth_percent: Limit,
    /// Whether the user's own rules name times: then it is not enough to leave them unjudged.
    #[serde(skip)]
    pub(super) are_asked_for: bool,
}

/// How much a number may grow, as a fraction of it; none when it is not judged.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(try_from = "Written")]
pub(super) struct Limit(pub(super) Option<f64>);

/// A limit as it is in a file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a limit is a number in percent, or false")]
enum Written {
    Percent(f64),
    Switch(bool),
}

impl TryFrom<Written> for Limit {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Limit, &'static str> {
        match written {
            Written::Switch(false) => Ok(Limit(None)),
            Written::Percent(percent) if percent >= 0.0 && percent.is_finite() => {
                Ok(Limit(Some(percent / 100.0)))
            }
            _ => Err("a limit is a number in percent, not below 0, or false"),
        }
    }
}

/// `"all"`, or a list.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "findings are \"all\", or a list of their names")]
enum Names {
    One(String),
    Some(Vec<String>),
}

impl Rules {
    /// The rules in `text`, merged over the default ones. `findings`: the names of all existing findings.
    ///
    /// # Errors
    /// Why they cannot be used, on one line.
    pub(crate) fn parse(text: &str, findings: &[&str]) -> Result<Rules, String> {
        let one_line = |error: toml::de::Error| {
            let text = error.to_string();
            let place = text.lines().next().filter(|line| line.starts_with("TOML parse error at "));
            let place = place.map(|line| line.replace("TOML parse error at ", ""));
            // For merged values the key is known instead of the line.
            let key = text.lines().find_map(|line| line.strip_prefix("in `")?.strip_suffix('`'));
            let place = place.or(key.map(str::to_owned));
            let what = error.message();
            place.map_or_else(|| what.to_owned(), |place| format!("{place}: {what}"))
        };
        let own: Table = text.parse().map_err(one_line)?;
        let mut all: Table = DEFAULT.parse().map_err(one_line)?;
        let names_times = own.get("times").and_then(|of| of.get("judge")).is_some();
        lay_over(&mut all, own);
        let mut rules: Rules = all.try_into().map_err(one_line)?;
        rules.times.are_asked_for = names_times;
        if let Some(unknown) =
            rules.named_findings().iter().find(|name| !findings.contains(&name.as_str()))
        {
            return Err(format!(
                "findings.new: there is no finding {unknown}, gyan explain lists them"
            ));
        }
        Ok(rules)
    }

    fn named_findings(&self) -> &[String] {
        match &self.findings.new {
            Names::One(all) if all == "all" => &[],
            Names::One(one) => std::slice::from_ref(one),
            Names::Some(names) => names,
        }
    }

    /// Whether a check fails when this finding is new.
    pub(super) fn names_finding(&self, id: &str) -> bool {
        matches!(&self.findings.new, Names::One(all) if all == "all")
            || self.named_findings().iter().any(|name| name == id)
    }

    /// Whether runs must finish.
    pub(crate) fn wants_ends(&self) -> bool {
        self.ended
    }

    /// Whether the calls of a function are left out.
    pub(super) fn ignores(&self, function: &str) -> bool {
        self.ignore.iter().any(|pattern| WildMatch::new(pattern).matches(function))
    }
}

impl OfFunctions {
    pub(super) fn limit(&self, function: &str) -> Limit {
        let matching =
            self.functions.iter().filter(|(name, _)| WildMatch::new(name).matches(function));
        matching.max_by_key(|(name, _)| name.len()).map_or(self.growth_percent, |(_, own)| *own)
    }
}

/// Replaces values in `all` by those in `own`.
fn lay_over(all: &mut Table, own: Table) {
    for (key, value) in own {
        match (all.get_mut(&key), value) {
            (Some(Value::Table(all)), Value::Table(own)) => lay_over(all, own),
            (_, value) => {
                all.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINDINGS: &[&str] = &["leak", "polling"];

    fn parse(text: &str) -> Result<Rules, String> {
        Rules::parse(&format!("findings.new = [\"leak\"]\n{text}"), FINDINGS)
    }

    #[test]
    fn what_a_file_leaves_out_is_as_it_is_by_default() {
        let rules = parse("calls.growth_percent = 0\ncalls.functions.'MPI_*' = 5").unwrap();
        assert_eq!(rules.calls.limit("MPI_Send"), Limit(Some(0.05)));
        assert_eq!(rules.calls.limit("other"), Limit(Some(0.0)));
        assert_eq!(rules.bytes.limit("MPI_Send"), Limit(Some(0.01)));
        assert!(rules.ignores("MPI_Test") && rules.ignores("MPI_Request_get_status_any"));
        assert!(rules.ended && !rules.ignores("MPI_Wait"));
        assert!(rules.names_finding("leak") && !rules.names_finding("polling"));
    }

    #[test]
    fn the_longest_name_that_matches_has_the_limit_and_false_is_none() {
        let rules = parse("[calls.functions]\n'MPI_*' = 5\n'MPI_Comm_*' = false").unwrap();
        assert_eq!(rules.calls.limit("MPI_Comm_dup"), Limit(None));
        assert_eq!(rules.calls.limit("MPI_Send"), Limit(Some(0.05)));
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line_with_its_place() {
        for (text, expected) in [
            ("call.growth_percent = 1", "unknown field `call`, expected one of `ended`, `ignore`"),
            ("calls.growth = 1", "calls: unknown field `growth`"),
            ("calls.growth_percent = '1%'", "calls.growth_percent: a limit is a number in percent"),
            ("calls.growth_percent = -1", "calls.growth_percent: a limit is a number in percent"),
            ("times.growth_percent = true", "times.growth_percent: a limit is a number in percent"),
            ("times = 1", "times: invalid type: integer"),
            ("a = = 1", "line 2, column 5: "),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.starts_with(expected) && why.lines().count() == 1, "{text}: {why}");
        }
        let why = Rules::parse("findings.new = ['leaks']", FINDINGS).unwrap_err();
        assert_eq!(why, "findings.new: there is no finding leaks, gyan explain lists them");
        assert!(Rules::parse("findings.new = 'all'", FINDINGS).unwrap().names_finding("polling"));
    }
}
