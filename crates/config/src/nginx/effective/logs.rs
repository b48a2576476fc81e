//! Where nginx logs: `access_log`, `error_log` and `log_format`.

use super::settings::{Occurrence, Settings};
use crate::log_format::{COMBINED, Escape};
use crate::{Origin, SourceLine, quantity};

/// The destination of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A file as written: relative to nginx's prefix unless it begins with a slash.
    File(String),
    /// A file whose name contains variables. nginx opens it for every line.
    Variable(String),
    /// `syslog:server=...`, as written.
    Syslog(String),
    /// `stderr` (error log only).
    Stderr,
    /// `memory:32m` (error log only).
    Memory,
}

impl Destination {
    fn of_access_log(text: &str) -> Self {
        if text.starts_with("syslog:") {
            Self::Syslog(text.to_owned())
        } else if text.contains('$') {
            Self::Variable(text.to_owned())
        } else {
            Self::File(text.to_owned())
        }
    }

    fn of_error_log(text: &str) -> Self {
        if text == "stderr" {
            Self::Stderr
        } else if text.starts_with("syslog:") {
            Self::Syslog(text.to_owned())
        } else if text.starts_with("memory:") {
            Self::Memory
        } else {
            Self::File(text.to_owned())
        }
    }
}

/// One access log in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLog {
    /// Its position.
    pub place: SourceLine,
    /// Its destination.
    pub destination: Destination,
    /// Name of its format, "combined" by default.
    pub format: String,
    /// `buffer=` in bytes: lines arrive late, in blocks of this size.
    pub buffer_bytes: Option<u64>,
    /// `flush=`: the longest time that a line waits in the buffer.
    pub flush_ms: Option<u64>,
    /// `gzip`: the file is compressed and cannot be read while nginx writes it.
    pub gzip: bool,
    /// `if=`: a request is logged only if this is neither empty nor 0.
    pub condition: Option<String>,
}

/// The access logs of one location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLogs {
    /// The logs. Empty with a set origin: logging is off. Empty by default: nginx's compiled-in file (`nginx -V`, --http-log-path) in
    /// the format `combined`.
    pub logs: Vec<AccessLog>,
    /// The origin of the setting.
    pub origin: Origin,
}

/// One effective error log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorLog {
    /// Its position.
    pub place: SourceLine,
    /// Its destination.
    pub destination: Destination,
    /// The destination as written.
    pub to: String,
    /// What is logged, as written: the lowest level ("debug", "info", "notice", "warn", "error", which is the default, "crit", "alert", "emerg"), or kinds of
    /// debug messages ("debug_http", "debug_event").
    pub levels: Vec<String>,
}

/// A named format of access log lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFormat {
    /// Its name.
    pub name: String,
    /// The whole text: the directive's arguments, joined as nginx joins them.
    pub format: String,
    /// How values are escaped.
    pub escape: Escape,
    /// Its position; the built-in format has none.
    pub origin: Origin,
}

impl Settings {
    /// The effective access logs (`access_log` of this block, else of the nearest outer block that has any).
    pub fn access_logs(&self) -> AccessLogs {
        let all = self.all("access_log");
        let origin = all.first().map_or(Origin::Default, |first| Origin::Set(first.place.clone()));
        let off = all.iter().any(|log| log.arg(0) == "off");
        let logs = if off { Vec::new() } else { all.iter().map(access_log).collect() };
        AccessLogs { logs, origin }
    }

    /// The effective error logs. Empty if none is set: then nginx uses its compiled-in one (`nginx -V`, --error-log-path).
    pub fn error_logs(&self) -> Vec<ErrorLog> {
        self.all("error_log").iter().map(error_log).collect()
    }

    /// The error logs set in this block itself.
    pub(crate) fn own_error_logs(&self) -> impl Iterator<Item = ErrorLog> {
        self.own("error_log").iter().map(error_log)
    }
}

fn error_log(directive: &Occurrence) -> ErrorLog {
    let levels = directive.args.get(1..).unwrap_or_default();
    ErrorLog {
        place: directive.place.clone(),
        destination: Destination::of_error_log(directive.arg(0)),
        to: directive.arg(0).to_owned(),
        levels: if levels.is_empty() { vec!["error".to_owned()] } else { levels.to_vec() },
    }
}

fn access_log(directive: &Occurrence) -> AccessLog {
    let options = directive.args.get(2..).unwrap_or_default();
    let value = |name: &str| options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
    let gzip = options.iter().any(|option| option == "gzip" || option.starts_with("gzip="));
    let format = directive.arg(1);
    AccessLog {
        place: directive.place.clone(),
        destination: Destination::of_access_log(directive.arg(0)),
        format: if format.is_empty() { "combined".to_owned() } else { format.to_owned() },
        buffer_bytes: value("buffer").and_then(quantity::size_bytes).or(gzip.then_some(64 << 10)),
        flush_ms: value("flush").and_then(quantity::time_ms),
        gzip,
        condition: value("if").map(str::to_owned),
    }
}

/// The formats of a context, the built-in one first.
pub(crate) fn log_formats(settings: &Settings) -> Vec<LogFormat> {
    let combined = LogFormat { name: "combined".to_owned(), format: COMBINED.to_owned(), escape: Escape::Default, origin: Origin::Default };
    let own = settings.own("log_format").iter().map(|directive| {
        let mut parts = directive.args.get(1..).unwrap_or_default();
        let mut escape = Escape::Default;
        if let Some(kind) = parts.first().and_then(|part| part.strip_prefix("escape=")) {
            escape = match kind {
                "json" => Escape::Json,
                "none" => Escape::None,
                _ => Escape::Default,
            };
            parts = &parts[1..];
        }
        LogFormat { name: directive.arg(0).to_owned(), format: parts.concat(), escape, origin: Origin::Set(directive.place.clone()) }
    });
    std::iter::once(combined).chain(own).collect()
}
