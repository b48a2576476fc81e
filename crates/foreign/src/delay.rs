//! Readings that somebody else can delay for ever, those of a process's memory and those of files that a user names: within a time, and within a budget of waiting
//! that all readings of a user share.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::files::read_kernel;
use crate::holder::Holder;
use crate::text::printable;

/// Most time that one reading waits. The kernel answers at once, or after it has read a page from a disk.
const READING_MAX: Duration = Duration::from_secs(1);
/// Most time that all readings of one user's processes and files wait.
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
/// Longest path that is told of a file that was left out, characters.
const TOLD_PATH_MAX: usize = 200;
/// Most processes, files and users of which it is remembered that they were left out.
const LEFT_OUT_MAX: usize = 4_096;

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
    guarded(&BUDGET, &IS_DRAWN, &Delayer::Process { proc: proc.to_owned(), pid }, read)
}

/// Runs `read`, which looks for a file that this user names, or leads a path to, and reads it: a configuration or a log. It takes as long as the file's file system wants.
/// The readings of a user's files and processes share one budget, as of [`of_process`].
///
/// # Errors
/// TimedOut, if the reading takes too long, or the budget of the user is used up; no thread can be started.
pub fn of_file<T: Send + 'static>(user: u32, path: &str, read: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    guarded(&BUDGET, &IS_DRAWN, &Delayer::File { user: Holder::of_user(user), path: path.to_owned() }, read)
}

/// CPU time of this thread, and of the readings of processes that it asked for ([`of_process`]).
pub fn thread_cpu() -> Duration {
    own_cpu() + READINGS_CPU.get()
}

fn own_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// What was left out since this program started, because it would have had to wait: for each user one sentence for processes, and one for files.
pub fn left_out() -> Vec<String> {
    budget(&BUDGET).left_out.iter().flat_map(|(user, out)| out.sentences(*user)).collect()
}

/// Who delays a reading.
enum Delayer {
    Process { proc: PathBuf, pid: u32 },
    File { user: Holder, path: String },
}

impl Delayer {
    fn user(&self) -> Holder {
        match self {
            Self::Process { proc, pid } => Holder::of_process(proc, *pid),
            Self::File { user, .. } => *user,
        }
    }

    fn what(&self) -> What {
        match self {
            Self::Process { pid, .. } => What::Process(*pid),
            Self::File { path, .. } => What::File(hash_of(path)),
        }
    }
}

fn hash_of(path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

/// What is read: at most one reading of it hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Process(u32),
    /// By the hash of its path, which may have 4 KiB.
    File(u64),
}

/// What was left out of one user's.
#[derive(Debug, Default)]
struct LeftOut {
    what: BTreeSet<What>,
    /// The first file.
    path: String,
}

impl LeftOut {
    fn sentences(&self, whose: Holder) -> Vec<String> {
        let at_least = if self.what.len() < LEFT_OUT_MAX { "" } else { "at least " };
        let processes = self.what.iter().filter(|what| matches!(what, What::Process(_))).count();
        let files = self.what.len() - processes;
        let noun = if processes == 1 { "process" } else { "processes" };
        let of_memory =
            format!("memory or mappings of {at_least}{processes} {noun} of {whose} were not read, because the processes delay that");
        let path = printable(&self.path);
        let of_files = match files {
            1 => format!("a configuration or log that {whose} names was not read, because that would have taken too long: {path}"),
            _ => format!(
                "{at_least}{files} configurations or logs that {whose} names were not read, because that would have taken too long: the first is {path}"
            ),
        };
        [(processes, of_memory), (files, of_files)].into_iter().filter(|(count, _)| *count > 0).map(|(_, sentence)| sentence).collect()
    }
}

/// What was waited for the readings of one or of all users.
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

/// What the readings of a user have waited, and those that still wait.
#[derive(Debug, Default)]
struct User {
    waited: Waited,
    hanging: BTreeSet<What>,
}

/// What is left for whom.
#[derive(Debug, Default)]
struct Budget {
    users: BTreeMap<Holder, User>,
    others: Waited,
    left_out: BTreeMap<Holder, LeftOut>,
}

impl Budget {
    /// Whether a further reading may begin, and most of the time that it may wait.
    fn most(&self, user: Holder, what: What, now: Instant) -> Option<Duration> {
        let of_user = self.users.get(&user);
        let hanging = of_user.map_or(0, |user| user.hanging.len());
        // Half of what is left: what one reading uses up, the others of its user have not.
        let half = of_user.map_or(USER_MAX, |user| user.waited.left(USER_MAX, now)) / 2;
        let is_there = of_user.is_some_and(|user| user.hanging.contains(&what));
        let (room, half) = if user.is_own() {
            (HANGING_OWN_MAX, half)
        } else {
            let others: usize = self.users.iter().filter(|(user, _)| !user.is_own()).map(|(_, user)| user.hanging.len()).sum();
            let room = if others < HANGING_OTHERS_MAX { HANGING_USER_MAX } else { 0 };
            (room, half.min(self.others.left(OTHERS_MAX, now) / 2))
        };
        (!is_there && hanging < room).then(|| half.clamp(AT_ONCE, READING_MAX))
    }

    fn wait(&mut self, user: Holder, time: Duration, now: Instant) {
        self.users.entry(user).or_default().waited.add(time, USER_MAX, now);
        if !user.is_own() {
            self.others.add(time, OTHERS_MAX, now);
        }
        // A user without a debt, and without a reading that hangs, is as good as unknown.
        self.users.retain(|_, user| !user.hanging.is_empty() || user.waited.left(USER_MAX, now) < USER_MAX);
    }

    fn leave_out(&mut self, user: Holder, delayer: &Delayer) -> io::Error {
        if self.left_out.contains_key(&user) || self.left_out.len() < LEFT_OUT_MAX {
            let out = self.left_out.entry(user).or_default();
            if out.what.len() < LEFT_OUT_MAX {
                out.what.insert(delayer.what());
            }
            if let Delayer::File { path, .. } = delayer
                && out.path.is_empty()
            {
                out.path = path.chars().take(TOLD_PATH_MAX).collect();
            }
        }
        let why = match delayer {
            Delayer::Process { .. } => format!("the process delays that ({user})"),
            Delayer::File { .. } => format!("reading what {user} names takes too long"),
        };
        io::Error::new(io::ErrorKind::TimedOut, why)
    }
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
    abandoned_by: Mutex<Option<Holder>>,
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
    delayer: &Delayer,
    read: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let what = delayer.what();
    let user = is_drawn.load(Ordering::Relaxed).then(|| delayer.user());
    if let Some(user) = user {
        let mut budget = budget(of);
        if budget.most(user, what, Instant::now()).is_none() {
            return Err(budget.leave_out(user, delayer));
        }
    }
    let reading = Arc::new(Reading::default());
    let done = start(of, what, Arc::clone(&reading), read)?;
    if let Some(result) = at_once(&done, &reading)? {
        return Ok(result);
    }
    is_drawn.store(true, Ordering::Relaxed);
    let user = user.unwrap_or_else(|| delayer.user());
    let began = Instant::now();
    let most = budget(of).most(user, what, began).unwrap_or(AT_ONCE);
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
    budget.users.entry(user).or_default().hanging.insert(what);
    Err(budget.leave_out(user, delayer))
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
    what: What,
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
            user.hanging.remove(&what);
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

        fn process(&self, pid: u32, user: u32) -> Delayer {
            let directory = self.tree.path().join(pid.to_string());
            std::fs::create_dir_all(&directory).unwrap();
            let status = format!("Uid:\t{user}\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t\nCapEff:\t0\n");
            std::fs::write(directory.join("status"), status).unwrap();
            Delayer::Process { proc: self.tree.path().to_owned(), pid }
        }

        fn read<T: Send + 'static>(&self, delayer: &Delayer, read: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
            guarded(self.budget, &self.is_drawn, delayer, read)
        }

        fn left_out(&self) -> Vec<(Holder, usize)> {
            budget(self.budget).left_out.iter().map(|(user, out)| (*user, out.what.len())).collect()
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
        let waited = budget(host.budget).users[&Holder::User(4001)].waited.time;
        assert!(host.read(&process, || 6).is_err());
        assert_eq!(budget(host.budget).users[&Holder::User(4001)].waited.time, waited, "nothing is waited for");
        assert_eq!(host.left_out(), [(Holder::User(4001), 1)]);
        drop(writer);
        while !budget(host.budget).users[&Holder::User(4001)].hanging.is_empty() {
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
        assert!(
            budget(host.budget).users[&Holder::User(4001)].waited.time <= USER_MAX,
            "{:?}",
            budget(host.budget).users[&Holder::User(4001)]
        );
        assert_eq!(budget(host.budget).users[&Holder::User(4001)].hanging.len(), HANGING_USER_MAX, "each costs a thread");
        assert_eq!(host.left_out(), [(Holder::User(4001), 100)]);
        assert_eq!(
            budget(host.budget).left_out[&Holder::User(4001)].sentences(Holder::User(4001)),
            ["memory or mappings of 100 processes of user 4001 were not read, because the processes delay that"]
        );
        // Those of others are read.
        assert_eq!(host.read(&host.process(300, 4002), || 1).unwrap(), 1);
        assert_eq!(host.read(&host.process(301, 0), || 2).unwrap(), 2);
        drop(writers);
    }

    #[test]
    fn files_of_a_user_share_the_budget_and_the_first_is_named() {
        let host = Host::new();
        let file = |user: u32, path: &str| Delayer::File { user: Holder::User(user), path: path.to_owned() };
        let writers: Vec<_> = (0..20)
            .map(|number| {
                let (read, writer) = hangs();
                let why = host.read(&file(4001, &format!("/srv/{number}\u{1b}")), read).unwrap_err();
                assert_eq!(
                    (why.kind(), why.to_string().as_str()),
                    (io::ErrorKind::TimedOut, "reading what user 4001 names takes too long")
                );
                writer
            })
            .collect();
        assert!(budget(host.budget).users[&Holder::User(4001)].waited.time <= USER_MAX);
        assert!(host.read(&host.process(7, 4001), || 1).is_err(), "as many readings hang as may");
        assert_eq!(host.read(&file(4002, "/srv/0\u{1b}"), || 1).unwrap(), 1);
        let told = budget(host.budget).left_out[&Holder::User(4001)].sentences(Holder::User(4001));
        let of_files = "20 configurations or logs that user 4001 names were not read, because that would have taken too long: the first is /srv/0\\x1b";
        assert_eq!(told, ["memory or mappings of 1 process of user 4001 were not read, because the processes delay that", of_files]);
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
        assert_eq!(budget(host.budget).most(Holder::User(0), What::Process(1), now), Some(READING_MAX));
        assert_eq!(budget(host.budget).most(Holder::User(rustix::process::getuid().as_raw()), What::Process(1), now), Some(READING_MAX));
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
        let waited = budget(host.budget).users.get(&Holder::User(4001)).map_or(Duration::ZERO, |user| user.waited.time);
        assert!(waited < AT_ONCE * 100, "{waited:?}");
    }
}
