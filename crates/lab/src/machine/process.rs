//! Processes read from /proc: identifying those of a lab, and ending them without ever hitting another process that reuses a PID.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::netns;

/// How long to wait for processes to end after SIGTERM, and then after SIGKILL.
const TERM_WAIT: Duration = Duration::from_secs(3);
const KILL_WAIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// A process. Its PID may be reused, but not together with its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Clock ticks since boot.
    pub(crate) start_ticks: u64,
    pub(crate) parent: u32,
    pub(crate) session: u32,
    pub(crate) zombie: bool,
}

/// Reads `/proc/PID/stat`; `None` where there is no such process.
pub(crate) fn read(pid: u32) -> Option<Process> {
    // A name of at most 64 bytes and 52 numbers.
    parse_stat(chokepoint_foreign::read_kernel(format!("/proc/{pid}/stat"), 1 << 12).ok()?.as_bytes())
}

/// Parses `/proc/PID/stat` (proc(5)). The name may contain blanks and parentheses, so fields are counted from the last `)`.
fn parse_stat(stat: &[u8]) -> Option<Process> {
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(stat.get(..open)?).ok()?.trim().parse().ok()?;
    let fields: Vec<&str> = std::str::from_utf8(stat.get(close + 1..)?).ok()?.split_ascii_whitespace().collect();
    // The first field here is field 3 of proc(5), the state.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Process {
        pid,
        parent: u32::try_from(number(4)?).ok()?,
        session: u32::try_from(number(6)?).ok()?,
        start_ticks: number(22)?,
        zombie: matches!(fields.first(), Some(&"Z" | &"X")),
    })
}

/// True where the process with this PID and start time still runs.
pub(crate) fn is_alive(pid: u32, start_ticks: u64) -> bool {
    read(pid).is_some_and(|process| process.start_ticks == start_ticks && !process.zombie)
}

/// All processes except zombies.
pub(crate) fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(read).filter(|process| !process.zombie).collect()
}

/// Inode of the network namespace of a process' main thread.
pub(crate) fn netns_inode(pid: u32) -> Option<u64> {
    netns::inode(Path::new(&format!("/proc/{pid}/ns/net"))).ok()
}

/// Command name, for messages.
pub(crate) fn name(pid: u32) -> String {
    chokepoint_foreign::read_kernel(format!("/proc/{pid}/comm"), 1 << 10).map_or_else(|_| "?".to_owned(), |name| name.trim_end().to_owned())
}

/// The PIDs of this process and its ancestors.
pub(crate) fn own_ancestry() -> BTreeSet<u32> {
    let mut pids = BTreeSet::new();
    let mut pid = std::process::id();
    while pid != 0 && pids.insert(pid) {
        pid = read(pid).map_or(0, |process| process.parent);
    }
    pids
}

/// The leader of a session that the lab created (setsid(2)).
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionLeader {
    pub(crate) pid: u32,
    pub(crate) start_ticks: u64,
}

/// The processes of a lab: those in its namespaces, and those of its servers' sessions in any namespace.
pub(crate) fn of_lab(namespaces: &BTreeSet<u64>, leaders: &[SessionLeader]) -> Vec<Process> {
    let processes = all();
    let ours = |process: &Process| {
        let in_session = leaders.iter().any(|leader| {
            // A PID is not reused while a session has it. If another process has it now, the session is another one too.
            let leader_now = processes.iter().find(|other| other.pid == leader.pid);
            process.session == leader.pid
                && process.start_ticks >= leader.start_ticks
                && leader_now.is_none_or(|now| now.start_ticks == leader.start_ticks)
        });
        in_session || netns_inode(process.pid).is_some_and(|inode| namespaces.contains(&inode))
    };
    processes.iter().copied().filter(ours).collect()
}

/// Ends processes: SIGTERM, then SIGKILL for those still running after three seconds. Calls `find` repeatedly, so that processes forked meanwhile
/// are ended too. Returns those that did not end.
pub(crate) fn end(mut find: impl FnMut() -> Vec<Process>) -> Vec<Process> {
    for (signal, wait) in [(Signal::TERM, TERM_WAIT), (Signal::KILL, KILL_WAIT)] {
        let deadline = Instant::now() + wait;
        let mut signalled = BTreeSet::new();
        loop {
            let left = find();
            if left.is_empty() {
                return left;
            }
            for process in left {
                if signalled.insert((process.pid, process.start_ticks)) {
                    send(&process, signal);
                }
            }
            if Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(POLL);
        }
    }
    find()
}

/// Sends a signal to exactly this process: the pidfd pins the PID while the start time is compared.
fn send(process: &Process, signal: Signal) {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return };
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if read(process.pid).is_some_and(|now| now.start_ticks == process.start_ticks) {
        // On failure the process has just ended. The caller looks again anyway.
        let _ = pidfd_send_signal(&pidfd, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &[u8] = b"4242 (a) b (x) S 17 4242 4240 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 20 1 2 3\n";

    #[test]
    fn stat_is_parsed_for_any_process_name() {
        let wanted = Process { pid: 4242, start_ticks: 98_765, parent: 17, session: 4240, zombie: false };
        assert_eq!(parse_stat(STAT), Some(wanted));
        for length in 0..STAT.len() {
            let _ = parse_stat(&STAT[..length]);
        }
        assert_eq!(parse_stat(b""), None);
        assert_eq!(parse_stat(b"1 )(  S 1"), None);
        assert_eq!(parse_stat(b"99999999999 (x) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"), None);
    }

    #[test]
    fn the_own_process_is_found() {
        let own = read(std::process::id()).unwrap();
        assert!(is_alive(own.pid, own.start_ticks) && !is_alive(own.pid, own.start_ticks + 1));
        assert!(own_ancestry().contains(&own.pid) && own_ancestry().contains(&own.parent));
        assert!(all().contains(&own));
    }

    #[test]
    fn another_process_with_a_reused_pid_is_not_of_the_lab() {
        let own = read(std::process::id()).unwrap();
        let leader = |start_ticks| [SessionLeader { pid: own.session, start_ticks }];
        let leader_start = read(own.session).map_or(0, |process| process.start_ticks);
        assert!(of_lab(&BTreeSet::new(), &leader(leader_start)).contains(&own));
        if read(own.session).is_some() {
            assert!(of_lab(&BTreeSet::new(), &leader(leader_start + 1)).is_empty());
        }
        assert!(of_lab(&BTreeSet::new(), &leader(u64::MAX)).is_empty());
        assert!(of_lab(&BTreeSet::new(), &[]).is_empty());
    }

    #[test]
    fn a_process_that_ignores_sigterm_is_killed() {
        use std::io::Read;
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "trap '' TERM; echo set; while :; do sleep 1; done"]).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut word = [0; 4];
        child.stdout.as_mut().unwrap().read_exact(&mut word).unwrap();
        let process = read(child.id()).unwrap();
        let left = end(|| read(process.pid).filter(|now| now.start_ticks == process.start_ticks && !now.zombie).into_iter().collect());
        assert!(left.is_empty());
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()), Some(libc::SIGKILL));
    }

    proptest! {
        #[test]
        fn random_bytes_are_parsed_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_stat(&bytes);
        }
    }
}
