//! Control variables of a run: sets those that the user named, and records what is set.
//!
//! If the library reads the environment, they are set there before it does: some libraries offer no other way.
//! The facts about a variable must be known before, so a forked copy of this process starts `MPI_T` first and
//! reports them. If that is impossible (the start was missed, or the library does not read the environment),
//! `MPI_T_cvar_write` is used.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use gyan_results::{
    CvarSetting, Datatype, Item, Knob, Values, collected, described_items, is_described, is_knob,
    value_text,
};
use serde::{Deserialize, Serialize};

use crate::config::{self, Config, RecordCvars};
use crate::mpi::abi::{Bind, Library};
use crate::mpi::libraries::cvar_env;
use crate::mpi::libraries::monitoring::{self, MonitoringRow};
use crate::mpi::libraries::quirks;
use crate::mpi::tool::{Api, CvarInfo, Mpit};
use crate::sys::fork::survive;

/// The facts about a variable that are needed to set it.
#[derive(Debug, Deserialize, Serialize)]
struct Facts {
    datatype: Option<Datatype>,
    items: Vec<Item>,
    constant: bool,
    /// Its value, if that was asked for.
    #[serde(default)]
    value: Option<String>,
    /// The parameter file that sets it.
    #[serde(default)]
    file: Option<String>,
}

/// A setting that the user asked for and that makes sense.
pub(crate) struct RequestedCvar {
    name: String,
    value: String,
    /// The setting of gyan that it comes from.
    by: &'static str,
    /// The environment variable that was set; none when the value must still be written.
    environment: Option<String>,
}

/// What a run records of the control variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    /// Those that are set, or all, as the user wants.
    pub(crate) cvars: Vec<CvarSetting>,
    pub(crate) knobs: Vec<Knob>,
}

/// Checks what the user asked for, and sets what the library will read from its environment. Call before
/// `MPI_T` is initialised.
pub(crate) fn set_environment(library: &Library, config: &mut Config) -> Vec<RequestedCvar> {
    let (implementation, version) = (library.implementation, library.version);
    for (name, value) in quirks::settings_before_mpit(implementation, version, config::launcher) {
        config::set_for_library(name, value);
    }
    let (rows, warnings) = monitoring::wanted(library, &config.enable);
    config.warn_once(warnings);
    if config.cvars.is_empty() && rows.is_empty() {
        return Vec::new();
    }
    let asked = config.cvars.iter().map(|(name, _)| name.clone());
    let names: Vec<String> = asked.chain(rows.iter().map(|row| row.cvar.to_owned())).collect();
    let told = survive(1, |_, _, _, out| {
        let mpit = Mpit::init(library, library.abi.thread_multiple()).ok().flatten();
        let facts = mpit.map(|mpit| {
            let mut facts = facts(&mpit.api, library, &names);
            if !rows.is_empty() {
                add_values(&mut facts, &mpit.api, library);
            }
            facts
        });
        let facts = facts.unwrap_or_default();
        out.write_all(&serde_json::to_vec(&facts)?)
    });
    let text = told.map(|told| told.lines).unwrap_or_default();
    let facts: BTreeMap<String, Facts> = serde_json::from_str(&text).unwrap_or_default();
    let mut settings = accepted(&facts, config);
    settings.extend(enabling(&rows, &facts, library, config));
    for setting in &mut settings {
        setting.environment = cvar_env::environment(library.implementation, &setting.name);
        if let Some(variable) = &setting.environment {
            config::set_for_library(variable, &setting.value);
        }
    }
    settings
}

/// Checks what the user asked for if `MPI_T` is already initialised, so that nothing reads the environment any
/// more.
pub(crate) fn check_late(
    mpit: &Mpit,
    library: &Library,
    config: &mut Config,
) -> Vec<RequestedCvar> {
    let (rows, warnings) = monitoring::wanted(library, &config.enable);
    config.warn_once(warnings);
    for row in rows {
        let environment = cvar_env::environment(library.implementation, row.cvar);
        config.warnings.push(format!(
            "GYAN_ENABLE: {}: the start was missed, so it cannot be turned on; set {}={} in the \
             environment",
            row.name,
            environment.unwrap_or_default(),
            row.on
        ));
    }
    if config.cvars.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = config.cvars.iter().map(|(name, _)| name.clone()).collect();
    let facts = facts(&mpit.api, library, &names);
    accepted(&facts, config)
}

/// Writes what could not be set through the environment, and records what is set. Some variables cannot be read
/// after `MPI_Init`, so this is done before it if possible.
pub(crate) fn write_and_record(
    mpit: &Mpit,
    library: &Library,
    settings: &[RequestedCvar],
    config: &mut Config,
) -> Recorded {
    let api = &mpit.api;
    let wanted = config.cvars_record;
    let records = config::may_be_first_rank() && wanted != RecordCvars::None;
    if settings.is_empty() && !records {
        return Recorded::default();
    }
    let origins =
        if records && wanted == RecordCvars::Changed { origins(library) } else { BTreeMap::new() };
    let late = library.is_initialized();
    let names = names(api);
    let files = if records { parameter_files(library, api, &names) } else { BTreeMap::new() };
    let mut recorded = Recorded::default();
    for (index, name) in names {
        let setting = settings.iter().find(|setting| setting.name == name);
        let origin = match setting {
            Some(setting) => Some(setting.by.to_owned()),
            None => origins.get(&name).or_else(|| files.get(&name)).cloned(),
        };
        let is_knob = records && is_knob(&name);
        let is_recorded = origin.is_some() || records && wanted == RecordCvars::All;
        if !is_knob && !is_recorded {
            continue;
        }
        let to_write = setting.filter(|setting| setting.environment.is_none());
        let refusal = to_write.and_then(|setting| write(api, library, index, &setting.value).err());
        if let (Some(setting), Some(why)) = (setting, &refusal) {
            let RequestedCvar { by, value, .. } = setting;
            config.warnings.push(format!("{by}: {name}={value}: {why}; no change"));
        }
        let deadly = late && quirks::deadly_after_init(library, &name).is_some();
        let value = if deadly { None } else { read(api, library, index) };
        if let (Some(setting), Some((value, same))) = (setting, &value)
            && refusal.is_none()
            && !same(&setting.value)
        {
            let RequestedCvar { by, value: asked, .. } = setting;
            config.warnings.push(format!("{by}: {name}={asked}: the library has {value}"));
        }
        let value = value.map(|(value, _)| value);
        if is_knob && let Some(value) = value.clone() {
            recorded.knobs.push(Knob { name: name.clone(), value });
        }
        if is_recorded {
            let requested = setting.map(|setting| setting.value.clone());
            recorded.cvars.push(CvarSetting { value, set_by: origin, requested, name });
        }
    }
    recorded
}

/// Reads what was asked for once more, after `MPI_Init`, which may have changed it in silence. What can no longer be read
/// keeps the value of before.
pub(crate) fn read_again(
    mpit: &Mpit,
    library: &Library,
    recorded: &mut Recorded,
    config: &mut Config,
) {
    leave_out_closed(&mpit.api, &mut recorded.knobs);
    let asked = recorded.cvars.iter_mut().filter(|cvar| cvar.requested.is_some());
    let mut asked: Vec<&mut CvarSetting> =
        asked.filter(|cvar| quirks::deadly_after_init(library, &cvar.name).is_none()).collect();
    if asked.is_empty() {
        return;
    }
    for (index, name) in names(&mpit.api) {
        let Some(cvar) = asked.iter_mut().find(|cvar| cvar.name == name) else { continue };
        let Some((value, same)) = read(&mpit.api, library, index) else { continue };
        if cvar.value.as_ref() == Some(&value) {
            continue;
        }
        if let (Some(asked), Some(by)) = (&cvar.requested, &cvar.set_by)
            && !same(asked)
        {
            config.warnings.push(format!("{by}: {name}={asked}: the library has {value}"));
        }
        cvar.value = Some(value);
    }
}

/// What the user asked for without what makes no sense, of which each is a warning.
fn accepted(facts: &BTreeMap<String, Facts>, config: &mut Config) -> Vec<RequestedCvar> {
    let mut settings = Vec::new();
    for (name, value) in &config.cvars {
        match refusal(facts.get(name), value) {
            None => settings.push(RequestedCvar {
                name: name.clone(),
                value: as_the_library_reads_it(name, value, facts.get(name)),
                by: "GYAN_CVARS",
                environment: None,
            }),
            Some(why) => {
                config.warnings.push(format!("GYAN_CVARS: {name}={value}: {why}; no change"));
            }
        }
    }
    settings
}

/// MPICH 4.0 and 5.0 crash in `MPI_Init` on the number of an algorithm in the environment: they want its name.
fn as_the_library_reads_it(name: &str, value: &str, facts: Option<&Facts>) -> String {
    let number: Option<i32> = value.parse().ok().filter(|_| is_described(name));
    let items = facts.map_or(&[][..], |facts| &facts.items[..]);
    let named = items.iter().find(|item| number == Some(item.value));
    named.map_or(value, |item| &item.name).to_owned()
}

/// What turns on the monitoring that the user wants. What he has set himself stays, and is said to.
fn enabling(
    rows: &[&'static MonitoringRow],
    facts: &BTreeMap<String, Facts>,
    library: &Library,
    config: &mut Config,
) -> Vec<RequestedCvar> {
    let mut settings = Vec::new();
    for row in rows {
        let MonitoringRow { name, cvar, on, .. } = row;
        let Some(facts) = facts.get(*cvar) else {
            if config.enable.iter().any(|wanted| wanted == name) {
                config.warnings.push(row.missing());
            }
            continue;
        };
        let environment = cvar_env::environment(library.implementation, cvar);
        let own = config.cvars.iter().find(|(set, _)| set == cvar);
        let by = match own {
            Some(_) => Some("GYAN_CVARS".to_owned()),
            None => environment
                .filter(|variable| config::names().contains(variable))
                .or_else(|| facts.file.clone()),
        };
        let value = own.map(|(_, value)| value).or(facts.value.as_ref());
        match by {
            None => settings.push(RequestedCvar {
                name: (*cvar).into(),
                value: (*on).into(),
                by: "GYAN_ENABLE",
                environment: None,
            }),
            Some(by) if value.is_none_or(|value| value != on) => {
                let value = value.map_or("", String::as_str);
                config.warnings.push(format!(
                    "GYAN_ENABLE: {name}: {by} sets {cvar} to \"{value}\", which stays; leave one of \
                     the two out"
                ));
            }
            Some(_) => {}
        }
    }
    settings
}

/// Why a value cannot be given to a variable; none when it can.
fn refusal(facts: Option<&Facts>, value: &str) -> Option<String> {
    let Some(facts) = facts else {
        return Some("this MPI library has no such control variable".into());
    };
    if facts.constant {
        return Some("is a constant of the library".into());
    }
    let Some(datatype) = facts.datatype else {
        return Some("has a datatype that MPI_T does not allow".into());
    };
    if !facts.items.is_empty() {
        let known = facts.items.iter();
        let known = known.map(|item| item.name.as_str()).collect::<Vec<_>>();
        let number = value.parse::<i32>().is_ok();
        return (!number && !known.contains(&value))
            .then(|| format!("is none of {}", known.join(", ")));
    }
    encoded(datatype, &facts.items, value).is_none().then(|| "is not a value of its type".into())
}

/// The bytes of a value; none when the text is not a value of the type.
fn encoded(datatype: Datatype, items: &[Item], text: &str) -> Option<Vec<u8>> {
    if datatype == Datatype::Char {
        return Some([text.as_bytes(), b"\0"].concat());
    }
    if datatype == Datatype::Double {
        return text.parse::<f64>().ok().map(|double| double.to_ne_bytes().to_vec());
    }
    let named = items.iter().find(|item| item.name == text).map(|item| i128::from(item.value));
    let truth = |text| match text {
        "true" => Some(1),
        "false" => Some(0),
        _ => None,
    };
    let boolean = if datatype == Datatype::CBool { truth(text) } else { None };
    let integer = named.or(boolean).or_else(|| text.parse().ok())?;
    let bytes = integer.to_ne_bytes();
    // The low bytes, which come first or last with the byte order of the machine.
    let size = datatype.size();
    let low =
        if cfg!(target_endian = "big") { bytes.get(16 - size..)? } else { bytes.get(..size)? };
    let fits = datatype.decode(low) == Some(gyan_results::Number::Integer(integer));
    fits.then(|| low.to_vec())
}

fn facts(api: &Api, library: &Library, wanted: &[String]) -> BTreeMap<String, Facts> {
    let wanted: BTreeSet<&str> = collected(wanted.iter().map(String::as_str));
    let found = names(api).into_iter().filter(|(_, name)| wanted.contains(name.as_str()));
    collected(found.filter_map(|(index, name)| {
        let info = api.cvar_get_info(index).ok()?;
        let facts = Facts {
            datatype: library.datatype(info.datatype),
            items: items(api, &info),
            constant: library.abi.scope(info.scope) == Some("CONSTANT"),
            value: None,
            file: None,
        };
        Some((name, facts))
    }))
}

/// The values of the variables, and the parameter files that set them.
fn add_values(facts: &mut BTreeMap<String, Facts>, api: &Api, library: &Library) {
    let names = names(api);
    let mut files = parameter_files(library, api, &names);
    for (index, name) in names {
        if let Some(facts) = facts.get_mut(&name) {
            facts.value = read(api, library, index).map(|(value, _)| value);
            facts.file = files.remove(&name);
        }
    }
}

/// The names of the values of an enumeration, or of what MPICH describes as one; none for a variable that is none.
fn items(api: &Api, info: &CvarInfo) -> Vec<Item> {
    match info.enumeration {
        Some(items) => api.enum_items(items).unwrap_or_default(),
        None if is_described(&info.name) => described_items(&info.description),
        None => Vec::new(),
    }
}

/// Index and name of every control variable that has one.
/// Of a component that is not in use Open MPI has no priority after `MPI_Init`.
fn leave_out_closed(api: &Api, knobs: &mut Vec<Knob>) {
    let is_of_component = |knob: &Knob| knob.name.ends_with("_priority");
    if knobs.iter().any(is_of_component) {
        let names: BTreeSet<String> = names(api).into_iter().map(|(_, name)| name).collect();
        knobs.retain(|knob| !is_of_component(knob) || names.contains(&knob.name));
    }
}

fn names(api: &Api) -> Vec<(usize, String)> {
    let number = api.cvar_get_num().unwrap_or(0);
    (0..number).filter_map(|index| Some((index, api.cvar_name(index).ok()?))).collect()
}

fn write(api: &Api, library: &Library, index: usize, text: &str) -> Result<(), String> {
    let info = api.cvar_get_info(index).map_err(|failure| failure.to_string())?;
    let datatype = library.datatype(info.datatype).ok_or("unknown datatype")?;
    let items = items(api, &info);
    let bytes = encoded(datatype, &items, text).ok_or("is no value of its type")?;
    let object = object(library, info.bind)?;
    let handle = api.cvar_handle(index, object).map_err(|failure| failure.to_string())?;
    let written = api.cvar_write(&handle, &bytes).map_err(|failure| failure.to_string());
    api.cvar_free(handle);
    written
}

/// The value of a variable as text, and whether another text means the same.
fn read(
    api: &Api,
    library: &Library,
    index: usize,
) -> Option<(String, impl Fn(&str) -> bool + use<>)> {
    let info = api.cvar_get_info(index).ok()?;
    let datatype = library.datatype(info.datatype)?;
    let items = items(api, &info);
    let handle = api.cvar_handle(index, object(library, info.bind).ok()?).ok()?;
    let bytes = api.cvar_read(&handle, datatype);
    api.cvar_free(handle);
    let values = Values::from_bytes(datatype, &bytes.ok()?, usize::MAX);
    let text = value_text(&values, Some(&items));
    let same = {
        let text = text.clone();
        move |asked: &str| {
            let asked = encoded(datatype, &items, asked)
                .map(|bytes| value_text(&Values::from_bytes(datatype, &bytes, 1), Some(&items)));
            asked.as_deref() == Some(text.as_str())
        }
    };
    Some((text, same))
}

/// The object to bind a variable to; an error when there is none of that kind.
fn object(library: &Library, bind: std::ffi::c_int) -> Result<Option<usize>, String> {
    match library.abi.bind(bind) {
        Some(Bind::NoObject) => Ok(None),
        Some(Bind::Comm) if library.is_initialized() => Ok(library.handle(library.abi.comm_world)),
        _ => Err("binds to an object that does not exist yet".into()),
    }
}

/// Control variables that the environment sets, with what sets them.
fn origins(library: &Library) -> BTreeMap<String, String> {
    let set = cvar_env::set_in(library.implementation, &config::names()).into_iter();
    collected(set.map(|(cvar, variable)| (cvar, format!("environment {variable}"))))
}

/// Control variables that the library's parameter files set, with the file.
fn parameter_files(
    library: &Library,
    api: &Api,
    names: &[(usize, String)],
) -> BTreeMap<String, String> {
    let mut set = BTreeMap::new();
    let Some(variable) = cvar_env::files(library.implementation) else { return set };
    let listed = names
        .iter()
        .find(|(_, name)| name == variable)
        .and_then(|(index, _)| read(api, library, *index));
    let Some((files, _)) = listed else { return set };
    // The first file that sets a variable wins.
    for file in files.split([',', ':']) {
        for name in names_in_parameter_file(&fs::read_to_string(file).unwrap_or_default()) {
            set.entry(name).or_insert_with(|| format!("file {file}"));
        }
    }
    set
}

/// The names that a file of lines `name = value` sets; `#` begins a remark.
fn names_in_parameter_file(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    lines.filter_map(|line| Some(line.split_once('=')?.0.trim().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(datatype: Datatype, names: &[&str]) -> Facts {
        let items = (0..).zip(names).map(|(value, name)| Item { value, name: (*name).into() });
        let items = items.collect();
        Facts { datatype: Some(datatype), items, constant: false, value: None, file: None }
    }

    #[test]
    fn a_value_of_the_wrong_type_is_refused() {
        let refused = |facts: &Facts, value| refusal(Some(facts), value).is_some();
        let int = facts(Datatype::Int, &[]);
        assert!(!refused(&int, "-4") && refused(&int, "4k") && refused(&int, "4294967296"));
        let unsigned = facts(Datatype::UnsignedLong, &[]);
        assert!(!refused(&unsigned, "4096") && refused(&unsigned, "-1"));
        let named = facts(Datatype::Int, &["false", "true"]);
        assert!(!refused(&named, "true") && !refused(&named, "1") && refused(&named, "maybe"));
        assert!(!refused(&facts(Datatype::Char, &[]), "anything at all"));
        assert!(refused(&facts(Datatype::Double, &[]), "fast"));
        assert!(refusal(None, "1").unwrap().contains("no such"));
        let constant = Facts { constant: true, ..facts(Datatype::Int, &[]) };
        assert!(refusal(Some(&constant), "1").unwrap().contains("constant"));
    }

    #[test]
    fn values_are_encoded_in_their_own_type() {
        assert_eq!(encoded(Datatype::Int, &[], "-1"), Some(vec![0xff; 4]));
        assert_eq!(encoded(Datatype::UnsignedLong, &[], "258").unwrap().len(), 8);
        assert_eq!(encoded(Datatype::Char, &[], "ob1"), Some(b"ob1\0".to_vec()));
        assert_eq!(encoded(Datatype::Double, &[], "0.5"), Some(0.5_f64.to_ne_bytes().to_vec()));
        assert_eq!(encoded(Datatype::CBool, &[], "true"), Some(vec![1]));
    }

    #[test]
    fn parameter_files_are_lines_of_names_and_values() {
        let text = "# btl = self\nbtl = ^openib # not there\n\n  pml=ob1\nnothing\n";
        assert_eq!(names_in_parameter_file(text), ["btl", "pml"]);
    }
}
