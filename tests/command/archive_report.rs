//! What do `gyan archive report` and `gyan archive job` say of a record of an earlier version, and of an archive that has nothing?

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::common::{Outcome, gyan, root, run};
use crate::golden::is_golden;
use crate::schemas::{schema, validate};

/// An archive with the record of `tests/fixtures/gyan.record-1`: job 4711.
fn archive() -> TempDir {
    let place = TempDir::new().unwrap();
    let spool = place.path().join("spool");
    fs::create_dir(&spool).unwrap();
    let record = root().join("tests/fixtures/gyan.record-1/4711.0.gyan-record");
    fs::copy(record, spool.join("4711.0.gyan-record")).unwrap();
    let outcome = run(gyan().args(["archive", "ingest", "spool", "kept"]).current_dir(&place));
    assert_eq!(outcome.stdout, "1 job added\n", "{}", outcome.stderr);
    place
}

fn asked(place: &Path, arguments: &[&str]) -> Outcome {
    run(gyan().arg("archive").args(arguments).current_dir(place))
}

#[test]
fn the_report_of_an_archive_is_golden_and_keeps_to_its_schema() {
    let place = archive();
    let report = |format| {
        let outcome = asked(
            place.path(),
            &["report", "--since", "2020-01-01", "--weeks", "--format", format, "kept"],
        );
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.stdout
    };
    is_golden("archive-report.txt", &report("table"));
    is_golden("archive-report.csv", &report("csv"));
    validate(&schema("archive-report.schema.json"), &report("json"), "gyan archive report");
    let page = report("html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Where the core hours went"));
}

#[test]
fn a_job_is_found_by_its_number_and_shown_as_far_as_its_record_goes() {
    let place = archive();
    let outcome = asked(place.path(), &["job", "4711", "--step", "0", "kept"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    is_golden("archive-job.txt", &outcome.stdout);
    let page = asked(place.path(), &["job", "4711", "--format", "html", "kept"]);
    let says = "this is what its record in the archive has";
    assert!(page.stdout.starts_with("<!DOCTYPE html>") && page.stdout.contains(says));
    let outcome = asked(place.path(), &["job", "4711", "--step", "1", "kept"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("job 4711: is not in the archive"), "{}", outcome.stderr);
}

#[test]
fn users_are_shown_only_where_the_archive_allows_it() {
    let place = archive();
    let users = || asked(place.path(), &["report", "--since", "2020-01-01", "--users", "kept"]);
    let outcome = users();
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("does not allow reports about users"), "{}", outcome.stderr);
    fs::write(place.path().join("kept/archive.toml"), "users = true\n").unwrap();
    let outcome = users();
    assert!(outcome.stdout.contains("Users by core hours"), "{}{}", outcome.stdout, outcome.stderr);
    fs::write(place.path().join("kept/archive.toml"), "user = true\n").unwrap();
    assert!(users().stderr.contains("its only key is `users`"));
}

#[test]
fn what_is_not_there_is_said() {
    let place = archive();
    for (arguments, says) in [
        (
            &["report", "kept", "--program", "other*", "--since", "2020-01-01"][..],
            "has no job since 2020-01-01",
        ),
        (&["report", "nowhere"], "has no job since"),
        (&["report", "kept", "--since", "soon"], "--since soon: is no day"),
    ] {
        let outcome = asked(place.path(), arguments);
        assert_eq!(outcome.code, 2, "{arguments:?}");
        assert!(outcome.stderr.contains(says), "{}", outcome.stderr);
    }
}
