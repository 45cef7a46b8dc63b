//! gyan's output matches the committed JSON Schemas.

use std::fs;

use crate::common::{MPIS, OPENMPI, Profiled, gyan, run, succeed};
use crate::schemas::{schema, validate};

#[test]
fn profiles_and_summaries_of_real_runs_are_valid() {
    let (rank, summary) = (schema("rank.schema.json"), schema("summary.schema.json"));
    for mpi in MPIS {
        for settings in
            [&[][..], &[("OMPI_MCA_pml_monitoring_enable", "1"), ("GYAN_ELEMENTS", "1")]]
        {
            let profiled = Profiled::run(mpi, 3, &["receives"], settings);
            for entry in fs::read_dir(&profiled.directory).unwrap() {
                let path = entry.unwrap().path();
                validate(&rank, &fs::read_to_string(&path).unwrap(), &path.display().to_string());
            }
            assert_eq!(run(gyan().arg("reduce").arg(&profiled.directory)).code, 0);
            let text = fs::read_to_string(profiled.directory.join("summary.json")).unwrap();
            validate(&summary, &text, "summary.json");
        }
    }
}

#[test]
fn listings_of_real_libraries_are_valid() {
    let schema = schema("variables.schema.json");
    for mpi in MPIS {
        for options in [&[][..], &["-m"], &["-e", "-g"]] {
            let mut command = gyan();
            command.args(["varlist", "--json"]).args(options).arg("--");
            let outcome = succeed(command.arg(mpi.program("exit_code")));
            validate(&schema, &outcome.stdout, &format!("{mpi:?} {options:?}"));
        }
    }
}

#[test]
fn diagnoses_are_valid() {
    let schema = schema("doctor.schema.json");
    for program in [OPENMPI.program("exit_code"), "/bin/true".into()] {
        let outcome = run(gyan().args(["doctor", "--json", "--"]).arg(program));
        validate(&schema, &outcome.stdout, "gyan doctor");
    }
}
