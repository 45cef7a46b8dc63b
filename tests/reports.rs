//! The reports are as they were looked at and found good: `BLESS=1` writes them anew.

use std::fs;

use crate::common::{gyan, root, run};

/// The report of the committed fixture, in each of its forms.
#[test]
fn reports_are_the_golden_ones() {
    let fixture = "tests/fixtures/gyan.rank-1";
    for (name, options) in [
        ("report.txt", &[][..]),
        ("report-all.txt", &["--all"]),
        ("report-vars.txt", &["--vars", "MPI_*recv"]),
        ("report.md", &["--format", "markdown"]),
        ("report.csv", &["--format", "csv"]),
        ("report.json", &["--format", "json"]),
    ] {
        let outcome = run(gyan().arg("report").args(options).arg(fixture).current_dir(root()));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{name}");
        let path = root().join("tests/golden").join(name);
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &outcome.stdout).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(outcome.stdout, golden, "{name} is not the golden one; look, then BLESS=1");
        for line in outcome.stdout.lines() {
            assert_eq!(line.trim_end(), line, "{name}: spaces at the end of a line");
        }
    }
}

#[test]
fn a_name_with_control_characters_never_reaches_the_terminal_raw() {
    let directory = tempfile::TempDir::new().unwrap();
    let fixture = root().join("tests/fixtures/gyan.rank-1/rank-000000.json");
    let text = fs::read_to_string(fixture).unwrap().replace("\"size\":4", "\"size\":1");
    let text = text.replace("pml_ob1_posted_recvq_length", "evil\\u001b[2Jname");
    assert!(text.contains("evil"));
    fs::write(directory.path().join("rank-000000.json"), text).unwrap();
    for format in ["table", "markdown"] {
        let mut command = gyan();
        command.args(["report", "--all", "--format", format]).arg(directory.path());
        let outcome = run(&mut command);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert!(outcome.stdout.contains("evil?"), "{format}: {}", outcome.stdout);
        assert!(!outcome.stdout.contains('\u{1b}'), "{format}: {:?}", outcome.stdout);
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let command = format!(
        "'{}' report --format csv tests/fixtures/gyan.rank-1 | head -n 1",
        gyan().get_program().to_string_lossy()
    );
    let outcome = run(std::process::Command::new("bash")
        .args(["-o", "pipefail", "-c", &command])
        .current_dir(root()));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert!(outcome.stdout.starts_with("kind,name,"));
}
