//! The request's path: its tiers and stations in order, what to say about each, and which one is the choke point.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, Finding, Role, Station, StationState, TierReport, Verdict};

use super::{Ink, Phrases, Span, span};

/// Up to this many processes are listed by their ids; more are only counted.
const PIDS_MAX: usize = 4;

/// The utilization of a station that refused is shown from this value on.
const REFUSED_SHARE_MIN: f64 = 0.01;

/// What the findings say about a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Nothing.
    None,
    /// The first cause.
    Choke,
    /// Another cause: its number in the report.
    Cause(usize),
    /// A symptom: its own number, and the number of its cause if that is in the report.
    Symptom(usize, Option<usize>),
}

/// Where a row is: before, at or behind the choke point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Before the choke point, or on a path without one.
    Before,
    /// At the choke point.
    Choked,
    /// Behind the choke point.
    Behind,
}

/// One tier of the path.
pub(crate) struct TierView<'a> {
    pub(crate) name: &'a str,
    /// Its namespace and processes, if they are of interest.
    pub(crate) facts: Vec<String>,
    /// Where its heading is.
    pub(crate) flow: Flow,
    pub(crate) rows: Vec<StationRow<'a>>,
}

/// One station of the path.
pub(crate) struct StationRow<'a> {
    pub(crate) station: &'a Station,
    /// Id and place.
    pub(crate) label: String,
    /// What the findings say about it.
    pub(crate) mark: Mark,
    /// The words for the mark.
    pub(crate) badge: Option<Span>,
    /// Where it is.
    pub(crate) flow: Flow,
    /// Utilization, if it is known and finite.
    pub(crate) share: Option<f64>,
    /// Ink of the utilization.
    pub(crate) ink: Ink,
    /// Figures other than utilization that are not zero.
    pub(crate) notes: Vec<Span>,
}

/// The tiers in the order in which a request first meets them, each with its stations.
pub(crate) fn tiers<'a>(diagnosis: &'a Diagnosis, phrases: Phrases<'_>) -> Vec<TierView<'a>> {
    let show_netns = has_several_namespaces(diagnosis);
    let mut flow = Flow::Before;
    let mut tiers = Vec::new();
    for name in names(diagnosis) {
        let mut tier = TierView { name, facts: facts(diagnosis, name, show_netns, phrases), flow, rows: Vec::new() };
        for station in diagnosis.path.iter().filter(|station| station.tier == name) {
            let mark = mark(diagnosis, station);
            if mark == Mark::Choke {
                flow = Flow::Choked;
            }
            tier.rows.push(StationRow {
                station,
                label: label(phrases, station),
                mark,
                badge: badge(phrases, diagnosis, mark),
                flow,
                // A queue that refused was full at some time, whatever the samples saw of it.
                share: station.utilization.filter(|share| share.is_finite() && !(has_refused(station) && *share < REFUSED_SHARE_MIN)),
                ink: match station.state {
                    StationState::Refusing | StationState::Saturated => Ink::Bad,
                    StationState::Near => Ink::Warn,
                    StationState::Ok | StationState::Unknown => Ink::Plain,
                },
                notes: notes(phrases, diagnosis, station, mark),
            });
            if flow == Flow::Choked {
                flow = Flow::Behind;
            }
        }
        tiers.push(tier);
    }
    tiers
}

/// Stations that drop packets of connections. The peer sends each again, so they count tries and not connections.
const DROPPING: [&str; 3] = ["accept-queue", "conntrack-table", "syn-queue"];

/// What a station refused, in words.
pub(crate) fn refusals(station: &Station) -> Message {
    Message::new(match station.station.as_str() {
        dropping if DROPPING.contains(&dropping) => "report-refused-tries",
        // Nobody answers them, or nobody listens.
        "upstream-connect" => "report-refused-connections",
        _ => "report-refused",
    })
}

/// True if the station refused something.
pub(crate) fn has_refused(station: &Station) -> bool {
    station.refused_per_s.is_some_and(|refused| refused > 0.0)
}

/// The tiers' names in the order in which a request first meets them.
fn names(diagnosis: &Diagnosis) -> Vec<&str> {
    let mut tiers: Vec<&str> = Vec::new();
    for station in &diagnosis.path {
        if !tiers.contains(&station.tier.as_str()) {
            tiers.push(&station.tier);
        }
    }
    tiers
}

/// True if the path spans several network namespaces, so that their names are of interest.
fn has_several_namespaces(diagnosis: &Diagnosis) -> bool {
    let stations = diagnosis.path.iter().filter_map(|station| station.at.netns.as_deref());
    let mut names: Vec<&str> = stations.chain(diagnosis.target.tiers.iter().map(|tier| tier.netns.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    names.len() > 1
}

fn facts(diagnosis: &Diagnosis, tier: &str, show_netns: bool, phrases: Phrases<'_>) -> Vec<String> {
    let tier_report = diagnosis.target.tiers.iter().find(|report| report.name == tier);
    let mut facts: Vec<String> = Vec::new();
    let netns = tier_report.map(|report| report.netns.as_str()).or_else(|| shared_netns(diagnosis, tier));
    if let Some(netns) = netns.filter(|netns| show_netns && *netns != tier) {
        facts.push(phrases.say(&Message::new("report-in-netns").with("netns", netns)));
    }
    facts.extend(tier_report.and_then(|report| processes(phrases, report)));
    facts
}

/// The namespace of the stations of a tier, if all have the same.
fn shared_netns<'a>(diagnosis: &'a Diagnosis, tier: &str) -> Option<&'a str> {
    let mut names = diagnosis.path.iter().filter(|station| station.tier == tier).map(|station| station.at.netns.as_deref());
    let first = names.next()??;
    names.all(|name| name == Some(first)).then_some(first)
}

fn processes(phrases: Phrases<'_>, tier: &TierReport) -> Option<String> {
    if tier.pids.is_empty() {
        return None;
    }
    if tier.pids.len() > PIDS_MAX {
        return Some(phrases.say(&Message::new("report-processes").with("count", tier.pids.len() as f64)));
    }
    let pids = tier.pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    Some(phrases.say(&Message::new("report-pids").with("count", tier.pids.len() as f64).with("pids", pids)))
}

/// Id and place of a station.
pub(super) fn label(phrases: Phrases<'_>, station: &Station) -> String {
    let at = &station.at;
    let place = at.listener.clone().or_else(|| at.edge.clone());
    let place = place.or_else(|| at.cpu.as_ref().map(|cpu| cores(phrases, cpu)));
    let place = place.or_else(|| at.pid.map(|pid| phrases.say(&Message::new("report-at-pid").with("pid", pid.to_string()))));
    match place {
        Some(place) => format!("{} {place}", station.station),
        None => station.station.clone(),
    }
}

/// "core 1", "cores 0-3".
fn cores(phrases: Phrases<'_>, cpu: &str) -> String {
    let id = if cpu.chars().all(|digit| digit.is_ascii_digit()) { "report-at-core" } else { "report-at-cores" };
    phrases.say(&Message::new(id).with("cpu", cpu))
}

/// The finding that is the choke point: the first cause. If the client limits the run, causes at the server are not its choke point.
pub(crate) fn choke(diagnosis: &Diagnosis) -> Option<usize> {
    let limits = |finding: &Finding| diagnosis.verdict != Verdict::ClientLimited || finding.tier == "client";
    diagnosis.findings.iter().position(|finding| finding.role == Role::Cause && limits(finding))
}

/// The places of all findings at a station in the report's list.
pub(crate) fn findings_at<'a>(diagnosis: &'a Diagnosis, station: &'a Station) -> impl Iterator<Item = usize> + 'a {
    let same_kind = |finding: &Finding, station: &Station| finding.station == station.station && finding.tier == station.tier;
    let same = move |finding: &Finding, station: &Station| same_kind(finding, station) && finding.at == station.at;
    // A finding about an upstream has another place than its station. It still belongs to the station.
    let elsewhere = move |finding: &Finding| diagnosis.path.iter().all(|other| !same(finding, other));
    let of = move |finding: &Finding| same(finding, station) || (same_kind(finding, station) && elsewhere(finding));
    diagnosis.findings.iter().enumerate().filter(move |(_, finding)| of(finding)).map(|(place, _)| place)
}

fn mark(diagnosis: &Diagnosis, station: &Station) -> Mark {
    let Some(place) = findings_at(diagnosis, station).next() else { return Mark::None };
    let finding = &diagnosis.findings[place];
    match finding.role {
        Role::Cause if choke(diagnosis) == Some(place) => Mark::Choke,
        Role::Cause => Mark::Cause(place + 1),
        Role::Symptom => {
            let cause = diagnosis.findings.iter().position(|other| finding.symptom_of.contains(&other.id));
            Mark::Symptom(place + 1, cause.map(|cause| cause + 1))
        }
    }
}

fn badge(phrases: Phrases<'_>, diagnosis: &Diagnosis, mark: Mark) -> Option<Span> {
    let numbered = |id: &'static str, n: usize| phrases.say(&Message::new(id).with("n", n as f64));
    Some(match mark {
        Mark::None => return None,
        Mark::Choke if diagnosis.verdict == Verdict::ClientLimited => span(Ink::BadStrong, phrases.word("report-generator-limit")),
        Mark::Choke => span(Ink::BadStrong, phrases.word("report-choke-point")),
        Mark::Cause(n) => span(Ink::Bad, numbered("report-also-cause", n)),
        Mark::Symptom(_, Some(cause)) => span(Ink::Warn, numbered("report-symptom", cause)),
        Mark::Symptom(n, None) => span(Ink::Warn, numbered("report-symptom-alone", n)),
    })
}

/// Share of full cores below which others fill them, too.
const SHARED_BELOW: f64 = 0.8;

/// "beside other programs": full cores of which these servers use a part. The share of the station is their own.
pub(crate) fn beside_others(phrases: Phrases<'_>, station: &Station) -> Option<String> {
    let is_shared = station.station == "cpu" && station.state == StationState::Saturated;
    let share = station.utilization.filter(|share| is_shared && *share < SHARED_BELOW);
    share.map(|_| phrases.word("report-beside-others"))
}

/// Figures other than utilization that are not zero.
fn notes(phrases: Phrases<'_>, diagnosis: &Diagnosis, station: &Station, mark: Mark) -> Vec<Span> {
    let mut notes = Vec::new();
    // A state without a finding has its own sentence with the figures. The summary may already contain it.
    let is_in_summary = diagnosis.summary.contains(station.why.trim_end_matches('.'));
    let explains = mark == Mark::None && station.state != StationState::Ok && !is_in_summary;
    if explains {
        let ink = if station.state == StationState::Unknown { Ink::Faint } else { Ink::Warn };
        notes.push(span(ink, station.why.trim_end_matches('.')));
    } else {
        notes.extend(use_of(phrases, station).map(|text| span(Ink::Plain, text)));
        notes.extend(beside_others(phrases, station).map(|text| span(Ink::Warn, text)));
        if let Some(refused) = station.refused_per_s.filter(|refused| *refused > 0.0) {
            notes.push(span(Ink::Bad, phrases.say(&refusals(station).with("n", refused))));
        }
        if let Some(waiting) = station.waiting.filter(|waiting| *waiting >= 0.05 && station.used != Some(*waiting)) {
            notes.push(span(Ink::Plain, phrases.say(&Message::new("report-waiting").with("n", waiting))));
        }
    }
    if let Some(ceiling) = station.ceiling_rps {
        let message = Message::new("report-ceiling").with("value", ceiling.value).with("low", ceiling.low).with("high", ceiling.high);
        notes.push(span(Ink::Plain, phrases.say(&message)));
    }
    notes
}

/// "200 of 200 entries", "941 Mbit/s", "limit 511 connections".
fn use_of(phrases: Phrases<'_>, station: &Station) -> Option<String> {
    let amount = |amount: f64| phrases.amount(amount, &station.unit);
    let text = match (station.used, station.limit) {
        (Some(used), Some(limit)) => phrases.say(&Message::new("report-of").with("used", amount(used)).with("limit", amount(limit))),
        (Some(used), None) => amount(used),
        (None, Some(limit)) => phrases.say(&Message::new("report-limit").with("limit", amount(limit))),
        (None, None) => return None,
    };
    let unit = phrases.unit(station.limit.or(station.used).unwrap_or_default(), &station.unit);
    Some(if unit.is_empty() { text } else { format!("{text} {unit}") })
}
