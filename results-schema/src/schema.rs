//! The JSON Schema of each file, generated from the types.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{
    ArchiveReport, Diagnosis, Difference, JobNow, Judgement, Number, RankProfile, Scaling, Summary,
    Tuning, Variables,
};

/// Each schema with its file name under `schemas/`.
pub fn all() -> [(&'static str, Schema); 10] {
    [
        ("rank.schema.json", of::<RankProfile>()),
        ("summary.schema.json", of::<Summary>()),
        ("variables.schema.json", of::<Variables>()),
        ("doctor.schema.json", of::<Diagnosis>()),
        ("check.schema.json", of::<Judgement>()),
        ("diff.schema.json", of::<Difference>()),
        ("scale.schema.json", of::<Scaling>()),
        ("tune.schema.json", of::<Tuning>()),
        ("now.schema.json", of::<JobNow>()),
        ("archive-report.schema.json", of::<ArchiveReport>()),
    ]
}

fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>()
}

impl JsonSchema for Number {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An integer or a double; a double that JSON cannot write is a string.",
            "anyOf": [
                { "type": "number" },
                { "enum": ["NaN", "Infinity", "-Infinity"] },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// `BLESS=1 cargo test -p gyan-results` rewrites them.
    #[test]
    fn committed_schemas_are_those_of_the_types() {
        for (name, schema) in all() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(name);
            let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
            if std::env::var_os("BLESS").is_some() {
                fs::write(&path, &text).unwrap();
            }
            assert_eq!(
                fs::read_to_string(&path).unwrap_or_default(),
                text,
                "{name} is not what the types give; run with BLESS=1"
            );
        }
    }
}
