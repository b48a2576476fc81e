//! Readings of servers of a known kind: their configuration and their logs during the observation.

mod status;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use status::{NginxStatus, PhpFpmStatus, ProxiedServer, ProxiedState, ServerStatus};

use super::{ListenerAddress, LogEvent, Observation, StatedConfig};
use crate::fix::change::{ServerKind, ServerSetting};
use crate::observation::load::Percentiles;
use crate::observation::series::Series;

/// Everything read of one server of a known kind, by process id of the master.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerView {
    /// The configuration in the files now. The server may still run with an older one if a file changed after it was loaded.
    pub config: Series<ServerConfig>,
    /// Access logs, by path, each counted over the observation.
    pub access_logs: BTreeMap<String, Series<AccessLog>>,
    /// Error logs, by path, each counted over the observation.
    pub error_logs: BTreeMap<String, Series<ErrorLog>>,
    /// Its status pages: "nginx", and for php-fpm "pool NAME" (answered outside the pool) or "own pool NAME" (answered by a worker of the pool).
    pub status: BTreeMap<String, Series<ServerStatus>>,
    /// What it takes to edit the configuration by hand.
    pub files: ServerFiles,
}

/// The files of a server's configuration as they were read. Recordings of older versions have only the text.
#[derive(Debug, Clone, Default)]
pub struct ServerFiles {
    /// Their text; `None` if it was not read or does not parse.
    pub text: Option<Arc<dyn ConfigurationFiles>>,
    /// The base of relative paths, absolute; empty if unknown.
    pub prefix: String,
    /// True if a path names another file for the server than for this program, as in a container. `None` if unknown.
    pub are_elsewhere: Option<bool>,
    /// Why a command with the server's program and files could run what others wrote: the first of them, or of the directories and links on the way, that somebody
    /// except root and the server's user may change, and who; or why that cannot be told. `None` if nobody may, and in recordings of older versions, which
    /// do not tell: their steps stay those that were printed when they were made.
    pub others_write: Option<String>,
    /// The master, where a worker stands for it here because only its workers listen. `None` where the process itself is the master, or where there is none.
    pub master: Option<MasterProcess>,
    /// The main file as the server was given it, where that may be a pattern: of the files of a directory. `None` where it is the first of the files.
    pub main: Option<String>,
    /// Files and patterns that are read behind the main one.
    pub also: Vec<String>,
}

/// A master that is another process than the one whose configuration was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MasterProcess {
    /// Its process id.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// Its parent.
    pub parent: u32,
    /// Its effective user.
    pub uid: u32,
}

impl PartialEq for ServerFiles {
    fn eq(&self, other: &Self) -> bool {
        let text = |files: &Self| files.text.as_ref().map(|text| text.text().to_owned());
        let given = |files: &Self| (files.master, files.main.clone(), files.also.clone());
        let rest = |files: &Self| (files.prefix.clone(), files.are_elsewhere, files.others_write.clone(), given(files));
        text(self) == text(other) && rest(self) == rest(other)
    }
}

impl Observation {
    /// The worker that stands for this master, and what was read of it. `None` if none does.
    pub fn standing_for(&self, master: u32) -> Option<(u32, &ServerView)> {
        let stands = |view: &ServerView| view.files.master.is_some_and(|own| own.pid == master);
        self.servers.iter().find(|(_, view)| stands(view)).map(|(worker, view)| (*worker, view))
    }
}

/// A setting and its value.
pub type SettingValue<'a> = (&'a ServerSetting, &'a str);

/// Configuration files that can be edited in memory. The model knows no server's syntax: the reader of the files brings it.
pub trait ConfigurationFiles: fmt::Debug + Send + Sync {
    /// The server.
    fn server(&self) -> ServerKind;

    /// All files in one text.
    fn text(&self) -> &str;

    /// The value of a setting once the server has read the files; `None` if they have no place for it.
    fn value(&self, setting: &ServerSetting) -> Option<String>;

    /// The edits that give these settings these values, one for each file, in files in which the settings of `before` have theirs already.
    ///
    /// # Errors
    /// Why the edits cannot be made or shown.
    fn edited(&self, before: &[SettingValue<'_>], settings: &[SettingValue<'_>]) -> Result<Vec<FileEdit>, String>;

    /// The number of files that change if these settings get these values one after the other; it may be more than can be shown.
    ///
    /// # Errors
    /// Why the edits cannot be made.
    fn changed(&self, settings: &[SettingValue<'_>]) -> Result<usize, String>;
}

/// The edit of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// The file, links resolved.
    pub path: String,
    /// The change as patch(1) reads it: a unified diff without lines of context, in the bytes of the file.
    pub diff: Vec<u8>,
}

/// Position of a setting.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// File, as the server names it; empty for a default.
    pub file: String,
    /// Line, from 1; 0 for a default, and for what has no lines.
    pub line: u32,
}

impl fmt::Display for Origin {
    /// "FILE:LINE", the name alone of what has no lines, or "default".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => f.write_str("default"),
            (file, 0) => f.write_str(file),
            (file, line) => write!(f, "{file}:{line}"),
        }
    }
}

/// A setting with its position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setting<T> {
    /// The configured value.
    pub value: T,
    /// Its position; a default has no file.
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
    /// Any other kind.
    Stated(StatedConfig),
}

impl ServerConfig {
    /// The addresses that the requests asked for may be passed to. `None` if that does not follow from it.
    pub fn leads_to(&self) -> Option<&[ListenerAddress]> {
        match self {
            Self::Nginx(nginx) => nginx.leads_to.as_deref(),
            Self::PhpFpm(_) => None,
            Self::Stated(stated) => stated.leads_to.as_deref(),
        }
    }

    /// The known addresses that it passes any requests to.
    pub fn passes_to(&self) -> Vec<&ListenerAddress> {
        match self {
            Self::Nginx(nginx) => nginx.passes.iter().flat_map(|pass| &pass.servers).collect(),
            Self::PhpFpm(_) => Vec::new(),
            Self::Stated(stated) => stated.passes.iter().filter_map(|pass| pass.address.as_ref()).collect(),
        }
    }

    /// The known addresses that it passes the same requests to, one or another: a list for each set of servers, without those in reserve.
    pub fn alternatives(&self) -> Vec<Vec<&ListenerAddress>> {
        match self {
            Self::Nginx(nginx) => {
                nginx.passes.iter().map(|pass| pass.servers.iter().filter(|server| !pass.backups.contains(server)).collect()).collect()
            }
            Self::PhpFpm(_) => Vec::new(),
            Self::Stated(stated) => stated.alternatives(),
        }
    }

    /// The main file.
    pub fn file(&self) -> &str {
        match self {
            Self::Nginx(nginx) => &nginx.file,
            Self::PhpFpm(php_fpm) => &php_fpm.file,
            Self::Stated(stated) => &stated.file,
        }
    }
}

/// The part of an nginx configuration that affects throughput.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NginxConfig {
    /// The version (1.22.1), if known.
    pub version: Option<(u16, u16, u16)>,
    /// The main file.
    pub file: String,
    /// All files, the main one first, with the time of the last change (seconds since 1970).
    pub files: Vec<(String, i64)>,
    /// The user of its workers (`user`), if set.
    pub user: Option<String>,
    /// Number of workers; `auto` is replaced by the number of cores.
    pub worker_processes: Setting<u32>,
    /// Connections of one worker at a time, including those to upstreams.
    pub worker_connections: Setting<u32>,
    /// Limit of open files of one worker, if set.
    pub worker_rlimit_nofile: Option<Setting<u64>>,
    /// Addresses it listens on.
    pub listens: Vec<NginxListen>,
    /// Directives that pass requests on.
    pub passes: Vec<NginxPass>,
    /// The addresses that the requests asked for may be passed to, by any way. `None` if that does not follow from the configuration.
    pub leads_to: Option<Vec<ListenerAddress>>,
    /// True if the listener of these requests passes on no others: each of its ways is one of theirs.
    pub shares_no_listener: bool,
    /// Rate and connection limits, wherever they apply.
    pub limits: Vec<NginxLimit>,
    /// What it requests from the servers behind it for the diagnosed request, most likely first; one entry for each upstream or address.
    pub asks: Vec<NginxAsks>,
    /// What it serves itself for the same host, files first.
    pub own: Vec<NginxOwn>,
    /// Logs that record each step of the diagnosed request.
    pub debug_logs: Vec<NginxDebugLog>,
    /// True if each step of some clients is logged regardless of log levels (`debug_connection`).
    pub debug_connections: bool,
    /// Position of `rewrite_log on`, if it applies to that request and its lines are logged.
    pub rewrite_log: Option<Origin>,
    /// How clients may resume TLS sessions. `None` without TLS or if unknown.
    pub tls_sessions: Option<NginxTlsSessions>,
    /// The level at which responses to the diagnosed request are compressed (`gzip_comp_level`), if it is set and they may be.
    pub gzip_level: Option<Setting<u32>>,
}

/// A log that records each step of a request (`error_log FILE debug`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NginxDebugLog {
    /// Its destination, as written: a file, "stderr", "syslog:...", "memory:32m".
    pub to: String,
    /// The levels of each `error_log` with this destination: "debug", "debug_http debug_event, warn".
    pub levels: String,
    /// The same with the directives that apply to this request set to log errors only.
    pub quiet: String,
    /// True if the lines stay in memory, as nginx's manual advises for a server under load.
    pub is_memory: bool,
    /// Position of the directive.
    pub origin: Origin,
}

/// How TLS sessions may be resumed (ngx_http_ssl_module).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NginxTlsSessions {
    /// `ssl_session_tickets`: with tickets the clients store the sessions.
    pub tickets: Setting<bool>,
    /// `ssl_session_cache` as written; the default "none" stores nothing, as "off" does.
    pub cache: Setting<String>,
    /// True if some clients send certificates (`ssl_verify_client`), which a resumed session does not check again.
    pub verifies_clients: bool,
    /// True if key exchange uses the fast curves that OpenSSL prefers: `ssl_ecdh_curve` names no others.
    pub has_quick_curves: bool,
}

impl NginxTlsSessions {
    /// True if a client that offers a session may resume it.
    pub fn are_resumed(&self) -> bool {
        self.tickets.value || !matches!(self.cache.value.as_str(), "none" | "off")
    }

    /// True if no session is resumed by omission: tickets are off, and the session cache has its default, which stores none.
    pub fn refuses_unasked(&self) -> bool {
        !self.are_resumed() && !self.verifies_clients && self.cache.origin.file.is_empty()
    }
}

/// One `listen` of nginx.
#[derive(Debug, Clone, PartialEq)]
pub struct NginxListen {
    /// Address; `*:80` is `0.0.0.0:80`.
    pub address: ListenerAddress,
    /// `backlog=`. `None` means nginx's default of 511 (Linux).
    pub backlog: Option<u32>,
    /// `reuseport`.
    pub reuseport: bool,
    /// Position of the directive.
    pub origin: Origin,
}

/// One `fastcgi_pass`, `proxy_pass` or the like.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NginxPass {
    /// "fastcgi", "proxy", "uwsgi", "scgi", "grpc".
    pub kind: String,
    /// Name of the upstream block, if it passes to one.
    pub upstream: Option<String>,
    /// Literal addresses of the servers behind it.
    pub servers: Vec<ListenerAddress>,
    /// Those of them that get requests only while the others do not answer (`backup`).
    pub backups: Vec<ListenerAddress>,
    /// `keepalive` of the upstream block: idle connections that one worker keeps.
    pub keepalive: Option<u32>,
    /// `keepalive_requests` of the upstream block.
    pub keepalive_requests: Option<u64>,
    /// True if all settings for connection reuse are made: `fastcgi_keep_conn on`, or HTTP/1.1 with an empty Connection header.
    pub reuses: bool,
    /// Position of the directive.
    pub origin: Origin,
}

/// A request as nginx passes it on: what a load must send to bypass nginx.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NginxAsks {
    /// The directive that passes it on.
    pub pass: NginxPass,
    /// TLS to the server behind it.
    pub tls: bool,
    /// FastCGI: the script file. HTTP: the request target with the query. Empty for other protocols and if unknown.
    pub path_and_query: String,
    /// HTTP: the Host header.
    pub host: String,
    /// FastCGI parameters or HTTP header fields. HTTP fields without a value are not sent.
    pub fields: Vec<(String, String)>,
    /// What is unknown, with the position of the directive.
    pub unknown: Option<String>,
}

/// Content that nginx serves without a server behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NginxOwn {
    /// The path to request, or the path prefix of the files.
    pub path: String,
    /// The directory of these files, as the server sees it. `None` if the path itself has a fixed answer.
    pub directory: Option<String>,
    /// Suffixes of the files that are sent unchanged.
    pub endings: Vec<String>,
}

/// A limit that an administrator configured on purpose.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NginxLimit {
    /// "limit_req", "limit_conn" or "limit_rate".
    pub kind: String,
    /// The zone.
    pub zone: String,
    /// `limit_req`: requests a second for each key.
    pub rate_per_s: Option<f64>,
    /// `limit_conn`: connections for each key.
    pub connections: Option<u64>,
    /// `limit_rate`: bytes a second of each response, beyond the first `limit_rate_after` bytes. It has no zone.
    pub bytes_per_s: Option<u64>,
    /// `limit_rate_after`.
    pub bytes_at_once: u64,
    /// `burst=`.
    pub burst: u64,
    /// Requests of the burst that pass at once while the others wait: none by default, `delay=` of them, or all with `nodelay`.
    pub burst_at_once: u64,
    /// The key of the zone: "$binary_remote_addr".
    pub key: String,
    /// Whether the diagnosed request is subject to it, from the configuration alone. `None` if files, conditions or expressions decide.
    pub applies: Option<bool>,
    /// The same for a request that arrives unchanged at one of the server's own addresses, because the requested address was translated on the way: each known
    /// address with its answer. Empty if the request names one of the server's addresses.
    pub applies_at: Vec<(ListenerAddress, bool)>,
    /// The status of a refused request.
    pub status: u16,
    /// Position of the directive.
    pub origin: Origin,
    /// Position of the definition of its zone, with the rate.
    pub zone_origin: Origin,
}

/// The part of a php-fpm configuration that affects throughput.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PhpFpmConfig {
    /// The main file.
    pub file: String,
    /// All files with the time of the last change (seconds since 1970).
    pub files: Vec<(String, i64)>,
    /// Its pid file, if set.
    pub pid_file: Option<String>,
    /// Seconds that children have to finish at a reload. 0, the default, kills requests under way.
    pub process_control_timeout_s: Setting<u64>,
    /// `process.max`, the most workers of all pools together. `None` if there is no such limit.
    pub process_max: Option<Setting<u32>>,
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

/// True for statuses that mean a client was not served: the server's errors, a refusal by a rate limit (RFC 6585), and nginx's 499, a client that gave up waiting. Other
/// 4xx are answers to what the client asked.
pub fn is_unserved(status: u16) -> bool {
    status >= 500 || status == 429 || status == 499
}

/// An access log, counted over the observation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AccessLog {
    /// Number of lines.
    pub lines: u64,
    /// Lines that do not match the format.
    pub misfits: u64,
    /// True if the format has a status. Without it good and failed answers cannot be distinguished.
    pub has_status: bool,
    /// Lines by status.
    pub status: BTreeMap<u16, u64>,
    /// Time from the first byte of a request to the last byte of its answer, microseconds, if the format has it.
    pub request_time_us: Option<Percentiles>,
    /// Time of the upstreams, each attempt counted separately, microseconds, if the format has it.
    pub upstream_time_us: Option<Percentiles>,
    /// Time of a php-fpm worker for one request, microseconds (`%{micro}d`), if the format has it.
    pub duration_us: Option<Percentiles>,
    /// Bytes of answers.
    pub bytes: u64,
    /// The part of the log that was read.
    pub extent: LogExtent,
}

impl AccessLog {
    /// Lines added to the log; an estimate if only its end was read. `None` if unknown.
    pub fn gained(&self) -> Option<f64> {
        Some(self.lines as f64 * self.extent.scale()?)
    }
}

/// How much of a log's growth during the observation was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogExtent {
    /// True if the file was replaced or truncated while it was followed. Lines may be missing.
    pub rotated: bool,
    /// Bytes that were skipped because the log grew faster than it is read. What was read is its end.
    pub skipped_bytes: u64,
    /// Bytes that were read; 0 in recordings without this figure.
    pub read_bytes: u64,
}

impl LogExtent {
    /// True if nothing is missing.
    pub fn is_whole(self) -> bool {
        !self.rotated && self.skipped_bytes == 0
    }

    /// Growth of the log divided by the part that was read. `None` if unknown.
    pub fn scale(self) -> Option<f64> {
        match (self.rotated, self.skipped_bytes, self.read_bytes) {
            (true, ..) => None,
            (_, 0, _) => Some(1.0),
            (.., 0) => None,
            (_, skipped, read) => Some(1.0 + skipped as f64 / read as f64),
        }
    }
}

/// An error log, counted over the observation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ErrorLog {
    /// Lines read, by event.
    pub events: BTreeMap<LogEvent, u64>,
    /// The first line of each event, at most 300 bytes.
    pub samples: BTreeMap<LogEvent, String>,
    /// The part of the log that was read.
    pub extent: LogExtent,
}

impl ErrorLog {
    /// Lines of this event. If only the end of the log was read, this is an estimate that assumes the same frequency before. A server that logs each of tens of
    /// thousands of failures a second writes more than is read.
    pub fn count(&self, event: &LogEvent) -> u64 {
        let read = self.events.get(event).copied().unwrap_or(0);
        (read as f64 * self.extent.scale().unwrap_or(1.0)).round() as u64
    }
}

impl ServerView {
    /// The configuration, if the server is nginx.
    pub fn nginx(&self) -> Option<&NginxConfig> {
        match self.config.last()? {
            ServerConfig::Nginx(nginx) => Some(nginx),
            ServerConfig::PhpFpm(_) | ServerConfig::Stated(_) => None,
        }
    }

    /// The configuration, if the server is of a kind without one of its own.
    pub fn stated(&self) -> Option<&StatedConfig> {
        match self.config.last()? {
            ServerConfig::Stated(stated) => Some(stated),
            ServerConfig::Nginx(_) | ServerConfig::PhpFpm(_) => None,
        }
    }

    /// The configuration, if the server is php-fpm.
    pub fn php_fpm(&self) -> Option<&PhpFpmConfig> {
        match self.config.last()? {
            ServerConfig::PhpFpm(php_fpm) => Some(php_fpm),
            ServerConfig::Nginx(_) | ServerConfig::Stated(_) => None,
        }
    }

    /// What it says of the servers behind it, if it is a proxy that does.
    pub fn proxied(&self) -> Option<&Series<ServerStatus>> {
        self.status.get("servers")
    }

    /// Readings of nginx's status page, if it has one.
    pub fn nginx_status(&self) -> Option<&Series<ServerStatus>> {
        self.status.get("nginx")
    }

    /// Readings of the status page of a php-fpm pool, and whether a worker of that pool answered.
    pub fn pool_status(&self, pool: &str) -> Option<(&Series<ServerStatus>, bool)> {
        let apart = self.status.get(&format!("pool {pool}")).map(|series| (series, false));
        apart.or_else(|| self.status.get(&format!("own pool {pool}")).map(|series| (series, true)))
    }

    /// Lines of this event in all error logs.
    pub fn errors(&self, event: &LogEvent) -> u64 {
        self.error_logs.values().filter_map(|log| log.last()).map(|log| log.count(event)).sum()
    }

    /// True if [`ServerView::errors`] is an estimate: only the end of a log with such lines was read.
    pub fn is_estimated(&self, event: &LogEvent) -> bool {
        let mut logs = self.error_logs.values().filter_map(|log| log.last());
        logs.any(|log| log.events.contains_key(event) && log.extent.scale().is_some_and(|scale| scale > 1.0))
    }

    /// The path of the first log with a line of this event, and that line.
    pub fn error_sample(&self, event: &LogEvent) -> Option<(&str, &str)> {
        self.error_logs.iter().find_map(|(path, log)| Some((path.as_str(), log.last()?.samples.get(event)?.as_str())))
    }
}
