//! The pages of `docs/findings`, one for each finding and one for the efficiencies, which `gyan explain` prints; and what it
//! prints of a class of performance variables.

use gyan_results::Class;

use super::text;
use crate::findings::rules::RULES;
use crate::parts;

/// What the page about efficiencies is called.
const EFFICIENCIES: &str = "efficiencies";

/// The names of all pages and what they are about: findings, and the efficiencies.
pub(crate) fn pages() -> impl Iterator<Item = (&'static str, String)> {
    let names = RULES.iter().map(|rule| rule.id).chain([EFFICIENCIES]);
    names.map(|name| (name, title(&text_of(name))))
}

/// The page of a finding, of the efficiencies or of a class; none where nothing has that name.
pub(crate) fn page_of(name: &str) -> Option<String> {
    if name == EFFICIENCIES || RULES.iter().any(|rule| rule.id == name) {
        return Some(text_of(name));
    }
    let is_it = |class: &Class| class.name().to_lowercase() == name.replace(['-', '_'], "");
    let class = Class::ALL.into_iter().find(is_it)?;
    Some(format!(
        "# Performance variables of class {}\n\n## What it means\n\n{}.\n\n## Source\n\nMPI 4.1, 15.3.7.\n",
        class.name(),
        capitalised(parts::explained(class)),
    ))
}

fn text_of(name: &str) -> String {
    text(&format!("findings/{name}.md"))
}

/// The first heading of a page.
fn title(page: &str) -> String {
    let heading = page.lines().next().and_then(|line| line.strip_prefix("# "));
    heading.unwrap_or_default().to_owned()
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    first.to_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    use gyan_results::Finding;
    use tempfile::Builder;

    use super::*;
    use crate::findings::rules::Rule;
    use crate::render;

    /// One finding of each rule, from the runs that prove the rules: `BLESS=1 scripts/test` writes them.
    const EXAMPLES: &str = include_str!("../findings/examples.json");

    fn docs(file: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(file)
    }

    /// `BLESS=1` writes it.
    fn is_in(file: &Path, text: &str) {
        if std::env::var_os("BLESS").is_some() {
            // Renamed into place: another test may be reading the page.
            let mode = Permissions::from_mode(0o644);
            let new = Builder::new().permissions(mode).tempfile_in(env!("CARGO_MANIFEST_DIR"));
            let new = new.unwrap();
            fs::write(&new, text).unwrap();
            new.persist(file).unwrap();
        }
        let written = fs::read_to_string(file).unwrap_or_default();
        assert!(written == text, "{} is not of these rules; run with BLESS=1", file.display());
    }

    /// What a page has as `**about**: ...`, without the marks of code.
    fn line_of(page: &str, about: &str) -> String {
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("**{about}**: ")));
        line.unwrap_or_default().trim_end_matches('.').replace('`', "")
    }

    #[test]
    fn each_finding_has_a_page_that_answers_what_a_reader_asks() {
        const HEADINGS: [&str; 6] = [
            "What it means",
            "When gyan reports it",
            "When it is wrong",
            "What to do",
            "As gyan prints it",
            "Sources",
        ];
        for Rule { id, acts, witness, .. } in RULES.iter() {
            let file = docs(&format!("findings/{id}.md"));
            let page = fs::read_to_string(&file)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert!(page.starts_with("# ") && page.contains(&format!("\n\n`{id}`\n")), "{id}");
            let headings: Vec<&str> =
                page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
            assert_eq!(headings, HEADINGS, "{id}");
            let texts = page.split("\n## ").skip(1).map(|part| part.split_once('\n').unwrap().1);
            assert!(texts.into_iter().all(|text| text.trim().len() > 10), "{id}");
            assert_eq!(line_of(&page, "Who can do it"), parts::actor(*acts), "{id}");
            assert_eq!(line_of(&page, "What proves it"), witness.trim_end_matches('.'), "{id}");
        }
        let names: Vec<String> = pages().map(|(name, _)| format!("{name}.md")).collect();
        for file in fs::read_dir(docs("findings")).unwrap() {
            let file = file.unwrap().file_name().into_string().unwrap();
            assert!(names.contains(&file), "docs/findings/{file} is of no finding");
        }
    }

    #[test]
    fn each_page_shows_what_gyan_prints_of_an_example() {
        let examples: Vec<Finding> = serde_json::from_str(EXAMPLES).unwrap();
        for Rule { id, .. } in RULES.iter() {
            let example = examples.iter().find(|finding| finding.id == *id);
            let example = example.unwrap_or_else(|| {
                panic!("no example of {id}: BLESS=1 RULE={id} cargo test --test real_mpi -- --ignored the_rule_of_the_environment")
            });
            let lines = parts::in_short(1, example, "DIR");
            let lines: Vec<String> =
                lines.iter().flat_map(|line| render::wrapped(&render::text(line))).collect();
            let file = docs(&format!("findings/{id}.md"));
            let page = fs::read_to_string(&file).unwrap();
            let (before, rest) = page.split_once("\n```text\n").expect("a block of text");
            let (_, after) = rest.split_once("```\n").expect("its end");
            is_in(&file, &format!("{before}\n```text\n{}\n```\n{after}", lines.join("\n")));
        }
    }

    #[test]
    fn the_table_of_contents_has_the_findings() {
        let written = fs::read_to_string(docs("SUMMARY.md")).unwrap();
        let others = written.lines().filter(|line| !line.contains("](findings/"));
        let mut text = String::new();
        for line in others {
            writeln!(text, "{line}").unwrap();
            if line.ends_with("](findings.md)") {
                for (name, about) in pages() {
                    writeln!(text, "  - [{about}](findings/{name}.md)").unwrap();
                }
            }
        }
        is_in(&docs("SUMMARY.md"), &text);
    }

    /// But for the table of proofs, which the tests with real MPIs measure.
    #[test]
    fn the_chapter_about_findings_lists_them() {
        let written = fs::read_to_string(docs("findings.md")).unwrap_or_default();
        let mut text = HEAD.to_owned();
        for rule in RULES.iter() {
            let Rule { id, acts, .. } = rule;
            let name = title(&text_of(id));
            writeln!(text, "| [{name}](findings/{id}.md) | `{id}` | {} |", parts::actor(*acts))
                .unwrap();
        }
        text.push_str(BEFORE_TABLE);
        text.push('\n');
        // The text above the table can change; the table stays.
        let mark = BEFORE_TABLE.lines().last().expect("the mark");
        let table = written.split_once(mark).and_then(|(_, rest)| rest.split_once(END));
        text.push_str(table.map_or("", |(table, _)| table.trim_start_matches('\n')));
        text.push_str(END);
        is_in(&docs("findings.md"), &text);
    }

    const HEAD: &str = "\
# What gyan finds

`gyan report` begins with what costs time, why, and what to do about it. `gyan report --findings` prints all findings with their
numbers, `gyan explain ID` the page of one.

Findings are ranked by the seconds at stake, of all ranks together. Lost time is reported only where more than 1 % of the run is at
stake, and more than the error of that estimate. A time that is only a lower bound is no ground for a finding.

Each second is claimed by the first finding in this list that explains it, so all findings together never claim more than the run.
A finding whose time is mostly claimed already stands below the one that claims it: \"also true, mostly the same time\".

The load of the machine stands first where it is most of what is lost, or where ranks lacked a processor for a fifth of the
run although there are enough. The other findings are then marked as measured under load.

Above the findings stand the [efficiencies](findings/efficiencies.md) of the ranks.

| finding | ID | who can do something |
| :-- | :-- | :-- |
";
    const BEFORE_TABLE: &str = "
## Proofs

Each rule finds the problem in `tests/programs/problems.c`, and does not find it in a twin: the program without the problem,
other settings, or the very command that the finding advises. The witness is the number that has to move then. Counts are
compared in every run of the tests; times are those of one run, and say little on a busy machine. The pages show what gyan printed
of these runs. What is expected of each stands beside the problem.

<!-- the proofs: BLESS=1 scripts/test writes them -->
";
    const END: &str = "<!-- end of the proofs -->\n";
}
