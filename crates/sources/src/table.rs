//! What a source is: one thing that is read from the host, with a thin reader and a pure parser.

use std::collections::BTreeMap;
use std::sync::Mutex;

use chokepoint_model::observation::Observation;
use chokepoint_recording::{Entry, Outcome, Scope};

use crate::netlink::Sockets;
use crate::netns::NetnsRef;
use crate::observer::under_way::UnderWay;
use crate::root::Root;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What one read gave: items by name, each with what came of it. A source that reads one thing names its item with the empty text.
pub type Items = Vec<(String, Outcome)>;

/// The items of a source that reads one thing.
pub(crate) fn only_item(outcome: Outcome) -> Items {
    vec![(String::new(), outcome)]
}

/// What a source is read of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeKind {
    /// Once for the whole host.
    Host,
    /// Once in each network namespace that matters, by a thread that has entered it.
    Netns,
    /// Once for each process on the request's path.
    Process,
    /// Once for each master of a server of a known kind on the path, by a thread of its own that may wait. Entries have the master's scope.
    Server,
}

/// How often a source is read if the CPU budget allows (`observer/schedule.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cadence {
    /// 20 times a second.
    Fast,
    /// About five times a second at random moments. The reader is called at each fast turn, or individually if that is too expensive, and reads nothing before
    /// its moment.
    Sampled,
    /// Four times a second. By a recorder, which goes on for months, once.
    Often,
    /// Once a second.
    Slow,
    /// At the beginning of the observation, or when the process or namespace joins the path, and at the end.
    Ends,
    /// At the beginning of the observation, or when the process or namespace joins the path.
    Once,
}

/// The phase of the observation in which a read happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The first read of this source for this scope.
    First,
    /// Any other read.
    Running,
    /// The last read.
    Last,
}

/// How the bytes of a source can be rewritten to hide addresses and secrets while they still parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redact {
    /// Text with addresses, names or secrets in it.
    Text,
    /// Text of which the parser reads only a part. [`crate::reduce()`] keeps that part, which is then treated as [`Redact::Text`].
    Reduced,
    /// Messages of sock_diag(7) for internet sockets, and of unix sockets.
    InetDiag,
    /// Messages of sock_diag(7) for unix sockets only. They have no addresses, and paths stay.
    UnixDiag,
    /// Messages of rtnetlink(7).
    RouteNetlink,
    /// It contains neither addresses nor secrets.
    None,
}

impl ScopeKind {
    /// The kind of a scope.
    pub(crate) fn of(scope: Scope) -> Self {
        match scope {
            Scope::Host => ScopeKind::Host,
            Scope::Netns(_) => ScopeKind::Netns,
            Scope::Process(_) => ScopeKind::Process,
        }
    }
}

impl Redact {
    /// True for binary messages of the kernel.
    pub fn is_binary(self) -> bool {
        matches!(self, Redact::InetDiag | Redact::UnixDiag | Redact::RouteNetlink)
    }
}

/// What readers keep between reads within one observation (a position in a log, a pid), by a key that begins with the source's name. At most 256 keys;
/// further ones are dropped.
#[derive(Debug, Default)]
pub struct Notes(Mutex<BTreeMap<String, Vec<u8>>>);

impl Notes {
    const KEYS_MAX: usize = 256;

    /// The value under this key.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get(key).cloned()
    }

    /// Sets the value under this key.
    pub fn set(&self, key: &str, value: Vec<u8>) {
        let mut notes = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if notes.len() < Self::KEYS_MAX || notes.contains_key(key) {
            notes.insert(key.to_owned(), value);
        }
    }

    /// What was kept under this key by [`Notes::keep`]; the default if nothing was.
    pub(crate) fn kept<T: DeserializeOwned + Default>(&self, key: &str) -> T {
        self.get(key).and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Keeps a value under this key.
    pub(crate) fn keep<T: Serialize>(&self, key: &str, value: &T) {
        if let Ok(bytes) = serde_json::to_vec(value) {
            self.set(key, bytes);
        }
    }

    /// Forgets what was kept of a process: the keys that end with its number.
    pub(crate) fn forget_process(&self, pid: u32) {
        let of_process = format!(" {pid}");
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).retain(|key, _| !key.ends_with(&of_process));
    }
}

/// What a reader gets.
pub struct ReadContext<'a> {
    /// The host's files.
    pub root: &'a Root,
    /// What to read. For `Scope::Netns` the calling thread is in that namespace.
    pub scope: Scope,
    /// First read, last read or any other.
    pub phase: Phase,
    /// What readers keep between reads.
    pub notes: &'a Notes,
    /// How late this read began after its turn, microseconds: no core was free, or other work came first.
    pub late_us: u64,
    /// The requests under way of a load of this process, if one runs during the observation.
    pub under_way: Option<&'a UnderWay>,
    /// The namespace the thread is in, for sources of scope Netns.
    pub netns: Option<&'a NetnsRef>,
    /// Netlink sockets of that namespace, for sources of scope Netns.
    pub(crate) netlink: Option<&'a Sockets>,
}

impl<'a> ReadContext<'a> {
    /// A read outside of any network namespace.
    pub(crate) fn new(root: &'a Root, scope: Scope, phase: Phase, notes: &'a Notes) -> Self {
        Self { root, scope, phase, notes, late_us: 0, under_way: None, netns: None, netlink: None }
    }

    /// The netlink sockets, for sources of scope Netns.
    pub(crate) fn sockets(&self) -> Result<&'a Sockets, Outcome> {
        self.netlink.ok_or_else(|| Outcome::Failed("no netlink socket in this namespace".to_owned(), None))
    }

    /// The process to read, for sources of scope Process.
    pub fn pid(&self) -> Option<u32> {
        match self.scope {
            Scope::Process(pid) => Some(pid),
            _ => None,
        }
    }
}

/// One thing that is read from the host.
pub struct Source {
    /// Name in recordings and reports. It never changes once released.
    pub name: &'static str,
    /// What it is read of.
    pub scope: ScopeKind,
    /// How often.
    pub cadence: Cadence,
    /// Capability that it needs.
    pub needs: Option<&'static str>,
    /// Reads raw bytes. Never parses. Never waits, except for scope Server.
    pub read: fn(&ReadContext<'_>) -> Items,
    /// Parses one entry and puts it into the observation; pure.
    pub put: fn(&mut Observation, &Entry),
    /// How a recording can rewrite the bytes.
    pub redact: Redact,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("name", &self.name)
            .field("scope", &self.scope)
            .field("cadence", &self.cadence)
            .finish_non_exhaustive()
    }
}
