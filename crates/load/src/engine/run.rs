//! Runs a plan: starts the threads, stops them early if needed, and merges the result.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Scope;
use std::time::Duration;

use chokepoint_model::load::{LoadResult, Loop, Measured};

use crate::engine::clock::Clock;
use crate::engine::control::{Control, lock};
use crate::engine::growth::{self, Looks};
use crate::engine::shared::Shared;
use crate::engine::{Engine, ThreadResult};
use crate::host;
use crate::host::address::Address;
use crate::host::bind;
use crate::host::files;
use crate::limits::guard::TrippedGuard;
use crate::plan::Plan;
use crate::plan::check::PlanError;
use crate::results::series::SLICE_NS;
use crate::results::tally;

/// How often the caller's thread checks for a stop and, every tenth of a second, the guards.
const WATCH_EVERY: Duration = Duration::from_millis(20);
/// Time between the last thread being ready and the start, so that an open loop's first requests are not late.
const START_AFTER: Duration = Duration::from_millis(1);

/// Before a load begins anew with more threads its last answers are awaited for this long, nanoseconds. A generator that is the limit gets them soon.
const ANSWERS_NS: u64 = 1_000_000_000;

/// Why a load could not be run. Failing requests are no error; they are counted.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan makes no sense.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The connections do not fit into the hard limit on file descriptors. `threads`: those that share them, each with its own descriptor table.
    #[error(
        "{connections} connections on {threads} threads need {needed} file descriptors per thread, but the limit is {limit} (RLIMIT_NOFILE): use fewer connections or more threads, or raise the hard limit (ulimit -Hn)"
    )]
    #[allow(missing_docs)]
    Files { connections: u32, threads: u32, needed: u64, limit: u64 },
    /// TLS cannot be used as requested.
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
    /// The given source address cannot be used.
    #[error("cannot connect from {address}: {source}{}", bind_hint(source))]
    #[allow(missing_docs)]
    Bind { address: IpAddr, source: io::Error },
    /// A thread could not be started or could not wait for its sockets (epoll).
    #[error("cannot run the load towards {address}: {source}")]
    #[allow(missing_docs)]
    Thread { address: Address, source: io::Error },
}

fn netns_hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => " (entering it needs CAP_SYS_ADMIN, which root has)",
        Some(libc::EINVAL) => " (it is not a network namespace)",
        _ => "",
    }
}

fn bind_hint(error: &io::Error) -> &'static str {
    if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) {
        " (this host does not have the address, or not in this network namespace)"
    } else {
        ""
    }
}

/// A message from a generator thread to the caller's thread.
enum ThreadMessage {
    Ready(Result<(), LoadError>),
    Done(Result<Box<ThreadResult>, LoadError>),
}

/// Offers the load and waits for its end. It blocks the caller; other threads stop it through `control`.
///
/// If the connections need it, the soft RLIMIT_NOFILE of the process is raised to the hard limit and stays raised.
pub fn run(plan: &Plan, control: &Control) -> Result<LoadResult, LoadError> {
    measure(plan, control).map(|measured| measured.result)
}

/// Like [`run`], with the details that a report on the load itself needs.
pub fn measure(plan: &Plan, control: &Control) -> Result<Measured, LoadError> {
    measure_looking(plan, control, Looks::new)
}

fn measure_looking(plan: &Plan, control: &Control, looks: impl Fn(&Plan, bool) -> Looks) -> Result<Measured, LoadError> {
    plan.check()?;
    let (mut threads, may_grow) = growth::at_first(plan);
    loop {
        let mut looks = looks(plan, may_grow);
        match attempt(plan, control, threads, &mut looks)? {
            Attempt::Whole(measured) => return Ok(*measured),
            Attempt::Needs(more) => threads = more,
        }
    }
}

/// A load with a number of threads.
enum Attempt {
    Whole(Box<Measured>),
    /// It was the limit, and ended soon: that many threads are to be tried.
    Needs(u32),
}

fn attempt(plan: &Plan, control: &Control, threads: u32, looks: &mut Looks) -> Result<Attempt, LoadError> {
    // The limit applies to a descriptor table. Each thread has its own table if the kernel allows it, else all share one.
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
        let (sender, receiver) = channel();
        let starts = spawn(scope, &shared, netns.as_ref(), &sender)?;
        // The threads hold the other senders. If all are dropped without a message, a thread has panicked and the scope reports it.
        drop(sender);
        for _ in 0..threads {
            if let Ok(ThreadMessage::Ready(Err(error))) = receiver.recv() {
                return Err(error);
            }
        }
        let clock = Clock::starting_in(START_AFTER);
        control.begin_at(clock, clock.start() + plan.options.warm_up);
        for starts in &starts {
            // A thread that has panicked is noticed because it sends nothing.
            let _ = starts.send(clock);
        }
        finish(plan, &shared, clock, &receiver, looks)
    })
}

/// Starts the threads. Each reports when it is ready and waits for the start. If its sender is dropped, it ends.
fn spawn<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    shared: &'env Shared<'env>,
    netns: Option<&'env File>,
    sender: &Sender<ThreadMessage>,
) -> Result<Vec<Sender<Clock>>, LoadError> {
    let thread_error = |source| LoadError::Thread { address: shared.plan.address.clone(), source };
    let mut starts = Vec::new();
    for thread in 0..shared.threads {
        let (start, started) = channel::<Clock>();
        let sender = sender.clone();
        let work = move || {
            let engine = prepare(shared.plan, netns).and_then(|()| {
                let connections = share_of(shared.plan.connections(), thread, shared.threads);
                Engine::new(shared, thread, connections).map_err(thread_error)
            });
            let (engine, is_ready) = match engine {
                Ok(engine) => (Some(engine), Ok(())),
                Err(error) => (None, Err(error)),
            };
            // If nobody receives the message, the caller's thread has given up and does not need it.
            let _ = sender.send(ThreadMessage::Ready(is_ready));
            if let (Some(engine), Ok(clock)) = (engine, started.recv()) {
                let _ = sender.send(ThreadMessage::Done(engine.run(clock).map(Box::new).map_err(thread_error)));
            }
        };
        std::thread::Builder::new().name(format!("load-{thread}")).spawn_scoped(scope, work).map_err(thread_error)?;
        starts.push(start);
    }
    Ok(starts)
}

/// Moves this thread where the plan wants it.
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
        host::use_exact_timers();
    }
    // If the thread cannot have its own descriptor table, it works without.
    let _ = files::take_own();
    Ok(())
}

/// The number of connections of one thread, spread evenly.
fn share_of(connections: u32, thread: u32, threads: u32) -> u32 {
    connections / threads + u32::from(thread < connections % threads)
}

/// Watches the load until every thread is done.
fn finish(
    plan: &Plan,
    shared: &Shared<'_>,
    clock: Clock,
    receiver: &Receiver<ThreadMessage>,
    looks: &mut Looks,
) -> Result<Attempt, LoadError> {
    let mut outcomes: Vec<ThreadResult> = Vec::new();
    let mut needs: Option<(u32, u64)> = None;
    let mut tripped: Option<TrippedGuard> = None;
    let mut judged_slice = 0;
    let mut failed = None;
    while outcomes.len() + usize::from(failed.is_some()) < shared.threads as usize {
        match receiver.recv_timeout(WATCH_EVERY) {
            Ok(ThreadMessage::Done(Ok(outcome))) => outcomes.push(*outcome),
            Ok(ThreadMessage::Done(Err(error))) => {
                shared.end_at(0);
                failed = Some(error);
            }
            Ok(ThreadMessage::Ready(_)) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let now_ns = clock.now_ns();
        if shared.control.is_stopped() && outcomes.len() < shared.threads as usize {
            shared.end_at(now_ns);
        }
        match needs {
            None => {
                needs = looks.look(now_ns, || shared.control.spent_ns()).map(|threads| (threads, now_ns + ANSWERS_NS));
                needs.is_some().then(|| shared.end_at(now_ns));
            }
            Some((_, until_ns)) if now_ns >= until_ns => shared.abandon(),
            Some(_) => {}
        }
        // The threads report a slice a little after its end. One slice later all of them have reported.
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
    // Who stops it has what was measured until then.
    if let Some((threads, _)) = needs.filter(|_| tripped.is_none() && !shared.control.is_stopped()) {
        return Ok(Attempt::Needs(threads));
    }
    let all_started = outcomes.iter().all(|outcome| outcome.all_started);
    let last_end_ns = outcomes.iter().map(|outcome| outcome.tally.last_end_ns).max().unwrap_or(0);
    let duration_ns = if all_started { last_end_ns.min(shared.end_ns()) } else { shared.end_ns() };
    let tallies = outcomes.into_iter().map(|outcome| (outcome.tally, outcome.thread)).collect();
    let mut measured = tally::merge(plan, tallies, duration_ns.saturating_sub(shared.warm_ns));
    let result = &mut measured.result;
    // Nothing else ends a load before its time.
    result.interrupted = tripped.is_none() && shared.is_ended_early();
    if let Some(tripped) = tripped {
        // The reason comes first, and the number of examples stays limited.
        result.error_samples.truncate(7);
        result.error_samples.insert(0, format!("guard {}: {}", tripped.condition, tripped.measured));
        result.stopped_by = Some(tripped.condition);
    }
    Ok(Attempt::Whole(Box::new(measured)))
}

#[cfg(test)]
mod tests {
    mod live {
        use std::io::{Read, Write};
        use std::net::TcpListener;
        use std::time::Instant;

        use super::super::*;
        use crate::engine::growth::tests::always_busy;

        /// A server that answers on each connection until it is closed.
        fn server() -> Address {
            let listener = TcpListener::bind("127.0.0.1:0").expect("an address is free");
            let address = Address::Tcp(listener.local_addr().expect("it listens"));
            std::thread::spawn(move || {
                for connection in listener.incoming() {
                    let Ok(mut connection) = connection else { return };
                    std::thread::spawn(move || {
                        let mut request = [0; 4096];
                        while connection.read(&mut request).is_ok_and(|length| length > 0) {
                            std::thread::sleep(Duration::from_millis(1));
                            if connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                                return;
                            }
                        }
                    });
                }
            });
            address
        }

        #[test]
        fn a_load_that_needs_more_threads_begins_anew_and_is_measured_whole() {
            let shape = Loop::Closed { connections: 4 };
            let plan =
                Plan { address: server(), shape, duration: Some(Duration::from_secs(2)), threads: None, ..crate::plan::tests::plan() };
            let (control, began) = (Control::new(), Instant::now());
            let measured = measure_looking(&plan, &control, always_busy).expect("it runs").result;
            assert_eq!((measured.threads.len(), measured.interrupted, measured.errors.total()), (2, false, 0), "{measured:?}");
            let whole = Duration::from_secs(2);
            assert_eq!(measured.duration_us, whole.as_micros() as u64);
            let begun = control.began().expect("it began");
            assert!(begun.duration_since(began) > Duration::from_millis(500), "what was sent with one thread is not measured");
            assert_eq!(measured.status.values().sum::<u64>(), measured.requests);
            assert!(measured.threads.iter().all(|thread| thread.wall_us < 1_000 * (whole.as_millis() as u64 + 500)), "{measured:?}");
        }

        #[test]
        fn a_load_that_is_stopped_while_it_begins_anew_ends() {
            let plan = Plan { address: server(), duration: Some(Duration::from_secs(60)), threads: None, ..crate::plan::tests::plan() };
            let (control, began) = (Control::new(), Instant::now());
            std::thread::scope(|scope| {
                let load = scope.spawn(|| measure_looking(&plan, &control, always_busy));
                std::thread::sleep(Duration::from_millis(550));
                control.stop();
                assert!(load.join().expect("no panic").expect("it runs").result.interrupted);
            });
            assert!(began.elapsed() < Duration::from_secs(30));
        }
    }
}
