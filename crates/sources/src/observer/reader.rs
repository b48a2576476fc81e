//! Reader threads: one for the host and its processes, and one inside each network namespace. Each does one job at a time and replies to it.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use chokepoint_recording::{Entry, Outcome, Scope};

use super::messages::{ReadOrder, ReadResult, ReaderEnvironment, ReaderJob, ReaderReply, Repetition, SamplerEvent};
use super::schedule::{DRAWN_MAX_US, drawn, next};
use super::socket_owners::{PidsBySocket, SocketOwners};
use crate::clock::thread_cpu_us;
use crate::netns::enter::{EnteredNetns, spawn_inside};
use crate::netns::identity::{NETNS, identity};
use crate::netns::{NetnsError, NetnsRef};
use crate::sock_diag::requests::RequestSampling;
use crate::sock_diag::requests::awaiting::LOOK_US;
use crate::table::{Cadence, Items, ReadContext, ScopeKind, only_item};

/// Time limit for the connection that fills the translation tables.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// Jobs that may be open: one that the reader repeats, and the one that ends the repetition. A repetition also ends by itself, and the reader replies to it
/// before it takes the next job, so both may wait.
const JOBS_MAX: usize = 2;

/// A running reader; its thread ends when this is dropped.
#[derive(Debug)]
pub(super) struct Reader {
    jobs: SyncSender<ReaderJob>,
    thread: JoinHandle<()>,
}

impl Reader {
    /// The reader of the host's and the processes' files.
    pub(super) fn of_host(shared: ReaderEnvironment) -> std::io::Result<Self> {
        let (jobs, inbox) = sync_channel(JOBS_MAX);
        let thread = std::thread::Builder::new().name("host".to_owned()).spawn(move || {
            let mut socket_owners = SocketOwners::default();
            let read = |order: &ReadOrder, _| read_host(&shared, order);
            let hold = |wanted, links_max| socket_owners.refresh(&shared.root, &wanted, links_max, &shared.stop).clone();
            work(&shared, Scope::Host, &inbox, false, ReaderActions { read, hold, look: || None });
        })?;
        Ok(Self { jobs, thread })
    }

    /// The reader of one namespace.
    pub(super) fn of_netns(shared: ReaderEnvironment, netns: NetnsRef) -> Result<Self, NetnsError> {
        let (jobs, inbox) = sync_channel(JOBS_MAX);
        let scope = Scope::Netns(netns.id.0);
        let thread = spawn_inside(netns.clone(), shared.root.clone(), move |inside| {
            take_precedence();
            let shut_out = inside.is_err();
            if let (Some(under_way), false) = (&shared.under_way, shut_out) {
                under_way.enter(netns.id);
            }
            let read = |order: &ReadOrder, late_us| read_netns(&shared, &netns, inside.as_ref().map(|inside| *inside), order, late_us);
            let look = || {
                let under_way = shared.under_way.as_ref().filter(|under_way| !under_way.is_read_from_elsewhere(netns.id));
                inside.as_ref().ok()?.sockets().memory::<RequestSampling>().borrow_mut().look(under_way)
            };
            work(&shared, scope, &inbox, shut_out, ReaderActions { read, hold: |_, _| PidsBySocket::new(), look });
        })?;
        Ok(Self { jobs, thread })
    }

    /// Gives it a job. No more than [`JOBS_MAX`] may be open. False if its thread is gone.
    pub(super) fn give(&self, job: ReaderJob) -> bool {
        self.jobs.try_send(job).is_ok()
    }

    /// Ends its thread and waits for it. It must have replied to its last job.
    pub(super) fn end(self) {
        drop(self.jobs);
        let _ = self.thread.join();
    }
}

/// How one reader does its work.
struct ReaderActions<R, H, L> {
    /// Reads one source.
    read: R,
    /// Finds the processes that hold sockets.
    hold: H,
    /// Whether the load has a request under way now; nothing if no sample waits for one.
    look: L,
}

fn work<R, H, L>(shared: &ReaderEnvironment, reader: Scope, inbox: &Receiver<ReaderJob>, shut_out: bool, hands: ReaderActions<R, H, L>)
where
    R: FnMut(&ReadOrder, u64) -> Items,
    H: FnMut(BTreeSet<u64>, usize) -> PidsBySocket,
    L: FnMut() -> Option<bool>,
{
    let ReaderActions { mut read, mut hold, mut look } = hands;
    let mut following = None;
    while let Some(job) = following.take().or_else(|| inbox.recv().ok()) {
        let before_us = thread_cpu_us();
        let mut reply = ReaderReply { reader, reads: Vec::new(), pids_by_socket: None, shut_out, cost_us: 0 };
        match job {
            ReaderJob::Read(orders, again) => {
                read_all(shared, &orders, 0, &mut read, &mut reply.reads);
                if let Some(again) = again.filter(|_| !shut_out) {
                    let turn = |orders: &[ReadOrder], late_us| read_all(shared, orders, late_us, &mut read, &mut reply.reads);
                    following = repeat(shared, reader, inbox, &again, &mut look, turn);
                }
            }
            ReaderJob::Hold(wanted, links_max) => reply.pids_by_socket = Some(hold(wanted, links_max)),
            // The result shows in the tables on the way. From outside the namespace it would go another way.
            ReaderJob::Connect(address) if !shut_out => drop(TcpStream::connect_timeout(&address, CONNECT_MAX)),
            ReaderJob::Connect(_) => {}
        }
        reply.cost_us = thread_cpu_us().saturating_sub(before_us);
        if shared.events.send(SamplerEvent::Reply(reply)).is_err() {
            return;
        }
    }
}

fn read_all(
    shared: &ReaderEnvironment,
    orders: &[ReadOrder],
    late_us: u64,
    read: &mut impl FnMut(&ReadOrder, u64) -> Items,
    reads: &mut Vec<ReadResult>,
) {
    let mut from_us = thread_cpu_us();
    for order in orders {
        if shared.stop.is_set() {
            return;
        }
        let at_us = shared.clock.now_us();
        let entry = |(item, outcome)| Entry { at_us, source: order.source.name.to_owned(), scope: order.scope, item, outcome };
        let entries = read(order, late_us).into_iter().map(entry).collect();
        let to_us = thread_cpu_us();
        reads.push(ReadResult { order: *order, entries, cost_us: to_us.saturating_sub(from_us) });
        from_us = to_us;
    }
}

/// Calls `turn` at each turn until the end, with its lateness in microseconds. Returns the job that ended it earlier. Missed turns are skipped. While a sample
/// waits for a request, it looks for one between two turns and reads the sampled sources as soon as it finds one.
fn repeat(
    shared: &ReaderEnvironment,
    reader: Scope,
    inbox: &Receiver<ReaderJob>,
    again: &Repetition,
    mut look: impl FnMut() -> Option<bool>,
    mut turn: impl FnMut(&[ReadOrder], u64),
) -> Option<ReaderJob> {
    let sampled: Vec<ReadOrder> = again.orders.iter().copied().filter(|order| order.source.cadence == Cadence::Sampled).collect();
    loop {
        let mut now_us = shared.clock.now_us();
        let due_us = drawn(next(now_us, again.period_us), reader, DRAWN_MAX_US);
        if due_us >= again.until_us {
            return None;
        }
        while now_us < due_us {
            let found = if sampled.is_empty() { None } else { look() };
            if found == Some(true) {
                turn(&sampled, 0);
            }
            // The looks must not keep step with what a server does periodically.
            let next_us = if found == Some(false) { drawn(now_us + LOOK_US, reader, LOOK_US) } else { due_us };
            match inbox.recv_timeout(Duration::from_micros(next_us.min(due_us).saturating_sub(now_us))) {
                Err(RecvTimeoutError::Timeout) => now_us = shared.clock.now_us(),
                Ok(job) => return Some(job),
                // The reader still reports what it read.
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        turn(&again.orders, shared.clock.now_us().saturating_sub(due_us));
    }
}

fn read_host(shared: &ReaderEnvironment, order: &ReadOrder) -> Items {
    if order.source.scope == ScopeKind::Netns {
        return only_item(Outcome::Failed("it is read per namespace, not for the host".to_owned(), None));
    }
    (order.source.read)(&ReadContext::new(&shared.root, order.scope, order.phase, &shared.notes))
}

fn read_netns(
    shared: &ReaderEnvironment,
    netns: &NetnsRef,
    inside: Result<&EnteredNetns, &NetnsError>,
    order: &ReadOrder,
    late_us: u64,
) -> Items {
    match inside {
        // Its name is known without entering it.
        Err(_) if order.source.name == NETNS.name => identity(netns),
        Ok(inside) => (order.source.read)(&ReadContext {
            late_us,
            under_way: shared.under_way.as_ref(),
            ..inside.context(&shared.root, &shared.notes, order.phase)
        }),
        Err(error) => only_item(Outcome::Absent(error.to_string(), error.needs().map(str::to_owned))),
    }
}

/// Gives the calling thread precedence in its scheduler group (its session with autogroups, or its cgroup; sched(7)), if this user may. On busy cores it would
/// otherwise run only while the observed servers are idle, and hardly ever see a request in them.
fn take_precedence() {
    const FIRST: i32 = -20;
    // Linux applies it to this thread alone (setpriority(2), CAP_SYS_NICE). Without it readings come late and say how late.
    let _ = rustix::process::setpriority_process(None, FIRST);
}

#[cfg(test)]
mod tests {
    use super::super::schedule::FAST_PERIOD_US;
    use super::super::stop::Stop;
    use super::*;
    use crate::clock::Clock;
    use crate::root::Root;
    use crate::table::{Notes, Phase};
    use std::sync::Arc;
    use std::time::Instant;

    /// Nobody receives its events.
    fn environment() -> ReaderEnvironment {
        let clock = Clock(Instant::now());
        let (notes, events, stop) = (Arc::new(Notes::default()), sync_channel(1).0, Stop::default());
        ReaderEnvironment { root: Root::default(), clock, notes, events, under_way: None, stop }
    }

    #[test]
    fn a_repetition_ends_with_a_new_job_or_at_its_end_time() {
        let shared = environment();
        let again = |until_us| Repetition { orders: Vec::new(), period_us: FAST_PERIOD_US, until_us };
        let (mut turns, (jobs, inbox)) = (0, sync_channel(1));
        let mut jobs = Some(jobs);
        let turn = |_: &[ReadOrder], _| {
            turns += 1;
            if turns == 3 {
                jobs = None; // Nobody wants more.
            }
        };
        assert!(repeat(&shared, Scope::Host, &inbox, &again(u64::MAX), || None, turn).is_none());
        assert_eq!(turns, 3);
        let (jobs, inbox) = sync_channel(JOBS_MAX);
        assert!(repeat(&shared, Scope::Host, &inbox, &again(0), || None, |_, _| panic!("its time is over")).is_none());
        jobs.send(ReaderJob::Hold(BTreeSet::from([7]), 1)).unwrap();
        let job = repeat(&shared, Scope::Host, &inbox, &again(u64::MAX), || None, |_, _| panic!("the job is there already"));
        assert!(matches!(job, Some(ReaderJob::Hold(wanted, 1)) if wanted.contains(&7)));
    }

    #[test]
    fn a_waiting_sample_is_read_as_soon_as_a_request_is_under_way() {
        let shared = environment();
        let order = |name| ReadOrder { source: crate::source(name).unwrap(), scope: Scope::Netns(7), phase: Phase::Running };
        let again = Repetition { orders: vec![order("listeners"), order("requests")], period_us: 1 << 40, until_us: u64::MAX };
        let (jobs, inbox) = sync_channel(1);
        let (mut jobs, mut read, mut looks) = (Some(jobs), Vec::new(), [Some(false), Some(false), Some(true)].into_iter());
        let turn = |orders: &[ReadOrder], _| {
            read.extend(orders.iter().map(|order| order.source.name));
            jobs = None; // Nobody wants more.
        };
        assert!(repeat(&shared, Scope::Host, &inbox, &again, || looks.next().flatten(), turn).is_none());
        assert_eq!((read, looks.next()), (vec!["requests"], None), "of what is sampled alone, at the third look");
    }

    #[test]
    fn a_reader_that_does_not_run_still_accepts_two_jobs() {
        let (jobs, inbox) = sync_channel(JOBS_MAX);
        let (go, wait) = sync_channel::<()>(0);
        let thread = std::thread::spawn(move || {
            let _ = wait.recv();
            drop(inbox);
        });
        let reader = Reader { jobs, thread };
        let job = || ReaderJob::Read(Vec::new(), None);
        assert!((0..JOBS_MAX).all(|_| reader.give(job())), "neither is lost, and the reader does not pass for gone");
        drop(go);
        while !reader.thread.is_finished() {
            std::thread::yield_now();
        }
        assert!(!reader.give(job()), "its thread is gone");
    }
}
