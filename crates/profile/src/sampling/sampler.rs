//! The sampler. It opens events for the whole machine or, with fewer privileges, for each thread, and collects samples until told to stop.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::host::{self, DESCRIPTORS_SPARE, monotonic_ns, raise_descriptors, thread_cpu_s};
use crate::profile::{Core, Profile};
use crate::sampling::collector::{Collector, Wanted};
use crate::sampling::event::{self, Clock, gather, is_missing, is_refusal, open_cores, open_error, open_followed, privilege, wait};
use crate::sampling::ring::{Ring, bytes_of_each, drain};
use crate::sampling::scope::Scope;
use crate::unwinding::tables::MemoryLimit;

/// Maximum samples a second. Beyond it a sample costs more than the code it samples.
pub const FREQUENCY_HZ_MAX: u32 = 10_000;
/// CPU time that a limited sampler may use for the mappings and unwind tables of running programs, seconds.
pub const START_CPU_S: f64 = 0.06;

/// What to sample and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What is sampled.
    pub scope: Scope,
    /// Only on these cores.
    pub cores: Option<Vec<u32>>,
    /// Samples a second on each core, from 1 to `FREQUENCY_HZ_MAX`. 99 avoids lockstep with work that runs a hundred times a second.
    pub frequency_hz: u32,
}

/// An open sampler.
#[derive(Debug)]
pub struct Sampler {
    options: Options,
    clock: Clock,
    cores: Vec<u32>,
    rings: Vec<Ring>,
    leaders: Vec<OwnedFd>,
    followers: Vec<OwnedFd>,
    wanted: HashSet<u32>,
    notes: Vec<String>,
    /// Maximum share of a core that sampling may use; unlimited if none.
    share_max: Option<f64>,
    /// The most that it holds of other programs' files.
    limit: MemoryLimit,
    /// The processes whose user stacks are walked; all if there are none.
    walked: BTreeSet<u32>,
}

/// Open events, with the clock and privileges they were opened with.
struct OpenedEvents {
    leaders: Vec<OwnedFd>,
    followers: Vec<OwnedFd>,
    cores: Vec<u32>,
    clock: Clock,
    kernel: bool,
}

impl Sampler {
    /// Opens the events. They do not count yet.
    ///
    /// # Errors
    /// If the kernel refuses, with what it needs; if a given process or core does not exist.
    pub fn open(options: Options) -> Result<Self, Error> {
        let online = host::cores_online();
        let cores = match &options.cores {
            None => online,
            Some(wanted) => match wanted.iter().find(|core| !online.contains(core)) {
                Some(core) => return Err(Error::NoCore(*core)),
                None => wanted.clone(),
            },
        };
        let wanted = options.scope.processes()?;
        let mut notes = Vec::new();
        let opened = open_events(&options, &cores, &wanted, &mut notes)?;
        if opened.clock == Clock::CpuClock {
            notes.push(
                "the kernel's timer (cpu-clock) was used, for this machine offers no cycle counter: code that runs with interrupts off is \
                 billed to where they are enabled again"
                    .to_owned(),
            );
        }
        if !opened.kernel {
            notes.push(
                "kernel functions are missing: this user may sample only programs (needs CAP_PERFMON, or kernel.perf_event_paranoid 1)"
                    .to_owned(),
            );
        }
        if !event::USER_STACKS {
            notes.push("user stacks cannot be unwound on this kind of processor".to_owned());
        }
        let bytes = bytes_of_each(opened.leaders.len());
        let ring = |fd| Ring::map(fd, bytes).map_err(|error| Error::Io("the buffer for samples cannot be mapped".to_owned(), error));
        let rings = opened.leaders.iter().map(ring).collect::<Result<Vec<_>, _>>()?;
        gather(&opened.leaders, &opened.followers)?;
        let OpenedEvents { leaders, followers, cores, clock, .. } = opened;
        Ok(Self {
            options,
            clock,
            cores,
            rings,
            leaders,
            followers,
            wanted,
            notes,
            share_max: None,
            limit: MemoryLimit::default(),
            walked: BTreeSet::new(),
        })
    }

    /// Limits sampling to this share of a core, plus [`START_CPU_S`] at the start. Above the limit user stacks are not walked and count as not walked. Use it to
    /// look at a busy machine without slowing it down.
    #[must_use]
    pub fn with_cpu_limit(mut self, share_max: f64) -> Self {
        self.share_max = Some(share_max);
        self
    }

    /// Walks the user stacks of these processes alone, and of those that they start meanwhile: the others count without functions. All of them if there are none.
    #[must_use]
    pub fn with_stacks_of(mut self, pids: BTreeSet<u32>) -> Self {
        self.walked = pids;
        self
    }

    /// Limits what is held of the sampled programs' files at a time to this many bytes: unwind tables and debugging information. What does not fit is left out, and
    /// [`Profile::left_out`] says so. Symbols are looked through in pieces and need no room.
    #[must_use]
    pub fn with_memory_limit(mut self, bytes: u64) -> Self {
        self.limit = MemoryLimit::within(bytes);
        self
    }

    /// What triggers the samples.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Samples while `go_on` returns true. It is called ten times a second with the time since the start.
    ///
    /// # Errors
    /// If the events cannot be started.
    pub fn run(mut self, mut go_on: impl FnMut(Duration) -> bool) -> Result<Profile, Error> {
        let cost_before = thread_cpu_s();
        let wanted = Wanted::new(&self.options.scope, std::mem::take(&mut self.wanted));
        let mut collector = Collector::new(wanted, monotonic_ns()).within(self.limit);
        collector.walked = std::mem::take(&mut self.walked);
        let share_max = self.share_max;
        let (begin, times) = (Instant::now(), host::core_times());
        for fd in self.leaders.iter().chain(&self.followers) {
            match event::enable(fd) {
                Ok(()) => {}
                Err(error) => return Err(Error::Io("sampling cannot be started".to_owned(), error)),
            }
        }
        let mut buffers: Vec<Vec<u8>> = self.rings.iter().map(|_| Vec::new()).collect();
        while go_on(begin.elapsed()) {
            wait(&self.leaders);
            // The collector checks this budget before each sample that it unwinds.
            collector.unwind_cpu_s_max = share_max.map(|share| cost_before + START_CPU_S + share * begin.elapsed().as_secs_f64());
            let lost = drain(&mut self.rings, &mut buffers, |time, record| collector.take(time, record));
            collector.lost += lost;
        }
        for fd in self.leaders.iter().chain(&self.followers) {
            // An event that cannot be stopped is closed in a moment anyway.
            let _ = event::disable(fd);
        }
        let duration = begin.elapsed();
        let lost = drain(&mut self.rings, &mut buffers, |time, record| collector.take(time, record));
        collector.lost += lost;
        let cores = core_shares(&self.cores, &times, &host::core_times());
        Ok(self.profile(collector, duration, cores, cost_before))
    }

    fn profile(self, collector: Collector, duration: Duration, cores: Vec<Core>, cost_before: f64) -> Profile {
        let Self { options, clock, rings, leaders, followers, mut notes, .. } = self;
        drop((rings, leaders, followers));
        let (lost, throttled, outside) = (collector.lost, collector.throttled, collector.outside);
        let collected = collector.finish();
        notes.extend(collected.notes);
        let mut profile = Profile {
            notes,
            left_out: collected.left_out,
            frequency_hz: options.frequency_hz,
            duration_s: duration.as_secs_f64(),
            cores,
            lost,
            throttled,
            outside,
            frames: collected.frames,
            stacks: collected.stacks,
            threads: collected.threads,
            samples: collected.samples,
            starts: collected.starts,
            ..Profile::new(clock, describe(&options))
        };
        profile.classify();
        profile.cost_cpu_s = (thread_cpu_s() - cost_before).max(0.0);
        profile
    }
}

/// Opens the best events that this user and machine allow.
fn open_events(options: &Options, cores: &[u32], wanted: &HashSet<u32>, notes: &mut Vec<String>) -> Result<OpenedEvents, Error> {
    let bytes = bytes_of_each(cores.len());
    let mut refused = None;
    for clock in [Clock::Cycles, Clock::CpuClock] {
        let attr = event::attributes(clock, options.frequency_hz, true, false, bytes);
        match open_cores(&attr, -1, cores) {
            Ok(found) => {
                if found.len() < cores.len() {
                    notes.push(format!("{} cores went offline and were not sampled", cores.len() - found.len()));
                }
                let (cores, leaders) = found.into_iter().unzip();
                return Ok(OpenedEvents { leaders, followers: Vec::new(), cores, clock, kernel: true });
            }
            Err(error) if is_refusal(&error) => refused = Some(error),
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(open_error(error)),
        }
    }
    let Some(error) = refused else { return Err(Error::Unsupported(io::Error::from_raw_os_error(libc::ENOENT))) };
    match &options.scope {
        Scope::Processes(_) => open_threads(options, cores, wanted, bytes),
        Scope::System => Err(privilege("sampling the whole machine", &error)),
        Scope::Cgroup(_) => Err(privilege("sampling a cgroup", &error)),
    }
}

/// Opens one event for each thread on each core. The kernel follows new threads and children.
fn open_threads(options: &Options, cores: &[u32], wanted: &HashSet<u32>, bytes: usize) -> Result<OpenedEvents, Error> {
    let threads: Vec<u32> = wanted.iter().flat_map(|pid| host::threads(*pid)).collect();
    let needed = threads.len().saturating_mul(cores.len());
    let limit = raise_descriptors();
    if u64::try_from(needed).unwrap_or(u64::MAX).saturating_add(DESCRIPTORS_SPARE) > limit {
        return Err(Error::TooManyThreads { threads: threads.len(), cores: cores.len(), needed, limit });
    }
    let mut last = io::Error::from_raw_os_error(libc::ENOENT);
    for (clock, kernel) in [(Clock::Cycles, true), (Clock::CpuClock, true), (Clock::Cycles, false), (Clock::CpuClock, false)] {
        let attr = event::attributes(clock, options.frequency_hz, kernel, true, bytes);
        match open_followed(&attr, &threads, cores) {
            Err(error) if is_refusal(&error) || is_missing(&error) => last = error,
            Err(error) => return Err(open_error(error)),
            Ok((leaders, _)) if leaders.is_empty() => return Err(Error::NoProcess(describe(options))),
            Ok((leaders, followers)) => return Ok(OpenedEvents { leaders, followers, cores: cores.to_vec(), clock, kernel }),
        }
    }
    if is_refusal(&last) { Err(privilege("sampling these processes", &last)) } else { Err(Error::Unsupported(last)) }
}

pub(crate) fn core_shares(cores: &[u32], before: &HashMap<u32, (u64, u64, u64)>, after: &HashMap<u32, (u64, u64, u64)>) -> Vec<Core> {
    let one = |cpu: &u32| {
        let shares = before.get(cpu).zip(after.get(cpu)).and_then(|(before, after)| {
            let all = after.0.checked_sub(before.0).filter(|all| *all > 0)?;
            let part = |later: u64, earlier: u64| (later.saturating_sub(earlier) as f64 / all as f64).min(1.0);
            Some((1.0 - part(after.1, before.1), part(after.2, before.2)))
        });
        Core { cpu: *cpu, busy: shares.map(|(busy, _)| busy), stolen: shares.map(|(_, stolen)| stolen) }
    };
    cores.iter().map(one).collect()
}

fn describe(options: &Options) -> String {
    let scope = &options.scope;
    let cores = options.cores.as_ref().map(|cores| cores.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
    cores.map_or_else(|| scope.to_string(), |cores| format!("{scope}, on cores {cores}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_and_stolen_shares_are_computed_for_each_core() {
        let before = HashMap::from([(0, (100, 50, 0)), (1, (100, 50, 0))]);
        let after = HashMap::from([(0, (200, 75, 10)), (1, (100, 50, 0))]);
        let cores = core_shares(&[0, 1, 2], &before, &after);
        assert_eq!((cores[0].busy, cores[0].stolen), (Some(0.75), Some(0.1)));
        assert_eq!((cores[1].busy, cores[2].busy), (None, None));
    }

    #[test]
    fn a_process_or_core_that_does_not_exist_is_an_error() {
        let options = |scope, cores| Options { scope, cores, frequency_hz: 99 };
        let error = Sampler::open(options(Scope::Processes(vec![u32::MAX]), None)).unwrap_err();
        assert!(error.to_string().contains("there is no process 4294967295"), "{error}");
        let error = Sampler::open(options(Scope::System, Some(vec![99_999]))).unwrap_err();
        assert!(matches!(error, Error::NoCore(99_999)), "{error}");
    }

    #[test]
    fn a_scope_is_described_in_words() {
        let options = Options { scope: Scope::Processes(vec![7, 8]), cores: Some(vec![0, 2]), frequency_hz: 99 };
        assert_eq!(describe(&options), "process 7, 8 and its children, on cores 0,2");
    }
}
