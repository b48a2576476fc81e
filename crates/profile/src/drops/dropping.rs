//! Counts drops for a while, by the best method of this kernel and build.

use std::time::{Duration, Instant};

use crate::drops::dropped::{DROPS_SCHEMA, Drops, Means};
use crate::drops::named::{self, DropCounts};
use crate::drops::reasons::DropTracepoint;
use crate::drops::samples::Sampling;
#[cfg(feature = "bpf")]
use crate::drops::sockets;
use crate::error::Error;
use crate::host::{self, thread_cpu_s};

/// An open drop counter that does not count yet.
#[derive(Debug)]
pub struct Dropping {
    drop_tracepoint: DropTracepoint,
    method: Method,
    notes: Vec<String>,
}

#[derive(Debug)]
enum Method {
    #[cfg(feature = "bpf")]
    Sockets(Box<sockets::Sockets>),
    Samples(Sampling),
}

impl Dropping {
    /// Loads the BPF program if possible, else opens the tracepoint on each core and notes what is missing.
    ///
    /// # Errors
    /// If the kernel has no such tracepoint, gives no reasons (before Linux 5.17), or refuses.
    pub fn open() -> Result<Self, Error> {
        let (tracefs, drop_tracepoint) = DropTracepoint::find()?;
        #[cfg(feature = "bpf")]
        let why_no_sockets = match sockets::Sockets::open(&drop_tracepoint) {
            Ok(sockets) => return Ok(Self { drop_tracepoint, method: Method::Sockets(Box::new(sockets)), notes: Vec::new() }),
            Err(refused) => refused.to_string(),
        };
        #[cfg(not(feature = "bpf"))]
        let why_no_sockets = NOT_BUILT.to_owned();
        let notes =
            vec![format!("the sockets of dropped packets are known only if other tracepoints show the same packets: {why_no_sockets}")];
        Ok(Self { method: Method::Samples(Sampling::open(&tracefs, &drop_tracepoint)?), drop_tracepoint, notes })
    }

    /// Opens the tracepoint on each core, even if BPF could be used.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_tracepoint() -> Result<Self, Error> {
        let (tracefs, drop_tracepoint) = DropTracepoint::find()?;
        Ok(Self { method: Method::Samples(Sampling::open(&tracefs, &drop_tracepoint)?), drop_tracepoint, notes: Vec::new() })
    }

    /// How drops will be counted.
    #[must_use]
    pub fn means(&self) -> Means {
        match self.method {
            #[cfg(feature = "bpf")]
            Method::Sockets(_) => Means::Bpf,
            Method::Samples(_) => Means::Tracepoint,
        }
    }

    /// What is known to be missing before method starts, in sentences.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Counts while `go_on` returns true; it is called about ten times a second.
    ///
    /// # Errors
    /// If method cannot start, or the counts cannot be read.
    pub fn run(self, go_on: impl FnMut(Duration) -> bool) -> Result<Drops, Error> {
        let cost_before = thread_cpu_s();
        let begin = Instant::now();
        let means = self.means();
        let counted = match self.method {
            #[cfg(feature = "bpf")]
            Method::Sockets(sockets) => sockets.run(begin, go_on)?,
            Method::Samples(sampling) => sampling.run(&self.drop_tracepoint, begin, go_on)?,
        };
        let DropCounts { kinds, lost, duration } = counted;
        let (drops, mut notes) = named::drops(kinds, &self.drop_tracepoint.format, host::kallsyms());
        notes.extend(self.notes);
        Ok(Drops {
            schema: DROPS_SCHEMA,
            means,
            duration_s: duration.as_secs_f64(),
            packets: drops.iter().fold(0, |sum, drop| sum + drop.count),
            lost,
            left_out: self.drop_tracepoint.no_loss.into_iter().map(|(_, name)| name).collect(),
            drops,
            sockets: Vec::new(),
            notes,
            cost_cpu_s: (thread_cpu_s() - cost_before).max(0.0),
        })
    }
}

/// Why a build without BPF does not know sockets.
#[cfg(not(feature = "bpf"))]
const NOT_BUILT: &str = "this chokepoint was built without BPF (cargo feature `bpf`)";

/// What this build or kernel lacks to count drops by socket, as a sentence.
pub(crate) fn lacking() -> Option<String> {
    #[cfg(feature = "bpf")]
    let missing = sockets::missing_types();
    #[cfg(not(feature = "bpf"))]
    let missing = Some(NOT_BUILT.to_owned());
    missing.map(|missing| format!("{missing}: drops are counted without their sockets"))
}
