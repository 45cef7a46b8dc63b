//! What gyan writes is what the committed JSON Schemas say.

use std::fs;

use jsonschema::Validator;
use serde_json::Value;

use crate::common::{MPIS, OPENMPI, Profiled, gyan, root, run};

fn schema(name: &str) -> Validator {
    let path = root().join("results-schema/schemas").join(name);
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

fn validate(schema: &Validator, text: &str, what: &str) {
    let value: Value = serde_json::from_str(text).unwrap();
    let errors: Vec<String> = schema
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {errors:?}");
}

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
            let outcome = run(command.arg(mpi.program("exit_code")));
            assert_eq!(outcome.code, 0, "{}", outcome.stderr);
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

#[test]
fn the_examples_are_valid() {
    for name in ["rank", "summary", "variables", "doctor"] {
        let path = root().join(format!("results-schema/examples/{name}.json"));
        let text = fs::read_to_string(path).unwrap();
        validate(&schema(&format!("{name}.schema.json")), &text, name);
    }
}

#[test]
fn a_damaged_profile_is_not_valid() {
    let text = fs::read_to_string(root().join("results-schema/examples/rank.json")).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    value["rank"] = "zero".into();
    assert!(!schema("rank.schema.json").is_valid(&value));
}
