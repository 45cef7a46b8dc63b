//! How a program scales: sentences first, then the sizes, where the time goes, and what else grows.

mod page;
mod sentences;

use gyan_results::{
    Fit, Growth, Predicted, ScaleKind, ScalePoint, ScaleRow, ScaleSize, ScaleUnit, Scaling,
};

use super::limits::{first_rows, more_rows};
use super::value::{Amount, Plot, Unit, Value, line, row, seconds, share};
use super::{Kind, Section, View, column, numbers, plural, texts};
pub(crate) use page::page_of_scaling;
use sentences::sentences;

/// `has_points`: the numbers at each size, instead of one row for all of them.
pub(crate) fn scaling(of: &Scaling, has_points: bool, all: bool) -> View<'_> {
    let mut subtitle = vec![about(of)];
    let mut sections = Vec::new();
    if has_points {
        sections.extend(of.rows.iter().map(|row| points(of, row)));
    } else {
        subtitle.extend(sentences(of));
        sections.push(sizes(of));
        sections.extend(efficiencies(of));
        let (times, others) = of.rows.iter().partition(|row| row.target_share.is_some());
        sections.push(table(of, "Where the time goes", times, all));
        let others: Vec<&ScaleRow> = others;
        let others = others.into_iter().filter(|row| all || is_worth_a_row(row)).collect();
        sections.push(table(of, "What else grows", others, all));
        sections.retain(|section| !section.rows.is_empty());
    }
    if let Some(last) = sections.last_mut() {
        last.notes.extend(of.remarks.iter().map(Value::from));
    }
    View { title: title(of), subtitle, sections }
}

/// What is said once already, is 0, or stays the same, is in the whole list only.
fn is_worth_a_row(row: &ScaleRow) -> bool {
    let is_said = matches!(row.kind, ScaleKind::RunTime | ScaleKind::InMpi);
    let is_still = match row.average.growth {
        Growth::Zero | Growth::Constant { .. } => true,
        Growth::Slope { slope } => slope.is_some_and(|slope| slope.abs() < 0.05),
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
    let ends = line!["from ", size(first), " to ", size(last), " ", unit_of_size(of)];
    line![program, ": ", runs, " runs, ", ends, on]
}

fn about(of: &Scaling) -> Value<'_> {
    let work = match (of.by.as_str(), of.is_weak) {
        ("ranks", true) => "the work grows with the number of ranks (weak scaling)",
        ("ranks", false) => "the same work at each size (strong scaling; --weak otherwise)",
        _ => "sizes are values of a setting",
    };
    let target = line![number(of.target), " ", unit_of_size(of)];
    line![work, "; predicted: ", target, " (--target)"]
}

fn size<'a>(of: Option<&ScaleSize>) -> Value<'a> {
    of.map_or(Value::Nothing, |of| number(of.size))
}

/// A size as it reads: a whole number without decimals.
fn number<'a>(size: f64) -> Value<'a> {
    Unit::Count.double(size).into()
}

fn unit_of_size(of: &Scaling) -> &str {
    &of.by
}

fn amount(unit: ScaleUnit, value: f64) -> Amount {
    match unit {
        ScaleUnit::Count => Unit::Count,
        ScaleUnit::Seconds => Unit::Seconds,
        ScaleUnit::Bytes => Unit::Bytes,
    }
    .double(value)
}

fn sizes(of: &Scaling) -> Section<'_> {
    let first = of.sizes.first().map_or(1.0, |size| f64::from(size.ranks));
    let has_range = of.sizes.iter().any(|size| size.run_range_s.is_some());
    let rows = of.sizes.iter().map(|size| {
        let ideal =
            if of.is_weak && of.by == "ranks" { None } else { Some(f64::from(size.ranks) / first) };
        let mut cells = row![number(size.size), size.hosts, size.runs.len(), seconds(size.run_s)];
        if has_range {
            cells.push(
                size.run_range_s.map_or(Value::Nothing, |[low, high]| {
                    line![seconds(low), " to ", seconds(high)]
                }),
            );
        }
        if of.by == "ranks" {
            cells.extend(row![
                size.speed_up,
                ideal.or(Some(f64::from(size.ranks) / first)),
                size.efficiency.map(share),
            ]);
        }
        cells
    });
    let by = if of.by == "ranks" { "RANKS" } else { "SIZE" };
    let mut columns = numbers([by, "HOSTS", "RUNS", "RUN TIME"]).to_vec();
    if has_range {
        columns.push(column("OF RUNS", Kind::Number));
    }
    if of.by == "ranks" {
        columns.extend(numbers(["SPEED-UP", "IDEAL", "EFFICIENCY"]));
    }
    Section { title: "".into(), columns, rows: rows.collect(), notes: Vec::new() }
}

/// The efficiencies of POP at each size.
fn efficiencies(of: &Scaling) -> Option<Section<'_>> {
    let rows = of.sizes.iter().filter_map(|size| {
        let pop = size.pop?;
        let parts =
            [pop.load_balance, pop.communication, pop.parallel, pop.computation, pop.global];
        let mut cells = row![number(size.size)];
        cells.extend(parts.map(|part| Value::from(share(part))));
        Some(cells)
    });
    let rows: Vec<Vec<Value>> = rows.collect();
    let by = if of.by == "ranks" { "RANKS" } else { "SIZE" };
    let columns =
        numbers([by, "LOAD BALANCE", "COMMUNICATION", "PARALLEL", "COMPUTATION", "GLOBAL"]);
    let section = Section { title: "".into(), columns, rows, notes: Vec::new() };
    (!section.rows.is_empty()).then_some(section)
}

/// A row for each number: how it goes over the sizes, and by which law.
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
        let average =
            |point: Option<&ScalePoint>| point.map(|point| amount(of_row.unit, point.avg));
        let mut cells = row![
            name_of(of_row),
            average(first),
            average(last),
            course(of, of_row),
            over_average(last),
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
    columns.extend(numbers(["SMALLEST", "LARGEST"]));
    columns.extend(texts(["COURSE"]));
    columns.extend(numbers(["MAX/AVG"]));
    columns.extend(texts(["GROWTH"]));
    if has_intervals {
        columns.extend(numbers(["PREDICTED"]));
        columns.extend(texts(["95 %"]));
    }
    if has_shares {
        columns.extend(numbers(["SHARE", "PREDICTED"]));
    }
    let title = match (name, has_shares) {
        (name, true) => line![name, ", by the predicted share"],
        (name, false) => line![name, ", by the predicted growth"],
    };
    Section { title, columns, rows: cells.collect(), notes: more_rows(cut_off) }
}

/// What a row is of, in words.
fn name_of(row: &ScaleRow) -> Value<'_> {
    match row.kind {
        ScaleKind::Calls => line![&row.name, ", calls"],
        ScaleKind::Bytes => line![&row.name, ", bytes"],
        _ => (&row.name).into(),
    }
}

/// How the average goes over the sizes of the runs.
fn course<'a>(of: &Scaling, row: &ScaleRow) -> Value<'a> {
    let at = |size: &ScaleSize| {
        row.points.iter().find(|point| point.size.total_cmp(&size.size).is_eq()).map(|at| at.avg)
    };
    let peaks: Vec<Option<f64>> = of.sizes.iter().map(at).collect();
    let highest = peaks.iter().flatten().fold(0.0_f64, |most, peak| most.max(*peak));
    Value::Plot(Plot::Course { peaks: peaks.into(), highest })
}

/// The maximum as a multiple of the average.
fn over_average(point: Option<&ScalePoint>) -> Option<f64> {
    let point = point.filter(|point| point.avg > 0.0)?;
    // To what can be told from 1.
    Some((point.max / point.avg * 100.0).round() / 100.0)
}

/// What the law says at the target, and between what.
fn predicted<'a>(row: &ScaleRow) -> [Value<'a>; 2] {
    let Some(Predicted { value, low, high, .. }) = row.average.predicted else {
        return [Value::Nothing, Value::Nothing];
    };
    let is_exact = (high - low).abs() <= 1e-6 * value.abs();
    let between = if is_exact {
        "exact law".into()
    } else {
        line![amount(row.unit, low), " to ", amount(row.unit, high)]
    };
    [amount(row.unit, value).into(), between]
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
    let curve = |size: f64| {
        let at = row.average.curve.iter().find(|at| at.size.total_cmp(&size).is_eq());
        at.map(|at| amount(row.unit, at.value))
    };
    let has_curve = !row.average.curve.is_empty();
    let cells = row.points.iter().map(|point| {
        let mut cells = row![number(point.size)];
        let numbers = [point.min, point.avg, point.max];
        cells.extend(numbers.map(|number| Value::from(amount(row.unit, number))));
        cells.push(over_average(Some(point)).into());
        if has_curve {
            cells.push(curve(point.size).into());
        }
        cells
    });
    let mut rows: Vec<Vec<Value>> = cells.collect();
    if let Some(Predicted { size, value, .. }) = row.average.predicted {
        let mut cells = row![number(size), Value::Nothing, Value::Nothing, Value::Nothing];
        cells.extend(row![Value::Nothing, amount(row.unit, value)]);
        rows.push(cells);
    }
    let by = if of.by == "ranks" { "RANKS" } else { "SIZE" };
    let mut columns = numbers([by, "MINIMUM", "AVERAGE", "MAXIMUM", "MAX/AVG"]).to_vec();
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
        notes.push(line!["more hosts from above ", number(at), " ", unit_of_size(of), " on"]);
    }
    Section { title: name_of(row), columns, rows, notes }
}

/// The law with its coefficients.
fn whole_growth<'a>(row: &ScaleRow, fit: &Fit) -> Value<'a> {
    let Growth::Law { constant, coefficient, exponent, logarithms } = fit.growth else {
        return growth(fit);
    };
    let sign = if coefficient < 0.0 { " - " } else { " + " };
    let by = amount(row.unit, coefficient.abs());
    let without = fit.outlier.map_or("".into(), |size| line![", without the size ", number(size)]);
    line![amount(row.unit, constant), sign, by, " ", term(exponent, logarithms), without]
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
