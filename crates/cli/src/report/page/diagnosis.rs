//! The page of a diagnosis.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, Finding as FindingReport, Kept, LoadReport, Prediction, Remedy, Role, RoundKind};

use super::{Answer, Bar, Block, Finding, Fix, Link, Place, ReportPage, Section, Severity, Station, Tier, columns, list, remark, text};
use crate::report::view::readings::Gap;
use crate::report::view::rounds::RoundRow;
use crate::report::view::{self, Ink, Phrases, Shown, Span, span};

/// The page; the same for the same diagnosis.
pub(crate) fn page(diagnosis: &Diagnosis, words: &Catalogue) -> ReportPage {
    let phrases = Phrases(words);
    let word = Shown::of_first(diagnosis).word(phrases);
    let title = Message::new("html-title").with("verdict", word).with("url", diagnosis.target.url.as_str());
    let section = |id: &'static str, blocks: Vec<Block>| Section::of(id, phrases.word(id), blocks);
    let lines = |lines: Vec<String>, ink| list(lines, ink).into_iter().collect::<Vec<_>>();
    let sections = [
        section("html-load", load(diagnosis, phrases)),
        section("report-rounds", rounds(diagnosis, phrases)),
        section("report-findings", findings(diagnosis, phrases)),
        section("report-chain", chain(diagnosis, phrases)),
        section("report-path", path(diagnosis, phrases)),
        section("report-ledger", ledger(diagnosis, phrases)),
        section("report-bisect", bisect(diagnosis, phrases)),
        section("report-improvements", improvements(diagnosis, phrases)),
        section("report-profile", lines(view::profile::lines(diagnosis, phrases), Ink::Plain)),
        section("report-wire", lines(view::wire::lines(diagnosis, phrases), Ink::Plain)),
        section("report-warnings", lines(diagnosis.warnings.clone(), Ink::Warn)),
        section("report-unread", unread(diagnosis, phrases)),
    ];
    ReportPage {
        title: phrases.say(&title),
        brand: phrases.word("html-brand"),
        subject: diagnosis.target.url.clone(),
        verdicts: answers(diagnosis, phrases),
        sections: sections.into_iter().flatten().collect(),
        footer: view::run::facts(diagnosis, phrases),
    }
}

/// The verdict; after a fix also the one of the last measurement.
fn answers(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<Answer> {
    let answer = |shown: Shown, summary: &str| {
        let word = shown.word(phrases);
        let text = view::told(&word, summary);
        let severity = match shown {
            Shown::Choked | Shown::Overloaded => Severity::Bad,
            Shown::Healthy => Severity::Good,
            Shown::ClientLimited | Shown::Unknown => Severity::Unknown,
        };
        Answer { severity, word, text, done: None }
    };
    let found = answer(Shown::of_first(diagnosis), &diagnosis.summary);
    let Some(([done, _], last)) = view::rounds::result(diagnosis, phrases).zip(diagnosis.result()) else { return vec![found] };
    let when = |id, answer: Answer| Answer { word: format!("{}: {}", phrases.word(id), answer.word), ..answer };
    let after = Answer { done: Some(done.text), ..answer(Shown::of_round(last), &last.summary) };
    vec![when("html-as-found", found), when("html-after-fix", after)]
}

/// Goodput, p99, failures and requests (after a fix, of the first measurement and of the one with all kept changes), and what was offered and came back.
fn load(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<Block> {
    let last = diagnosis.result().map(|round| &round.load);
    let tile = |first: &LoadReport, id: &'static str, figure: &dyn Fn(&LoadReport) -> String| {
        let value = match last {
            Some(last) => phrases.say(&Message::new("html-change").with("before", figure(first)).with("after", figure(last))),
            None => figure(first),
        };
        (phrases.word(id), value)
    };
    let tiles = |first: &LoadReport| {
        vec![
            tile(first, "html-goodput", &|load| phrases.say(&Message::new("html-per-second").with("rate", load.goodput_rps))),
            tile(first, "html-p99", &|load| view::load::p99(phrases, load)),
            tile(first, "html-failed", &|load| phrases.percent(view::rounds::failed_share(load))),
            tile(first, "html-requests", &|load| phrases.number(load.requests as f64)),
        ]
    };
    let mut blocks: Vec<Block> = diagnosis.load.iter().map(|load| Block::Tiles { tiles: tiles(load) }).collect();
    let rows: Vec<_> = view::load::lines(diagnosis, phrases).into_iter().map(|line| (phrases.word(line.label), line.notes)).collect();
    if !rows.is_empty() {
        blocks.extend((!diagnosis.rounds.is_empty()).then(|| remark(phrases.word("report-as-found"))));
        blocks.push(Block::Terms { rows });
    }
    blocks
}

/// The findings, and what to do about them.
fn findings(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<Block> {
    let of = |(place, report): (usize, &FindingReport)| {
        let severity = if report.role == Role::Cause { Severity::Bad } else { Severity::Unknown };
        let standing = view::findings::standing(diagnosis, report, phrases);
        Block::Finding(Box::new(Finding { number: Some(place + 1), severity, ..finding(diagnosis, report, standing, phrases) }))
    };
    let mut blocks: Vec<Block> = diagnosis.findings.iter().enumerate().map(of).collect();
    if !blocks.is_empty() {
        let offer = view::findings::offers_fix(diagnosis).then(|| phrases.word("report-offer-fix"));
        let harm = diagnosis.harm.as_ref().map(|harm| harm.text.clone());
        blocks.extend(harm.into_iter().chain(offer).map(remark));
    }
    blocks
}

fn improvements(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<Block> {
    let of = |report| {
        let standing = view::findings::standing_of_improvement(report, phrases);
        Block::Finding(Box::new(finding(diagnosis, report, standing, phrases)))
    };
    let mut blocks: Vec<Block> = diagnosis.improvements.iter().map(of).collect();
    if !blocks.is_empty() {
        blocks.push(remark(phrases.word("report-improvements-note")));
    }
    blocks
}

fn finding(diagnosis: &Diagnosis, report: &FindingReport, standing: String, phrases: Phrases<'_>) -> Finding {
    let fix = |count: usize, choice: usize, remedy: &Remedy| Fix {
        title: view::findings::fix_title(choice, count, phrases),
        id: remedy.id.clone(),
        text: remedy.text.clone(),
        commands: view::findings::commands(remedy).map(|(id, lines)| (phrases.word(id), lines.join("\n"))).collect(),
        terms: view::findings::terms(diagnosis, remedy, phrases).into_iter().map(|(id, text)| (phrases.word(id), text)).collect(),
    };
    Finding {
        number: None,
        id: report.id.clone(),
        severity: Severity::Unknown,
        standing,
        title: view::findings::title(diagnosis, report),
        explanation: report.explanation.clone(),
        evidence_heading: phrases.word("report-evidence"),
        evidence: report.evidence.iter().map(|evidence| (evidence.text.clone(), evidence.source.clone())).collect(),
        fixes: report.remedies.iter().enumerate().map(|(choice, remedy)| fix(report.remedies.len(), choice, remedy)).collect(),
    }
}

fn chain(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<Block> {
    let lines = view::chain::lines(diagnosis, phrases).into_iter();
    let link = |line: view::chain::ChainLine| Link {
        level: line.level,
        number: line.number,
        id: line.id,
        note: line.note,
        ink: line.ink,
        why: line.why,
    };
    let links: Vec<Link> = lines.map(link).collect();
    if links.is_empty() {
        return Vec::new();
    }
    vec![Block::Chain { links, words: view::chain::links_in_words(diagnosis, phrases) }, remark(phrases.word("html-chain-note"))]
}

fn path(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<Block> {
    let station = |row: view::path::StationRow<'_>| Station {
        station: row.station.station.clone(),
        label: row.label,
        state: row.station.state,
        is_choke: row.mark == view::path::Mark::Choke,
        badge: row.badge,
        notes: row.notes,
        why: row.station.why.clone(),
        utilization: row.share,
        ceiling_rps: row.station.ceiling_rps.map(|ceiling| ceiling.value).filter(|value| value.is_finite()),
        findings: view::path::findings_at(diagnosis, row.station).map(|at| at + 1).collect(),
    };
    let tier = |tier: view::path::TierView<'_>| Tier {
        name: tier.name.to_owned(),
        facts: tier.facts.join(", "),
        stations: tier.rows.into_iter().map(station).collect(),
    };
    let tiers: Vec<Tier> = view::path::tiers(diagnosis, phrases).into_iter().map(tier).collect();
    if tiers.is_empty() {
        return Vec::new();
    }
    let found = (!diagnosis.rounds.is_empty()).then(|| remark(phrases.word("report-as-found")));
    found.into_iter().chain([Block::Path { tiers }, remark(phrases.word("html-legend"))]).collect()
}

fn ledger(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<Block> {
    let Some(ledger) = view::ledger::view(diagnosis, phrases) else { return Vec::new() };
    let place = |row: view::ledger::PlaceRow| Place {
        label: row.label,
        place: row.place,
        mean: view::ledger::tenths(row.mean),
        share: row.share.max(0.0),
        ink: row.ink,
    };
    let places = Block::Standing { places: ledger.rows.into_iter().map(place).collect() };
    [text(ledger.head), places].into_iter().chain(list(ledger.losses, Ink::Warn)).collect()
}

fn bisect(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<Block> {
    let Some((summary, parts)) = view::bisect::rows(diagnosis, phrases) else { return Vec::new() };
    let head = ["html-column-tier", "report-column-part", "html-column-notes", "report-column-verdict"];
    let row = |part: view::bisect::PartRow<'_>| {
        let how = [part.how.as_str(), part.url].join(" ");
        let notes = part.notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>().join(", ");
        let tier = span(if part.explains { Ink::BadStrong } else { Ink::Strong }, part.tier);
        vec![tier, span(Ink::Plain, how.trim_end()), span(Ink::Plain, notes), part.summary]
    };
    vec![text(summary), Block::Table { head: columns(&head, &[], phrases), rows: parts.into_iter().map(row).collect() }]
}

/// The readings that are missing.
fn unread(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<Block> {
    let line = |gap: &Gap<'_>| {
        let failed = gap.failed.then(|| span(Ink::BadStrong, format!("{}: ", phrases.word("report-failed"))));
        let needs = gap.needs(phrases).map(|needs| span(Ink::Strong, format!("; {needs}")));
        let names = span(Ink::Plain, format!("{}: ", gap.names(phrases)));
        [Some(names), failed, Some(span(Ink::Plain, gap.why)), needs].into_iter().flatten().collect::<Vec<Span>>()
    };
    let lines: Vec<_> = view::readings::gaps(diagnosis).iter().map(line).collect();
    if lines.is_empty() { Vec::new() } else { vec![Block::List { lines }] }
}

/// The rounds of a fix: bars of goodput with its prediction and of p99, and a table.
fn rounds(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<Block> {
    let rows = view::rounds::rows(diagnosis, phrases);
    if rows.is_empty() {
        return Vec::new();
    }
    let mut blocks = bars(diagnosis, &rows, phrases);
    let row = |row: RoundRow<'_>| {
        let plain = [row.n, row.before, row.found, row.changed, row.predicted].map(|text| span(Ink::Plain, text));
        let (ink, fate) = row.fate.map_or((Ink::Plain, String::new()), |fate| (fate.ink, fate.text));
        let outcome = [fate, row.why].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
        let measured = [span(Ink::Strong, row.after), span(Ink::Plain, row.p99), span(Ink::Plain, row.failed), span(ink, outcome)];
        plain.into_iter().chain(measured).collect()
    };
    blocks.push(Block::Table { head: columns(&view::rounds::COLUMNS, &[1, 5, 6, 7], phrases), rows: rows.into_iter().map(row).collect() });
    blocks
}

/// The bars; none if the first measurement is missing.
fn bars(diagnosis: &Diagnosis, rows: &[RoundRow<'_>], phrases: Phrases<'_>) -> Vec<Block> {
    let Some(first) = &diagnosis.load else { return Vec::new() };
    // The trials without one change are no steps: the table has them.
    let steps = || rows.iter().filter(|row| row.round.is_none_or(|round| round.kind != RoundKind::Without));
    let predicted = |row: &RoundRow<'_>| match row.round.map(|round| &round.prediction) {
        Some(Prediction::Goodput { goodput_rps, low, high, .. }) => Some([*low, *goodput_rps, *high].map(finite)),
        _ => None,
    };
    let bar = |row: &RoundRow<'_>, value: f64, text: &str, predicted| {
        let fate = row.fate.as_ref().map(|fate| format!(" ({})", fate.text)).unwrap_or_default();
        let ink = match row.round.map(|round| (round.kind, round.kept)) {
            None => Ink::Faint,
            Some((RoundKind::Apply, Kept::No)) => Ink::Warn,
            Some((RoundKind::Apply, Kept::Replaced)) => Ink::Faint,
            Some(_) => Ink::GoodStrong,
        };
        Bar { label: format!("{} {}{fate}", row.n, row.changed), value: finite(value), text: text.to_owned(), ink, predicted }
    };
    let load = |row: &RoundRow<'_>| row.round.map_or(first, |round| &round.load).clone();
    let goodput = steps().map(|row| bar(row, load(row).goodput_rps, &row.after, predicted(row))).collect();
    let p99 = steps().map(|row| bar(row, load(row).p99_us().map_or(0.0, |us| us as f64), &row.p99, None)).collect();
    let note = steps().any(|row| predicted(row).is_some()).then(|| remark(phrases.word("html-chart-note")));
    let goodput = Block::Bars { title: phrases.word("html-goodput-of-rounds"), bars: goodput };
    let p99 = Block::Bars { title: phrases.word("html-p99-of-rounds"), bars: p99 };
    [goodput, p99].into_iter().chain(note).collect()
}

/// The number, or zero if it is negative or not finite: neither can be drawn.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number.max(0.0) } else { 0.0 }
}
