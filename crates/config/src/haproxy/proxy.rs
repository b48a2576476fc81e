//! One proxy of a configuration: a frontend, a backend, or both in one, with what it listens on and its servers.

use std::collections::BTreeMap;

use super::address::{self, Address};
use super::file::Entry;
use super::time::time_ms;
use super::words::Word;
use crate::{Setting, SourceLine, quantity};

/// Settings of a proxy that are read, as their lines begin.
pub(super) const SETTINGS: &[&str] = &[
    "backlog",
    "default_backend",
    "fullconn",
    "maxconn",
    "mode",
    "rate-limit sessions",
    "timeout connect",
    "timeout queue",
    "timeout server",
];
/// Options of `bind` and of `server` with a value that is read, and those without one.
pub(super) const BIND_OPTIONS: &[&str] = &["backlog", "maxconn"];
pub(super) const SERVER_OPTIONS: &[&str] = &["maxconn", "maxqueue", "minconn"];
pub(super) const SERVER_FLAGS: &[&str] = &["backup", "disabled"];
/// Options of `server` that are not read and say nothing of anybody: a recording keeps them, so that a line with them can be shown.
pub(super) const PLAIN_SERVER_OPTIONS: &[&str] = &[
    "error-limit",
    "fall",
    "fastinter",
    "downinter",
    "inter",
    "max-reuse",
    "pool-max-conn",
    "pool-purge-delay",
    "rise",
    "slowstart",
    "weight",
];
/// Those of them that have no value.
pub(super) const PLAIN_SERVER_FLAGS: &[&str] = &[
    "allow-0rtt",
    "check",
    "check-send-proxy",
    "check-ssl",
    "enabled",
    "no-check",
    "non-stick",
    "send-proxy",
    "send-proxy-v2",
    "ssl",
    "tfo",
];
/// Filters that call nobody.
pub(super) const QUIET_FILTERS: &[&str] = &["bwlim-in", "bwlim-out", "cache", "compression", "trace"];
/// With what the name of a script of Lua begins.
pub(super) const SCRIPT: &str = "lua.";
/// Actions of `http-request` that answer a request themselves, and the status of those that state none (manual, "http-request deny", "tarpit" and "return").
const REFUSALS: &[(&str, u16)] = &[("deny", 403), ("tarpit", 500), ("return", 200)];
/// The options that state their status.
pub(super) const REFUSAL_OPTIONS: &[&str] = &["deny_status", "status"];
/// Most servers that one `server-template` makes.
const TEMPLATE_MAX: u64 = 65_536;

/// What a section of a proxy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyKind {
    /// It accepts connections.
    Frontend,
    /// It has servers.
    Backend,
    /// Both.
    Listen,
}

impl ProxyKind {
    /// The word that begins its section.
    pub fn word(self) -> &'static str {
        match self {
            Self::Frontend => "frontend",
            Self::Backend => "backend",
            Self::Listen => "listen",
        }
    }

    pub(super) fn of(word: &str) -> Option<Self> {
        [Self::Frontend, Self::Backend, Self::Listen].into_iter().find(|kind| kind.word() == word)
    }
}

/// Settings by name. `None` is a value that HAProxy's environment decides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Values(BTreeMap<&'static str, (Option<String>, SourceLine)>);

impl Values {
    pub(super) fn set(&mut self, name: &'static str, word: Option<&Word>, place: &SourceLine) {
        let known = word.filter(|word| !word.computed).map(|word| word.text.clone());
        self.0.insert(name, (known, place.clone()));
    }

    pub(super) fn text(&self, name: &str) -> Option<Setting<String>> {
        let (value, place) = self.0.get(name)?;
        value.clone().map(|value| Setting::set(value, place.clone()))
    }

    pub(super) fn number(&self, name: &str) -> Option<Setting<u64>> {
        let setting = self.text(name)?;
        quantity::number(&setting.value).map(|value| setting.map(|_| value))
    }

    fn time_ms(&self, name: &str) -> Option<Setting<u64>> {
        let setting = self.text(name)?;
        time_ms(&setting.value).map(|value| setting.map(|_| value))
    }

    /// Reads those of these options that a line has, from a word on.
    fn options(&mut self, entry: &Entry, from: usize, (valued, flags): (&[&'static str], &[&'static str]), place: &SourceLine) {
        let mut at = from;
        while at < entry.words.len() {
            if let Some(name) = valued.iter().find(|name| **name == entry.word(at)) {
                self.set(name, entry.words.get(at + 1), place);
                at += 1;
            } else if let Some(name) = flags.iter().find(|name| **name == entry.word(at)) {
                self.set(name, entry.words.get(at), place);
            }
            at += 1;
        }
    }

    /// Approximate memory, bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.values().map(|(value, _)| 160 + value.as_ref().map_or(0, String::len)).sum()
    }
}

/// The index of the value of an option that a line has, from a word on. These options take a value; the last one of a name counts.
pub(super) fn option_value(entry: &Entry, from: usize, valued: &[&str], name: &str) -> Option<usize> {
    let (mut found, mut at) = (None, from);
    while at < entry.words.len() {
        if valued.contains(&entry.word(at)) {
            found = if entry.word(at) == name { Some(at + 1) } else { found };
            at += 1;
        }
        at += 1;
    }
    found
}

/// The settings of a `defaults` section, or those that a proxy begins with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Preset {
    pub(super) values: Values,
    pub(super) of_server: Values,
}

/// One `bind`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// Its addresses, as they are written.
    pub written: String,
    /// Its addresses.
    pub addresses: Vec<Address>,
    /// The line.
    pub place: SourceLine,
    options: Values,
}

impl Bind {
    /// `maxconn`: the most connections of each of its sockets.
    pub fn maxconn(&self) -> Option<Setting<u64>> {
        self.options.number("maxconn").filter(|setting| setting.value > 0)
    }

    /// `backlog`.
    pub fn backlog(&self) -> Option<Setting<u64>> {
        self.options.number("backlog").filter(|setting| setting.value > 0)
    }
}

/// One `use_backend` or `default_backend`. Its conditions are not evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// The backend; `None` if each request decides (`%[...]`), so that it may be any.
    pub backend: Option<String>,
    /// The line.
    pub place: SourceLine,
}

/// One rule by which HAProxy answers requests itself. Its conditions are not evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// "http-request deny", "http-request tarpit" or "http-request return".
    pub rule: String,
    /// The status of its answers, 200 to 599. `None` if HAProxy's environment decides.
    pub status: Option<u16>,
    /// The line.
    pub place: SourceLine,
}

impl Refusal {
    fn of(entry: &Entry, place: &SourceLine) -> Option<Self> {
        let (action, usual) = refuses(entry)?;
        let stated = entry.words.iter().position(|word| REFUSAL_OPTIONS.contains(&word.text.as_str()));
        let number = |at: usize| entry.words.get(at + 1).filter(|word| !word.computed)?.text.parse().ok();
        let status = stated.map_or(Some(usual), number).filter(|status| (200..600).contains(status));
        Some(Self { rule: format!("http-request {action}"), status, place: place.clone() })
    }
}

/// The action of a rule that refuses requests, and the status that it has if none is stated.
pub(super) fn refuses(entry: &Entry) -> Option<(&'static str, u16)> {
    REFUSALS.iter().find(|(action, _)| entry.word(0) == "http-request" && entry.word(1) == *action).copied()
}

/// One `server`, or all of a `server-template`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name; of a template the prefix of the names.
    pub name: String,
    /// Where it is.
    pub address: Address,
    /// How many servers the line makes.
    pub count: u32,
    /// The line.
    pub place: SourceLine,
    options: Values,
}

impl Server {
    /// `maxconn`: the most requests (in TCP mode connections) that HAProxy has at the server at a time; more wait. `None` is no limit, or one that is not known.
    pub fn maxconn(&self) -> Option<Setting<u64>> {
        self.options.number("maxconn").filter(|setting| setting.value > 0)
    }

    /// `minconn`: if it is less than `maxconn`, fewer are allowed while the backend has less to do.
    pub fn minconn(&self) -> Option<Setting<u64>> {
        self.options.number("minconn").filter(|setting| setting.value > 0)
    }

    /// `maxqueue`: the most requests that wait for it.
    pub fn maxqueue(&self) -> Option<Setting<u64>> {
        self.options.number("maxqueue").filter(|setting| setting.value > 0)
    }

    /// True if it gets requests only while the others are down.
    pub fn is_backup(&self) -> bool {
        self.options.text("backup").is_some()
    }

    /// True if it is in maintenance from the start.
    pub fn is_disabled(&self) -> bool {
        self.options.text("disabled").is_some()
    }
}

/// A proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ProxyKind,
    /// The line that begins it.
    pub place: SourceLine,
    /// What it listens on.
    pub binds: Vec<Bind>,
    /// The backends that it may use, but for `default_backend`.
    pub uses: Vec<Use>,
    /// Its servers.
    pub servers: Vec<Server>,
    /// The rules by which it answers requests itself.
    pub refusals: Vec<Refusal>,
    /// True if it may call servers that are in no backend that it uses: those of a filter or of Lua.
    pub calls_others: bool,
    preset: Preset,
}

impl Proxy {
    pub(super) fn new(name: String, kind: ProxyKind, place: SourceLine, preset: Preset) -> Self {
        Self {
            name,
            kind,
            place,
            binds: Vec::new(),
            uses: Vec::new(),
            servers: Vec::new(),
            refusals: Vec::new(),
            calls_others: false,
            preset,
        }
    }

    /// True if it accepts connections.
    pub fn is_front(&self) -> bool {
        self.kind != ProxyKind::Backend
    }

    /// True if it has servers.
    pub fn is_back(&self) -> bool {
        self.kind != ProxyKind::Frontend
    }

    /// `maxconn`: the most connections that it accepts. `None` is that of the whole process, or a value that is not known.
    pub fn maxconn(&self) -> Option<Setting<u64>> {
        self.preset.values.number("maxconn").filter(|setting| setting.value > 0 && self.is_front())
    }

    /// `rate-limit sessions`: the most connections that it accepts in a second.
    pub fn sessions_per_s(&self) -> Option<Setting<u64>> {
        self.preset.values.number("rate-limit sessions").filter(|setting| setting.value > 0 && self.is_front())
    }

    /// `backlog`.
    pub fn backlog(&self) -> Option<Setting<u64>> {
        self.preset.values.number("backlog").filter(|setting| setting.value > 0 && self.is_front())
    }

    /// `timeout queue`, milliseconds: how long a request waits for a server before it is answered with 503. It is `timeout connect` unless it is set (manual, section 4.2); `None` is no end.
    pub fn queue_timeout_ms(&self) -> Option<Setting<u64>> {
        let own = |name: &str| self.preset.values.time_ms(name).filter(|time| time.value > 0);
        own("timeout queue").or_else(|| own("timeout connect"))
    }

    /// `timeout connect`, milliseconds.
    pub fn connect_timeout_ms(&self) -> Option<Setting<u64>> {
        self.preset.values.time_ms("timeout connect")
    }

    /// `timeout server`, milliseconds.
    pub fn server_timeout_ms(&self) -> Option<Setting<u64>> {
        self.preset.values.time_ms("timeout server")
    }

    /// True in mode `http`: a limit of a server counts requests, not connections.
    pub fn is_http(&self) -> bool {
        self.preset.values.text("mode").is_some_and(|mode| mode.value == "http")
    }

    /// The number of a limit in force: of the proxy, or of its only line that begins so ("server a", "bind :80").
    pub(super) fn number(&self, line: &str, limit: &str) -> Option<u64> {
        let (kind, name) = line.split_once(' ').unwrap_or((line, ""));
        let of_lines: Vec<&Values> = match kind {
            "" => vec![&self.preset.values],
            "server" => self.servers.iter().filter(|server| server.name == name).map(|server| &server.options).collect(),
            _ => self.binds.iter().filter(|bind| bind.written == name).map(|bind| &bind.options).collect(),
        };
        let [values] = of_lines[..] else { return None };
        values.number(limit).map(|setting| setting.value)
    }

    /// Every backend that it may use; a `None` among them means any.
    pub fn backends(&self) -> Vec<Use> {
        let default = self.preset.values.0.get("default_backend");
        let named = |backend: &Option<String>| backend.clone().filter(|name| !name.contains('%'));
        let default = default.map(|(backend, place)| Use { backend: named(backend), place: place.clone() });
        self.uses.iter().cloned().chain(default.filter(|_| self.is_front())).collect()
    }

    /// Takes a line of its section.
    pub(super) fn take(&mut self, entry: &Entry, place: &SourceLine) {
        match entry.word(0) {
            "bind" => {
                let word = entry.words.get(1).filter(|word| !word.computed);
                let addresses = word.map_or_else(|| vec![Address::Unknown], |word| address::listens(&word.text));
                let mut options = Values::default();
                options.options(entry, 2, (BIND_OPTIONS, &[]), place);
                let written = entry.word(1).to_owned();
                self.binds.push(Bind { written, addresses, place: place.clone(), options });
            }
            "use_backend" => {
                let known = entry.words.get(1).filter(|word| !word.computed && !word.text.contains('%'));
                self.uses.push(Use { backend: known.map(|word| word.text.clone()), place: place.clone() });
            }
            "server" => self.add_server(entry, (entry.word(1), 1, 2), place),
            "server-template" => {
                let many = entry.word(2);
                let number = |text: &str| quantity::number(text).filter(|number| *number <= TEMPLATE_MAX);
                let range = || number(many.split_once('-')?.1)?.checked_sub(number(many.split_once('-')?.0)?).map(|last| last + 1);
                let count = number(many).or_else(range).unwrap_or(1);
                self.add_server(entry, (entry.word(1), u32::try_from(count).unwrap_or(1), 3), place);
            }
            // Both can call a backend or an address of their own choice.
            "filter" => self.calls_others |= !QUIET_FILTERS.contains(&entry.word(1)),
            _ if runs_script(entry) => self.calls_others = true,
            _ if refuses(entry).is_some() => self.refusals.extend(Refusal::of(entry, place)),
            _ => self.preset.take(entry, place),
        }
    }

    fn add_server(&mut self, entry: &Entry, (name, count, at): (&str, u32, usize), place: &SourceLine) {
        let word = entry.words.get(at).filter(|word| !word.computed);
        let address = word.map_or(Address::Unknown, |word| address::parse(&word.text));
        let mut options = self.preset.of_server.clone();
        options.options(entry, at + 1, (SERVER_OPTIONS, SERVER_FLAGS), place);
        self.servers.push(Server { name: name.to_owned(), address, count, place: place.clone(), options });
    }
}

/// True for a line that runs a script of Lua.
pub(super) fn runs_script(entry: &Entry) -> bool {
    matches!(entry.word(0), "http-request" | "http-response" | "tcp-request" | "tcp-response")
        && entry.words.iter().any(|word| word.text.starts_with(SCRIPT))
}

impl Preset {
    /// Takes a line that sets one of the settings.
    pub(super) fn take(&mut self, entry: &Entry, place: &SourceLine) {
        if entry.word(0) == "default-server" {
            self.of_server.options(entry, 1, (SERVER_OPTIONS, SERVER_FLAGS), place);
        }
        for name in SETTINGS {
            let length = name.split(' ').count();
            if entry.begins_with(name) {
                self.values.set(name, entry.words.get(length), place);
            }
        }
    }
}
