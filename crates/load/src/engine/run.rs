//! Running a plan: the threads, what stops them early, and the result.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Scope;
use std::time::Duration;

use chokepoint_model::load::{LoadResult, Loop, Measured};

use crate::engine::control::Control;
use crate::engine::shared::{Clock, Shared, lock};
use crate::engine::{Engine, ThreadResult};
use crate::host;
use crate::host::address::Address;
use crate::host::bind;
use crate::host::files;
use crate::limits::guard::Tripped;
use crate::plan::{Plan, PlanError};
use crate::results::tally::{self, SLICE_NS};

/// How often the caller's thread looks for a stop and, at each tenth of a second, at the guards.
const WATCH_EVERY: Duration = Duration::from_millis(20);
/// The threads start this long after the last is ready, so that an open loop's first requests are not late.
const START_AFTER: Duration = Duration::from_millis(1);

/// Why a load could not be run. What happens to its requests is no error but counted.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan makes no sense.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The connections do not fit into the hard limit on file descriptors. `threads`: those that share them, each with a table of its own.
    #[error(
        "{connections} connections on {threads} threads need {needed} file descriptors a thread, but {limit} is the limit (RLIMIT_NOFILE); use fewer connections or more threads, or raise the hard limit (ulimit -Hn)"
    )]
    #[allow(missing_docs)]
    Files { connections: u32, threads: u32, needed: u64, limit: u64 },
    /// TLS cannot be spoken as it was asked for.
    #[error("TLS: {0}")]
    Tls(String),
    /// The network namespace could not be opened or entered.
    #[error("cannot send from network namespace {}: {source}{}", path.display(), netns_hint(source))]
    #[allow(missing_docs)]
    Netns { path: PathBuf, source: io::Error },
    /// The threads could not be bound to the cores.
    #[error("cannot run on cores {cpus:?}: {source}")]
    #[allow(missing_docs)]
    Cpus { cpus: Vec<u32>, source: io::Error },
    /// Connections cannot come from the address that was given.
    #[error("cannot connect from {address}: {source}{}", bind_hint(source))]
    #[allow(missing_docs)]
    Bind { address: IpAddr, source: io::Error },
    /// A thread could not be started, or not wait for its sockets (epoll).
    #[error("cannot run the load towards {address}: {source}")]
    #[allow(missing_docs)]
    Thread { address: Address, source: io::Error },
}

fn netns_hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => " (entering it needs CAP_SYS_ADMIN, which root has)",
        Some(libc::EINVAL) => " (it is no network namespace)",
        _ => "",
    }
}

fn bind_hint(error: &io::Error) -> &'static str {
    if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) { " (it is none of this host's, or not in this network namespace)" } else { "" }
}

/// What a thread tells the caller's.
enum Said {
    Ready(Result<(), LoadError>),
    Done(Result<Box<ThreadResult>, LoadError>),
}

/// Offers the load and waits for its end. Blocks the caller; others stop it through `control`.
///
/// The soft RLIMIT_NOFILE of the process is raised to the hard one where the connections need it, and stays so.
pub fn run(plan: &Plan, control: &Control) -> Result<LoadResult, LoadError> {
    measure(plan, control).map(|measured| measured.result)
}

/// As [`run`], with what a report on the load itself asks for.
pub fn measure(plan: &Plan, control: &Control) -> Result<Measured, LoadError> {
    plan.check()?;
    let threads = plan.threads.min(plan.connections());
    // The limit is that of a table, and each thread has one; where it cannot have, all share one.
    let tables = if files::can_be_own() { threads } else { 1 };
    let needed = u64::from(share_of(plan.connections(), 0, tables)) + host::FILES_BESIDE + u64::from(threads);
    host::allow_files(needed).map_err(|limit| LoadError::Files { connections: plan.connections(), threads: tables, needed, limit })?;
    let netns = match &plan.netns {
        Some(path) => Some(File::open(path).map_err(|source| LoadError::Netns { path: path.clone(), source })?),
        None => None,
    };
    let shared = Shared::new(plan, control, threads).map_err(LoadError::Tls)?;
    control.begin();
    if control.is_stopped() {
        shared.end_at(0);
    }
    std::thread::scope(|scope| {
        let (say, hear) = channel();
        let go = spawn(scope, &shared, netns.as_ref(), &say)?;
        // The threads hold the other senders: if all are gone without a word, one has died and the scope tells why.
        drop(say);
        for _ in 0..threads {
            if let Ok(Said::Ready(Err(error))) = hear.recv() {
                return Err(error);
            }
        }
        let clock = Clock::starting_in(START_AFTER);
        control.begin_at(clock, clock.start() + plan.options.warm_up);
        for go in &go {
            // A thread that has died is noticed when it says nothing.
            let _ = go.send(clock);
        }
        finish(plan, &shared, clock, &hear)
    })
}

/// Starts the threads. Each says when it is ready and waits for the start; a dropped sender sends it home.
fn spawn<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    shared: &'env Shared<'env>,
    netns: Option<&'env File>,
    say: &Sender<Said>,
) -> Result<Vec<Sender<Clock>>, LoadError> {
    let thread_error = |source| LoadError::Thread { address: shared.plan.address.clone(), source };
    let mut go = Vec::new();
    for thread in 0..shared.threads {
        let (start, started) = channel::<Clock>();
        let say = say.clone();
        let work = move || {
            let engine = prepare(shared.plan, netns).and_then(|()| {
                let connections = share_of(shared.plan.connections(), thread, shared.threads);
                Engine::new(shared, thread, connections).map_err(thread_error)
            });
            let (engine, is_ready) = match engine {
                Ok(engine) => (Some(engine), Ok(())),
                Err(error) => (None, Err(error)),
            };
            // What cannot be said is not needed any more: the caller's thread has given up.
            let _ = say.send(Said::Ready(is_ready));
            if let (Some(engine), Ok(clock)) = (engine, started.recv()) {
                let _ = say.send(Said::Done(engine.run(clock).map(Box::new).map_err(thread_error)));
            }
        };
        std::thread::Builder::new().name(format!("load-{thread}")).spawn_scoped(scope, work).map_err(thread_error)?;
        go.push(start);
    }
    Ok(go)
}

/// Puts this thread where the plan wants it.
fn prepare(plan: &Plan, netns: Option<&File>) -> Result<(), LoadError> {
    if let (Some(netns), Some(path)) = (netns, &plan.netns) {
        host::enter_netns(netns).map_err(|source| LoadError::Netns { path: path.clone(), source })?;
    }
    for address in &plan.options.bind {
        bind::check(*address).map_err(|source| LoadError::Bind { address: *address, source })?;
    }
    if let Some(cpus) = &plan.cpus {
        host::pin(cpus).map_err(|source| LoadError::Cpus { cpus: cpus.clone(), source })?;
    }
    if matches!(plan.shape, Loop::Open { .. }) {
        host::wake_in_time();
    }
    // Where it cannot have one, it does without.
    let _ = files::take_own();
    Ok(())
}

/// One thread's connections: as even as it goes.
fn share_of(connections: u32, thread: u32, threads: u32) -> u32 {
    connections / threads + u32::from(thread < connections % threads)
}

/// Watches the load until every thread is done.
fn finish(plan: &Plan, shared: &Shared<'_>, clock: Clock, hear: &Receiver<Said>) -> Result<Measured, LoadError> {
    let mut outcomes: Vec<ThreadResult> = Vec::new();
    let mut tripped: Option<Tripped> = None;
    let mut judged_slice = 0;
    let mut failed = None;
    while outcomes.len() + usize::from(failed.is_some()) < shared.threads as usize {
        match hear.recv_timeout(WATCH_EVERY) {
            Ok(Said::Done(Ok(outcome))) => outcomes.push(*outcome),
            Ok(Said::Done(Err(error))) => {
                shared.end_at(0);
                failed = Some(error);
            }
            Ok(Said::Ready(_)) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let now_ns = clock.now_ns();
        if shared.control.is_stopped() && outcomes.len() < shared.threads as usize {
            shared.end_at(now_ns);
        }
        // The threads report a slice a little after its end; one slice later all of them have.
        let slice = (now_ns / SLICE_NS).saturating_sub(2);
        if let Some(watch) = shared.watch.as_ref().filter(|_| slice > judged_slice && now_ns < shared.end_ns()) {
            judged_slice = slice;
            tripped = lock(watch).judge(slice);
            if tripped.is_some() {
                shared.end_at(now_ns);
            }
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let all_started = outcomes.iter().all(|outcome| outcome.all_started);
    let last_end_ns = outcomes.iter().map(|outcome| outcome.tally.last_end_ns).max().unwrap_or(0);
    let duration_ns = if all_started { last_end_ns.min(shared.end_ns()) } else { shared.end_ns() };
    let tallies = outcomes.into_iter().map(|outcome| (outcome.tally, outcome.thread)).collect();
    let mut measured = tally::merge(plan, tallies, duration_ns.saturating_sub(shared.warm_ns));
    let result = &mut measured.result;
    // Nothing else ends the offering before its time.
    result.interrupted = tripped.is_none() && shared.is_ended_early();
    if let Some(tripped) = tripped {
        // The reason comes before the examples, which are at most as many.
        result.error_samples.truncate(7);
        result.error_samples.insert(0, format!("guard {}: {}", tripped.condition, tripped.measured));
        result.stopped_by = Some(tripped.condition);
    }
    Ok(measured)
}
