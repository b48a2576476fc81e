//! Packets that the kernel dropped, with its reasons: by a program within the kernel where BPF may be used (cargo feature `bpf`), which knows their
//! sockets, and by samples of the tracepoint skb:kfree_skb elsewhere.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::Error;
use crate::host;
use crate::sampler::thread_cpu_s;
use crate::tracefs::{Format, Tracefs};

mod ends;
mod named;
mod reasons;
#[cfg(feature = "bpf")]
mod record;
mod samples;
#[cfg(feature = "bpf")]
mod sockets;

use named::Counted;
use reasons::ORDINARY;
use samples::Sampling;

/// Name and version of the form of [`Drops`] as JSON.
pub const DROPS_SCHEMA: &str = "chokepoint/drops/1";

/// Drops of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drop {
    /// The kernel's name for the reason (enum skb_drop_reason); its number where it has none.
    pub reason: String,
    /// What that means, where it is known.
    pub meaning: Option<&'static str>,
    /// The function of the kernel that dropped them.
    pub location: String,
    /// IPv4, IPv6, ARP, or the number in hexadecimal.
    pub protocol: String,
    /// Whether a socket was known for which the packet came; none where the kernel does not tell.
    pub for_socket: Option<bool>,
    /// What ran at that moment: between programs of one host mostly the one that sent the packet, else whatever was interrupted.
    pub program: String,
    /// The network namespace of that program: its name below /run/netns, or its number.
    pub namespace: Option<String>,
    /// The socket's address and port, or where the packets themselves were to go; by samples only where another tracepoint told them of the same packets.
    pub local: Option<SocketAddr>,
    /// The socket's other end. Of many connections that share one end, that one alone stands.
    pub remote: Option<SocketAddr>,
    /// Pairs of ends that this line tells of together; 0 where none is known.
    pub ends: u64,
    /// "tcp" or "udp", where an end is known.
    pub transport: Option<&'static str>,
    /// The state of a TCP socket, as include/net/tcp_states.h names it.
    pub state: Option<&'static str>,
    /// The network namespace of the socket, or of the interface where none is known.
    pub socket_namespace: Option<String>,
    /// Who holds a socket there, where somebody does: whoever knows the host's sockets enters it. More than one where several namespaces have such a socket.
    pub holders: Vec<Holder>,
    /// The sockets' inode numbers, by which whoever knows the host's processes finds the holders; empty where they are not known.
    #[serde(skip)]
    pub inodes: BTreeSet<u64>,
    /// Packets.
    pub count: u64,
}

/// A program that holds a socket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Holder {
    /// Its name.
    pub program: String,
    /// The network namespace of the socket.
    pub namespace: Option<String>,
}

/// Packets that a socket itself counted as dropped: a listener whose queue is full, a UDP socket whose buffer is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SocketDrops {
    /// "tcp" or "udp".
    pub protocol: &'static str,
    /// Its address.
    pub local: SocketAddr,
    /// Who holds it.
    pub holder: Holder,
    /// Packets meanwhile.
    pub count: u64,
}

/// How drops are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// A program in the kernel counts them with their sockets (BPF).
    Bpf,
    /// Samples of the tracepoint, which know no sockets.
    Tracepoint,
}

/// All that was dropped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drops {
    /// `DROPS_SCHEMA`.
    pub schema: &'static str,
    /// How they were read.
    pub means: Means,
    /// How long, seconds.
    pub duration_s: f64,
    /// Packets dropped, but for the reasons left out.
    pub packets: u64,
    /// Drops that found no room, or were of too many kinds.
    pub lost: u64,
    /// Reasons that are no loss, left out in the kernel already.
    pub left_out: Vec<String>,
    /// By kind, the most first.
    pub drops: Vec<Drop>,
    /// By socket, the most first, by the sockets' own counts: whoever knows the host's sockets enters them. Some of these are in `drops`, too; a connection
    /// that a full queue turns away is not.
    pub sockets: Vec<SocketDrops>,
    /// What could not be told, in sentences.
    pub notes: Vec<String>,
    /// CPU time that this took in this program, seconds.
    pub cost_cpu_s: f64,
}

/// What counts, open and not counting yet.
#[derive(Debug)]
pub struct Dropping {
    reasons: Reasons,
    counting: Counting,
    notes: Vec<String>,
}

#[derive(Debug)]
enum Counting {
    #[cfg(feature = "bpf")]
    Sockets(Box<sockets::Sockets>),
    Samples(Sampling),
}

/// The tracepoint's number and layout, and the reasons that are no loss.
#[derive(Debug)]
struct Reasons {
    id: u64,
    format: Format,
    ordinary: Vec<(u64, String)>,
}

impl Reasons {
    /// What tracefs tells of them, and tracefs itself.
    fn find() -> Result<(Tracefs, Self), Error> {
        let tracefs = Tracefs::open().map_err(|none| Error::Missing(none.to_string()))?;
        let reasons = Self::read(&tracefs)?;
        Ok((tracefs, reasons))
    }

    fn read(tracefs: &Tracefs) -> Result<Self, Error> {
        let id = tracefs.id("skb", "kfree_skb").ok_or_else(|| Error::Missing("this kernel has no tracepoint skb:kfree_skb".to_owned()))?;
        let format = tracefs.format("skb", "kfree_skb").unwrap_or_default();
        if !format.fields.iter().any(|field| field.name == "reason") {
            return Err(Error::Missing("this kernel tells no reasons of drops: that takes Linux 5.17".to_owned()));
        }
        let ordinary = format.symbols.iter().filter(|(_, name)| ORDINARY.contains(&name.as_str())).cloned().collect();
        Ok(Self { id, format, ordinary })
    }
}

impl Dropping {
    /// Opens a program in the kernel where that may be, and the tracepoint on each core elsewhere, with a note of what is missing then.
    ///
    /// # Errors
    /// Where the kernel has no such tracepoint, tells no reasons (before Linux 5.17), or refuses.
    pub fn open() -> Result<Self, Error> {
        let (tracefs, reasons) = Reasons::find()?;
        #[cfg(feature = "bpf")]
        let without = match sockets::Sockets::open(&reasons) {
            Ok(sockets) => return Ok(Self { reasons, counting: Counting::Sockets(Box::new(sockets)), notes: Vec::new() }),
            Err(refused) => refused.to_string(),
        };
        #[cfg(not(feature = "bpf"))]
        let without = NOT_BUILT.to_owned();
        let notes = vec![format!("sockets of drops are not known, only what other tracepoints tell of the same packets: {without}")];
        Ok(Self { counting: Counting::Samples(Sampling::open(&tracefs, &reasons)?), reasons, notes })
    }

    /// Opens the tracepoint on each core even where BPF may be used.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_tracepoint() -> Result<Self, Error> {
        let (tracefs, reasons) = Reasons::find()?;
        Ok(Self { counting: Counting::Samples(Sampling::open(&tracefs, &reasons)?), reasons, notes: Vec::new() })
    }

    /// How it will count.
    #[must_use]
    pub fn means(&self) -> Means {
        match self.counting {
            #[cfg(feature = "bpf")]
            Counting::Sockets(_) => Means::Bpf,
            Counting::Samples(_) => Means::Tracepoint,
        }
    }

    /// What is known to be missing before it begins, in sentences.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Counts for as long as `go_on` says so, which is asked about ten times a second.
    ///
    /// # Errors
    /// Where the counting cannot be started, or what was counted not be read.
    pub fn run(self, go_on: impl FnMut(Duration) -> bool) -> Result<Drops, Error> {
        let cost_before = thread_cpu_s();
        let begin = Instant::now();
        let means = self.means();
        let counted = match self.counting {
            #[cfg(feature = "bpf")]
            Counting::Sockets(sockets) => sockets.run(begin, go_on)?,
            Counting::Samples(sampling) => sampling.run(&self.reasons, begin, go_on)?,
        };
        let Counted { kinds, lost, duration } = counted;
        let (drops, mut notes) = named::drops(kinds, &self.reasons.format, &host::text("/proc/kallsyms").unwrap_or_default());
        notes.extend(self.notes);
        Ok(Drops {
            schema: DROPS_SCHEMA,
            means,
            duration_s: duration.as_secs_f64(),
            packets: drops.iter().fold(0, |sum, drop| sum + drop.count),
            lost,
            left_out: self.reasons.ordinary.into_iter().map(|(_, name)| name).collect(),
            drops,
            sockets: Vec::new(),
            notes,
            cost_cpu_s: (thread_cpu_s() - cost_before).max(0.0),
        })
    }
}

/// What a build without BPF says of it.
#[cfg(not(feature = "bpf"))]
const NOT_BUILT: &str = "this program was built without BPF (cargo feature `bpf`)";

/// What this build or the kernel at hand lacks for the sockets of drops, as a sentence.
pub(crate) fn lacking() -> Option<String> {
    #[cfg(feature = "bpf")]
    let missing = sockets::no_types();
    #[cfg(not(feature = "bpf"))]
    let missing = Some(NOT_BUILT.to_owned());
    missing.map(|missing| format!("{missing}: drops are counted without their sockets"))
}
