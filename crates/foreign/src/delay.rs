//! Readings of a process that the process can delay for ever: within a time, and within a budget of waiting that all processes of a user share.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::files::read_kernel;
use crate::status::Status;

/// Most time that one reading waits. The kernel answers at once, or after it has read a page from a disk.
const READING_MAX: Duration = Duration::from_secs(1);
/// Most time that all readings of one user's processes wait.
const USER_MAX: Duration = Duration::from_secs(2);
/// Most time that the readings of all users' processes wait, without root's and those of this program's own user: they have [`USER_MAX`] in any case.
const OTHERS_MAX: Duration = Duration::from_secs(4);
/// What was waited counts for so many times its length: a program that runs for hours has its budget again and again.
const REFILL: u32 = 60;
/// A reading that takes less did not wait. Without a budget that is all the time that it has.
const AT_ONCE: Duration = Duration::from_millis(2);
/// Time between two looks at a reading that computes, or that waits for a core: that is no delay by the process.
const LOOK: Duration = Duration::from_millis(5);
/// Most readings that may hang at one time, each with a waiting thread: of one user's processes; of root's or this program's own user; of all others.
const HANGING_USER_MAX: usize = 4;
const HANGING_OWN_MAX: usize = 16;
const HANGING_OTHERS_MAX: usize = 32;
/// Most processes and users of which it is remembered that they were left out.
const LEFT_OUT_MAX: usize = 4_096;
/// The user of a process whose status cannot be read.
const NOBODY_KNOWN: u32 = u32::MAX;

static BUDGET: LazyLock<Mutex<Budget>> = LazyLock::new(Mutex::default);
/// True from the first reading on that waited: before, nobody's budget matters.
static IS_DRAWN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// CPU time of the readings that this thread asked for.
    static READINGS_CPU: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Runs `read`, which reads something of this process that the process may delay: its memory (`/proc/PID/mem`, `cmdline`, `environ`), what is read under the
/// lock of its mappings (`maps`, `smaps_rollup`, `map_files`), or under the lock that execve(2) holds (`syscall`, `io`; the opening of `mem` and `maps`). A process
/// holds such a lock for as long as a file system of its user's (FUSE) wants, or a network file system. `proc`: where procfs is mounted.
///
/// Such a reading cannot be cancelled: its thread stays until the reading or this program ends. The thread costs some 30 microseconds.
///
/// # Errors
/// TimedOut, if the process delays the reading, or the budget of its user is used up; no thread can be started.
pub fn of_process<T: Send + 'static>(proc: &Path, pid: u32, read: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let process = Process { proc: proc.to_owned(), pid };
    guarded(&BUDGET, &IS_DRAWN, &process, read)
}

/// CPU time of this thread, and of the readings of processes that it asked for ([`of_process`]).
pub fn thread_cpu() -> Duration {
    own_cpu() + READINGS_CPU.get()
}

fn own_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// What was left out since this program started, because it would have had to wait: for each user one sentence.
pub fn left_out() -> Vec<String> {
    budget(&BUDGET).left_out.iter().map(|(user, pids)| sentence(*user, pids.len())).collect()
}

fn sentence(user: u32, processes: usize) -> String {
    let whose = if user == NOBODY_KNOWN { "users that are not known".to_owned() } else { format!("user {user}") };
    let (noun, at_least) = (if processes == 1 { "process" } else { "processes" }, if processes < LEFT_OUT_MAX { "" } else { "at least " });
    format!("memory or mappings of {at_least}{processes} {noun} of {whose} were not read, because the processes delay that")
}

struct Process {
    proc: PathBuf,
    pid: u32,
}

impl Process {
    /// Its real user, whom it cannot change: the owner of its directory is root, if it wants that (PR_SET_DUMPABLE, prctl(2)).
    fn user(&self) -> u32 {
        Status::of(&self.proc, self.pid).map_or(NOBODY_KNOWN, |status| status.uids[0])
    }
}

/// What was waited for the processes of one or of all users.
#[derive(Debug, Default, Clone, Copy)]
struct Waited {
    time: Duration,
    as_of: Option<Instant>,
}

impl Waited {
    /// What is left of `most`.
    fn left(&self, most: Duration, now: Instant) -> Duration {
        let since = self.as_of.map_or(Duration::ZERO, |as_of| now.saturating_duration_since(as_of));
        most.saturating_sub(self.time.saturating_sub(since / REFILL))
    }

    fn add(&mut self, time: Duration, most: Duration, now: Instant) {
        let used = most - self.left(most, now);
        *self = Self { time: used + time, as_of: Some(now) };
    }
}

/// What the readings of a user's processes have waited, and the processes for which readings still wait.
#[derive(Debug, Default)]
struct User {
    waited: Waited,
    hanging: BTreeSet<u32>,
}

/// What is left for whom.
#[derive(Debug, Default)]
struct Budget {
    users: BTreeMap<u32, User>,
    others: Waited,
    left_out: BTreeMap<u32, BTreeSet<u32>>,
}

impl Budget {
    /// Whether a further reading may begin, and most of the time that it may wait.
    fn most(&self, user: u32, pid: u32, now: Instant) -> Option<Duration> {
        let of_user = self.users.get(&user);
        let hanging = of_user.map_or(0, |user| user.hanging.len());
        // Half of what is left: what one process uses up, the others of its user have not.
        let half = of_user.map_or(USER_MAX, |user| user.waited.left(USER_MAX, now)) / 2;
        let is_there = of_user.is_some_and(|user| user.hanging.contains(&pid));
        let (room, half) = if is_own(user) {
            (HANGING_OWN_MAX, half)
        } else {
            let others: usize = self.users.iter().filter(|(user, _)| !is_own(**user)).map(|(_, user)| user.hanging.len()).sum();
            let room = if others < HANGING_OTHERS_MAX { HANGING_USER_MAX } else { 0 };
            (room, half.min(self.others.left(OTHERS_MAX, now) / 2))
        };
        (!is_there && hanging < room).then(|| half.clamp(AT_ONCE, READING_MAX))
    }

    fn wait(&mut self, user: u32, time: Duration, now: Instant) {
        self.users.entry(user).or_default().waited.add(time, USER_MAX, now);
        if !is_own(user) {
            self.others.add(time, OTHERS_MAX, now);
        }
        // A user without a debt, and without a reading that hangs, is as good as unknown.
        self.users.retain(|_, user| !user.hanging.is_empty() || user.waited.left(USER_MAX, now) < USER_MAX);
    }

    fn leave_out(&mut self, user: u32, pid: u32) -> io::Error {
        if self.left_out.contains_key(&user) || self.left_out.len() < LEFT_OUT_MAX {
            let pids = self.left_out.entry(user).or_default();
            if pids.len() < LEFT_OUT_MAX {
                pids.insert(pid);
            }
        }
        io::Error::new(io::ErrorKind::TimedOut, format!("the process delays that (user {user})"))
    }
}

fn is_own(user: u32) -> bool {
    user == 0 || user == rustix::process::getuid().as_raw()
}

fn budget(of: &Mutex<Budget>) -> std::sync::MutexGuard<'_, Budget> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread of a reading, and what has become of it.
#[derive(Debug, Default)]
struct Reading {
    /// Zero until it runs.
    thread: AtomicU32,
    /// Some once nobody waits for it any more: whose reading it is.
    abandoned_by: Mutex<Option<u32>>,
}

impl Reading {
    /// True unless its thread computes or waits for a core.
    fn waits(&self) -> bool {
        let thread = self.thread.load(Ordering::Relaxed);
        let stat = if thread == 0 { Ok(String::new()) } else { read_kernel(format!("/proc/self/task/{thread}/stat"), 1 << 12) };
        // Without /proc it is not known.
        stat.map_or(true, |stat| stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('R')))
    }
}

fn guarded<T: Send + 'static>(
    of: &'static Mutex<Budget>,
    is_drawn: &AtomicBool,
    process: &Process,
    read: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let pid = process.pid;
    let user = is_drawn.load(Ordering::Relaxed).then(|| process.user());
    if let Some(user) = user {
        let mut budget = budget(of);
        if budget.most(user, pid, Instant::now()).is_none() {
            return Err(budget.leave_out(user, pid));
        }
    }
    let reading = Arc::new(Reading::default());
    let done = start(of, pid, Arc::clone(&reading), read)?;
    if let Some(result) = at_once(&done, &reading)? {
        return Ok(result);
    }
    is_drawn.store(true, Ordering::Relaxed);
    let user = user.unwrap_or_else(|| process.user());
    let began = Instant::now();
    let most = budget(of).most(user, pid, began).unwrap_or(AT_ONCE);
    let waited = received(done.recv_timeout(most));
    let mut budget = budget(of);
    // What it was granted: that a busy host wakes this thread late is no delay by the process.
    budget.wait(user, began.elapsed().min(most), Instant::now());
    if let Some(result) = waited? {
        return Ok(result);
    }
    let mut abandoned_by = reading.abandoned_by.lock().unwrap_or_else(PoisonError::into_inner);
    // It may have come in this moment.
    if let Ok(done) = done.try_recv() {
        return Ok(done.taken());
    }
    *abandoned_by = Some(user);
    budget.users.entry(user).or_default().hanging.insert(pid);
    Err(budget.leave_out(user, pid))
}

/// A reading that is done, and the CPU time of its thread.
struct Done<T> {
    result: T,
    cpu: Duration,
}

impl<T> Done<T> {
    fn taken(self) -> T {
        READINGS_CPU.set(READINGS_CPU.get() + self.cpu);
        self.result
    }
}

/// Begins a reading in a thread of its own.
fn start<T: Send + 'static>(
    of: &'static Mutex<Budget>,
    pid: u32,
    reading: Arc<Reading>,
    read: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Receiver<Done<T>>> {
    let (send, done) = sync_channel(1);
    let work = move || {
        reading.thread.store(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(), Ordering::Relaxed);
        let result = read();
        let abandoned_by = reading.abandoned_by.lock().unwrap_or_else(PoisonError::into_inner);
        // There is room for one result, so this does not wait, and nobody may want it any more.
        let _ = send.try_send(Done { result, cpu: own_cpu() });
        let user = *abandoned_by;
        drop(abandoned_by);
        if let Some(user) = user
            && let Some(user) = budget(of).users.get_mut(&user)
        {
            user.hanging.remove(&pid);
        }
    };
    thread::Builder::new().name("reading".to_owned()).stack_size(256 << 10).spawn(work)?;
    Ok(done)
}

/// The result of a reading that did not wait for the process; nothing if it waits.
fn at_once<T>(done: &Receiver<Done<T>>, reading: &Reading) -> io::Result<Option<T>> {
    if let Some(result) = received(done.recv_timeout(AT_ONCE))? {
        return Ok(Some(result));
    }
    let began = Instant::now();
    while !reading.waits() && began.elapsed() < READING_MAX {
        if let Some(result) = received(done.recv_timeout(LOOK))? {
            return Ok(Some(result));
        }
    }
    Ok(None)
}

fn received<T>(received: Result<Done<T>, RecvTimeoutError>) -> io::Result<Option<T>> {
    match received {
        Ok(done) => Ok(Some(done.taken())),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the reading panicked")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// A budget of its own, and processes of a made-up tree.
    struct Host {
        tree: tempfile::TempDir,
        budget: &'static Mutex<Budget>,
        is_drawn: AtomicBool,
    }

    impl Host {
        fn new() -> Self {
            Self { tree: tempfile::tempdir().unwrap(), budget: Box::leak(Box::default()), is_drawn: AtomicBool::new(false) }
        }

        fn process(&self, pid: u32, user: u32) -> Process {
            let directory = self.tree.path().join(pid.to_string());
            std::fs::create_dir_all(&directory).unwrap();
            let status = format!("Uid:\t{user}\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t\nCapEff:\t0\n");
            std::fs::write(directory.join("status"), status).unwrap();
            Process { proc: self.tree.path().to_owned(), pid }
        }

        fn read<T: Send + 'static>(&self, process: &Process, read: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
            guarded(self.budget, &self.is_drawn, process, read)
        }

        fn left_out(&self) -> Vec<(u32, usize)> {
            budget(self.budget).left_out.iter().map(|(user, pids)| (*user, pids.len())).collect()
        }
    }

    fn hangs() -> (impl FnOnce() -> u8 + Send + 'static, io::PipeWriter) {
        let (mut never, writer) = io::pipe().unwrap();
        let read = move || {
            let _ = never.read(&mut [0]);
            0
        };
        (read, writer)
    }

    #[test]
    fn a_hanging_reading_is_abandoned_and_its_process_is_not_read_again_until_it_ends() {
        let host = Host::new();
        let process = host.process(7, 4001);
        assert_eq!(host.read(&process, || 5).unwrap(), 5);
        let (read, writer) = hangs();
        assert_eq!(host.read(&process, read).unwrap_err().kind(), io::ErrorKind::TimedOut);
        let waited = budget(host.budget).users[&4001].waited.time;
        assert!(host.read(&process, || 6).is_err());
        assert_eq!(budget(host.budget).users[&4001].waited.time, waited, "nothing is waited for");
        assert_eq!(host.left_out(), [(4001, 1)]);
        drop(writer);
        while !budget(host.budget).users[&4001].hanging.is_empty() {
            thread::yield_now();
        }
        assert_eq!(host.read(&process, || 6).unwrap(), 6);
    }

    #[test]
    fn a_hundred_processes_of_a_user_wait_no_longer_than_one_may_and_blind_nobody() {
        let host = Host::new();
        let writers: Vec<_> = (100..200)
            .map(|pid| {
                let (read, writer) = hangs();
                assert!(host.read(&host.process(pid, 4001), read).is_err());
                writer
            })
            .collect();
        assert!(budget(host.budget).users[&4001].waited.time <= USER_MAX, "{:?}", budget(host.budget).users[&4001]);
        assert_eq!(budget(host.budget).users[&4001].hanging.len(), HANGING_USER_MAX, "each costs a thread");
        assert_eq!(host.left_out(), [(4001, 100)]);
        assert_eq!(sentence(4001, 100), "memory or mappings of 100 processes of user 4001 were not read, because the processes delay that");
        // Those of others are read.
        assert_eq!(host.read(&host.process(300, 4002), || 1).unwrap(), 1);
        assert_eq!(host.read(&host.process(301, 0), || 2).unwrap(), 2);
        drop(writers);
    }

    #[test]
    fn many_users_together_have_a_budget_and_root_has_its_own() {
        let host = Host::new();
        let writers: Vec<_> = (0..40)
            .map(|number| {
                let (read, writer) = hangs();
                assert!(host.read(&host.process(100 + number, 5000 + number), read).is_err());
                writer
            })
            .collect();
        let at_most = OTHERS_MAX + AT_ONCE * 100;
        assert!(budget(host.budget).others.time <= at_most, "{:?}", budget(host.budget).others);
        assert_eq!(budget(host.budget).users.values().map(|user| user.hanging.len()).sum::<usize>(), HANGING_OTHERS_MAX);
        let now = Instant::now();
        assert_eq!(budget(host.budget).most(0, 1, now), Some(READING_MAX));
        assert_eq!(budget(host.budget).most(rustix::process::getuid().as_raw(), 1, now), Some(READING_MAX));
        drop(writers);
    }

    #[test]
    fn the_time_of_a_reading_is_its_askers() {
        let host = Host::new();
        let before = thread_cpu();
        let spun = host.read(&host.process(7, 4001), || {
            let began = own_cpu();
            while own_cpu() - began < AT_ONCE {
                std::hint::spin_loop();
            }
        });
        assert!(spun.is_ok() && thread_cpu() - before >= AT_ONCE);
    }

    #[test]
    fn what_was_waited_comes_back_in_time() {
        let (mut waited, now) = (Waited::default(), Instant::now());
        waited.add(USER_MAX, USER_MAX, now);
        assert_eq!(waited.left(USER_MAX, now), Duration::ZERO);
        assert_eq!(waited.left(USER_MAX, now + USER_MAX * REFILL / 2), USER_MAX / 2);
        waited.add(Duration::ZERO, USER_MAX, now + USER_MAX * REFILL / 2);
        assert_eq!(waited.left(USER_MAX, now + USER_MAX * REFILL / 2), USER_MAX / 2);
        assert_eq!(waited.left(USER_MAX, now + USER_MAX * REFILL * 9), USER_MAX);
    }

    #[test]
    fn a_reading_that_computes_is_not_delayed_by_the_process() {
        let host = Host::new();
        let computes = || {
            let began = Instant::now();
            while began.elapsed() < AT_ONCE * 20 {
                std::hint::spin_loop();
            }
            3
        };
        for pid in 100..110 {
            assert_eq!(host.read(&host.process(pid, 4001), computes).unwrap(), 3);
        }
        let waited = budget(host.budget).users.get(&4001).map_or(Duration::ZERO, |user| user.waited.time);
        assert!(waited < AT_ONCE * 100, "{waited:?}");
    }
}
