//! One observation of the running host. It finds the request's path, samples it, and returns everything that it read.

pub(crate) mod bucket;
mod costs;
mod descriptors;
mod messages;
mod newest;
mod options;
mod reader;
mod recent;
mod reloads;
mod sampler;
mod schedule;
mod scout;
pub(crate) mod socket_owners;
mod status_pollers;
mod stop;
mod store;
pub(crate) mod under_way;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use chokepoint_model::observation::Request;
use chokepoint_recording::{Entry, Outcome, Scope};

use crate::clock::Clock;
pub use costs::{Cost, Costs};
pub use descriptors::descriptors_left_out;
use messages::SamplerEvent;
pub use options::{ObserveError, ObserveOptions};
pub use recent::Recent;
use sampler::Sampler;
pub use stop::Stop;
pub use under_way::UnderWay;

/// Longest wait for the sampler to hand over what was read. It has more to do than usual then, and hands it over at the next call.
const DRAIN_MAX: Duration = Duration::from_millis(200);

/// What of the path is known so far, for those who do something else meanwhile.
#[derive(Debug, Clone, Default)]
pub struct PathSoFar(Arc<Known>);

#[derive(Debug, Default)]
struct Known {
    answered: AtomicBool,
    pids: Mutex<BTreeSet<u32>>,
}

impl PathSoFar {
    /// Whether a listener on this host answers for the target.
    fn is_found(&self) -> bool {
        self.0.answered.load(Ordering::Relaxed)
    }

    /// The processes of its servers.
    pub fn processes(&self) -> BTreeSet<u32> {
        self.0.pids.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tell(&self, answered: bool, pids: &BTreeSet<u32>) {
        self.0.answered.store(answered, Ordering::Relaxed);
        let mut known = self.0.pids.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != *pids {
            known.clone_from(pids);
        }
    }
}

/// A running observation.
#[derive(Debug)]
pub struct Observer {
    clock: Clock,
    found: PathSoFar,
    events: SyncSender<SamplerEvent>,
    stop: Stop,
    /// Entries that were asked for and not handed over yet.
    awaited: Mutex<Option<Receiver<Vec<Entry>>>>,
    sampler: Option<JoinHandle<(Vec<Entry>, Costs)>>,
}

impl Observer {
    /// Takes all first readings, finds the path as far as it is visible already, and starts to sample in threads of its own. An observation without an end does all
    /// of that in them.
    pub fn start(options: ObserveOptions) -> Result<Self, ObserveError> {
        let clock = Clock(Instant::now());
        let (found, endless) = (PathSoFar::default(), options.endless);
        let (mut sampler, events) = Sampler::new(options, clock, found.clone())?;
        sampler.prepare()?;
        if !endless {
            sampler.begin()?;
        }
        let stop = sampler.stop();
        let builder = std::thread::Builder::new().name("sampler".to_owned());
        let sampler = builder.spawn(move || sampler.run(!endless)).map_err(ObserveError::Thread)?;
        Ok(Self { clock, found, events, stop, awaited: Mutex::default(), sampler: Some(sampler) })
    }

    /// Microseconds since it began.
    pub fn elapsed_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// Whether a listener on this host answers for the target.
    pub fn path_found(&self) -> bool {
        self.found.is_found()
    }

    /// What of the path is known at any moment from now on.
    pub fn path_so_far(&self) -> PathSoFar {
        self.found.clone()
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

    /// All entries since the last call, in the order of their arrival; none after the observation broke off, nor while it is busy with something else: those come
    /// with the next call. Readers report once a second, so the newest entries are up to a second old.
    pub fn drain(&self) -> Vec<Entry> {
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        let drained = match awaited.take() {
            Some(drained) => drained,
            None => {
                let (entries, drained) = sync_channel(1);
                if self.events.try_send(SamplerEvent::Drain(entries)).is_err() {
                    return Vec::new();
                }
                drained
            }
        };
        match drained.recv_timeout(DRAIN_MAX) {
            Err(RecvTimeoutError::Timeout) => {
                *awaited = Some(drained);
                Vec::new()
            }
            entries => entries.unwrap_or_default(),
        }
    }

    /// Follows the paths of these requests from now on, at least one, in place of those before: for an observation without an end. Nothing of the host is read again
    /// for those that are followed already. False if the observation is too busy or has ended.
    pub fn follow(&self, requests: &[Request]) -> bool {
        self.events.try_send(SamplerEvent::Follow(requests.to_vec())).is_ok()
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
            self.stop.set();
            // If it is too busy to take this, the flag ends it.
            let _ = self.events.try_send(SamplerEvent::Abandon);
        }
    }
}
