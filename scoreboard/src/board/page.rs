//! The score-board as a page of Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::share::Share;

use super::predictions::{ChangeScore, NextScore};
use super::{Board, Range, ScenarioScore};

/// The whole page.
pub(crate) fn render(board: &Board) -> String {
    let mut page = String::from("# Score-board\n\n");
    let list = |all: &[String]| all.join(", ");
    let cores: Vec<String> = board.cores.iter().map(ToString::to_string).collect();
    let when = match board.ended_s.map(|(first, last)| (day(first), day(last))) {
        Some((first, last)) if first == last => format!(", {first}"),
        Some((first, last)) => format!(", {first} to {last}"),
        None => String::new(),
    };
    line(
        &mut page,
        &format!(
            "Real servers on kernel {} with {} cores{when}. Intervals of shares are Wilson's, 95 %.",
            list(&board.kernels),
            list(&cores)
        ),
    );
    page.push('\n');
    for totals in &board.totals {
        let way = if totals.passive { "Only watched" } else { "With load" };
        line(
            &mut page,
            &format!(
                "- {way}: the first cause was the expected one in {}; no cause was named on servers without a fault in {}.",
                share(&totals.fault),
                share(&totals.healthy)
            ),
        );
    }
    if let Some(draws) = &board.draws {
        line(&mut page, &format!("- Stacks drawn at random: the verdict was right in {}.", share(draws)));
    }
    scenarios(&mut page, board);
    fixes(&mut page, board);
    predictions(&mut page, board);
    if !board.wrong_draws.is_empty() {
        page.push_str("\n## Wrong verdicts on drawn stacks\n\n");
        board.wrong_draws.iter().for_each(|(index, why)| line(&mut page, &format!("- draw {index}: {why}")));
    }
    page
}

fn scenarios(page: &mut String, board: &Board) {
    let diagnosed: Vec<&ScenarioScore> = board.scenarios.iter().filter(|score| !score.fixed).collect();
    if diagnosed.is_empty() {
        return;
    }
    page.push_str("\n## Verdicts\n");
    page.push_str("Each run builds its scenario anew. Right: the first cause is the expected one, no forbidden finding was made, the verdict and what limits are as the\nscenario says, and the lab was taken down clean.\n\n");
    page.push_str("| scenario | | expected first cause | right | first causes seen | goodput/s, median (range) | verdict after, ms |\n|---|---|---|---|---|---|---|\n");
    for score in diagnosed {
        let way = if score.passive { "watched" } else { "load" };
        let after = score.verdict_after_ms.map_or_else(String::new, |ms| format!("{ms:.0}"));
        line(
            page,
            &format!(
                "| {} | {way} | {} | {} | {} | {} | {after} |",
                score.scenario,
                score.expected,
                of(&score.right),
                counts(&score.first_causes),
                range(score.goodput_rps)
            ),
        );
    }
    failures(page, board);
}

/// Expectations that did not hold, by scenario.
fn failures(page: &mut String, board: &Board) {
    let wrong: Vec<&ScenarioScore> = board.scenarios.iter().filter(|score| !score.failures.is_empty()).collect();
    if wrong.is_empty() {
        return;
    }
    page.push_str("\nWhat did not hold:\n\n");
    for score in wrong {
        let way = if score.passive { " (watched)" } else { "" };
        score.failures.iter().for_each(|failure| line(page, &format!("- {}{way}: {failure}", score.scenario)));
    }
}

fn fixes(page: &mut String, board: &Board) {
    let fixed: Vec<&ScenarioScore> = board.scenarios.iter().filter(|score| score.fixed).collect();
    if fixed.is_empty() {
        return;
    }
    page.push_str("\n## With `--fix`\n");
    page.push_str("Right: the expected causes were all named over the rounds, the remedy did what the scenario asks of it, and everything was undone; where several\nfaults are coupled, each change that stays was also shown to be needed.\n\n");
    page.push_str("| scenario | expected causes | right | acted on, in this order | goodput/s before, median (range) | after |\n|---|---|---|---|---|---|\n");
    for score in fixed {
        line(
            page,
            &format!(
                "| {} | {} | {} | {} | {} | {} |",
                score.scenario,
                score.expected,
                of(&score.right),
                counts(&score.named),
                range(score.goodput_rps),
                range(score.goodput_rps_after)
            ),
        );
    }
}

fn predictions(page: &mut String, board: &Board) {
    let predictions = &board.predictions;
    if predictions.changes.is_empty() {
        return;
    }
    page.push_str("\n## Predictions\n");
    line(
        page,
        &format!(
            "Goodput was predicted before each change and measured after it; a prediction was refused in {}; {} more were\nalternatives, of which each was tried. What a refused one would have said is told by its error.\n",
            share(&predictions.refused),
            predictions.tried
        ),
    );
    page.push_str("| scenario | change | times | before/s | predicted | measured | median error | held | refused | below the bound | error unsaid | why refused |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for ChangeScore {
        scenario,
        remedy,
        rounds,
        before_rps,
        predicted_rps,
        measured_rps,
        error,
        held,
        refused,
        why,
        kept_to,
        unsaid_error,
    } in &predictions.changes
    {
        let [held, kept_to] = [held, kept_to].map(|share| if share.of == 0 { String::new() } else { of(share) });
        line(
            page,
            &format!(
                "| {scenario} | {remedy} | {rounds} | {} | {} | {} | {} | {held} | {refused} | {kept_to} | {} | {} |",
                rate(*before_rps),
                rate(*predicted_rps),
                rate(*measured_rps),
                percent(*error),
                percent(*unsaid_error),
                first_of(why)
            ),
        );
    }
    if predictions.next.is_empty() {
        return;
    }
    page.push_str("\nBy what was predicted to limit next; the interval score weighs width against misses, and less is better:\n\n");
    page.push_str("| next | median error | intervals held | median width | interval score | of \"nothing changes\" | of goodput over busy cores |\n|---|---|---|---|---|---|---|\n");
    for NextScore { station, error, held, width, score, score_unchanged, score_by_cpu } in &predictions.next {
        let figure = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
        line(
            page,
            &format!(
                "| {station} | {} | {} | ±{} | {} | {} | {} |",
                percent(*error),
                share(held),
                percent(*width),
                figure(*score),
                figure(*score_unchanged),
                figure(*score_by_cpu)
            ),
        );
    }
}

fn line(page: &mut String, text: &str) {
    page.push_str(text);
    page.push('\n');
}

fn of(share: &Share) -> String {
    format!("{} of {}", share.right, share.of)
}

fn share(share: &Share) -> String {
    match share.of {
        0 => "no run".to_owned(),
        _ => format!("{} ({:.0} to {:.0} %)", of(share), share.low * 100.0, share.high * 100.0),
    }
}

fn counts(counts: &BTreeMap<String, usize>) -> String {
    let mut text = String::new();
    for (name, count) in counts {
        let _ = write!(text, "{}{name}: {count}", if text.is_empty() { "" } else { "; " });
    }
    text
}

fn range(range: Option<Range>) -> String {
    range.map_or_else(String::new, |Range { median, least, most }| format!("{median:.0} ({least:.0} to {most:.0})"))
}

/// The first of several sentences and the number of the others, which mostly differ in their figures only.
fn first_of(sentences: &[String]) -> String {
    match sentences {
        [] => String::new(),
        [only] => only.clone(),
        [first, more @ ..] => format!("{first} (and {} like it)", more.len()),
    }
}

fn rate(rate: Option<f64>) -> String {
    rate.map_or_else(String::new, |rate| format!("{rate:.0}"))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!("{:.1} %", share * 100.0))
}

/// The day of a time in UTC (Howard Hinnant's civil_from_days, proleptic Gregorian).
fn day(seconds: u64) -> String {
    let days = (seconds / 86_400) as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_its_day() {
        for (seconds, expected) in
            [(0, "1970-01-01"), (951_782_400, "2000-02-29"), (1_795_185_434, "2026-11-20"), (4_107_542_399, "2100-02-28")]
        {
            assert_eq!(day(seconds), expected);
        }
    }
}
