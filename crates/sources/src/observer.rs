//! One observation of the running host: finds what lies on the request's path, samples it, and gives back everything that was read.

mod bucket;
mod costs;
mod reader;
mod recent;
mod sampler;
mod schedule;
mod scout;
pub(crate) mod socket_owners;
mod status_pollers;
mod store;
mod under_way;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use chokepoint_model::observation::NetnsId;
use chokepoint_model::observation::Request;
use chokepoint_recording::{Entry, Outcome, Scope};

use crate::netns::NetnsError;
use crate::root::Root;
pub(crate) use bucket::FLOW_US;
pub use costs::{Cost, Costs};
pub(crate) use reader::thread_cpu_us;
pub use recent::Recent;
use sampler::{Event, Sampler};
pub use under_way::UnderWay;

/// What is observed and within which bounds.
#[derive(Debug, Clone)]
pub struct ObserveOptions {
    /// Where the host's files are.
    pub root: Root,
    /// The target, and the namespaces of client and server. A client namespace of zero is the caller's own.
    pub request: Request,
    /// Bytes that are kept at most; beyond it readings are thinned, the frequent ones first, and the result says so.
    pub bound_bytes: usize,
    /// True where it goes on until it is dropped and its readings are taken over by [`Observer::drain`]: the processes of the path that ended are
    /// forgotten then.
    pub endless: bool,
    /// Tells, at any moment, how many requests a load of this process has under way.
    pub under_way: Option<UnderWay>,
}

impl ObserveOptions {
    /// Bytes that are kept at most where nothing else is said.
    pub const BOUND_BYTES: usize = 64 << 20;

    /// The running host within the usual bounds.
    pub fn new(request: Request) -> Self {
        Self { root: Root::default(), request, bound_bytes: Self::BOUND_BYTES, endless: false, under_way: None }
    }

    /// The same without an end, for one who drains it.
    pub fn endless(request: Request) -> Self {
        Self { endless: true, ..Self::new(request) }
    }
}

/// Why an observation could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The namespaces could not be listed, or not even one's own be told.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// A namespace that the request names is not there.
    #[error("the {whose} network namespace {id} is not on this host, or this user may not see it")]
    UnknownNetns {
        /// "client's" or "server's".
        whose: &'static str,
        /// Its number.
        id: NetnsId,
    },
    /// A thread could not be started.
    #[error("a thread for the observation cannot be started: {0}")]
    Thread(io::Error),
}

/// The observation's clock: microseconds since it began.
#[derive(Debug, Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn now_us(self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// An observation that is going on.
#[derive(Debug)]
pub struct Observer {
    clock: Clock,
    found: Arc<AtomicBool>,
    events: SyncSender<Event>,
    sampler: Option<JoinHandle<(Vec<Entry>, Costs)>>,
}

impl Observer {
    /// Begins: reads what is read at the beginning, finds the path as far as it can be seen already, and starts sampling in threads of its
    /// own. When it returns, every first reading has been taken.
    pub fn start(options: ObserveOptions) -> Result<Self, ObserveError> {
        let clock = Clock(Instant::now());
        let found = Arc::new(AtomicBool::new(false));
        let (mut sampler, events) = Sampler::new(options, clock, Arc::clone(&found))?;
        sampler.begin()?;
        let builder = std::thread::Builder::new().name("sampler".to_owned());
        let sampler = builder.spawn(move || sampler.run()).map_err(ObserveError::Thread)?;
        Ok(Self { clock, found, events, sampler: Some(sampler) })
    }

    /// Microseconds since it began.
    pub fn elapsed_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// Whether a listener on this host answers for the target.
    pub fn path_found(&self) -> bool {
        self.found.load(Ordering::Relaxed)
    }

    /// Adds an entry that is no reading: those of `assemble` with their JSON.
    pub fn note(&self, source: &str, json: Vec<u8>) {
        let entry = Entry {
            at_us: self.clock.now_us(),
            source: source.to_owned(),
            scope: Scope::Host,
            item: String::new(),
            outcome: Outcome::Ok(json),
        };
        // The sampler only ends when it is told to; were it gone, there would be no recording to add to.
        let _ = self.events.send(Event::Note(entry));
    }

    /// Hands over all entries since the last time, in the order in which they came; none where the observation has broken off. Readers tell what they
    /// read once a second, so that the newest are up to a second old.
    pub fn drain(&self) -> Vec<Entry> {
        let (entries, drained) = sync_channel(1);
        let asked = self.events.send(Event::Drain(entries));
        asked.ok().and_then(|()| drained.recv().ok()).unwrap_or_default()
    }

    /// Takes the last readings, ends all threads and gives back all entries in the order of their time.
    pub fn finish(self) -> Vec<Entry> {
        self.finish_with_costs().0
    }

    /// The same, with what the observation cost.
    pub fn finish_with_costs(mut self) -> (Vec<Entry>, Costs) {
        let _ = self.events.send(Event::Finish);
        self.sampler.take().and_then(|sampler| sampler.join().ok()).unwrap_or_default()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        if self.sampler.is_some() {
            let _ = self.events.send(Event::Abandon);
        }
    }
}
