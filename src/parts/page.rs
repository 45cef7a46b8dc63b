//! The run on one page: what ran, what to do about it, and every part of the report with a chart and its tables, in the
//! order in which one would explain a run. The tables are those of the other forms of the report.

use std::collections::BTreeMap;

use gyan_results::{CallSummary, Summary, TrafficKind};

use crate::document::Kind;
use crate::document::page::pictures;
use crate::document::page::pictures::{Bar, Bars, Chart, Histogram, Key, Picture};
use crate::document::page::{Block, Card, Page, ROWS_AT_MOST};
use crate::document::value::{
    Amount, Plot, Unit, Value, bytes, integer, line, row, seconds, share,
};
use crate::document::{Section, column, texts};
use crate::parts::cost::cost;
use crate::parts::functions::Whole;
use crate::parts::functions::calls;
use crate::parts::headings::title;
use crate::parts::headings::{command, phase_name};
use crate::parts::histogram;
use crate::parts::histogram::Histogram as Sizes;
use crate::parts::peers::matrix::{by_host, by_rank, each, hosts as hosts_of};
pub(crate) use crate::parts::ranks::OfRanks;
use crate::parts::report;
use crate::parts::report::{Known, classes, coverage, first, tables};
use crate::parts::sites::tree::tree;
use crate::parts::{environment, findings, machine, peers, queues, sites, waiting};
use crate::parts::{hosts, phases};

/// Most pairs of ranks in the table.
const PAIRS_AT_MOST: usize = 256;
/// Up to this many hosts, all are named.
const HOSTS_AT_MOST: usize = 16;
/// How many functions get a chart of sizes, and how many bars phases and waiting functions get.
const HISTOGRAMS_AT_MOST: usize = 4;
const BARS_AT_MOST: usize = 12;
/// Least classes of a histogram: with fewer, a bar would fill the chart.
const CLASSES_AT_LEAST: usize = 8;
/// A table with up to this many rows is always open.
const ROWS_IF_OPEN: usize = 40;

/// What a page shows in addition to the report.
pub(crate) struct More<'a> {
    pub(crate) sizes: &'a [Sizes],
    pub(crate) ranks: &'a OfRanks,
    /// What the summary inside the page lacks.
    pub(crate) left_out: &'a [&'static str],
}

pub(crate) fn page_of_run<'a>(summary: &'a Summary, known: Known<'a>, more: &More<'a>) -> Page<'a> {
    let of_parts = [
        Ok(what_ran(summary)),
        Ok(of_findings(summary, known)),
        of_time(summary, known, more),
        functions(summary),
        of_sites(summary, known),
        of_phases(summary),
        of_waiting(summary),
        of_sizes(summary, known, more),
        of_peers(summary),
        of_queues(summary, known),
        of_series(summary, more),
        variables(summary),
        Ok(of_coverage(summary)),
        Ok(of_cost(summary)),
    ];
    let mut blocks = Vec::new();
    let mut absent = Vec::new();
    for part in of_parts {
        match part {
            Ok(block) => blocks.push(block),
            Err(why) => absent.push(why),
        }
    }
    blocks.push(how_to_read(absent, more.left_out));
    Page { title: title(summary), headline: first::headline(summary, known.called), blocks }
}

/// A part of the page, or why it is missing.
type Made<'a> = Result<Block<'a>, Value<'a>>;

fn what_ran(summary: &Summary) -> Block<'_> {
    let mut block = Block::new("run", "What ran");
    let (job, mpi) = (&summary.job, &summary.mpi);
    let fact = |name: &'static str, value: Value<'static>| vec![name.into(), value];
    let device = mpi.device.as_ref().map_or_else(String::new, |device| format!(", {device}"));
    let ranks = integer(summary.ranks.expected);
    let hosts: Value = match summary.hosts.as_slice() {
        [host] => host.clone().into(),
        hosts => line![hosts.len(), " hosts"],
    };
    let rows = vec![
        fact("Command", command(job).into()),
        fact("MPI", format!("{}{device} (MPI {})", mpi.library, mpi.standard).into()),
        fact("Library", mpi.library_path.clone().into()),
        fact("Threads", mpi.thread_level.clone().into()),
        fact("Ranks", line![ranks, " on ", hosts]),
        fact("Started", job.started.clone().into()),
        fact("Time", seconds(job.elapsed_s).into()),
        fact("Job", job.id.clone().into()),
        fact("Written by", format!("{} {}", summary.tool.name, summary.tool.version).into()),
    ];
    let facts = Section { title: "".into(), columns: texts(["", ""]), rows, notes: Vec::new() };
    block.details = "What it was set to, and what it ran on";
    let all = summary.hosts.len() <= HOSTS_AT_MOST;
    block.says.extend(report::placed(summary, all));
    block.says.extend(report::ended(summary));
    block.says.extend(hosts::differences(summary));
    if !summary.warnings.is_empty() {
        block.says.extend(report::warnings(summary, true).notes);
    }
    let mut block = block.with(true, [facts]);
    if !summary.cvars.is_empty() {
        block = block.of_view(false, environment::environment(summary));
    }
    block.of_view(false, machine::machine(summary, all))
}

fn of_findings<'a>(summary: &'a Summary, known: Known<'a>) -> Block<'a> {
    let mut block = Block::new("findings", "What costs time, and what to do about it");
    if known.findings.is_empty() {
        block.says.push("Nothing stands out.".into());
    }
    let view = findings::findings(summary, None, known.findings, known.directory);
    let shares = known.findings.iter().map(|finding| finding.at_stake_share);
    let cards = shares.zip(view.sections).map(|(share, section)| Card { share, section });
    block.cards = cards.collect();
    block.details = "Efficiencies";
    let efficiencies = findings::findings(summary, known.efficiencies, &[], known.directory);
    block.of_view(false, efficiencies)
}

fn of_time<'a>(summary: &'a Summary, known: Known<'a>, more: &More<'a>) -> Made<'a> {
    let section = first::average_rank(summary, known.called).ok_or(
        "where the time goes: a gyan that did not time calls wrote the profiles, or no function \
         was called",
    )?;
    let mut block = Block::new("time", "Where the time goes");
    block.charts.extend(average_bar(&section));
    match more.ranks.who_differs(summary) {
        Some(chart) => block.charts.push(chart),
        None if summary.ranks.reduced > 1 => block.says.push(
            "A summary has the ranks with least and most, not each of them; the profiles of the ranks do.".into(),
        ),
        None => {}
    }
    let hosts = hosts::table_of_some(summary, ROWS_AT_MOST);
    Ok(block.with(false, std::iter::once(section).chain(hosts)))
}

/// The rows of the table of an average rank as one bar.
fn average_bar<'a>(section: &Section<'a>) -> Option<Chart<'a>> {
    let part = |row: &Vec<Value<'a>>| match row.as_slice() {
        [name, Value::Amount(time), ..] => Some((name.clone(), *time)),
        _ => None,
    };
    let parts: Vec<(Value, Amount)> = section.rows.iter().filter_map(part).collect();
    let key = |(at, (name, _)): (usize, &(Value<'a>, Amount))| Key {
        name: name.clone(),
        is_background: at == 0,
    };
    let keys = parts.iter().enumerate().map(key).collect();
    let own = parts.first()?.1.number.as_f64();
    let whole: f64 = parts.iter().map(|(_, time)| time.number.as_f64()).sum();
    let in_mpi = share(if whole > 0.0 { 1.0 - own / whole } else { 0.0 });
    let bar = Bar { name: "".into(), parts: parts.into_iter().map(|(_, time)| time).collect() };
    Some(Chart::new(
        "Where does the time of an average rank go?",
        line![seconds(own), " of ", seconds(whole), " in its own code, ", in_mpi, " in MPI"],
        Picture::Bars(Bars { keys, bars: vec![bar] }),
    ))
}

fn functions(summary: &Summary) -> Made<'_> {
    if summary.calls.is_empty() {
        return Err("functions of MPI: no rank called one that is counted".into());
    }
    let mut sections = calls(&summary.calls, &Whole::run(summary), true);
    let by_name: BTreeMap<&str, &CallSummary> =
        summary.calls.iter().map(|call| (call.name.as_str(), call)).collect();
    if let Some(by_time) = sections.first_mut().filter(|_| summary.in_mpi.is_some()) {
        add_durations(by_time, &by_name);
    }
    let mut block = Block::new("functions", "Functions of MPI");
    block.details = "The same by rank";
    let mut sections = sections.into_iter();
    block.extend(true, sections.next());
    Ok(block.with(false, sections))
}

/// A column that shows how long the calls took, on one scale for all functions.
fn add_durations<'a>(section: &mut Section<'a>, calls: &BTreeMap<&str, &'a CallSummary>) {
    let histograms = || calls.values().map(|call| &call.time_histogram);
    let first = histograms().filter_map(|of| of.iter().position(|&count| count > 0)).min();
    let last = histograms().filter_map(|of| of.iter().rposition(|&count| count > 0)).max();
    let (Some(first), Some(last)) = (first, last) else { return };
    for row in &mut section.rows {
        let call = match row.first() {
            Some(Value::Text(name)) => calls.get(name.as_ref()),
            _ => None,
        };
        let count = |at: usize| call.and_then(|call| call.time_histogram.get(at)).copied();
        let peaks: Vec<Option<f64>> =
            (first..=last).map(|at| count(at).filter(|&n| n > 0).map(|n| n as f64)).collect();
        let highest = peaks.iter().flatten().fold(0.0_f64, |most, &n| most.max(n));
        row.push(match highest {
            0.0 => Value::Nothing,
            _ => Value::Plot(Plot::Course { peaks: peaks.into(), highest }),
        });
    }
    section.columns.push(column("HOW LONG", Kind::Text));
    let below = |at: usize| seconds(1e-9 * 2_f64.powi(i32::try_from(at).unwrap_or(i32::MAX)));
    let from = if first == 0 { seconds(0.0) } else { below(first - 1) };
    section.notes.push(line![
        "HOW LONG shows how many of the timed calls took how long, from ",
        from,
        " at the left to ",
        below(last),
        " at the right, each bar twice as long as the one before"
    ]);
}

fn of_sites<'a>(summary: &'a Summary, known: Known<'a>) -> Made<'a> {
    let found = known
        .called
        .ok_or("call sites: none were recorded; GYAN_SITES was off, or nothing was timed")?;
    let mut block = Block::new("sites", "Which lines of the program");
    let nodes = tree(found);
    if !nodes.is_empty() {
        let says = "time in MPI on all ranks together; each box is a function, below it what it called, as wide as the \
                    time that was spent there";
        block.charts.push(Chart::new(
            "How does the program come to MPI, and where is its time spent?",
            says,
            Picture::Tree(nodes),
        ));
    }
    let mut sections = sites::sites(summary, found, true).sections.into_iter();
    let is_short = |section: &Section| section.rows.len() <= ROWS_IF_OPEN;
    if let Some(section) = sections.next() {
        block.push(is_short(&section), section);
    }
    let ways = sections.take(BARS_AT_MOST);
    Ok(block.with(false, ways))
}

fn of_phases(summary: &Summary) -> Made<'_> {
    if summary.phases.is_empty() {
        return Err(
            "phases: the program marks none (gyan_phase_begin of gyan.h, or MPI_Pcontrol)".into()
        );
    }
    let mut block = Block::new("phases", "Phases of the program");
    let bar = |phase| {
        let phase: &gyan_results::PhaseSummary = phase;
        let part = phases::in_mpi(phase, summary)?.number.as_f64().clamp(0.0, 1.0);
        let time_s = phase.time_s.avg;
        let parts = [part, 1.0 - part].map(|part| seconds(time_s * part));
        Some(Bar { name: phase_name(phase).into(), parts: parts.into() })
    };
    let mut bars: Vec<Bar> = summary.phases.iter().filter_map(bar).collect();
    bars.truncate(BARS_AT_MOST);
    if !bars.is_empty() {
        let keys = two_keys("in MPI", "own code");
        block.charts.push(Chart::new(
            "How long are the phases, and how much of them is MPI?",
            "time of an average rank, without the phases inside a phase",
            Picture::Bars(Bars { keys, bars }),
        ));
    }
    Ok(block.of_view(false, phases::phases(summary, false, true)))
}

fn two_keys(first: &'static str, background: &'static str) -> Vec<Key<'static>> {
    let key = |name: &'static str, is_background| Key { name: name.into(), is_background };
    vec![key(first, false), key(background, true)]
}

fn of_waiting(summary: &Summary) -> Made<'_> {
    if summary.waiting.is_empty() {
        return Err("waiting in collectives: none that all ranks enter together was called, or GYAN_WAITING was off".into());
    }
    let mut block = Block::new("waiting", "Waiting in collectives");
    let view = waiting::waiting(summary, true);
    block.says.extend(view.subtitle.iter().skip(1).take(BARS_AT_MOST).cloned());
    let bar = |of: &'_ gyan_results::WaitingSummary| Bar {
        name: of.function.clone().into(),
        parts: vec![seconds(of.waiting_s), seconds((of.time_s - of.waiting_s).max(0.0))],
    };
    let bars = summary.waiting.iter().take(BARS_AT_MOST).map(bar).collect();
    block.charts.push(Chart::new(
        "How much of the collectives is waiting for others?",
        "time of all ranks together",
        Picture::Bars(Bars { keys: two_keys("waiting", "transfer"), bars }),
    ));
    Ok(block.of_view(false, view))
}

fn of_sizes<'a>(summary: &'a Summary, known: Known<'a>, more: &More<'a>) -> Made<'a> {
    if more.sizes.is_empty() {
        return Err("sizes: no function that moves data was called".into());
    }
    let mut block = Block::new("sizes", "How much calls move");
    if let Some((limit, above)) = known.eager {
        let part = if above > 0.0 { share(above).into() } else { Value::from("none") };
        block.says.push(line![
            part,
            " of the messages are above the eager limit of ",
            bytes(limit),
            "."
        ]);
    }
    for of in more.sizes.iter().take(HISTOGRAMS_AT_MOST) {
        let mut bars: Vec<_> = of.bars.iter().map(|bar| (bar.from, bar.below, bar.count)).collect();
        while let (Some(&(_, below, _)), true) = (bars.last(), bars.len() < CLASSES_AT_LEAST) {
            bars.push((below, 2.0 * below, 0));
        }
        let calls: u64 = of.bars.iter().map(|bar| bar.count).sum();
        let moved: u64 = of.bars.iter().filter_map(|bar| bar.bytes).sum();
        let is_message = of.name.contains("send") || of.name.contains("Send");
        let limit = known.eager.map(|(limit, _)| limit).filter(|_| is_message);
        let says = line![integer(calls), " calls moved ", bytes(moved as f64)];
        block.charts.push(Chart::new(
            line!["How much does a call of ", of.name.as_str(), " move?"],
            says,
            Picture::Histogram(Histogram { unit: Unit::Bytes, bars, limit }),
        ));
    }
    Ok(block.of_view(false, histogram::histogram(summary, more.sizes)))
}

fn of_peers(summary: &Summary) -> Made<'_> {
    if summary.peers.is_empty() {
        return Err(
            "who sends to whom: no message was sent from rank to rank, or GYAN_PEERS was off"
                .into(),
        );
    }
    let mut block = Block::new("peers", "Who sends to whom");
    for traffic in &summary.peers {
        let (bytes, number) = match traffic.kind {
            TrafficKind::Messages => {
                ("Who sends how many bytes to whom?", "Who sends how many messages?")
            }
            TrafficKind::Accesses => {
                ("Who puts and gets how many bytes?", "Who puts and gets how often?")
            }
        };
        let (size, of_ranks) = (summary.ranks.expected as usize, !traffic.matrix.is_empty());
        let by: Value = match (of_ranks, each(size), each(hosts_of(traffic).len())) {
            (true, 1, _) => "by rank".into(),
            (true, each, _) => line!["by bins of ", each, " ranks"],
            (false, _, 1) => "by host".into(),
            (false, _, each) => line!["by bins of ", each, " hosts"],
        };
        for (unit, question, total) in
            [(Unit::Bytes, bytes, traffic.bytes), (Unit::Count, number, traffic.number)]
        {
            let matrix =
                if of_ranks { by_rank(traffic, unit, size) } else { by_host(traffic, unit) };
            let total = Unit::double(unit, total as f64);
            let says = line![total, " in all, ", by.clone()];
            let chart = |matrix| Chart::new(question, says, Picture::Matrix(matrix));
            block.charts.extend(matrix.map(chart));
        }
    }
    let pairs = summary.peers.iter().map(|traffic| traffic.pairs().take(PAIRS_AT_MOST + 1).count());
    let all = pairs.max().unwrap_or(0) <= PAIRS_AT_MOST;
    Ok(block.of_view(false, peers::peers(summary, all)))
}

fn of_queues<'a>(summary: &'a Summary, known: Known<'a>) -> Made<'a> {
    if known.queues.is_empty() && known.watched.is_empty() && summary.events.is_empty() {
        return Err(
            "queues: the library tells nothing of them; run with gyan run --watch umq --events"
                .into(),
        );
    }
    let block = Block::new("queues", "Queues of messages");
    let watched = (known.watched, known.remarks);
    Ok(block.of_view(true, queues::queues(summary, known.queues, watched, false)))
}

fn of_series<'a>(summary: &'a Summary, more: &More<'a>) -> Made<'a> {
    let bands = more.ranks.bands(summary).ok_or(
        "the course of variables over time: only the profiles of ranks have it, and only from a \
         run with gyan run --series 100ms in which a variable was not 0 all the time",
    )?;
    let mut block = Block::new("series", "Over the time of the run");
    let mut columns = texts(["VARIABLE", "CLASS", "OBJECT"]);
    columns.extend(crate::document::numbers(["RANKS", "LEAST", "MEAN", "MOST"]));
    let cells = |band: &pictures::Band| {
        let parts = || band.parts.iter().flatten();
        let least = parts().fold(f64::INFINITY, |least, part| least.min(part[0]));
        let most = parts().fold(f64::NEG_INFINITY, |most, part| most.max(part[2]));
        let mean = parts().map(|part| part[1]).sum::<f64>() / parts().count().max(1) as f64;
        let [least, mean, most] = [least, mean, most]
            .map(|of| Unit::Count.double(of).known(gyan_results::Fidelity::Sampled));
        let object = band.object.clone();
        row![band.name.clone(), band.class, object, integer(band.ranks), least, mean, most]
    };
    let rows = bands.bands.iter().map(cells).collect();
    let section = Section { title: "".into(), columns, rows, notes: Vec::new() };
    block.charts.push(Chart::new(
        "How did variables of the library change over the run?",
        "sampled; the line is the mean over the ranks, the band goes from the rank with least to the one with most",
        Picture::Bands(bands),
    ));
    Ok(block.with(false, [section]))
}

fn variables(summary: &Summary) -> Made<'_> {
    if summary.pvars.is_empty() {
        return Err("performance variables: the library exports none that was read".into());
    }
    let mut block = Block::new("variables", "What the MPI library counted");
    block.says.push(
        "What a variable is, in the words of the library, is in no profile: gyan varlist --pvars --long lists it."
            .into(),
    );
    let of_functions: &[CallSummary] = &[];
    let sections =
        tables(&summary.pvars, of_functions, &summary.samples, &Whole::run(summary), true);
    for section in sections {
        let is_open = section.rows.len() <= ROWS_IF_OPEN;
        block.push(is_open, section);
    }
    Ok(block.with(true, classes(summary)))
}

fn of_coverage(summary: &Summary) -> Block<'_> {
    let Section { title, notes, .. } = coverage(&summary.coverage, true);
    let mut block = Block::new("coverage", "What was read, and what was not");
    block.details = "Why, and how to see more";
    block.says.push(title);
    block.with(false, [Section::of_notes("", notes)])
}

fn of_cost(summary: &Summary) -> Block<'_> {
    let Section { title, notes, .. } = cost(summary, true);
    let mut block = Block::new("cost", "What gyan itself cost");
    block.says.push(title);
    block.says.extend(notes);
    block
}

fn how_to_read<'a>(absent: Vec<Value<'a>>, left_out: &[&'static str]) -> Block<'a> {
    let mut block = Block::new("reading", "How to read this page");
    block.says.extend([
        "A number marked e is estimated from the calls that were timed; ± is its standard error. One marked s comes from \
         samples. One without a mark was counted or read, or follows from the numbers beside it."
            .into(),
        "A number in brackets is the rank that had it. Hover over a number or a mark to see it exactly; select the heading \
         of a column to sort by it."
            .into(),
        "The page holds the summary of the run: gyan report reads it like a run directory.".into(),
    ]);
    if !left_out.is_empty() {
        let what = left_out.join(", and ");
        block.says.push(
            format!("To keep the page small, that summary is without {what}; the run directory has it all.").into(),
        );
    }
    if !absent.is_empty() {
        block.push(true, Section::of_notes("Not on this page", absent));
    }
    block
}
