//! Findings as rows: one each, for those who read a file. JSON has what they rest on.

use gyan_results::{Finding, collected};

use crate::document::data::{Data, TakeRow, word};
use crate::document::value::{Value, cells};
use crate::document::{Column, Kind, column, required};

pub(crate) fn findings(findings: &[Finding]) -> Data<'_> {
    const COLUMNS: [Column; 8] = [
        required("id", Kind::Text),
        required("title", Kind::Text),
        column("at_stake_s", Kind::Double),
        column("at_stake_share", Kind::Double),
        required("acts", Kind::Text),
        column("functions", Kind::Text),
        column("ranks", Kind::Text),
        column("advice", Kind::Text),
    ];
    let rows = move |take: &mut TakeRow| {
        findings.iter().try_for_each(|finding| {
            let some = |list: Vec<String>| (!list.is_empty()).then(|| list.join(", "));
            let ranks: Vec<String> = collected(finding.ranks.iter().map(u32::to_string));
            let advice = finding.advice.iter().map(|of| match &of.command {
                Some(command) => format!("{}: {command}", of.text),
                None => of.text.clone(),
            });
            let advice = advice.collect::<Vec<_>>().join("; ");
            let row: [Value; 8] = cells![
                &finding.id,
                &finding.title,
                finding.at_stake_s,
                finding.at_stake_share,
                word(finding.acts)?,
                some(finding.functions.clone()),
                some(ranks),
                advice
            ];
            take(&row)
        })
    };
    Data { columns: &COLUMNS, rows: Box::new(rows) }
}
