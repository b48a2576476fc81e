//! The contents of the view: how many requests are in flight, a bar for each place, losses, and clients. It fits 40 columns and 12 rows.

use std::time::Duration;

use chokepoint_model::message::Message;
use chokepoint_model::report::{LedgerReport, Whereabouts};
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span as Piece};

use super::choice::{Choice, PlaceOrder};
use super::rows::rows;
use crate::report::text::{columns, lacking};
use crate::report::view::ledger::{MEAN_MIN, PlaceRow, loss, tenths};
use crate::report::view::{Ink, Phrases, printable};
use crate::terminal::sheet::{Sheet, faint, strong};

/// Columns of a number, and of a share with the space before it.
const NUMBER_COLUMNS: usize = 8;
const SHARE_COLUMNS: usize = 6;
/// Columns of the longest bar, and the fewest that labels leave for one.
const BAR_COLUMNS: usize = 30;
const BAR_COLUMNS_MIN: usize = 5;
/// The narrowest label.
const LABEL_COLUMNS_MIN: usize = 8;
/// Rows that the bars keep, whatever else is shown.
const BAR_ROWS_MIN: usize = 4;
/// From this height on, empty lines separate the parts.
const SPACED_ROWS_MIN: usize = 16;
/// Clients that are listed.
const CLIENTS_MAX: usize = 5;

/// Everything that the view shows.
pub(super) struct WhereState<'a> {
    /// The newest ledger; nothing before the first.
    pub(super) report: Option<&'a Whereabouts>,
    pub(super) choice: &'a Choice,
    pub(super) url: &'a str,
    pub(super) interval: Duration,
    pub(super) has_keys: bool,
    pub(super) unicode: bool,
    /// Seconds since something was measured, if what is shown is old.
    pub(super) stale_s: Option<u64>,
}

/// Draws the whole screen.
pub(super) fn draw(state: &WhereState<'_>, phrases: Phrases<'_>, buffer: &mut Buffer) {
    let (width, height) = (usize::from(buffer.area.width), usize::from(buffer.area.height));
    let mut page = WherePage { phrases, state, sheet: Sheet::new(width, state.unicode) };
    if state.choice.help {
        page.help()
    } else {
        let banner = page.stale();
        // The last row lists the keys. What does not fit above it is left out.
        page.ledger(height.saturating_sub(1));
        if banner > 0 {
            // What is old does not look like now.
            page.sheet.lines.iter_mut().skip(banner).for_each(|line| *line = Line::styled(line.to_string(), faint()));
        }
    }
    page.sheet.draw(&page.keys(), buffer);
}

struct WherePage<'a> {
    phrases: Phrases<'a>,
    state: &'a WhereState<'a>,
    sheet: Sheet,
}

impl WherePage<'_> {
    fn keys(&self) -> String {
        let long = self.phrases.word("where-keys");
        match self.state.has_keys {
            true if columns(&long) <= self.sheet.width => long,
            true => self.phrases.word("where-keys-short"),
            false => self.phrases.word("where-keys-none"),
        }
    }

    /// Lines on top if nothing is measured: so many.
    fn stale(&mut self) -> usize {
        if let Some(seconds) = self.state.stale_s {
            let sentence = self.phrases.say(&Message::new("where-stale").with("seconds", seconds));
            self.sheet.sentence(&sentence, Style::new().fg(Color::Red).add_modifier(Modifier::BOLD));
        }
        self.sheet.lines.len()
    }

    fn help(&mut self) {
        for id in ["where-help-what", "where-help-number", "where-help-unaccounted", "where-help-each"] {
            self.sheet.sentence(&self.phrases.word(id), Style::new());
        }
        self.sheet.blank();
        for id in ["where-help-t", "where-help-p", "where-help-c", "where-help-q"] {
            self.sheet.line(&self.phrases.word(id), Style::new());
        }
        let gaps = self.state.report.map(|report| lacking(report, self.phrases)).unwrap_or_default();
        if !gaps.is_empty() {
            self.sheet.blank();
        }
        for gap in gaps {
            self.sheet.sentence(&gap, Style::new().fg(Color::Yellow));
        }
        self.sheet.blank();
        self.sheet.line(&self.phrases.word("where-help-back"), faint());
    }

    /// The ledger, on at most `room` rows.
    fn ledger(&mut self, room: usize) {
        let phrases = self.phrases;
        self.sheet.line(&phrases.say(&Message::new("where-title").with("url", self.state.url)), strong());
        let Some(report) = self.state.report else {
            self.sheet.line(&phrases.word("where-starting"), faint());
            return;
        };
        if let Some(ledger) = &report.ledger {
            self.head(ledger);
        }
        self.modes(report);
        // The lines below the bars are made first: the bars take the rows that are left.
        let above = std::mem::take(&mut self.sheet.lines);
        self.below(report);
        let below = std::mem::replace(&mut self.sheet.lines, above);
        if let Some(ledger) = &report.ledger {
            // An empty line before and after the bars, if there is room.
            let blanks = if room >= SPACED_ROWS_MIN { 1 } else { 0 };
            let left = room.saturating_sub(self.sheet.lines.len() + below.len() + 2 * blanks).max(BAR_ROWS_MIN);
            (0..blanks).for_each(|_| self.sheet.blank());
            self.bars(ledger, left);
            (0..blanks).for_each(|_| self.sheet.blank());
        }
        self.sheet.lines.extend(below);
    }

    fn head(&mut self, ledger: &LedgerReport) {
        let phrases = self.phrases;
        let message = |id| Message::new(id).with("number", tenths(ledger.under_way));
        let head = match ledger.rate_rps.zip(ledger.response_time_ms) {
            _ if ledger.under_way < MEAN_MIN => Message::new("where-none"),
            Some((rate, ms)) => {
                message("where-head-rate").with("rate", phrases.number(rate)).with("duration", phrases.duration_us(ms * 1e3))
            }
            None => message("where-head"),
        };
        self.sheet.line(&phrases.say(&head), strong());
    }

    /// The window, and what the keys chose.
    fn modes(&mut self, report: &Whereabouts) {
        let phrases = self.phrases;
        let interval = phrases.duration_us(self.state.interval.as_secs_f64() * 1e6);
        let seconds = (report.window.to_s - report.window.from_s).round();
        self.sheet.line(&phrases.say(&Message::new("where-window").with("seconds", seconds).with("interval", interval)), faint());
        let choice = self.state.choice;
        let mut modes = Vec::new();
        if let Some(tier) = &choice.tier {
            modes.push(phrases.say(&Message::new("where-mode-tier").with("tier", tier.as_str())));
        }
        match choice.order {
            PlaceOrder::Path => {}
            PlaceOrder::Size => modes.push(phrases.word("where-mode-order-size")),
            PlaceOrder::Tier => modes.push(phrases.word("where-mode-order-tier")),
        }
        if !modes.is_empty() {
            self.sheet.line(&modes.join("; "), faint());
        }
    }

    fn bars(&mut self, ledger: &LedgerReport, room: usize) {
        let rows = rows(ledger, self.state.choice, room, self.phrases);
        let most = self.sheet.width.saturating_sub(NUMBER_COLUMNS + SHARE_COLUMNS + 2 + BAR_COLUMNS_MIN).max(LABEL_COLUMNS_MIN);
        let label = rows.iter().map(|row| columns(&printable(&row.label))).max().unwrap_or(0).min(most);
        for row in &rows {
            self.bar(row, label);
        }
    }

    fn bar(&mut self, row: &PlaceRow, wide: usize) {
        let label = self.sheet.cut(&row.label, wide);
        let percent = self.phrases.percent(row.share.abs()).replace('\u{a0}', " ");
        let percent = if row.share < 0.0 { format!("-{percent}") } else { percent };
        let fill = |text: &str, room: usize| " ".repeat(room.saturating_sub(columns(text)));
        let style = match row.ink {
            Ink::Strong => strong(),
            Ink::Faint => faint(),
            _ => Style::new(),
        };
        let numbers = format!("{:>NUMBER_COLUMNS$}{}{percent}  ", tenths(row.mean), fill(&percent, SHARE_COLUMNS));
        let room = self.sheet.width.saturating_sub(wide + columns(&numbers)).min(BAR_COLUMNS);
        let bar = self.sheet.bar(row.share.clamp(0.0, 1.0), room);
        let color = if row.ink == Ink::Strong { style.fg(Color::Yellow) } else { style };
        let text = format!("{label}{}{numbers}", fill(&label, wide));
        self.sheet.lines.push(Line::from(vec![Piece::styled(text, style), Piece::styled(bar, color)]));
    }

    /// Losses, clients, warnings and missing readings.
    fn below(&mut self, report: &Whereabouts) {
        let phrases = self.phrases;
        for lost in report.ledger.iter().flat_map(|ledger| &ledger.losses) {
            self.sheet.line(&loss(lost, phrases), Style::new().fg(Color::Red));
        }
        if self.state.choice.clients {
            self.clients(report);
        }
        for warning in &report.warnings {
            self.sheet.sentence(warning, Style::new().fg(Color::Yellow));
        }
        match lacking(report, phrases).as_slice() {
            [] => {}
            [only] if columns(only) <= self.sheet.width => self.sheet.line(only, Style::new().fg(Color::Yellow)),
            _ => self.sheet.line(&phrases.word("where-lacking-help"), Style::new().fg(Color::Yellow)),
        }
    }

    fn clients(&mut self, report: &Whereabouts) {
        let phrases = self.phrases;
        let busy: Vec<_> = report.clients.iter().filter(|client| client.mean >= MEAN_MIN).collect();
        if busy.is_empty() {
            self.sheet.line(&phrases.word("where-clients-none"), faint());
            return;
        }
        self.sheet.line(&phrases.word("where-clients"), faint());
        let mut rows: Vec<PlaceRow> = Vec::new();
        for client in busy.iter().take(CLIENTS_MAX) {
            rows.push(PlaceRow { label: client.address.to_string(), place: None, mean: client.mean, share: client.share, ink: Ink::Plain });
        }
        if busy.len() > CLIENTS_MAX {
            let rest = &busy[CLIENTS_MAX..];
            let (mean, share) = rest.iter().fold((0.0, 0.0), |sum, client| (sum.0 + client.mean, sum.1 + client.share));
            rows.push(PlaceRow { label: phrases.word("where-clients-others"), place: None, mean, share, ink: Ink::Faint });
        }
        let most = self.sheet.width.saturating_sub(NUMBER_COLUMNS + SHARE_COLUMNS + 2 + BAR_COLUMNS_MIN).max(LABEL_COLUMNS_MIN);
        let wide = rows.iter().map(|row| columns(&row.label)).max().unwrap_or(0).min(most);
        rows.iter().for_each(|row| self.bar(row, wide));
    }
}

#[cfg(test)]
mod tests {
    use chokepoint_model::catalogue::Catalogue;

    use ratatui_core::layout::Rect;

    use super::*;
    use crate::report::samples::whereabouts as samples;

    fn drawn(report: Option<&Whereabouts>, choice: &Choice, size: (u16, u16), unicode: bool) -> Vec<String> {
        drawn_at(report, choice, size, unicode, None)
    }

    fn drawn_at(
        report: Option<&Whereabouts>,
        choice: &Choice,
        (width, height): (u16, u16),
        unicode: bool,
        stale_s: Option<u64>,
    ) -> Vec<String> {
        let words = Catalogue::english();
        let url = "http://10.0.0.2/";
        let state = WhereState { report, choice, url, interval: Duration::from_secs(1), has_keys: true, unicode, stale_s };
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        draw(&state, Phrases(&words), &mut buffer);
        let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(row).collect()
    }

    fn plain() -> Choice {
        Choice::default()
    }

    #[test]
    fn what_is_old_is_said_to_be_old_and_still_there() {
        let rows = drawn_at(Some(&samples::busy()), &plain(), (80, 24), true, Some(8));
        assert_eq!(rows[..2], ["Nothing was measured for 8 s. What follows is old.", "Requests in flight at http://10.0.0.2/"]);
        assert!(rows.iter().any(|row| row.starts_with("accept queue of php-fpm")), "{rows:#?}");
        assert!(drawn_at(None, &plain(), (40, 12), false, Some(8))[0].starts_with("Nothing was measured for 8 s."));
    }

    #[test]
    fn eighty_columns_show_a_bar_for_each_place_and_the_losses() {
        let rows = drawn(Some(&samples::busy()), &plain(), (80, 24), true);
        let expected = [
            "Requests in flight at http://10.0.0.2/",
            "100.0 in flight, 200/s, 500 ms each",
            "mean of the last 5 s, updated every 1 s",
            "",
            "in nginx, waiting           1.5   2 %  ▌",
            "accept queue of php-fpm    90.0  90 %  ███████████████████████████",
            "in php-fpm, on a CPU        2.5   3 %  ▊",
            "in php-fpm, waiting         5.0   5 %  █▌",
            "unaccounted                 1.0  <1 %  ▎",
            "",
            "lost: 7.0/s answered with another status, by rate-limit of nginx",
        ];
        assert_eq!(rows[..expected.len()], expected);
        assert_eq!(rows[23], "q quit  t tier  p place  c client  ? help");
        assert!(rows.iter().any(|row| row.starts_with("Some sources could not be read: see ?")), "{rows:#?}");
    }

    #[test]
    fn forty_columns_and_twelve_rows_show_the_largest_place_and_what_is_unaccounted() {
        let rows = drawn(Some(&samples::busy()), &plain(), (40, 12), true);
        assert!(rows.iter().all(|row| columns(row) <= 40), "{rows:#?}");
        assert!(rows.iter().any(|row| row.starts_with("accept queue of ph…    90.0  90 %  ███")), "{rows:#?}");
        assert!(rows.iter().any(|row| row.starts_with("unaccounted ")), "{rows:#?}");
        assert_eq!(rows[11], "q quit  ? help");
        let rows = drawn(Some(&samples::busy()), &Choice { clients: true, ..plain() }, (40, 12), true);
        assert!(rows.iter().any(|row| row.starts_with("10.0.0.1 ")), "{rows:#?}");
    }

    #[test]
    fn long_names_and_wide_characters_keep_the_columns_aligned() {
        let mut report = samples::busy();
        for (place, name) in
            report.ledger.as_mut().unwrap().places.iter_mut().zip(["a".repeat(300), "数据库".repeat(30), "\u{1b}[2Jx".to_owned()])
        {
            place.tier = name;
        }
        for (size, unicode) in [((80, 24), true), ((40, 12), true), ((40, 12), false), ((200, 50), true)] {
            for choice in [plain(), Choice { order: PlaceOrder::Tier, clients: true, ..plain() }] {
                let rows = drawn(Some(&report), &choice, size, unicode);
                assert!(rows.iter().any(|row| row.contains(" 90.0  90 %")), "{rows:#?}");
                assert!(!rows.concat().contains('\u{1b}'), "{rows:#?}");
            }
        }
        let ascii = drawn(Some(&report), &plain(), (80, 24), false);
        assert!(ascii.iter().any(|row| row.contains("~") && row.ends_with('#')), "{ascii:#?}");
    }

    #[test]
    fn without_a_ledger_or_a_place_the_view_says_why() {
        let starting = drawn(None, &plain(), (80, 24), true);
        assert_eq!(starting[1], "finding the path and taking the first samples");
        let nobody = drawn(Some(&samples::nobody()), &plain(), (40, 12), true);
        assert!(nobody.join(" ").contains("Nothing on this host listens"), "{nobody:#?}");
        let mut idle = samples::busy();
        let ledger = idle.ledger.as_mut().unwrap();
        (ledger.under_way, ledger.rate_rps, ledger.response_time_ms) = (0.0, None, None);
        ledger.places.clear();
        (ledger.unaccounted.mean, ledger.unaccounted.share) = (0.0, 0.0);
        idle.clients.clear();
        let rows = drawn(Some(&idle), &Choice { clients: true, ..plain() }, (80, 24), true);
        assert_eq!((rows[1].as_str(), rows[4].split_whitespace().next()), ("No request is in flight.", Some("unaccounted")), "{rows:#?}");
        assert!(rows.iter().any(|row| row.starts_with("No client with an address")), "{rows:#?}");
    }

    #[test]
    fn the_view_shows_what_the_keys_chose() {
        let report = samples::busy();
        let choice = Choice { tier: Some("nginx".to_owned()), order: PlaceOrder::Size, clients: true, help: false };
        let rows = drawn(Some(&report), &choice, (80, 24), true);
        assert_eq!(rows[3], "tier: nginx; places, most requests first");
        let at = |begin: &str| rows.iter().position(|row| row.starts_with(begin)).unwrap_or_else(|| panic!("{begin}: {rows:#?}"));
        assert!(at("in nginx, waiting") < at("in other tiers") && at("in other tiers") < at("unaccounted"));
        assert!(at("Clients with most requests") < at("10.0.0.1   ") && at("10.0.0.1   ") < at("10.0.0.7   "));
        let help = drawn(Some(&report), &Choice { help: true, ..plain() }, (80, 24), true).join("\n");
        for part in ["No load is sent", "t  next tier", "CAP_SYS_PTRACE", "any key goes back"] {
            assert!(help.contains(part), "{part:?} is not in {help}");
        }
    }

    #[test]
    fn any_size_can_be_drawn() {
        for width in 0..20 {
            for height in 0..8 {
                for choice in [plain(), Choice { clients: true, ..plain() }, Choice { help: true, ..plain() }] {
                    drawn(Some(&samples::busy()), &choice, (width, height), width % 2 == 0);
                }
            }
        }
    }
}
