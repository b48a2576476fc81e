//! Error logs that record each step of a request (`error_log FILE debug`), and the edit that limits them to errors.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::SourceLine;
use crate::nginx::edit::{EditError, Editor};
use crate::nginx::effective::Nginx;
use crate::nginx::effective::location::Location;
use crate::nginx::effective::logs::{Destination, ErrorLog};
use crate::nginx::effective::settings::Settings;
use crate::nginx::request::select::Selection;

/// Levels of an error log: the least severity of its lines (ngx_log.c, err_levels), the quietest first.
const LEVELS: &[&str] = &["emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"];
/// Debug levels, of which a log may name several (ngx_log.c, debug_levels).
const DEBUG_LEVELS: &[&str] = &["debug_core", "debug_alloc", "debug_mutex", "debug_event", "debug_http", "debug_mail", "debug_stream"];
/// The level of a log that records only errors; nginx's default.
const QUIET_LEVEL: &str = "error";
/// Destinations that are reported for one request.
const LOGS_MAX: usize = 16;

/// The levels of every `error_log` with one destination, in the order of the configuration: "debug", "debug_http debug_event, warn".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLevels(Vec<Vec<String>>);

impl fmt::Display for LogLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<String> = self.0.iter().map(|levels| levels.join(" ")).collect();
        f.write_str(&each.join(", "))
    }
}

/// A text that is not "debug" or "debug_http debug_event, warn".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it does not look like \"debug\" or \"debug_http debug_event, warn\"")]
pub struct NoLevels;

/// True for a level or a debug level.
pub(crate) fn is_level(word: &str) -> bool {
    LEVELS.contains(&word) || DEBUG_LEVELS.contains(&word)
}

impl FromStr for LogLevels {
    type Err = NoLevels;

    fn from_str(text: &str) -> Result<Self, NoLevels> {
        let is_one = |levels: &&str| {
            let mut words = levels.split(' ');
            LEVELS.contains(levels) || words.all(|word| DEBUG_LEVELS.contains(&word))
        };
        let each: Vec<&str> = text.split(", ").collect();
        if !each.iter().all(is_one) {
            return Err(NoLevels);
        }
        Ok(Self(each.into_iter().map(|levels| levels.split(' ').map(str::to_owned).collect()).collect()))
    }
}

impl ErrorLog {
    /// True if each step is logged, or each step of some kind.
    pub fn is_debug(&self) -> bool {
        self.levels.iter().any(|level| level == "debug" || DEBUG_LEVELS.contains(&level.as_str()))
    }

    /// True if the lines of `rewrite_log` are logged.
    fn takes_notices(&self) -> bool {
        self.is_debug() || self.levels.iter().any(|level| level == "notice" || level == "info")
    }
}

/// A log that records each step of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugLog {
    /// The first directive in force with a debug level.
    pub place: SourceLine,
    /// Its destination as written.
    pub to: String,
    /// Its destination.
    pub destination: Destination,
    /// The levels of every `error_log` with this destination, including those of other requests.
    pub levels: LogLevels,
    /// The same levels if those in force for this request recorded only errors.
    pub quiet: LogLevels,
}

impl Nginx {
    /// The logs that record each step of the selected request; without a selection, the debug logs of the main context.
    ///
    /// Steps before the server is known go to the log of the address's default server. Steps that belong to no request (events, timers) go to the
    /// log of the main context (ngx_http.c, ngx_http_add_listening; ngx_epoll_module.c).
    pub fn debug_logs(&self, selection: Option<&Selection<'_>>) -> Vec<DebugLog> {
        let mut in_force: Vec<ErrorLog> = Vec::new();
        for settings in self.logging_settings(selection) {
            in_force.extend(settings.error_logs().into_iter().filter(ErrorLog::is_debug));
        }
        if in_force.is_empty() {
            return Vec::new();
        }
        let own: BTreeSet<&SourceLine> = in_force.iter().map(|log| &log.place).collect();
        let all = self.by_destination();
        let mut found: Vec<DebugLog> = Vec::new();
        for log in &in_force {
            let Some(same) = all.get(&log.to).filter(|_| !found.iter().any(|known| known.to == log.to)) else { continue };
            let quiet = |one: &ErrorLog| if own.contains(&one.place) { vec![QUIET_LEVEL.to_owned()] } else { one.levels.clone() };
            found.push(DebugLog {
                place: log.place.clone(),
                to: log.to.clone(),
                destination: log.destination.clone(),
                levels: LogLevels(same.iter().map(|one| one.levels.clone()).collect()),
                quiet: LogLevels(same.iter().map(quiet).collect()),
            });
            if found.len() == LOGS_MAX {
                break;
            }
        }
        found
    }

    /// The `rewrite_log on` in force whose lines are logged: one or more for each `rewrite` that a request passes.
    pub fn rewrite_log(&self, selection: &Selection<'_>) -> Option<SourceLine> {
        let levels = selection.location.filter(|_| selection.is_certain()).map(|location| &location.settings);
        let mut levels = levels.into_iter().chain([&selection.server.settings]).filter(|_| selection.servers_possible.is_empty());
        let is_on = |settings: &&Settings| settings.flag("rewrite_log").is_some_and(|flag| flag.value);
        let found = levels.find(|settings| is_on(settings) && settings.error_logs().iter().any(ErrorLog::takes_notices))?;
        found.one("rewrite_log").map(|directive| directive.place.clone())
    }

    /// The levels of every `error_log` with destination `to`; none if there is none.
    pub fn log_levels(&self, to: &str) -> Option<LogLevels> {
        Some(LogLevels(self.by_destination().get(to)?.iter().map(|log| log.levels.clone()).collect()))
    }

    /// The settings whose error logs record the selected request.
    fn logging_settings<'n>(&'n self, selection: Option<&Selection<'n>>) -> Vec<&'n Settings> {
        let mut levels = vec![&self.main.settings];
        let (Some(http), Some(selection)) = (&self.http, selection) else { return levels };
        levels.extend(http.servers.get(selection.socket.default_server).map(|server| &server.settings));
        if selection.servers_possible.is_empty() {
            levels.push(&selection.server.settings);
            let location = selection.location.filter(|_| selection.locations_possible.is_empty());
            levels.extend(location.map(|location| &location.settings));
        }
        levels
    }

    /// Every `error_log` by destination, in the order of the configuration, each directive once.
    fn by_destination(&self) -> BTreeMap<String, Vec<ErrorLog>> {
        let mut blocks: Vec<&Settings> = vec![&self.main.settings];
        if let Some(http) = &self.http {
            blocks.push(&http.settings);
            for server in &http.servers {
                blocks.push(&server.settings);
                add_locations(&server.locations, &mut blocks);
            }
        }
        if let Some(stream) = &self.stream {
            blocks.push(&stream.settings);
            blocks.extend(stream.servers.iter().map(|server| &server.settings));
        }
        let mut seen = BTreeSet::new();
        let mut found: BTreeMap<String, Vec<ErrorLog>> = BTreeMap::new();
        for log in blocks.into_iter().flat_map(Settings::own_error_logs) {
            if seen.insert(log.place.node) {
                found.entry(log.to.clone()).or_default().push(log);
            }
        }
        found
    }
}

fn add_locations<'n>(locations: &'n [Location], blocks: &mut Vec<&'n Settings>) {
    for location in locations {
        blocks.push(&location.settings);
        add_locations(&location.locations, blocks);
    }
}

/// Sets the levels of every `error_log` with destination `to`. False if their number differs from the number of levels.
pub fn set_log_levels(editor: &mut Editor<'_>, nginx: &Nginx, to: &str, levels: &LogLevels) -> Result<bool, EditError> {
    let logs = nginx.by_destination().remove(to).unwrap_or_default();
    if logs.is_empty() || logs.len() != levels.0.len() {
        return Ok(false);
    }
    for (log, levels) in logs.iter().zip(&levels.0).filter(|(log, levels)| log.levels != **levels) {
        let words: Vec<&str> = std::iter::once(to).chain(levels.iter().map(String::as_str)).collect();
        editor.set_arguments(log.place.node, &words)?;
    }
    Ok(true)
}
