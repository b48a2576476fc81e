//! What a source is: one thing that is read of the host, as a thin reader and a pure parser, and the table of all of them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use chokepoint_model::observation::Observation;
use chokepoint_recording::{Entry, Outcome, Scope};

use crate::netns::NetnsRef;
use crate::observer::UnderWay;
use crate::root::Root;

/// What a source is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeKind {
    /// Once for the whole host.
    Host,
    /// Once in each network namespace that matters, by a thread that has entered it.
    Netns,
    /// Once for each process on the request's path.
    Process,
    /// Once for each master of a server of a known kind on the path, by a thread of its own that may wait; entries have the master's scope.
    Server,
}

/// How often a source is read, where the observer can afford it (`observer/schedule.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cadence {
    /// 20 times a second.
    Fast,
    /// About five times a second at moments that are drawn: the reader is asked at each fast turn, or one by one where that is too expensive, and reads
    /// nothing until its moment has come.
    Sampled,
    /// Four times a second.
    Often,
    /// Once a second.
    Slow,
    /// When the observation begins (or the process or namespace comes to matter) and when it ends.
    Ends,
    /// When the observation begins (or the process or namespace comes to matter).
    Once,
}

/// Where in the observation a read happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The first read of this source for this scope.
    First,
    /// A read in between.
    Running,
    /// The last read.
    Last,
}

/// How the bytes of a source may be rewritten to hide addresses and secrets while they still parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redact {
    /// Text with addresses, names or secrets in it.
    Text,
    /// Text of which the parser reads only a part: what is left of it by [`crate::reduce()`] is treated as [`Redact::Text`].
    Reduced,
    /// Messages of sock_diag(7) for internet sockets, and of unix sockets.
    InetDiag,
    /// Messages of sock_diag(7) for unix sockets alone: paths stay, there are no addresses.
    UnixDiag,
    /// Messages of rtnetlink(7).
    RouteNetlink,
    /// Neither addresses nor secrets are in it.
    None,
}

impl Redact {
    /// True for messages of the kernel, which are no text.
    pub fn is_binary(self) -> bool {
        matches!(self, Redact::InetDiag | Redact::UnixDiag | Redact::RouteNetlink)
    }
}

/// What a reader keeps from one read to the next within one observation (a position in a log, a pid that it found), by a key that begins
/// with its source's name. At most 256 keys; more are not kept.
#[derive(Debug, Default)]
pub struct Notes(Mutex<BTreeMap<String, Vec<u8>>>);

impl Notes {
    const KEYS_MAX: usize = 256;

    /// What was kept under this key.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get(key).cloned()
    }

    /// Keeps a value under this key in place of what was there.
    pub fn set(&self, key: &str, value: Vec<u8>) {
        let mut notes = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if notes.len() < Self::KEYS_MAX || notes.contains_key(key) {
            notes.insert(key.to_owned(), value);
        }
    }
}

/// What a reader is given.
pub struct ReadContext<'a> {
    /// Where the host's files are.
    pub root: &'a Root,
    /// What to read for. For `Scope::Netns` the calling thread is in that namespace.
    pub scope: Scope,
    /// First read, last read or in between.
    pub phase: Phase,
    /// What readers keep between reads.
    pub notes: &'a Notes,
    /// How much later than its turn this read began, microseconds: for want of a core, or behind other work.
    pub late_us: u64,
    /// What a load of this very process has under way, where one runs beside the observation.
    pub under_way: Option<&'a UnderWay>,
    /// The namespace the thread is in, for sources of scope Netns.
    pub netns: Option<&'a NetnsRef>,
    /// Netlink sockets of that namespace, for sources of scope Netns.
    pub(crate) netlink: Option<&'a crate::netlink::Sockets>,
}

impl ReadContext<'_> {
    /// The process to read, for sources of scope Process.
    pub fn pid(&self) -> Option<u32> {
        match self.scope {
            Scope::Process(pid) => Some(pid),
            _ => None,
        }
    }
}

/// One thing that is read of the host.
pub struct Source {
    /// Name in recordings and reports: never changes once released.
    pub name: &'static str,
    /// What it is read for.
    pub scope: ScopeKind,
    /// How often.
    pub cadence: Cadence,
    /// Capability without which it is absent.
    pub needs: Option<&'static str>,
    /// Reads raw bytes: item (empty where the source has only one) and what came of it. Never parses; never waits, but for scope Server.
    pub read: fn(&ReadContext<'_>) -> Vec<(String, Outcome)>,
    /// Parses one entry and puts it into its place; pure.
    pub put: fn(&mut Observation, &Entry),
    /// How a recording may rewrite the bytes.
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
