//! Settings that do not do what their user expects.

use gyan_results::CvarSetting;

use super::{Rule, RuleMatch};
use crate::findings::knobs::{DYNAMIC_RULES, say, set};
use crate::findings::run::{RunFacts, exact, is_true, setting};

pub(super) const RULES: &[Rule] = rules! {
    420 "without-dynamic-rules": Run,
        "the time of the function; the number of messages that it sends",
        without_dynamic_rules;
    430 "setting-ignored": Run, "the value of the variable", ignored;
    440 "inert-setting": Run, "nothing moves", inert;
};

const SHOWN: &str = "gyan report --environment";

fn without_dynamic_rules(run: &RunFacts) -> Vec<RuleMatch> {
    let is_algorithm = |cvar: &&CvarSetting| {
        cvar.name.starts_with("coll_tuned_") && cvar.name.ends_with("_algorithm")
    };
    let is_chosen =
        |cvar: &&CvarSetting| !matches!(cvar.value.as_deref(), None | Some("ignore" | "0"));
    if run.is_on(DYNAMIC_RULES) != Some(false) {
        return Vec::new();
    }
    let set_ones = run.summary.cvars.iter().filter(is_algorithm).filter(is_chosen);
    let of = |cvar: &CvarSetting| {
        let value = cvar.value.as_deref().unwrap_or_default();
        let title = format!("{}={value} has no effect: {DYNAMIC_RULES} is off", cvar.name);
        let mut advice = set("turn the rules on", DYNAMIC_RULES, "1");
        if cvar.requested.is_some() {
            advice.command = Some(format!(
                "gyan run --set {DYNAMIC_RULES}=1 --set {}={value} -- ...",
                cvar.name
            ));
        }
        let evidence = vec![exact(DYNAMIC_RULES, 0.0, "", SHOWN)];
        RuleMatch { title, evidence, advice: vec![advice], ..RuleMatch::default() }
    };
    set_ones.map(of).collect()
}

fn ignored(run: &RunFacts) -> Vec<RuleMatch> {
    let of = |cvar: &CvarSetting| {
        let (value, asked) = (cvar.value.as_ref()?, cvar.requested.as_ref()?);
        // The library says that it was not set; otherwise the two values might only be written differently.
        let said = format!("{}={asked}: the library has {value}", cvar.name);
        let is_said = run.summary.warnings.iter().any(|warning| warning.text.contains(&said));
        if !is_said {
            return None;
        }
        let title = format!("{}={asked} was ignored: the library has {value}", cvar.name);
        let advice = vec![say(
            "see what sets it instead (gyan report --environment), and what it may be (gyan varlist -l)",
        )];
        let evidence = setting(&cvar.name, value, SHOWN).into_iter().collect();
        Some(RuleMatch { title, evidence, advice, ..RuleMatch::default() })
    };
    run.summary.cvars.iter().filter_map(of).collect()
}

const THROTTLE: &str = "MPIR_CVAR_CH4_PROGRESS_THROTTLE";

/// Variables that only one device reads.
const OF_ONE_DEVICE: [(&str, &str); 3] = [
    ("MPIR_CVAR_POLLS_BEFORE_YIELD", "ch3:nemesis"),
    ("MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE", "ch3"),
    (THROTTLE, "ch4"),
];

fn inert(run: &RunFacts) -> Vec<RuleMatch> {
    let Some(device) = &run.summary.mpi.device else { return Vec::new() };
    let of = |(name, reader): &(&str, &str)| {
        let cvar = run.summary.cvars.iter().find(|cvar| cvar.name == *name)?;
        if device.starts_with(reader) {
            return None;
        }
        let value = cvar.value.as_deref().unwrap_or_default();
        let title = format!("{name}={value} has no effect: this library is built with {device}");
        let mut advice = vec![say("leave it out")];
        if *name == "MPIR_CVAR_POLLS_BEFORE_YIELD"
            && run.knob(THROTTLE).is_some_and(|on| !is_true(on))
        {
            advice.push(set("or try what this device reads", THROTTLE, "1"));
        }
        let evidence = setting(name, value, SHOWN).into_iter().collect();
        Some(RuleMatch { title, evidence, advice, ..RuleMatch::default() })
    };
    OF_ONE_DEVICE.iter().filter_map(of).collect()
}
