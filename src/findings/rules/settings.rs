//! Settings that do not do what their user expects.

use gyan_results::{Actor, CvarSetting};

use super::{Rule, RuleMatch};
use crate::findings::knobs::{say, set};
use crate::findings::run::{RunFacts, exact, is_true, setting};

const SHOWN: &str = "gyan report --environment";

pub(super) const WITHOUT_DYNAMIC_RULES: Rule = Rule {
    id: "without-dynamic-rules",
    name: "An algorithm is set, and not used",
    acts: Actor::Run,
    needs: "the control variables that are set",
    when: "Open MPI: coll_tuned_*_algorithm is set and coll_tuned_use_dynamic_rules is not",
    means: "Open MPI looks at the algorithms that a user names only with dynamic rules. How much an algorithm would change \
            is not known.",
    wrong_when: "never, as far as is known.",
    witness: "the time of the function; the number of messages that it sends",
    source: "Open MPI FAQ, \"How do I change the algorithms of collectives\"; coll_tuned_use_dynamic_rules",
    todo: "Turn the rules on in the same run: gyan run --set coll_tuned_use_dynamic_rules=1 --set NAME=VALUE.",
    look: without_dynamic_rules,
};

fn without_dynamic_rules(run: &RunFacts) -> Vec<RuleMatch> {
    const RULES: &str = "coll_tuned_use_dynamic_rules";
    let is_algorithm = |cvar: &&CvarSetting| {
        cvar.name.starts_with("coll_tuned_") && cvar.name.ends_with("_algorithm")
    };
    let is_chosen =
        |cvar: &&CvarSetting| !matches!(cvar.value.as_deref(), None | Some("ignore" | "0"));
    if run.is_on(RULES) != Some(false) {
        return Vec::new();
    }
    let set_ones = run.summary.cvars.iter().filter(is_algorithm).filter(is_chosen);
    let of = |cvar: &CvarSetting| {
        let value = cvar.value.as_deref().unwrap_or_default();
        let title = format!("{}={value} has no effect: {RULES} is off", cvar.name);
        let mut advice = set("turn the rules on", RULES, "1");
        if cvar.requested.is_some() {
            advice.command =
                Some(format!("gyan run --set {RULES}=1 --set {}={value} -- ...", cvar.name));
        }
        let evidence = vec![exact(RULES, 0.0, "", SHOWN)];
        RuleMatch { title, evidence, advice: vec![advice], ..RuleMatch::default() }
    };
    set_ones.map(of).collect()
}

pub(super) const IGNORED: Rule = Rule {
    id: "setting-ignored",
    name: "A setting was ignored",
    acts: Actor::Run,
    needs: "the control variables that gyan was asked to set, and their values",
    when: "the value that the library has is not the one that was asked for",
    means: "The library has changed the value, or something else has set it with a higher priority.",
    wrong_when: "the library writes the same value in another way.",
    witness: "the value of the variable",
    source: "MPI 4.1, 15.3.6; Open MPI issues 7519, 7737, 12682",
    todo: "See what sets the variable instead with gyan report --environment, and which values it may have with gyan \
           varlist -l.",
    look: ignored,
};

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

pub(super) const INERT: Rule = Rule {
    id: "inert-setting",
    name: "A setting that this library does not read",
    acts: Actor::Run,
    needs: "the control variables that are set, and what the library was built with",
    when: "a variable is set that only another device than that of the library reads: MPIR_CVAR_POLLS_BEFORE_YIELD is read by ch3:nemesis, \
           MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE by ch3, MPIR_CVAR_CH4_PROGRESS_THROTTLE by ch4",
    means: "MPICH has the variables of all its devices, whichever was built. It takes the value and does nothing with it.",
    wrong_when: "never, as far as is known.",
    witness: "nothing moves",
    source: "MPICH 4.0 and 5.0, src/mpid/ch3/channels/nemesis",
    todo: "Leave the setting out. In place of MPIR_CVAR_POLLS_BEFORE_YIELD, ch4 reads \
           MPIR_CVAR_CH4_PROGRESS_THROTTLE.",
    look: inert,
};

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
