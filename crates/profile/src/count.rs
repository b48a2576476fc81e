//! Counts how often something happens by perf_event_open(2), for a few seconds and thread by thread, and what counting costs. Nothing remains: the
//! kernel takes a probe back with its last descriptor, however this program ends.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use perf_event_open_sys as sys;
use perf_event_open_sys::bindings as b;
use serde::Serialize;

use crate::calibrate::{self, Cost};
use crate::error::Error;
use crate::event;
use crate::host;
use crate::probe::{Event, Kernel, Mechanism, What};
use crate::sampler::{Scope, describe_scope, is_refusal, privilege, raise_descriptors, tree};

/// Name and version of the form of [`Counts`] as JSON.
pub const COUNTS_SCHEMA: &str = "chokepoint/counts/1";
/// Threads at most that a probe is set for. Each is one more that the kernel goes through at every call, about a microsecond here.
const PROBED_THREADS_MAX: usize = 16;
/// Descriptors left to the rest of the program.
const DESCRIPTORS_SPARE: usize = 128;
/// Time between two looks at whether to go on.
const LOOK: Duration = Duration::from_millis(50);
/// Time over which threads are held against each other where there are too many to probe.
const BUSY_LOOK: Duration = Duration::from_millis(100);

/// What was counted in one program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramCount {
    /// The name of its process.
    pub program: String,
    /// Processes in which it happened.
    pub processes: usize,
    /// How often, scaled where the processor had fewer counters than were asked for.
    pub count: u64,
    /// A second.
    pub per_s: f64,
    /// A request, where the rate of requests is known.
    pub per_request: Option<f64>,
    /// Share of the program's CPU time that the probe itself took: calls times cost; none where the cost or the time is not known.
    pub probe_share: Option<f64>,
}

/// One thing that was counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Count {
    /// As it was asked for.
    pub what: String,
    /// By which means.
    pub how: String,
    /// What counting it once costs, nanoseconds: median of pairs with and without on an own function; none where that is too little to tell, or there is
    /// no probe.
    pub cost_ns: Option<f64>,
    /// Its smallest and largest pair.
    pub cost_range_ns: Option<(f64, f64)>,
    /// By program, the most first.
    pub programs: Vec<ProgramCount>,
    /// What it does not cover, in sentences.
    pub notes: Vec<String>,
}

/// All that was counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counts {
    /// `COUNTS_SCHEMA`.
    pub schema: &'static str,
    /// What was looked at, in words.
    pub scope: String,
    /// For how long, seconds.
    pub duration_s: f64,
    /// Good answers or requests a second, where known.
    pub requests_per_s: Option<f64>,
    /// What was counted, in the order asked for.
    pub counts: Vec<Count>,
    /// What was not, with the reason.
    pub not_counted: Vec<(String, String)>,
    /// What this kernel lacks for counting, in sentences.
    pub lacking: Vec<String>,
}

/// A thread that may be counted in.
#[derive(Debug, Clone)]
struct Thread {
    pid: u32,
    tid: u32,
    program: String,
}

/// An open event of one thread.
#[derive(Debug)]
struct Opened {
    fd: OwnedFd,
    /// Index into the threads.
    thread: usize,
}

/// Something with its open events.
#[derive(Debug)]
struct Counter {
    what: String,
    how: String,
    cost: Option<Cost>,
    opened: Vec<Opened>,
    notes: Vec<String>,
}

/// Events that are open and do not count yet.
#[derive(Debug)]
pub struct Counting {
    scope: String,
    threads: Vec<Thread>,
    counters: Vec<Counter>,
    clocks: Vec<Opened>,
    not_counted: Vec<(String, String)>,
    lacking: Vec<String>,
}

impl Counting {
    /// Opens what was asked for in the threads of the processes asked for, and measures what counting costs.
    ///
    /// # Errors
    /// Where there is no such process, or this user may count nothing at all. What cannot be counted alone is told in the result.
    pub fn open(scope: &Scope, wanted: &[What]) -> Result<Self, Error> {
        let kernel = Kernel::look();
        let threads = threads_of(scope)?;
        let mut counting = Self {
            scope: describe_scope(scope),
            counters: Vec::new(),
            clocks: Vec::new(),
            not_counted: Vec::new(),
            lacking: kernel.lacking(),
            threads,
        };
        let mut room = usize::try_from(raise_descriptors()).unwrap_or(usize::MAX).saturating_sub(DESCRIPTORS_SPARE);
        let all: Vec<usize> = (0..counting.threads.len()).collect();
        let clock = software_clock();
        counting.clocks = counting.open_in(&clock, &all, &mut room).map_err(|error| match error {
            Refused::Kernel(error) if is_refusal(&error) => privilege("counting in these processes", &error),
            Refused::Kernel(error) => Error::Io("perf_event_open".to_owned(), error),
            Refused::Room(needed) => too_many(counting.threads.len(), needed),
        })?;
        let pids: Vec<u32> = counting.pids();
        for what in wanted {
            if let Err(why) = counting.add(&kernel, what, &pids, &mut room) {
                counting.not_counted.push((what.to_string(), why));
            }
        }
        Ok(counting)
    }

    fn pids(&self) -> Vec<u32> {
        let mut pids: Vec<u32> = self.threads.iter().map(|thread| thread.pid).collect();
        pids.dedup();
        pids
    }

    fn add(&mut self, kernel: &Kernel, what: &What, pids: &[u32], room: &mut usize) -> Result<(), String> {
        let source = kernel.resolve(what, pids)?;
        let (mut opened, mut notes, mut consumers) = (Vec::new(), Vec::new(), 0);
        for event in &source.events {
            let inside = |thread: &Thread| event.pids.as_ref().is_none_or(|pids| pids.contains(&thread.pid));
            let mut chosen: Vec<usize> = (0..self.threads.len()).filter(|index| inside(&self.threads[*index])).collect();
            if event.probe.is_some() && chosen.len() > PROBED_THREADS_MAX {
                let all = chosen.len();
                chosen = self.busiest(&chosen);
                notes.push(format!("only in the {PROBED_THREADS_MAX} busiest of {all} threads: each more makes every call dearer"));
            }
            let found = self.open_in(event, &chosen, room).map_err(|refused| match refused {
                Refused::Kernel(error) => refusal(source.mechanism, &error),
                Refused::Room(needed) => too_many(chosen.len(), needed).to_string(),
            })?;
            consumers = consumers.max(chosen.len());
            opened.extend(found);
        }
        if matches!(source.mechanism, Mechanism::Uprobe | Mechanism::Kprobe) {
            notes.push("not in threads and processes that started meanwhile".to_owned());
        }
        let cost = calibrate::cost(source.mechanism, kernel, &source.events, consumers);
        self.counters.push(Counter { what: what.to_string(), how: source.how, cost, opened, notes });
        Ok(())
    }

    /// Opens an event in threads; those that are gone meanwhile are left out.
    fn open_in(&self, event: &Event, chosen: &[usize], room: &mut usize) -> Result<Vec<Opened>, Refused> {
        if chosen.len() > *room {
            return Err(Refused::Room(chosen.len()));
        }
        let mut opened = Vec::with_capacity(chosen.len());
        for index in chosen {
            match open(event, self.threads[*index].tid) {
                Ok(fd) => opened.push(Opened { fd, thread: *index }),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(Refused::Kernel(error)),
            }
        }
        *room -= opened.len();
        Ok(opened)
    }

    /// The threads that ran most in a moment.
    fn busiest(&self, chosen: &[usize]) -> Vec<usize> {
        let run = |index: &usize| host::thread_run_ns(self.threads[*index].pid, self.threads[*index].tid).unwrap_or(0);
        let before: Vec<u64> = chosen.iter().map(run).collect();
        std::thread::sleep(BUSY_LOOK);
        let mut ran: Vec<(u64, usize)> =
            chosen.iter().zip(before).map(|(index, before)| (run(index).saturating_sub(before), *index)).collect();
        ran.sort_by_key(|(ran, index)| (std::cmp::Reverse(*ran), *index));
        ran.into_iter().take(PROBED_THREADS_MAX).map(|(_, index)| index).collect()
    }

    /// Counts for as long as `go_on` says so, which is asked twenty times a second; then everything is taken back. `requests_per_s` is asked for at the end.
    ///
    /// # Errors
    /// Where the events cannot be started.
    pub fn run(
        self,
        mut go_on: impl FnMut(Duration) -> bool,
        requests_per_s: impl FnOnce(Duration) -> Option<f64>,
    ) -> Result<Counts, Error> {
        let opened = || self.counters.iter().flat_map(|counter| &counter.opened).chain(&self.clocks);
        for opened in opened() {
            event::enable(&opened.fd).map_err(|error| Error::Io("counting cannot be started".to_owned(), error))?;
        }
        let begin = Instant::now();
        while go_on(begin.elapsed()) {
            std::thread::sleep(LOOK);
        }
        for opened in opened() {
            // One that cannot be stopped is closed in a moment.
            let _ = event::disable(&opened.fd);
        }
        let duration = begin.elapsed();
        let requests = requests_per_s(duration).filter(|rate| *rate > 0.0);
        let mut clock: BTreeMap<&str, u64> = BTreeMap::new();
        for opened in &self.clocks {
            let time = clock.entry(&self.threads[opened.thread].program).or_default();
            *time = time.saturating_add(read(&opened.fd));
        }
        let counts = self.counters.iter().map(|counter| self.count(counter, duration, requests, &clock)).collect();
        Ok(Counts {
            schema: COUNTS_SCHEMA,
            scope: self.scope.clone(),
            duration_s: duration.as_secs_f64(),
            requests_per_s: requests,
            counts,
            not_counted: self.not_counted.clone(),
            lacking: self.lacking.clone(),
        })
    }

    fn count(&self, counter: &Counter, duration: Duration, requests: Option<f64>, clock: &BTreeMap<&str, u64>) -> Count {
        let mut programs: BTreeMap<&str, (u64, HashSet<u32>)> = BTreeMap::new();
        for opened in &counter.opened {
            let thread = &self.threads[opened.thread];
            let count = read(&opened.fd);
            let (sum, pids) = programs.entry(&thread.program).or_default();
            *sum = sum.saturating_add(count);
            if count > 0 {
                pids.insert(thread.pid);
            }
        }
        let cost_ns = counter.cost.map(|cost| cost.median_ns);
        let seconds = duration.as_secs_f64().max(1e-9);
        let mut programs: Vec<ProgramCount> = (programs.into_iter())
            .filter(|(_, (count, _))| *count > 0)
            .map(|(program, (count, pids))| {
                let per_s = count as f64 / seconds;
                let time = clock.get(program).copied().filter(|time| *time > 0);
                ProgramCount {
                    program: program.to_owned(),
                    processes: pids.len(),
                    count,
                    per_s,
                    per_request: requests.map(|rate| per_s / rate),
                    probe_share: cost_ns.zip(time).map(|(cost, time)| (count as f64 * cost / time as f64).min(1.0)),
                }
            })
            .collect();
        programs.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.program.cmp(&b.program)));
        Count {
            what: counter.what.clone(),
            how: counter.how.clone(),
            cost_ns,
            cost_range_ns: counter.cost.map(|cost| (cost.low_ns, cost.high_ns)),
            programs,
            notes: counter.notes.clone(),
        }
    }
}

/// Why events were not opened.
enum Refused {
    Kernel(io::Error),
    /// So many descriptors would have been needed.
    Room(usize),
}

fn too_many(threads: usize, needed: usize) -> Error {
    Error::TooManyThreads { threads, cores: 1, needed, limit: raise_descriptors() }
}

fn refusal(mechanism: Mechanism, error: &io::Error) -> String {
    let what = match mechanism {
        Mechanism::Tracepoint => "tracepoints",
        Mechanism::Uprobe => "uprobes",
        Mechanism::Kprobe => "kprobes",
        Mechanism::Counter => "this counter",
    };
    if is_refusal(error) {
        return format!("the kernel refuses {what} to this user ({error}): it takes CAP_PERFMON, and access to the file for uprobes");
    }
    if mechanism == Mechanism::Counter {
        return format!("this processor does not count it ({error})");
    }
    format!("the kernel refuses this one of its {what}: {error}")
}

/// The threads of the programs in the scope; threads of the kernel are left out.
fn threads_of(scope: &Scope) -> Result<Vec<Thread>, Error> {
    let mut pids: Vec<u32> = match scope {
        Scope::Processes(_) => tree(scope)?.into_iter().collect(),
        Scope::System => host::parents().into_keys().collect(),
        Scope::Cgroup(path) => host::parents().into_keys().filter(|pid| host::in_cgroup(*pid, path)).collect(),
    };
    pids.retain(|pid| !host::is_kernel_thread(*pid) && (*pid != std::process::id() || matches!(scope, Scope::Processes(_))));
    pids.sort_unstable();
    let mut threads = Vec::new();
    for pid in pids {
        let program = host::comm(pid, pid).unwrap_or_else(|| pid.to_string());
        threads.extend(host::threads(pid).into_iter().map(|tid| Thread { pid, tid, program: program.clone() }));
    }
    if threads.is_empty() {
        return Err(Error::NoProcess(format!("in {}", describe_scope(scope))));
    }
    Ok(threads)
}

fn software_clock() -> Event {
    let config = u64::from(b::PERF_COUNT_SW_TASK_CLOCK);
    Event { kind: b::PERF_TYPE_SOFTWARE, config, probe: None, stepped: false, filter: None, pids: None }
}

/// Opens an event of a thread wherever it runs. What a program starts is counted with it, but for probes: the kernel would make each anew in whoever
/// starts it, which may not be allowed to and would then fail to start anything.
pub(crate) fn open(event: &Event, tid: u32) -> io::Result<OwnedFd> {
    let mut attr = b::perf_event_attr {
        size: u32::try_from(size_of::<b::perf_event_attr>()).unwrap_or(0),
        type_: event.kind,
        config: event.config,
        read_format: u64::from(b::PERF_FORMAT_TOTAL_TIME_ENABLED | b::PERF_FORMAT_TOTAL_TIME_RUNNING),
        ..Default::default()
    };
    attr.set_disabled(1);
    attr.set_inherit(u64::from(event.probe.is_none()));
    if let Some((place, offset)) = &event.probe {
        attr.__bindgen_anon_3.config1 = place.as_ptr() as u64;
        attr.__bindgen_anon_4.config2 = *offset;
    }
    let fd = event::open_anywhere(&attr, i32::try_from(tid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?)?;
    if let Some(filter) = &event.filter {
        // SAFETY: the descriptor is an open perf event; the string ends with NUL and outlives the call, which copies it.
        if unsafe { sys::ioctls::SET_FILTER(fd.as_raw_fd(), filter.as_ptr().cast_mut()) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(fd)
}

/// What an event counted, scaled where it could not count all the time; nothing where it cannot be read.
pub(crate) fn read(fd: &OwnedFd) -> u64 {
    let mut words = [0_u64; 3];
    // SAFETY: the kernel writes at most the size that is said into `words`, which lives through the call.
    let read = unsafe { libc::read(fd.as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(&words)) };
    if usize::try_from(read) == Ok(size_of_val(&words)) { scaled(words) } else { 0 }
}

/// Count, time enabled, time running.
fn scaled([count, enabled, running]: [u64; 3]) -> u64 {
    if running == 0 || running >= enabled {
        return if running == 0 { 0 } else { count };
    }
    u64::try_from(u128::from(count) * u128::from(enabled) / u128::from(running)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_shared_the_processor_are_scaled() {
        assert_eq!(scaled([10, 100, 100]), 10);
        assert_eq!(scaled([10, 100, 50]), 20);
        assert_eq!(scaled([10, 100, 0]), 0);
        assert_eq!(scaled([u64::MAX, u64::MAX, 1]), u64::MAX);
    }

    #[test]
    fn processes_that_are_not_there_are_said() {
        let error = Counting::open(&Scope::Processes(vec![u32::MAX]), &[]).unwrap_err();
        assert!(error.to_string().contains("there is no process 4294967295"), "{error}");
        let error = Counting::open(&Scope::Cgroup("/no/such/group".to_owned()), &[]).unwrap_err();
        assert!(error.to_string().contains("cgroup /no/such/group"), "{error}");
    }
}
