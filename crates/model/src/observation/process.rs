//! Readings of one process.

use std::collections::BTreeMap;

use super::NetnsId;
use crate::observation::series::Series;

/// Everything read of one process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessView {
    /// Identity; read once.
    pub identity: Series<Identity>,
    /// CPU use over time.
    pub cpu: Series<CpuUse>,
    /// Open file descriptors.
    pub files: Series<OpenFiles>,
    /// Number of open file descriptors, read much more often than `files`. Absent before Linux 6.2.
    pub fd_count: Series<u32>,
    /// System calls of its threads over time.
    pub syscall: Series<Syscall>,
    /// What the threads of a database's sessions do, read more often than `syscall`. Empty for other programs, and in recordings of older versions.
    pub thread_looks: Series<ThreadLook>,
    /// Names of its threads; at the beginning and at the end. Empty for a single thread, and for more than 256.
    pub thread_names: Series<Vec<ThreadName>>,
    /// Who traces it; over time if anybody did when the observation began, else read once.
    pub tracing: Series<Tracing>,
    /// Memory; read at the end.
    pub memory: Series<ProcessMemory>,
    /// Resource limits in force.
    pub limits: Series<Limits>,
    /// Mappings of memory, of a process with several threads. Empty in recordings of older versions.
    pub mappings: Series<Mappings>,
    /// cgroup paths by controller ("" for cgroup v2): proc(5), `/proc/PID/cgroup`.
    pub cgroups: Series<BTreeMap<String, String>>,
}

/// Identity of a process (`/proc/PID/stat`, `status`, `exe`, `cmdline`, `ns/net`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// Parent's process id.
    pub parent: u32,
    /// Start time, clock ticks since boot. Together with the pid it identifies a process.
    pub start_ticks: u64,
    /// Command name (at most 15 bytes).
    pub comm: String,
    /// Path of the executable, where readable.
    pub exe: Option<String>,
    /// Command line with arguments joined by spaces; secrets redacted in recordings.
    pub cmdline: String,
    /// Network namespace; zero if this user may not see it.
    pub netns: NetnsId,
    /// Effective user id.
    pub uid: u32,
    /// Cores it may run on.
    pub cpus_allowed: Vec<u32>,
}

/// CPU use of all threads since the process began (`/proc/PID/stat`, `/proc/PID/schedstat`, `status`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuUse {
    /// State letter of the main thread: 'R', 'S', 'D', ...
    pub state: char,
    /// User time, clock ticks.
    pub user_ticks: u64,
    /// System time, clock ticks.
    pub system_ticks: u64,
    /// User and system time of its children that ended and that it waited for, with that of theirs, clock ticks. `None` if it was not read.
    pub reaped_ticks: Option<u64>,
    /// Time on a CPU, nanoseconds, summed over its living threads. `None` without schedstats or with more than 256 threads. It may fall when a thread ends.
    pub run_ns: Option<u64>,
    /// Time runnable but waiting for a CPU, nanoseconds, of the same threads.
    pub run_delay_ns: Option<u64>,
    /// The same for each living thread. Empty if they could not all be read.
    pub thread_times: Vec<ThreadTimes>,
    /// Threads.
    pub threads: u32,
    /// Resident memory, bytes.
    pub resident_bytes: u64,
}

impl CpuUse {
    /// For each thread of the process now its id, and how long it ran since `before`, nanoseconds: one that was not there then, since it began.
    pub(crate) fn ran_since<'u>(&'u self, before: &'u Self) -> impl Iterator<Item = (u32, u64)> + 'u {
        let run = |id: u32| before.thread_times.iter().find(|times| times.id == id).map_or(0, |times| times.run_ns);
        self.thread_times.iter().map(move |times| (times.id, times.run_ns.saturating_sub(run(times.id))))
    }

    /// How long a thread was ready and waited for a core since `before`, nanoseconds.
    pub(crate) fn delayed_since(&self, before: &Self, id: u32) -> u64 {
        let delay = |used: &Self| used.thread_times.iter().find(|times| times.id == id).map_or(0, |times| times.delay_ns);
        delay(self).saturating_sub(delay(before))
    }
}

/// A process of the host that used much CPU time, on the path or not (`/proc/PID/stat`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BusyProcess {
    /// Process id.
    pub pid: u32,
    /// Start time, clock ticks since boot.
    pub start_ticks: u64,
    /// Command name (at most 15 bytes), or what a process gave itself as one.
    pub comm: String,
    /// Effective user id. `None` if it could not be read.
    pub uid: Option<u32>,
    /// Its nice value.
    pub nice: i32,
    /// True if it runs only on cores that nobody else wants (SCHED_IDLE).
    pub is_idle_class: bool,
    /// Its real-time policy: it runs before all that have none, whatever nice values say. `None` in recordings of older versions, too.
    pub realtime: Option<RealTime>,
    /// The session among whose processes its nice value counts. `None` if it is not scheduled by session (sched(7), autogroup).
    pub session: Option<u64>,
    /// The nice value of that session.
    pub session_nice: Option<i32>,
    /// Path of the nearest control group that has a share of CPU time of its own. `None` if it could not be read.
    pub task_group: Option<String>,
    /// Its parent, the parent of that, and so on.
    pub parents: Vec<u32>,
    /// Path of its control group: of the controller `cpu`, or of the only hierarchy of version 2.
    pub cgroup: Option<String>,
    /// The core that it ran on last.
    pub core: Option<u32>,
    /// CPU time since the last reading, clock ticks, with that of children that ended.
    pub grown_ticks: u64,
    /// Inodes of its TCP sockets. `None` if this user may not see them.
    pub sockets: Option<Vec<u64>>,
}

/// How a program is scheduled before all ordinary ones (sched(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RealTime {
    /// Its policy.
    pub policy: RealTimePolicy,
    /// Its priority, 1 to 99; zero for deadlines.
    pub priority: u32,
}

/// A real-time policy (sched(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RealTimePolicy {
    /// SCHED_FIFO: it runs until it waits.
    Fifo,
    /// SCHED_RR: the same, in turns with others of its priority.
    RoundRobin,
    /// SCHED_DEADLINE: so much time in each period.
    Deadline,
}

/// CPU use of a thread since it began (`/proc/PID/task/TID/schedstat`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Thread id. The main thread has the process id.
    pub id: u32,
    /// Time on a CPU, nanoseconds.
    pub run_ns: u64,
    /// Time runnable but waiting for a CPU, nanoseconds.
    pub delay_ns: u64,
}

/// Memory of a process (`/proc/PID/smaps_rollup`, Linux 4.14).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Pages that no other process has mapped (Private_Clean and Private_Dirty), bytes: what another process like it would need.
    pub private_bytes: u64,
}

/// Open file descriptors of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenFiles {
    /// How many are open.
    pub count: u32,
    /// Inodes of the open sockets.
    pub sockets: Vec<u64>,
}

/// The system call of a process's main thread (`/proc/PID/syscall`), and of some of its other threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Syscall {
    /// Its name ("recvfrom", "poll", "clock_nanosleep"), or its number if the name is not known. `None` while the process ran.
    pub call: Option<String>,
    /// Inodes of the sockets that the call waits for. Empty if it waits for no socket or for many (epoll_wait).
    pub sockets: Vec<u64>,
    /// Its other threads. All zero if there are none, and in recordings of older versions.
    pub threads: ThreadCalls,
    /// What main thread and looked-at threads wait for that is no connection. Empty in recordings of older versions.
    pub waits: Vec<ThreadWait>,
    /// The sessions of a database that has a process for each. `None` for other programs, and in recordings of older versions.
    pub sessions: Option<Sessions>,
}

/// Sessions of a database, as the titles of their processes tell (PostgreSQL's `update_process_title`). Those that wait for a lock are in [`Syscall::waits`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sessions {
    /// All whose titles tell something.
    pub all: u32,
    /// Sessions that wait for their client outside of a transaction.
    pub idle: u32,
    /// Sessions that wait for their client within a transaction, whose locks they keep.
    pub open: u32,
}

/// Threads of one look that wait for the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadWait {
    /// What for.
    pub kind: WaitKind,
    /// True for the main thread, which is not among [`ThreadCalls::looked`].
    pub is_main: bool,
    /// How many of those that were looked at.
    pub threads: u32,
    /// The process that holds the lock or that was started, if it is known; of a question to a name server the inode of its socket, if there are few.
    pub other: Option<u32>,
    /// The file, the name server or the program, if it is known. What may be secret in a path is left out.
    pub object: Option<String>,
}

/// What a thread waits for in a system call that is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitKind {
    /// A lock on a file: flock(2), fcntl(2).
    FileLock,
    /// A lock on a file that another process has, while this one, which has the file open too, sleeps: it may try again after that (SQLite).
    RetriedLock,
    /// A semaphore of System V: semop(2).
    Semaphore,
    /// A lock or a semaphore in memory that several processes share: futex(2) without FUTEX_PRIVATE_FLAG, at a shared mapping.
    SharedLock,
    /// Data that is read from a disk or written to it: fsync(2), read(2) of a file.
    Disk,
    /// Room in a pipe or FIFO: whoever reads from it is too slow.
    FullPipe,
    /// Room in the queue of a Unix datagram socket: whoever reads from it, such as a log daemon, is too slow.
    FullSocket,
    /// What another process or thread writes to a pipe: a turn, an answer, or new work.
    EmptyPipe,
    /// The answer of a name server: a UDP socket to port 53 (RFC 1035).
    NameServer,
    /// A process that it started: waitpid(2), or its output.
    Child,
    /// A timer: nanosleep(2).
    Timer,
    /// A lock of a database that another transaction has.
    Transaction,
    /// The answer of a name server, by sockets that are connected to port 53: no thread waits for it in a call (Go).
    NameQuestion,
    /// A lock of a database that another session has: the threads of its sessions wait for it until a time, and are woken before ([`ThreadLook`]).
    Session,
}

impl WaitKind {
    /// All, with their words in a recording.
    const WORDS: [(Self, &'static str); 14] = [
        (Self::FileLock, "file-lock"),
        (Self::RetriedLock, "retried-lock"),
        (Self::Semaphore, "semaphore"),
        (Self::SharedLock, "shared-lock"),
        (Self::Disk, "disk"),
        (Self::FullPipe, "full-pipe"),
        (Self::FullSocket, "full-socket"),
        (Self::EmptyPipe, "empty-pipe"),
        (Self::NameServer, "name-server"),
        (Self::Child, "child"),
        (Self::Timer, "timer"),
        (Self::Transaction, "transaction"),
        (Self::NameQuestion, "name-question"),
        (Self::Session, "session"),
    ];

    /// Its word in a recording.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }

    /// The kind with this word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, known)| *known == word).map(|(kind, _)| *kind)
    }
}

/// One look at the threads, besides the main thread, of a database that serves its sessions by threads. Whoever is woken before the time until which he waits waited for another thread; who sleeps, or waits for nobody, is there until then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadLook {
    /// When it ended, milliseconds of a clock of its own: exacter than the time of the reading.
    pub clock_ms: u64,
    /// All threads besides the main thread.
    pub others: u32,
    /// Those that were looked at.
    pub threads: Vec<LookedThread>,
}

/// A thread at one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookedThread {
    /// Thread id.
    pub id: u32,
    /// What it did.
    pub at: ThreadAt,
}

/// What a thread does at a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadAt {
    /// It runs, or is in a call of no other kind here.
    Other,
    /// It waits for a single socket, and is not in accept(2).
    Socket,
    /// It waits in futex(2) without an end.
    Untimed,
    /// It waits in futex(2) until a time.
    Until(TimedWait),
}

/// A wait in futex(2) until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedWait {
    /// The address modulo 65,536: with the thread it tells what is waited for.
    pub place: u16,
    /// Low bits of the time at which it ends: with thread and place it tells one wait from the next.
    pub end: u32,
    /// Time left when the look ended, milliseconds.
    pub left_ms: u64,
}

/// Who traces a process (ptrace(2): a debugger, strace), and what its threads do at that moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tracing {
    /// Process id of the tracer. `None` if nobody traces it.
    pub tracer: Option<u32>,
    /// Command name of the tracer, if it could be read.
    pub name: Option<String>,
    /// Threads of a traced process, an even selection of many.
    pub threads: Vec<ThreadState>,
}

/// A thread and its name (`/proc/PID/task/TID/comm`), at most 15 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadName {
    /// Thread id. The main thread has the process id.
    pub id: u32,
    /// What the program called it; until then the name of whoever started it.
    pub name: String,
}

/// A thread and its state letter (proc_pid_stat(5)): a tracer keeps it in state 't'.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadState {
    /// Thread id. The main thread has the process id.
    pub id: u32,
    /// 'R' runs or is ready to, 't' is stopped by the tracer, 'S' sleeps, ...
    pub state: char,
}

/// System calls of some threads of a process besides the main thread (`/proc/PID/task/TID/syscall`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadCalls {
    /// Number of threads that were read.
    pub looked: u32,
    /// Threads waiting in accept(2) or accept4(2) for a connection.
    pub accepting: u32,
    /// Threads waiting in futex(2) for a lock or a signal to go on.
    pub locked: u32,
    /// The part of them whose wait has no timeout: only another thread ends it. Zero in recordings of older versions.
    pub untimed: u32,
    /// The most of them that wait at one address, as for one lock, if there are several. Zero in recordings of older versions.
    pub at_one: u32,
}

/// Resource limits in force (`/proc/PID/limits`); `None` is unlimited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Open files, soft limit.
    pub open_files_soft: Option<u64>,
    /// Open files, hard limit.
    pub open_files_hard: Option<u64>,
    /// Processes and threads of its user together, soft limit. `None` is unlimited, and in text that does not have it.
    pub tasks_soft: Option<u64>,
    /// The same, hard limit.
    pub tasks_hard: Option<u64>,
}

/// Mappings of memory of a process (`/proc/PID/maps`), and how many it may have (`vm.max_map_count`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mappings {
    /// Mappings.
    pub count: u64,
    /// The most that there may be.
    pub limit: u64,
    /// Threads that it had then.
    pub threads: u32,
}

impl Mappings {
    /// Share of the limit from which they are counted each second.
    const NEAR_SHARE: f64 = 0.8;

    /// True if there are nearly as many as there may be.
    pub fn is_near(&self) -> bool {
        self.count as f64 >= self.limit as f64 * Self::NEAR_SHARE
    }
}
