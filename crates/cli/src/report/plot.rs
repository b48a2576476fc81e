//! Plots, and the same as SVG. The page of a report draws them itself, from the same description.

pub(crate) mod experiment;
pub(crate) mod heatmap;
mod plane;
pub(crate) mod size;
mod text;

#[cfg(test)]
mod tests;

use std::fmt::Write;

use serde::Serialize;

use heatmap::HeatMap;
use plane::Plane;
pub(crate) use text::escaped;
use text::{cut, width};

/// Width of a drawing, in its own units.
const WIDTH: f64 = 960.0;
/// Where the title and the legend begin.
const LEFT: f64 = 16.0;
/// Where values begin from the top with one line of legend, and the height of a line.
const TOP: f64 = 44.0;
const LEGEND_LINE: f64 = 17.0;
/// The widest name in a legend.
const NAME_MAX: f64 = 280.0;
/// Half the width of a cross.
const CROSS: f64 = 4.0;
/// Number of colours.
const COLORS: usize = 8;

/// Style sheet of drawings, light and dark. Colour-blind people can distinguish the first six colours (after Okabe and Ito).
pub(crate) const STYLE: &str = include_str!("../../templates/plot.css");

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Shape {
    /// The value holds until the next point.
    Steps,
    /// A straight line from point to point.
    Line,
    /// A line from the first point of each pair to the second.
    Bars,
    /// The same, thicker.
    Ranges,
    /// The same, as high as a row.
    Wide,
    /// A cross at each point.
    Crosses,
    /// A dot at each point.
    Dots,
}

/// One series of a plot.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Series {
    /// Name in the legend.
    pub(crate) name: String,
    /// Colour, 0 to 7. The last two are grey.
    pub(crate) color: usize,
    pub(crate) shape: Shape,
    /// x and y, by ascending x.
    pub(crate) points: Vec<(f64, f64)>,
}

/// One plot.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Plot {
    pub(crate) title: String,
    /// Titles of the axes, with units.
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) series: Vec<Series>,
    /// Names of the rows at y 0, 1, 2, ..., top first; empty for a numeric y axis.
    pub(crate) rows: Vec<String>,
    /// What stands to the right of each row; empty for nothing.
    pub(crate) notes: Vec<String>,
    /// Labels of the x axis by ascending x, which begins with the first and ends with the last; empty for round numbers.
    pub(crate) ticks: Vec<(f64, String)>,
    /// True for a logarithmic y axis: values of zero and less are not drawn.
    pub(crate) log: bool,
}

/// A drawing.
#[derive(Debug, Clone)]
pub(crate) enum Drawing {
    Plot(Plot),
    HeatMap(HeatMap),
}

impl Drawing {
    /// An SVG document.
    pub(crate) fn svg(&self) -> String {
        match self {
            Self::Plot(plot) => draw(plot, true),
            Self::HeatMap(map) => heatmap::draw(map),
        }
    }
}

/// The beginning of an SVG element, with its own style if it stands alone.
fn open_svg(title: &str, (width, height): (f64, f64), alone: bool) -> String {
    let style = if alone { format!("<style>{STYLE}</style>") } else { String::new() };
    format!(
        "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">{style}\
         <title>{}</title><rect class=\"paper\" width=\"100%\" height=\"100%\"/>",
        escaped(title)
    )
}

fn draw(plot: &Plot, alone: bool) -> String {
    let legend = legend(plot);
    let plane = plane_of(plot, &legend);
    let mut out = open_svg(&plot.title, (WIDTH, plane.height()), alone);
    let room = WIDTH - 2.0 * LEFT - width(&plot.y) - 12.0;
    let _ = write!(
        out,
        "<text class=\"head\" x=\"{LEFT}\" y=\"18\">{}</text><text class=\"faint\" text-anchor=\"end\" x=\"{:.1}\" y=\"18\">{}</text>",
        cut(&plot.title, room),
        WIDTH - LEFT,
        escaped(&plot.y)
    );
    plane.write_axes(&mut out, plot);
    for (series, (at, line)) in plot.series.iter().zip(legend) {
        write_series(&mut out, plot, series, &plane);
        let middle = 32.0 + line * LEGEND_LINE;
        let _ = write!(
            out,
            "<path class=\"c{} {}\" d=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            series.color % COLORS,
            class(series.shape),
            sample(series.shape, at, middle),
            at + 20.0,
            middle + 4.0,
            cut(&series.name, NAME_MAX)
        );
    }
    out.push_str("</svg>\n");
    out
}

/// Where the values are, below the legend.
fn plane_of(plot: &Plot, legend: &[(f64, f64)]) -> Plane {
    let lines = legend.last().map_or(1.0, |(_, line)| line + 1.0);
    Plane::of(plot, TOP + (lines - 1.0) * LEGEND_LINE)
}

/// Where each series is in the legend: x, and the number of the line.
fn legend(plot: &Plot) -> Vec<(f64, f64)> {
    let (mut at, mut line) = (LEFT, 0.0);
    let place = |series: &Series| {
        let needed = 20.0 + width(&series.name).min(NAME_MAX);
        if at > LEFT && at + needed > WIDTH - LEFT {
            (at, line) = (LEFT, line + 1.0);
        }
        let own = (at, line);
        at += needed + 16.0;
        own
    };
    plot.series.iter().map(place).collect()
}

/// The mark of a series in the legend.
fn sample(shape: Shape, at: f64, middle: f64) -> String {
    match shape {
        Shape::Crosses => cross(at + 7.0, middle),
        Shape::Dots => format!("M{:.1} {middle:.1}h0", at + 7.0),
        _ => format!("M{at:.1} {middle:.1}h14"),
    }
}

fn cross(x: f64, y: f64) -> String {
    let (left, right, above, below) = (x - CROSS, x + CROSS, y - CROSS, y + CROSS);
    format!("M{left:.1} {above:.1}L{right:.1} {below:.1}M{left:.1} {below:.1}L{right:.1} {above:.1}")
}

fn class(shape: Shape) -> &'static str {
    match shape {
        Shape::Steps | Shape::Line => "line",
        Shape::Bars | Shape::Crosses => "mark",
        Shape::Ranges => "range",
        Shape::Wide => "wide",
        Shape::Dots => "dots",
    }
}

fn write_series(out: &mut String, plot: &Plot, series: &Series, plane: &Plane) {
    let points: Vec<(f64, f64)> = series.points.iter().filter_map(|point| plane.place(plot, point)).collect();
    let _ = write!(out, "<path class=\"c{} {}\" d=\"", series.color % COLORS, class(series.shape));
    match series.shape {
        Shape::Bars | Shape::Ranges | Shape::Wide => {
            for pair in points.chunks_exact(2) {
                // A pair at one point is drawn as a short mark.
                let (from, to) = (pair[0], pair[1]);
                let x = if (to.0 - from.0).abs() < 0.5 && (to.1 - from.1).abs() < 0.5 { from.0 + 1.0 } else { to.0 };
                let _ = write!(out, "M{:.1} {:.1}L{x:.1} {:.1}", from.0, from.1, to.1);
            }
        }
        Shape::Crosses => points.iter().for_each(|(x, y)| out.push_str(&cross(*x, *y))),
        Shape::Dots => {
            for (x, y) in points {
                let _ = write!(out, "M{x:.1} {y:.1}h0");
            }
        }
        Shape::Steps => {
            for (place, (x, y)) in points.iter().enumerate() {
                let _ = if place == 0 { write!(out, "M{x:.1} {y:.1}") } else { write!(out, "H{x:.1}V{y:.1}") };
            }
        }
        Shape::Line => {
            for (place, (x, y)) in points.iter().enumerate() {
                let _ = write!(out, "{}{x:.1} {y:.1}", if place == 0 { "M" } else { "L" });
            }
        }
    }
    out.push_str("\"/>\n");
}

/// Several plots below each other as one SVG document.
pub(crate) fn stacked(plots: &[Plot]) -> String {
    let heights: Vec<f64> = plots.iter().map(|plot| plane_of(plot, &legend(plot)).height()).collect();
    let title = plots.first().map(|plot| plot.title.as_str()).unwrap_or_default();
    let mut out = open_svg(title, (WIDTH, heights.iter().sum()), true);
    let mut at = 0.0;
    for (plot, height) in plots.iter().zip(heights) {
        // An svg element within another one has a place.
        out.push_str(&draw(plot, false).replacen("<svg ", &format!("<svg y=\"{at:.0}\" "), 1));
        at += height;
    }
    out.push_str("</svg>\n");
    out
}
