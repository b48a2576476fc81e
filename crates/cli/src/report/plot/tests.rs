//! Drawings: what is where, any number, any text, and colours that can be read.

use super::heatmap::HeatCell;
use super::plane::{ceiling_125, label, step};
use super::*;

fn plot(points: Vec<(f64, f64)>, shape: Shape) -> Plot {
    let series = Series { name: "a <b>".to_owned(), color: 9, shape, points };
    Plot { title: "t & u".to_owned(), x: "s".to_owned(), y: "bytes".to_owned(), series: vec![series], ..Plot::default() }
}

fn svg(plot: Plot) -> String {
    Drawing::Plot(plot).svg()
}

const SHAPES: [Shape; 7] = [Shape::Steps, Shape::Line, Shape::Bars, Shape::Ranges, Shape::Wide, Shape::Crosses, Shape::Dots];

#[test]
fn points_are_in_the_plane_and_text_is_escaped() {
    let text = svg(plot(vec![(0.0, 0.0), (2.0, 50_000.0)], Shape::Steps));
    assert!(text.contains("M76.0 256.0H936.0V44.0"), "{text}");
    assert!(text.contains("a &lt;b&gt;") && text.contains("t &amp; u") && text.contains(">40k<") && text.contains("class=\"c1 line\""));
    let line = svg(plot(vec![(0.0, 0.0), (2.0, 50_000.0)], Shape::Line));
    assert!(line.contains("M76.0 256.0L936.0 44.0"), "{line}");
}

#[test]
fn no_points_one_point_and_non_finite_numbers_can_be_drawn() {
    let all = [
        vec![],
        vec![(1.0, 1.0)],
        vec![(-1.0, -1.0), (-1.0, -1.0)],
        vec![(f64::NAN, 1.0), (f64::INFINITY, 2.0)],
        vec![(0.0, 1e300), (1.0, 0.0)],
        vec![(0.0, 1e-300), (1.0, f64::MIN_POSITIVE)],
    ];
    for points in all {
        for shape in SHAPES {
            for log in [false, true] {
                let text = svg(Plot { log, ..plot(points.clone(), shape) });
                assert!(!text.contains("NaN") && !text.contains("inf"), "{points:?} {shape:?} {log}: {text}");
            }
        }
    }
    assert!(svg(Plot::default()).ends_with("</svg>\n"));
}

#[test]
fn rows_go_downward_and_an_empty_interval_is_visible() {
    let bars = |points| Series { name: "x".to_owned(), color: 0, shape: Shape::Bars, points };
    let points = vec![(0.0, 0.0), (0.0, 0.0), (5.0, 1.0), (10.0, 1.0)];
    let plot = Plot { series: vec![bars(points)], rows: vec!["0".to_owned(), "1".to_owned()], ..plot(vec![], Shape::Bars) };
    let plane = Plane::of(&plot, TOP);
    assert!(plane.y(0.0) < plane.y(1.0) && plane.y(0.0) > TOP);
    assert!(svg(plot).contains(&format!("M76.0 {y:.1}L77.0 {y:.1}", y = plane.y(0.0))));
}

#[test]
fn zero_has_a_line_where_values_have_two_signs() {
    let both = svg(Plot { rows: vec!["a".to_owned()], ..plot(vec![(-5.0, 0.0), (5.0, 0.0)], Shape::Ranges) });
    assert!(both.contains("class=\"zero\" d=\"M506.0 "), "{both}");
    let rising = svg(Plot { rows: vec!["a".to_owned()], ..plot(vec![(1.0, 0.0), (5.0, 0.0)], Shape::Ranges) });
    assert!(!rising.contains("class=\"zero\""), "the axis is the line");
}

#[test]
fn a_logarithmic_axis_has_round_ends_and_leaves_zero_out() {
    let text = svg(Plot { log: true, ..plot(vec![(0.0, 0.0), (1.0, 3.0), (2.0, 700.0)], Shape::Line) });
    for found in [">2<", ">10<", ">1000<", ">500<"] {
        assert!(text.contains(found), "{found}: {text}");
    }
    assert!(!text.contains(">1<"), "{text}");
    assert_eq!(text.matches('L').count() - STYLE.matches('L').count(), 1, "one of two lines: {text}");
}

#[test]
fn named_ticks_are_the_whole_axis() {
    let ticks = vec![(1.0, "p50".to_owned()), (3.0, "<p99>".to_owned())];
    let text = svg(Plot { ticks, ..plot(vec![(1.0, 1.0), (3.0, 2.0)], Shape::Line) });
    assert!(text.contains(">p50<") && text.contains(">&lt;p99&gt;<") && text.contains("M76.0 "), "{text}");
}

#[test]
fn long_names_are_cut_and_kept_as_a_tooltip_and_a_long_legend_has_lines() {
    let name = "x".repeat(500);
    let series = |number: usize| Series { name: format!("{number}{name}"), color: number, shape: Shape::Line, points: vec![(0.0, 1.0)] };
    let rows = vec![name.clone(), "\u{8fde}\u{63a5}".repeat(100)];
    let text = svg(Plot { series: (0..6).map(series).collect(), rows, ..plot(vec![], Shape::Line) });
    assert!(text.contains(&format!("<title>0{name}</title>0xxx")) && text.contains("x…</text>"), "{text}");
    let shown = text.split('>').filter_map(|part| part.strip_suffix("</text")).map(|part| part.chars().count()).max();
    assert!(shown.is_some_and(|most| most < 60), "{shown:?}");
    assert!(text.contains("y=\"53.0\"") && text.contains("y=\"70.0\""), "three lines of two names: {text}");
}

#[test]
fn steps_are_round_and_labels_short() {
    assert_eq!([step(60.0), step(0.7), step(1.0), step(12e6)], [10.0, 0.2, 0.2, 2e6]);
    assert_eq!([ceiling_125(3.0), ceiling_125(5.0), ceiling_125(0.07)], [5.0, 5.0, 0.1]);
    assert_eq!([label(2e6, 1e6), label(50_000.0, 1e4), label(0.2, 0.1), label(0.0, 10.0)], ["2M", "50k", "0.2", "0"]);
}

fn map(values: &[f64]) -> HeatMap {
    let cell = |value: &f64| Some(HeatCell { value: *value, text: format!("v{value}"), note: String::new() });
    HeatMap {
        rows: vec!["r<0>".to_owned()],
        columns: values.iter().map(|value| format!("c{value}")).collect(),
        cells: vec![values.iter().map(cell).chain([None]).collect()],
        ends: ["less", "more"].map(str::to_owned),
        ..HeatMap::default()
    }
}

#[test]
fn cells_are_darker_with_more_and_each_has_its_figure() {
    let text = Drawing::HeatMap(map(&[1.0, 5.5, 10.0])).svg();
    for (shade, value) in [("t0", "v1"), ("t3", "v5.5"), ("t6", "v10")] {
        assert!(text.contains(&format!("cell {shade}\"")) && text.contains(&format!(">{value}<")), "{shade} {value}: {text}");
    }
    assert!(text.contains("r&lt;0&gt;"));
    let wide = Drawing::HeatMap(map(&[1.0, 10.0, 1000.0])).svg();
    assert!(wide.contains("t2\""), "a third of the logarithm: {wide}");
}

#[test]
fn any_matrix_can_be_drawn() {
    for values in [&[][..], &[3.0, 3.0], &[f64::NAN, f64::INFINITY, 0.0, -1.0], &[0.0; 64], &[f64::MIN_POSITIVE, f64::MAX]] {
        let text = Drawing::HeatMap(map(values)).svg();
        assert!(!text.contains("\"NaN") && !text.contains("\"inf") && !text.contains("hNaN"), "{values:?}: {text}");
    }
    assert!(Drawing::HeatMap(HeatMap::default()).svg().ends_with("</svg>\n"));
}

/// The colour of a class in one half of the style sheet.
fn colour(style: &str, class: &str) -> [f64; 3] {
    let at =
        style.find(&format!(".plot .{class}{{")).or_else(|| style.find(&format!(".plot .{class},"))).unwrap_or_else(|| panic!("{class}"));
    let hex = style[at..].split_once("fill:#").map(|(_, rest)| rest.split(['}', ';']).next().unwrap_or_default()).unwrap_or_default();
    let long: String = if hex.len() == 3 { hex.chars().flat_map(|digit| [digit, digit]).collect() } else { hex.to_owned() };
    [0, 2, 4].map(|at| f64::from(u8::from_str_radix(&long[at..at + 2], 16).expect("hexadecimal")) / 255.0)
}

/// Relative luminance (WCAG 2.2).
fn luminance(colour: [f64; 3]) -> f64 {
    let [r, g, b] = colour.map(|part| if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) });
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

/// Text on each cell has the contrast that WCAG 2.2 asks for, and the luminance alone orders the cells, so that no colour has to be seen.
#[test]
fn the_figure_of_each_cell_can_be_read_in_light_and_dark() {
    let (light, dark) = STYLE.split_once("@media").expect("both");
    for style in [light, dark] {
        let mut before = None;
        for shade in 0..7 {
            let [cell, text] = ["h", "t"].map(|kind| luminance(colour(style, &format!("{kind}{shade}"))));
            let ratio = (cell.max(text) + 0.05) / (cell.min(text) + 0.05);
            assert!(ratio >= 4.5, "{shade}: {ratio}");
            if let Some(before) = before.replace(cell) {
                assert!((cell > before) == (style == dark) && (cell - before).abs() > 0.008, "{shade}: {cell} after {before}");
            }
        }
    }
}
