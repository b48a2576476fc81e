//! The contents of the live view: the watched servers, where the requests of one of them stand, its last minute, and incidents. It fits 80 columns and 24 rows, and 40
//! columns and 12 rows.

use std::collections::BTreeSet;

use chokepoint_dashboard::Freshness;
use chokepoint_model::message::Message;
use chokepoint_recorder::incident::{Incident, State};
use chokepoint_recorder::{ResponseSource, Sample, TargetSample};
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};

use crate::report::text::columns;
use crate::report::view::ledger::place_label;
use crate::report::view::{Phrases, time};
use crate::terminal::sheet::{Sheet, faint, strong};

/// Rows of servers that are shown at least, where there are so many and the screen has them.
const SERVERS_MIN: usize = 6;
/// Rows of the last minute: a blank one, three lines, and response times.
const MINUTE_ROWS: usize = 5;
/// Rows of places and incidents that are shown at most.
const PLACES_MAX: usize = 8;
const INCIDENTS_MAX: usize = 4;
/// Columns of a number in the table.
const NUMBER_COLUMNS: usize = 10;
/// Columns of the longest bar and of the longest label before it.
const BAR_COLUMNS: usize = 30;
const LABEL_COLUMNS: usize = 34;
/// Columns of the names before the sparks.
const NAME_COLUMNS: usize = 11;

/// Everything that the view shows.
pub(super) struct WatchState<'a> {
    /// The last minutes, the oldest first.
    pub(super) samples: Vec<&'a Sample>,
    /// The last whole minute.
    pub(super) minute: Option<&'a Sample>,
    /// The incidents, the newest first.
    pub(super) incidents: &'a [Incident],
    /// Servers that were not measured lately.
    pub(super) unmeasured: &'a BTreeSet<String>,
    /// Which server is shown.
    pub(super) chosen: usize,
    pub(super) has_keys: bool,
    /// Where the page is in a browser.
    pub(super) address: Option<&'a str>,
    pub(super) unicode: bool,
    /// How old the newest second is, if that is too old to be now.
    pub(super) stale: Option<Freshness>,
}

/// Draws the whole screen.
pub(super) fn draw(state: &WatchState<'_>, phrases: Phrases<'_>, buffer: &mut Buffer) {
    let (width, height) = (usize::from(buffer.area.width), usize::from(buffer.area.height));
    let mut page = WatchPage { phrases, state, sheet: Sheet::new(width, state.unicode) };
    page.stale();
    let banner = page.sheet.lines.len();
    page.whole(height.saturating_sub(1));
    if state.stale.is_some() {
        // What is old does not look like now.
        page.sheet.lines.iter_mut().skip(banner).for_each(|line| line.style = faint());
    }
    let keys = phrases.word(if state.has_keys { "watch-keys" } else { "where-keys-none" });
    let page_at = state.address.map(|address| phrases.say(&Message::new("watch-page").with("address", address)));
    let keys = [Some(keys), page_at].into_iter().flatten().collect::<Vec<_>>().join("  ");
    page.sheet.draw(&keys, buffer);
}

struct WatchPage<'a> {
    phrases: Phrases<'a>,
    state: &'a WatchState<'a>,
    sheet: Sheet,
}

impl WatchPage<'_> {
    /// A line on top if nothing is measured.
    fn stale(&mut self) {
        let Some(Freshness { newest_s, age_s, .. }) = self.state.stale else { return };
        let seconds = age_s.floor();
        let message = match newest_s {
            Some(newest_s) => Message::new("watch-stale").with("seconds", seconds).with("time", time(newest_s)),
            None => Message::new("watch-stale-never").with("seconds", seconds),
        };
        self.sheet.sentence(&self.phrases.say(&message), Style::new().fg(Color::Red).add_modifier(Modifier::BOLD));
    }

    fn whole(&mut self, room: usize) {
        let Some(newest) = self.state.samples.last() else {
            self.sheet.line(&self.phrases.word("where-starting"), faint());
            return;
        };
        let title = Message::new("watch-title").with("time", time(newest.at_s)).with("number", newest.targets.len() as u64);
        self.sheet.line(&self.phrases.say(&title), strong());
        let targets = self.in_order(&newest.targets);
        let Some(chosen) = targets.get(self.state.chosen % targets.len().max(1)).copied() else { return };
        let incidents = self.state.incidents.len().min(INCIDENTS_MAX);
        // What the chosen server needs below; the rest is for the servers: title and head stand there already.
        let below = 1 + chosen.places.len().clamp(1, PLACES_MAX) + MINUTE_ROWS + incidents + usize::from(incidents > 0);
        let rows = room.saturating_sub(self.sheet.lines.len() + 1 + below);
        self.servers(&targets, rows.max(SERVERS_MIN));
        // The incidents keep their rows: they are what somebody looks for.
        let left = room.saturating_sub(self.sheet.lines.len() + incidents + usize::from(incidents > 0));
        let rows = left.saturating_sub(6).clamp(1, PLACES_MAX);
        self.places(chosen, rows);
        self.minute(&chosen.target);
        self.response(&chosen.target);
        self.incidents(incidents);
    }

    /// The servers: those with an incident, then those with requests in the last minutes, then the idle ones.
    fn in_order<'t>(&self, targets: &'t [TargetSample]) -> Vec<&'t TargetSample> {
        let is_open = |name: &str| self.state.incidents.iter().any(|open| open.state == State::Open && open.drop.target == name);
        let had_requests =
            |sample: &Sample, name: &str| sample.target(name).is_some_and(|target| target.under_way.sum > 0.0 || target.rate.sum > 0.0);
        let is_idle = |name: &str| !self.state.samples.iter().any(|sample| had_requests(sample, name));
        let mut ordered: Vec<&TargetSample> = targets.iter().collect();
        ordered.sort_by_cached_key(|target| (!is_open(&target.target), is_idle(&target.target)));
        ordered
    }

    /// A row for each server, and at most so many.
    fn servers(&mut self, targets: &[&TargetSample], rows: usize) {
        // The last row says how many more there are.
        let shown = if targets.len() > rows { rows - 1 } else { targets.len() };
        let names: Vec<String> = targets.iter().map(|target| target.target.clone()).collect();
        let numbers = 4 * NUMBER_COLUMNS;
        let wide = names.iter().map(|name| columns(name) + 2).max().unwrap_or(0).min(self.sheet.width.saturating_sub(numbers)).max(8);
        let heads = ["watch-head-in-flight", "watch-head-rate", "watch-head-time", "watch-head-lost"].map(|id| self.phrases.word(id));
        let head: String = heads.iter().map(|head| format!("{head:>NUMBER_COLUMNS$}")).collect();
        self.sheet.line(&format!("{}{head}", " ".repeat(wide)), faint());
        for (number, target) in targets.iter().enumerate().take(shown) {
            let value = |value: Option<f64>, show: &dyn Fn(f64) -> String| value.map_or_else(|| "-".to_owned(), show);
            let phrases = self.phrases;
            let cells = [
                value(target.under_way.value(), &|number| phrases.number(number)),
                value(target.rate.value(), &|rate| phrases.number(rate)),
                value(target.response_s(), &|seconds| phrases.duration_us(seconds * 1e6).replace('\u{a0}', " ")),
                value(target.lost_per_s().filter(|lost| *lost > 0.0), &|lost| phrases.number(lost)),
            ];
            let is_chosen = number == self.state.chosen % targets.len();
            let name = self.sheet.cut(&format!("{}{}", if is_chosen { "> " } else { "  " }, target.target), wide);
            let blank = " ".repeat(wide.saturating_sub(columns(&name)));
            let row: String = cells.iter().map(|cell| format!("{cell:>NUMBER_COLUMNS$}")).collect();
            let has_incident = self.state.incidents.iter().any(|open| open.state == State::Open && open.drop.target == target.target);
            let style = match (has_incident, is_chosen) {
                (true, _) => Style::new().fg(Color::Red),
                (false, true) => strong(),
                (false, false) => Style::new(),
            };
            self.sheet.line(&format!("{name}{blank}{row}"), style);
        }
        if targets.len() > shown {
            let more = Message::new("watch-more-servers").with("number", (targets.len() - shown) as u64);
            self.sheet.line(&self.phrases.say(&more), faint());
        }
    }

    /// Where the requests of a server stand.
    fn places(&mut self, target: &TargetSample, rows: usize) {
        self.sheet.blank();
        let under_way = target.under_way.value().unwrap_or(0.0);
        let mut places: Vec<(String, f64)> =
            target.places.iter().map(|place| (place_label(&place.tier, place.place, self.phrases), target.mean_at(place))).collect();
        places.sort_by(|a, b| b.1.total_cmp(&a.1));
        if places.is_empty() {
            let id = match target.under_way.value() {
                Some(_) => "where-none",
                None if self.state.unmeasured.contains(&target.target) => "watch-not-measured",
                None => "watch-not-listening",
            };
            self.sheet.line(&self.phrases.word(id), faint());
        }
        let wide =
            places.iter().take(rows).map(|(label, _)| columns(label)).max().unwrap_or(0).min(LABEL_COLUMNS.min(self.sheet.width / 2));
        for (label, mean) in places.into_iter().take(rows) {
            let label = self.sheet.cut(&label, wide);
            let share = if under_way > 0.0 { (mean / under_way).clamp(0.0, 1.0) } else { 0.0 };
            let number = format!("{:>8} ", self.phrases.number(mean));
            let room = self.sheet.width.saturating_sub(wide + columns(&number)).min(BAR_COLUMNS);
            let bar = self.sheet.bar(share, room);
            let blank = " ".repeat(wide.saturating_sub(columns(&label)));
            self.sheet.line(&format!("{label}{blank}{number}{bar}"), Style::new());
        }
    }

    /// The last minute of a server.
    fn minute(&mut self, name: &str) {
        let room = self.sheet.width.saturating_sub(NAME_COLUMNS + NUMBER_COLUMNS).min(60);
        let newest: Vec<Option<&TargetSample>> =
            self.state.samples.iter().rev().take(room).rev().map(|sample| sample.target(name)).collect();
        type Value = fn(&TargetSample) -> Option<f64>;
        let series: [(&str, Value); 3] = [
            ("watch-head-in-flight", |target| target.under_way.value()),
            ("watch-head-rate", |target| target.rate.value()),
            ("watch-head-time", TargetSample::response_s),
        ];
        self.sheet.blank();
        for (id, value) in series {
            let values: Vec<Option<f64>> = newest.iter().map(|target| target.and_then(value)).collect();
            let spark = self.sheet.spark(&values);
            let head = self.sheet.cut(&self.phrases.word(id), NAME_COLUMNS - 1);
            self.sheet.line(&format!("{head:<NAME_COLUMNS$}{spark}"), Style::new());
        }
    }

    /// Response times of the last whole minute.
    fn response(&mut self, name: &str) {
        let Some(times) = self.state.minute.and_then(|minute| minute.target(name)?.response) else { return };
        let id = if times.source == ResponseSource::Log { "watch-response-log" } else { "watch-response-sockets" };
        let of = |us: f64| self.phrases.duration_us(us).replace('\u{a0}', " ");
        let message = Message::new(id).with("p50", of(times.p50_us)).with("p95", of(times.p95_us)).with("p99", of(times.p99_us));
        self.sheet.line(&self.phrases.say(&message), Style::new());
    }

    fn incidents(&mut self, rows: usize) {
        if rows > 0 {
            self.sheet.blank();
        }
        for incident in self.state.incidents.iter().take(rows) {
            let state = self.phrases.word(if incident.state == State::Open { "watch-state-open" } else { "watch-state-over" });
            let message =
                Message::new("watch-row-incident").with("number", incident.id.to_string()).with("time", time(incident.drop.since_s));
            let text = self.phrases.say(&message.with("state", state).with("headline", incident.headline.as_str()));
            self.sheet.line(&text, if incident.state == State::Open { Style::new().fg(Color::Red) } else { faint() });
        }
    }
}

#[cfg(test)]
mod tests {
    use chokepoint_model::catalogue::Catalogue;
    use chokepoint_model::report::LedgerPlaceKind;
    use chokepoint_recorder::drop::{Drop, Kind};
    use chokepoint_recorder::{Mean, Standing};
    use ratatui_core::layout::Rect;

    use super::*;

    fn samples() -> Vec<Sample> {
        let target = |name: &str, under_way: f64| TargetSample {
            target: name.to_owned(),
            under_way: Mean::of(Some(under_way), 1.0),
            rate: Mean::of(Some(200.0), 1.0),
            places: vec![
                Standing { tier: "php-fpm".to_owned(), place: LedgerPlaceKind::AcceptQueue, request_seconds: under_way * 0.9 },
                Standing { tier: "nginx".to_owned(), place: LedgerPlaceKind::Waiting, request_seconds: under_way * 0.1 },
            ],
            ..TargetSample::default()
        };
        let gone = TargetSample { target: "java:8080".to_owned(), ..TargetSample::default() };
        (0..90u64).map(|n| Sample { at_s: n, span_s: 1, targets: vec![target("nginx:80", n as f64), gone.clone()], host: None }).collect()
    }

    fn incident(state: State) -> Incident {
        let drop = Drop { target: "nginx:80".to_owned(), since_s: 60, kinds: vec![Kind::Slower], ..Drop::default() };
        Incident { id: 3, state, ..Incident::began(drop, "nginx:80: a request takes 3 times as long as before.".to_owned(), Vec::new()) }
    }

    fn drawn(samples: &[Sample], incidents: &[Incident], chosen: usize, (width, height): (u16, u16), unicode: bool) -> Vec<String> {
        drawn_at(samples, incidents, chosen, (width, height), unicode, None)
    }

    fn drawn_at(
        samples: &[Sample],
        incidents: &[Incident],
        chosen: usize,
        (width, height): (u16, u16),
        unicode: bool,
        stale: Option<Freshness>,
    ) -> Vec<String> {
        let words = Catalogue::english();
        let unmeasured = stale.iter().map(|_| "java:8080".to_owned()).collect();
        let state = WatchState {
            samples: samples.iter().collect(),
            minute: None,
            incidents,
            unmeasured: &unmeasured,
            chosen,
            has_keys: true,
            address: None,
            unicode,
            stale,
        };
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        draw(&state, Phrases(&words), &mut buffer);
        let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(row).collect()
    }

    #[test]
    fn eighty_columns_show_servers_places_the_last_minute_and_incidents() {
        let rows = drawn(&samples(), &[incident(State::Open), incident(State::Over)], 0, (80, 24), true);
        let at = |begin: &str| rows.iter().position(|row| row.starts_with(begin)).unwrap_or_else(|| panic!("{begin}: {rows:#?}"));
        assert!(rows[at("> nginx:80")].contains("200") && rows[at("> nginx:80")].contains("89"), "{rows:#?}");
        assert!(at("  java:8080") < at("accept queue of php-fpm") && at("accept queue of php-fpm") < at("in nginx, waiting"), "{rows:#?}");
        assert!(rows.iter().any(|row| row.ends_with('█')), "{rows:#?}");
        assert!(rows.iter().filter(|row| row.contains("3 times as long")).count() == 2, "{rows:#?}");
        assert!(rows[23].starts_with("q quit"), "{rows:#?}");
        assert!(rows.iter().all(|row| columns(row) <= 80), "{rows:#?}");
    }

    #[test]
    fn many_servers_take_the_rows_that_are_free_and_idle_ones_come_last() {
        let server = |number: u64, under_way: f64| TargetSample {
            target: format!("server:{number}"),
            under_way: Mean::of(Some(under_way), 1.0),
            ..TargetSample::default()
        };
        let targets: Vec<TargetSample> = (0..11).map(|number| server(number, if number % 3 == 2 { 4.0 } else { 0.0 })).collect();
        let samples = [Sample { at_s: 1, span_s: 1, targets, host: None }];
        let listed = |size| {
            let rows = drawn(&samples, &[], 0, size, true);
            let names = rows.iter().filter_map(|row| row.trim_start_matches("> ").trim_start().strip_prefix("server:"));
            (names.filter_map(|rest| rest.split(' ').next()).map(str::to_owned).collect::<Vec<_>>(), rows)
        };
        let (all, rows) = listed((80, 24));
        assert_eq!(all, ["2", "5", "8", "0", "1", "3", "4", "6", "7", "9", "10"], "{rows:#?}");
        let (some, rows) = listed((80, 18));
        assert!(
            some.len() >= SERVERS_MIN - 1 && some.len() < 11 && rows.concat().contains(&format!("and {} more", 11 - some.len())),
            "{rows:#?}"
        );
    }

    #[test]
    fn what_is_old_is_shown_as_old() {
        let stale = Freshness { newest_s: Some(89), age_s: 8.4, stale: true };
        for (size, chosen) in [((80, 24), 0), ((40, 12), 1)] {
            let rows = drawn_at(&samples(), &[incident(State::Open)], chosen, size, true, Some(stale));
            assert!(rows.concat().starts_with("Nothing was measured for 8 s"), "{rows:#?}");
            let at = rows.iter().position(|row| row.contains("nginx")).unwrap_or_else(|| panic!("{rows:#?}"));
            assert!((1..6).contains(&at), "what was known is still there: {rows:#?}");
            assert!(chosen == 0 || !rows.concat().contains("Nothing listens"), "nobody knows: {rows:#?}");
        }
        let never = drawn_at(&[], &[], 0, (80, 24), true, Some(Freshness { newest_s: None, ..stale }));
        assert!(never[0].starts_with("Nothing was measured yet, for 8 s"), "{never:#?}");
        let fresh = drawn(&samples(), &[], 0, (80, 24), true);
        assert!(!fresh.concat().contains("Nothing was measured"), "{fresh:#?}");
    }

    #[test]
    fn a_server_that_does_not_listen_is_told_and_any_size_can_be_drawn() {
        let rows = drawn(&samples(), &[], 1, (80, 24), true);
        assert!(rows.iter().any(|row| row.contains("Nothing listens")), "{rows:#?}");
        for width in 0..45 {
            for height in 0..14 {
                drawn(&samples(), &[incident(State::Open)], 1, (width, height), width % 2 == 0);
                drawn(&[], &[], 7, (width, height), true);
            }
        }
        let mut hostile = samples();
        hostile[89].targets[0].target = "\u{1b}[2J数据库".repeat(40);
        let rows = drawn(&hostile, &[], 0, (40, 12), true);
        assert!(!rows.concat().contains('\u{1b}') && rows.iter().all(|row| columns(row) <= 40), "{rows:#?}");
    }
}
