//! The user chooses which variables are read.

use crate::common::{OPENMPI, Profiled};

fn names(run: &Profiled) -> Vec<String> {
    let profiles = run.profiles();
    profiles[0].pvars.iter().map(|pvar| pvar.name.clone()).collect()
}

#[test]
fn names_patterns_classes_and_exclusions_are_obeyed() {
    for (setting, value, expected) in [
        (
            "GYAN_PVARS",
            "pml_ob1_*",
            &["pml_ob1_unexpected_msgq_length", "pml_ob1_posted_recvq_length"][..],
        ),
        ("GYAN_PVARS", "-pml_ob1_*", &["mpool_hugepage_bytes_allocated"]),
        ("GYAN_PVARS", "*:SIZE;-*unexpected*;-mpool?*", &["pml_ob1_posted_recvq_length"]),
        (
            "MPIT_VAR_TO_TRACE",
            "pml_ob1_posted_recvq_length:size;",
            &["pml_ob1_posted_recvq_length"],
        ),
    ] {
        let run = Profiled::run(OPENMPI, 1, &["exit_code"], &[(setting, value)]);
        assert_eq!(names(&run), expected, "{setting}={value}");
        let profile = &run.profiles()[0];
        assert!(profile.warnings.is_empty(), "{:?}", profile.warnings);
        let coverage = &profile.coverage;
        assert_eq!(coverage.exported, coverage.sampled + coverage.skipped.len());
    }
}

#[test]
fn an_unknown_name_is_one_line_and_a_warning_but_no_error() {
    let settings = [("GYAN_PVARS", "pml_ob1_posted_recvq_length;nosuch_variable")];
    let run = Profiled::run(OPENMPI, 2, &["exit_code"], &settings).succeeded();
    let lines = run.outcome.stderr.lines().filter(|line| line.contains("nosuch_variable"));
    assert_eq!(lines.count(), 1, "{}", run.outcome.stderr);
    assert_eq!(names(&run), ["pml_ob1_posted_recvq_length"]);
    for profile in run.profiles() {
        assert_eq!(profile.warnings.len(), 1);
        assert!(profile.warnings[0].contains("nosuch_variable"));
    }
}
