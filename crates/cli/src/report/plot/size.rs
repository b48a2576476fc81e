//! The plots of `size`: goodput and p99 over connections, with the knee, the law and the objective.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_sizing::report::{Size, StepReport};

use super::{Plot, Series, Shape};

/// Goodput and p99 over connections, with the knee, the law and the objective.
pub(crate) fn plots(report: &Size, words: &Catalogue) -> [Plot; 2] {
    let word = |id: &'static str| words.text(&Message::new(id));
    let mut closed: Vec<&StepReport> = report.steps.iter().filter(|step| step.connections.is_some()).collect();
    closed.sort_by_key(|step| step.connections);
    let x = |step: &StepReport| f64::from(step.connections.unwrap_or(0));
    let points = |of: fn(&StepReport) -> f64| closed.iter().map(|step| (x(step), of(step))).collect::<Vec<_>>();
    let (goodput, p99) = (points(|step| step.goodput_rps.value), points(|step| step.latency_us_p99 as f64 / 1e3));
    let last = closed.last().map_or(1.0, |step| x(step));
    let most = |points: &[(f64, f64)]| points.iter().map(|point| point.1).fold(0.0, f64::max);
    let knee = |top: f64| {
        let at = report.knee.map(|knee| f64::from(knee.connections));
        at.map(|at| series(word("size-plot-knee"), 2, vec![(at, 0.0), (at, top)]))
    };
    let law = report.scaling.map(|law| {
        let curve = (0..=60).map(|part| 1.0 + (last - 1.0) * f64::from(part) / 60.0).map(|n| (n, law.goodput_rps(n)));
        series(word("size-plot-law"), 1, segments(&curve.collect::<Vec<_>>()))
    });
    let objective = report.objective.latency_us_p99 as f64 / 1e3;
    let line = series(word("size-plot-objective"), 1, vec![(0.0, objective), (last, objective)]);
    let plot = |title, y, series: Vec<Series>| Plot { title: word(title), x: word("size-plot-x"), y: word(y), series, ..Plot::default() };
    let measured = |points: &[(f64, f64)]| {
        let crosses = Series { name: word("size-plot-measured"), color: 0, shape: Shape::Crosses, points: points.to_vec() };
        [crosses, series(String::new(), 0, segments(points))]
    };
    let first = measured(&goodput).into_iter().chain(law).chain(knee(most(&goodput))).collect();
    let second = measured(&p99).into_iter().chain([line]).chain(knee(most(&p99).max(objective))).collect();
    [plot("size-plot-goodput", "size-plot-y-goodput", first), plot("size-plot-p99", "size-plot-y-p99", second)]
}

fn series(name: String, color: usize, points: Vec<(f64, f64)>) -> Series {
    Series { name, color, shape: Shape::Bars, points }
}

/// The lines from each point to the next, as pairs.
fn segments(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    points.windows(2).flat_map(|pair| [pair[0], pair[1]]).collect()
}
