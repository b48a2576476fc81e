//! The values in force for php-fpm as a whole and for each pool, and the errors that php-fpm itself would report.

use std::collections::BTreeMap;

use super::file::Kind;
use super::listen::{Listen, parse_listen};
use super::tree::Tree;
use crate::{Setting, SourceLine, quantity};

/// PHP's version, major and minor, which decides some defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u16, pub u16);

impl Version {
    /// The assumed version if none is known: Debian 12's.
    pub const FALLBACK: Self = Self(8, 2);
}

/// Something that php-fpm would refuse, or that this reader cannot know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line; `None` for something that is missing.
    pub place: Option<SourceLine>,
    /// The problem.
    pub text: String,
}

/// How a pool manages its workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// Always `pm.max_children`.
    Static,
    /// Between the spare limits.
    Dynamic,
    /// On demand, as requests come.
    Ondemand,
}

/// How a key's value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Number,
    Seconds,
    Flag,
}

/// Keys of `[global]`: form and default ("" if there is none).
const GLOBAL: &[(&str, Form, &str)] = &[
    ("daemonize", Form::Flag, "1"),
    ("emergency_restart_interval", Form::Seconds, "0"),
    ("emergency_restart_threshold", Form::Number, "0"),
    ("error_log", Form::Text, ""),
    ("events.mechanism", Form::Text, ""),
    ("log_buffering", Form::Flag, "1"),
    ("log_level", Form::Text, "notice"),
    ("log_limit", Form::Number, "1024"),
    ("pid", Form::Text, ""),
    ("process.max", Form::Number, "0"),
    ("process.priority", Form::Number, ""),
    ("process_control_timeout", Form::Seconds, "0"),
    ("rlimit_core", Form::Text, ""),
    ("rlimit_files", Form::Number, ""),
    ("syslog.facility", Form::Text, "daemon"),
    ("syslog.ident", Form::Text, "php-fpm"),
    ("systemd_interval", Form::Seconds, "10"),
];

/// Keys of a pool: form and default.
const POOL: &[(&str, Form, &str)] = &[
    ("access.format", Form::Text, "%R - %u %t \"%m %r\" %s"),
    ("access.log", Form::Text, ""),
    ("apparmor_hat", Form::Text, ""),
    ("catch_workers_output", Form::Flag, ""),
    ("chdir", Form::Text, ""),
    ("chroot", Form::Text, ""),
    ("clear_env", Form::Flag, "1"),
    ("decorate_workers_output", Form::Flag, "1"),
    ("group", Form::Text, ""),
    ("listen", Form::Text, ""),
    ("listen.acl_groups", Form::Text, ""),
    ("listen.acl_users", Form::Text, ""),
    ("listen.allowed_clients", Form::Text, ""),
    ("listen.backlog", Form::Number, ""),
    ("listen.group", Form::Text, ""),
    ("listen.mode", Form::Text, ""),
    ("listen.owner", Form::Text, ""),
    ("listen.setfib", Form::Number, ""),
    ("ping.path", Form::Text, ""),
    ("ping.response", Form::Text, "pong"),
    ("pm", Form::Text, ""),
    ("pm.max_children", Form::Number, "0"),
    ("pm.max_requests", Form::Number, "0"),
    ("pm.max_spare_servers", Form::Number, "0"),
    ("pm.max_spawn_rate", Form::Number, "32"),
    ("pm.min_spare_servers", Form::Number, "0"),
    ("pm.process_idle_timeout", Form::Seconds, "10"),
    ("pm.start_servers", Form::Number, "0"),
    ("pm.status_listen", Form::Text, ""),
    ("pm.status_path", Form::Text, ""),
    ("prefix", Form::Text, ""),
    ("process.dumpable", Form::Flag, ""),
    ("process.priority", Form::Number, ""),
    ("request_cpu_tracking", Form::Flag, ""),
    ("request_slowlog_timeout", Form::Seconds, "0"),
    ("request_slowlog_trace_depth", Form::Number, "20"),
    ("request_terminate_timeout", Form::Seconds, "0"),
    ("request_terminate_timeout_track_finished", Form::Flag, ""),
    ("rlimit_core", Form::Text, ""),
    ("rlimit_files", Form::Number, ""),
    ("security.limit_extensions", Form::Text, ".php .phar"),
    ("slowlog", Form::Text, ""),
    ("user", Form::Text, ""),
];
/// Keys with an index in brackets.
const ARRAYS: &[&str] = &["access.suppress_path", "env", "php_admin_flag", "php_admin_value", "php_flag", "php_value"];

/// True if php-fpm knows the key, in any case.
pub(super) fn is_known(key: &str) -> bool {
    let is = |known: &str| known.eq_ignore_ascii_case(key);
    key == "include" || GLOBAL.iter().chain(POOL).any(|(known, ..)| is(known)) || ARRAYS.iter().any(|known| is(known))
}

/// The values of one section.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Values {
    /// By key in lower case; the last line of a key wins.
    set: BTreeMap<String, Setting<String>>,
}

impl Values {
    fn get(&self, table: &[(&str, Form, &str)], key: &str) -> Option<Setting<String>> {
        let default = || {
            let (.., default) = table.iter().find(|(known, ..)| *known == key)?;
            (!default.is_empty()).then(|| Setting::default_of((*default).to_owned()))
        };
        self.set.get(key).cloned().or_else(default)
    }

    fn number(&self, table: &[(&str, Form, &str)], key: &str) -> Option<Setting<i64>> {
        let setting = self.get(table, key)?;
        integer(&setting.value).map(|value| setting.map(|_| value))
    }

    fn seconds(&self, table: &[(&str, Form, &str)], key: &str) -> Option<Setting<i64>> {
        let setting = self.get(table, key)?;
        seconds(&setting.value).map(|value| setting.map(|_| value))
    }

    fn flag(&self, table: &[(&str, Form, &str)], key: &str) -> Setting<bool> {
        self.get(table, key).map_or(Setting::default_of(false), |setting| setting.map(|value| flag(&value) == Some(true)))
    }
}

/// `[global]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Global {
    values: Values,
}

impl Global {
    /// The value of a key, as text, with its default; `None` if there is neither.
    pub fn text(&self, key: &str) -> Option<Setting<String>> {
        self.values.get(GLOBAL, key)
    }

    /// A number.
    pub fn number(&self, key: &str) -> Option<Setting<i64>> {
        self.values.number(GLOBAL, key)
    }

    /// A time in seconds. `process_control_timeout` is how long a reload waits for requests in flight; 0 means it does not wait.
    pub fn seconds(&self, key: &str) -> Option<Setting<i64>> {
        self.values.seconds(GLOBAL, key)
    }

    /// `error_log`; `None` means php-fpm's built-in one. "syslog" is the system log.
    pub fn error_log(&self) -> Option<Setting<String>> {
        self.text("error_log")
    }

    /// `log_level`: pool warnings are written unless it is "error" or "alert".
    pub fn log_level(&self) -> Setting<String> {
        self.text("log_level").unwrap_or(Setting::default_of("notice".to_owned())).map(|level| level.to_ascii_lowercase())
    }
}

/// One pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// The line that opens it first.
    pub place: SourceLine,
    /// `env`, `php_value`, `php_admin_value`, `php_flag`, `php_admin_flag`, `access.suppress_path`: key, index, value; the last line of an index
    /// wins.
    pub arrays: Vec<(String, String, Setting<String>)>,
    values: Values,
    version: Version,
}

impl Pool {
    /// The value of a key, as text, with its default; `None` if there is neither.
    pub fn text(&self, key: &str) -> Option<Setting<String>> {
        self.values.get(POOL, key)
    }

    /// A number.
    pub fn number(&self, key: &str) -> Option<Setting<i64>> {
        self.values.number(POOL, key)
    }

    /// A time in seconds; 0 is "off" for the request timeouts.
    pub fn seconds(&self, key: &str) -> Option<Setting<i64>> {
        self.values.seconds(POOL, key)
    }

    /// A boolean.
    pub fn flag(&self, key: &str) -> Setting<bool> {
        self.values.flag(POOL, key)
    }

    /// The address it listens on.
    pub fn listen(&self) -> Option<Setting<Listen>> {
        let setting = self.text("listen")?;
        parse_listen(&setting.value).map(|listen| setting.map(|_| listen))
    }

    /// The address of its status page that needs no worker of the pool (`pm.status_listen`).
    pub fn status_listen(&self) -> Option<Setting<Listen>> {
        let setting = self.text("pm.status_listen")?;
        parse_listen(&setting.value).map(|listen| setting.map(|_| listen))
    }

    /// The backlog of its listen(). The default is -1 on Linux since PHP 8.2 and 511 before; a negative value means net.core.somaxconn.
    pub fn backlog(&self) -> Setting<i64> {
        let default = if self.version >= Version(8, 2) { -1 } else { 511 };
        self.number("listen.backlog").unwrap_or(Setting::default_of(default))
    }

    /// `pm`.
    pub fn manager(&self) -> Option<Setting<Manager>> {
        let setting = self.text("pm")?;
        let manager = match setting.value.to_ascii_lowercase().as_str() {
            "static" => Manager::Static,
            "dynamic" => Manager::Dynamic,
            "ondemand" => Manager::Ondemand,
            _ => return None,
        };
        Some(setting.map(|_| manager))
    }

    /// `pm.max_children`: the most requests that the pool processes at the same time.
    pub fn max_children(&self) -> Option<Setting<i64>> {
        self.number("pm.max_children")
    }

    /// `pm.start_servers`; by default half of the sum of the spare limits for a dynamic pool.
    pub fn start_servers(&self) -> Option<Setting<i64>> {
        let set = self.number("pm.start_servers").filter(|setting| setting.value > 0);
        let spare = || Some(self.number("pm.min_spare_servers")?.value + self.number("pm.max_spare_servers")?.value);
        set.or_else(|| spare().map(|sum| Setting::default_of(sum / 2)))
    }

    /// `access.log`; `None` if requests are not logged.
    pub fn access_log(&self) -> Option<Setting<String>> {
        self.text("access.log").filter(|path| !path.value.is_empty())
    }
}

/// A whole configuration in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fpm {
    /// `[global]`.
    pub global: Global,
    /// The pools, in the order of their first line.
    pub pools: Vec<Pool>,
    /// Errors that php-fpm would report, and values that are unknown here.
    pub problems: Vec<Problem>,
}

impl Fpm {
    /// The configuration in force with a version's defaults.
    pub fn of(tree: &Tree, version: Version) -> Self {
        let mut fpm = Self { global: Global::default(), pools: Vec::new(), problems: Vec::new() };
        // The section continues after an included file, as in php-fpm.
        let mut section: Option<usize> = None;
        for &node in tree.order() {
            let place = tree.place(node);
            match &tree.entry(node).kind {
                Kind::Section(name) => section = fpm.open(name, place, version),
                Kind::Set { key, index, value, computed, .. } => {
                    if *computed {
                        let text = format!("the value of \"{key}\" depends on php-fpm's environment or on operators: \"{value}\"");
                        fpm.problems.push(Problem { place: Some(place), text });
                    } else if let Err(text) = fpm.set(section, key, index.as_deref(), value, &place) {
                        fpm.problems.push(Problem { place: Some(place), text });
                    }
                }
            }
        }
        if fpm.pools.is_empty() {
            fpm.problems.push(Problem { place: None, text: "no pool is defined".to_owned() });
        }
        for pool in &fpm.pools {
            let texts = pool_problems(pool);
            fpm.problems.extend(texts.into_iter().map(|(place, text)| Problem { place, text: format!("[pool {}] {text}", pool.name) }));
        }
        fpm
    }

    /// The pool of that name, in any case.
    pub fn pool(&self, name: &str) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.name.eq_ignore_ascii_case(name))
    }

    /// The pool that listens on an address. A pool on a bare port listens on every address.
    pub fn pool_on(&self, address: &Listen) -> Option<&Pool> {
        let takes = |own: &Listen| match (own, address) {
            (Listen::Port(own), Listen::Ip(_, port) | Listen::Name(_, port)) => own == port,
            (Listen::Ip(ip, own), Listen::Ip(_, port)) if ip.is_unspecified() => own == port,
            _ => own == address,
        };
        self.pools.iter().find(|pool| pool.listen().is_some_and(|listen| takes(&listen.value)))
    }

    fn open(&mut self, name: &str, place: SourceLine, version: Version) -> Option<usize> {
        if name.eq_ignore_ascii_case("global") {
            return None;
        }
        let known = self.pools.iter().position(|pool| pool.name.eq_ignore_ascii_case(name));
        known.or_else(|| {
            self.pools.push(Pool { name: name.to_owned(), place, arrays: Vec::new(), values: Values::default(), version });
            Some(self.pools.len() - 1)
        })
    }

    fn set(&mut self, section: Option<usize>, key: &str, index: Option<&str>, value: &str, place: &SourceLine) -> Result<(), String> {
        let lower = key.to_ascii_lowercase();
        let Some(pool) = section.map(|section| &mut self.pools[section]) else {
            if index.is_some() {
                return Err("arrays are not allowed in the global section".to_owned());
            }
            let form = form(GLOBAL, &lower).ok_or_else(|| format!("unknown entry '{key}'"))?;
            check(form, &lower, value)?;
            self.global.values.set.insert(lower, Setting::set(value.to_owned(), place.clone()));
            return Ok(());
        };
        let value = value.replace("$pool", &pool.name);
        if let Some(index) = index {
            if !ARRAYS.contains(&key) {
                return Err(format!("unknown directive '{key}'"));
            }
            if index.is_empty() != (key == "access.suppress_path") {
                return Err(format!("the brackets of '{key}' lack a key, or must not have one"));
            }
            pool.arrays.retain(|(known, known_index, _)| index.is_empty() || known != key || known_index != index);
            pool.arrays.push((key.to_owned(), index.to_owned(), Setting::set(value, place.clone())));
            return Ok(());
        }
        let form = form(POOL, &lower).ok_or_else(|| format!("unknown entry '{key}'"))?;
        check(form, &lower, &value)?;
        pool.values.set.insert(lower, Setting::set(value, place.clone()));
        Ok(())
    }
}

fn form(table: &[(&str, Form, &str)], key: &str) -> Option<Form> {
    table.iter().find(|(known, ..)| *known == key).map(|(_, form, _)| *form)
}

fn check(form: Form, key: &str, value: &str) -> Result<(), String> {
    let fits = match form {
        Form::Text => key != "pm" || ["static", "dynamic", "ondemand"].iter().any(|known| known.eq_ignore_ascii_case(value)),
        Form::Number => integer(value).is_some(),
        Form::Seconds => seconds(value).is_some(),
        Form::Flag => flag(value).is_some(),
    };
    if fits { Ok(()) } else { Err(format!("unable to parse value for entry '{key}': \"{value}\"")) }
}

/// A number as php-fpm reads it: digits with an optional minus. Empty is 0, and a value beyond 32 bits wraps.
fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let wide = if digits.is_empty() { 0 } else { digits.parse::<i64>().unwrap_or(i64::MAX) };
    Some(i64::from(if text.starts_with('-') { wide.wrapping_neg() } else { wide } as i32))
}

/// A time: a number with `s`, `m`, `h` or `d`. Text between the number and its unit is ignored, so `5ms` is five seconds.
fn seconds(text: &str) -> Option<i64> {
    let unit = match text.as_bytes().last()? {
        b'0'..=b'9' | b's' => 1,
        b'm' => 60,
        b'h' => 3_600,
        b'd' => 86_400,
        _ => return None,
    };
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    Some(quantity::number(&text[..digits]).unwrap_or(0).min(u64::from(u32::MAX)) as i64 * unit)
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "1" | "yes" | "true" | "on" => Some(true),
        "" | "0" | "no" | "none" | "false" | "off" => Some(false),
        _ => None,
    }
}

/// Errors that php-fpm reports after it has read all lines (fpm_conf_process_all_pools).
fn pool_problems(pool: &Pool) -> Vec<(Option<SourceLine>, String)> {
    let mut found = Vec::new();
    let place = |key: &str| pool.values.set.get(key).and_then(|setting| setting.origin.place().cloned()).or(Some(pool.place.clone()));
    let value = |key: &str| pool.number(key).map_or(0, |setting| setting.value);
    if pool.text("listen").is_none_or(|listen| listen.value.is_empty()) {
        found.push((place("listen"), "no listen address has been defined".to_owned()));
    } else if pool.listen().is_none() {
        found.push((place("listen"), "the listen address is not valid".to_owned()));
    }
    if !pool.values.set.contains_key("pm") {
        found.push((place("pm"), "the process manager is missing (static, dynamic or ondemand)".to_owned()));
    }
    let children = value("pm.max_children");
    if children < 1 {
        found.push((place("pm.max_children"), "pm.max_children must be a positive value".to_owned()));
    }
    if pool.manager().is_some_and(|manager| manager.value == Manager::Dynamic) {
        let (min, max) = (value("pm.min_spare_servers"), value("pm.max_spare_servers"));
        for (key, spare) in [("pm.min_spare_servers", min), ("pm.max_spare_servers", max)] {
            if spare < 1 {
                found.push((place(key), format!("{key} must be a positive value")));
            } else if spare > children {
                found.push((place(key), format!("{key} ({spare}) cannot be greater than pm.max_children ({children})")));
            }
        }
        if max < min {
            found.push((place("pm.max_spare_servers"), "pm.max_spare_servers must not be less than pm.min_spare_servers".to_owned()));
        }
        let start = value("pm.start_servers");
        if start > 0 && (start < min || start > max) {
            found
                .push((place("pm.start_servers"), format!("pm.start_servers ({start}) must lie within the spare limits ({min} to {max})")));
        }
    }
    found
}
