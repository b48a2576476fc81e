//! Where requests stood, and the path: a line for each tier, with only the stations that matter.

use chokepoint_model::message::Message;
use chokepoint_model::outcome::station_name;
use chokepoint_model::report::{Diagnosis, Station, StationKind, StationState};

use super::{Detail, label, no_label, padded, right};
use crate::report::text::page::{TextPage, columns_of};
use crate::report::text::wrap::columns;
use crate::report::view::ledger::{MEAN_MIN, view};
use crate::report::view::path::{Mark, StationRow, TierView, beside_others, has_refused, refusals, tiers};
use crate::report::view::{Ink, Phrases, Span, span};

/// The station of the load's own connections.
const CLIENTS: &str = "clients";
/// Columns of a share.
const SHARE_COLUMNS: usize = 5;
/// Places with a smaller share are left out.
const SHARE_MIN: f64 = 0.01;
/// Ceilings that are shown: those of the lowest stations.
const CEILINGS_MAX: usize = 2;
/// The widest name of a tier, columns.
const TIER_COLUMNS_MAX: usize = 22;

/// Columns that the words of a station take on a line, at least.
const PART_COLUMNS: usize = 30;

/// Writes both. After a fix they are those of the server as it was found, and are named so.
pub(super) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis, detail: Detail) {
    if diagnosis.after.is_some() && (diagnosis.ledger.is_some() || !diagnosis.path.is_empty()) {
        let text = page.word("brief-places-found");
        page.line_within(&[span(Ink::Faint, text)], false);
    }
    write_ledger(page, diagnosis, detail.places);
    write_path(page, diagnosis, detail);
}

fn write_ledger(page: &mut TextPage<'_>, diagnosis: &Diagnosis, most: usize) {
    // Where nothing is in flight, nothing stands anywhere.
    let is_in_flight = diagnosis.ledger.as_ref().is_some_and(|ledger| ledger.under_way >= MEAN_MIN);
    let Some(view) = view(diagnosis, page.phrases()).filter(|_| is_in_flight) else { return };
    let mut rows: Vec<_> = view.rows.iter().filter(|row| row.mean.abs() >= MEAN_MIN).collect();
    rows.sort_by(|a, b| b.share.abs().total_cmp(&a.share.abs()));
    let mut before = label(page, "brief-requests");
    let listed = rows.into_iter().enumerate().filter(|(place, row)| *place == 0 || row.share.abs() >= SHARE_MIN);
    for (_, row) in listed.take(most.max(1)) {
        let percent = page.phrases().percent(row.share.abs());
        let percent = if row.share < 0.0 { format!("-{percent}") } else { percent };
        let share = span(row.ink, right(&percent, SHARE_COLUMNS));
        let first = [std::mem::replace(&mut before, no_label()), share, span(Ink::Plain, "  ")];
        let rest = [span(Ink::Plain, " ".repeat(columns_of(&first)))];
        page.flow_within(usize::MAX, &first, &rest, &[span(row.ink, row.label.as_str())]);
    }
}

/// A tier on its line: stations that matter, and how many others there are.
struct Line<'a> {
    name: &'a str,
    stations: Vec<Span>,
    fine: usize,
    unread: usize,
}

fn write_path(page: &mut TextPage<'_>, diagnosis: &Diagnosis, detail: Detail) {
    let tiers = tiers(diagnosis, page.phrases());
    if tiers.is_empty() {
        return;
    }
    let lowest = lowest_ceilings(diagnosis);
    let mut lines: Vec<Line<'_>> = tiers.iter().map(|tier| line(page, tier, &lowest)).collect();
    // If there are too many, those with the choke point stay, in the order of the path.
    while lines.iter().filter(|line| !line.stations.is_empty()).count() > detail.tiers.max(1) {
        let has_choke =
            |line: &&mut Line<'_>| !line.stations.is_empty() && line.stations.iter().all(|station| station.ink != Ink::BadStrong);
        let Some(dropped) = lines.iter_mut().rfind(has_choke) else { break };
        dropped.fine += dropped.stations.len();
        dropped.stations.clear();
    }
    let width =
        lines.iter().filter(|line| !line.stations.is_empty()).map(|line| columns(line.name)).max().unwrap_or(0).min(TIER_COLUMNS_MAX);
    let mut before = label(page, "brief-path");
    for line in lines.iter().filter(|line| !line.stations.is_empty()) {
        let name = span(Ink::Strong, padded(line.name, width + 1));
        let others = others(page, line.fine, line.unread, true);
        write_line(page, &[std::mem::replace(&mut before, no_label()), name], &line.stations, &others);
    }
    let quiet: Vec<&Line<'_>> = lines.iter().filter(|line| line.stations.is_empty()).collect();
    let is_first = quiet.len() == lines.len();
    if !quiet.is_empty() && (detail.others_named || is_first) {
        let names = quiet.iter().map(|line| line.name).collect::<Vec<_>>().join(", ");
        let (fine, unread) = (quiet.iter().map(|line| line.fine).sum(), quiet.iter().map(|line| line.unread).sum());
        let others = others(page, fine, unread, false);
        write_line(page, &[before], &[span(Ink::Faint, names)], &others);
    }
}

/// What comes first, the stations, and what comes last if it has room. A station that has none on the line stands on the next one.
fn write_line(page: &mut TextPage<'_>, before: &[Span], stations: &[Span], last: &str) {
    let dot = page.glyph(" \u{b7}", " -");
    let own = columns_of(before);
    let is_wide = own + PART_COLUMNS <= page.width();
    // On a narrow page the words of a station need the room below a long name.
    let (first, rest) = if is_wide { (before.to_vec(), span(Ink::Plain, " ".repeat(own))) } else { (vec![no_label()], no_label()) };
    if !is_wide {
        page.line_within(before, false);
    }
    let rest = [rest];
    let mut parts = stations.to_vec();
    let lines = page.note_lines(&first, &rest, &parts, dot);
    parts.push(span(Ink::Faint, last));
    if last.is_empty() || page.note_lines(&first, &rest, &parts, dot) > lines {
        parts.pop();
    }
    page.notes_within(&first, &rest, &parts, dot);
}

fn others(page: &TextPage<'_>, fine: usize, unread: usize, is_beside: bool) -> String {
    let phrases = page.phrases();
    let say = |id, n: usize| (n > 0).then(|| phrases.say(&Message::new(id).with("n", n as f64)));
    let fine = say(if is_beside { "brief-others-fine" } else { "brief-fine" }, fine);
    fine.into_iter().chain(say("brief-others-unread", unread)).collect::<Vec<_>>().join(", ")
}

fn line<'a>(page: &TextPage<'_>, tier: &TierView<'a>, lowest: &[&Station]) -> Line<'a> {
    let is_low = |row: &&StationRow<'_>| lowest.iter().any(|station| std::ptr::eq(*station, row.station));
    // Clients that wait for answers are what a load is: that they are all in use says nothing.
    let is_load = |row: &&StationRow<'_>| row.station.station == CLIENTS && row.mark == Mark::None;
    let (matter, others): (Vec<&StationRow<'_>>, Vec<&StationRow<'_>>) =
        tier.rows.iter().partition(|row| !is_load(row) && (matters(row) || is_low(row)));
    let unread = others.iter().filter(|row| row.station.state == StationState::Unknown).count();
    let mut matter = matter;
    matter.sort_by_key(|row| rank(row));
    let stations = matter.iter().map(|row| station(page, row, is_low(row))).collect();
    Line { name: tier.name, stations, fine: others.len() - unread, unread }
}

fn matters(row: &StationRow<'_>) -> bool {
    row.mark != Mark::None || matches!(row.station.state, StationState::Refusing | StationState::Saturated | StationState::Near)
}

/// What comes first on a line.
fn rank(row: &StationRow<'_>) -> u8 {
    match (row.mark, row.station.state) {
        (Mark::Choke, _) => 0,
        (Mark::Cause(_), _) => 1,
        (Mark::Symptom(..), _) => 2,
        (Mark::None, StationState::Refusing) => 3,
        (Mark::None, StationState::Saturated) => 4,
        (Mark::None, StationState::Near) => 5,
        (Mark::None, _) => 6,
    }
}

/// The stations with the lowest ceilings. After a fix, those of the server as found say nothing.
fn lowest_ceilings(diagnosis: &Diagnosis) -> Vec<&Station> {
    if diagnosis.after.is_some() {
        return Vec::new();
    }
    let ceiling = |station: &Station| station.ceiling_rps.map(|ceiling| ceiling.value).filter(|value| value.is_finite());
    let mut stations: Vec<&Station> = diagnosis.path.iter().filter(|station| ceiling(station).is_some()).collect();
    stations.sort_by(|a, b| ceiling(a).unwrap_or(0.0).total_cmp(&ceiling(b).unwrap_or(0.0)));
    stations.truncate(CEILINGS_MAX);
    stations
}

/// "200 of 200".
fn used(phrases: Phrases<'_>, station: &Station) -> Option<String> {
    let amount = |amount: f64| phrases.amount(amount, &station.unit);
    let (used, limit) = station.used.zip(station.limit)?;
    Some(phrases.say(&Message::new("report-of").with("used", amount(used)).with("limit", amount(limit))))
}

/// A station in a few words.
fn station(page: &TextPage<'_>, row: &StationRow<'_>, is_low: bool) -> Span {
    let phrases = page.phrases();
    let station = row.station;
    let name = station_name(&station.station, phrases.0);
    let mut facts: Vec<String> = Vec::new();
    match (has_refused(station), row.share) {
        // A queue that refused was full at some time, whatever the samples saw of it.
        (true, share) => {
            let limit = station.limit.filter(|_| share.is_none());
            facts.extend(match limit {
                Some(limit) => Some(phrases.say(&Message::new("report-limit").with("limit", phrases.amount(limit, &station.unit)))),
                None => used(phrases, station),
            });
            facts.push(phrases.say(&refusals(station).with("n", phrases.rounded(station.refused_per_s.unwrap_or(0.0)))));
        }
        (false, Some(_)) if station.kind == StationKind::Cliff => facts.extend(used(phrases, station)),
        (false, Some(share)) => {
            let others = beside_others(phrases, station).map(|others| format!(" {others}")).unwrap_or_default();
            facts.push(phrases.percent(share) + &others);
        }
        (false, None) => {}
    }
    if let Some(ceiling) = station.ceiling_rps.filter(|_| is_low) {
        facts.push(phrases.say(&Message::new("brief-ceiling").with("rate", phrases.rounded(ceiling.value))));
    }
    let mark = if row.mark == Mark::Choke { page.glyph("▶ ", "> ") } else { "" };
    let ink = match row.mark {
        Mark::Choke => Ink::BadStrong,
        Mark::Cause(_) | Mark::Symptom(..) => Ink::Warn,
        Mark::None => Ink::Plain,
    };
    span(ink, if facts.is_empty() { format!("{mark}{name}") } else { format!("{mark}{name} {}", facts.join(", ")) })
}
