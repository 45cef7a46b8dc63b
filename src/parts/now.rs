//! What the ranks of a running job are doing, or did last before it was ended: above everything else.

use gyan_results::{Doing, GroupNow, JobNow, RankDoing};

use super::{Part, ReportInput};
use crate::document::page::PageBlock;
use crate::document::value::{line, row};
use crate::document::{Kind, Section, Value, column};
use crate::words::seconds;

/// How many groups of ranks the report has.
const GROUPS_AT_MOST: usize = 4;

/// On the page only: `gyan now` shows it alone.
pub(super) const NOW: Part = Part { option: None, table: None, block: Some(block) };

fn block<'r>(of: &'r ReportInput) -> Result<PageBlock<'r>, Value<'r>> {
    let Some(now) = of.now() else { return Err(Value::Nothing) };
    let title = if now.is_over { "What the ranks did last" } else { "What the ranks are doing" };
    let mut block = PageBlock::new("now", title);
    block.says.extend(cause(now));
    block.push(true, groups(now));
    Ok(block)
}

/// Who does what, and for how long.
pub(crate) fn groups(now: &JobNow) -> Section<'_> {
    let rows =
        now.groups.iter().map(|group| row![still(group).unwrap_or_default(), &group.sentence]);
    Section {
        title: "".into(),
        columns: vec![column("FOR", Kind::Text), column("WHO", Kind::Prose)],
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

/// Why the job does not go on.
pub(crate) fn cause(now: &JobNow) -> Option<Value<'_>> {
    now.cause.as_ref().map(|cause| line![&cause.sentence, "."])
}

fn still(group: &GroupNow) -> Option<Value<'static>> {
    group.still_s.map(|still| seconds(still).into())
}

/// The same below the title of a report; nothing while every rank moves.
pub(super) fn lines(now: &JobNow) -> Vec<Value<'_>> {
    let is_gone = |rank: &RankDoing| matches!(rank.doing, Doing::Gone(_));
    let has_moved = now.groups.iter().all(|group| group.still_s.is_none());
    if now.cause.is_none() && has_moved && !now.ranks.iter().any(is_gone) {
        return Vec::new();
    }
    let has_died = |group: &GroupNow| {
        let of_group = |rank: &&RankDoing| group.ranks.first() == Some(&rank.rank);
        now.ranks.iter().find(of_group).is_some_and(is_gone)
    };
    let sentence = |group: &GroupNow| {
        let when = match () {
            () if has_died(group) => "",
            () if now.is_over => "when it ended: ",
            () => "now: ",
        };
        match still(group) {
            Some(still) => line![when, group.sentence.clone(), ", for ", still],
            None => line![when, group.sentence.clone()],
        }
    };
    let mut lines: Vec<Value> = cause(now).into_iter().collect();
    // Of a job that is over, ranks that moved until then are no news.
    let is_news = |group: &&GroupNow| !now.is_over || group.still_s.is_some() || has_died(group);
    let mut groups: Vec<&GroupNow> = now.groups.iter().filter(is_news).collect();
    groups.sort_by_key(|group| !has_died(group));
    let more = groups.len().saturating_sub(GROUPS_AT_MOST);
    lines.extend(groups.into_iter().take(GROUPS_AT_MOST).map(sentence));
    if more > 0 {
        lines.push(line![more, " more groups of ranks: gyan now"]);
    }
    lines.push("".into());
    lines
}
