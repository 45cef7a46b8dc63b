//! How does a program scale? Runs of it at several sizes, by the number of ranks or by a setting.
//!
//! The predictions for the parts of the run time are added up, so that predicted shares are shares of one
//! whole. The law of the run time itself is fitted separately.

mod numbers;

use std::collections::{BTreeMap, BTreeSet};

use gyan_results::{
    Fit, Growth, HybridEfficiencies, Predicted, ResourcesSummary, SCALE_SCHEMA, ScaleComputation,
    ScaleHybrid, ScaleKind, ScalePoint, ScalePop, ScaleRow, ScaleSize, Scaling, Statistic, Summary,
    Tool,
};

use super::growth::{Point, expected, fit};
use super::program;
use crate::error::Error;
use crate::findings::efficiencies;
use crate::input::runs::Run;
use crate::statistics;
use crate::words::short_library;
use numbers::numbers;

pub(crate) use numbers::{ScaleKey, Spread};

/// The default target is this many times the largest size.
const FURTHER: f64 = 4.0;

/// What was asked for.
pub(crate) struct Question<'a> {
    /// The setting that gives the size; none for the number of ranks.
    pub(crate) by: Option<&'a str>,
    pub(crate) is_weak: bool,
    pub(crate) target: Option<f64>,
}

/// How the runs scale, and why runs were left out.
pub(crate) fn scaling(runs: &[Run], question: &Question) -> Result<(Scaling, Vec<String>), Error> {
    let RunsBySize { program, sizes, left_out } = by_size(runs, question.by);
    if sizes.len() < 2 {
        return Err(too_few(&sizes, question, &left_out));
    }
    let largest = sizes.last_key_value().map_or(1.0, |(size, _)| size.0);
    let target = question.target.unwrap_or(FURTHER * largest);
    let mut scaling = Scaling {
        schema: SCALE_SCHEMA.to_owned(),
        tool: Tool::gyan(),
        program,
        by: question.by.unwrap_or("ranks").to_owned(),
        is_weak: question.is_weak,
        target,
        sizes: of_sizes(&sizes, question),
        node_boundary: None,
        rows: rows(&sizes, target),
        remarks: remarks(&sizes),
    };
    scaling.node_boundary = node_boundary(&scaling.sizes);
    Ok((scaling, left_out))
}

/// The numbers of runs at one size, each as minimum, average and maximum over the ranks: one for each run.
pub(crate) struct MeasuredSize {
    pub(crate) size: f64,
    pub(crate) numbers: BTreeMap<ScaleKey, Vec<Spread>>,
}

/// The numbers that [`scaling`] looks at, for others that do: the program, its sizes in their order, and why runs were left
/// out.
pub(crate) fn measured(runs: &[Run], by: Option<&str>) -> (String, Vec<MeasuredSize>, Vec<String>) {
    let RunsBySize { program, sizes, left_out } = by_size(runs, by);
    let sizes = sizes.iter();
    let sizes = sizes.map(|(size, runs)| MeasuredSize { size: size.0, numbers: numbers_of(runs) });
    (program, sizes.collect(), left_out)
}

/// The runs that can be used.
struct RunsBySize<'r> {
    program: String,
    sizes: BTreeMap<Size, Vec<&'r Run>>,
    /// Why others were left out.
    left_out: Vec<String>,
}

fn by_size<'r>(runs: &'r [Run], by: Option<&str>) -> RunsBySize<'r> {
    let program = program_of_most(runs);
    let (mut sizes, mut left_out) = (BTreeMap::<Size, Vec<&Run>>::new(), Vec::new());
    for run in runs {
        match usable(run, &program).and_then(|()| size(&run.summary, by)) {
            Ok(size) => sizes.entry(size).or_default().push(run),
            Err(why) => left_out.push(format!("{}: {why}; left out", run.path.display())),
        }
    }
    RunsBySize { program, sizes, left_out }
}

/// The size that is the number of threads of OpenMP.
pub(crate) const BY_THREADS: &str = "threads";

/// A size above 0, which can be sorted.
#[derive(Clone, Copy, PartialEq)]
struct Size(f64);

impl Eq for Size {}

impl PartialOrd for Size {
    fn partial_cmp(&self, other: &Size) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Size {
    fn cmp(&self, other: &Size) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The program of most runs; on a tie, the one that was named first.
fn program_of_most(runs: &[Run]) -> String {
    let programs: Vec<String> = runs.iter().map(|run| program(&run.summary)).collect();
    let number = |name: &String| programs.iter().filter(|other| *other == name).count();
    // The last maximum is kept.
    programs.iter().rev().max_by_key(|name| number(name)).cloned().unwrap_or_default()
}

/// Why a run says nothing about scaling.
fn usable(run: &Run, of: &str) -> Result<(), String> {
    let name = program(&run.summary);
    if name != of {
        return Err(format!("is a run of {name}, not of {of}"));
    }
    if let Some(bad) = run.summary.ranks.ended_badly.first() {
        return Err(format!("rank {} did not reach MPI_Finalize", bad.rank));
    }
    Ok(())
}

/// The size of a run: its ranks, the value of a label, of an argument of the program (`arg1`), or of a control variable; the
/// threads of OpenMP of all ranks.
fn size(summary: &Summary, by: Option<&str>) -> Result<Size, String> {
    let Some(by) = by else { return Ok(Size(f64::from(summary.ranks.expected))) };
    let argument = by.strip_prefix("arg").and_then(|number| number.parse::<usize>().ok());
    let label = summary.job.labels.iter().find(|label| label.name == by);
    if let (BY_THREADS, None) = (by, label) {
        let openmp = summary.openmp.as_ref();
        let threads = openmp.map(|of| Size(of.threads.sum.as_f64()));
        return threads.ok_or_else(|| "has no OpenMP runtime that tells of its threads".to_owned());
    }
    let text = if let Some(label) = label {
        Some(&label.value)
    } else if let Some(number) = argument {
        summary.job.command.get(number)
    } else {
        let cvar = summary.cvars.iter().find(|cvar| cvar.name == by);
        cvar.and_then(|cvar| cvar.value.as_ref())
    };
    let text = text.ok_or_else(|| format!("has no {by}"))?;
    match text.trim().parse::<f64>() {
        Ok(size) if size > 0.0 && size.is_finite() => Ok(Size(size)),
        Ok(_) => Err(format!("{by} is {text}, but sizes must be above 0")),
        Err(_) => Err(format!("{by} is {text}, which is not a number")),
    }
}

fn too_few(sizes: &BTreeMap<Size, Vec<&Run>>, question: &Question, left_out: &[String]) -> Error {
    let why = match (sizes.first_key_value(), left_out) {
        (None, [only]) => return split(only),
        (None, _) => "no run can be used".to_owned(),
        (Some((size, runs)), _) => {
            let runs = if runs.len() == 1 {
                "one run is".to_owned()
            } else {
                format!("all {} runs are", runs.len())
            };
            match question.by {
                None if size.0 < 2.0 => format!("{runs} of 1 rank"),
                None => format!("{runs} of {} ranks", size.0),
                Some(by) => format!("{runs} of {by} = {}", size.0),
            }
        }
    };
    let others =
        if left_out.is_empty() { String::new() } else { format!(" ({})", left_out.join("; ")) };
    let remedy = if question.by.is_none() {
        "name runs with different numbers of ranks, or --by threads or a setting in which they differ"
    } else {
        "name runs in which it differs; gyan report --environment shows settings"
    };
    Error::new("gyan scale", format!("{why}{others}"), remedy)
}

fn split(left_out: &str) -> Error {
    let (what, why) = left_out.split_once(": ").unwrap_or(("gyan scale", left_out));
    Error::new(what, why.trim_end_matches("; left out"), "name other runs")
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    statistics::median(&values).unwrap_or(0.0)
}

/// The least and the largest of several.
fn range(values: &[f64]) -> Option<[f64; 2]> {
    let ends = values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| {
        [low.min(*value), high.max(*value)]
    });
    (values.len() > 1).then_some(ends)
}

fn of_sizes(sizes: &BTreeMap<Size, Vec<&Run>>, question: &Question) -> Vec<ScaleSize> {
    let mut first: Option<(f64, Size, Option<OutsideMpi>)> = None;
    let of = |(size, runs): (&Size, &Vec<&Run>)| {
        let of_runs = |of: &dyn Fn(&Summary) -> f64| -> Vec<f64> {
            runs.iter().map(|run| of(&run.summary)).collect()
        };
        let run_s = of_runs(&Summary::run_time_s);
        let range = range(&run_s);
        let run_s = median(run_s);
        let one = &runs[0].summary;
        let ranks = one.ranks.expected;
        let outside = OutsideMpi::new(runs, question.is_weak);
        let (first_s, first_size, first_outside) = *first.get_or_insert((run_s, *size, outside));
        // Over a setting there is no ideal.
        let has_ideal = question.by.is_none_or(|by| by == BY_THREADS) && run_s > 0.0;
        let more = size.0 / first_size.0;
        let faster = first_s / run_s * if question.is_weak { more } else { 1.0 };
        let outside = first_outside.as_ref().zip(outside.as_ref());
        let pop = pop(runs, outside.map(|(first, this)| first.against(this)));
        ScaleSize {
            size: size.0,
            runs: runs.iter().map(|run| run.path.display().to_string()).collect(),
            ranks,
            hosts: one.hosts.len(),
            is_oversubscribed: one.placements.iter().any(|placement| placement.is_oversubscribed),
            run_s,
            run_range_s: range,
            speed_up: has_ideal.then_some(faster),
            efficiency: has_ideal.then_some(faster / more),
            pop,
        }
    };
    sizes.iter().map(of).collect()
}

/// What all ranks did outside MPI, or one rank when the work grows with the ranks: the medians of the runs.
#[derive(Clone, Copy)]
struct OutsideMpi {
    seconds: f64,
    /// Instructions and cycles; none when they are not known of each rank.
    counted: Option<[f64; 2]>,
}

impl OutsideMpi {
    fn new(runs: &[&Run], is_weak: bool) -> Option<OutsideMpi> {
        let median_of = |of: &dyn Fn(&Summary) -> Option<&Statistic>| {
            let of_run = |run: &&Run| {
                let one = of(&run.summary)?.avg;
                Some(if is_weak { one } else { one * f64::from(run.summary.ranks.expected) })
            };
            let known: Vec<f64> = runs.iter().filter_map(of_run).filter(|of| *of > 0.0).collect();
            (!known.is_empty()).then(|| median(known))
        };
        let counted = |of: fn(&ResourcesSummary) -> &Option<Statistic>| {
            median_of(&|summary| {
                let known = of(summary.resources.as_ref()?).as_ref();
                known.filter(|of| of.ranks == u64::from(summary.ranks.reduced))
            })
        };
        let instructions = counted(|of| &of.useful_instructions);
        let cycles = counted(|of| &of.useful_cycles);
        Some(OutsideMpi {
            seconds: median_of(&|summary| summary.useful_s.as_ref())?,
            counted: instructions.zip(cycles).map(<[f64; 2]>::from),
        })
    }

    /// This as a multiple of another, and of what that is made up.
    fn against(&self, other: &OutsideMpi) -> (f64, Option<ScaleComputation>) {
        let parts =
            self.counted.zip(other.counted).map(|([instructions, cycles], other_counts)| {
                let [other_instructions, other_cycles] = other_counts;
                ScaleComputation {
                    instructions: instructions / other_instructions,
                    ipc: (other_instructions / other_cycles) / (instructions / cycles),
                    frequency: (other_cycles / other.seconds) / (cycles / self.seconds),
                }
            });
        (self.seconds / other.seconds, parts)
    }
}

/// `computation`: how it scales, and the parts of that.
fn pop(runs: &[&Run], computation: Option<(f64, Option<ScaleComputation>)>) -> Option<ScalePop> {
    let of: Vec<_> = runs.iter().filter_map(|run| efficiencies(&run.summary)).collect();
    if of.is_empty() {
        return None;
    }
    let (load_balance, communication) =
        (median(of.iter().map(|of| of.load_balance)), median(of.iter().map(|of| of.communication)));
    let parallel = load_balance * communication;
    let (computation, computation_parts) = computation?;
    let global = parallel * computation;
    let splits: Option<Vec<_>> = of.iter().map(|of| of.split).collect();
    let serialisation = splits.as_ref().map(|of| median(of.iter().map(|of| of.serialisation)));
    // The two make the communication efficiency, also where they are medians.
    let transfer = serialisation.filter(|of| *of > 0.0).map(|of| (communication / of).min(1.0));
    let is_bound = splits.is_some_and(|of| of.iter().any(|of| of.is_bound));
    let hybrid: Option<Vec<_>> = of.iter().map(|of| of.hybrid).collect();
    let hybrid = hybrid.map(|of| {
        let of = |number: fn(&HybridEfficiencies) -> f64| median(of.iter().map(number));
        let (mpi, openmp) = (of(|of| of.mpi), of(|of| of.openmp));
        ScaleHybrid { threads: of(|of| of.threads as f64), mpi, openmp, parallel: mpi * openmp }
    });
    Some(ScalePop {
        load_balance,
        communication,
        serialisation,
        transfer,
        is_bound,
        parallel,
        computation,
        computation_parts,
        global,
        hybrid,
    })
}

/// The last size on as many hosts as the first, when larger sizes use more.
fn node_boundary(sizes: &[ScaleSize]) -> Option<f64> {
    let first = sizes.first()?.hosts;
    let at = sizes.iter().position(|size| size.hosts > first)?;
    Some(sizes[at.checked_sub(1)?].size)
}

/// Each number over the sizes.
fn rows(sizes: &BTreeMap<Size, Vec<&Run>>, target: f64) -> Vec<ScaleRow> {
    let mut of_keys: BTreeMap<ScaleKey, Vec<(f64, Vec<Spread>)>> = BTreeMap::new();
    for (size, runs) in sizes {
        for (key, mut spreads) in numbers_of(runs) {
            if is_part_of_run(key.kind) && spreads.len() == runs.len() {
                spreads = by_length(&spreads, &lengths(runs));
            }
            of_keys.entry(key).or_default().push((size.0, spreads));
        }
    }
    let mut rows: Vec<(ScaleRow, f64)> = of_keys
        .into_iter()
        .filter(|(_, sizes)| sizes.len() > 1)
        .map(|(key, sizes)| row(key, &sizes, target))
        .collect();
    shares(&mut rows);
    sums(&mut rows, target);
    let growth = |(row, expected): &(ScaleRow, f64)| {
        let last = row.points.last().map_or(0.0, |point| point.avg);
        if last > 0.0 { expected / last } else { 0.0 }
    };
    rows.sort_by(|one, other| {
        let share = |row: &(ScaleRow, f64)| row.0.target_share.unwrap_or(-1.0);
        share(other).total_cmp(&share(one)).then(growth(other).total_cmp(&growth(one)))
    });
    rows.into_iter().map(|(row, _)| row).collect()
}

/// The numbers of the runs of a size, in the order of the runs; those that do not have a number are left out.
fn numbers_of(runs: &[&Run]) -> BTreeMap<ScaleKey, Vec<Spread>> {
    let of_runs: Vec<BTreeMap<ScaleKey, Spread>> =
        runs.iter().map(|run| numbers(&run.summary)).collect();
    let keys: BTreeSet<&ScaleKey> = of_runs.iter().flat_map(BTreeMap::keys).collect();
    let mut of_keys = BTreeMap::new();
    for key in keys {
        let of_run = |of: &BTreeMap<ScaleKey, Spread>| of.get(key).copied();
        let Some(like) = of_runs.iter().find_map(of_run) else { continue };
        // A function that a run does not call has no calls there, and takes no time.
        let is_counted = matches!(key.kind, ScaleKind::Time | ScaleKind::Calls | ScaleKind::Bytes);
        let absent = is_counted.then_some(Spread { min: 0.0, avg: 0.0, max: 0.0, ..like });
        let spreads = of_runs.iter().filter_map(|of| of_run(of).or(absent)).collect();
        of_keys.insert(key.clone(), spreads);
    }
    of_keys
}

fn is_part_of_run(kind: ScaleKind) -> bool {
    use ScaleKind::{InMpi, OwnCode, RunTime, Time};
    matches!(kind, RunTime | InMpi | OwnCode | Time)
}

/// How long the runs of a size take.
fn lengths(runs: &[&Run]) -> Vec<f64> {
    let of = |run: &&Run| run.summary.rank_times_s().map_or(run.summary.job.elapsed_s, |of| of.avg);
    runs.iter().map(of).collect()
}

/// The shortest run first.
fn by_length(spreads: &[Spread], lengths: &[f64]) -> Vec<Spread> {
    let mut order: Vec<usize> = (0..spreads.len()).collect();
    order.sort_by(|one, other| lengths[*one].total_cmp(&lengths[*other]));
    order.into_iter().map(|at| spreads[at]).collect()
}

/// A number over the sizes, and its expected average at the target.
fn row(
    ScaleKey { kind, name }: ScaleKey,
    sizes: &[(f64, Vec<Spread>)],
    target: f64,
) -> (ScaleRow, f64) {
    let unit = sizes[0].1[0].unit;
    let single = sizes
        .iter()
        .flat_map(|(_, spreads)| spreads)
        .fold(0.0, |most: f64, spread| most.max(spread.noise));
    // The parts of a run are those of the run of middle length: medians of single parts, each of another run, would not add up.
    let median = |values: Vec<f64>| {
        if is_part_of_run(kind) {
            statistics::middle(&values).unwrap_or(0.0)
        } else {
            median(values)
        }
    };
    let point = |(size, spreads): &(f64, Vec<Spread>)| {
        let of = |of: fn(&Spread) -> f64| -> Vec<f64> { spreads.iter().map(of).collect() };
        let averages = of(|spread| spread.avg);
        ScalePoint {
            size: *size,
            min: median(of(|spread| spread.min)),
            range: range(&averages),
            avg: median(averages),
            max: median(of(|spread| spread.max)),
        }
    };
    let points: Vec<ScalePoint> = sizes.iter().map(point).collect();
    let noise = noise(&points).unwrap_or(single);
    let of = |of: fn(&ScalePoint) -> f64| -> Vec<Point> {
        points.iter().map(|point| (point.size, of(point))).collect()
    };
    let averages = of(|point| point.avg);
    let average = fit(&averages, noise, target);
    let maximum = fit(&of(|point| point.max), noise, target);
    let over: Vec<Point> = points
        .iter()
        .filter(|point| point.avg > 0.0)
        .map(|point| (point.size, point.max / point.avg))
        .collect();
    let differs = over.len() > 1 && over.iter().any(|(_, ratio)| *ratio > 1.0 + 1e-9);
    let imbalance = differs.then(|| fit(&over, noise, target));
    let expected = expected(&average, &averages, target);
    let (share, target_share) = (None, None);
    (
        ScaleRow { kind, name, unit, points, average, maximum, imbalance, share, target_share },
        expected,
    )
}

/// How much the mean differs from run to run: half the range of the runs of a size; the median over the sizes.
/// None when each size has one run.
fn noise(points: &[ScalePoint]) -> Option<f64> {
    let of = |point: &ScalePoint| {
        let [low, high] = point.range?;
        (point.avg > 0.0).then(|| (high - low) / 2.0 / point.avg)
    };
    let of: Vec<f64> = points.iter().filter_map(of).collect();
    statistics::median(&of)
}

/// Own code and functions make up the run time; waiting is in them.
fn shares(rows: &mut [(ScaleRow, f64)]) {
    let is_part = |row: &ScaleRow| matches!(row.kind, ScaleKind::OwnCode | ScaleKind::Time);
    let last = |row: &ScaleRow, size: f64| {
        row.points.last().filter(|point| point.size >= size).map_or(0.0, |point| point.avg)
    };
    let parts = || rows.iter().filter(|(row, _)| is_part(row));
    let largest = parts()
        .filter_map(|(row, _)| row.points.last())
        .fold(0.0_f64, |most, point| most.max(point.size));
    let now: f64 = parts().map(|(row, _)| last(row, largest)).sum();
    let then: f64 = parts().map(|(_, expected)| expected.max(0.0)).sum();
    let has_share = |row: &ScaleRow| is_part(row) || row.kind == ScaleKind::Waiting;
    for (row, expected) in rows.iter_mut().filter(|(row, _)| has_share(row)) {
        row.share = (now > 0.0).then(|| last(row, largest) / now);
        row.target_share = (then > 0.0).then(|| expected.max(0.0) / then);
    }
}

/// The run time and the time in MPI grow as the sum of their parts if any part has a law: a single term cannot
/// describe a sum of falling and growing parts, and no number may contradict another. A part without a law
/// counts with its expected value, between nothing and twice as much.
fn sums(rows: &mut [(ScaleRow, f64)], target: f64) {
    let sum = |kinds: &[ScaleKind]| -> Option<Fit> {
        let parts: Vec<_> = rows.iter().filter(|(row, _)| kinds.contains(&row.kind)).collect();
        let sizes = parts.iter().map(|(row, _)| &row.average.curve).max_by_key(|of| of.len())?;
        let of_part = |(row, expected): &(ScaleRow, f64), size: f64| {
            let is_this = |at: f64| at.total_cmp(&size).is_eq();
            let law = row.average.curve.iter().find(|at| is_this(at.size)).copied();
            law.unwrap_or_else(|| {
                let measured = row.points.iter().find(|point| is_this(point.size));
                let value = measured.map_or(*expected, |point| point.avg);
                let off = if measured.is_some() { 0.0 } else { value };
                Predicted { size, value, low: value - off, high: value + off }
            })
        };
        let at = |size: f64| {
            let of = || parts.iter().map(|part| of_part(part, size));
            let value: f64 = of().map(|part| part.value).sum();
            // The errors of the parts are independent.
            let off = |end: fn(&Predicted) -> f64| {
                of().map(|part| (end(&part) - part.value).powi(2)).sum::<f64>().sqrt()
            };
            let low = (value - off(|part| part.low)).max(0.0);
            Predicted { size, value, low, high: value + off(|part| part.high) }
        };
        let curve: Vec<Predicted> = sizes.iter().map(|of| at(of.size)).collect();
        let predicted = (!curve.is_empty()).then(|| at(target))?;
        Some(Fit {
            growth: Growth::Sum,
            error: None,
            outlier: None,
            predicted: Some(predicted),
            curve,
        })
    };
    let of_run = sum(&[ScaleKind::OwnCode, ScaleKind::Time]);
    let in_mpi = sum(&[ScaleKind::Time]);
    for (row, _) in rows.iter_mut() {
        let sum = match row.kind {
            ScaleKind::RunTime => &of_run,
            ScaleKind::InMpi => &in_mpi,
            _ => continue,
        };
        if let Some(sum) = sum {
            row.average = sum.clone();
        }
    }
}

/// How the runs differ besides their sizes, and what they lack.
fn remarks(sizes: &BTreeMap<Size, Vec<&Run>>) -> Vec<String> {
    let runs = || sizes.values().flatten();
    let mut remarks = Vec::new();
    let mut several = |what: &str, of: &dyn Fn(&Summary) -> String| {
        let all: BTreeSet<String> = runs().map(|run| of(&run.summary)).collect();
        if all.len() > 1 {
            let all: Vec<String> = all.into_iter().collect();
            remarks.push(format!("the runs have different {what}: {}", all.join("; ")));
        }
    };
    several("MPI libraries", &|summary| short_library(&summary.mpi.library));
    several("versions of gyan", &|summary| summary.tool.version.clone());
    for run in runs() {
        let ranks = &run.summary.ranks;
        if ranks.reduced < ranks.expected {
            remarks.push(format!(
                "{}: {} of {} ranks have no profile; averages are over the others",
                run.path.display(),
                ranks.expected - ranks.reduced,
                ranks.expected
            ));
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outside(seconds: f64, instructions: f64, cycles: f64) -> OutsideMpi {
        OutsideMpi { seconds, counted: Some([instructions, cycles]) }
    }

    #[test]
    fn each_part_of_the_computation_scalability_is_what_pop_says() {
        // 10 s at 2 GHz with 1.5 instructions per cycle, and 8 s at 2.5 GHz with 1 instruction per cycle.
        let (first, this) = (outside(10.0, 30e9, 20e9), outside(8.0, 20e9, 20e9));
        let (computation, parts) = first.against(&this);
        let ScaleComputation { instructions, ipc, frequency } = parts.unwrap();
        assert_eq!((computation, instructions, frequency), (1.25, 1.5, 1.25));
        assert!((ipc - 1.0 / 1.5).abs() < 1e-12, "{ipc}");
        let unknown = OutsideMpi { counted: None, ..this };
        assert_eq!(first.against(&unknown).1, None);
    }

    #[test]
    fn the_parts_make_the_computation_scalability() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut any = || {
            let [seconds, instructions, cycles] = [6.0, 18.0, 18.0].map(|up_to| {
                let exponent: f64 = random.f64() * up_to;
                10_f64.powf(exponent)
            });
            outside(seconds, instructions, cycles)
        };
        for _ in 0..1000 {
            let (computation, parts) = any().against(&any());
            let ScaleComputation { instructions, ipc, frequency } = parts.unwrap();
            let product = instructions * ipc * frequency;
            assert!((product / computation - 1.0).abs() < 1e-9, "{product} {computation}");
        }
    }
}
