//! One observation of the running host. It finds the request's path, samples it, and returns everything that it read.

pub(crate) mod bucket;
mod costs;
mod messages;
mod options;
mod reader;
mod recent;
mod sampler;
mod schedule;
mod scout;
pub(crate) mod socket_owners;
mod status_pollers;
mod store;
pub(crate) mod under_way;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use chokepoint_recording::{Entry, Outcome, Scope};

use crate::clock::Clock;
pub use costs::{Cost, Costs};
use messages::SamplerEvent;
pub use options::{ObserveError, ObserveOptions};
pub use recent::Recent;
use sampler::Sampler;
pub use under_way::UnderWay;

/// A running observation.
#[derive(Debug)]
pub struct Observer {
    clock: Clock,
    found: Arc<AtomicBool>,
    events: SyncSender<SamplerEvent>,
    sampler: Option<JoinHandle<(Vec<Entry>, Costs)>>,
}

impl Observer {
    /// Takes all first readings, finds the path as far as it is visible already, and starts to sample in threads of its own.
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

    /// Adds an entry that is no reading, with its JSON (names in `assemble`).
    pub fn note(&self, source: &str, json: Vec<u8>) {
        let entry = Entry {
            at_us: self.clock.now_us(),
            source: source.to_owned(),
            scope: Scope::Host,
            item: String::new(),
            outcome: Outcome::Ok(json),
        };
        // The sampler ends only on request. Without it there is no recording to add to.
        let _ = self.events.send(SamplerEvent::Note(entry));
    }

    /// All entries since the last call, in the order of their arrival; none after the observation broke off. Readers report once a second, so the newest
    /// entries are up to a second old.
    pub fn drain(&self) -> Vec<Entry> {
        let (entries, drained) = sync_channel(1);
        let asked = self.events.send(SamplerEvent::Drain(entries));
        asked.ok().and_then(|()| drained.recv().ok()).unwrap_or_default()
    }

    /// Takes the last readings, ends all threads and returns all entries in the order of their time.
    pub fn finish(self) -> Vec<Entry> {
        self.finish_with_costs().0
    }

    /// [`Observer::finish`], with the cost of the observation.
    pub fn finish_with_costs(mut self) -> (Vec<Entry>, Costs) {
        let _ = self.events.send(SamplerEvent::Finish);
        self.sampler.take().and_then(|sampler| sampler.join().ok()).unwrap_or_default()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        if self.sampler.is_some() {
            let _ = self.events.send(SamplerEvent::Abandon);
        }
    }
}
