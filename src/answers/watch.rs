//! What `gyan watch` shows: what `gyan now` shows, and how fast the ranks go.

use std::path::Path;
use std::time::SystemTime;

use gyan_results::{Doing, GroupNow, JobNow, Unit};

use super::now;
use crate::document::value::{Amount, Bound, InUnit, bytes, line, row, seconds, share};
use crate::document::{Kind, Section, Value, View, column, plural};
use crate::hang::{Pace, PaceKeeper, RankPace};
use crate::statistics::median;
use crate::words::ranges;

/// `silent`: live files that other hosts have not written for long.
pub(crate) fn watched<'a>(
    job: &'a JobNow,
    paces: &PaceKeeper,
    silent: &'a [String],
    directory: &Path,
    at: SystemTime,
) -> View<'a> {
    let mut view = now(job, directory);
    view.sections.extend(how_fast(job, paces, at));
    if !silent.is_empty() {
        let notes = silent.iter().map(Value::from).collect();
        view.sections.push(Section::of_notes("", notes));
    }
    view
}

/// None once no rank is running.
fn how_fast<'a>(job: &JobNow, paces: &PaceKeeper, at: SystemTime) -> Option<Section<'a>> {
    let lives = |group: &&GroupNow| {
        let first = group.ranks.first();
        let of = job.ranks.iter().find(|rank| Some(&rank.rank) == first);
        of.is_some_and(|of| !matches!(of.doing, Doing::Gone(_) | Doing::Ended))
    };
    let mut section = Section {
        title: "How fast they go".into(),
        columns: vec![
            column("RANKS", Kind::Text),
            column("EACH OF THEM", Kind::Text),
            column("MEDIAN", Kind::Number),
            column("MIN", Kind::Number),
            column("MAX", Kind::Number),
            column("OVER", Kind::Number),
        ],
        rows: Vec::new(),
        notes: Vec::new(),
    };
    for group in job.groups.iter().filter(lives) {
        add_group(&mut section, group, paces, at);
    }
    let is_any = !section.rows.is_empty() || !section.notes.is_empty();
    (is_any && !job.is_over).then_some(section)
}

fn add_group(section: &mut Section, group: &GroupNow, paces: &PaceKeeper, at: SystemTime) {
    let who = ranges(&group.ranks);
    let known: Vec<&RankPace> = group.ranks.iter().filter_map(|rank| paces.of(*rank)).collect();
    let has_news = known.iter().any(|of| of.is_new);
    let paces: Vec<(u32, Pace)> =
        known.iter().filter_map(|of| Some((of.latest.rank, of.pace()?))).collect();
    // One that has stood still since has no news: how fast it went before would mislead.
    let is_shown = !paces.is_empty() && (has_news || group.still_s.is_none());
    if is_shown {
        section.rows.extend(measured(&who, group.ranks.len(), &paces));
    }
    let s = plural(group.ranks.len() as u64);
    if !has_news {
        let age_s = known.iter().filter_map(|of| of.latest.age_s(at)).reduce(f64::min);
        let age_s = age_s.map_or("".into(), |age_s| line![" for ", seconds(age_s)]);
        section.notes.push(line!["no news of rank", s, " ", who, age_s]);
    } else if !is_shown {
        section.notes.push(line!["rank", s, " ", who, ": known after the next news"]);
    }
}

fn measured<'a>(who: &str, number: usize, paces: &[(u32, Pace)]) -> Vec<Vec<Value<'a>>> {
    let missing = (number - paces.len()) as u64;
    let over: Vec<f64> = paces.iter().map(|(_, pace)| pace.over_s).collect();
    let is_exact = paces.iter().all(|(_, pace)| pace.in_mpi_error == Some(0.0));
    let is_clear = paces.iter().all(|(_, pace)| pace.is_clear());
    let threads = paces.iter().map(|(_, pace)| pace.threads).max().unwrap_or(1) as f64;
    let in_mpi = |part: f64| {
        let bound = if is_exact { Bound::None } else { Bound::About };
        Amount { bound, ..share(part.clamp(0.0, threads)) }
    };
    let of = |of: fn(&Pace) -> Option<f64>| -> Vec<(u32, f64)> {
        paces.iter().filter_map(move |(rank, pace)| Some((*rank, of(pace)?))).collect()
    };
    let calls = |per_s: f64| Unit::Count.double(rounded(per_s));
    let mut rows = vec![
        distribution("calls a second", &of(|pace| Some(pace.calls_per_s)), true, calls),
        distribution("bytes a second", &of(|pace| Some(pace.bytes_per_s)), true, bytes),
        distribution("time in MPI", &of(|pace| pace.in_mpi), is_clear, in_mpi),
    ];
    for (at, row) in rows.iter_mut().enumerate() {
        let (first, last) = match at {
            0 => (who.to_owned().into(), median(&over).map(seconds).into()),
            1 if missing > 0 => {
                (line!["without ", missing, " rank", plural(missing)], Value::from(""))
            }
            _ => ("".into(), "".into()),
        };
        row.insert(0, first);
        row.push(last);
    }
    rows
}

/// `is_clear`: whether it is known which rank has the most and the least.
fn distribution<'a>(
    what: &'static str,
    values: &[(u32, f64)],
    is_clear: bool,
    amount: impl Fn(f64) -> Amount,
) -> Vec<Value<'a>> {
    let end = |end: Option<&(u32, f64)>| match end {
        Some((rank, value)) if values.len() > 1 && is_clear => amount(*value).on(*rank).into(),
        Some(_) => "".into(),
        None => Value::Nothing,
    };
    let middle = median(&values.iter().map(|(_, value)| *value).collect::<Vec<f64>>());
    let min = values.iter().min_by(|one, other| one.1.total_cmp(&other.1));
    let max = values.iter().max_by(|one, other| one.1.total_cmp(&other.1));
    row![what, middle.map(&amount), end(min), end(max)]
}

/// Parts of a call are of interest only where there are few.
fn rounded(per_s: f64) -> f64 {
    if per_s < 100.0 { per_s } else { per_s.round() }
}

#[cfg(test)]
mod tests {
    use gyan_results::{NOW_SCHEMA, RankDoing, Tool};

    use super::*;
    use crate::input::directory::RankProgress;
    use crate::render;

    fn job(doing: &[Doing], groups: Vec<GroupNow>) -> JobNow {
        let rank = |(rank, doing): (u32, &Doing)| RankDoing::new(rank, "n1", doing.clone());
        JobNow {
            schema: NOW_SCHEMA.into(),
            tool: Tool::gyan(),
            job: "1".into(),
            size: 3,
            is_over: false,
            looked_ms: 0,
            ranks: (0..).zip(doing).map(rank).collect(),
            groups,
            cause: None,
            stacks: Vec::new(),
            without_stack: Vec::new(),
        }
    }

    fn record(rank: u32, elapsed_s: f64, calls: u64) -> RankProgress {
        RankProgress {
            rank,
            process: ("n1".into(), rank, "2026-01-01T00:00:00Z".into()),
            elapsed_s,
            calls,
            bytes: calls * 1024,
            in_mpi_s: Some(elapsed_s / 4.0),
            in_mpi_error_s: Some(elapsed_s / 100.0),
            threads: 1,
        }
    }

    fn shown(job: &JobNow, paces: &PaceKeeper, after_s: u64) -> String {
        let at = humantime::parse_rfc3339("2026-01-01T00:00:00Z").unwrap()
            + std::time::Duration::from_secs(after_s);
        let mut out = Vec::new();
        render::table(&mut out, &watched(job, paces, &[], Path::new("run"), at)).unwrap();
        anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
    }

    #[test]
    fn ranks_that_move_have_rates_and_those_that_stand_still_have_no_news() {
        let still = crate::hang::a_call("MPI_Recv");
        let groups = vec![
            GroupNow { ranks: vec![0, 1], sentence: "they move".into(), still_s: None },
            GroupNow { ranks: vec![2], sentence: "it waits".into(), still_s: Some(9.0) },
        ];
        let job = job(&[Doing::Moves, Doing::Moves, Doing::Still(still)], groups);
        let mut paces = PaceKeeper::default();
        paces.look(vec![record(0, 10.0, 0), record(1, 10.0, 0), record(2, 8.0, 0)]);
        assert!(shown(&job, &paces, 12).contains("known after the next news"));
        paces.look(vec![record(0, 12.0, 400), record(1, 12.0, 20), record(2, 8.0, 0)]);
        let text = shown(&job, &paces, 17);
        let expected = "
How fast they go
RANKS  EACH OF THEM              MEDIAN        MIN          MAX    OVER
0-1    calls a second               105     10 (1)      200 (0)  2.00 s
       bytes a second           105 KiB   10.0 KiB  200 KiB (0)
       time in MPI              ~ 25.0 %
no news of rank 2 for 9.00 s
";
        for line in expected.lines() {
            let words: Vec<&str> = line.split_whitespace().take(4).collect();
            let is_there = text
                .lines()
                .any(|line| line.split_whitespace().take(words.len()).eq(words.iter().copied()));
            assert!(is_there, "{line}\n{text}");
        }
        assert!(text.contains("~ 25.0 %"), "{text}");
        paces.look(vec![record(0, 12.0, 400), record(1, 12.0, 20), record(2, 8.0, 0)]);
        let text = shown(&job, &paces, 17);
        let no_news = "no news of ranks 0-1 for 5.00 s";
        assert!(text.contains("calls a second") && text.contains(no_news), "{text}");
    }
}
