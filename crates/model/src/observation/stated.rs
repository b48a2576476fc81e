//! What the configuration of a server states, in words that hold for any kind: where it listens, where it passes requests to, and its limits.

use std::collections::BTreeMap;

use super::{ListenerAddress, Origin, Setting};
use crate::fix::change::ServerSetting;

/// The configuration of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatedConfig {
    /// The main file.
    pub file: String,
    /// All files, the main one first, with the time of the last change (seconds since 1970).
    pub files: Vec<(String, i64)>,
    /// Its threads, if set.
    pub threads: Option<Setting<u64>>,
    /// Addresses it listens on.
    pub listens: Vec<StatedListen>,
    /// The servers that it passes requests to.
    pub passes: Vec<StatedPass>,
    /// The addresses that the requests asked for may be passed to, by any way. `None` if that does not follow from the configuration.
    pub leads_to: Option<Vec<ListenerAddress>>,
    /// Its limits.
    pub limits: Vec<StatedLimit>,
    /// The rules by which it refuses requests.
    pub refusals: Vec<StatedRefusal>,
}

impl StatedConfig {
    /// The known addresses of each set of servers that it passes the same requests to, one or another, without those in reserve.
    pub fn alternatives(&self) -> Vec<Vec<&ListenerAddress>> {
        let mut sets: BTreeMap<&str, Vec<&ListenerAddress>> = BTreeMap::new();
        for pass in self.passes.iter().filter(|pass| !pass.is_backup) {
            let set = pass.to.rsplit_once('/').map_or(pass.to.as_str(), |(set, _)| set);
            sets.entry(set).or_default().extend(&pass.address);
        }
        sets.into_values().collect()
    }
}

/// An address that a server listens on.
#[derive(Debug, Clone, PartialEq)]
pub struct StatedListen {
    /// The address.
    pub address: ListenerAddress,
    /// The part of the configuration that it belongs to: "frontend www".
    pub of: String,
    /// The backlog, if set.
    pub backlog: Option<Setting<u64>>,
    /// Position of the directive.
    pub origin: Origin,
}

/// A server behind a server.
#[derive(Debug, Clone, PartialEq)]
pub struct StatedPass {
    /// What the server in front calls it: "app/a".
    pub to: String,
    /// Its address; `None` if it is not known, as that of a name.
    pub address: Option<ListenerAddress>,
    /// True if the requests asked for may be passed there. `None` if that does not follow from the configuration.
    pub is_asked: Option<bool>,
    /// True if it gets requests only while the others do not answer.
    pub is_backup: bool,
    /// Position of the server's directive.
    pub origin: Origin,
}

/// A rule by which a server answers some requests itself. Which ones is not evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedRefusal {
    /// The rule, as the manual spells it: "http-request deny".
    pub rule: String,
    /// The status of its answers.
    pub status: u16,
    /// False if the requests asked for do not come under it. `None` if that does not follow from the configuration.
    pub is_asked: Option<bool>,
    /// Position of the directive.
    pub origin: Origin,
}

/// What a limit holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitScope {
    /// One server behind this one.
    Upstream,
    /// The connections of some listeners.
    Listener,
    /// The whole server.
    Server,
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitOf {
    /// Requests under way at a time.
    Requests,
    /// Connections at a time.
    Connections,
    /// New connections in a second.
    ConnectionRate,
}

/// A limit.
#[derive(Debug, Clone, PartialEq)]
pub struct StatedLimit {
    /// What it holds for.
    pub scope: LimitScope,
    /// What it counts.
    pub of: LimitOf,
    /// The value.
    pub value: u64,
    /// A lower value that may be in force while there is less to do. `None` if there is none.
    pub least: Option<u64>,
    /// Those of them that not every client gets: for superusers.
    pub kept: u64,
    /// True if what exceeds it is refused at once; it waits otherwise.
    pub is_refused: bool,
    /// True if another value comes into force with a restart only.
    pub needs_restart: bool,
    /// Its name, as the manual spells it: "maxconn".
    pub setting: String,
    /// What it belongs to, as the server itself names it: "app/a" for a server behind, "www" for a listener, "" for the server itself.
    pub owner: String,
    /// The beginning of a line that sets it, for people; the value follows: "server a 127.0.0.1:8081 ... maxconn".
    pub line: String,
    /// The addresses: of the server behind, or of the listeners. Empty if they are not known, and for the whole server.
    pub at: Vec<ListenerAddress>,
    /// False if the requests asked for do not come under it. `None` if that does not follow from the configuration.
    pub is_asked: Option<bool>,
    /// Milliseconds after which what waits is refused, if it is. `None` if it waits without an end.
    pub gives_up_ms: Option<Setting<u64>>,
    /// The status of such an answer.
    pub gives_up_status: Option<u16>,
    /// The setting by which it is changed in the server's files. `None` if that cannot be done here.
    pub change: Option<ServerSetting>,
    /// Position of the directive.
    pub origin: Origin,
}

impl StatedLimit {
    /// How much of it every client may have.
    #[must_use]
    pub fn allowed(&self) -> u64 {
        self.value.saturating_sub(self.kept)
    }
}
