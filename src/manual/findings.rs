//! A page for each finding, for the efficiencies and for each class of performance variables, in Markdown: `gyan explain`
//! prints it, and docs/findings has it.

use std::sync::LazyLock;

use gyan_results::{Class, Finding};
use regex::{Captures, Regex};

use crate::findings::EFFICIENCIES;
use crate::findings::rules::{RULES, Rule};
use crate::parts;
use crate::render;

/// What the page about efficiencies is called, and about.
pub(crate) const EFFICIENCIES_ID: &str = "efficiencies";
pub(crate) const ABOUT_EFFICIENCIES: &str = "Load balance, communication and parallel efficiency";

/// One finding of each rule, from the runs that prove the rules: `BLESS=1 scripts/test` writes them.
const EXAMPLES: &str = include_str!("../findings/examples.json");

/// What is a command with its options, or a name of a program, among words.
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    let command = r"\b(?:gyan (?:diff|doctor|explain|report|run|scale|varlist)|mpirun|srun)\b";
    let options =
        r"(?: --?[a-z][\w-]*(?:=\w+)?(?: '[^']*'| \w+=[\w^]+| NAME(?:=VALUE)?| none| core)?)*";
    let name = r"(?:sysctl |--[a-z-]+ )?[\w*.]*[\w*]_[\w*]*(?:=\w+)?";
    Regex::new(&format!(r"(?:{command}{options}|{name})(?:\(\d\))?")).expect("it is tested")
});

/// A chapter that a text names.
static CHAPTER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"docs/([\w-]+\.md)").expect("it is tested"));

/// The names of all pages and what they are about: findings, and the efficiencies.
pub(crate) fn pages() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rules = RULES.iter().map(|rule| (rule.id, rule.name));
    rules.chain([(EFFICIENCIES_ID, ABOUT_EFFICIENCIES)])
}

/// The page of a finding, of the efficiencies or of a class; none where nothing has that name.
pub(crate) fn page_of(name: &str) -> Option<String> {
    if let Some(rule) = RULES.iter().find(|rule| rule.id == name) {
        return Some(of_rule(rule));
    }
    if name == EFFICIENCIES_ID {
        let parts = EFFICIENCIES.map(|(heading, about)| part(heading, &sentence(about)));
        return Some(format!("# {ABOUT_EFFICIENCIES}\n{}", parts.concat()));
    }
    let is_it = |class: &Class| class.name().to_lowercase() == name.replace(['-', '_'], "");
    let class = Class::ALL.into_iter().find(is_it)?;
    let means = part("What it means", &sentence(parts::explained(class)));
    let source = part("Source", &sentence("MPI 4.1, 15.3.7"));
    Some(format!("# Performance variables of class {}\n{means}{source}", class.name()))
}

fn of_rule(rule: &Rule) -> String {
    let todo = [
        sentence(rule.todo),
        format!("**Who can do it**: {}", stopped(parts::actor(rule.acts))),
        format!("**What proves it**: {}", stopped(rule.witness)),
    ];
    let mut page = format!("# {}\n\n`{}`\n", rule.name, rule.id);
    page += &part("What it means", &sentence(rule.means));
    page += &part("How it is decided", &decided(rule));
    page += &part("When it is wrong", &sentence(rule.wrong_when));
    page += &part("What to do", &todo.join("\n\n"));
    if let Some(finding) = examples().iter().find(|finding| finding.id == rule.id) {
        let lines = parts::in_short(1, finding, "DIR");
        let lines: Vec<String> =
            lines.iter().flat_map(|line| render::wrapped(&render::text(line))).collect();
        let lines = lines.join("\n");
        let text = format!("In a run of `problems {}`:\n\n```text\n{lines}\n```", rule.id);
        page += &part("As gyan prints it", &text);
    }
    page + &part("Sources", &sentence(rule.source))
}

/// When a rule speaks, and what it looks at.
fn decided(rule: &Rule) -> String {
    let (when, needs) = (stopped(rule.when), stopped(rule.needs));
    format!("gyan says so when {when}\n\nIt looks at {needs}")
}

fn examples() -> Vec<Finding> {
    serde_json::from_str(EXAMPLES).expect("it is tested")
}

fn part(heading: &str, text: &str) -> String {
    format!("\n## {heading}\n\n{text}\n")
}

/// With a capital and a full stop.
fn sentence(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    // The name of a file stays as it is.
    if text.starts_with("docs/") { stopped(text) } else { stopped(&(first.to_uppercase() + rest)) }
}

/// In Markdown, with a full stop.
fn stopped(text: &str) -> String {
    let end = if text.ends_with('.') { "" } else { "." };
    let text = CODE.replace_all(text, |code: &Captures| format!("`{}`", &code[0]));
    format!("{}{end}", CHAPTER.replace_all(&text, "[$1](../$1)"))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn docs(file: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(file)
    }

    /// `BLESS=1` writes it.
    fn is_in(file: &Path, text: &str) {
        if std::env::var_os("BLESS").is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let written = fs::read_to_string(file).unwrap_or_default();
        assert!(written == text, "{} is not of these rules; run with BLESS=1", file.display());
    }

    #[test]
    fn each_finding_has_a_page_in_the_manual() {
        for (name, _) in pages() {
            is_in(&docs(&format!("findings/{name}.md")), &page_of(name).unwrap());
        }
        let names: Vec<String> = pages().map(|(name, _)| format!("{name}.md")).collect();
        for file in fs::read_dir(docs("findings")).unwrap() {
            let file = file.unwrap().file_name().into_string().unwrap();
            assert!(names.contains(&file), "docs/findings/{file} is of no finding");
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
        for rule in RULES {
            let Rule { id, name, acts, .. } = rule;
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

    #[test]
    fn each_rule_has_an_example() {
        let examples = examples();
        for rule in RULES {
            assert!(examples.iter().any(|finding| finding.id == rule.id), "{}", rule.id);
        }
    }

    #[test]
    fn commands_and_names_are_code() {
        for (text, expected) in [
            ("see it (gyan report --machine)", "see it (`gyan report --machine`)."),
            ("MPI_Init takes long", "`MPI_Init` takes long."),
            ("btl_*_eager_limit; x", "`btl_*_eager_limit`; x."),
            (
                "mpirun --bind-to core, srun --cpu-bind=cores.",
                "`mpirun --bind-to core`, `srun --cpu-bind=cores`.",
            ),
            ("gyan run --set NAME=VALUE.", "`gyan run --set NAME=VALUE`."),
            ("sysctl kernel.yama.ptrace_scope=0, in", "`sysctl kernel.yama.ptrace_scope=0`, in."),
            ("mpirun(1), x", "`mpirun(1)`, x."),
            ("docs/limits.md", "[limits.md](../limits.md)."),
            ("gyan names it", "gyan names it."),
        ] {
            assert_eq!(stopped(text), expected);
        }
    }

    const HEAD: &str = "\
# What gyan finds

`gyan report` begins with what costs time, why, and what to do about it. `gyan report --findings` prints all findings with the
numbers that they rest on. `gyan explain ID` prints the page of one.

Findings are ranked by the seconds at stake, of all ranks together. gyan reports a finding only where its data are there, and
where more than 1 % of the run is at stake and more than the error of that estimate. A time that is a lower bound is not the
ground of a finding.

Each second is claimed by one finding only: by the first in this list that explains it. What is at stake is what no finding
above had claimed, so all findings together never claim more than the run. Where most of what a finding is about is claimed
already, it stands below the one that claims it: \"also true, mostly the same time\".

The load of the machine stands first where it is most of what is lost, or where ranks lacked a processor for a fifth of the
run although there are enough. The other findings are then marked as measured under load.

Above the findings stand the efficiencies of the ranks: [what they mean](findings/efficiencies.md).

| finding | ID | who can do something |
| :-- | :-- | :-- |
";
    const BEFORE_TABLE: &str = "
## Proofs

Each rule finds the problem in `tests/programs/problems.c`, with the function, the rank and the numbers that it must have, and
does not find it in a twin: the program without the problem, other settings, or the very command that the finding advises.
The witness is the number that has to move then. Counts are compared in every run of the tests; times are those of one run,
and say little on a busy machine. `tests/real_mpi/findings/cases.rs` is the list.

<!-- the proofs: BLESS=1 scripts/test writes them -->
";
    const END: &str = "<!-- end of the proofs -->\n";
}
