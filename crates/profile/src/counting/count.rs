//! Counts how often something happens with perf_event_open(2), for a few seconds and for each thread, and measures what counting costs. Nothing remains
//! behind: the kernel removes a probe with its last descriptor, however this program ends.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use perf_event_open_sys::bindings as b;
use serde::Serialize;

use crate::counting::calibrate::{self, Cost};
use crate::counting::counter;
use crate::counting::probe::{Event, Kernel, Mechanism, What};
use crate::error::Error;
use crate::host::{self, DESCRIPTORS_SPARE, raise_descriptors};
use crate::sampling::event::{self, is_refusal, privilege};
use crate::sampling::scope::Scope;

/// Name and version of the JSON form of [`Counts`].
pub const COUNTS_SCHEMA: &str = "chokepoint/counts/1";
/// Maximum number of threads with a probe. Each one adds about a microsecond to every call on the machine at hand.
const PROBED_THREADS_MAX: usize = 16;
/// Time between two calls of `go_on`.
const GO_ON_EVERY: Duration = Duration::from_millis(50);
/// Time over which threads are compared if there are too many to probe.
const BUSY_TIME: Duration = Duration::from_millis(100);

/// The count of one program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramCount {
    /// Name of its processes.
    pub program: String,
    /// Processes in which it happened.
    pub processes: usize,
    /// Calls, scaled if the processor had too few counters.
    pub count: u64,
    /// Calls a second.
    pub per_s: f64,
    /// Calls a request, if the rate of requests is known.
    pub per_request: Option<f64>,
    /// Share of the program's CPU time that the probe itself took: calls times cost; none if the cost or the time is unknown.
    pub probe_share: Option<f64>,
}

/// The counts of one thing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Count {
    /// The name that was asked for.
    pub what: String,
    /// How it was counted.
    pub how: String,
    /// Cost of counting one call, nanoseconds: the median of pairs with and without the probe on one of our own functions; none if it is too small to measure
    /// or there is no probe.
    pub cost_ns: Option<f64>,
    /// The smallest and largest pair.
    pub cost_range_ns: Option<(f64, f64)>,
    /// By program, highest count first.
    pub programs: Vec<ProgramCount>,
    /// What the count does not cover, in sentences.
    pub notes: Vec<String>,
}

/// The result of counting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counts {
    /// `COUNTS_SCHEMA`.
    pub schema: &'static str,
    /// What was observed, in words.
    pub scope: String,
    /// Time counted, seconds.
    pub duration_s: f64,
    /// Good answers or requests a second, if known.
    pub requests_per_s: Option<f64>,
    /// The counts, in the order asked for.
    pub counts: Vec<Count>,
    /// What was not counted, with the reason.
    pub not_counted: Vec<(String, String)>,
    /// What this kernel lacks for counting, in sentences.
    pub lacking: Vec<String>,
}

/// A thread to count in.
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
    /// True if it counts from its opening on.
    counts: bool,
}

/// What events counted until counting began, by their descriptors.
type Beginnings = HashMap<RawFd, counter::Words>;

/// Something to count, with its open events.
#[derive(Debug)]
struct Counter {
    what: String,
    how: String,
    cost: Option<Cost>,
    opened: Vec<Opened>,
    notes: Vec<String>,
}

/// Open events that do not count yet.
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
    /// Opens the wanted events in the threads of the scope, and measures what counting costs.
    ///
    /// # Errors
    /// If there is no such process, or this user may not count anything. A single thing that cannot be counted is listed in the result.
    pub fn open(scope: &Scope, wanted: &[What]) -> Result<Self, Error> {
        let kernel = Kernel::read();
        let threads = threads_of(scope)?;
        let mut counting = Self {
            scope: scope.to_string(),
            counters: Vec::new(),
            clocks: Vec::new(),
            not_counted: Vec::new(),
            lacking: kernel.lacking(),
            threads,
        };
        let mut room = usize::try_from(raise_descriptors().saturating_sub(DESCRIPTORS_SPARE)).unwrap_or(usize::MAX);
        let all: Vec<usize> = (0..counting.threads.len()).collect();
        let clock = software_clock();
        counting.clocks = counting.open_in(&clock, &all, &mut room).map_err(|error| match error {
            OpenError::Kernel(error) if is_refusal(&error) => privilege("counting in these processes", &error),
            OpenError::Kernel(error) => Error::Io("perf_event_open".to_owned(), error),
            OpenError::Descriptors(needed) => too_many(counting.threads.len(), needed),
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
                notes.push(format!(
                    "only in the {PROBED_THREADS_MAX} busiest of {all} threads: each further one would slow down every call"
                ));
            }
            let found = self.open_in(event, &chosen, room).map_err(|refused| match refused {
                OpenError::Kernel(error) => describe_refusal(source.mechanism, &error),
                OpenError::Descriptors(needed) => too_many(chosen.len(), needed).to_string(),
            })?;
            consumers = consumers.max(chosen.len());
            opened.extend(found);
        }
        if matches!(source.mechanism, Mechanism::Uprobe | Mechanism::Kprobe) {
            notes.push("not in threads and processes that started during the count".to_owned());
        }
        let cost = calibrate::cost(source.mechanism, kernel, &source.events, consumers);
        self.counters.push(Counter { what: what.to_string(), how: source.how, cost, opened, notes });
        Ok(())
    }

    /// Opens an event in threads. Threads that have ended are skipped.
    fn open_in(&self, event: &Event, chosen: &[usize], room: &mut usize) -> Result<Vec<Opened>, OpenError> {
        if chosen.len() > *room {
            return Err(OpenError::Descriptors(chosen.len()));
        }
        let mut opened = Vec::with_capacity(chosen.len());
        for index in chosen {
            match counter::open(event, self.threads[*index].tid) {
                Ok(fd) => opened.push(Opened { fd, thread: *index, counts: counter::is_inherited(event) }),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(OpenError::Kernel(error)),
            }
        }
        *room -= opened.len();
        Ok(opened)
    }

    /// The threads that used most CPU time during a short interval.
    fn busiest(&self, chosen: &[usize]) -> Vec<usize> {
        let run = |index: &usize| host::thread_run_ns(self.threads[*index].pid, self.threads[*index].tid).unwrap_or(0);
        let before: Vec<u64> = chosen.iter().map(run).collect();
        std::thread::sleep(BUSY_TIME);
        let mut ran: Vec<(u64, usize)> =
            chosen.iter().zip(before).map(|(index, before)| (run(index).saturating_sub(before), *index)).collect();
        ran.sort_by_key(|(ran, index)| (std::cmp::Reverse(*ran), *index));
        ran.into_iter().take(PROBED_THREADS_MAX).map(|(_, index)| index).collect()
    }

    /// Counts while `go_on` returns true; it is called twenty times a second. Then all probes are removed. `requests_per_s` is called at the end.
    ///
    /// # Errors
    /// If the events cannot be started.
    pub fn run(
        self,
        mut go_on: impl FnMut(Duration) -> bool,
        requests_per_s: impl FnOnce(Duration) -> Option<f64>,
    ) -> Result<Counts, Error> {
        let opened = || self.counters.iter().flat_map(|counter| &counter.opened).chain(&self.clocks);
        for opened in opened().filter(|opened| !opened.counts) {
            event::enable(&opened.fd).map_err(|error| Error::Io("counting cannot be started".to_owned(), error))?;
        }
        let beginnings: Beginnings = opened().map(|opened| (opened.fd.as_raw_fd(), counter::read(&opened.fd))).collect();
        let begin = Instant::now();
        while go_on(begin.elapsed()) {
            std::thread::sleep(GO_ON_EVERY);
        }
        for opened in opened() {
            // An event that cannot be stopped is closed in a moment anyway.
            let _ = event::disable(&opened.fd);
        }
        let duration = begin.elapsed();
        let requests = requests_per_s(duration).filter(|rate| *rate > 0.0);
        let mut clock: BTreeMap<&str, u64> = BTreeMap::new();
        for opened in &self.clocks {
            let time = clock.entry(&self.threads[opened.thread].program).or_default();
            *time = time.saturating_add(counted(opened, &beginnings));
        }
        let counts = self.counters.iter().map(|counter| self.count(counter, duration, requests, (&clock, &beginnings))).collect();
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

    fn count(
        &self,
        counter: &Counter,
        duration: Duration,
        requests: Option<f64>,
        (clock, beginnings): (&BTreeMap<&str, u64>, &Beginnings),
    ) -> Count {
        let mut programs: BTreeMap<&str, (u64, HashSet<u32>)> = BTreeMap::new();
        for opened in &counter.opened {
            let thread = &self.threads[opened.thread];
            let count = counted(opened, beginnings);
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

/// What an event counted since counting began.
fn counted(opened: &Opened, beginnings: &Beginnings) -> u64 {
    counter::counted(beginnings.get(&opened.fd.as_raw_fd()).copied().unwrap_or_default(), counter::read(&opened.fd))
}

/// Why events could not be opened.
enum OpenError {
    Kernel(io::Error),
    /// This many descriptors would have been needed.
    Descriptors(usize),
}

fn too_many(threads: usize, needed: usize) -> Error {
    Error::TooManyThreads { threads, cores: 1, needed, limit: raise_descriptors() }
}

fn describe_refusal(mechanism: Mechanism, error: &io::Error) -> String {
    let what = match mechanism {
        Mechanism::Tracepoint => "tracepoints",
        Mechanism::Uprobe => "uprobes",
        Mechanism::Kprobe => "kprobes",
        Mechanism::Counter => "this counter",
    };
    if is_refusal(error) {
        return format!("this user may not use {what} ({error}): that needs CAP_PERFMON, and for uprobes read access to the file");
    }
    if mechanism == Mechanism::Counter {
        return format!("this processor does not support the counter ({error})");
    }
    format!("the kernel refuses this {what}: {error}")
}

/// The threads of the scope's programs, without kernel threads.
fn threads_of(scope: &Scope) -> Result<Vec<Thread>, Error> {
    let mut pids: Vec<u32> = match scope {
        Scope::Processes(_) => scope.processes()?.into_iter().collect(),
        Scope::System => host::parents().into_keys().collect(),
        Scope::Cgroup(path) if !host::is_cgroup(path) => return Err(Error::NoCgroup(path.clone())),
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
        return Err(Error::NoProcess(format!("in {scope}")));
    }
    Ok(threads)
}

fn software_clock() -> Event {
    let config = u64::from(b::PERF_COUNT_SW_TASK_CLOCK);
    Event { kind: b::PERF_TYPE_SOFTWARE, config, probe: None, is_single_stepped: false, filter: None, pids: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_without_processes_is_an_error() {
        let error = Counting::open(&Scope::Processes(vec![u32::MAX]), &[]).unwrap_err();
        assert!(error.to_string().contains("there is no process 4294967295"), "{error}");
        let error = Counting::open(&Scope::Cgroup("/no/such/group".to_owned()), &[]).unwrap_err();
        assert!(error.to_string().contains("cgroup /no/such/group"), "{error}");
    }
}
