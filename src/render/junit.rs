//! Test cases as `JUnit` XML, which CI servers read: a suite per rule, a case for each thing that was judged.
//! There is no standard; the elements and attributes are those that Jenkins, GitLab and GitHub's actions all
//! understand.

use std::io::{self, Write};

use gyan_results::CheckResult;
use maud::{Markup, PreEscaped, html};

use super::text::text;
use crate::document::{Case, Suite};

pub(crate) fn junit(out: &mut (impl Write + ?Sized), suites: &[Suite]) -> io::Result<()> {
    let all = || suites.iter().flat_map(|suite| &suite.cases);
    let document = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name="gyan check" tests=(all().count()) failures=(number(all(), CheckResult::Failed)) {
            "\n"
            @for suite in suites {
                testsuite name=(suite.name) tests=(suite.cases.len())
                    failures=(number(suite.cases.iter(), CheckResult::Failed)) errors="0"
                    skipped=(number(suite.cases.iter(), CheckResult::NotJudged)) {
                    "\n"
                    @for case in &suite.cases { (test_case(suite.name, case)) "\n" }
                }
                "\n"
            }
        }
        "\n"
    };
    out.write_all(document.into_string().as_bytes())
}

fn number<'a>(cases: impl Iterator<Item = &'a Case<'a>>, result: CheckResult) -> usize {
    cases.filter(|case| case.result == result).count()
}

fn test_case(suite: &str, case: &Case) -> Markup {
    let said = text(&case.said);
    html! {
        testcase classname={ "gyan." (suite) } name=(text(&case.name)) {
            @match case.result {
                CheckResult::Passed => {}
                CheckResult::Failed => { failure message=(said) { (said) } }
                CheckResult::NotJudged => { skipped message=(said) {} }
            }
        }
    }
}
