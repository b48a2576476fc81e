//! Samples what threads wait for: a stack where a thread stops running, weighted by how long it does not run. It needs no tracepoint: the counter of
//! context switches triggers the samples, and the records of switches give the times (perf_event_open(2), `context_switch`).

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use perf_event_open_sys::bindings as b;

use crate::error::Error;
use crate::host::{self, monotonic_ns, thread_cpu_s};
use crate::layers::layer::Layer;
use crate::profile::{Frame, FrameKind, Profile, Sample, Stack, StackEnd};
use crate::sampling::collector::{Collector, NamedSamples, Wanted};
use crate::sampling::event::{self, Clock, gather, is_refusal, open_cores, open_followed, privilege, wait};
use crate::sampling::record::Record;
use crate::sampling::ring::{Ring, bytes_of_each, drain};
use crate::sampling::sampler::core_shares;
use crate::sampling::scope::Scope;
use crate::waiting::peers::Peers;

/// Approximate number of stacks a second on each core. If there are more switches, the kernel samples only some of them.
const STACKS_HZ: u32 = 400;
/// Maximum number of threads that get an event of their own on each core.
const FOLLOWED_MAX: usize = 64;
/// Each switch of such a thread gives a stack, up to this multiple of `STACKS_HZ` on each core. Above it sampling pauses.
const FOLLOWED_STACKS_FACTOR: f64 = 2.0;
/// Maximum number of threads whose time waiting for a core is read.
const THREADS_MAX: usize = 20_000;

/// Open events that do not count yet.
#[derive(Debug)]
pub struct Waiting {
    scope: Scope,
    wanted: HashSet<u32>,
    cores: Vec<u32>,
    /// The rings of `stacks`, then those of `switches`, by core.
    rings: Vec<Ring>,
    stacks: Vec<OwnedFd>,
    /// Events whose samples go to the rings of `stacks`.
    followers: Vec<OwnedFd>,
    /// Whether stacks come from events of single threads, not of whole cores.
    is_followed: bool,
    switches: Vec<OwnedFd>,
}

/// What is known about a thread's waiting.
#[derive(Debug, Default, Clone)]
struct Thread {
    /// When it stopped running, and whether it was still ready to run.
    out: Option<(u64, bool)>,
    /// The sample taken at that moment, and the number of switches that it stands for.
    sample: Option<(usize, u64)>,
    seen: bool,
    /// It has ended. The kernel switches it out once more after that.
    gone: bool,
    asleep_ns: u64,
    preempted_ns: u64,
    /// Its samples, with the time that each stands for.
    sampled: Vec<(usize, u64)>,
}

/// Processes switches and samples in time order.
#[derive(Default)]
struct Tracker {
    begin_ns: u64,
    /// How long each thread that existed at the start had waited for a core until then.
    delays: HashMap<(u32, u32), u64>,
    threads: HashMap<(u32, u32), Thread>,
    /// Whether the waiting of a process counts.
    programs: HashMap<u32, bool>,
    switches: u64,
    /// The most switches that one stack stands for.
    period_max: u64,
    peers: Peers,
}

impl Waiting {
    /// Opens two events on each core.
    ///
    /// # Errors
    /// If the kernel refuses, or there is no such process.
    pub fn open(scope: Scope) -> Result<Self, Error> {
        let wanted = scope.processes()?;
        let online = host::cores_online();
        let bytes = bytes_of_each(2 * online.len());
        let refused = |error: io::Error| {
            if is_refusal(&error) {
                privilege("seeing what threads wait for", &error)
            } else {
                Error::Io("perf_event_open".to_owned(), error)
            }
        };
        let (cores, switches): (Vec<u32>, Vec<OwnedFd>) =
            open_cores(&switch_attributes(bytes), -1, &online).map_err(refused)?.into_iter().unzip();
        // A few threads each get their own events. With events for the whole machine nearly all stacks would come from any other program that switches often.
        let threads: Vec<u32> = wanted.iter().flat_map(|pid| host::threads(*pid)).collect();
        let is_followed = !threads.is_empty() && threads.len() <= FOLLOWED_MAX;
        let (stacks, followers) = if is_followed {
            open_followed(&followed_attributes(bytes), &threads, &cores).map_err(refused)?
        } else {
            let found = open_cores(&stack_attributes(false, bytes), -1, &cores).map_err(refused)?;
            (found.into_iter().map(|(_, fd)| fd).collect(), Vec::new())
        };
        if stacks.is_empty() {
            return Err(Error::NoProcess(scope.to_string()));
        }
        let ring = |fd| Ring::map(fd, bytes).map_err(|error| Error::Io("the buffer for samples cannot be mapped".to_owned(), error));
        let rings = stacks.iter().chain(&switches).map(ring).collect::<Result<Vec<_>, _>>()?;
        gather(&stacks, &followers)?;
        Ok(Self { scope, wanted, cores, rings, stacks, followers, is_followed, switches })
    }

    /// Samples while `go_on` returns true; it is called ten times a second. The profile's weights are nanoseconds of waiting.
    ///
    /// # Errors
    /// If the events cannot be started.
    pub fn run(mut self, mut go_on: impl FnMut(Duration) -> bool) -> Result<Profile, Error> {
        let cost_before = thread_cpu_s();
        let wanted = Wanted::new(&self.scope, std::mem::take(&mut self.wanted));
        let delays = delays();
        let (begin, times, begin_ns) = (Instant::now(), host::core_times(), monotonic_ns());
        let mut collector = Collector::new(wanted, begin_ns);
        let mut tracker = Tracker { begin_ns, delays, ..Tracker::default() };
        for fd in self.switches.iter().chain(&self.stacks).chain(&self.followers) {
            event::enable(fd).map_err(|error| Error::Io("sampling cannot be started".to_owned(), error))?;
        }
        let mut pause = Pause::default();
        let mut buffers: Vec<Vec<u8>> = self.rings.iter().map(|_| Vec::new()).collect();
        while go_on(begin.elapsed()) {
            wait(&self.stacks);
            let lost = drain(&mut self.rings, &mut buffers, |time, record| tracker.take(time, record, &mut collector));
            collector.lost += lost;
            if self.is_followed {
                let most = FOLLOWED_STACKS_FACTOR * f64::from(STACKS_HZ) * self.cores.len() as f64 * begin.elapsed().as_secs_f64();
                pause.keep(collector.samples() as f64 > most, self.stacks.iter().chain(&self.followers));
            }
        }
        for fd in self.stacks.iter().chain(&self.followers).chain(&self.switches) {
            // An event that cannot be stopped is closed in a moment anyway.
            let _ = event::disable(fd);
        }
        let (duration, end_ns) = (begin.elapsed(), monotonic_ns());
        let lost = drain(&mut self.rings, &mut buffers, |time, record| tracker.take(time, record, &mut collector));
        collector.lost += lost;
        let cores = core_shares(&self.cores, &times, &host::core_times());
        let (lost, throttled) = (collector.lost, collector.throttled);
        let mut notes = notes(tracker.period_max, tracker.switches, duration, pause.share(duration));
        let unsampled = tracker.weigh(end_ns, &mut collector);
        let mut collected = collector.finish();
        collected.add_unsampled(&unsampled);
        notes.extend(collected.notes);
        let mut profile = Profile {
            notes,
            left_out: collected.left_out,
            duration_s: duration.as_secs_f64(),
            cores,
            lost,
            throttled,
            frames: collected.frames,
            stacks: collected.stacks,
            threads: collected.threads,
            samples: collected.samples,
            ..Profile::new(Clock::OffCpu, self.scope.to_string())
        };
        profile.classify();
        profile.cost_cpu_s = (thread_cpu_s() - cost_before).max(0.0);
        Ok(profile)
    }
}

/// Pauses in which no stacks are sampled, because each sample copies the user stack.
#[derive(Debug, Default)]
struct Pause {
    since: Option<Instant>,
    paused: Duration,
}

impl Pause {
    /// Starts or ends a pause.
    fn keep<'a>(&mut self, pauses: bool, events: impl Iterator<Item = &'a OwnedFd>) {
        match (pauses, self.since) {
            (true, None) => {
                self.since = Some(Instant::now());
                // If an event cannot be stopped, there are just more samples than needed.
                events.for_each(|fd| drop(event::disable(fd)));
            }
            (false, Some(since)) => {
                self.paused += since.elapsed();
                self.since = None;
                events.for_each(|fd| drop(event::enable(fd)));
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// Share of the time spent in pauses.
    fn share(&self, duration: Duration) -> f64 {
        let paused = self.paused + self.since.map_or(Duration::ZERO, |since| since.elapsed());
        (paused.as_secs_f64() / duration.as_secs_f64().max(1e-9)).min(1.0)
    }
}

fn notes(period_max: u64, switches: u64, duration: Duration, paused: f64) -> Vec<String> {
    let rate = switches as f64 / duration.as_secs_f64().max(1e-9);
    let mut notes =
        vec![format!("{rate:.0} context switches per second were followed; threads that never ran in this time are not included")];
    if period_max > 1 {
        notes.push(format!(
            "stacks were taken for as few as one in {period_max} switches; the total of each thread is exact, and is divided according to these stacks"
        ));
    }
    if paused > 0.0 {
        notes.push(format!(
            "stacks were taken in only {:.0} % of the time, because there were too many switches; the total of each thread is exact, and is divided according to these stacks",
            100.0 * (1.0 - paused)
        ));
    }
    notes
}

/// Samples switches, with stacks.
fn stack_attributes(inherit: bool, ring_bytes: usize) -> b::perf_event_attr {
    // By frequency: with a fixed period the kernel samples every switch if samples carry their period (perf_swevent_event).
    let mut attr = event::attributes(Clock::CpuClock, STACKS_HZ, true, inherit, ring_bytes);
    attr.config = u64::from(b::PERF_COUNT_SW_CONTEXT_SWITCHES);
    attr
}

/// Samples every switch of the followed threads and of the threads and processes that they start. A frequency would not work: a few quick switches lengthen
/// the period of a thread that then sleeps, and its children inherit that period (perf_event_alloc). Children that switch only a few times were never sampled.
fn followed_attributes(ring_bytes: usize) -> b::perf_event_attr {
    let mut attr = stack_attributes(true, ring_bytes);
    attr.set_freq(0);
    attr.__bindgen_anon_1.sample_period = 1;
    attr
}

/// Records switches only, in separate rings that stacks cannot fill.
fn switch_attributes(ring_bytes: usize) -> b::perf_event_attr {
    let mut attr = event::attributes(Clock::CpuClock, 1, true, false, ring_bytes);
    attr.config = u64::from(b::PERF_COUNT_SW_DUMMY);
    attr.set_freq(0);
    attr.__bindgen_anon_1.sample_period = 0;
    for off in [b::perf_event_attr::set_mmap, b::perf_event_attr::set_mmap2, b::perf_event_attr::set_comm, b::perf_event_attr::set_task] {
        off(&mut attr, 0);
    }
    attr.set_comm_exec(0);
    attr.set_context_switch(1);
    attr.sample_type = u64::from(b::PERF_SAMPLE_TID | b::PERF_SAMPLE_TIME | b::PERF_SAMPLE_CPU);
    (attr.sample_regs_user, attr.sample_stack_user) = (0, 0);
    attr
}

/// How long each thread has waited for a core so far.
fn delays() -> HashMap<(u32, u32), u64> {
    let processes = host::parents().into_keys();
    let threads = processes.flat_map(|pid| host::threads(pid).into_iter().map(move |tid| (pid, tid))).take(THREADS_MAX);
    threads.filter_map(|(pid, tid)| Some(((pid, tid), host::thread_delay_ns(pid, tid)?))).collect()
}

impl Tracker {
    fn take(&mut self, time: u64, record: Record<'_>, collector: &mut Collector) {
        match record {
            Record::Switch { pid, tid, out, preempted } => {
                if !self.counts(pid, collector) {
                    return;
                }
                self.switches += u64::from(out);
                let is_from_start = self.delays.contains_key(&(pid, tid));
                let thread = self.threads.entry((pid, tid)).or_default();
                if thread.gone {
                    return;
                }
                if out {
                    thread.out = Some((time, preempted));
                } else {
                    thread.end_wait(time, if is_from_start { self.begin_ns } else { time });
                }
                thread.seen = true;
            }
            Record::Sample(sample) => {
                if !self.counts(sample.pid, collector) {
                    return;
                }
                let (key, period) = ((sample.pid, sample.tid), sample.period);
                let index = collector.samples();
                collector.peer = self.peers.of(&sample);
                collector.take(time, Record::Sample(sample));
                self.period_max = self.period_max.max(period);
                if collector.samples() > index {
                    self.threads.entry(key).or_default().sample = Some((index, period));
                }
            }
            Record::Exit { pid, tid } => {
                if let Some(thread) = self.threads.get_mut(&(pid, tid)) {
                    // A dead thread waits for nothing.
                    (thread.out, thread.sample, thread.gone) = (None, None, true);
                }
                collector.take(time, Record::Exit { pid, tid });
            }
            other => collector.take(time, other),
        }
    }

    /// Whether a process counts. Kernel threads do not: they mostly wait for work.
    fn counts(&mut self, pid: u32, collector: &mut Collector) -> bool {
        // A thread that is being torn down has no number any more.
        let program = *self.programs.entry(pid).or_insert_with(|| pid != 0 && pid != u32::MAX && !host::is_kernel_thread(pid));
        program && collector.wants(pid)
    }

    /// Gives each sample its share of the thread's waiting, so that a thread's samples add up to it. Returns how long threads waited for a core after being
    /// woken, and the waiting of threads without a stack.
    fn weigh(mut self, end_ns: u64, collector: &mut Collector) -> Vec<UnsampledWaits> {
        let mut weights: HashMap<usize, u64> = HashMap::new();
        let mut unsampled = Vec::new();
        for ((pid, tid), thread) in &mut self.threads {
            if thread.out.is_some() {
                thread.end_wait(end_ns, self.begin_ns);
            }
            let now = host::thread_delay_ns(*pid, *tid);
            let waited = now.map(|now| now.saturating_sub(self.delays.get(&(*pid, *tid)).copied().unwrap_or(0)));
            let woken_ns = waited.unwrap_or(0).saturating_sub(thread.preempted_ns).min(thread.asleep_ns);
            let whole = thread.asleep_ns.saturating_sub(woken_ns).saturating_add(thread.preempted_ns);
            let sampled: u64 = thread.sampled.iter().fold(0, |sum, (_, time)| sum.saturating_add(*time));
            for (index, time) in &thread.sampled {
                weights.insert(*index, scale(*time, whole, sampled));
            }
            let unseen_ns = if sampled == 0 { whole } else { 0 };
            if woken_ns > 0 || unseen_ns > 0 {
                unsampled.push(UnsampledWaits { thread: collector.thread(*pid, *tid), woken_ns, unseen_ns });
            }
        }
        collector.reweigh(|index| weights.get(&index).copied().filter(|weight| *weight > 0));
        unsampled
    }
}

/// How long a thread waited for a core after being woken, and how long it waited without a sampled stack; nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnsampledWaits {
    /// The collector's number of the thread.
    thread: u32,
    woken_ns: u64,
    unseen_ns: u64,
}

impl Thread {
    /// The thread runs again. Before it was first seen, only its time off the core is known.
    fn end_wait(&mut self, time: u64, begin_ns: u64) {
        let (since, preempted) = match self.out.take() {
            Some(out) => out,
            None if self.seen => return,
            None => (begin_ns, false),
        };
        let waited = time.saturating_sub(since);
        let sum = if preempted { &mut self.preempted_ns } else { &mut self.asleep_ns };
        *sum = sum.saturating_add(waited);
        if let Some((sample, period)) = self.sample.take() {
            self.sampled.push((sample, waited.saturating_mul(period.max(1))));
        }
    }
}

/// Scales `part` by `whole` / `sum`.
fn scale(part: u64, whole: u64, sum: u64) -> u64 {
    let scaled = u128::from(part) * u128::from(whole) / u128::from(sum.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

impl NamedSamples {
    /// Adds a sample for each thread's wait for a core after being woken, and one for its waiting without a stack.
    fn add_unsampled(&mut self, unsampled: &[UnsampledWaits]) {
        for (name, weight) in [
            ("[run queue]", (|unsampled| unsampled.woken_ns) as fn(&UnsampledWaits) -> u64),
            ("[not sampled]", |unsampled| unsampled.unseen_ns),
        ] {
            let frame = Frame { name: name.to_owned(), module: "kernel".to_owned(), kind: FrameKind::Kernel, named: true };
            let stack = u32::try_from(self.stacks.len()).unwrap_or(u32::MAX);
            let index = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
            let waits: Vec<Sample> = (unsampled.iter())
                .filter(|unsampled| weight(unsampled) > 0)
                .filter_map(|unsampled| Some((unsampled, self.number(unsampled.thread)?)))
                .map(|(unsampled, thread)| Sample { time_ms: 0, cpu: 0, thread, stack, weight: weight(unsampled) })
                .collect();
            if waits.is_empty() {
                continue;
            }
            self.frames.push(frame);
            self.stacks.push(Stack { frames: vec![index], end: StackEnd::Kernel, layer: Layer::Unknown });
            self.samples.splice(0..0, waits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::record;

    fn switch(pid: u32, out: bool, preempted: bool) -> Record<'static> {
        Record::Switch { pid, tid: pid, out, preempted }
    }

    fn sample(pid: u32, period: u64) -> Record<'static> {
        Record::Sample(record::Sample { pid, tid: pid, period, kernel: vec![1, 2], ..record::Sample::default() })
    }

    /// A tracker and a collector of one thread. `is_from_start`: it existed when sampling started.
    fn tracking(pid: u32, is_from_start: bool) -> (Tracker, Collector) {
        let delays = if is_from_start { HashMap::from([((pid, pid), 0)]) } else { HashMap::new() };
        let tracker = Tracker { begin_ns: 1000, delays, programs: HashMap::from([(pid, true)]), ..Tracker::default() };
        (tracker, Collector::new(Wanted::All, 1000))
    }

    #[test]
    fn the_stacks_of_a_thread_share_its_waiting_time() {
        // No process has this number, so nothing is read about it.
        let pid = u32::MAX;
        let (mut tracker, mut collector) = tracking(pid, true);
        let records = [
            (1100, switch(pid, false, false)),
            (1200, sample(pid, 2)),
            (1201, switch(pid, true, false)),
            (1401, switch(pid, false, false)),
            (1500, switch(pid, true, false)),
            (1700, switch(pid, false, false)),
            (1800, sample(pid, 2)),
            (1801, switch(pid, true, true)),
        ];
        for (time, record) in records {
            tracker.take(time, record, &mut collector);
        }
        let unsampled = tracker.weigh(1901, &mut collector);
        assert!(unsampled.is_empty());
        let collected = collector.finish();
        let weights: Vec<u64> = collected.samples.iter().map(|sample| sample.weight).collect();
        // It waited 100 before it was first seen, then 200, 200 and 100: 600 in all. The two samples stand for 400 and 200.
        assert_eq!(weights, [400, 200]);
    }

    #[test]
    fn a_new_thread_did_not_wait_before_and_waiting_without_a_stack_is_reported() {
        let pid = u32::MAX;
        let (mut tracker, mut collector) = tracking(pid, false);
        tracker.take(5000, switch(pid, false, false), &mut collector);
        tracker.take(6000, switch(pid, true, false), &mut collector);
        let unsampled = tracker.weigh(6500, &mut collector);
        assert_eq!(unsampled.iter().map(|unsampled| (unsampled.woken_ns, unsampled.unseen_ns)).collect::<Vec<_>>(), [(0, 500)]);
        let mut collected = collector.finish();
        collected.add_unsampled(&unsampled);
        assert_eq!(collected.samples.len(), 1);
        assert_eq!((collected.samples[0].weight, collected.frames[0].name.as_str()), (500, "[not sampled]"));
        assert_eq!(collected.threads.len(), 1);
    }

    #[test]
    fn a_dead_thread_waits_for_nothing() {
        let pid = u32::MAX;
        let (mut tracker, mut collector) = tracking(pid, true);
        tracker.take(1100, switch(pid, false, false), &mut collector);
        tracker.take(1200, sample(pid, 1), &mut collector);
        tracker.take(1200, switch(pid, true, false), &mut collector);
        tracker.take(1201, Record::Exit { pid, tid: pid }, &mut collector);
        tracker.take(1202, switch(pid, true, false), &mut collector);
        let unsampled = tracker.weigh(9000, &mut collector);
        assert_eq!(unsampled.iter().map(|unsampled| unsampled.unseen_ns).collect::<Vec<_>>(), [100]);
        assert!(collector.finish().samples.is_empty());
    }
}
