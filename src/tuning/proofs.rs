//! Did the library take a setting? Only the value that each rank reads back proves it: libraries ignore settings silently
//! (Open MPI issues 7519, 7737 and 12682).

use gyan_results::{Assignment, CvarSetting, Took};

/// The source of a value that gyan set, as profiles name it.
const OWN_SOURCE: &str = "GYAN_CVARS";

/// What a rank read back.
pub(crate) struct Reading<'a> {
    pub(crate) rank: u32,
    pub(crate) cvars: &'a [CvarSetting],
    /// Warnings of the rank; some say why a setting was refused.
    pub(crate) warnings: &'a [String],
}

/// Whether every rank of `size` took the settings.
pub(crate) fn took(settings: &[Assignment], readings: &[Reading], size: usize) -> Took {
    let (environment, cvars): (Vec<&Assignment>, Vec<&Assignment>) =
        settings.iter().partition(|setting| setting.is_environment);
    for setting in &cvars {
        for reading in readings {
            if let Err(why) = on_rank(setting, reading) {
                return Took::Ignored(why);
            }
        }
    }
    if let [first, ..] = &environment[..] {
        let why = format!("{} is a variable of the environment: nothing reads it back", first.name);
        return Took::Unproven(why);
    }
    if readings.len() < size {
        let why = format!("{} of {size} ranks left a profile of their own", readings.len());
        return Took::Unproven(why);
    }
    Took::OnEveryRank
}

fn on_rank(setting: &Assignment, reading: &Reading) -> Result<(), String> {
    let Assignment { name, value, .. } = setting;
    let rank = reading.rank;
    let asked = format!("{name}={value}: ");
    let said = reading.warnings.iter().find_map(|warning| Some(warning.split_once(&asked)?.1));
    if let Some(said) = said {
        return Err(format!("rank {rank}: {said}"));
    }
    let cvar = reading.cvars.iter().find(|cvar| cvar.name == *name);
    let cvar = cvar.ok_or_else(|| format!("rank {rank} did not read {name} back"))?;
    match &cvar.set_by {
        Some(by) if by == OWN_SOURCE => {}
        by => {
            let by = by.as_deref().unwrap_or("nothing that is known");
            return Err(format!("rank {rank}: set by {by}"));
        }
    }
    match &cvar.value {
        // libgyan.so compares values by the type of the variable, and warns where they differ.
        Some(_) => Ok(()),
        None => Err(format!("rank {rank} could not read {name} back")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str, value: &str) -> Assignment {
        Assignment { name: name.into(), value: value.into(), is_environment: false }
    }

    fn read(name: &str, value: Option<&str>, by: &str) -> Vec<CvarSetting> {
        vec![CvarSetting {
            name: name.into(),
            value: value.map(str::to_owned),
            set_by: Some(by.into()),
            requested: Some("8".into()),
        }]
    }

    fn told(cvars: [&[CvarSetting]; 2], warnings: [&[String]; 2]) -> Took {
        let readings = [0, 1].map(|rank| Reading {
            rank,
            cvars: cvars[rank as usize],
            warnings: warnings[rank as usize],
        });
        took(&[setting("x", "8")], &readings, 2)
    }

    #[test]
    fn it_took_when_every_rank_read_it_back_from_gyan() {
        let good = read("x", Some("8"), "GYAN_CVARS");
        assert_eq!(told([&good, &good], [&[], &[]]), Took::OnEveryRank);
    }

    #[test]
    fn one_rank_with_another_value_is_enough_to_say_it_was_ignored() {
        let good = read("x", Some("8"), "GYAN_CVARS");
        let other = read("x", Some("4"), "GYAN_CVARS");
        let warning = ["GYAN_CVARS: x=8: the library has 4".to_owned()];
        let why = Took::Ignored("rank 1: the library has 4".into());
        assert_eq!(told([&good, &other], [&[], &warning]), why);
        let why = Took::Ignored("rank 1 did not read x back".into());
        assert_eq!(told([&good, &[]], [&[], &[]]), why);
        let unread = read("x", None, "GYAN_CVARS");
        let why = Took::Ignored("rank 0 could not read x back".into());
        assert_eq!(told([&unread, &good], [&[], &[]]), why);
        let elsewhere = read("x", Some("8"), "environment X");
        let why = Took::Ignored("rank 1: set by environment X".into());
        assert_eq!(told([&good, &elsewhere], [&[], &[]]), why);
    }

    #[test]
    fn what_nothing_reads_back_is_not_proven() {
        let environment = Assignment { is_environment: true, ..setting("UCX_X", "1") };
        let readings = [Reading { rank: 0, cvars: &[], warnings: &[] }];
        assert!(matches!(took(&[environment], &readings, 1), Took::Unproven(_)));
        let good = read("x", Some("8"), "GYAN_CVARS");
        let readings = [Reading { rank: 0, cvars: &good, warnings: &[] }];
        assert!(matches!(took(&[setting("x", "8")], &readings, 2), Took::Unproven(_)));
    }
}
