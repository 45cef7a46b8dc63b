//! One line for each number, for a spreadsheet or a script: nothing rounded, nothing left out.

use std::io::{self, Write};

use csv::Writer;
use gyan_results::{CvarSetting, Statistic, Summary};

const HEADER: [&str; 15] = [
    "kind", "name", "class", "object", "element", "measure", "datatype", "ranks", "min",
    "min_rank", "avg", "max", "max_rank", "sum", "stddev",
];

pub(crate) fn csv(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let mut writer = Writer::from_writer(out);
    writer.write_record(HEADER)?;
    for pvar in &summary.pvars {
        let element = pvar.element.to_string();
        let element = element.trim_matches(['[', ']']);
        // The datatype's name in the standard is its name in JSON.
        let datatype = serde_json::to_value(pvar.datatype)?;
        let about = [
            "pvar",
            &pvar.name,
            pvar.effective_class().name(),
            pvar.object.as_deref().unwrap_or(""),
            element,
            pvar.measure.name(),
            datatype.as_str().unwrap_or_default(),
        ];
        record(&mut writer, about, &pvar.statistic)?;
    }
    for call in &summary.calls {
        record(&mut writer, ["call", &call.name, "", "", "", "count", ""], &call.count)?;
        if let Some(bytes) = &call.bytes {
            record(&mut writer, ["call", &call.name, "", "", "", "bytes", ""], bytes)?;
        }
    }
    writer.flush()
}

/// The control variables of a run.
pub(crate) fn environment_csv(out: &mut impl Write, cvars: &[CvarSetting]) -> io::Result<()> {
    let mut writer = Writer::from_writer(out);
    writer.write_record(["name", "value", "requested", "set_by"])?;
    for cvar in cvars {
        let texts = [&cvar.value, &cvar.requested, &cvar.set_by];
        let texts = texts.map(|text| text.as_deref().unwrap_or_default());
        writer.write_record([cvar.name.as_str()].into_iter().chain(texts))?;
    }
    writer.flush()
}

fn record(
    writer: &mut Writer<impl Write>,
    about: [&str; 7],
    statistic: &Statistic,
) -> io::Result<()> {
    let numbers = [
        statistic.ranks.to_string(),
        statistic.min.to_string(),
        statistic.min_rank.to_string(),
        statistic.avg.to_string(),
        statistic.max.to_string(),
        statistic.max_rank.to_string(),
        statistic.sum.to_string(),
        statistic.stddev.to_string(),
    ];
    writer.write_record(about.into_iter().chain(numbers.iter().map(String::as_str)))?;
    Ok(())
}
