//! What the threads of a tier wait for that is no connection: the second account, beside that of the requests.

mod names;
mod woken;

use std::collections::{BTreeMap, BTreeSet};

use chokepoint_statistics::wilson;

use self::names::Names;
use self::woken::{Counts, Woken};

use super::looks::{are_enough, waits_for_work};
use super::workers::at_once;
use super::{MOST, SAMPLES_MIN, worker_pids};
use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::judge::finding::Evidence;
use crate::ledger::tenths;
use crate::observation::{Identity, ProcessView, Syscall, ThreadWait, WaitKind};
use crate::output::message::Message;

/// Looks at several processes within this time are one moment.
const MOMENT_US: u64 = 250_000;
/// Fewest moments after which a worker holds a lock for good. One of two workers that take turns is found to hold it each of five times once in sixteen times.
const MOMENTS_MIN: usize = 5;

/// What the one that has a lock waits for while others wait for the lock.
#[derive(Debug, Clone, Copy, PartialEq)]
struct HolderWait {
    kind: WaitKind,
    /// Mean number of threads that wait so.
    threads: f64,
}

/// What threads of a tier wait for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Awaited {
    kind: WaitKind,
    /// The file, name server or program that most of them wait for; `None` if they wait for different ones, or it is not known.
    object: Option<String>,
    /// The process that holds the lock for most of them, with its name: one that is no part of the tier, or that was seen to hold it each time. Workers that take turns
    /// all hold it.
    holder: Option<(u32, Option<String>)>,
    /// What the one that has the lock waits for meanwhile, as far as it is seen.
    holder_waits_for: Option<HolderWait>,
    /// Mean number of threads that wait so.
    pub(crate) threads: f64,
    /// True if the main thread of the only process that serves was found so most of the time: an event loop, which holds up all of its requests.
    pub(crate) holds_up: bool,
    /// Looks at processes, and those that found such a thread.
    pub(crate) looks: usize,
    pub(crate) seen: usize,
    /// Moments at which processes were looked at, and those that found such a thread.
    moments: usize,
    seen_at: usize,
    /// True if as many wait so at most looks, and never more.
    is_full: bool,
    /// True if fewer wait so than requests wait for them.
    asks_for_all: bool,
}

impl Awaited {
    /// The one thing that most of these `waiting` requests inside a tier wait for, or the lock that costs them much. `None` if no such thing was seen, or too seldom.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier, waiting: f64) -> Option<Self> {
        // A master waits for its workers, and serves nobody. What a database says of its sessions comes before what the process of each shows.
        let by_workers = Self::of_processes(ctx, tier, worker_pids(ctx, tier), waiting);
        let awaited = by_workers.or_else(|| Self::of_processes(ctx, tier, &tier.children, waiting))?;
        let holder_waits_for = awaited.is_lock().then(|| Self::of_holder(ctx, tier)).flatten();
        Some(Self { holder_waits_for, ..awaited })
    }

    /// What the one that has a lock waits for: where each process serves one request at a time, what at least one of them waits for, on average, while others wait for the lock.
    fn of_holder(ctx: &Context<'_>, tier: &Tier) -> Option<HolderWait> {
        use WaitKind::{Child, Disk, FullPipe, FullSocket, NameServer};
        let pids = if tier.children.is_empty() { worker_pids(ctx, tier) } else { &tier.children };
        let (tally, _) = Tally::of(ctx, tier, pids);
        let is_work = |(kind, counted): &(&WaitKind, &Counted)| {
            matches!(kind, Disk | FullPipe | FullSocket | NameServer | Child) && counted.threads >= MOST && are_enough(tally.looks)
        };
        let most = tally.kinds.iter().filter(is_work).max_by(|a, b| a.1.threads.total_cmp(&b.1.threads));
        most.filter(|_| !tally.has_threads).map(|(kind, counted)| HolderWait { kind: *kind, threads: counted.threads })
    }

    /// The same of those of its processes that serve.
    fn of_processes(ctx: &Context<'_>, tier: &Tier, pids: &[u32], waiting: f64) -> Option<Self> {
        let (mut tally, workers) = Tally::of(ctx, tier, pids);
        if tally.looks < SAMPLES_MIN {
            return None;
        }
        tally.tell_sleep_from_retries();
        let Tally { processes, looks, moments, threads, idle, locked, elsewhere, perhaps_own, main_serves, has_threads, kinds } = tally;
        let is_loop = processes == 1 && main_serves;
        let mut all: Vec<Self> =
            kinds.into_iter().map(|(kind, counted)| counted.awaited(ctx, kind, (looks, moments.len()), is_loop)).collect();
        // In each of three looks, what takes a fifth of the time is found once in 125 times.
        all.retain(|awaited| are_enough(looks) || awaited.seen == looks);
        // A pipe may be where idle threads get their work from: what else is seen comes first.
        all.sort_by(|a, b| (a.kind == WaitKind::EmptyPipe).cmp(&(b.kind == WaitKind::EmptyPipe)).then(b.threads.total_cmp(&a.threads)));
        // Where each process has one thread, no more requests than processes are worked on: the others wait for these.
        let worked_on = if has_threads { waiting.max(1.0) } else { waiting.max(1.0).min(threads) };
        // Threads that serve nobody may wait in the same way, for a time of their own: all that are not known to wait for new work count as those. None of these waits for what is
        // a fault, so that threads which wait for other threads may as well be idle.
        let spare = |awaited: &Self| {
            let others = match () {
                () if awaited.is_until_woken() => elsewhere,
                () if awaited.is_fault() => locked,
                () => 0.0,
            };
            let spare = (threads - idle - others - waiting).max(0.0);
            if awaited.is_until_woken() { spare.min(perhaps_own) } else { spare }
        };
        let explains = |awaited: &Self| awaited.holds_up || awaited.threads - spare(awaited) >= MOST * worked_on;
        // A lock for which somebody waits most of the time is hardly ever free: its holders serve one after the other, whatever each of them does meanwhile.
        let held_up = |awaited: &Self| {
            let spare = spare(awaited);
            (awaited.threads - spare).max(0.0) / (threads - idle - spare).max(worked_on)
        };
        let surely = |share: f64| Cost::of_time(wilson(share.min(1.0), looks as u64).0);
        let is_contended = |awaited: &Self| awaited.is_lock() && awaited.is_always_waited_for() && surely(held_up(awaited)).hurts();
        // Whoever writes to a pipe or socket that stays full, others wait for in turn: for the lock of a log, as a rule. Of many threads only some are looked at, and it may be none of them.
        let is_stuck = |awaited: &Self| awaited.is_output() && awaited.threads >= MOST * workers as f64;
        // Few may ask for all the others.
        let names = all.iter().any(Self::is_of_names).then(|| Names::of(ctx, tier)).flatten();
        let asks_for_all = |awaited: &Self| names.is_some_and(|names| names.hold_up(awaited, waiting));
        let is_reason = |awaited: &Self| explains(awaited) || is_stuck(awaited);
        let first = |is: &dyn Fn(&Self) -> bool| all.iter().position(is);
        let each_waits = first(&is_contended).or_else(|| first(&is_reason));
        let most = each_waits.or_else(|| first(&asks_for_all))?;
        let found = all.swap_remove(most);
        // A session serves one request: whatever else waits so is the server's own.
        let number = if found.is_until_woken() { found.threads.min(worked_on) } else { found.threads };
        Some(Self { asks_for_all: each_waits.is_none(), threads: number, ..found })
    }

    /// True if they wait for data that is read from a disk or written to it.
    pub(crate) fn is_disk(&self) -> bool {
        self.kind == WaitKind::Disk
    }

    /// What they wait for, as a part of a sentence: "a lock on /srv/data/orders.lock, held by php-fpm (process 4711)".
    pub(crate) fn what(&self) -> Message {
        let id = match self.kind {
            WaitKind::FileLock => "awaited-file-lock",
            WaitKind::RetriedLock => "awaited-retried-lock",
            WaitKind::Semaphore => "awaited-semaphore",
            WaitKind::SharedLock => "awaited-shared-lock",
            WaitKind::Disk => "awaited-disk",
            WaitKind::FullPipe => "awaited-full-pipe",
            WaitKind::FullSocket => "awaited-full-socket",
            WaitKind::EmptyPipe => "awaited-empty-pipe",
            WaitKind::NameServer | WaitKind::NameQuestion => "awaited-name-server",
            WaitKind::Child => "awaited-child",
            WaitKind::Timer => "awaited-timer",
            WaitKind::Transaction => "awaited-transaction",
            WaitKind::Session => "awaited-session",
        };
        let (pid, name) = self.holder.as_ref().map_or((0, ""), |(pid, name)| (*pid, name.as_deref().unwrap_or("")));
        let object = self.object.as_deref().unwrap_or("");
        let message = Message::new(id).with("object", object).with("is_known", if object.is_empty() { "no" } else { "yes" });
        let held = match (pid, name) {
            (0, _) => "no",
            (_, "") => "unnamed",
            _ => "yes",
        };
        message.with("held", held).with("holder", name).with("pid", pid.to_string())
    }

    /// The same with what the one that has the lock waits for, for a title.
    pub(crate) fn chain(&self) -> Message {
        let Some(waits_for) = &self.holder_waits_for else { return self.what() };
        Message::new("awaited-meanwhile").with("what", self.what()).with("for", waits_for.kind.word())
    }

    /// True if they sleep for a time of their own.
    pub(crate) fn is_sleep(&self) -> bool {
        self.kind == WaitKind::Timer
    }

    /// The word of its kind.
    pub(crate) fn word(&self) -> &'static str {
        self.kind.word()
    }

    /// The word of what makes it shorter.
    pub(crate) fn class(&self) -> &'static str {
        match self.kind {
            WaitKind::Transaction if self.holder_waits_for.is_none() => "transaction",
            WaitKind::Session => "session",
            _ if self.is_of_names() => "names",
            _ if self.holder_waits_for.is_some() => "held-up",
            _ if self.is_lock() => "lock",
            _ if self.is_output() => "output",
            _ => "other",
        }
    }

    /// True for a lock: whoever holds it serves another request.
    pub(crate) fn is_lock(&self) -> bool {
        use WaitKind::{FileLock, RetriedLock, Semaphore, Session, SharedLock, Transaction};
        matches!(self.kind, FileLock | RetriedLock | Semaphore | SharedLock | Transaction | Session)
    }

    /// True if another thread of the program ends the wait.
    fn is_until_woken(&self) -> bool {
        self.kind == WaitKind::Session
    }

    /// True for what takes no time while all is well: a reader of the output, and a name server whose answers are kept.
    pub(crate) fn is_fault(&self) -> bool {
        self.is_lock() || self.is_output() || self.is_of_names()
    }

    fn is_of_names(&self) -> bool {
        matches!(self.kind, WaitKind::NameServer | WaitKind::NameQuestion)
    }

    /// True for output that nobody reads in time.
    fn is_output(&self) -> bool {
        matches!(self.kind, WaitKind::FullPipe | WaitKind::FullSocket)
    }

    fn is_always_waited_for(&self) -> bool {
        self.moments >= SAMPLES_MIN && self.seen_at as f64 > MOST * self.moments as f64
    }

    /// Whose wait it is: "only" the thread that serves all, or "some" of several.
    pub(crate) fn thread(&self) -> &'static str {
        if self.holds_up { "only" } else { "some" }
    }

    /// What the looks showed.
    pub(crate) fn proofs(&self) -> Vec<Evidence> {
        let of_holder = self.holder_waits_for.as_ref().map(|waits_for| {
            let text =
                Message::new("evidence-awaited-meanwhile").with("for", waits_for.kind.word()).with("threads", tenths(waits_for.threads));
            Evidence::new(text, "/proc/PID/task/TID/syscall", Some(tenths(waits_for.threads)))
        });
        let for_all = || Evidence::new(Message::new("evidence-awaited-for-all"), "sock_diag", None);
        let woken = || Evidence::new(Message::new("evidence-awaited-woken"), "/proc/PID/task/TID/syscall, /proc/PID/mem", None);
        let others = [self.asks_for_all.then(for_all), self.is_until_woken().then(woken), of_holder];
        std::iter::once(self.proof()).chain(others.into_iter().flatten()).collect()
    }

    fn proof(&self) -> Evidence {
        let (of, source) = match self.kind {
            WaitKind::Transaction => ("sessions", "/proc/PID/cmdline"),
            WaitKind::NameQuestion => ("sockets", "/proc/PID/net/udp, /proc/PID/fd"),
            _ => ("threads", "/proc/PID/task/TID/syscall"),
        };
        let text = Message::new("evidence-awaited").with("what", self.what()).with("of", of).with("seen", self.seen as f64);
        let text = text.with("looks", self.looks as f64).with("threads", tenths(self.threads));
        Evidence::new(text, source, Some(tenths(self.threads)))
    }
}

/// The waits of all processes of a tier.
#[derive(Default)]
struct Tally {
    processes: usize,
    looks: usize,
    /// When a process was looked at.
    moments: BTreeSet<u64>,
    /// Mean number of threads, and of those that wait for new work.
    threads: f64,
    idle: f64,
    /// Mean number of threads that wait for another thread without an end of their own: for a lock in memory, or for work.
    locked: f64,
    /// Mean number of threads that surely wait for no other thread's turn: for their client, or for nothing that happened in the window.
    elsewhere: f64,
    /// Mean number of threads that wait for another thread and may serve nobody.
    perhaps_own: f64,
    /// True if a process has a second thread.
    has_threads: bool,
    /// True if the main thread of a process does most of what it does on a core.
    main_serves: bool,
    kinds: BTreeMap<WaitKind, Counted>,
}

/// Waits of one kind.
#[derive(Default)]
struct Counted {
    threads: f64,
    seen: usize,
    /// When such a thread was seen.
    moments: BTreeSet<u64>,
    /// Looks at which it was the main thread.
    of_main: usize,
    /// The threads at each look that found some.
    numbers: Vec<f64>,
    objects: BTreeMap<String, f64>,
    /// When a holder of a lock was seen at all, and when each process, with whether it is one of the tier's.
    locked_at: BTreeSet<u64>,
    holders: BTreeMap<(u32, bool), BTreeSet<u64>>,
}

impl Tally {
    /// The waits of these processes, and how many of them there were at once, at least one.
    fn of(ctx: &Context<'_>, tier: &Tier, pids: &[u32]) -> (Self, usize) {
        let processes: Vec<&ProcessView> = pids.iter().filter_map(|pid| ctx.obs.processes.get(pid)).collect();
        // One that ended and the one that took its place are a single worker: each counts for its part of the looks at one.
        let looks: usize = processes.iter().map(|process| ctx.in_window(&process.syscall).count()).sum();
        let identities: Vec<&Identity> = processes.iter().filter_map(|process| process.identity.first()).collect();
        let workers = at_once(ctx, &identities).max(1);
        let of_one = looks as f64 / workers as f64;
        let mut tally = Self { processes: processes.len(), ..Self::default() };
        for process in &processes {
            tally.add(ctx, tier, process, of_one);
        }
        (tally, workers)
    }

    /// Sleepers beside a lock wait for it only if it goes round among the workers: one that always has it (a file with a process id, a turn at accept(2)) is none that they try for.
    fn tell_sleep_from_retries(&mut self) {
        let goes_round = |counted: &Counted| counted.holders.keys().filter(|(_, is_own)| *is_own).nth(1).is_some();
        let Some(alone) = self.kinds.remove(&WaitKind::RetriedLock) else { return };
        if goes_round(&alone) {
            self.kinds.insert(WaitKind::RetriedLock, alone);
            return;
        }
        let timer = self.kinds.entry(WaitKind::Timer).or_default();
        timer.threads += alone.threads;
        timer.seen += alone.seen;
        timer.of_main += alone.of_main;
        timer.moments.extend(alone.moments);
    }

    /// Adds the looks at a process; `of_one`: those at a worker that is there all the time.
    fn add(&mut self, ctx: &Context<'_>, tier: &Tier, process: &ProcessView, of_one: f64) {
        let calls: Vec<(u64, &Syscall)> = ctx.in_window(&process.syscall).map(|(at_us, call)| (*at_us, call)).collect();
        if calls.is_empty() {
            return;
        }
        self.looks += calls.len();
        let others = process.cpu.last().map_or(0, |used| used.threads.saturating_sub(1));
        self.threads += (1.0 + f64::from(others)) * calls.len() as f64 / of_one;
        self.has_threads |= others > 0;
        self.idle += calls.iter().filter(|(_, call)| waits_for_work(call)).count() as f64 / of_one;
        self.main_serves |= others == 0 || main_share(ctx, process).is_some_and(|share| share > MOST);
        let woken = Woken::of(ctx, process);
        let kept = kept_sockets(&calls);
        let is_kept = |wait: &ThreadWait| wait.kind == WaitKind::NameQuestion && wait.other.is_some_and(|inode| kept.contains(&inode));
        for (at_us, call) in &calls {
            let moment = at_us / MOMENT_US;
            self.moments.insert(moment);
            // Of many threads only some are looked at.
            let each = f64::from(others.max(call.threads.looked)) / f64::from(call.threads.looked.max(1));
            // A session's process is what a thread is elsewhere.
            if let Some(sessions) = call.sessions {
                self.threads += f64::from(sessions.all) / of_one;
                self.idle += f64::from(sessions.idle + sessions.open) / of_one;
                self.has_threads |= sessions.all > 0;
            }
            self.idle += each * f64::from(call.threads.accepting) / of_one;
            self.locked += each * f64::from(call.threads.untimed) / of_one;
            if let Some(Counts { waiting, perhaps_own, elsewhere }) = woken.as_ref().and_then(|woken| woken.at(*at_us)) {
                self.elsewhere += elsewhere / of_one;
                self.perhaps_own += perhaps_own / of_one;
                self.count(WaitKind::Session, moment, (waiting, waiting / of_one));
            }
            // A process that waits for another of the same tier is the one that started the workers.
            let is_started = |wait: &ThreadWait| wait.kind == WaitKind::Child && wait.other.is_some_and(|pid| tier.pids.contains(&pid));
            let is_own = |wait: &&ThreadWait| !is_started(wait) && !is_kept(wait);
            // Threads of one look may wait so for different objects.
            let kinds: BTreeSet<WaitKind> = call.waits.iter().filter(is_own).map(|wait| wait.kind).collect();
            for kind in kinds {
                let counted = self.kinds.entry(kind).or_default();
                counted.seen += 1;
                counted.moments.insert(moment);
                counted.numbers.push(0.0);
            }
            for wait in call.waits.iter().filter(is_own) {
                // These are no threads, of which only some are looked at.
                let is_whole = wait.is_main || matches!(wait.kind, WaitKind::Transaction | WaitKind::NameQuestion);
                let here = f64::from(wait.threads) * if is_whole { 1.0 } else { each };
                let threads = here / of_one;
                let counted = self.kinds.entry(wait.kind).or_default();
                counted.threads += threads;
                if let Some(number) = counted.numbers.last_mut() {
                    *number += here;
                }
                counted.of_main += usize::from(wait.is_main);
                if let Some(object) = &wait.object {
                    *counted.objects.entry(object.clone()).or_default() += threads;
                }
                if let Some(pid) = wait.other.filter(|_| matches!(wait.kind, WaitKind::FileLock | WaitKind::RetriedLock)) {
                    counted.locked_at.insert(moment);
                    counted.holders.entry((pid, tier.pids.contains(&pid))).or_default().insert(moment);
                }
            }
        }
    }
}

impl Tally {
    /// Counts threads of one look that wait so: `here` of the process, and their part of the mean.
    fn count(&mut self, kind: WaitKind, moment: u64, (here, part): (f64, f64)) {
        if here > 0.0 {
            let counted = self.kinds.entry(kind).or_default();
            counted.seen += 1;
            counted.moments.insert(moment);
            counted.numbers.push(here);
            counted.threads += part;
        }
    }
}

impl Counted {
    fn awaited(self, ctx: &Context<'_>, kind: WaitKind, (looks, moments): (usize, usize), is_loop: bool) -> Awaited {
        let is_full = self.is_full(looks);
        let threads = self.threads;
        let is_most = |number: &f64| *number > MOST * threads;
        let object = most(self.objects).filter(|(_, number)| is_most(number)).map(|(object, _)| object);
        let named =
            |pid: u32| (pid, ctx.obs.processes.get(&pid).and_then(|view| view.identity.last()).map(|identity| identity.comm.clone()));
        let all = self.locked_at.len();
        let holds = |((_, is_own), at): &((u32, bool), BTreeSet<u64>)| {
            if *is_own { all >= MOMENTS_MIN && at.len() == all } else { at.len() as f64 > MOST * all as f64 }
        };
        let holder = self.holders.into_iter().find(holds).map(|((pid, _), _)| named(pid));
        let holds_up = is_loop && self.of_main as f64 >= MOST * looks as f64;
        Awaited {
            kind,
            object,
            holder,
            holder_waits_for: None,
            threads,
            holds_up,
            looks,
            seen: self.seen,
            moments,
            seen_at: self.moments.len(),
            is_full,
            asks_for_all: false,
        }
    }
}

/// The sockets of a process that every look found asking a name server: they are kept for the next question (nginx, HAProxy), or wait longer than it was looked at.
fn kept_sockets(calls: &[(u64, &Syscall)]) -> BTreeSet<u32> {
    let asking = |call: &Syscall| -> BTreeSet<u32> {
        call.waits.iter().filter(|wait| wait.kind == WaitKind::NameQuestion).filter_map(|wait| wait.other).collect()
    };
    let mut looks = calls.iter().map(|(_, call)| asking(call));
    let first = looks.next().unwrap_or_default();
    looks.fold(first, |kept, asking| &kept & &asking)
}

/// Share of a process's time on a core that its main thread used in the window. `None` if it was not read, or the process used none.
fn main_share(ctx: &Context<'_>, process: &ProcessView) -> Option<f64> {
    let pid = process.identity.last()?.pid;
    let (first, last, _) = ctx.around(&process.cpu)?;
    let all: u64 = last.ran_since(first).map(|(_, ran_ns)| ran_ns).sum();
    let own: u64 = last.ran_since(first).filter(|(id, _)| *id == pid).map(|(_, ran_ns)| ran_ns).sum();
    (all > 0).then(|| own as f64 / all as f64)
}

fn most<K>(counts: BTreeMap<K, f64>) -> Option<(K, f64)> {
    counts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))
}
