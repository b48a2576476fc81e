//! The log files in a configuration, with the formats of their lines.

pub(super) mod amplify;
pub(super) mod asked;
pub(super) mod lines;
pub(crate) mod named;
pub(crate) mod urls;
pub(crate) mod written;

use std::collections::{BTreeMap, BTreeSet};

use chokepoint_config::Origin;
use chokepoint_config::log_format::Escape;
use chokepoint_config::nginx::{Destination, LogFormat, Nginx};
use chokepoint_config::php_fpm::{Fpm, Listen, Pool};
use chokepoint_model::observation::Request;
use chokepoint_servers::absolute;
use serde::{Deserialize, Serialize};

use super::config::{ConfigHead, ParsedConfig};
use super::nginx::levels::{ConfigLevel, levels};
use super::nginx::selected::servers_asked;

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
    /// The users, by name, as whom the configuration has those processes run that write it.
    pub(super) users: BTreeSet<String>,
    /// The requests that it may have lines of, by their places among those asked for.
    pub(super) of: BTreeSet<usize>,
}

impl LogFile {
    fn new(lines: LineKind) -> Self {
        Self { lines, named_in: BTreeSet::new(), pools: Vec::new(), users: BTreeSet::new(), of: BTreeSet::new() }
    }

    fn also_of(&mut self, requests: &BTreeSet<usize>) -> &mut Self {
        self.of.extend(requests);
        self
    }
}

type Logs = BTreeMap<String, LogFile>;

/// The logs of a configuration by their absolute paths: those that may have lines of one of these requests, or all if there are none. Another server block's log says
/// nothing of what is asked for.
pub(super) fn logs(head: &ConfigHead, parsed: &ParsedConfig, requests: &[Request]) -> Logs {
    let mut found = match parsed {
        ParsedConfig::Nginx(nginx) => of_nginx(head, nginx, requests),
        ParsedConfig::PhpFpm(fpm) => of_php_fpm(head, fpm, requests),
        // It sends its lines to a log server.
        ParsedConfig::Haproxy(_) | ParsedConfig::Postgresql(_) => Logs::new(),
    };
    found.retain(|_, log| requests.is_empty() || !log.of.is_empty());
    while found.len() > LOGS_MAX {
        found.pop_last();
    }
    found
}

fn of_nginx(head: &ConfigHead, nginx: &Nginx, requests: &[Request]) -> Logs {
    let mut found = Logs::new();
    let mut add_errors = |settings: &chokepoint_config::nginx::Settings, of: BTreeSet<usize>| {
        let logs = settings.error_logs();
        if logs.is_empty() && !head.error_log.is_empty() {
            add_log(&mut found, absolute(&head.prefix, &head.error_log), LineKind::Errors).also_of(&of);
        }
        for log in logs {
            if let Destination::File(path) = log.destination {
                let known = add_log(&mut found, absolute(&head.prefix, &path), LineKind::Errors).also_of(&of);
                known.named_in.insert(log.place.file.to_string());
            }
        }
    };
    let levels = levels(nginx);
    let servers: Vec<Option<Vec<usize>>> = requests.iter().map(|request| servers_asked(nginx, request)).collect();
    let answers = |level: &ConfigLevel<'_>, servers: &Option<Vec<usize>>| {
        servers.as_ref().is_none_or(|servers| level.server.is_some_and(|server| servers.contains(&server)))
    };
    let of = |level: &ConfigLevel<'_>| -> BTreeSet<usize> {
        servers.iter().enumerate().filter(|(_, servers)| answers(level, servers)).map(|(number, _)| number).collect()
    };
    // What concerns no request, such as connections that a worker has no place for, is logged there.
    add_errors(&nginx.main.settings, (0..requests.len()).collect());
    levels.iter().for_each(|level| add_errors(level.settings, of(level)));
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
            add_access(&mut found, absolute(&head.prefix, &head.access_log), combined, None).also_of(&of(level));
        }
        for log in logs.logs.iter().filter(|log| !log.gzip) {
            if let (Destination::File(path), Some(format)) = (&log.destination, named(&log.format)) {
                add_access(&mut found, absolute(&head.prefix, path), format, Some(log.place.file.to_string())).also_of(&of(level));
            }
        }
    }
    let user = nginx.main.settings.one("user").map(|user| user.arg(0).to_owned());
    found.values_mut().for_each(|log| log.users.extend(user.clone()));
    found
}

fn add_log(found: &mut Logs, path: String, lines: LineKind) -> &mut LogFile {
    found.entry(path).or_insert_with(|| LogFile::new(lines))
}

fn add_access<'a>(found: &'a mut Logs, path: String, format: &LogFormat, file: Option<String>) -> &'a mut LogFile {
    let escape = match format.escape {
        Escape::Default => "default",
        Escape::Json => "json",
        Escape::None => "none",
    };
    let format = (format.format.clone(), escape.to_owned());
    let log = add_log(found, path, LineKind::Access(Vec::new()));
    log.named_in.extend(file);
    match &mut log.lines {
        LineKind::Access(formats) if formats.len() < FORMATS_MAX && !formats.contains(&format) => formats.push(format),
        _ => {}
    }
    log
}

fn of_php_fpm(head: &ConfigHead, fpm: &Fpm, requests: &[Request]) -> Logs {
    let mut found = Logs::new();
    let all: BTreeSet<usize> = (0..requests.len()).collect();
    let mut add = |path: String, lines: LineKind, origin: &Origin, pool: Option<&Pool>| {
        let log = add_log(&mut found, path, lines);
        log.named_in.extend(origin.place().map(|place| place.file.to_string()));
        log.also_of(&pool.map_or_else(|| all.clone(), |pool| pool_requests(fpm, pool, requests)));
        if let Some(pool) = pool {
            log.pools.push(pool.name.clone());
            log.users.extend(["user", "listen.owner"].into_iter().filter_map(|name| pool.text(name)).map(|user| user.value));
        }
    };
    // The built-in path depends on the distribution and is not guessed.
    if let Some(log) = fpm.global.error_log().filter(|log| log.value != "syslog" && !log.value.is_empty()) {
        // For php-fpm a relative error_log is below PREFIX/var.
        add(absolute(&format!("{}/var", head.prefix.trim_end_matches('/')), &log.value), LineKind::FpmErrors, &log.origin, None);
    }
    for pool in &fpm.pools {
        if let (Some(log), Some(format)) = (pool.access_log(), pool.text("access.format")) {
            let lines = LineKind::FpmAccess { format: format.value };
            add(absolute(&head.prefix, &log.value), lines, &log.origin, Some(pool));
        }
    }
    found
}

/// The requests that a pool may answer: those to its own address, and whatever a server before it may pass on.
fn pool_requests(fpm: &Fpm, pool: &Pool, requests: &[Request]) -> BTreeSet<usize> {
    let takes = |pool: &Pool, request: &Request| match pool.listen().map(|listen| listen.value) {
        Some(Listen::Unix(path)) => request.unix.contains(&path),
        Some(Listen::Port(port)) => request.unix.is_empty() && port == request.port,
        Some(Listen::Ip(ip, port)) => port == request.port && (ip.is_unspecified() || request.addresses.contains(&ip)),
        Some(Listen::Name(..)) | None => false,
    };
    let may_take = |request: &Request| !request.is_fastcgi() || takes(pool, request) || !fpm.pools.iter().any(|pool| takes(pool, request));
    requests.iter().enumerate().filter(|(_, request)| may_take(request)).map(|(number, _)| number).collect()
}
