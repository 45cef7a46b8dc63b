//! `gyan explain`: what a finding, an efficiency or a class of variables means, when it is wrong, and where it comes from.

use anstyle::{Effects, Style};
use gyan_results::Class;
use textwrap::{Options, WordSplitter};

use crate::cli::ExplainOptions;
use crate::error::Error;
use crate::findings::{EFFICIENCIES, rules};
use crate::{DONE, output, view};

const WIDTH: usize = 100;
const HEADING: Style = Style::new().effects(Effects::BOLD);

/// What can be explained beside findings and classes.
const EFFICIENCIES_ID: &str = "efficiencies";

pub(crate) fn explain(options: &ExplainOptions) -> Result<u8, Error> {
    let Some(id) = &options.id else {
        list()?;
        return Ok(DONE);
    };
    let wanted = id.to_lowercase();
    if let Some(rule) = rules::RULES.iter().find(|rule| rule.id == wanted) {
        let parts = [
            ("When", rule.when),
            ("What it means", rule.means),
            ("When it is wrong", rule.wrong_when),
            ("What it needs", rule.needs),
            ("What proves it", rule.witness),
            ("Who can do something", view::actor(rule.acts)),
            ("Source", rule.source),
        ];
        print(&format!("{} ({})", rule.name, rule.id), &parts)?;
    } else if wanted == EFFICIENCIES_ID {
        print("Efficiencies of the ranks", &EFFICIENCIES)?;
    } else if let Some(class) = Class::ALL
        .into_iter()
        .find(|class| class.name().to_lowercase() == wanted.replace(['-', '_'], ""))
    {
        let source = ("Source", "MPI 4.1, 15.3.7");
        print(
            &format!("Performance variables of class {}", class.name()),
            &[("What it means", view::explained(class)), source],
        )?;
    } else {
        return Err(Error::new(
            format!("gyan explain {id}"),
            "nothing has that name",
            "gyan explain lists the names",
        ));
    }
    Ok(DONE)
}

/// With a capital, and a full stop where there is none.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String =
        letters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    let end = if text.ends_with(['.', ')', ']']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

fn list() -> Result<(), Error> {
    output::print(|out| {
        writeln!(out, "{HEADING}Findings{HEADING:#}")?;
        let rules = rules::RULES.iter().map(|rule| (rule.id, rule.name));
        let efficiencies = (EFFICIENCIES_ID, "Load balance, communication and parallel efficiency");
        for (id, name) in rules.chain([efficiencies]) {
            writeln!(out, "  {id:<22} {name}")?;
        }
        writeln!(out, "\n{HEADING}Classes of performance variables{HEADING:#}")?;
        let classes: Vec<&str> = Class::ALL.iter().map(|class| class.name()).collect();
        writeln!(out, "  {}", classes.join(", "))
    })
}

fn print(title: &str, parts: &[(&str, &str)]) -> Result<(), Error> {
    let options = Options::new(WIDTH).word_splitter(WordSplitter::NoHyphenation);
    let options = options.initial_indent("  ").subsequent_indent("  ");
    output::print(|out| {
        writeln!(out, "{HEADING}{title}{HEADING:#}")?;
        for (heading, text) in parts {
            writeln!(out, "\n{HEADING}{heading}{HEADING:#}")?;
            for line in textwrap::wrap(&sentence(text), &options) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    })
}
