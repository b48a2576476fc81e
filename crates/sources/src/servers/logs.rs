//! The log files in a configuration, with the formats of their lines.

pub(super) mod amplify;
pub(super) mod asked;
pub(super) mod lines;
pub(crate) mod named;
pub(crate) mod urls;

use std::collections::{BTreeMap, BTreeSet};

use chokepoint_config::Origin;
use chokepoint_config::log_format::Escape;
use chokepoint_config::nginx::{Destination, LogFormat, Nginx};
use chokepoint_config::php_fpm::Fpm;
use chokepoint_servers::absolute;
use serde::{Deserialize, Serialize};

use super::config::{ConfigHead, ParsedConfig};
use super::nginx::levels::levels;

/// Most logs of one server to follow.
pub(super) const LOGS_MAX: usize = 64;
/// Most formats of one file. Each line is tried with all of them.
const FORMATS_MAX: usize = 4;

/// The kind of a log's lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum LineKind {
    /// nginx's access log: formats, each with the name of its escaping.
    Access(Vec<(String, String)>),
    /// nginx's error log.
    Errors,
    /// php-fpm's access log.
    FpmAccess {
        /// `access.format`.
        format: String,
    },
    /// php-fpm's error log.
    FpmErrors,
}

/// A log in a configuration.
pub(super) struct LogFile {
    pub(super) lines: LineKind,
    /// The files that name it; none for the built-in log.
    pub(super) named_in: BTreeSet<String>,
    /// The pools of php-fpm whose requests are in it.
    pub(super) pools: Vec<String>,
}

impl LogFile {
    fn new(lines: LineKind) -> Self {
        Self { lines, named_in: BTreeSet::new(), pools: Vec::new() }
    }
}

type Logs = BTreeMap<String, LogFile>;

/// The logs of a configuration by their absolute paths.
pub(super) fn logs(head: &ConfigHead, parsed: &ParsedConfig) -> Logs {
    let mut found = match parsed {
        ParsedConfig::Nginx(nginx) => of_nginx(head, nginx),
        ParsedConfig::PhpFpm(fpm) => of_php_fpm(head, fpm),
    };
    while found.len() > LOGS_MAX {
        found.pop_last();
    }
    found
}

fn of_nginx(head: &ConfigHead, nginx: &Nginx) -> Logs {
    let mut found = Logs::new();
    let mut add_errors = |settings: &chokepoint_config::nginx::Settings| {
        let logs = settings.error_logs();
        if logs.is_empty() && !head.error_log.is_empty() {
            found.insert(absolute(&head.prefix, &head.error_log), LogFile::new(LineKind::Errors));
        }
        for log in logs {
            if let Destination::File(path) = log.destination {
                let known = found.entry(absolute(&head.prefix, &path)).or_insert_with(|| LogFile::new(LineKind::Errors));
                known.named_in.insert(log.place.file.to_string());
            }
        }
    };
    let levels = levels(nginx);
    add_errors(&nginx.main.settings);
    levels.iter().for_each(|level| add_errors(level.settings));
    for level in &levels {
        let formats = match level.http {
            Some(http) => &http.log_formats,
            None => nginx.stream.as_ref().map_or(&[][..], |stream| &stream.log_formats),
        };
        let named = |name: &str| formats.iter().rev().find(|format| format.name == name);
        let logs = level.settings.access_logs();
        let built_in = logs.logs.is_empty() && logs.origin == Origin::Default && level.http.is_some();
        if built_in
            && !head.access_log.is_empty()
            && let Some(combined) = named("combined")
        {
            add_access(&mut found, absolute(&head.prefix, &head.access_log), combined, None);
        }
        for log in logs.logs.iter().filter(|log| !log.gzip) {
            if let (Destination::File(path), Some(format)) = (&log.destination, named(&log.format)) {
                add_access(&mut found, absolute(&head.prefix, path), format, Some(log.place.file.to_string()));
            }
        }
    }
    found
}

fn add_access(found: &mut Logs, path: String, format: &LogFormat, file: Option<String>) {
    let escape = match format.escape {
        Escape::Default => "default",
        Escape::Json => "json",
        Escape::None => "none",
    };
    let format = (format.format.clone(), escape.to_owned());
    let log = found.entry(path).or_insert_with(|| LogFile::new(LineKind::Access(Vec::new())));
    log.named_in.extend(file);
    match &mut log.lines {
        LineKind::Access(formats) if formats.len() < FORMATS_MAX && !formats.contains(&format) => formats.push(format),
        _ => {}
    }
}

fn of_php_fpm(head: &ConfigHead, fpm: &Fpm) -> Logs {
    let mut found = Logs::new();
    let mut add = |path: String, lines: LineKind, origin: &Origin, pool: Option<&String>| {
        let log = found.entry(path).or_insert_with(|| LogFile::new(lines));
        log.named_in.extend(origin.place().map(|place| place.file.to_string()));
        log.pools.extend(pool.cloned());
    };
    // The built-in path depends on the distribution and is not guessed.
    if let Some(log) = fpm.global.error_log().filter(|log| log.value != "syslog" && !log.value.is_empty()) {
        // For php-fpm a relative error_log is below PREFIX/var.
        add(absolute(&format!("{}/var", head.prefix.trim_end_matches('/')), &log.value), LineKind::FpmErrors, &log.origin, None);
    }
    for pool in &fpm.pools {
        if let (Some(log), Some(format)) = (pool.access_log(), pool.text("access.format")) {
            let lines = LineKind::FpmAccess { format: format.value };
            add(absolute(&head.prefix, &log.value), lines, &log.origin, Some(&pool.name));
        }
    }
    found
}
