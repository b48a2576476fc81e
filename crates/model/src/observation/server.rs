//! Readings of servers whose kind is known: the configuration in force and what their logs told during the observation.

use std::collections::BTreeMap;

use super::ListenerAddress;
use crate::observation::load::Percentiles;
use crate::observation::series::Series;

/// Everything read of one server of a known kind, by the process id of its master.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerView {
    /// The configuration as its files are now. The server may still run with an older one where a file changed after it was last loaded.
    pub config: Series<ServerConfig>,
    /// Access logs, by path, each counted over the observation.
    pub access_logs: BTreeMap<String, Series<AccessLog>>,
    /// Error logs, by path, each counted over the observation.
    pub error_logs: BTreeMap<String, Series<ErrorLog>>,
    /// Its status pages, where it has any: "nginx", and "pool NAME" or "own pool NAME" of php-fpm (answered apart, or by a worker of the
    /// pool).
    pub status: BTreeMap<String, Series<ServerStatus>>,
}

/// What a server says of itself on its status page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerStatus {
    /// nginx's `stub_status`.
    Nginx(NginxStatus),
    /// php-fpm's `pm.status_path`.
    PhpFpm(PhpFpmStatus),
}

/// nginx's counts over all workers, our own request among them (ngx_http_stub_status_module).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NginxStatus {
    /// Connections of clients now, idle ones included.
    pub active: u64,
    /// Connections accepted since it was started; a reload keeps the counts.
    pub accepts: u64,
    /// Of those, the ones that were not closed at once for want of a free connection of `worker_connections`.
    pub handled: u64,
    /// Requests since it was started.
    pub requests: u64,
    /// Connections of which a request is being read.
    pub reading: u64,
    /// Connections to which an answer is being made or sent.
    pub writing: u64,
    /// Kept connections without a request.
    pub waiting: u64,
}

/// The counts of one pool of php-fpm (fpm_status.c).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhpFpmStatus {
    /// Name.
    pub pool: String,
    /// Requests taken since it was started.
    pub accepted: u64,
    /// Connections that wait to be accepted; always 0 on a unix socket, where php-fpm cannot tell.
    pub listen_queue: u64,
    /// The most that waited since it was started; always 0 on a unix socket.
    pub max_listen_queue: u64,
    /// The queue's limit; always 0 on a unix socket.
    pub listen_queue_len: u64,
    /// Workers that wait for a request.
    pub idle: u64,
    /// Workers that have one, without the worker that answered for the page.
    pub active: u64,
    /// Workers.
    pub total: u64,
    /// The most that were active since it was started, those that answered for the page included.
    pub max_active: u64,
    /// Times that `pm.max_children` kept it from starting a worker; always 0 where `pm = static`.
    pub max_children_reached: u64,
    /// Requests that took longer than `request_slowlog_timeout`.
    pub slow_requests: u64,
}

/// Where a setting stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// File, as the server names it; empty for a default.
    pub file: String,
    /// Line, from 1; 0 for a default.
    pub line: u32,
}

/// A setting with its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value in force.
    pub value: T,
    /// Where it stands; a default has no file.
    pub origin: Origin,
}

/// The configuration of a server of a known kind.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there are few: one for each server")]
pub enum ServerConfig {
    /// nginx.
    Nginx(NginxConfig),
    /// php-fpm.
    PhpFpm(PhpFpmConfig),
}

/// What of an nginx configuration bears on throughput.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NginxConfig {
    /// The version (1.22.1), where it is known.
    pub version: Option<(u16, u16, u16)>,
    /// The main file.
    pub file: String,
    /// Every file that was included, the main one first, with the time of its last change (seconds since 1970).
    pub files: Vec<(String, i64)>,
    /// Workers; `auto` is given as the number of cores.
    pub worker_processes: Setting<u32>,
    /// Connections a worker may have at once, those to upstreams included.
    pub worker_connections: Setting<u32>,
    /// Open files a worker may have, where it is set.
    pub worker_rlimit_nofile: Option<Setting<u64>>,
    /// Where it listens.
    pub listens: Vec<NginxListen>,
    /// Where it passes requests.
    pub passes: Vec<NginxPass>,
    /// Rate and connection limits that apply somewhere.
    pub limits: Vec<NginxLimit>,
    /// What it asks of the servers behind for the request that is diagnosed, the likeliest first; one entry for each upstream or address.
    pub asks: Vec<NginxAsks>,
    /// What it answers itself for the same host, files first.
    pub own: Vec<NginxOwn>,
    /// Where each step of the request that is diagnosed is logged.
    pub debug_logs: Vec<NginxDebugLog>,
    /// True where each step of some clients is logged besides, whatever the levels of the logs are (`debug_connection`).
    pub debug_connections: bool,
    /// Where `rewrite_log on` stands, where it is in force for that request and its lines are logged.
    pub rewrite_log: Option<Origin>,
    /// How the TLS sessions of its clients may be resumed; nothing where it speaks no TLS, or that is not known.
    pub tls_sessions: Option<NginxTlsSessions>,
}

/// Where each step of a request is logged (`error_log FILE debug`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NginxDebugLog {
    /// Where it goes, as written: a file, "stderr", "syslog:...", "memory:32m".
    pub to: String,
    /// What each `error_log` logs that goes there: "debug", "debug_http debug_event, warn".
    pub levels: String,
    /// The same where those that are in force for this request log errors alone.
    pub quiet: String,
    /// True where the lines stay in memory, as nginx's manual advises for a server under load.
    pub is_memory: bool,
    /// Where it stands.
    pub origin: Origin,
}

/// How TLS sessions may be resumed (ngx_http_ssl_module).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NginxTlsSessions {
    /// `ssl_session_tickets`: with tickets clients keep their sessions themselves.
    pub tickets: Setting<bool>,
    /// `ssl_session_cache` as written; the default "none" stores nothing, as "off" does.
    pub cache: Setting<String>,
    /// True where some clients show certificates (`ssl_verify_client`), which are not looked at again in a resumed session.
    pub verifies_clients: bool,
    /// True where keys are exchanged on the curves that OpenSSL prefers, which are quick: `ssl_ecdh_curve` names no others.
    pub has_quick_curves: bool,
}

impl NginxTlsSessions {
    /// True where a client that offers a session may resume it.
    pub fn are_resumed(&self) -> bool {
        self.tickets.value || !matches!(self.cache.value.as_str(), "none" | "off")
    }

    /// True where none is resumed and nobody said that none may be: tickets are off, and sessions are not stored by default alone.
    pub fn refuses_unasked(&self) -> bool {
        !self.are_resumed() && !self.verifies_clients && self.cache.origin.file.is_empty()
    }
}

/// One `listen` of nginx.
#[derive(Debug, Clone, PartialEq)]
pub struct NginxListen {
    /// Address; `*:80` is `0.0.0.0:80`.
    pub address: ListenerAddress,
    /// `backlog=`; nothing is nginx's default of 511 (Linux).
    pub backlog: Option<u32>,
    /// `reuseport`.
    pub reuseport: bool,
    /// Where it stands.
    pub origin: Origin,
}

/// One `fastcgi_pass`, `proxy_pass` or the like.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NginxPass {
    /// "fastcgi", "proxy", "uwsgi", "scgi", "grpc".
    pub kind: String,
    /// Name of the upstream block, where it passes to one.
    pub upstream: Option<String>,
    /// The addresses of the servers behind it that are literal.
    pub servers: Vec<ListenerAddress>,
    /// `keepalive` of the upstream block: idle connections a worker keeps.
    pub keepalive: Option<u32>,
    /// `keepalive_requests` of the upstream block.
    pub keepalive_requests: Option<u64>,
    /// True where all that the protocol needs for reuse is set: `fastcgi_keep_conn on`, or HTTP/1.1 with an empty Connection header.
    pub reuses: bool,
    /// Where it stands.
    pub origin: Origin,
}

/// A request as nginx passes it on: what a load sends that leaves nginx out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NginxAsks {
    /// Where it is passed.
    pub pass: NginxPass,
    /// TLS to the server behind.
    pub tls: bool,
    /// Of FastCGI the script's file, of HTTP the request target, with the query; empty for other protocols and where it cannot be told.
    pub path_and_query: String,
    /// Of HTTP the Host header.
    pub host: String,
    /// Parameters of FastCGI, header fields of HTTP; of these one without a value is not sent.
    pub fields: Vec<(String, String)>,
    /// What cannot be told, with the line where it stands.
    pub unknown: Option<String>,
}

/// Something that nginx answers with no server behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NginxOwn {
    /// The path to ask for, or the one that names of files go behind.
    pub path: String,
    /// The directory of these files, as the server sees it; nothing where the path itself has a fixed answer.
    pub directory: Option<String>,
    /// Endings of those of them that are sent as they are.
    pub endings: Vec<String>,
}

/// A limit that an administrator set on purpose.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NginxLimit {
    /// "limit_req" or "limit_conn".
    pub kind: String,
    /// The zone.
    pub zone: String,
    /// Requests a second for each key, of `limit_req`.
    pub rate_per_s: Option<f64>,
    /// Connections for each key, of `limit_conn`.
    pub connections: Option<u64>,
    /// `burst=`.
    pub burst: u64,
    /// Requests of the burst that pass at once, the others wait: none unless `delay=` says more, all of them with `nodelay`.
    pub burst_at_once: u64,
    /// What the zone counts by: "$binary_remote_addr".
    pub key: String,
    /// Whether the request that is diagnosed passes it, as the configuration alone tells; nothing where files, conditions or expressions decide.
    pub applies: Option<bool>,
    /// The same for a request that comes in unchanged at one of the server's own addresses, because the one that it names was translated on the way: what
    /// is known, address by address. Empty where the request names one of them.
    pub applies_at: Vec<(ListenerAddress, bool)>,
    /// The status of a refused request.
    pub status: u16,
    /// Where it stands.
    pub origin: Origin,
    /// Where its zone is defined, with the rate.
    pub zone_origin: Origin,
}

/// What of a php-fpm configuration bears on throughput.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PhpFpmConfig {
    /// The main file.
    pub file: String,
    /// Every file that was included, with the time of its last change (seconds since 1970).
    pub files: Vec<(String, i64)>,
    /// Seconds for which children may finish at a reload; 0, the default, kills requests in flight.
    pub process_control_timeout_s: Setting<u64>,
    /// The pools.
    pub pools: Vec<PhpFpmPool>,
}

/// One pool of php-fpm.
#[derive(Debug, Clone, PartialEq)]
pub struct PhpFpmPool {
    /// Name.
    pub name: String,
    /// Where it listens.
    pub listen: ListenerAddress,
    /// `listen.backlog`; -1 is the system's limit.
    pub backlog: Setting<i64>,
    /// "static", "dynamic" or "ondemand".
    pub pm: Setting<String>,
    /// `pm.max_children`.
    pub max_children: Setting<u32>,
    /// `pm.max_requests`; 0 is no limit.
    pub max_requests: Setting<u64>,
    /// `request_terminate_timeout`, seconds; 0 is off.
    pub terminate_timeout_s: Setting<u64>,
}

/// What an access log told during the observation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AccessLog {
    /// Lines.
    pub lines: u64,
    /// Lines that do not fit the format.
    pub misfits: u64,
    /// True where the format has a status; without one good and failed answers cannot be told apart.
    pub has_status: bool,
    /// Lines by status.
    pub status: BTreeMap<u16, u64>,
    /// Time from the first byte of a request to the last of its answer, microseconds, where the format has it.
    pub request_time_us: Option<Percentiles>,
    /// Time the upstreams took, each attempt apart, microseconds, where the format has it.
    pub upstream_time_us: Option<Percentiles>,
    /// Time a php-fpm worker took for a request, microseconds (`%{micro}d`), where the format has it.
    pub duration_us: Option<Percentiles>,
    /// Bytes of answers.
    pub bytes: u64,
    /// How much of the log these figures are of.
    pub extent: LogExtent,
}

impl AccessLog {
    /// Lines that the log gained, an estimate where only its end was read; nothing where that cannot be told.
    pub fn gained(&self) -> Option<f64> {
        Some(self.lines as f64 * self.extent.scale()?)
    }
}

/// How much was read of what a log gained during the observation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogExtent {
    /// True where the file was replaced or cut while it was followed: lines may be missing.
    pub rotated: bool,
    /// Bytes that were passed over because the log grew by more than is read: what was read is its end.
    pub skipped_bytes: u64,
    /// Bytes that were read; 0 in recordings that do not tell.
    pub read_bytes: u64,
}

impl LogExtent {
    /// True where nothing of it is missing.
    pub fn is_whole(self) -> bool {
        !self.rotated && self.skipped_bytes == 0
    }

    /// What the log gained over what was read of it; nothing where that cannot be told.
    pub fn scale(self) -> Option<f64> {
        match (self.rotated, self.skipped_bytes, self.read_bytes) {
            (true, ..) => None,
            (_, 0, _) => Some(1.0),
            (.., 0) => None,
            (_, skipped, read) => Some(1.0 + skipped as f64 / read as f64),
        }
    }
}

/// What an error log told during the observation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ErrorLog {
    /// Lines that were read, by kind: "connect 99" (errno of a failed connect to an upstream), "connect 11", "connect 111", "accept 24", "worker_connections",
    /// "worker_connections reused", "limiting requests ZONE", "delaying requests ZONE", "limiting connections ZONE", "upstream timed out",
    /// "upstream closed" and "upstream reset" (before anything of the answer came),
    /// "max_children POOL", ...
    pub kinds: BTreeMap<String, u64>,
    /// The first line of each kind, at most 300 bytes.
    pub samples: BTreeMap<String, String>,
    /// How much of the log these figures are of.
    pub extent: LogExtent,
}

impl ErrorLog {
    /// Lines of this kind. Where only the log's end was read, those that it gained if they were as frequent before: a server that logs each of tens of
    /// thousands of failures a second writes more than is read.
    pub fn count(&self, kind: &str) -> u64 {
        let read = self.kinds.get(kind).copied().unwrap_or(0);
        (read as f64 * self.extent.scale().unwrap_or(1.0)).round() as u64
    }
}

impl ServerView {
    /// The configuration, where it is nginx's.
    pub fn nginx(&self) -> Option<&NginxConfig> {
        match self.config.last()? {
            ServerConfig::Nginx(nginx) => Some(nginx),
            ServerConfig::PhpFpm(_) => None,
        }
    }

    /// The configuration, where it is php-fpm's.
    pub fn php_fpm(&self) -> Option<&PhpFpmConfig> {
        match self.config.last()? {
            ServerConfig::PhpFpm(php_fpm) => Some(php_fpm),
            ServerConfig::Nginx(_) => None,
        }
    }

    /// Readings of nginx's status page, where it has one.
    pub fn nginx_status(&self) -> Option<&Series<ServerStatus>> {
        self.status.get("nginx")
    }

    /// Readings of the status page of a pool of php-fpm, and whether a worker of the pool answered for it.
    pub fn pool_status(&self, pool: &str) -> Option<(&Series<ServerStatus>, bool)> {
        let apart = self.status.get(&format!("pool {pool}")).map(|series| (series, false));
        apart.or_else(|| self.status.get(&format!("own pool {pool}")).map(|series| (series, true)))
    }

    /// Lines of this kind in all of its error logs together.
    pub fn errors(&self, kind: &str) -> u64 {
        self.error_logs.values().filter_map(|log| log.last()).map(|log| log.count(kind)).sum()
    }

    /// True where [`ServerView::errors`] is an estimate, for of a log with such lines only the end was read.
    pub fn is_estimated(&self, kind: &str) -> bool {
        let mut logs = self.error_logs.values().filter_map(|log| log.last());
        logs.any(|log| log.kinds.contains_key(kind) && log.extent.scale().is_some_and(|scale| scale > 1.0))
    }

    /// The first line of this kind, with the log that it stands in.
    pub fn error_sample(&self, kind: &str) -> Option<(&str, &str)> {
        self.error_logs.iter().find_map(|(path, log)| Some((path.as_str(), log.last()?.samples.get(kind)?.as_str())))
    }
}
