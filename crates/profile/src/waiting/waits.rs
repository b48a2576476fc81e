//! What a thread waits for while it does not run, according to the kernel functions that put it to sleep.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::layers::{Layer, matches};
use crate::profile::{Frame, FrameKind, Profile, Stack};
use crate::waiting::peers;

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the table WAITS says what each is")]
pub enum Wait {
    RunQueue,
    Connection,
    Connecting,
    Events,
    PeerData,
    PeerRoom,
    Pipe,
    FileLock,
    Lock,
    Disk,
    Timer,
    Child,
    Signal,
    Memory,
    Other,
    Unseen,
}

/// The text of a wait, and the functions that identify it.
struct WaitDef {
    wait: Wait,
    title: &'static str,
    /// The layer whose colour it gets in pictures.
    layer: Layer,
    /// Kernel functions of Linux 5.4 to 6.18, with `*` for any letters. If a stack matches several lines of the table, the first one counts.
    names: &'static [&'static str],
}

#[rustfmt::skip]
const WAITS: &[WaitDef] = &[
    def(Wait::Disk, "a disk", Layer::FileSystem, &["io_schedule*", "folio_wait_bit*", "wait_on_page_bit*", "wait_on_buffer*", "__wait_on_buffer", "blk_*", "jbd2_*", "log_wait_commit", "btrfs_wait_*", "xfs_log_*", "submit_bio_wait"]),
    def(Wait::FileLock, "a lock on a file", Layer::Lock, &["posix_lock_inode_wait", "locks_lock_inode_wait", "fcntl_setlk*", "do_lock_file_wait*", "flock_lock_inode_wait"]),
    def(Wait::Connection, "a connection to accept", Layer::Connection, &["inet_csk_accept", "unix_accept", "do_accept", "inet_accept"]),
    def(Wait::Connecting, "a connection being opened", Layer::Connection, &["inet_stream_connect", "__inet_stream_connect", "inet_wait_for_connect", "unix_stream_connect", "unix_wait_for_peer", "tcp_v4_connect", "tcp_v6_connect"]),
    def(Wait::PeerRoom, "space to send: the other end does not read", Layer::SocketSend, &["sk_stream_wait_memory", "sock_wait_for_wmem", "sock_alloc_send_pskb", "sk_stream_wait_connect"]),
    def(Wait::PeerData, "data from the other end (a response or a request)", Layer::SocketReceive, &["sk_wait_data", "unix_stream_data_wait", "__skb_wait_for_more_packets", "skb_wait_for_more_packets", "tcp_recvmsg*", "unix_stream_read_generic", "netlink_recvmsg"]),
    def(Wait::Events, "events of connections (epoll, poll, select)", Layer::Scheduler, &["ep_poll", "do_epoll_wait", "do_sys_poll", "do_poll*", "do_select", "io_cqring_wait", "read_events", "poll_schedule_timeout*"]),
    def(Wait::Pipe, "a pipe or terminal", Layer::FileSystem, &["pipe_read", "pipe_write", "anon_pipe_read", "anon_pipe_write", "pipe_wait*", "wait_for_partner", "n_tty_read", "n_tty_write", "eventfd_read"]),
    def(Wait::Child, "a child process", Layer::Scheduler, &["do_wait", "kernel_wait4", "__do_wait", "wait_for_vfork_done", "wait_for_completion_state"]),
    def(Wait::Signal, "a signal", Layer::Scheduler, &["do_sigtimedwait", "sigsuspend", "__do_sys_pause", "ptrace_stop", "do_signal_stop", "signalfd_read*"]),
    def(Wait::Timer, "a timer (sleep)", Layer::Interrupt, &["hrtimer_nanosleep", "do_nanosleep", "common_nsleep*", "timerfd_read*"]),
    def(Wait::Lock, "a lock (futex, or within the kernel)", Layer::Lock, &["futex_wait*", "do_futex", "__futex_wait", "futex_lock_pi*", "__mutex_lock*", "mutex_lock*", "rwsem_down_*", "down_read*", "down_write*", "__down*", "percpu_rwsem_wait", "lock_sock_nested", "__lock_sock", "rt_mutex_*", "rtlock_*"]),
    def(Wait::Memory, "memory (page faults, reclaim)", Layer::PageFault, &["do_swap_page", "migration_entry_wait*", "shrink_*", "try_to_free_*", "handle_userfault", "mem_cgroup_handle_over_high", "handle_mm_fault"]),
    def(Wait::RunQueue, "a core: ready to run", Layer::Polling, &["exit_to_user_mode_loop", "exit_to_user_mode_prepare", "irqentry_exit*", "syscall_exit_to_user_mode", "preempt_schedule*", "__cond_resched*", "do_sched_yield", "__x64_sys_sched_yield", "[run queue]"]),
    def(Wait::Unseen, "unknown: no stack was taken", Layer::Unknown, &["[not sampled]"]),
    def(Wait::Other, "something else", Layer::KernelOther, &[]),
];

const fn def(wait: Wait, title: &'static str, layer: Layer, names: &'static [&'static str]) -> WaitDef {
    WaitDef { wait, title, layer, names }
}

impl Wait {
    fn def(self) -> &'static WaitDef {
        // A test compares the table with the enum. The last line is for everything else.
        WAITS.iter().find(|def| def.wait == self).unwrap_or(&WAITS[WAITS.len() - 1])
    }

    /// Its text for readers.
    pub fn title(self) -> &'static str {
        self.def().title
    }

    pub(crate) fn layer(self) -> Layer {
        self.def().layer
    }

    /// Whether it is for the other end of connections, so that the peer can be named.
    pub(crate) fn is_for_a_peer(self) -> bool {
        matches!(self, Self::Connection | Self::Connecting | Self::Events | Self::PeerData | Self::PeerRoom)
    }

    /// What a stack waits for, according to its kernel frames.
    pub fn of(frames: &[&Frame]) -> Self {
        Self::of_rows(frames.iter().map(|frame| row(frame)))
    }

    /// What each stack of a profile waits for. A function occurs in many stacks, and comparing its name with all patterns is expensive.
    pub(crate) fn of_stacks(profile: &Profile) -> Vec<Self> {
        let rows: Vec<Option<usize>> = profile.frames.iter().map(row).collect();
        let of = |frame: &u32| rows.get(usize::try_from(*frame).ok()?).copied()?;
        profile.stacks.iter().map(|stack| Self::of_rows(stack.frames.iter().map(of))).collect()
    }

    fn of_rows(rows: impl Iterator<Item = Option<usize>>) -> Self {
        rows.flatten().min().and_then(|row| WAITS.get(row)).map_or(Self::Other, |def| def.wait)
    }
}

/// The first line of the table that names a kernel function.
fn row(frame: &Frame) -> Option<usize> {
    let name = (frame.kind == FrameKind::Kernel).then(|| without_suffix(&frame.name))?;
    WAITS.iter().position(|def| def.names.iter().any(|pattern| matches(pattern, name)))
}

/// Removes the suffixes that compilers append: ".isra.0", ".constprop.0".
fn without_suffix(name: &str) -> &str {
    name.split('.').next().filter(|name| !name.is_empty()).unwrap_or(name)
}

/// How long the threads of a program waited for one thing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitShare {
    /// The program.
    pub program: String,
    /// What it waited for.
    pub wait: Wait,
    /// The same in words.
    pub title: &'static str,
    /// The other end or ends, if known: "a request or answer of 10.0.0.3:3306".
    pub peer: Option<String>,
    /// Time, summed over its threads, seconds.
    pub seconds: f64,
    /// Share of the program's waiting.
    pub share: f64,
}

/// What programs waited for, the longest first.
pub fn waits(profile: &Profile) -> Vec<WaitShare> {
    let peer = |stack: &Stack| peers::of_frame(profile.frames.get(usize::try_from(*stack.frames.last()?).ok()?)?);
    let kinds: Vec<(Wait, Option<&str>)> = Wait::of_stacks(profile).into_iter().zip(profile.stacks.iter().map(peer)).collect();
    let mut sums: BTreeMap<(&str, Wait, Option<&str>), u64> = BTreeMap::new();
    let mut whole: BTreeMap<&str, u64> = BTreeMap::new();
    for sample in &profile.samples {
        let Some((_, thread)) = profile.of(sample) else { continue };
        let kind = usize::try_from(sample.stack).ok().and_then(|index| kinds.get(index)).copied();
        let (wait, peer) = kind.unwrap_or((Wait::Other, None));
        let sum = sums.entry((&thread.program, wait, peer)).or_default();
        *sum = sum.saturating_add(sample.weight);
        let sum = whole.entry(&thread.program).or_default();
        *sum = sum.saturating_add(sample.weight);
    }
    let mut shares: Vec<WaitShare> = (sums.into_iter())
        .map(|((program, wait, peer), weight)| WaitShare {
            program: program.to_owned(),
            wait,
            title: wait.title(),
            peer: peer.map(str::to_owned),
            seconds: weight as f64 / 1e9,
            share: weight as f64 / whole.get(program).copied().unwrap_or(0).max(1) as f64,
        })
        .collect();
    shares.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.program.cmp(&b.program)));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::folded;
    use crate::sampling::event::Clock;

    #[test]
    fn each_wait_has_one_line_and_each_name_stands_once() {
        let mut seen = std::collections::HashSet::new();
        for def in WAITS {
            assert!(!def.title.is_empty());
            for name in def.names {
                assert!(seen.insert(*name), "{name}");
            }
        }
        assert_eq!(WAITS.len(), Wait::Unseen as usize + 1);
    }

    #[test]
    fn waits_are_identified_by_kernel_functions() {
        let text = "\
php-fpm;main;read;do_syscall_64_[k];tcp_recvmsg_locked_[k];sk_wait_data_[k];schedule_timeout_[k];__schedule_[k] 30
php-fpm;main;accept;do_accept_[k];inet_csk_accept_[k];schedule_timeout_[k] 10
nginx;main;epoll_wait;do_epoll_wait_[k];ep_poll.isra.0_[k];schedule_hrtimeout_range_[k];__schedule_[k] 60
nginx;main;exit_to_user_mode_loop_[k];__schedule_[k] 20
db;main;fsync;vfs_fsync_[k];jbd2_log_wait_commit_[k];schedule_[k] 5
db;main;pthread_mutex_lock;futex_wait_queue_[k];schedule_[k] 6
db;main;sleep;do_nanosleep_[k] 7
db;main;odd;strange_[k] 8
";
        let mut profile = folded::read(text).unwrap();
        profile.clock = Clock::OffCpu;
        profile.classify();
        let found: Vec<(String, Wait)> = waits(&profile).into_iter().map(|share| (share.program, share.wait)).collect();
        let has = |program: &str, wait| assert!(found.contains(&(program.to_owned(), wait)), "{program} {wait:?}: {found:?}");
        has("php-fpm", Wait::PeerData);
        has("php-fpm", Wait::Connection);
        has("nginx", Wait::Events);
        has("nginx", Wait::RunQueue);
        has("db", Wait::Disk);
        has("db", Wait::Lock);
        has("db", Wait::Timer);
        has("db", Wait::Other);
        assert!(profile.stacks.iter().any(|stack| stack.layer == Layer::SocketReceive));
        let first = &waits(&profile)[0];
        assert!(first.program == "nginx" && (first.share - 0.75).abs() < 1e-9);
    }
}
