//! How a program scales on one page: curves on logarithmic scales, with the laws and their bands.

use gyan_results::{Fit, Predicted, ScaleKind, ScaleRow, Scaling, Unit};

use crate::answers::scaling::sentences::sentences;
use crate::answers::scaling::{
    about, error_of, groups, growth, name_of, points, sizes, table, threads, title, whole_growth,
};
use crate::document::page::pictures::{At, Chart, Curve, Curves, Picture};
use crate::document::page::{Page, PageBlock};
use crate::document::value::{Value, line};

const CHARTS_AT_MOST: usize = 8;

/// `has_points`: only the rows that were selected, with their numbers, and nothing about the whole run.
pub(crate) fn page_of_scaling(of: &Scaling, has_points: bool) -> Page<'_> {
    if has_points {
        let mut block = PageBlock::new("growth", "How it grows");
        block.says.push(about(of));
        for row in &of.rows {
            block.charts.push(chart(of, row));
            block.charts.extend(imbalance(of, row));
        }
        block.extend(false, of.rows.iter().map(|row| points(of, row)));
        return Page { title: title(of), headline: None, blocks: vec![block] };
    }
    let mut sentences = sentences(of);
    let headline = (!sentences.is_empty()).then(|| sentences.remove(0));
    let mut run = PageBlock::new("scaling", "How it scales");
    run.says.push(about(of));
    run.says.extend(sentences);
    run.says.extend(of.remarks.iter().map(Value::from));
    let total = of.rows.iter().find(|row| row.kind == ScaleKind::RunTime);
    run.charts.extend(total.map(|row| chart(of, row)));
    run.charts.extend(efficiency(of));
    run.extend(true, [sizes(of)].into_iter().chain(threads(of)));
    let mut blocks = vec![run];
    for (id, name, rows) in groups(of, false) {
        let mut block = PageBlock::new(id, name);
        block.charts = rows.iter().take(CHARTS_AT_MOST).map(|row| chart(of, row)).collect();
        block.push(false, table(of, name, rows, true));
        blocks.push(block);
    }
    let uneven = of.rows.iter().filter(|row| is_uneven(row));
    let mut most = PageBlock::new("imbalance", "The rank with the most");
    let ratio =
        "The largest number of a rank as a multiple of the average: 1 where all have the same.";
    most.says.push(ratio.into());
    most.charts = uneven.filter_map(|row| imbalance(of, row)).take(CHARTS_AT_MOST).collect();
    blocks.extend((!most.charts.is_empty()).then_some(most));
    let whole = table(of, "All numbers", of.rows.iter().collect(), true);
    blocks.push(PageBlock::new("numbers", "All numbers").with(false, [whole]));
    Page { title: title(of), headline, blocks }
}

fn is_uneven(row: &ScaleRow) -> bool {
    row.points.last().is_some_and(|last| last.avg > 0.0 && last.max > 1.5 * last.avg)
}

fn curves<'a>(of: &'a Scaling, unit: Unit, drawn: Vec<Curve<'a>>) -> Picture<'a> {
    Picture::Curves(Curves { unit, by: (&of.by).into(), boundary: of.node_boundary, drawn })
}

/// What was measured and its law, as far as there are points of them.
fn with_law<'a>(measured: Curve<'a>, fit: &Fit) -> Vec<Curve<'a>> {
    let at = |at: &Predicted| At { x: at.size, low: at.low, value: at.value, high: at.high };
    let (name, points) = ("law, from ... to".into(), fit.curve.iter().map(at).collect());
    let law = Curve { name, points, is_measured: false };
    [measured, law].into_iter().filter(|curve| !curve.points.is_empty()).collect()
}

/// Minimum, average and maximum with the law of the average.
fn chart<'a>(of: &'a Scaling, row: &'a ScaleRow) -> Chart<'a> {
    let measured = row.points.iter();
    let curve = Curve {
        name: "average, from minimum to maximum".into(),
        points: measured
            .map(|at| At { x: at.size, low: at.min, value: at.avg, high: at.max })
            .collect(),
        is_measured: true,
    };
    let drawn = with_law(curve, &row.average);
    let says = line![whole_growth(row, &row.average), error_of(&row.average)];
    Chart::new(name_of(row), says, curves(of, row.unit, drawn))
}

/// The speed-up beside the ideal one.
fn efficiency(of: &Scaling) -> Option<Chart<'_>> {
    let first = f64::from(of.sizes.first()?.ranks);
    let at = |x: f64, value: f64| At { x, low: value, value, high: value };
    let measured = of.sizes.iter().filter_map(|size| Some(at(size.size, size.speed_up?)));
    let measured: Vec<At> = measured.collect();
    if measured.is_empty() {
        return None;
    }
    let ideal = of.sizes.iter().map(|size| at(size.size, f64::from(size.ranks) / first)).collect();
    let drawn = vec![
        Curve { name: "speed-up".into(), points: measured, is_measured: true },
        Curve { name: "ideal".into(), points: ideal, is_measured: false },
    ];
    let says =
        if of.is_weak { "times the work of the smallest size" } else { "over the smallest size" };
    Some(Chart::new("How much faster is it with more ranks?", says, curves(of, Unit::Count, drawn)))
}

fn imbalance<'a>(of: &'a Scaling, row: &'a ScaleRow) -> Option<Chart<'a>> {
    let fit = row.imbalance.as_ref()?;
    let points = row.points.iter().filter(|point| point.avg > 0.0).map(|point| {
        let ratio = point.max / point.avg;
        At { x: point.size, low: ratio, value: ratio, high: ratio }
    });
    let (name, points) = ("maximum over average".into(), points.collect());
    let drawn = with_law(Curve { name, points, is_measured: true }, fit);
    let says = line![growth(fit), error_of(fit)];
    let name = line![name_of(row), ": maximum over average"];
    Some(Chart::new(name, says, curves(of, Unit::Count, drawn)))
}
