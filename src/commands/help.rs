//! `gyan help`: a chapter of the manual, the page of a finding, or the help of a subcommand.

use std::fmt::Write;

use anstyle::{Effects, Style};
use clap::{Command, CommandFactory};

use crate::cli::{Cli, HelpOptions};
use crate::error::Error;
use crate::manual::{self, Chapter};
use crate::{DONE, output, render};

const HEADING: Style = Style::new().effects(Effects::BOLD);
/// A chapter whose name is that of a subcommand is called by its file.
const SUFFIX: &str = ".md";
/// A finding whose name is that of a chapter is called by its directory.
const FINDINGS: &str = "findings/";
/// Names that are as like as this to what was asked for are offered; 1 is the same.
const ALIKE: f64 = 0.75;
/// And those that are nearly as like as the one that is most.
const NEARLY: f64 = 0.05;

/// Names under a heading, and what they are.
pub(crate) struct List {
    pub(crate) heading: String,
    pub(crate) rows: Vec<(String, String)>,
}

pub(crate) fn help(options: &HelpOptions) -> Result<u8, Error> {
    let mut cli = Cli::command();
    cli.build();
    let wanted = options.topic.join("-").to_lowercase().replace(['_', ' '], "-");
    if wanted.is_empty() {
        let lists = lines(&topics(&cli));
        output::page(&format!("gyan help NAME shows one of these.\n\n{lists}"))?;
    } else if let Some(command) = cli.find_subcommand_mut(&wanted) {
        let help = command.render_help().ansi().to_string();
        output::print(|out| write!(out, "{help}"))?;
    } else if let Some(page) = page(&wanted) {
        show(&page)?;
    } else {
        let topics = topics(&cli);
        let names = topics.iter().flat_map(|list| &list.rows).map(|(name, _)| name.as_str());
        return Err(unknown("gyan help", &wanted, names));
    }
    Ok(DONE)
}

/// A chapter by its name or title, or a finding.
fn page(wanted: &str) -> Option<String> {
    let name = wanted.strip_suffix(SUFFIX).unwrap_or(wanted);
    let is_it = |of: &Chapter| of.name == name || of.title.to_lowercase().replace(' ', "-") == name;
    let mut chapters = manual::parts().into_iter().flat_map(|part| part.chapters);
    let chapter = chapters.find(is_it).map(|chapter| chapter.text());
    chapter.or_else(|| manual::page_of(wanted.strip_prefix(FINDINGS).unwrap_or(wanted)))
}

pub(crate) fn show(page: &str) -> Result<(), Error> {
    output::page(&render::prose(page, output::width()))
}

/// Nothing has that name, but perhaps it was meant for another.
pub(crate) fn unknown<'n>(
    command: &str,
    wanted: &str,
    names: impl Iterator<Item = &'n str>,
) -> Error {
    let near = names.map(|name| (strsim::jaro_winkler(wanted, name), name));
    let mut near: Vec<(f64, &str)> = near.filter(|(alike, _)| *alike >= ALIKE).collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    let most = near.first().map_or(1.0, |(alike, _)| *alike);
    let near = near.into_iter().filter(|(alike, _)| *alike >= most - NEARLY);
    let near: Vec<&str> = near.map(|(_, name)| name).collect();
    let list = format!("{command} lists the names");
    let remedy =
        if near.is_empty() { list } else { format!("did you mean {}? {list}", near.join(" or ")) };
    Error::new(format!("{command} {wanted}"), "nothing has that name", remedy)
}

/// All that can be asked for.
fn topics(cli: &Command) -> Vec<List> {
    let mut lists: Vec<List> = Vec::new();
    let shown = cli.get_subcommands().filter(|command| !command.is_hide_set());
    let about = |of: &Command| of.get_about().map(ToString::to_string).unwrap_or_default();
    let commands = shown.map(|of| (of.get_name().to_owned(), about(of))).collect();
    lists.push(List { heading: "Subcommands".into(), rows: commands });
    for part in manual::parts() {
        let heading = match part.title.as_str() {
            "" => "Manual".into(),
            title => format!("Manual: {title}"),
        };
        let chapters = part.chapters.into_iter();
        let name = |name: String| if is_in(&lists, &name) { name + SUFFIX } else { name };
        let rows = chapters.map(|of| (name(of.name), of.title)).collect();
        lists.push(List { heading, rows });
    }
    let name =
        |name: &str| if is_in(&lists, name) { FINDINGS.to_owned() + name } else { name.to_owned() };
    let rows = manual::pages().map(|(id, about)| (name(id), about)).collect();
    lists.push(List { heading: "Findings".into(), rows });
    lists
}

fn is_in(lists: &[List], name: &str) -> bool {
    lists.iter().flat_map(|list| &list.rows).any(|(taken, _)| taken == name)
}

/// With an empty line between lists.
pub(crate) fn lines(lists: &[List]) -> String {
    const NAME: usize = 22;
    let indent = " ".repeat(NAME + 3);
    let mut text = String::new();
    for List { heading, rows } in lists {
        let gap = if text.is_empty() { "" } else { "\n" };
        writeln!(text, "{gap}{HEADING}{heading}{HEADING:#}").expect("memory");
        for (name, about) in rows {
            let first = format!("  {name:<NAME$} ");
            let options = textwrap::Options::new(output::width()).initial_indent(&first);
            for line in textwrap::wrap(about, options.subsequent_indent(&indent)) {
                writeln!(text, "{line}").expect("memory");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_that_is_listed_shows_something_of_its_own() {
        let mut cli = Cli::command();
        cli.build();
        let topics = topics(&cli);
        let mut shown = Vec::new();
        for (name, _) in topics.iter().skip(1).flat_map(|list| &list.rows) {
            assert!(cli.find_subcommand(name).is_none(), "{name} is a subcommand");
            let page = page(name).unwrap_or_else(|| panic!("{name} is nothing"));
            assert!(!shown.contains(&page), "{name} is another page, too");
            shown.push(page);
        }
        assert!(shown.len() > 60, "{} pages", shown.len());
    }
}
