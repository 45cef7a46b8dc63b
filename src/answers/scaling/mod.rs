//! How a program scales: sentences first, then the sizes, where the time goes, and what else grows.

mod page;
pub(crate) mod rows;
mod sentences;

use gyan_results::{
    Fit, Growth, Predicted, ScaleKind, ScalePoint, ScaleRow, ScaleSize, Scaling, Unit,
};

pub(crate) use crate::answers::scaling::page::page_of_scaling;
use crate::answers::scaling::sentences::sentences;
use crate::comparison::scaling::BY_THREADS;
use crate::document::limits::{first_rows, more_rows};
use crate::document::value::{Amount, Bound, InUnit, Plot, Value, line, row, seconds, share};
use crate::document::{Kind, Section, View, column, numbers, plural, spare, texts};
use crate::words::plural_of;

/// The value of [`Scaling::by`] when a size is the number of ranks.
const BY_RANKS: &str = "ranks";
/// A smaller share of the time is not worth a row.
const SHARE_AT_LEAST: f64 = 0.001;
/// A smaller slope counts as none.
const LEAST_SLOPE: f64 = 0.05;

/// `has_points`: the numbers at each size, instead of one row for all of them.
pub(crate) fn scaling(of: &Scaling, has_points: bool, all: bool) -> View<'_> {
    let mut subtitle = vec![about(of)];
    let mut sections = Vec::new();
    if has_points {
        sections.extend(of.rows.iter().map(|row| points(of, row)));
    } else {
        subtitle.extend(sentences(of));
        sections.push(sizes(of));
        sections.extend(threads(of));
        let tables = groups(of, all).into_iter().map(|(_, name, rows)| table(of, name, rows, all));
        sections.extend(tables);
    }
    if let Some(last) = sections.last_mut() {
        last.notes.extend(of.remarks.iter().map(Value::from));
    }
    View { title: title(of), subtitle, sections }
}

/// The tables, each with its name on a page, its title and its rows; those without rows are left out.
fn groups(of: &Scaling, all: bool) -> Vec<(&'static str, &'static str, Vec<&ScaleRow>)> {
    let (mut times, mut waiting, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for row in of.rows.iter().filter(|row| all || is_worth_a_row(row)) {
        match (row.kind, row.target_share) {
            (ScaleKind::Waiting, _) => waiting.push(row),
            (_, Some(_)) => times.push(row),
            (_, None) => others.push(row),
        }
    }
    let mut groups = vec![
        ("time", "Where the time goes", times),
        ("waiting", "How much of it is waiting for other ranks", waiting),
        ("growth", "What else grows", others),
    ];
    groups.retain(|(_, _, rows)| !rows.is_empty());
    groups
}

/// Numbers that are shown elsewhere, are 0, stay the same or take no time are only in the whole list.
fn is_worth_a_row(row: &ScaleRow) -> bool {
    if let Some(share) = row.target_share {
        return share.max(row.share.unwrap_or(0.0)) >= SHARE_AT_LEAST;
    }
    let is_said = matches!(row.kind, ScaleKind::RunTime | ScaleKind::InMpi);
    let is_still = match row.average.growth {
        Growth::Zero | Growth::Constant { .. } => true,
        Growth::Slope { slope } => slope.is_some_and(|slope| slope.abs() < LEAST_SLOPE),
        _ => false,
    };
    !is_said && !is_still
}

/// `halo: 5 runs, from 2 to 32 ranks on 1 host`.
fn title(of: &Scaling) -> Value<'_> {
    let runs: usize = of.sizes.iter().map(|size| size.runs.len()).sum();
    let hosts = |size: Option<&ScaleSize>| size.map_or(0, |size| size.hosts);
    let (first, last) = (of.sizes.first(), of.sizes.last());
    let on = match (hosts(first), hosts(last)) {
        (one, other) if one == other => line![" on ", one, " host", plural(one as u64)],
        (one, other) => line![" on ", one, " to ", other, " hosts"],
    };
    let program = if of.program.is_empty() { "(not recorded)" } else { &of.program };
    let ends = |size: Option<&ScaleSize>| number(size.map_or(0.0, |size| size.size));
    let ends = line!["from ", ends(first), " to ", ends(last), " ", &of.by];
    line![program, ": ", runs, " runs, ", ends, on]
}

fn about(of: &Scaling) -> Value<'_> {
    let work = match (of.by.as_str(), of.is_weak) {
        (BY_RANKS, true) => "the work grows with the number of ranks (weak scaling)",
        (BY_RANKS | BY_THREADS, false) => {
            "the same work at each size (strong scaling; else --weak)"
        }
        _ => "sizes are values of a setting",
    };
    line![work, "; predictions for ", number(of.target), " ", &of.by, " (--target)"]
}

/// A size as it reads: a whole number without decimals.
fn number<'a>(size: f64) -> Value<'a> {
    Unit::Count.double(size).into()
}

/// ` with 32 ranks`, ` at 4096` of a setting.
fn at_size<'a>(of: &Scaling, size: f64) -> Value<'a> {
    match of.by.as_str() {
        BY_RANKS => line!["with ", number(size), " rank", plural_of(size)],
        BY_THREADS => line!["with ", number(size), " thread", plural_of(size)],
        _ => line!["at ", number(size)],
    }
}

/// Of the column of sizes.
fn heading(of: &Scaling) -> &'static str {
    match of.by.as_str() {
        BY_RANKS => "RANKS",
        BY_THREADS => "THREADS",
        _ => "SIZE",
    }
}

/// The sizes: the speed at each, and the efficiencies (of POP).
fn sizes(of: &Scaling) -> Section<'_> {
    let all = &of.sizes;
    let has_ideal = all.iter().all(|size| size.speed_up.is_some());
    let has_hosts = all.iter().any(|size| size.hosts != all[0].hosts);
    let has_runs = all.iter().any(|size| size.runs.len() > 1);
    // Ranks whose threads share their work do less of it.
    let has_pop = of.by != BY_THREADS && all.iter().any(|size| size.pop.is_some());
    let has_split = all.iter().any(|size| size.pop.is_some_and(|pop| pop.transfer.is_some()));
    let has_parts =
        all.iter().any(|size| size.pop.is_some_and(|pop| pop.computation_parts.is_some()));
    let row = |size: &ScaleSize| {
        let mut cells = row![number(size.size)];
        cells.extend(has_hosts.then(|| size.hosts.into()));
        cells.extend(has_runs.then(|| size.runs.len().into()));
        cells.push(seconds(size.run_s).into());
        cells.extend(has_runs.then(|| {
            size.run_range_s
                .map_or(Value::Nothing, |[low, high]| line![seconds(low), " to ", seconds(high)])
        }));
        if has_ideal {
            let ideal = size.size / all[0].size;
            cells.extend(row![size.speed_up, ideal, size.efficiency.map(share)]);
        }
        if has_pop {
            let parts = size.pop.map(|pop| {
                [pop.load_balance, pop.communication, pop.parallel, pop.computation, pop.global]
            });
            let part = |at: usize| Value::from(parts.map(|parts| share(parts[at])));
            cells.extend((0..2).map(part));
            if has_split {
                let split = size.pop.map(|pop| {
                    let bounded = |of: Option<f64>, bound| {
                        of.map(|of| Amount {
                            bound: if pop.is_bound { bound } else { Bound::None },
                            ..share(of)
                        })
                    };
                    row![
                        bounded(pop.serialisation, Bound::AtMost),
                        bounded(pop.transfer, Bound::AtLeast)
                    ]
                });
                cells.extend(split.unwrap_or_else(|| row![Value::Nothing, Value::Nothing]));
            }
            cells.extend((2..4).map(part));
            if has_parts {
                let parts = size.pop.and_then(|pop| pop.computation_parts);
                let parts = parts.map(|of| [of.instructions, of.ipc, of.frequency]);
                cells.extend((0..3).map(|at| Value::from(parts.map(|parts| share(parts[at])))));
            }
            cells.push(part(4));
        }
        cells
    };
    let mut columns = numbers([heading(of)]);
    columns.extend(has_hosts.then(|| column("HOSTS", Kind::Number)));
    columns.extend(has_runs.then(|| column("RUNS", Kind::Spare)));
    columns.extend(numbers(["RUN TIME"]));
    columns.extend(has_runs.then(|| column("OF RUNS", Kind::Spare)));
    if has_ideal {
        columns.extend(numbers(["SPEED-UP"]));
        columns.extend(spare(["IDEAL"]));
        columns.extend(numbers(["EFFICIENCY"]));
    }
    if has_pop {
        columns.extend(numbers(["BALANCE", "COMM"]));
        if has_split {
            columns.extend(numbers(["SERIAL", "TRANSFER"]));
        }
        columns.extend(spare(["PARALLEL"]));
        columns.extend(numbers(["COMPUTE"]));
        if has_parts {
            columns.extend(numbers(["INSTR", "IPC", "FREQ"]));
        }
        columns.extend(numbers(["GLOBAL"]));
    }
    let about = "from BALANCE on: the efficiencies of POP (gyan explain efficiencies)";
    let of_split =
        "COMM is SERIAL x TRANSFER: what ranks wait for each other, and what moving data takes";
    let of_parts = "COMPUTE is INSTR x IPC x FREQ: more or fewer instructions, instructions per cycle, cycles a second";
    let notes =
        [has_pop.then_some(about), has_split.then_some(of_split), has_parts.then_some(of_parts)];
    let notes = notes.into_iter().flatten().map(Value::from).collect();
    Section { title: "".into(), columns, rows: all.iter().map(row).collect(), notes }
}

/// The efficiencies of the threads of OpenMP at each size; none where no size has some.
fn threads(of: &Scaling) -> Option<Section<'_>> {
    let has_threads = of.by != BY_THREADS;
    let row = |size: &ScaleSize| {
        let hybrid = size.pop.and_then(|pop| pop.hybrid);
        let mut cells = row![number(size.size)];
        if has_threads {
            cells.push(hybrid.map_or(Value::Nothing, |of| number(of.threads)));
        }
        let parts = hybrid.map(|of| [of.mpi, of.openmp, of.parallel].map(share));
        cells.extend((0..3).map(|at| Value::from(parts.map(|parts| parts[at]))));
        cells
    };
    let has_some = of.sizes.iter().any(|size| size.pop.is_some_and(|pop| pop.hybrid.is_some()));
    let mut columns = numbers([heading(of)]);
    columns.extend(has_threads.then(|| column("THREADS", Kind::Number)));
    columns.extend(numbers(["MPI", "OPENMP", "PARALLEL"]));
    let about = "of the time of all threads of OpenMP: PARALLEL is MPI x OPENMP (gyan help openmp)";
    has_some.then(|| Section {
        title: "Threads".into(),
        columns,
        rows: of.sizes.iter().map(row).collect(),
        notes: vec![about.into()],
    })
}

/// A row for each number: its course over the sizes, and its law.
fn table<'a>(
    of: &'a Scaling,
    name: &'static str,
    rows: Vec<&'a ScaleRow>,
    all: bool,
) -> Section<'a> {
    let has_shares = rows.iter().any(|row| row.target_share.is_some());
    let has_intervals = rows.iter().any(|row| row.average.predicted.is_some());
    let (rows, cut_off) = first_rows(rows, all);
    let cells = rows.iter().map(|of_row| {
        let (first, last) = (of_row.points.first(), of_row.points.last());
        let average = |point: Option<&ScalePoint>| point.map(|point| of_row.unit.double(point.avg));
        let mut cells = row![
            name_of(of_row),
            average(first),
            average(last),
            course(of, of_row),
            over_average(of_row, last),
            growth(&of_row.average),
        ];
        if has_intervals {
            let [at, between] = predicted(of_row);
            cells.extend([at, between]);
        }
        if has_shares {
            cells.extend(row![of_row.share.map(share), of_row.target_share.map(share)]);
        }
        cells
    });
    let mut columns = texts(["AVERAGE RANK"]);
    columns.extend(spare(["FIRST SIZE"]));
    columns.extend(numbers(["LAST SIZE"]));
    columns.extend(spare(["COURSE", "MAX/AVG"]));
    columns.extend(texts(["GROWTH"]));
    if has_intervals {
        columns.extend(numbers(["PREDICTED"]));
        columns.extend(spare(["FROM ... TO"]));
    }
    if has_shares {
        columns.extend(numbers(["SHARE", "SHARE THEN"]));
    }
    let title = match (name, has_shares) {
        (name, true) => line![name, ", by the predicted share"],
        (name, false) => line![name, ", by the predicted growth"],
    };
    Section { title, columns, rows: cells.collect(), notes: more_rows(cut_off) }
}

/// The name of a row, in words.
fn name_of(row: &ScaleRow) -> Value<'_> {
    match row.kind {
        ScaleKind::Calls => line![&row.name, ", calls"],
        ScaleKind::Bytes => line![&row.name, ", bytes"],
        _ => (&row.name).into(),
    }
}

/// The course of the average over the sizes of the runs.
fn course<'a>(of: &Scaling, row: &ScaleRow) -> Value<'a> {
    let at = |size: &ScaleSize| {
        row.points.iter().find(|point| point.size.total_cmp(&size.size).is_eq()).map(|at| at.avg)
    };
    let peaks: Vec<Option<f64>> = of.sizes.iter().map(at).collect();
    let highest = peaks.iter().flatten().fold(0.0_f64, |most, peak| most.max(*peak));
    Value::Plot(Plot::Course { peaks: peaks.into(), highest })
}

/// Whether only the average over the ranks is known.
fn is_average_only(row: &ScaleRow) -> bool {
    row.kind == ScaleKind::Waiting
}

/// The maximum as a multiple of the average.
fn over_average(row: &ScaleRow, point: Option<&ScalePoint>) -> Option<f64> {
    let point = point.filter(|point| point.avg > 0.0 && !is_average_only(row))?;
    // Rounded to what can be told from 1.
    Some((point.max / point.avg * 100.0).round() / 100.0)
}

/// The prediction of the law at the target, with its interval.
fn predicted<'a>(row: &ScaleRow) -> [Value<'a>; 2] {
    let Some(Predicted { value, low, high, .. }) = row.average.predicted else {
        return [Value::Nothing, Value::Nothing];
    };
    let is_exact = (high - low).abs() <= 1e-6 * value.abs();
    let between = if is_exact {
        "exact law".into()
    } else {
        line![row.unit.double(low), " to ", row.unit.double(high)]
    };
    [row.unit.double(value).into(), between]
}

/// `p log2(p)`, `constant`, `up to 16, then down`, `slope 0.98`.
fn growth<'a>(fit: &Fit) -> Value<'a> {
    match fit.growth {
        Growth::Zero => "0".into(),
        Growth::Constant { .. } => "constant".into(),
        Growth::Law { coefficient, exponent, logarithms, .. } => {
            let sign = if coefficient < 0.0 { "a - " } else { "" };
            let without = fit.outlier.map_or("".into(), |size| line![" without ", number(size)]);
            line![sign, term(exponent, logarithms), without]
        }
        Growth::Slope { slope: Some(slope) } => line!["slope ", Unit::Count.double(rounded(slope))],
        Growth::Slope { slope: None } => "from 0".into(),
        Growth::Bend { until, rises, stays, .. } => {
            let (before, after) = directions(rises, stays);
            line![before, " to ", number(until), ", then ", after]
        }
        Growth::Sum => "as its parts".into(),
        Growth::Irregular => "irregular".into(),
    }
}

fn directions(rises: bool, stays: bool) -> (&'static str, &'static str) {
    match (rises, stays) {
        (true, true) => ("up", "level"),
        (true, false) => ("up", "down"),
        (false, true) => ("down", "level"),
        (false, false) => ("down", "up"),
    }
}

/// A slope is known to two decimals at best.
fn rounded(slope: f64) -> f64 {
    (slope * 100.0).round() / 100.0
}

/// `p^(1/3) log2(p)^2`.
fn term(exponent: f64, logarithms: i32) -> String {
    let exponent = match exponent {
        0.0 => String::new(),
        1.0 => "p".to_owned(),
        -1.0 => "1/p".to_owned(),
        whole if whole.fract() == 0.0 => format!("p^{whole}"),
        part => {
            // Exponents are halves, thirds and quarters.
            let over = [2.0, 3.0, 4.0].into_iter().find(|over| (part * over).fract().abs() < 1e-9);
            over.map_or_else(
                || format!("p^{part}"),
                |over| format!("p^({}/{over})", (part * over).round()),
            )
        }
    };
    let logarithm = match logarithms {
        0 => "",
        1 => "log2(p)",
        _ => "log2(p)^2",
    };
    [exponent.as_str(), logarithm]
        .iter()
        .filter(|part| !part.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Minimum, average and maximum at each size, beside what the law says.
fn points<'a>(of: &'a Scaling, row: &'a ScaleRow) -> Section<'a> {
    if row.average.growth == Growth::Zero {
        return Section::of_notes(name_of(row), vec!["0 at each size".into()]);
    }
    let curve = |size: f64| {
        let at = row.average.curve.iter().find(|at| at.size.total_cmp(&size).is_eq());
        at.map(|at| row.unit.double(at.value))
    };
    let has_curve = !row.average.curve.is_empty();
    let cells = row.points.iter().map(|point| {
        let mut cells = row![number(point.size)];
        let [min, avg, max] = [point.min, point.avg, point.max].map(|of| row.unit.double(of));
        let of_a_rank = |amount| (!is_average_only(row)).then_some(amount);
        cells.extend(row![of_a_rank(min), avg, of_a_rank(max), over_average(row, Some(point))]);
        if has_curve {
            cells.push(curve(point.size).into());
        }
        cells
    });
    let mut rows: Vec<Vec<Value>> = cells.collect();
    if let Some(Predicted { size, value, .. }) = row.average.predicted {
        let mut cells = row![number(size), Value::Nothing, Value::Nothing, Value::Nothing];
        cells.extend(row![Value::Nothing, row.unit.double(value)]);
        rows.push(cells);
    }
    let mut columns = numbers([heading(of), "MINIMUM", "AVERAGE", "MAXIMUM", "MAX/AVG"]);
    if has_curve {
        columns.extend(numbers(["LAW"]));
    }
    let mut notes =
        vec![line!["average: ", whole_growth(row, &row.average), error_of(&row.average)]];
    if row.maximum.growth != row.average.growth {
        notes.push(line!["maximum: ", whole_growth(row, &row.maximum), error_of(&row.maximum)]);
    }
    notes.extend(
        row.imbalance.as_ref().map(|fit| line!["maximum/average: ", growth(fit), error_of(fit)]),
    );
    if let Some(at) = of.node_boundary {
        notes.push(line!["on one node until ", number(at), ", on more above"]);
    }
    Section { title: name_of(row), columns, rows, notes }
}

/// The law with its coefficients.
fn whole_growth<'a>(row: &ScaleRow, fit: &Fit) -> Value<'a> {
    let Growth::Law { constant, coefficient, exponent, logarithms } = fit.growth else {
        return growth(fit);
    };
    let by = row.unit.double(coefficient.abs());
    let first: Value = match (constant, coefficient < 0.0) {
        (0.0, false) => "".into(),
        (constant, false) => line![row.unit.double(constant), " + "],
        (constant, true) => line![row.unit.double(constant), " - "],
    };
    let without = fit.outlier.map_or("".into(), |size| line![", without the size ", number(size)]);
    let term = term(exponent, logarithms);
    // 20/p, not 20 1/p.
    let term = term.strip_prefix('1').map_or_else(|| format!(" {term}"), str::to_owned);
    line![first, by, term, without]
}

fn error_of<'a>(fit: &Fit) -> Value<'a> {
    match fit.error {
        Some(error) if error > 1e-6 => {
            line!["; off by ", share(error), " at a size that is left out"]
        }
        Some(_) => "; exact at each size".into(),
        None => "".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_read_as_one_writes_them() {
        assert_eq!(term(1.0, 0), "p");
        assert_eq!(term(0.0, 1), "log2(p)");
        assert_eq!(term(-1.0, 0), "1/p");
        assert_eq!(term(2.0 / 3.0, 1), "p^(2/3) log2(p)");
        assert_eq!(term(-0.5, 0), "p^(-1/2)");
        assert_eq!(term(2.5, 2), "p^(5/2) log2(p)^2");
        assert_eq!(term(3.0, 0), "p^3");
    }
}
