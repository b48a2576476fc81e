//! The report of a diagnosis as a self-contained HTML page: no script, no other file, no network. This module draws and never judges.

mod chain;
mod chart;
pub(crate) mod escape;
pub(crate) mod experiment;
mod pipe;

#[cfg(test)]
mod tests;

use anyhow::{Context, Result};
use askama::Template;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, LoadReport, Remedy, Role, StationState, Verdict};

use crate::report::view::path::{Flow, Mark};
use crate::report::view::readings::Gap;
use crate::report::view::{self, Ink, Phrases, Span};
use chain::ChainDrawing;
use chart::RoundsChart;
use pipe::Pipe;

/// The style sheet, the same in every report.
const STYLE: &str = include_str!("../../templates/report.css");
/// SHA-256 of [`STYLE`] in base64. The page's policy allows only this style (CSP level 3, "hash-source"). A test recomputes it.
const STYLE_SHA256: &str = "zKE+95hYB7yMQpwMXHlBErAt/KdWUUQJKVOU5/GTyj4=";

/// The page. All text goes through [`escape::Visible`], except the style sheet and the JSON, which need no escaping.
#[derive(Template)]
#[template(path = "report.html")]
struct HtmlPage<'a> {
    say: Say<'a>,
    report: &'a Diagnosis,
    style: &'static str,
    style_hash: &'static str,
    title: String,
    verdict: VerdictView,
    result: Option<(String, VerdictView)>,
    tiles: Vec<Tile>,
    facts: Vec<view::load::LoadLine>,
    /// The legend of the path.
    legend: String,
    inlet: Pipe,
    tiers: Vec<HtmlTier<'a>>,
    outlet: Pipe,
    goodput: Option<Span>,
    /// Where requests stood.
    ledger: Option<view::ledger::LedgerView>,
    /// The chains from cause to symptom, if there is more than one finding.
    chain: Option<ChainDrawing>,
    findings: Option<FindingsPart<'a>>,
    /// What could be faster although nothing is choked.
    improvements: Option<FindingsPart<'a>>,
    /// The measurements of each tier alone: the explanation, and the tiers.
    bisect: Option<(&'a str, Vec<view::bisect::PartRow<'a>>)>,
    /// Where the CPU time went.
    profile: Vec<String>,
    wire: Vec<String>,
    rounds: Vec<view::rounds::RoundRow<'a>>,
    charts: Vec<RoundsChart>,
    gaps: Vec<Gap<'a>>,
    /// When and where it was measured.
    run: String,
    json: String,
}

/// Functions for the template.
#[derive(Clone, Copy)]
struct Say<'a>(Phrases<'a>);

impl Say<'_> {
    fn word(&self, id: &'static str) -> String {
        self.0.word(id)
    }

    fn class(&self, ink: &Ink) -> &'static str {
        class(*ink)
    }

    fn names(&self, gap: &Gap<'_>) -> String {
        gap.names(self.0)
    }

    fn needs(&self, gap: &Gap<'_>) -> Option<String> {
        gap.needs(self.0)
    }

    fn tenths(&self, number: &f64) -> String {
        view::ledger::tenths(*number)
    }

    fn share(&self, share: &f64) -> String {
        self.0.percent(share.max(0.0))
    }

    /// Columns of 100 that a bar fills.
    fn width(&self, share: &f64) -> String {
        format!("{:.1}", share.clamp(0.0, 1.0) * 100.0)
    }

    fn schema(&self, schema: &str) -> String {
        self.0.say(&Message::new("html-machine").with("schema", schema))
    }
}

/// A verdict: its CSS class, its word and its sentence.
struct VerdictView {
    class: &'static str,
    word: String,
    summary: String,
}

/// A key figure.
struct Tile {
    label: String,
    value: String,
    class: &'static str,
}

/// A tier of the path: heading and stations.
struct HtmlTier<'a> {
    name: &'a str,
    facts: String,
    pipe: Pipe,
    rows: Vec<HtmlStation>,
    /// Stations with headroom that nothing is said about, folded: their number in words, their pipe, and themselves.
    idle: Option<(String, Pipe, Vec<HtmlStation>)>,
}

struct HtmlStation {
    label: String,
    chokes: bool,
    badge: Option<Span>,
    notes: Vec<Span>,
    /// "100 %", and the columns of 100 that the bar fills.
    usage: Option<(String, String)>,
    class: &'static str,
    pipe: Pipe,
}

/// Findings under one heading.
struct FindingsPart<'a> {
    id: &'static str,
    heading: &'static str,
    findings: Vec<HtmlFinding<'a>>,
    /// True if there are commands to copy.
    copies: bool,
    /// A note on all of them, in pieces that alternate between text and command.
    note: Vec<String>,
}

impl<'a> FindingsPart<'a> {
    /// Nothing without findings.
    fn of(id: &'static str, heading: &'static str, findings: Vec<HtmlFinding<'a>>, note: &str) -> Option<Self> {
        let copies = findings.iter().flat_map(|finding| &finding.remedies).any(|fix| !fix.commands.is_empty());
        // The catalogue writes commands between backticks.
        let note = note.split('`').filter(|_| !note.is_empty()).map(str::to_owned).collect();
        (!findings.is_empty()).then_some(Self { id, heading, findings, copies, note })
    }
}

struct HtmlFinding<'a> {
    report: &'a chokepoint_model::report::Finding,
    number: Option<usize>,
    class: &'static str,
    standing: String,
    title: Option<String>,
    remedies: Vec<HtmlFix<'a>>,
}

struct HtmlFix<'a> {
    title: String,
    report: &'a Remedy,
    /// Label, and the lines to copy.
    commands: Vec<(String, Vec<String>)>,
    terms: Vec<(String, String)>,
}

/// The page of a diagnosis, ending in a newline; the same bytes for the same diagnosis.
pub(crate) fn render(diagnosis: &Diagnosis, words: &Catalogue) -> Result<String> {
    let phrases = Phrases(words);
    let verdict = verdict_view(diagnosis.verdict, &diagnosis.summary, phrases);
    let result = view::rounds::result(diagnosis, phrases).zip(diagnosis.result());
    let title = Message::new("html-title").with("verdict", verdict.word.as_str()).with("url", diagnosis.target.url.as_str());
    let tiers = tiers(diagnosis, phrases);
    let is_choked = tiers.iter().flat_map(|tier| &tier.rows).any(|row| row.chokes);
    let page = HtmlPage {
        say: Say(phrases),
        report: diagnosis,
        style: STYLE,
        style_hash: STYLE_SHA256,
        title: phrases.say(&title),
        verdict,
        result: result.map(|([done, _], last)| (done.text, verdict_view(last.verdict, &last.summary, phrases))),
        tiles: tiles(diagnosis, phrases),
        facts: view::load::lines(diagnosis, phrases),
        legend: phrases.word(if is_choked { "html-legend" } else { "html-legend-open" }),
        inlet: Pipe::end(Flow::Before),
        tiers,
        outlet: Pipe::end(if is_choked { Flow::Behind } else { Flow::Before }),
        goodput: diagnosis.load.as_ref().map(|load| view::load::goodput(phrases, load)),
        ledger: view::ledger::view(diagnosis, phrases),
        chain: chain::chain(diagnosis, phrases),
        findings: findings(diagnosis, phrases),
        improvements: improvements(diagnosis, phrases),
        bisect: view::bisect::rows(diagnosis, phrases),
        profile: view::profile::lines(diagnosis, phrases),
        wire: view::wire::lines(diagnosis, phrases),
        rounds: view::rounds::rows(diagnosis, phrases),
        charts: chart::charts(diagnosis, phrases),
        gaps: view::readings::gaps(diagnosis),
        run: view::run::facts(diagnosis, phrases).join(" · "),
        json: escape::embedded(&serde_json::to_string(diagnosis).context("the report is no JSON")?),
    };
    // A rendered template lacks the last line break.
    Ok(page.render().context("the report is no HTML")? + "\n")
}

fn verdict_view(verdict: Verdict, summary: &str, phrases: Phrases<'_>) -> VerdictView {
    let class = match verdict {
        Verdict::Choked => "bad",
        Verdict::Healthy => "good",
        Verdict::ClientLimited | Verdict::Unknown => "warn",
    };
    let word = view::verdict_word(verdict, phrases);
    let summary = view::told(&word, summary);
    VerdictView { class, word, summary }
}

/// The CSS class of an ink.
fn class(ink: Ink) -> &'static str {
    match ink {
        Ink::Plain => "plain",
        Ink::Strong => "strong",
        Ink::Faint => "faint",
        Ink::Bad => "bad",
        Ink::BadStrong => "bad strong",
        Ink::Warn => "warn",
        Ink::WarnStrong => "warn strong",
        Ink::GoodStrong => "good strong",
    }
}

/// Goodput, p99, failures and requests; after a fix, of the first measurement and of the one with all kept changes.
fn tiles(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<Tile> {
    let Some(first) = &diagnosis.load else { return Vec::new() };
    let last = diagnosis.result().map(|round| &round.load);
    let tile = |id, figure: &dyn Fn(&LoadReport) -> String| Tile {
        label: phrases.word(id),
        value: match last {
            Some(last) => phrases.say(&Message::new("html-change").with("before", figure(first)).with("after", figure(last))),
            None => figure(first),
        },
        class: if last.is_some() { "two" } else { "one" },
    };
    vec![
        tile("html-goodput", &|load| phrases.say(&Message::new("html-per-second").with("rate", load.goodput_rps))),
        tile("html-p99", &|load| phrases.duration_us(load.latency_us.p99 as f64)),
        tile("html-failed", &|load| phrases.percent(view::rounds::failed_share(load))),
        tile("html-requests", &|load| phrases.number(load.requests as f64)),
    ]
}

fn tiers<'a>(diagnosis: &'a Diagnosis, phrases: Phrases<'_>) -> Vec<HtmlTier<'a>> {
    let station = |row: &view::path::StationRow<'_>| HtmlStation {
        label: row.label.clone(),
        chokes: row.mark == Mark::Choke,
        badge: row.badge.clone(),
        notes: row.notes.clone(),
        usage: row.share.map(|share| (phrases.percent(share), format!("{:.1}", share.clamp(0.0, 1.0) * 100.0))),
        class: class(row.ink),
        pipe: Pipe::station(row),
    };
    let tiers = view::path::tiers(diagnosis, phrases).into_iter();
    let is_idle = |row: &&view::path::StationRow<'_>| row.mark == Mark::None && row.station.state == StationState::Ok;
    let tier = |tier: view::path::TierView<'a>| {
        let (idle, rows): (Vec<_>, Vec<_>) = tier.rows.iter().partition(is_idle);
        let idle = rows_folded(&idle, phrases).zip(tier.rows.last()).map(|(title, last)| {
            let flow = if last.flow == Flow::Choked { Flow::Behind } else { last.flow };
            (title, Pipe { joint: false, ..Pipe::joint(flow) }, idle.iter().map(|row| station(row)).collect())
        });
        HtmlTier {
            name: tier.name,
            facts: tier.facts.join(", "),
            pipe: Pipe::joint(tier.flow),
            rows: rows.into_iter().map(station).collect(),
            idle,
        }
    };
    tiers.map(tier).collect()
}

/// How many stations are folded, in words; nothing for none.
fn rows_folded(rows: &[&view::path::StationRow<'_>], phrases: Phrases<'_>) -> Option<String> {
    (!rows.is_empty()).then(|| phrases.say(&Message::new("html-idle").with("n", rows.len() as f64)))
}

fn findings<'a>(diagnosis: &'a Diagnosis, phrases: Phrases<'_>) -> Option<FindingsPart<'a>> {
    let of = |(place, report): (usize, &'a chokepoint_model::report::Finding)| {
        let class = if report.role == Role::Cause { "bad" } else { "warn" };
        finding(diagnosis, report, Some(place + 1), class, view::findings::standing(diagnosis, report, phrases), phrases)
    };
    let offer = view::findings::offers_fix(diagnosis).then(|| phrases.word("report-offer-fix"));
    let harm = diagnosis.harm.as_ref().map(|harm| harm.text.clone());
    let note = harm.into_iter().chain(offer).collect::<Vec<_>>().join(" ");
    FindingsPart::of("findings", "report-findings", diagnosis.findings.iter().enumerate().map(of).collect(), &note)
}

fn improvements<'a>(diagnosis: &'a Diagnosis, phrases: Phrases<'_>) -> Option<FindingsPart<'a>> {
    let of = |report| finding(diagnosis, report, None, "plain", view::findings::standing_of_improvement(report, phrases), phrases);
    let note = phrases.word("report-improvements-note");
    FindingsPart::of("improvements", "report-improvements", diagnosis.improvements.iter().map(of).collect(), &note)
}

fn finding<'a>(
    diagnosis: &'a Diagnosis,
    report: &'a chokepoint_model::report::Finding,
    number: Option<usize>,
    class: &'static str,
    standing: String,
    phrases: Phrases<'_>,
) -> HtmlFinding<'a> {
    let fix = |count: usize, choice: usize, remedy: &'a Remedy| {
        let text = |lines: &[String]| lines.iter().map(|line| view::printable(line).into_owned()).collect();
        HtmlFix {
            title: view::findings::fix_title(choice, count, phrases),
            report: remedy,
            commands: view::findings::commands(remedy).map(|(id, lines)| (phrases.word(id), text(&lines))).collect(),
            terms: view::findings::terms(remedy, phrases).into_iter().map(|(id, text)| (phrases.word(id), text)).collect(),
        }
    };
    HtmlFinding {
        report,
        number,
        class,
        standing,
        title: view::findings::title(diagnosis, report),
        remedies: report.remedies.iter().enumerate().map(|(choice, remedy)| fix(report.remedies.len(), choice, remedy)).collect(),
    }
}
