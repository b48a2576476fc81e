//! The report of `capacity` as text: by default one screen, or everything.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_sizing::capacity::{CapacityReport, Reserve};

use super::page::TextPage;
use super::wrap::columns;
use crate::report::view::{Ink, Phrases, span};
use crate::terminal::output::{Painted, Style};

/// Stations of the short report.
const STATIONS_MAX: usize = 10;
/// Indentation below a heading.
const MARGIN: &str = "  ";

/// The report, ending in a newline.
pub(crate) fn capacity_text(report: &CapacityReport, verbose: bool, style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    let ink = if report.first.is_some() { Ink::Strong } else { Ink::WarnStrong };
    page.flow(&[], &[], &[span(ink, &report.summary)]);
    if let Some(growth) = &report.growth {
        page.flow(&[], &[], &[span(Ink::Plain, &growth.text)]);
    }
    let (known, unknown): (Vec<&Reserve>, Vec<&Reserve>) = report.stations.iter().partition(|reserve| reserve.full_rps.is_some());
    write_known(&mut page, &known, if verbose { usize::MAX } else { STATIONS_MAX });
    write_unknown(&mut page, &unknown, verbose);
    page.gap();
    let warnings = report.warnings.iter().take(if verbose { usize::MAX } else { 2 });
    for warning in warnings {
        page.flow(&[span(Ink::Plain, MARGIN)], &[span(Ink::Plain, MARGIN)], &[span(Ink::Warn, warning)]);
    }
    page.finish()
}

fn name(reserve: &Reserve) -> String {
    let station = reserve.station.replace('-', " ");
    let at = reserve.at.edge.as_ref().or(reserve.at.listener.as_ref()).filter(|_| reserve.station != "cpu");
    match at.or(reserve.at.cpu.as_ref()) {
        Some(at) => format!("{} {station} {at}", reserve.tier),
        None => format!("{} {station}", reserve.tier),
    }
}

fn write_known(page: &mut TextPage<'_>, known: &[&Reserve], most: usize) {
    if known.is_empty() {
        return;
    }
    page.heading("capacity-stations");
    let phrases = page.phrases();
    let head =
        ["capacity-column-station", "capacity-column-used", "capacity-column-full", "capacity-column-headroom"].map(|id| phrases.word(id));
    let rows: Vec<[String; 4]> = std::iter::once(head).chain(known.iter().take(most).map(|reserve| row(reserve, phrases))).collect();
    let width = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    for (place, row) in rows.iter().enumerate() {
        let name = format!("{MARGIN}{}{}", row[0], " ".repeat(widths[0] - columns(&row[0])));
        let cells = (1..4).map(|column| format!("  {}{}", " ".repeat(widths[column] - columns(&row[column])), row[column]));
        let ink = if place == 0 { Ink::Faint } else { Ink::Plain };
        page.line_within(&[span(ink, name + &cells.collect::<String>())], false);
    }
}

fn row(reserve: &Reserve, phrases: Phrases<'_>) -> [String; 4] {
    let rate = |rate: f64| phrases.say(&Message::new("capacity-rate").with("rate", rate));
    [
        name(reserve),
        reserve.share.map(|share| phrases.percent(share)).unwrap_or_default(),
        reserve.full_rps.map(|full| rate(full.value)).unwrap_or_default(),
        reserve.headroom_rps.map(rate).unwrap_or_default(),
    ]
}

fn write_unknown(page: &mut TextPage<'_>, unknown: &[&Reserve], verbose: bool) {
    if unknown.is_empty() {
        return;
    }
    page.heading("capacity-unknowns");
    let margin = [span(Ink::Plain, MARGIN)];
    if verbose {
        for reserve in unknown {
            page.point(2, &[span(Ink::Plain, format!("{}: {}", name(reserve), reserve.text))]);
        }
    } else {
        let names: Vec<String> = unknown.iter().map(|reserve| name(reserve)).collect();
        page.flow_within(4, &margin, &margin, &[span(Ink::Plain, names.join(", "))]);
    }
}
