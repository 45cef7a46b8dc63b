//! `gyan varlist`: which variables of an MPI library does the user want to see?

mod library;

use std::collections::BTreeSet;
use std::path::Path;

use gyan_results::{Variables, read_variables};
use regex::{Regex, RegexBuilder};

use crate::answers::{self, Choice};
use crate::cli::{ListLibraryOptions, VarlistOptions};
use crate::error::Error;
use crate::format::ListFormat;
use crate::launch::listing::{Surroundings, When, Whose, ask};
use crate::launch::preload;
use crate::{DONE, output, print, render};

/// The variables that show it.
const PARAMETER_FILES: [&str; 2] = ["mca_base_param_files", "mca_param_files"];

/// Variables that a launcher sets for its own purposes; they differ in every run.
const LAUNCHERS_OWN: [&str; 4] = ["orte_", "ess", "pmix", "MPIR_CVAR_CH3_INTERFACE_HOSTNAME"];

pub(crate) fn varlist(options: &VarlistOptions) -> Result<u8, Error> {
    let format = if options.json { ListFormat::Json } else { options.format.clone()? };
    if let [a, b] = &options.diff[..] {
        let (a, b) = (saved(a)?, saved(b)?);
        output::print(|out| render::table(out, &answers::difference(&a, &b)))?;
        return Ok(DONE);
    }
    let when = if options.before_init { When::BeforeInit } else { When::AfterInit };
    let whole = ask(whose(options), when, Surroundings::AsTheyAre)?;
    let Some(whole) = whole else { return Ok(DONE) };
    let mut listing = whole.clone();
    if options.changed {
        let changed = match &options.against {
            Some(file) => names(answers::changed(&saved(file)?, &whole)),
            None => match changed_from_default(options)? {
                Some(changed) => changed,
                None => return Ok(DONE),
            },
        };
        listing.cvars.retain(|cvar| cvar.name.as_ref().is_some_and(|name| changed.contains(name)));
    }
    let choice = choice(options);
    filter(&mut listing, options, &choice)?;
    print::listing(format, &answers::variables(&listing, &whole, &choice), &listing)?;
    Ok(DONE)
}

fn whose(options: &VarlistOptions) -> Whose<'_> {
    match &options.mpi {
        Some(path) => Whose::Library(path),
        None if options.command.is_empty() => Whose::OnPath,
        None => Whose::Program(&options.command),
    }
}

/// The control variables whose value is not the library's default. Asked before `MPI_Init`, when every
/// component still reports its variables and nothing depends on the run yet.
fn changed_from_default(options: &VarlistOptions) -> Result<Option<BTreeSet<String>>, Error> {
    let now = ask(whose(options), When::BeforeInit, Surroundings::AsTheyAre)?;
    let Some(mut now) = now else { return Ok(None) };
    // The defaults of the same library without the program and its launcher, which may set variables too.
    let library = Whose::Library(Path::new(&now.mpi.library_path));
    let defaults = ask(library, When::BeforeInit, Surroundings::Default)?;
    let Some(defaults) = defaults else { return Ok(None) };
    // A variable that does not exist by default has no known default. And the setting that keeps the parameter
    // files away is not a change by the user.
    let known = names(defaults.cvars.iter().filter_map(|cvar| cvar.name.as_deref()));
    now.cvars.retain(|cvar| {
        cvar.name.as_ref().is_some_and(|name| {
            let ours = PARAMETER_FILES.contains(&name.as_str());
            let launchers = LAUNCHERS_OWN.iter().any(|own| name.starts_with(own));
            known.contains(name) && !ours && !launchers
        })
    });
    Ok(Some(names(answers::changed(&defaults, &now))))
}

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// `gyan list-library`: the process that asks the library.
pub(crate) fn list_library(options: &ListLibraryOptions) -> Result<u8, Error> {
    library::list(&preload::library()?, &options.mpi, options.before_init, &options.output)
}

fn choice(options: &VarlistOptions) -> Choice {
    let some =
        options.cvars || options.pvars || options.events || options.categories || options.changed;
    Choice {
        cvars: options.cvars || options.changed || !some,
        pvars: options.pvars || !some,
        events: options.events,
        categories: options.categories,
        verbosity: usize::from(options.verbosity),
        long: options.long,
        enumerations: options.enumerations,
    }
}

fn filter(listing: &mut Variables, options: &VarlistOptions, choice: &Choice) -> Result<(), Error> {
    if !choice.cvars {
        listing.cvars.clear();
    }
    if !choice.pvars {
        listing.pvars.clear();
    }
    let shown =
        |verbosity: &Option<String>| answers::level(verbosity.as_deref()) <= choice.verbosity;
    listing.cvars.retain(|cvar| shown(&cvar.verbosity));
    listing.pvars.retain(|pvar| shown(&pvar.verbosity));
    listing.events.retain(|event| shown(&event.verbosity));
    if let Some(pattern) = &options.pattern {
        let pattern = compiled(pattern)?;
        let matches = |name: &Option<String>, description: &str| {
            name.as_ref().is_some_and(|name| pattern.is_match(name))
                || pattern.is_match(description)
        };
        listing.cvars.retain(|cvar| matches(&cvar.name, &cvar.description));
        listing.pvars.retain(|pvar| matches(&pvar.name, &pvar.description));
        listing.events.retain(|event| matches(&event.name, &event.description));
    }
    Ok(())
}

/// A pattern with only `*` and `?` is a glob over the whole text, anything else a regular
/// expression that may match anywhere. Capitals do not matter.
fn compiled(pattern: &str) -> Result<Regex, Error> {
    let glob = pattern.chars().all(|c| c.is_alphanumeric() || "_- *?".contains(c));
    let wild = glob && pattern.contains(['*', '?']);
    let expression = if wild {
        format!("^{}$", regex::escape(pattern).replace("\\*", ".*").replace("\\?", "."))
    } else {
        pattern.to_owned()
    };
    let built =
        RegexBuilder::new(&expression).case_insensitive(true).dot_matches_new_line(true).build();
    built.map_err(|error| {
        let text = error.to_string();
        let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Error::new(format!("--match {pattern}"), why, "write a glob or a regular expression")
    })
}

fn saved(path: &Path) -> Result<Variables, Error> {
    read_variables(path).map_err(|error| {
        let text = error.to_string();
        let (why, remedy) =
            text.split_once("; ").unwrap_or((&text, "name a file that gyan varlist --json wrote"));
        Error::new(path.display(), why, remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_is_for_the_whole_text_and_an_expression_for_a_part() {
        let matches = |pattern: &str, text: &str| compiled(pattern).unwrap().is_match(text);
        assert!(matches("btl_*_eager_limit", "btl_vader_eager_limit"));
        assert!(!matches("btl_*", "mca_btl_base"));
        assert!(matches("eager", "btl_vader_EAGER_limit"));
        assert!(matches("^btl_(vader|self)_eager", "btl_self_eager_limit"));
        assert!(!matches("^eager", "btl_vader_eager_limit"));
        assert!(compiled("(").is_err());
    }
}
