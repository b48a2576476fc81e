//! Threads that read: one for the host and its processes, one inside each network namespace. Each does one job at a time and answers it.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use chokepoint_recording::{Entry, Outcome, Scope};

use super::sampler::Event;
use super::schedule::{DRAWN_MAX_US, Spent, drawn, next};
use super::socket_owners::{Holding, SocketOwners};
use super::{Clock, UnderWay};
use crate::netns::enter::{Inside, spawn_inside};
use crate::netns::{NetnsError, NetnsRef};
use crate::root::Root;
use crate::sock_diag::requests::LOOK_US;
use crate::table::{Cadence, Notes, Phase, ReadContext, ScopeKind, Source};

/// How long a connection may take that is made to be seen.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// One source to read for one scope.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    pub(super) source: &'static Source,
    pub(super) scope: Scope,
    pub(super) phase: Phase,
}

/// What is read again and again, until another job comes.
#[derive(Debug)]
pub(super) struct Again {
    pub(super) orders: Vec<Order>,
    /// At whole multiples of it.
    pub(super) period_us: u64,
    /// Or until then.
    pub(super) until_us: u64,
}

/// Work for a reader.
#[derive(Debug)]
pub(super) enum Job {
    /// Read these, in this order; then go on with those that are read again.
    Read(Vec<Order>, Option<Again>),
    /// Find the processes that hold these sockets.
    Hold(BTreeSet<u64>),
    /// Make one connection to this address and close it.
    Connect(SocketAddr),
}

/// What one order gave.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) order: Order,
    pub(super) entries: Vec<Entry>,
    /// CPU time that it took, microseconds.
    pub(super) cost_us: u64,
}

impl Read {
    /// What it means for the next one.
    pub(super) fn spent(&self) -> Spent {
        let is_there = |entry: &Entry| matches!(&entry.outcome, Outcome::Ok(bytes) if !bytes.is_empty() && bytes.as_slice() != b"0\n");
        let is_first = self.order.phase != Phase::Running;
        Spent { source: self.order.source, cost_us: self.cost_us, is_there: self.entries.iter().any(is_there), is_first }
    }
}

/// A reader's answer to a job.
#[derive(Debug)]
pub(super) struct Reply {
    /// The scope of the reader that answers: the host, or its namespace.
    pub(super) reader: Scope,
    pub(super) reads: Vec<Read>,
    pub(super) holding: Option<Holding>,
    /// The namespace could not be entered: nothing will ever be read in it.
    pub(super) shut_out: bool,
    /// CPU time of the whole job, microseconds.
    pub(super) cost_us: u64,
}

/// What all readers share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) root: Root,
    pub(super) clock: Clock,
    pub(super) notes: Arc<Notes>,
    pub(super) events: SyncSender<Event>,
    pub(super) under_way: Option<UnderWay>,
}

/// Jobs that a reader may be given before it answered the first: one that it repeats, and the one that ends the repetition. A repetition ends by itself, too, and is
/// answered before the next job is taken, so that both may wait.
const JOBS_MAX: usize = 2;

/// A running reader; its thread ends when this is dropped.
#[derive(Debug)]
pub(super) struct Reader {
    jobs: SyncSender<Job>,
    thread: JoinHandle<()>,
}

impl Reader {
    /// The reader of the host's and the processes' files.
    pub(super) fn of_host(shared: Shared) -> std::io::Result<Self> {
        let (jobs, inbox) = sync_channel(JOBS_MAX);
        let thread = std::thread::Builder::new().name("host".to_owned()).spawn(move || {
            let mut socket_owners = SocketOwners::default();
            let read = |order: &Order, _| read_host(&shared, order);
            let hold = |wanted| socket_owners.refresh(&shared.root, &wanted).clone();
            work(&shared, Scope::Host, &inbox, false, Hands { read, hold, look: || None });
        })?;
        Ok(Self { jobs, thread })
    }

    /// The reader of one namespace.
    pub(super) fn of_netns(shared: Shared, netns: NetnsRef) -> Result<Self, NetnsError> {
        let (jobs, inbox) = sync_channel(JOBS_MAX);
        let scope = Scope::Netns(netns.id.0);
        let thread = spawn_inside(netns.clone(), shared.root.clone(), move |inside| {
            take_precedence();
            let shut_out = inside.is_err();
            if let (Some(under_way), false) = (&shared.under_way, shut_out) {
                under_way.enter(netns.id);
            }
            let read = |order: &Order, late_us| read_netns(&shared, &netns, inside.as_ref().map(|inside| *inside), order, late_us);
            let look = || {
                let under_way = shared.under_way.as_ref().filter(|under_way| !under_way.is_read_from_elsewhere(netns.id));
                inside.as_ref().ok()?.sockets().requests().look(under_way)
            };
            work(&shared, scope, &inbox, shut_out, Hands { read, hold: |_| Holding::new(), look });
        })?;
        Ok(Self { jobs, thread })
    }

    /// Gives it a job, of which no more than [`JOBS_MAX`] may be open. False where its thread is gone.
    pub(super) fn give(&self, job: Job) -> bool {
        self.jobs.try_send(job).is_ok()
    }

    /// Ends its thread and waits for it; only where it has answered its last job.
    pub(super) fn end(self) {
        drop(self.jobs);
        let _ = self.thread.join();
    }
}

/// What one reader can do.
struct Hands<R, H, L> {
    /// Reads one source.
    read: R,
    /// Finds the holders of sockets.
    hold: H,
    /// Whether the load has a request under way just now; nothing where no sample waits for one.
    look: L,
}

fn work<R, H, L>(shared: &Shared, reader: Scope, inbox: &Receiver<Job>, shut_out: bool, hands: Hands<R, H, L>)
where
    R: FnMut(&Order, u64) -> Vec<(String, Outcome)>,
    H: FnMut(BTreeSet<u64>) -> Holding,
    L: FnMut() -> Option<bool>,
{
    let Hands { mut read, mut hold, mut look } = hands;
    let mut following = None;
    while let Some(job) = following.take().or_else(|| inbox.recv().ok()) {
        let before_us = thread_cpu_us();
        let mut reply = Reply { reader, reads: Vec::new(), holding: None, shut_out, cost_us: 0 };
        match job {
            Job::Read(orders, again) => {
                read_all(shared, &orders, 0, &mut read, &mut reply.reads);
                if let Some(again) = again.filter(|_| !shut_out) {
                    let turn = |orders: &[Order], late_us| read_all(shared, orders, late_us, &mut read, &mut reply.reads);
                    following = repeat(shared, reader, inbox, &again, &mut look, turn);
                }
            }
            Job::Hold(wanted) => reply.holding = Some(hold(wanted)),
            // What comes of it shows in the tables on its way. Where the namespace could not be entered, it would go another way.
            Job::Connect(address) if !shut_out => drop(TcpStream::connect_timeout(&address, CONNECT_MAX)),
            Job::Connect(_) => {}
        }
        reply.cost_us = thread_cpu_us().saturating_sub(before_us);
        if shared.events.send(Event::Reply(reply)).is_err() {
            return;
        }
    }
}

fn read_all(
    shared: &Shared,
    orders: &[Order],
    late_us: u64,
    read: &mut impl FnMut(&Order, u64) -> Vec<(String, Outcome)>,
    reads: &mut Vec<Read>,
) {
    let mut from_us = thread_cpu_us();
    for order in orders {
        let at_us = shared.clock.now_us();
        let entry = |(item, outcome)| Entry { at_us, source: order.source.name.to_owned(), scope: order.scope, item, outcome };
        let entries = read(order, late_us).into_iter().map(entry).collect();
        let to_us = thread_cpu_us();
        reads.push(Read { order: *order, entries, cost_us: to_us.saturating_sub(from_us) });
        from_us = to_us;
    }
}

/// Does it at each turn until the end, and tells how late, microseconds; gives back the job that came before. Missed turns are not made up for. Where a sample waits
/// for a request, it looks for one between two turns, and reads what is sampled as soon as there is one.
fn repeat(
    shared: &Shared,
    reader: Scope,
    inbox: &Receiver<Job>,
    again: &Again,
    mut look: impl FnMut() -> Option<bool>,
    mut turn: impl FnMut(&[Order], u64),
) -> Option<Job> {
    let sampled: Vec<Order> = again.orders.iter().copied().filter(|order| order.source.cadence == Cadence::Sampled).collect();
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
            // What servers do at a beat of their own must not always be seen at the same point of it.
            let next_us = if found == Some(false) { drawn(now_us + LOOK_US, reader, LOOK_US) } else { due_us };
            match inbox.recv_timeout(Duration::from_micros(next_us.min(due_us).saturating_sub(now_us))) {
                Err(RecvTimeoutError::Timeout) => now_us = shared.clock.now_us(),
                Ok(job) => return Some(job),
                // What was read is still told.
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        turn(&again.orders, shared.clock.now_us().saturating_sub(due_us));
    }
}

fn read_host(shared: &Shared, order: &Order) -> Vec<(String, Outcome)> {
    if order.source.scope == ScopeKind::Netns {
        return vec![(String::new(), Outcome::Failed("it is read in a namespace, not for the host".to_owned(), None))];
    }
    let context = ReadContext {
        root: &shared.root,
        scope: order.scope,
        phase: order.phase,
        notes: &shared.notes,
        late_us: 0,
        under_way: None,
        netns: None,
        netlink: None,
    };
    (order.source.read)(&context)
}

fn read_netns(
    shared: &Shared,
    netns: &NetnsRef,
    inside: Result<&Inside, &NetnsError>,
    order: &Order,
    late_us: u64,
) -> Vec<(String, Outcome)> {
    match inside {
        // Its name is known from outside.
        Err(_) if order.source.name == crate::netns::NETNS.name => crate::netns::told(netns),
        Ok(inside) => (order.source.read)(&ReadContext {
            late_us,
            under_way: shared.under_way.as_ref(),
            ..inside.context(&shared.root, &shared.notes, order.phase)
        }),
        Err(error) => vec![(String::new(), Outcome::Absent(error.to_string(), error.needs().map(str::to_owned)))],
    }
}

/// Lets the calling thread run before others of its group of the scheduler (its session, where there are autogroups, or its cgroup; sched(7)), where this user may: on busy
/// cores it would else read when who is watched has nothing to do, and hardly ever see a request with it.
fn take_precedence() {
    const FIRST: i32 = -20;
    // Linux takes it for this thread alone (setpriority(2), CAP_SYS_NICE). Without it readings come late, and tell how late.
    let _ = rustix::process::setpriority_process(None, FIRST);
}

/// CPU time of the calling thread, microseconds: what reading costs, whatever else the host is doing.
pub(crate) fn thread_cpu_us() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1000
}

#[cfg(test)]
mod tests {
    use super::super::schedule::FAST_PERIOD_US;
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_job_that_comes_ends_the_repetition_and_so_does_its_time() {
        let (events, _heard) = sync_channel(1);
        let shared =
            Shared { root: Root::default(), clock: Clock(Instant::now()), notes: Arc::new(Notes::default()), events, under_way: None };
        let again = |until_us| Again { orders: Vec::new(), period_us: FAST_PERIOD_US, until_us };
        let (mut turns, (jobs, inbox)) = (0, sync_channel(1));
        let mut jobs = Some(jobs);
        let turn = |_: &[Order], _| {
            turns += 1;
            if turns == 3 {
                jobs = None; // Nobody wants more.
            }
        };
        assert!(repeat(&shared, Scope::Host, &inbox, &again(u64::MAX), || None, turn).is_none());
        assert_eq!(turns, 3);
        let (jobs, inbox) = sync_channel(JOBS_MAX);
        assert!(repeat(&shared, Scope::Host, &inbox, &again(0), || None, |_, _| panic!("its time is over")).is_none());
        jobs.send(Job::Hold(BTreeSet::from([7]))).unwrap();
        let job = repeat(&shared, Scope::Host, &inbox, &again(u64::MAX), || None, |_, _| panic!("the job is there already"));
        assert!(matches!(job, Some(Job::Hold(wanted)) if wanted.contains(&7)));
    }

    #[test]
    fn a_sample_that_waits_is_read_as_soon_as_there_is_a_request() {
        let (events, _heard) = sync_channel(1);
        let shared =
            Shared { root: Root::default(), clock: Clock(Instant::now()), notes: Arc::new(Notes::default()), events, under_way: None };
        let order = |name| Order { source: crate::source(name).unwrap(), scope: Scope::Netns(7), phase: Phase::Running };
        let again = Again { orders: vec![order("listeners"), order("requests")], period_us: 1 << 40, until_us: u64::MAX };
        let (jobs, inbox) = sync_channel(1);
        let (mut jobs, mut read, mut looks) = (Some(jobs), Vec::new(), [Some(false), Some(false), Some(true)].into_iter());
        let turn = |orders: &[Order], _| {
            read.extend(orders.iter().map(|order| order.source.name));
            jobs = None; // Nobody wants more.
        };
        assert!(repeat(&shared, Scope::Host, &inbox, &again, || looks.next().flatten(), turn).is_none());
        assert_eq!((read, looks.next()), (vec!["requests"], None), "of what is sampled alone, at the third look");
    }

    #[test]
    fn a_reader_without_a_core_takes_the_job_that_ends_a_repetition_and_the_next_one() {
        let (jobs, inbox) = sync_channel(JOBS_MAX);
        let (go, wait) = sync_channel::<()>(0);
        let thread = std::thread::spawn(move || {
            let _ = wait.recv();
            drop(inbox);
        });
        let reader = Reader { jobs, thread };
        let job = || Job::Read(Vec::new(), None);
        assert!((0..JOBS_MAX).all(|_| reader.give(job())), "neither is lost, and the reader does not pass for gone");
        drop(go);
        while !reader.thread.is_finished() {
            std::thread::yield_now();
        }
        assert!(!reader.give(job()), "its thread is gone");
    }
}
