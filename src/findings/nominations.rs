//! Which settings could help a run, and with which values? What `gyan tune` tries.

use gyan_results::{Figure, Finding, Summary, Variables};

use super::knobs::{COMPONENTS, DYNAMIC_RULES, NOMINEES, Nominee, Purpose, is_unsafe, witness_of};
use super::rules::{SENDS, eager};
use super::run::{Family, RunFacts, is_true};
use super::{CallPlaces, find};

/// Values for one variable, at most. Algorithms have no order, so all of them are tried.
const VALUES: usize = 2;

/// An eager limit is nominated if at least this share of the messages is above it.
const MOST: f64 = 0.3;
/// In bytes. Larger messages take too much memory at the receiver if they are sent eagerly.
const LARGEST: f64 = 1_048_576.0;
/// Room for the header of a message, in bytes.
const HEADER: f64 = 1024.0;

/// Control variables that a finding nominates, to be set together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Nomination {
    pub(crate) finding: String,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) witness: Figure,
}

/// What the findings of a run nominate, those with the most at stake first; settings of one variable follow each other.
/// `listing`: what the library says of its variables.
pub(crate) fn nominate(summary: &Summary, listing: Option<&Variables>) -> Vec<Nomination> {
    let places = CallPlaces::default();
    let queues = summary.queues();
    let run = RunFacts::new(summary, &queues, &places);
    let mut nominations: Vec<Nomination> = Vec::new();
    for finding in find(summary, &queues, &places).findings {
        let more = match finding.id.as_str() {
            "algorithm" => algorithms(&run, &finding, listing),
            "communication" => eager_limit(&run, &finding),
            "slow-start" => components(&run, &finding),
            "without-dynamic-rules" => dynamic_rules(&run, &finding),
            _ => by_knob(&run, &finding),
        };
        // Settings that can break a program are tried only if the user names them.
        let is_safe = |of: &Nomination| of.settings.iter().all(|(name, _)| !is_unsafe(name));
        let is_new = |of: &Nomination| {
            is_safe(of) && nominations.iter().all(|old| old.settings != of.settings)
        };
        let more: Vec<Nomination> = more.into_iter().filter(is_new).collect();
        nominations.extend(more);
    }
    nominations
}

fn nomination(finding: &Finding, settings: &[(&str, &str)], witness: Figure) -> Nomination {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let settings = settings.iter().map(owned).collect();
    Nomination { finding: finding.id.clone(), settings, witness }
}

/// The value that a finding advises for a control variable.
fn advised<'a>(finding: &'a Finding, name: &str) -> Option<&'a str> {
    let mut settings = finding.advice.iter().flat_map(gyan_results::Advice::settings);
    settings.find_map(|(advised, value)| (advised == name).then_some(value))
}

fn by_knob(run: &RunFacts, finding: &Finding) -> Vec<Nomination> {
    let is_one = |nominee: &&Nominee| nominee.finding == finding.id;
    let Some(nominee) = NOMINEES.iter().find(is_one) else { return Vec::new() };
    let knobs = nominee.purposes.iter().filter_map(|purpose| {
        let (knob, value) = run.knob_for(*purpose)?;
        // Only one of the eager limits matters, and the finding says which.
        let is_eager = matches!(purpose, Purpose::EagerWithinHost | Purpose::EagerBetweenHosts);
        let is_meant = !is_eager || advised(finding, knob.name).is_some();
        is_meant.then_some((knob, value))
    });
    let values = |(knob, current): (&super::knobs::Knob, &str)| -> Vec<Nomination> {
        let advised = advised(finding, knob.name);
        let values = match (knob.value, advised) {
            (Some(value), _) => vec![value.to_owned()],
            (None, Some(value)) => larger(value),
            (None, None) => Vec::new(),
        };
        let is_other = |value: &&String| *value != current && !(is_true(value) && is_true(current));
        let one = |value: &String| nomination(finding, &[(knob.name, value)], (nominee.witness)());
        values.iter().filter(is_other).map(one).collect()
    };
    knobs.flat_map(values).collect()
}

/// Where communication costs time and most messages are above the eager limit.
fn eager_limit(run: &RunFacts, finding: &Finding) -> Vec<Nomination> {
    let is_asking = eager(run).is_some_and(|eager| eager.above >= MOST);
    let purposes = [Purpose::EagerWithinHost, Purpose::EagerBetweenHosts];
    let purpose = purposes.get(usize::from(!run.is_on_one_host()));
    let knob = purpose.and_then(|purpose| run.knob_for(*purpose)).filter(|_| is_asking);
    let sizes = run.sizes(SENDS);
    let largest = sizes.iter().filter(|bar| bar.1 > 0.0).map(|bar| 2.0 * bar.0).fold(0.0, f64::max);
    let Some((knob, _)) = knob.filter(|_| largest <= LARGEST) else { return Vec::new() };
    let values = larger(&format!("{:.0}", largest + HEADER));
    values
        .iter()
        .map(|value| nomination(finding, &[(knob.name, value)], witness_of(knob.name)))
        .collect()
}

/// A number of bytes, and four times that.
fn larger(value: &str) -> Vec<String> {
    let number: Option<u64> = value.parse().ok();
    let values = number.into_iter().flat_map(|number| [number, number.saturating_mul(4)]);
    values.take(VALUES).map(|value| value.to_string()).collect()
}

/// All other algorithms of the function, the library's own choice first.
fn algorithms(run: &RunFacts, finding: &Finding, listing: Option<&Variables>) -> Vec<Nomination> {
    let Some((name, value)) = finding.functions.first().and_then(|of| run.algorithm(of)) else {
        return Vec::new();
    };
    let cvar = listing
        .and_then(|listing| listing.cvars.iter().find(|cvar| cvar.name.as_ref() == Some(&name)));
    let items = cvar.map(gyan_results::Cvar::items).unwrap_or_default();
    let others = items.iter().filter(|item| item.name != value && item.value.to_string() != value);
    let rules_are_off = run.is_on(DYNAMIC_RULES) == Some(false);
    let one = |item: &gyan_results::Item| {
        let mut settings = vec![(name.as_str(), item.name.as_str())];
        if run.family == Family::OpenMpi && rules_are_off {
            settings.insert(0, (DYNAMIC_RULES, "1"));
        }
        nomination(finding, &settings, witness_of(&name))
    };
    others.map(one).collect()
}

/// All components except the one that waits for a network that does not exist.
fn components(run: &RunFacts, finding: &Finding) -> Vec<Nomination> {
    let advised = advised(finding, COMPONENTS);
    let is_new = |value: &&str| run.knob(COMPONENTS) != Some(*value);
    let one = |value| nomination(finding, &[(COMPONENTS, value)], witness_of(COMPONENTS));
    advised.filter(is_new).map(one).into_iter().collect()
}

fn dynamic_rules(run: &RunFacts, finding: &Finding) -> Vec<Nomination> {
    let is_off = run.is_on(DYNAMIC_RULES) == Some(false);
    let one = || nomination(finding, &[(DYNAMIC_RULES, "1")], Figure::TimeInMpi);
    is_off.then(one).into_iter().collect()
}
