//! Where requests stand now, as a block of text for a pipe or a file.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_model::report::{LedgerClient, Whereabouts};

use super::diagnosis::ledger::write_ledger;
use super::page::TextPage;
use crate::report::view::ledger::{MEAN_MIN, of, tenths};
use crate::report::view::readings::gaps_of;
use crate::report::view::{Ink, Phrases, span};
use crate::terminal::output::{Painted, Style};

/// The most clients that are listed.
const CLIENTS_MAX: usize = 5;
/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// The block, followed by an empty line.
pub(crate) fn whereabouts_text(report: &Whereabouts, style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    let phrases = page.phrases();
    let seconds = (report.window.to_s - report.window.from_s).round();
    let title = Message::new("where-title-at").with("time", time_of_day(report.window.to_s)).with("url", report.target.url.as_str());
    page.flow(&[], &[], &[span(Ink::Strong, phrases.say(&title.with("seconds", seconds)))]);
    if let Some(ledger) = &report.ledger {
        write_ledger(&mut page, &of(ledger, phrases));
        let busy: Vec<&LedgerClient> = report.clients.iter().filter(|client| client.mean >= MEAN_MIN).collect();
        if !busy.is_empty() {
            let notes: Vec<_> = busy.iter().take(CLIENTS_MAX).map(|one| span(Ink::Plain, client(one))).collect();
            let first = [span(Ink::Plain, format!("  {}: ", phrases.word("where-clients")))];
            page.notes(&first, &[span(Ink::Plain, "    ")], &notes);
        }
    }
    for warning in report.warnings.iter().cloned().chain(lacking(report, phrases)) {
        page.point(2, &[span(Ink::Warn, warning)]);
    }
    page.blank();
    page.finish()
}

fn client(client: &LedgerClient) -> String {
    format!("{} {}", client.address, tenths(client.mean))
}

/// The missing readings, a sentence for each reason.
pub(crate) fn lacking(report: &Whereabouts, phrases: Phrases<'_>) -> Vec<String> {
    let gaps = gaps_of(&report.lacking);
    let sentence = |gap: &crate::report::view::readings::Gap<'_>| {
        let message = Message::new("where-lacking").with("sources", gap.names(phrases)).with("why", gap.why);
        let needs = gap.needs(phrases).map(|needs| format!(" ({needs})")).unwrap_or_default();
        format!("{}{needs}", phrases.say(&message))
    };
    gaps.iter().map(sentence).collect()
}

/// The time of day of seconds since 1970: "14:03:07".
fn time_of_day(seconds: f64) -> String {
    let second = seconds.max(0.0) as u64 % DAY_S;
    format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::whereabouts as samples;

    #[test]
    fn the_block_has_time_places_clients_and_missing_readings() {
        let words = Catalogue::english();
        let style = Style { width: 100, color: false, unicode: true };
        let text = whereabouts_text(&samples::busy(), &style, &words).to_string();
        let expected = [
            "01:01:40 UTC: requests in flight at http://10.0.0.2/, last 5 s",
            "100.0 requests were in flight",
            "accept queue of php-fpm",
            "90.0  90 %  ███",
            "unaccounted",
            "lost: 7.0/s",
            "Clients with most requests in flight: 10.0.0.1 60.0, 10.0.0.7 30.0",
            "Not read: process_files (holder of php-fpm): no process",
            "CAP_SYS_PTRACE",
        ];
        for part in expected {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        assert!(text.ends_with("\n\n"), "blocks are separated by an empty line: {text:?}");
        let text = whereabouts_text(&samples::nobody(), &style, &words).to_string();
        assert!(text.contains("Nothing on this host listens at 10.0.0.2:80") && !text.contains("requests were in flight"), "{text}");
    }

    #[test]
    fn the_title_has_the_time_of_day() {
        assert_eq!([time_of_day(0.0), time_of_day(86_399.9), time_of_day(1_700_000_000.0)], ["00:00:00", "23:59:59", "22:13:20"]);
    }
}
