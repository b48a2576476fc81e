//! One reader as the sampler sees it: what it reads, when, and whether it can take work.

use std::collections::{BTreeMap, BTreeSet};

use chokepoint_recording::Scope;

use super::super::bucket::Bucket;
use super::super::messages::{ReadOrder, ReaderJob, Repetition};
use super::super::reader::Reader;
use super::super::schedule::{FILES, Pace, PathRole, Schedule};

use crate::table::{Phase, ScopeKind, Source};

/// Processes whose open files are read in one turn.
const FILES_AT_ONCE: usize = 8;
/// The source that tells what a process waits for, and the processes for one turn: a few hundred looks show how a pool of any size spends its time.
const SYSCALL: &str = "process_syscall";
const SYSCALL_AT_ONCE: usize = 32;
/// One process in so many of a turn may be one that is read at each turn.
const ALWAYS_PART: usize = 4;

pub(super) struct ReaderLane {
    reader: Reader,
    pub(super) schedule: Schedule,
    /// First reads of scopes that joined the path.
    pub(super) fresh: Vec<ReadOrder>,
    /// Scopes to read: its own, or the host and the processes on the path.
    pub(super) scopes: BTreeSet<Scope>,
    /// Processes that tell what others do, such as the one that started all sessions of a database. A source that is read for a few processes at a time is read for them at each turn.
    pub(super) always: BTreeSet<u32>,
    /// The process that was read last, for each source that is read for a few processes at a time.
    read_last: BTreeMap<&'static str, Scope>,
    /// Jobs without a reply.
    jobs: u32,
    /// Until then the reader repeats the last job, unless another one comes.
    repeats_until_us: Option<u64>,
    /// The thread is gone or can read nothing.
    pub(super) gone: bool,
}

impl ReaderLane {
    pub(super) fn new(scope: Scope, reader: Reader, pace: Pace, now_us: u64) -> Self {
        Self {
            reader,
            schedule: Schedule::new(scope, pace, now_us),
            fresh: Vec::new(),
            scopes: BTreeSet::new(),
            always: BTreeSet::new(),
            read_last: BTreeMap::new(),
            jobs: 0,
            repeats_until_us: None,
            gone: false,
        }
    }

    /// True if the reader would begin a job at once.
    pub(super) fn is_free(&self) -> bool {
        !self.gone && (self.jobs == 0 || (self.jobs == 1 && self.repeats_until_us.is_some()))
    }

    /// True while a reply is outstanding.
    pub(super) fn is_busy(&self) -> bool {
        self.jobs > 0 && !self.gone
    }

    pub(super) fn give(&mut self, job: ReaderJob) {
        self.repeats_until_us = if let ReaderJob::Read(_, Some(again)) = &job { Some(again.until_us) } else { None };
        self.gone = !self.reader.give(job);
        self.jobs += 1;
    }

    /// Notes a reply.
    pub(super) fn answered(&mut self) {
        self.jobs = self.jobs.saturating_sub(1);
        if self.jobs == 0 {
            self.repeats_until_us = None;
        }
    }

    /// Ends the thread. The lane must be free.
    pub(super) fn end(self) {
        self.reader.end();
    }

    /// Has the thread end by itself, after what it reads now.
    pub(super) fn let_go(self) {
        drop(self.reader);
    }

    /// A job that reads what is due, then repeats the frequent sources until another source is due. So the reader wakes up by itself, and no other thread has
    /// to.
    pub(super) fn turn(&mut self, due: Vec<&'static Source>, now_us: u64, role: PathRole, bucket: &mut Bucket) -> ReaderJob {
        let orders: Vec<ReadOrder> = due.into_iter().flat_map(|source| self.orders(source)).collect();
        if orders.is_empty() && self.repeats_until_us.is_some() {
            return ReaderJob::Read(orders, None);
        }
        let again = self.schedule.repeat(now_us, role, bucket).map(|repeat| {
            let orders = repeat.sources.into_iter().flat_map(|source| self.orders(source)).collect();
            Repetition { orders, period_us: repeat.period_us, until_us: repeat.until_us }
        });
        ReaderJob::Read(orders, again)
    }

    pub(super) fn next_due_us(&self) -> Option<u64> {
        self.schedule.next_due_us()
    }

    /// One source for all scopes of its kind. The most expensive sources are read for a few processes at a time, in turn: any worker of a pool shows whom the
    /// pool calls.
    fn orders(&mut self, source: &'static Source) -> Vec<ReadOrder> {
        let of_kind = self.scopes.iter().copied().filter(|scope| ScopeKind::of(*scope) == source.scope);
        let mut scopes: Vec<Scope> = of_kind.collect();
        let at_once = match source.name {
            FILES => FILES_AT_ONCE,
            SYSCALL => SYSCALL_AT_ONCE,
            _ => usize::MAX,
        };
        if scopes.len() > at_once {
            let is_always = |scope: &Scope| matches!(scope, Scope::Process(pid) if self.always.contains(pid));
            let (mut always, mut in_turn): (Vec<Scope>, Vec<Scope>) = scopes.into_iter().partition(is_always);
            let left_over = always.split_off(always.len().min(at_once / ALWAYS_PART));
            in_turn.extend(left_over);
            in_turn.sort_unstable();
            let last = self.read_last.get(source.name).copied();
            let next = in_turn.iter().position(|scope| Some(*scope) > last).unwrap_or(0);
            in_turn.rotate_left(next);
            in_turn.truncate(at_once - always.len());
            self.read_last.extend(in_turn.last().map(|scope| (source.name, *scope)));
            scopes = [always, in_turn].concat();
        }
        scopes.into_iter().map(|scope| ReadOrder { source, scope, phase: Phase::Running }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::observer::messages::ReaderEnvironment;
    use crate::source;
    use crate::table::Notes;
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;
    use std::time::Instant;

    fn lane() -> ReaderLane {
        let (events, _inbox) = sync_channel(1);
        let shared = ReaderEnvironment {
            root: crate::Root::default(),
            clock: Clock(Instant::now()),
            notes: Arc::new(Notes::default()),
            events,
            under_way: None,
            stop: crate::observer::Stop::default(),
        };
        ReaderLane::new(Scope::Host, Reader::of_host(shared).unwrap(), Pace::Measurement, 0)
    }

    /// The processes of the next turn of this source; 0: the host.
    fn turn(lane: &mut ReaderLane, name: &str) -> Vec<u32> {
        let pid = |order: ReadOrder| if let Scope::Process(pid) = order.scope { pid } else { 0 };
        lane.orders(source(name).unwrap()).into_iter().map(pid).collect()
    }

    #[test]
    fn open_files_are_read_for_a_few_processes_in_turn() {
        let scopes = (1..=20).map(Scope::Process).chain([Scope::Host]).collect();
        let mut lane = ReaderLane { scopes, ..lane() };
        assert_eq!(turn(&mut lane, FILES), (1..=8).collect::<Vec<_>>());
        assert_eq!(turn(&mut lane, FILES), (9..=16).collect::<Vec<_>>());
        assert_eq!(turn(&mut lane, FILES), [17, 18, 19, 20, 1, 2, 3, 4]);
        assert_eq!(turn(&mut lane, SYSCALL).len(), 20);
        assert_eq!(turn(&mut lane, "process_cpu").len(), 20);
        assert_eq!(turn(&mut lane, "cpu"), [0]);
    }

    #[test]
    fn processes_that_tell_of_others_are_read_at_each_turn_but_leave_most_of_it() {
        let scopes: BTreeSet<Scope> = (1..=20).map(Scope::Process).collect();
        let mut lane = ReaderLane { scopes, always: BTreeSet::from([3]), ..lane() };
        assert_eq!(turn(&mut lane, FILES), [3, 1, 2, 4, 5, 6, 7, 8]);
        assert_eq!(turn(&mut lane, FILES), [3, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(turn(&mut lane, FILES), [3, 16, 17, 18, 19, 20, 1, 2]);
        lane.always = (1..=20).collect();
        let all: BTreeSet<u32> = (0..4).flat_map(|_| turn(&mut lane, FILES)).collect();
        assert_eq!(all, (1..=20).collect());
        lane.always.clear();
        assert_eq!(turn(&mut lane, SYSCALL).len(), 20);
    }
}
