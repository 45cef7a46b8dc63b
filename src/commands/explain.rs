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

/// The topics besides findings and classes.
const EFFICIENCIES_ID: &str = "efficiencies";

pub(crate) fn explain(options: &ExplainOptions) -> Result<u8, Error> {
    let Some(id) = &options.id else {
        list()?;
        return Ok(DONE);
    };
    let wanted = id.to_lowercase();
    if let Some(rule) = rules::RULES.iter().find(|rule| rule.id == wanted) {
        print(&format!("{} ({})", rule.name, rule.id), &of_rule(rule))?;
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

/// Everything about a rule, under headings.
fn of_rule(rule: &rules::Rule) -> [(&'static str, &'static str); 7] {
    [
        ("When", rule.when),
        ("What it means", rule.means),
        ("When it is wrong", rule.wrong_when),
        ("What it needs", rule.needs),
        ("What proves it", rule.witness),
        ("Who can act on it", view::actor(rule.acts)),
        ("Source", rule.source),
    ]
}

/// With a capital letter, and a full stop if it lacks one.
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

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// `BLESS=1` rewrites docs/findings.md, except for the table, which the tests with real MPIs measure.
    #[test]
    fn the_findings_in_the_docs_are_these() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/findings.md");
        let written = fs::read_to_string(&path).unwrap_or_default();
        let mut text = HEAD.to_owned();
        for (heading, about) in EFFICIENCIES {
            writeln!(text, "- **{heading}**: {}", sentence(about)).unwrap();
        }
        for rule in rules::RULES {
            writeln!(text, "\n## {} (`{}`)\n", rule.name, rule.id).unwrap();
            for (heading, about) in of_rule(rule) {
                writeln!(text, "- **{heading}**: {}", sentence(about)).unwrap();
            }
        }
        text.push_str(BEFORE_TABLE);
        let table = written.split_once(BEFORE_TABLE).and_then(|(_, rest)| rest.split_once(END));
        text.push_str(table.map_or("\n", |(table, _)| table));
        text.push_str(END);
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(written, text, "docs/findings.md is not of these rules; run with BLESS=1");
    }

    const HEAD: &str = "\
# What gyan finds

`gyan report` begins with what costs time, why, and what to do about it; `gyan report --findings` prints all of it with the
numbers that it rests on, and `gyan explain ID` what is below. Findings are ranked by the seconds at stake, of all ranks
together. A finding speaks only where its data are there, and where more than 1 % of the run is at stake and more than the
error of that estimate. Of two that explain the same time the better one stays.

## Efficiencies

";
    const BEFORE_TABLE: &str = "
## Proofs

Each rule finds the problem in `tests/programs/problems.c`, with the function, the rank and the numbers that it must have, and
does not find it in a twin: the program without the problem, other settings, or the very command that the finding advises.
The witness is the number that must change then. Counts are compared in every run of the tests; times are those of one run,
and mean little on a busy machine. `tests/real_mpi/findings/cases.rs` is the list.

<!-- the proofs: BLESS=1 scripts/test writes them -->
";
    const END: &str = "<!-- end of the proofs -->\n";
}
