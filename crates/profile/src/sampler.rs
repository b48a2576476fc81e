//! The sampler: opens events for the whole machine, or thread by thread where it may do no more, and gathers until it is told to stop.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use perf_event_open_sys::bindings::perf_event_attr;

use crate::collector::{Collector, Wanted};
use crate::error::Error;
use crate::event::{self, Clock};
use crate::host;
use crate::profile::{Core, Profile, SCHEMA};
use crate::record::{self, Torn};
use crate::ring::{Ring, bytes_of_each};

/// Time between two looks at the rings where they do not fill up earlier.
const LOOK: Duration = Duration::from_millis(100);
/// Samples a second at most; beyond it a sample costs more than what it samples.
pub const FREQUENCY_HZ_MAX: u32 = 10_000;
/// CPU time for the mappings and unwind tables of the programs that run, for a sampler that spares, seconds.
pub const BEGIN_S: f64 = 0.06;
/// File descriptors left to the rest of the program.
const DESCRIPTORS_SPARE: u64 = 128;

/// What is sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything that runs.
    System,
    /// These processes and those below them, now and later.
    Processes(Vec<u32>),
    /// The processes in this cgroup or below it: its path in the hierarchy, or below /sys/fs/cgroup.
    Cgroup(String),
}

/// What to sample and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What is sampled.
    pub scope: Scope,
    /// On these cores alone.
    pub cores: Option<Vec<u32>>,
    /// Samples a second on each core, from 1 to `FREQUENCY_HZ_MAX`. 99 keeps clear of what runs a hundred times a second.
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
    /// Share of a core that this may take while it samples; nothing where wholeness comes first.
    share_max: Option<f64>,
}

/// The events of one way to open them.
struct Opened {
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
    /// Where the kernel refuses, with what it needs; where a process or core that was named does not exist.
    pub fn open(options: Options) -> Result<Self, Error> {
        let online = host::cores_online();
        let cores = match &options.cores {
            None => online,
            Some(wanted) => match wanted.iter().find(|core| !online.contains(core)) {
                Some(core) => return Err(Error::NoCore(*core)),
                None => wanted.clone(),
            },
        };
        let wanted = tree(&options.scope)?;
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
                "kernel functions are not in it: this user may sample programs only (CAP_PERFMON, or kernel.perf_event_paranoid 1)"
                    .to_owned(),
            );
        }
        if !event::USER_STACKS {
            notes.push("user stacks are not unwound on this kind of processor".to_owned());
        }
        let bytes = bytes_of_each(opened.leaders.len());
        let ring = |fd| Ring::map(fd, bytes).map_err(|error| Error::Io("the samples' buffer cannot be mapped".to_owned(), error));
        let rings = opened.leaders.iter().map(ring).collect::<Result<Vec<_>, _>>()?;
        gather(&opened.leaders, &opened.followers)?;
        let Opened { leaders, followers, cores, clock, .. } = opened;
        Ok(Self { options, clock, cores, rings, leaders, followers, wanted, notes, share_max: None })
    }

    /// While it samples it takes no more than this share of a core, beside [`BEGIN_S`] for the beginning: beyond that user stacks are left out until there
    /// is room again, and count as not walked. For a look at a busy machine that must not change what it looks at.
    #[must_use]
    pub fn sparing(mut self, share_max: f64) -> Self {
        self.share_max = Some(share_max);
        self
    }

    /// What makes the samples.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Samples for as long as `go_on` says so, which is asked ten times a second with the time since the beginning.
    ///
    /// # Errors
    /// Where the events cannot be started.
    pub fn run(mut self, mut go_on: impl FnMut(Duration) -> bool) -> Result<Profile, Error> {
        let cost_before = thread_cpu_s();
        let wanted = match &self.options.scope {
            Scope::System => Wanted::All,
            Scope::Processes(_) => Wanted::Processes(std::mem::take(&mut self.wanted)),
            Scope::Cgroup(path) => Wanted::Cgroup(path.clone(), HashMap::new()),
        };
        let mut collector = Collector::new(wanted, monotonic_ns());
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
            // What is spent is looked at before each sample that costs something.
            collector.unwind_until_cpu_s = share_max.map(|share| cost_before + BEGIN_S + share * begin.elapsed().as_secs_f64());
            drain(&mut self.rings, &mut buffers, &mut collector);
        }
        for fd in self.leaders.iter().chain(&self.followers) {
            // One that cannot be stopped is closed in a moment.
            let _ = event::disable(fd);
        }
        let duration = begin.elapsed();
        drain(&mut self.rings, &mut buffers, &mut collector);
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
            schema: SCHEMA.to_owned(),
            clock,
            notes,
            frequency_hz: options.frequency_hz,
            duration_s: duration.as_secs_f64(),
            scope: describe(&options),
            cores,
            lost,
            throttled,
            outside,
            cost_cpu_s: 0.0,
            frames: collected.frames,
            stacks: collected.stacks,
            threads: collected.threads,
            samples: collected.samples,
        };
        profile.classify();
        profile.cost_cpu_s = (thread_cpu_s() - cost_before).max(0.0);
        profile
    }
}

/// Copies what came out of all rings and takes it in the order of time.
fn drain(rings: &mut [Ring], buffers: &mut [Vec<u8>], collector: &mut Collector) {
    for (ring, buffer) in rings.iter_mut().zip(buffers.iter_mut()) {
        buffer.clear();
        if !ring.take(buffer) {
            collector.lost += 1;
        }
    }
    let mut records = Vec::new();
    for buffer in buffers.iter() {
        if record::parse(buffer, &mut records) == Torn(true) {
            collector.lost += 1;
        }
    }
    records.sort_by_key(|(time, _)| *time);
    for (time, record) in records {
        collector.take(time, record);
    }
}

/// Waits until a ring fills up or it is time to look.
pub(crate) fn wait(fds: &[OwnedFd]) {
    let mut polled: Vec<libc::pollfd> =
        fds.iter().map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }).collect();
    let count = libc::nfds_t::try_from(polled.len()).unwrap_or(0);
    // SAFETY: the array lives through the call and has as many entries as are said. An interrupted wait is a short one.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), count, i32::try_from(LOOK.as_millis()).unwrap_or(100)) };
    // An event whose thread is gone is ready for ever.
    if ready > 0 && polled.iter().any(|fd| fd.revents & (libc::POLLHUP | libc::POLLERR) != 0) {
        std::thread::sleep(LOOK / 4);
    }
}

/// The processes to sample, with all below them.
pub(crate) fn tree(scope: &Scope) -> Result<HashSet<u32>, Error> {
    let Scope::Processes(roots) = scope else { return Ok(HashSet::new()) };
    let parents = host::parents();
    if let Some(missing) = roots.iter().find(|pid| !parents.contains_key(pid)) {
        return Err(Error::NoProcess(missing.to_string()));
    }
    let mut wanted: HashSet<u32> = roots.iter().copied().collect();
    loop {
        let below: Vec<u32> =
            parents.iter().filter(|(pid, parent)| wanted.contains(parent) && !wanted.contains(pid)).map(|(pid, _)| *pid).collect();
        if below.is_empty() {
            return Ok(wanted);
        }
        wanted.extend(below);
    }
}

/// Opens the best events that this user and machine allow.
fn open_events(options: &Options, cores: &[u32], wanted: &HashSet<u32>, notes: &mut Vec<String>) -> Result<Opened, Error> {
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
                return Ok(Opened { leaders, followers: Vec::new(), cores, clock, kernel: true });
            }
            Err(error) if is_refusal(&error) => refused = Some(error),
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let Some(error) = refused else { return Err(Error::Unsupported(io::Error::from_raw_os_error(libc::ENOENT))) };
    match &options.scope {
        Scope::Processes(_) => open_threads(options, cores, wanted, bytes),
        Scope::System => Err(privilege("sampling the whole machine", &error)),
        Scope::Cgroup(_) => Err(privilege("sampling a cgroup", &error)),
    }
}

/// One event for each thread on each core; new threads and children are followed by the kernel.
fn open_threads(options: &Options, cores: &[u32], wanted: &HashSet<u32>, bytes: usize) -> Result<Opened, Error> {
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
            Err(error) => return Err(failed(error)),
            Ok((leaders, _)) if leaders.is_empty() => return Err(Error::NoProcess(describe(options))),
            Ok((leaders, followers)) => return Ok(Opened { leaders, followers, cores: cores.to_vec(), clock, kernel }),
        }
    }
    if is_refusal(&last) { Err(privilege("sampling these processes", &last)) } else { Err(Error::Unsupported(last)) }
}

/// An event for each of these threads on each core: those of the first, whose rings the others share once [`gather`] was called, and the others. None where
/// all threads are gone.
pub(crate) fn open_followed(attr: &perf_event_attr, threads: &[u32], cores: &[u32]) -> io::Result<(Vec<OwnedFd>, Vec<OwnedFd>)> {
    let (mut leaders, mut followers) = (Vec::new(), Vec::new());
    for thread in threads {
        let Ok(pid) = i32::try_from(*thread) else { continue };
        match open_cores(attr, pid, cores) {
            Ok(found) if leaders.is_empty() => leaders = found.into_iter().map(|(_, fd)| fd).collect(),
            // Redirecting goes by core, which takes an event on each of them.
            Ok(found) if found.len() == leaders.len() => followers.extend(found.into_iter().map(|(_, fd)| fd)),
            Ok(_) => {}
            // The thread is gone.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((leaders, followers))
}

/// Sends what the followers see to the rings of the leaders, which must be mapped already.
pub(crate) fn gather(leaders: &[OwnedFd], followers: &[OwnedFd]) -> Result<(), Error> {
    for (index, follower) in followers.iter().enumerate() {
        let leader = &leaders[index % leaders.len()];
        event::redirect(follower, leader).map_err(|error| Error::Io("samples cannot be gathered".to_owned(), error))?;
    }
    Ok(())
}

/// An event for a thread (-1: all) on each core; a core that went offline is left out.
pub(crate) fn open_cores(attr: &perf_event_attr, pid: i32, cores: &[u32]) -> io::Result<Vec<(u32, OwnedFd)>> {
    let mut found = Vec::new();
    for core in cores {
        match event::open(attr, pid, *core) {
            Ok(fd) => found.push((*core, fd)),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) && cores.len() > 1 => {}
            Err(error) => return Err(error),
        }
    }
    if found.is_empty() { Err(io::Error::from_raw_os_error(libc::ENODEV)) } else { Ok(found) }
}

pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// There is no such counter here, or it can do no sampling.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO | libc::EINVAL))
}

fn failed(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => Error::Unsupported(error),
        _ => Error::Io("perf_event_open".to_owned(), error),
    }
}

pub(crate) fn privilege(what: &str, error: &io::Error) -> Error {
    let level = host::text("/proc/sys/kernel/perf_event_paranoid").and_then(|text| text.trim().parse::<i32>().ok());
    let level = level.map_or_else(|| "unknown".to_owned(), |level| level.to_string());
    let hint = format!(
        "run it as root, or give the program the capability (setcap cap_perfmon,cap_sys_ptrace,cap_syslog+ep); \
         kernel.perf_event_paranoid is {level} here, and the kernel says \"{error}\""
    );
    Error::Privilege { what: what.to_owned(), needs: "CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8)", hint }
}

/// Raises the soft limit of descriptors to the hard one, and says how many there are.
pub(crate) fn raise_descriptors() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a structure that lives through them.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return 0;
        }
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) == 0 { raised.rlim_cur } else { limit.rlim_cur }
    }
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
    let scope = describe_scope(&options.scope);
    let cores = options.cores.as_ref().map(|cores| cores.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
    cores.map_or(scope.clone(), |cores| format!("{scope}, on cores {cores}"))
}

/// What is looked at, in words.
pub(crate) fn describe_scope(scope: &Scope) -> String {
    match scope {
        Scope::System => "all processes".to_owned(),
        Scope::Processes(pids) => {
            let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
            format!("process {} and what it started", pids.join(", "))
        }
        Scope::Cgroup(path) => format!("cgroup {path}"),
    }
}

pub(crate) fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time of this thread, seconds.
pub(crate) fn thread_cpu_s() -> f64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID) as f64 / 1e9
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives through the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_cores() {
        let before = HashMap::from([(0, (100, 50, 0)), (1, (100, 50, 0))]);
        let after = HashMap::from([(0, (200, 75, 10)), (1, (100, 50, 0))]);
        let cores = core_shares(&[0, 1, 2], &before, &after);
        assert_eq!((cores[0].busy, cores[0].stolen), (Some(0.75), Some(0.1)));
        assert_eq!((cores[1].busy, cores[2].busy), (None, None));
    }

    #[test]
    fn what_does_not_exist_is_said() {
        let options = |scope, cores| Options { scope, cores, frequency_hz: 99 };
        let error = Sampler::open(options(Scope::Processes(vec![u32::MAX]), None)).unwrap_err();
        assert!(error.to_string().contains("there is no process 4294967295"), "{error}");
        let error = Sampler::open(options(Scope::System, Some(vec![99_999]))).unwrap_err();
        assert!(matches!(error, Error::NoCore(99_999)), "{error}");
    }

    #[test]
    fn scopes_in_words() {
        let options = Options { scope: Scope::Processes(vec![7, 8]), cores: Some(vec![0, 2]), frequency_hz: 99 };
        assert_eq!(describe(&options), "process 7, 8 and what it started, on cores 0,2");
    }
}
