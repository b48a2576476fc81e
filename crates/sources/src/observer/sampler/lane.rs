//! What the sampler knows of one reader: what it reads, when, and whether it may be given work.

use std::collections::{BTreeMap, BTreeSet};

use chokepoint_recording::Scope;

use super::super::bucket::Bucket;
use super::super::reader::{Again, Job, Order, Reader};
use super::super::schedule::{FILES, Schedule, Watch};
use super::kind_of;
use crate::table::{Phase, Source};

/// Processes of which the source that tells which sockets they hold is read in one turn.
const FILES_AT_ONCE: usize = 8;
/// The source that tells what a process waits for, likewise: a few hundred looks tell how a pool of any size spends its time.
const SYSCALL: &str = "process_syscall";
const SYSCALL_AT_ONCE: usize = 32;

pub(super) struct Lane {
    reader: Reader,
    pub(super) schedule: Schedule,
    /// First reads of what has only just come to matter.
    pub(super) fresh: Vec<Order>,
    /// Scopes that are read: its own, or the host and the processes on the path.
    pub(super) scopes: BTreeSet<Scope>,
    /// The process that was read last, of each source that is read of a few at a time.
    read_last: BTreeMap<&'static str, Scope>,
    /// Jobs given and not answered.
    jobs: u32,
    /// Until then the last of them is repeated, which another job ends.
    repeats_until_us: Option<u64>,
    /// Its thread is gone, or can read nothing.
    pub(super) gone: bool,
}

impl Lane {
    pub(super) fn new(scope: Scope, reader: Reader, now_us: u64) -> Self {
        Self {
            reader,
            schedule: Schedule::new(scope, now_us),
            fresh: Vec::new(),
            scopes: BTreeSet::new(),
            read_last: BTreeMap::new(),
            jobs: 0,
            repeats_until_us: None,
            gone: false,
        }
    }

    /// True where a job that is given now is begun at once.
    pub(super) fn is_free(&self) -> bool {
        !self.gone && (self.jobs == 0 || (self.jobs == 1 && self.repeats_until_us.is_some()))
    }

    /// True while an answer is to come.
    pub(super) fn is_busy(&self) -> bool {
        self.jobs > 0 && !self.gone
    }

    pub(super) fn give(&mut self, job: Job) {
        self.repeats_until_us = if let Job::Read(_, Some(again)) = &job { Some(again.until_us) } else { None };
        self.gone = !self.reader.give(job);
        self.jobs += 1;
    }

    /// An answer came.
    pub(super) fn answered(&mut self) {
        self.jobs = self.jobs.saturating_sub(1);
        if self.jobs == 0 {
            self.repeats_until_us = None;
        }
    }

    /// Ends its thread; only while it is free.
    pub(super) fn end(self) {
        self.reader.end();
    }

    /// Reads what is due, and goes on with what is read often until the next other source is due: so the reader wakes up by itself, and nobody
    /// else does.
    pub(super) fn turn(&mut self, due: Vec<&'static Source>, now_us: u64, watch: Watch, bucket: &mut Bucket) -> Job {
        let orders: Vec<Order> = due.into_iter().flat_map(|source| self.orders(source)).collect();
        if orders.is_empty() && self.repeats_until_us.is_some() {
            return Job::Read(orders, None);
        }
        let again = self.schedule.repeat(now_us, watch, bucket).map(|repeat| {
            let orders = repeat.sources.into_iter().flat_map(|source| self.orders(source)).collect();
            Again { orders, period_us: repeat.period_us, until_us: repeat.until_us }
        });
        Job::Read(orders, again)
    }

    pub(super) fn next_due_us(&self) -> Option<u64> {
        self.schedule.next_due_us()
    }

    /// One source for all scopes of its kind. Of what costs most, that of a few processes at a time in turn: any worker of a pool shows whom
    /// the pool calls.
    fn orders(&mut self, source: &'static Source) -> Vec<Order> {
        let of_kind = self.scopes.iter().copied().filter(|scope| kind_of(*scope) == source.scope);
        let mut scopes: Vec<Scope> = of_kind.collect();
        let at_once = match source.name {
            FILES => FILES_AT_ONCE,
            SYSCALL => SYSCALL_AT_ONCE,
            _ => usize::MAX,
        };
        if scopes.len() > at_once {
            let last = self.read_last.get(source.name).copied();
            let next = scopes.iter().position(|scope| Some(*scope) > last).unwrap_or(0);
            scopes.rotate_left(next);
            scopes.truncate(at_once);
            self.read_last.extend(scopes.last().map(|scope| (source.name, *scope)));
        }
        scopes.into_iter().map(|scope| Order { source, scope, phase: Phase::Running }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::Clock;
    use crate::observer::reader::Shared;
    use crate::source;
    use crate::table::Notes;
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;
    use std::time::Instant;

    #[test]
    fn open_files_are_read_of_a_few_processes_in_turn() {
        let (events, _inbox) = sync_channel(1);
        let shared = Shared {
            root: crate::Root::default(),
            clock: Clock(Instant::now()),
            notes: Arc::new(Notes::default()),
            events,
            under_way: None,
        };
        let scopes = (1..=20).map(Scope::Process).chain([Scope::Host]).collect();
        let mut lane = Lane { scopes, ..Lane::new(Scope::Host, Reader::of_host(shared).unwrap(), 0) };
        let mut turn = |name: &str| -> Vec<u32> {
            let pid = |order: Order| if let Scope::Process(pid) = order.scope { pid } else { 0 };
            lane.orders(source(name).unwrap()).into_iter().map(pid).collect()
        };
        assert_eq!(turn(FILES), (1..=8).collect::<Vec<_>>());
        assert_eq!(turn(FILES), (9..=16).collect::<Vec<_>>());
        assert_eq!(turn(FILES), [17, 18, 19, 20, 1, 2, 3, 4]);
        assert_eq!(turn(SYSCALL).len(), 20);
        assert_eq!(turn("process_cpu").len(), 20);
        assert_eq!(turn("cpu"), [0]);
    }
}
