//! The man pages: one for the command and one for each subcommand, of the command line, its examples, and the chapters of
//! the manual.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use super::settings::settings;
use crate::error::Error;

const NAME: &str = "gyan";
const SECTION: &str = "1";
/// What the paragraphs of the help after the options begin with.
const EXAMPLES: &str = "Examples:\n";
const EXIT: &str = "Exit codes:";

/// What there is of a subcommand beside its options.
struct More {
    command: &'static str,
    /// The chapter that tells more.
    chapter: &'static str,
    /// Variables of the environment, settings among them; `*` at the end is anything.
    environment: &'static [&'static str],
    files: &'static [&'static str],
}

const fn more(
    command: &'static str,
    chapter: &'static str,
    environment: &'static [&'static str],
    files: &'static [&'static str],
) -> More {
    More { command, chapter, environment, files }
}

const PROFILES: &str = "DIR/rank-*.json";
const SUMMARY: &str = "DIR/summary.json";
const TIMELINE: &str = "DIR/timeline-*.bin";
const LIVE: &str = "DIR/host-*.live";
const PACK: &str = "DIR.gyan.zst";
const PAGE: &str = "DIR/report.html";
const TUNED: &str = "DIR/tune.json";
const SETTINGS: &str = "DIR/settings.env";

/// What the meaning of a setting begins with that a user leaves alone.
const NOT_FOR_USERS: &str = "set by gyan";

const FILES: [(&str, &str); 8] = [
    (PROFILES, "the profile of a rank, in JSON"),
    (TIMELINE, "the latest calls of a rank (gyan run --timeline)"),
    (SUMMARY, "the summary of the run over its ranks, in JSON"),
    (LIVE, "what the ranks of a host knew last, while the program runs and after one was killed"),
    (PACK, "the profiles of a run in one compressed file"),
    (PAGE, "the report as a page"),
    (TUNED, "what was tried and what it did, in JSON"),
    (SETTINGS, "the settings that are worth keeping, for a shell"),
];

const LIBRARY: &str = "GYAN_LIBRARY";
const RUN: &[&str] = &[PROFILES, SUMMARY, LIVE, PACK];

const SUBCOMMANDS: [More; 21] = [
    more("run", "start", &["GYAN*"], &[PROFILES, SUMMARY, TIMELINE, LIVE]),
    more("report", "first-screen", &[], RUN),
    more("now", "stuck", &[], &[PROFILES, LIVE]),
    more("watch", "stuck", &["TERM"], &[PROFILES, LIVE]),
    more("open", "page", &["DISPLAY", "WAYLAND_DISPLAY"], &[PAGE, PROFILES, SUMMARY, PACK]),
    more("explain", "findings", &["PAGER"], &[]),
    more("check", "ci", &[], RUN),
    more("pages", "pages.md", &[], RUN),
    more("archive", "archive.md", &["AWS_*"], &[]),
    more("diff", "comparing", &[], RUN),
    more("scale", "scaling", &[], RUN),
    more("tune", "tuning", &[], &[TUNED, SETTINGS]),
    more("timeline", "timeline.md", &[], &[TIMELINE, PROFILES]),
    more("reduce", "many-ranks", &[], RUN),
    more("pack", "many-ranks", &[], &[PROFILES, PACK]),
    more("unpack", "many-ranks", &[], &[PROFILES, PACK]),
    more("export", "tables", &[], RUN),
    more("varlist", "control-variables", &[LIBRARY], &[]),
    more("doctor", "doctor.md", &[LIBRARY, "GYAN_QUIRKS"], &[]),
    more("help", "introduction", &["PAGER"], &[]),
    more("completions", "install", &[], &[]),
];

/// What variables do that are not settings.
const VARIABLES: [(&str, &str); 5] = [
    ("DISPLAY", "where it or WAYLAND_DISPLAY is set, the page is opened by xdg-open"),
    ("WAYLAND_DISPLAY", "see DISPLAY"),
    ("AWS_*", "where the object store of s3:// is, and the keys to it"),
    ("TERM", "where it is dumb or not set, one look is printed below the other"),
    ("PAGER", "what long text is shown with on a terminal, less when it is not set; cat for none"),
];

/// Writes all of them into a directory.
pub(crate) fn write(cli: Command, directory: &Path) -> Result<(), Error> {
    let mut cli = cli;
    cli.build();
    let commands: Vec<&Command> =
        cli.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    for command in commands.iter().copied().chain([&cli]) {
        let version = format!("{NAME} {}", cli.get_version().unwrap_or_default());
        let man = Man::new(command.clone()).manual(NAME).source(version);
        let file = directory.join(man.get_filename());
        page(&man, command, &cli)
            .and_then(|page| fs::write(&file, page))
            .map_err(|error| Error::io(&file, &error, "choose a directory that exists"))?;
    }
    Ok(())
}

fn page(man: &Man, command: &Command, cli: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let is_whole = command.get_name() == NAME;
    if is_whole {
        man.render_subcommands_section(&mut page)?;
    }
    let more = SUBCOMMANDS.iter().find(|more| more.command == command.get_name());
    let mut roff = Roff::new();
    let after = help_after(command);
    examples(&mut roff, &after);
    notes(&mut roff, &after);
    environment(&mut roff, more.map_or(&[], |more| more.environment));
    files(&mut roff, more.map_or(&[], |more| more.files));
    exit_codes(&mut roff, command, cli);
    see_also(&mut roff, command, cli, more);
    page.extend(roff.to_roff().into_bytes());
    Ok(page)
}

/// What the help says after the options.
fn help_after(command: &Command) -> String {
    command.get_after_help().map(ToString::to_string).unwrap_or_default()
}

/// A command on each line, and after a gap what it does.
fn examples(roff: &mut Roff, after: &str) {
    let block = after.split("\n\n").find_map(|paragraph| paragraph.strip_prefix(EXAMPLES));
    let Some(block) = block else { return };
    roff.control("SH", ["EXAMPLES"]);
    for line in block.lines().map(str::trim) {
        let gap = line.find("  ").unwrap_or(line.len());
        let (command, about) = line.split_at(gap);
        item(roff, vec![bold(command)], about.trim());
    }
}

/// Paragraphs of the help that are neither examples nor exit codes.
fn notes(roff: &mut Roff, after: &str) {
    let is_note = |text: &&str| !text.starts_with(EXAMPLES) && !text.starts_with(EXIT);
    let notes: Vec<&str> =
        after.split("\n\n").filter(is_note).filter(|text| !text.is_empty()).collect();
    if !notes.is_empty() {
        roff.control("SH", ["NOTES"]);
    }
    for (at, note) in notes.into_iter().enumerate() {
        if at > 0 {
            roff.control("PP", []);
        }
        roff.text([roman(note.split_whitespace().collect::<Vec<_>>().join(" "))]);
    }
}

fn environment(roff: &mut Roff, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    roff.control("SH", ["ENVIRONMENT"]);
    let mut settings = settings();
    settings.retain(|setting| !setting.meaning.starts_with(NOT_FOR_USERS));
    for name in names {
        let is_it = |setting: &str| match name.strip_suffix('*') {
            Some(start) => setting.starts_with(start),
            None => setting == *name,
        };
        for setting in settings.iter().filter(|setting| is_it(&setting.name)) {
            let mut header = vec![bold(&*setting.name)];
            if !setting.default.is_empty() {
                header.push(roman(format!(" [default: {}]", setting.default)));
            }
            item(roff, header, &setting.meaning);
        }
        for (name, about) in VARIABLES.iter().filter(|(name, _)| is_it(name)) {
            item(roff, vec![bold(*name)], about);
        }
    }
}

fn files(roff: &mut Roff, names: &[&str]) {
    if !names.is_empty() {
        roff.control("SH", ["FILES"]);
    }
    for (name, about) in FILES.iter().filter(|(name, _)| names.contains(name)) {
        item(roff, vec![italic(*name)], about);
    }
}

/// Those of the subcommand, or what holds for all.
fn exit_codes(roff: &mut Roff, command: &Command, cli: &Command) {
    let find = |text: &str| -> Option<String> {
        let codes = text.split("\n\n").find_map(|paragraph| paragraph.strip_prefix(EXIT))?;
        Some(codes.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let Some(codes) = find(&help_after(command)).or_else(|| find(&help_after(cli))) else { return };
    let (is_whole, own) = (command.get_name() == NAME, format!("{NAME} {}`", command.get_name()));
    roff.control("SH", ["EXIT STATUS"]);
    let is_code = |at: usize| {
        let rest = &codes[at..];
        let is_begin = at == 0 || codes[..at].ends_with("; ");
        is_begin && rest.starts_with(|letter: char| letter.is_ascii_digit())
    };
    let mut starts: Vec<usize> =
        codes.char_indices().map(|(at, _)| at).filter(|at| is_code(*at)).collect();
    starts.push(codes.len());
    let mut others = Vec::new();
    for pair in starts.windows(2) {
        let (code, about) = codes[pair[0]..pair[1]].split_once(' ').unwrap_or_default();
        let (about, other) = about.split_once("; `").unwrap_or((about, ""));
        // In parentheses is what it means for other subcommands.
        let (about, _) = about.split_once(" (").filter(|_| !is_whole).unwrap_or((about, ""));
        item(roff, vec![bold(code)], about.trim_end_matches([';', ' ', '.']));
        let is_said = !other.is_empty() && (is_whole || other.starts_with(&own));
        others.extend(is_said.then(|| other.replace('`', "")));
    }
    for other in others {
        roff.control("PP", []);
        roff.text([roman(other)]);
    }
}

fn see_also(roff: &mut Roff, command: &Command, cli: &Command, more: Option<&More>) {
    roff.control("SH", ["SEE ALSO"]);
    let others = cli.get_subcommands().filter(|other| !other.is_hide_set());
    let names = others.map(|other| format!("{NAME}-{}", other.get_name()));
    let names = [NAME.to_owned()].into_iter().chain(names);
    let own = command.get_display_name().unwrap_or(NAME);
    let mut line: Vec<Inline> = Vec::new();
    for name in names.filter(|name| name != own) {
        if !line.is_empty() {
            line.push(roman(", "));
        }
        line.extend([bold(name), roman(format!("({SECTION})"))]);
    }
    roff.text(line);
    let chapter = more.map_or("introduction", |more| more.chapter);
    roff.control("PP", []);
    roff.text([
        bold(format!("{NAME} help {chapter}")),
        roman(" prints the chapter of the manual; "),
        bold(format!("{NAME} help")),
        roman(" lists them."),
    ]);
}

fn item(roff: &mut Roff, term: Vec<Inline>, about: &str) {
    roff.control("TP", []);
    roff.text(term);
    roff.text([roman(about)]);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::manual::parts;

    #[test]
    fn each_subcommand_has_a_chapter_that_tells_more() {
        let mut cli = Cli::command();
        cli.build();
        let shown = cli.get_subcommands().filter(|command| !command.is_hide_set());
        let shown: BTreeSet<&str> = shown.map(Command::get_name).collect();
        let told: BTreeSet<&str> = SUBCOMMANDS.iter().map(|more| more.command).collect();
        assert_eq!(shown, told);
        let parts = parts();
        let chapters: Vec<&str> =
            parts.iter().flat_map(|part| &part.chapters).map(|of| of.name.as_str()).collect();
        for more in &SUBCOMMANDS {
            let name = more.chapter.strip_suffix(".md").unwrap_or(more.chapter);
            assert!(chapters.contains(&name), "{}: {name}", more.command);
            assert_eq!(shown.contains(name), more.chapter != name, "{}", more.command);
        }
    }

    #[test]
    fn each_variable_of_the_environment_is_known() {
        let settings = settings();
        assert!(settings.len() > 30, "{settings:?}");
        for name in SUBCOMMANDS.iter().flat_map(|more| more.environment) {
            let is_known = |known: &str| known == name.trim_end_matches('*') || name.ends_with('*');
            let is_setting = settings.iter().any(|setting| is_known(&setting.name));
            assert!(is_setting || VARIABLES.iter().any(|(known, _)| known == name), "{name}");
        }
    }
}
