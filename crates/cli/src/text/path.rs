//! The request's path as a pipe: one row a station, grouped by tier, with the choke point where the pipe is squeezed.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, Role, Station, StationState, TierReport, Verdict};

use super::page::{Ink, Page, Span, span};
use super::wrap::columns;

/// Columns of the bar of use.
const BAR_COLUMNS: usize = 10;
/// Columns of the percentage: "100 %".
const PERCENT_COLUMNS: usize = 5;
/// Columns before a station's name: margin, pipe, margin.
const MARGIN_COLUMNS: usize = 7;
/// Notes that have less room than this, in columns, go below their row.
const NOTES_COLUMNS_MIN: usize = 30;
/// Processes that are told by their ids; more are only counted.
const PIDS_TOLD_MAX: usize = 4;

/// What the findings say about a station.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mark {
    None,
    /// The first cause.
    Choke,
    /// Another cause: its number in the report.
    Cause(usize),
    /// A symptom: its own number, and its cause's where that is in the report.
    Symptom(usize, Option<usize>),
}

/// Where the row lies: before the choke point the pipe is full, behind it only a trickle runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Before,
    Choked,
    Behind,
}

/// Draws the path; nothing where no station was read.
pub(super) fn write(page: &mut Page<'_>, diagnosis: &Diagnosis) {
    if diagnosis.path.is_empty() {
        return;
    }
    page.heading("report-path");
    let show_netns = tells_namespaces_apart(diagnosis);
    let labels: Vec<String> = diagnosis.path.iter().map(|station| label(page, station)).collect();
    let cap = (page.width() * 2 / 5).saturating_sub(MARGIN_COLUMNS).max(18);
    let cap = cap.min(page.width() - MARGIN_COLUMNS - 4 - BAR_COLUMNS - 1 - PERCENT_COLUMNS);
    let label_columns = labels.iter().map(|label| columns(label)).filter(|wide| *wide <= cap).max().unwrap_or(cap);
    let mut flow = Flow::Before;
    for tier in tiers(diagnosis) {
        tier_line(page, diagnosis, tier, flow, show_netns);
        for (station, label) in diagnosis.path.iter().zip(&labels).filter(|(station, _)| station.tier == tier) {
            let mark = mark(diagnosis, station);
            if mark == Mark::Choke {
                flow = Flow::Choked;
            }
            row(page, diagnosis, station, &mark, flow, label, label_columns);
            if flow == Flow::Choked {
                flow = Flow::Behind;
            }
        }
    }
}

/// The tiers in the order in which a request first meets them.
fn tiers(diagnosis: &Diagnosis) -> Vec<&str> {
    let mut tiers: Vec<&str> = Vec::new();
    for station in &diagnosis.path {
        if !tiers.contains(&station.tier.as_str()) {
            tiers.push(&station.tier);
        }
    }
    tiers
}

/// False where all is in one namespace: its name would only be noise.
fn tells_namespaces_apart(diagnosis: &Diagnosis) -> bool {
    let stations = diagnosis.path.iter().filter_map(|station| station.at.netns.as_deref());
    let mut names: Vec<&str> = stations.chain(diagnosis.target.tiers.iter().map(|tier| tier.netns.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    names.len() > 1
}

fn pipe(page: &Page<'_>, flow: Flow) -> Span {
    let (ink, glyph) = match flow {
        Flow::Before => (Ink::Faint, page.glyph("│ │", "| |")),
        Flow::Choked => (Ink::BadStrong, page.glyph("▶│◀", ">|<")),
        Flow::Behind => (Ink::Faint, page.glyph("┆ ┆", ": :")),
    };
    span(ink, format!("  {glyph}  "))
}

fn tier_line(page: &mut Page<'_>, diagnosis: &Diagnosis, tier: &str, flow: Flow, show_netns: bool) {
    let told = diagnosis.target.tiers.iter().find(|report| report.name == tier);
    let mut facts: Vec<String> = Vec::new();
    let netns = told.map(|report| report.netns.as_str()).or_else(|| shared_netns(diagnosis, tier));
    if let Some(netns) = netns.filter(|netns| show_netns && *netns != tier) {
        facts.push(page.say(&Message::new("report-in-netns").with("netns", netns)));
    }
    facts.extend(told.and_then(|report| processes(page, report)));
    let prefix = [pipe(page, flow)];
    let facts = if facts.is_empty() { String::new() } else { format!("({})", facts.join(", ")) };
    page.flow(&prefix, &prefix, &[span(Ink::Strong, tier), span(Ink::Faint, facts)]);
}

/// The namespace of a tier's stations where they agree.
fn shared_netns<'a>(diagnosis: &'a Diagnosis, tier: &str) -> Option<&'a str> {
    let mut names = diagnosis.path.iter().filter(|station| station.tier == tier).map(|station| station.at.netns.as_deref());
    let first = names.next()??;
    names.all(|name| name == Some(first)).then_some(first)
}

fn processes(page: &Page<'_>, tier: &TierReport) -> Option<String> {
    if tier.pids.is_empty() {
        return None;
    }
    if tier.pids.len() > PIDS_TOLD_MAX {
        return Some(page.say(&Message::new("report-processes").with("count", tier.pids.len() as f64)));
    }
    let pids = tier.pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    Some(page.say(&Message::new("report-pids").with("count", tier.pids.len() as f64).with("pids", pids)))
}

/// A station's id and where it is, as far as its tier does not tell it.
fn label(page: &Page<'_>, station: &Station) -> String {
    let at = &station.at;
    let place = at.listener.clone().or_else(|| at.edge.clone());
    let place = place.or_else(|| at.cpu.as_ref().map(|cpu| cores(page, cpu)));
    let place = place.or_else(|| at.pid.map(|pid| page.say(&Message::new("report-at-pid").with("pid", pid.to_string()))));
    match place {
        Some(place) => format!("{} {place}", station.station),
        None => station.station.clone(),
    }
}

/// "core 1", "cores 0-3".
fn cores(page: &Page<'_>, cpu: &str) -> String {
    let id = if cpu.chars().all(|digit| digit.is_ascii_digit()) { "report-at-core" } else { "report-at-cores" };
    page.say(&Message::new(id).with("cpu", cpu))
}

fn mark(diagnosis: &Diagnosis, station: &Station) -> Mark {
    let of = |finding: &chokepoint_model::report::Finding| {
        finding.station == station.station && finding.tier == station.tier && finding.at == station.at
    };
    let Some(place) = diagnosis.findings.iter().position(of) else { return Mark::None };
    let finding = &diagnosis.findings[place];
    match finding.role {
        Role::Cause if place == 0 => Mark::Choke,
        Role::Cause => Mark::Cause(place + 1),
        Role::Symptom => {
            let cause = diagnosis.findings.iter().position(|other| finding.symptom_of.contains(&other.id));
            Mark::Symptom(place + 1, cause.map(|cause| cause + 1))
        }
    }
}

fn row(page: &mut Page<'_>, diagnosis: &Diagnosis, station: &Station, mark: &Mark, flow: Flow, label: &str, label_columns: usize) {
    let name_ink = if *mark == Mark::Choke { Ink::BadStrong } else { Ink::Plain };
    let mut first = vec![pipe(page, flow)];
    if columns(label) > label_columns {
        let behind = pipe(page, if flow == Flow::Choked { Flow::Behind } else { flow });
        page.flow(&[first[0].clone(), span(Ink::Plain, "  ")], &[behind, span(Ink::Plain, "    ")], &[span(name_ink, label)]);
        // The second line of a squeezed station is behind the squeeze.
        first = vec![pipe(page, if flow == Flow::Choked { Flow::Behind } else { flow })];
        first.push(span(Ink::Plain, " ".repeat(label_columns + 2)));
    } else {
        first.push(span(name_ink, format!("  {label}{}", " ".repeat(label_columns - columns(label)))));
    }
    first.push(span(Ink::Plain, "  "));
    first.extend(bar(page, station));
    let below = pipe(page, if flow == Flow::Choked { Flow::Behind } else { flow });
    let notes = notes(page, diagnosis, station, mark);
    let column = MARGIN_COLUMNS + label_columns + 4 + BAR_COLUMNS + 1 + PERCENT_COLUMNS + 2;
    if notes.is_empty() {
        page.line(&first);
    } else if column + NOTES_COLUMNS_MIN <= page.width() {
        first.push(span(Ink::Plain, "  "));
        let rest = [below, span(Ink::Plain, " ".repeat(column - MARGIN_COLUMNS))];
        page.notes(&first, &rest, &notes);
    } else {
        page.line(&first);
        let rest = [below, span(Ink::Plain, "    ")];
        page.notes(&rest, &rest, &notes);
    }
}

/// The bar of use and its percentage; blank where use or limit are not known.
fn bar(page: &Page<'_>, station: &Station) -> [Span; 2] {
    let Some(share) = station.utilization.filter(|share| share.is_finite()) else {
        return [span(Ink::Plain, " ".repeat(BAR_COLUMNS)), span(Ink::Plain, " ".repeat(PERCENT_COLUMNS + 1))];
    };
    let ink = match station.state {
        StationState::Refusing | StationState::Saturated => Ink::Bad,
        StationState::Near => Ink::Warn,
        StationState::Ok | StationState::Unknown => Ink::Plain,
    };
    // The bar is full only at the limit, and not empty where anything is used.
    let cells = (share.clamp(0.0, 1.0) * BAR_COLUMNS as f64).floor() as usize;
    let cells = if share > 0.0 { cells.max(1) } else { 0 };
    let bar = page.glyph("█", "#").repeat(cells) + &page.glyph("░", ".").repeat(BAR_COLUMNS - cells);
    let percent = page.percent(share);
    let fill = " ".repeat((PERCENT_COLUMNS + 1).saturating_sub(columns(&percent)));
    [span(ink, bar), span(ink, fill + &percent)]
}

/// What is worth saying beside the bar. Zeros are not.
fn notes(page: &Page<'_>, diagnosis: &Diagnosis, station: &Station, mark: &Mark) -> Vec<Span> {
    let mut notes = Vec::new();
    match mark {
        Mark::None => {}
        Mark::Choke => {
            let id = if diagnosis.verdict == Verdict::ClientLimited { "report-generator-limit" } else { "report-choke-point" };
            notes.push(span(Ink::BadStrong, format!("{} {}:", page.glyph("◀━", "<--"), page.word(id))));
        }
        Mark::Cause(n) => notes.push(span(Ink::Bad, page.say(&Message::new("report-also-cause").with("n", *n as f64)))),
        Mark::Symptom(_, Some(cause)) => notes.push(span(Ink::Warn, page.say(&Message::new("report-symptom").with("n", *cause as f64)))),
        Mark::Symptom(n, None) => notes.push(span(Ink::Warn, page.say(&Message::new("report-symptom-alone").with("n", *n as f64)))),
    }
    // A state without a finding explains itself; its sentence holds the numbers. The verdict may have said it already.
    let told = diagnosis.summary.contains(station.why.trim_end_matches('.'));
    let explains = *mark == Mark::None && station.state != StationState::Ok && !told;
    if explains {
        let ink = if station.state == StationState::Unknown { Ink::Faint } else { Ink::Warn };
        notes.push(span(ink, station.why.trim_end_matches('.')));
    } else {
        notes.extend(use_of(page, station).map(|text| span(Ink::Plain, text)));
        if let Some(refused) = station.refused_per_s.filter(|refused| *refused > 0.0) {
            notes.push(span(Ink::Bad, page.say(&Message::new("report-refused").with("n", refused))));
        }
        if let Some(waiting) = station.waiting.filter(|waiting| *waiting >= 0.05 && station.used != Some(*waiting)) {
            notes.push(span(Ink::Plain, page.say(&Message::new("report-waiting").with("n", waiting))));
        }
    }
    if let Some(ceiling) = station.ceiling_rps {
        let message = Message::new("report-ceiling").with("value", ceiling.value).with("low", ceiling.low).with("high", ceiling.high);
        notes.push(span(Ink::Plain, page.say(&message)));
    }
    notes
}

/// "200 of 200 entries", "941 Mbit/s", "limit 511 connections".
fn use_of(page: &Page<'_>, station: &Station) -> Option<String> {
    let amount = |amount: f64| page.amount(amount, &station.unit);
    let text = match (station.used, station.limit) {
        (Some(used), Some(limit)) => page.say(&Message::new("report-of").with("used", amount(used)).with("limit", amount(limit))),
        (Some(used), None) => amount(used),
        (None, Some(limit)) => page.say(&Message::new("report-limit").with("limit", amount(limit))),
        (None, None) => return None,
    };
    let unit = page.unit(station.limit.or(station.used).unwrap_or_default(), &station.unit);
    Some(if unit.is_empty() { text } else { format!("{text} {unit}") })
}
