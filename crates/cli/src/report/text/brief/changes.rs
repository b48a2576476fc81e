//! What was tried: a row for each change with what it set, and the figures that it gave.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, Kept, LoadReport, Round, RoundKind, SettingChange};
use chokepoint_model::setting::setting_values;

use super::{Detail, right};
use crate::report::text::page::TextPage;
use crate::report::text::wrap::columns;
use crate::report::view::load::p99;
use crate::report::view::rounds::failed_share;
use crate::report::view::{Ink, Phrases, Span, span};

/// Columns of the mark with its margin, and of the figures.
const MARK_COLUMNS: usize = 4;
const FIGURE_COLUMNS: [usize; 3] = [10, 10, 8];
/// Columns between a setting's name and its values.
const NAME_COLUMNS: usize = 19;

/// Writes the table, if anything was tried.
pub(super) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis, detail: Detail) {
    if diagnosis.rounds.is_empty() {
        return;
    }
    if detail.is_airy {
        page.gap();
    }
    let titles = ["brief-column-good", "report-column-p99", "report-column-failed"].map(|id| page.word(id));
    let head = page.word("brief-changes");
    row(page, span(Ink::Strong, ""), span(Ink::Strong, head), titles, Ink::Faint);
    let found = page.word("report-as-found");
    let figures = diagnosis.load.as_ref().map_or_else(Default::default, |load| cells(page.phrases(), load));
    row(page, span(Ink::Plain, ""), span(Ink::Plain, found), figures, Ink::Plain);
    let tried: Vec<&Round> = diagnosis.rounds.iter().filter(|round| round.kind == RoundKind::Apply).collect();
    let listed = listed(&tried, detail.changes);
    for round in &listed {
        write_round(page, round, detail);
    }
    let more = tried.len() - listed.len();
    if more > 0 {
        let text = page.phrases().say(&Message::new("brief-more-changes").with("n", more as f64));
        page.line_within(&[span(Ink::Faint, format!("{}{text}", " ".repeat(MARK_COLUMNS)))], false);
    }
    write_trials(page, diagnosis);
}

/// The changes in their order; if there are too many, those that were kept come before the others.
fn listed<'a>(tried: &[&'a Round], most: usize) -> Vec<&'a Round> {
    let kept = tried.iter().filter(|round| round.kept.stays()).count();
    let mut others = most.saturating_sub(kept);
    let mut fits = |round: &&Round| {
        let is_other = !round.kept.stays();
        let fits = !is_other || others > 0;
        others -= usize::from(is_other && fits);
        fits
    };
    tried.iter().copied().filter(|round| fits(round)).take(most.max(1)).collect()
}

fn write_round(page: &mut TextPage<'_>, round: &Round, detail: Detail) {
    let (mark, ink) = match round.kept {
        Kept::No => (page.glyph("✗", "x"), Ink::Warn),
        Kept::Replaced => (page.glyph("↑", "^"), Ink::Plain),
        Kept::Final | Kept::Provisional => (page.glyph("✓", "+"), Ink::GoodStrong),
    };
    let what = match round.settings.split_first() {
        None => round.remedy.clone(),
        Some((first, rest)) => setting(page, first, rest.len()),
    };
    let figures = cells(page.phrases(), &round.load);
    row(page, span(ink, format!("  {mark} ")), span(Ink::Plain, what), figures, Ink::Plain);
    let indent = [span(Ink::Plain, " ".repeat(MARK_COLUMNS + 2))];
    if !round.kept.stays() && detail.reasons > 0 {
        page.flow_within(detail.reasons, &indent, &indent, &[span(Ink::Faint, &round.why)]);
    }
}

/// "conntrack table     200 → 262,144", and how many other settings there are if there is room for it.
fn setting(page: &TextPage<'_>, first: &SettingChange, others: usize) -> String {
    let phrases = page.phrases();
    let (from, to) = setting_values(first, phrases.0);
    let mut text = format!("{}{from} {} {to}", super::padded(&first.name, NAME_COLUMNS), page.glyph("→", "->"));
    let more = phrases.say(&Message::new("brief-more-settings").with("n", others as f64));
    let room = page.width().min(80).saturating_sub(MARK_COLUMNS + FIGURE_COLUMNS.iter().sum::<usize>() + 1);
    if others > 0 && columns(&text) + columns(&more) <= room {
        text.push_str(&more);
    }
    text
}

fn cells(phrases: Phrases<'_>, load: &LoadReport) -> [String; 3] {
    [phrases.rounded(load.goodput_rps), p99(phrases, load), phrases.percent(failed_share(load))]
}

/// A row: mark, text cut to its room, figures aligned at the right.
fn row(page: &mut TextPage<'_>, mark: Span, text: Span, figures: [String; 3], ink: Ink) {
    let margin = if mark.ink == Ink::Strong { 0 } else { MARK_COLUMNS };
    let mark = if mark.text.is_empty() { span(mark.ink, " ".repeat(margin)) } else { mark };
    let figures: Vec<String> = figures.iter().zip(FIGURE_COLUMNS).map(|(figure, width)| right(figure, width)).collect();
    let figures = figures.concat();
    let room = page.width().min(80).saturating_sub(margin + columns(&figures));
    let text = span(text.ink, cut(&text.text, room.saturating_sub(1), page.glyph("…", "~")));
    let fill = " ".repeat(room.saturating_sub(columns(&text.text)));
    page.line_within(&[mark, text, span(ink, format!("{fill}{figures}"))], false);
}

/// The text in at most this many columns.
fn cut(text: &str, width: usize, dots: &str) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for character in text.chars() {
        if columns(&kept) + columns(character.encode_utf8(&mut [0; 4])) + columns(dots) > width {
            break;
        }
        kept.push(character);
    }
    format!("{}{dots}", kept.trim_end())
}

/// Says that the changes that stay were left out once and put back.
fn write_trials(page: &mut TextPage<'_>, diagnosis: &Diagnosis) {
    let rounds = |kind: RoundKind| diagnosis.rounds.iter().filter(move |round| round.kind == kind && round.kept.stays());
    let kept = rounds(RoundKind::Apply).count();
    let is_tried = |round: &Round| rounds(RoundKind::Without).any(|other| other.remedy == round.remedy && other.finding == round.finding);
    if kept > 0 && rounds(RoundKind::Apply).all(is_tried) {
        let indent = [span(Ink::Plain, "  ")];
        let text = page.word("brief-left-out");
        page.flow_within(2, &indent, &indent, &[span(Ink::Faint, text)]);
    }
}
