//! Plots as SVG, and self-contained pages of plots: no script, no other file, no network.

use std::fmt::Write;

use askama::filters::Escaper;

use crate::report::html::escape::Visible;

/// Size of a drawing and of its margins, in its own units.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 44.0;
/// Half the width of a cross.
const CROSS: f64 = 4.0;
/// Approximate number of grid lines.
const TICKS: f64 = 6.0;

/// Colours that colour-blind people can distinguish (Okabe and Ito), the same on light and dark pages.
const STYLE: &str = "svg{background:#fff;font:12px system-ui,\"DejaVu Sans\",sans-serif}text{fill:#16202c}.faint{fill:#55606e}.grid{stroke:#e3e8ee}.axis{stroke:#8a96a4}\
.c0{stroke:#0072b2;fill:#0072b2}.c1{stroke:#d55e00;fill:#d55e00}.c2{stroke:#009e73;fill:#009e73}.c3{stroke:#cc79a7;fill:#cc79a7}.c4{stroke:#8a6d00;fill:#8a6d00}\
.c5{stroke:#56b4e9;fill:#56b4e9}.line{fill:none;stroke-width:1.6}.mark{stroke-width:2}.area{stroke:none;fill-opacity:.75}";

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The value holds until the next point.
    Steps,
    /// A line from the first point of each pair to the second.
    Bars,
    /// A cross at each point.
    Crosses,
}

/// One series of a plot.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// Name in the legend.
    pub(crate) name: String,
    /// Colour, 0 to 5.
    pub(crate) color: usize,
    pub(crate) shape: Shape,
    /// x and y, by ascending x.
    pub(crate) points: Vec<(f64, f64)>,
}

/// One plot.
#[derive(Debug, Clone)]
pub(crate) struct Plot {
    pub(crate) title: String,
    /// Titles of the axes, with units.
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) series: Vec<Series>,
    /// Names of the rows at y 0, 1, 2, ..., top first; empty for a numeric y axis.
    pub(crate) rows: Vec<String>,
}

/// Maps values to positions in the drawing.
struct Plane {
    x: (f64, f64),
    y: (f64, f64),
    height: f64,
    /// True if y grows downward.
    down: bool,
}

impl Plane {
    fn of(plot: &Plot) -> Self {
        let points = || plot.series.iter().flat_map(|series| &series.points).filter(|(x, y)| x.is_finite() && y.is_finite());
        let span = |of: fn(&(f64, f64)) -> f64| {
            let (least, most) = points().map(of).fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
            if least > most { (0.0, 1.0) } else { (least, if most > least { most } else { least + 1.0 }) }
        };
        let ((x0, x1), (y0, y1)) = (span(|point| point.0), span(|point| point.1));
        if plot.rows.is_empty() {
            return Self { x: (x0.min(0.0), x1), y: (y0.min(0.0), y1), height: HEIGHT, down: false };
        }
        let rows = plot.rows.len() as f64;
        Self { x: (x0.min(0.0), x1), y: (-0.5, rows - 0.5), height: (TOP + BOTTOM + rows * 16.0).max(110.0), down: true }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + (value - self.x.0) / (self.x.1 - self.x.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value - self.y.0) / (self.y.1 - self.y.0);
        let plane = self.height - TOP - BOTTOM;
        if self.down { TOP + share * plane } else { TOP + (1.0 - share) * plane }
    }
}

/// A step of one, two or five times a power of ten that divides a span into about [`TICKS`] parts.
fn step(span: f64) -> f64 {
    let rough = (span / TICKS).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough).unwrap_or(rough)
}

/// A number, as short as the axis allows.
fn label(value: f64, step: f64) -> String {
    let (unit, name) = match value.abs().max(step) {
        size if size >= 1e9 => (1e9, "G"),
        size if size >= 1e6 => (1e6, "M"),
        size if size >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let digits = (-(step / unit).log10().floor()).clamp(0.0, 9.0) as usize;
    if value == 0.0 { "0".to_owned() } else { format!("{:.digits$}{name}", value / unit) }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = Visible.write_escaped_str(&mut out, text);
    out
}

/// The plot as one SVG element with its own style.
pub(crate) fn svg(plot: &Plot) -> String {
    let plane = Plane::of(plot);
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {:.0}\" width=\"{WIDTH}\" height=\"{:.0}\" role=\"img\"><style>{STYLE}</style><title>{title}</title>\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/><text x=\"{LEFT}\" y=\"18\" font-weight=\"650\">{title}</text>",
        plane.height,
        plane.height,
        title = escaped(&plot.title)
    );
    write_axes(&mut out, plot, &plane);
    let mut at = LEFT;
    for series in &plot.series {
        write_series(&mut out, series, &plane);
        let name = escaped(&series.name);
        let _ = write!(
            out,
            "<rect class=\"c{}\" x=\"{at:.0}\" y=\"27\" width=\"10\" height=\"10\"/><text x=\"{:.0}\" y=\"36\">{name}</text>",
            series.color % 6,
            at + 14.0
        );
        at += 30.0 + 6.8 * series.name.chars().count() as f64;
    }
    out.push_str("</svg>\n");
    out
}

fn write_axes(out: &mut String, plot: &Plot, plane: &Plane) {
    let (right, bottom) = (WIDTH - RIGHT, plane.height - BOTTOM);
    let ticks = |(from, to): (f64, f64)| {
        let step = step(to - from);
        let first = (from / step).ceil() as i64;
        (first..=(to / step).floor() as i64).map(move |tick| (tick as f64 * step, step))
    };
    for (value, step) in ticks(plane.x) {
        let x = plane.x(value);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/><text class=\"faint\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{:.0}\">{}</text>",
            bottom + 15.0,
            label(value, step)
        );
    }
    if plot.rows.is_empty() {
        for (value, step) in ticks(plane.y) {
            let y = plane.y(value);
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/><text class=\"faint\" text-anchor=\"end\" x=\"{:.0}\" y=\"{:.1}\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                label(value, step)
            );
        }
    }
    for (place, row) in plot.rows.iter().enumerate() {
        let y = plane.y(place as f64);
        let _ =
            write!(out, "<text class=\"faint\" text-anchor=\"end\" x=\"{:.0}\" y=\"{:.1}\">{}</text>", LEFT - 6.0, y + 4.0, escaped(row));
    }
    let _ = write!(
        out,
        "<path class=\"axis\" fill=\"none\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/><text class=\"faint\" text-anchor=\"middle\" x=\"{:.0}\" y=\"{:.0}\">{}</text>\
         <text class=\"faint\" text-anchor=\"end\" x=\"{right}\" y=\"18\">{}</text>",
        (LEFT + right) / 2.0,
        plane.height - 10.0,
        escaped(&plot.x),
        escaped(&plot.y)
    );
}

fn write_series(out: &mut String, series: &Series, plane: &Plane) {
    let points: Vec<(f64, f64)> =
        series.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()).map(|(x, y)| (plane.x(*x), plane.y(*y))).collect();
    let class = if matches!(series.shape, Shape::Bars | Shape::Crosses) { "mark" } else { "line" };
    let _ = write!(out, "<path class=\"c{} {class}\" d=\"", series.color % 6);
    match series.shape {
        Shape::Bars => {
            for pair in points.chunks_exact(2) {
                // A pair at one point is drawn as a short mark.
                let (from, to) = (pair[0], pair[1]);
                let x = if (to.0 - from.0).abs() < 0.5 && (to.1 - from.1).abs() < 0.5 { from.0 + 1.0 } else { to.0 };
                let _ = write!(out, "M{:.1} {:.1}L{x:.1} {:.1}", from.0, from.1, to.1);
            }
        }
        Shape::Crosses => {
            for (x, y) in points {
                let (left, right, above, below) = (x - CROSS, x + CROSS, y - CROSS, y + CROSS);
                let _ = write!(out, "M{left:.1} {above:.1}L{right:.1} {below:.1}M{left:.1} {below:.1}L{right:.1} {above:.1}");
            }
        }
        Shape::Steps => {
            for (place, (x, y)) in points.iter().enumerate() {
                let _ = if place == 0 { write!(out, "M{x:.1} {y:.1}") } else { write!(out, "H{x:.1}V{y:.1}") };
            }
        }
    }
    out.push_str("\"/>\n");
}

/// Several plots below each other as one SVG document.
pub(crate) fn stacked(plots: &[Plot]) -> String {
    let heights: Vec<f64> = plots.iter().map(|plot| Plane::of(plot).height).collect();
    let height: f64 = heights.iter().sum();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\">\n"
    );
    let mut at = 0.0;
    for (plot, height) in plots.iter().zip(heights) {
        let _ = writeln!(out, "<g transform=\"translate(0 {at:.0})\">{}</g>", svg(plot).trim_end());
        at += height;
    }
    out.push_str("</svg>\n");
    out
}

/// A page with a heading, paragraphs, and plots.
pub(crate) fn page(title: &str, paragraphs: &[String], plots: &[Plot]) -> String {
    let title = escaped(title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>body{{margin:0 auto;max-width:62rem;padding:1rem;font:16px/1.5 system-ui,sans-serif;color:#16202c;background:#f4f6f8}}svg{{max-width:100%;height:auto;margin:.5rem 0}}\
         h1{{font-size:1.25rem}}p{{margin:.25rem 0}}</style></head><body><h1>{title}</h1>\n"
    );
    for paragraph in paragraphs {
        let _ = writeln!(out, "<p>{}</p>", escaped(paragraph));
    }
    for plot in plots {
        out.push_str(&svg(plot));
    }
    out.push_str("</body></html>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, f64)>, shape: Shape) -> Plot {
        let series = Series { name: "a <b>".to_owned(), color: 7, shape, points };
        Plot { title: "t & u".to_owned(), x: "s".to_owned(), y: "bytes".to_owned(), series: vec![series], rows: Vec::new() }
    }

    #[test]
    fn points_are_in_the_plane_and_text_is_escaped() {
        let text = svg(&plot(vec![(0.0, 0.0), (2.0, 50_000.0)], Shape::Steps));
        let (left, right, bottom) = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM);
        assert!(text.contains(&format!("M{left:.1} {bottom:.1}H{right:.1}V{TOP:.1}")), "{text}");
        assert!(text.contains("a &lt;b&gt;") && text.contains("t &amp; u") && text.contains(">40k<") && text.contains("class=\"c1 line\""));
    }

    #[test]
    fn no_points_one_point_and_non_finite_numbers_can_be_drawn() {
        for points in [vec![], vec![(1.0, 1.0)], vec![(f64::NAN, 1.0), (f64::INFINITY, 2.0)], vec![(0.0, 1e300), (1.0, 0.0)]] {
            for shape in [Shape::Steps, Shape::Bars, Shape::Crosses] {
                let text = svg(&plot(points.clone(), shape));
                assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            }
        }
    }

    #[test]
    fn rows_go_downward_and_an_empty_interval_is_visible() {
        let bars =
            Series { name: "x".to_owned(), color: 0, shape: Shape::Bars, points: vec![(0.0, 0.0), (0.0, 0.0), (5.0, 1.0), (10.0, 1.0)] };
        let plot = Plot { series: vec![bars], rows: vec!["0".to_owned(), "1".to_owned()], ..plot(vec![], Shape::Bars) };
        let plane = Plane::of(&plot);
        assert!(plane.y(0.0) < plane.y(1.0) && plane.y(0.0) > TOP);
        assert!(svg(&plot).contains(&format!("M{:.1} {y:.1}L{:.1} {y:.1}", LEFT, LEFT + 1.0, y = plane.y(0.0))));
    }

    #[test]
    fn steps_are_round_and_labels_short() {
        assert_eq!([step(60.0), step(0.7), step(1.0), step(12e6)], [10.0, 0.2, 0.2, 2e6]);
        assert_eq!([label(2e6, 1e6), label(50_000.0, 1e4), label(0.2, 0.1), label(0.0, 10.0)], ["2M", "50k", "0.2", "0"]);
    }

    #[test]
    fn a_page_is_self_contained() {
        let text = page("a", &["<p>".to_owned()], &[plot(vec![(0.0, 1.0)], Shape::Steps)]);
        assert!(text.contains("&lt;p&gt;") && text.contains("default-src 'none'") && !text.contains("<script") && !text.contains("src="));
    }
}
