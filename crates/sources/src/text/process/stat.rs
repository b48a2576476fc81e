//! `/proc/PID/stat`, which several sources of a process share, and whether a process is still alive.

use chokepoint_recording::Outcome;

use crate::root::{Root, WHY_ENDED};
use crate::text::error::{ParseError, TextLine};

/// The line has about 350 bytes; a name at most 64.
pub(crate) const BYTES_MAX: usize = 4096;

/// Flag of kernel threads (PF_KTHREAD, include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The used fields of `/proc/PID/stat` (proc_pid_stat(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    pub(crate) comm: String,
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) is_kernel_thread: bool,
    /// Of the whole process, including ended threads.
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    /// Of children that ended and were waited for, user and system time.
    pub(crate) reaped_ticks: u64,
    /// The core that it ran on last.
    pub(crate) core: Option<u32>,
    /// -20 to 19.
    pub(crate) nice: i32,
    /// Priority of those that have a real-time policy, else zero.
    pub(crate) realtime_priority: Option<u32>,
    /// Scheduling policy (sched(7)).
    pub(crate) policy: Option<u32>,
    pub(crate) threads: u32,
    pub(crate) start_ticks: u64,
    /// The start of its stack: a different address after each execution of a program, the same in all its forks. Zero without the right to trace it.
    pub(crate) start_stack: Option<u64>,
    /// Address space, bytes.
    pub(crate) virtual_bytes: u64,
    /// Exact to some dozen pages for each core: the kernel counts in batches.
    pub(crate) resident_pages: u64,
}

impl Stat {
    /// True if none of its threads runs any more. A main thread that ended before the others is a zombie too, but its process is alive.
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x') && self.threads <= 1
    }
}

/// Parses "pid (comm) state parent ...". The name may contain spaces, parentheses and newlines; it ends at the last parenthesis.
pub(crate) fn parse(place: TextLine, bytes: &[u8]) -> Result<Stat, ParseError> {
    const EXPECTED: &str = "pid (comm) state and at least 22 numbers";
    let text = String::from_utf8_lossy(bytes);
    let wrong = || place.expected(EXPECTED, &text);
    let (head, tail) = text.rsplit_once(')').ok_or_else(wrong)?;
    let (pid, comm) = head.split_once(" (").ok_or_else(wrong)?;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    // proc_pid_stat(5) counts from one and the name is the second.
    let field = |number: usize| fields.get(number - 3).copied();
    // Without the next field, the last number may be cut.
    field(25).ok_or_else(wrong)?;
    let state = field(3).and_then(|state| state.chars().next()).ok_or_else(wrong)?;
    let flags: u64 = place.number(EXPECTED, field(9))?;
    Ok(Stat {
        pid: place.number(EXPECTED, Some(pid))?,
        comm: comm.to_owned(),
        state,
        parent: place.number(EXPECTED, field(4))?,
        is_kernel_thread: flags & KERNEL_THREAD != 0,
        user_ticks: place.number(EXPECTED, field(14))?,
        system_ticks: place.number(EXPECTED, field(15))?,
        reaped_ticks: [field(16), field(17)]
            .into_iter()
            .flatten()
            .filter_map(|ticks| ticks.parse::<u64>().ok())
            .fold(0, u64::saturating_add),
        core: field(39).and_then(|core| core.parse().ok()),
        nice: place.number(EXPECTED, field(19))?,
        realtime_priority: field(40).and_then(|priority| priority.parse().ok()),
        policy: field(41).and_then(|policy| policy.parse().ok()),
        threads: place.number(EXPECTED, field(20))?,
        start_ticks: place.number(EXPECTED, field(22))?,
        start_stack: field(28).and_then(|address| address.parse().ok()),
        virtual_bytes: place.number(EXPECTED, field(23))?,
        resident_pages: place.number(EXPECTED, field(24))?,
    })
}

/// The outcome for an ended process.
pub(crate) fn ended() -> Outcome {
    Outcome::Absent(WHY_ENDED.to_owned(), None)
}

/// Reads the line of a living process; `Err(ended())` for an ended process, even if its parent has not waited for it yet.
pub(crate) fn read_alive(root: &Root, of: &'static str, pid: u32) -> Result<(Vec<u8>, Stat), Outcome> {
    match root.read_process(pid, "stat", BYTES_MAX, None) {
        Outcome::Ok(bytes) => match parse(TextLine::new(of, 1), &bytes) {
            Ok(stat) if stat.is_ended() => Err(ended()),
            Ok(stat) => Ok((bytes, stat)),
            Err(error) => Err(Outcome::Failed(error.to_string(), None)),
        },
        lack => Err(lack),
    }
}

/// Reads with `read` between two checks of the process. If it ended in between, or another process got its pid, the result is discarded.
pub(crate) fn read_while_alive(
    root: &Root,
    of: &'static str,
    pid: u32,
    read: impl FnOnce(&[u8], &Stat) -> Result<Outcome, Outcome>,
) -> Outcome {
    let (line, before) = match read_alive(root, of, pid) {
        Ok(alive) => alive,
        Err(lack) => return lack,
    };
    let outcome = read(&line, &before).unwrap_or_else(|lack| lack);
    match read_alive(root, of, pid) {
        Ok((_, after)) if after.start_ticks == before.start_ticks => outcome,
        Ok(_) => ended(),
        Err(lack) => lack,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) const TAIL: &str = "S 1 41 41 0 -1 4194560 500 0 0 0 250 125 0 0 20 0 4 0 98765 70000000 1500 18446744073709551615 1 1 0";

    #[test]
    fn the_name_may_contain_anything() {
        for name in ["nginx", "a b", ") S 1 (", "((", "x\ny", "", "a (deleted)", "\u{e9}"] {
            let stat = parse(TextLine::new("test", 1), format!("42 ({name}) {TAIL}\n").as_bytes()).unwrap();
            assert_eq!((stat.pid, stat.comm.as_str(), stat.state, stat.parent), (42, name, 'S', 1));
            assert_eq!((stat.user_ticks, stat.system_ticks, stat.threads), (250, 125, 4));
            assert_eq!((stat.start_ticks, stat.resident_pages, stat.is_kernel_thread), (98_765, 1500, false));
        }
        let lossy = parse(TextLine::new("test", 1), &[b"1 (\xff) ".as_slice(), TAIL.as_bytes()].concat()).unwrap();
        assert_eq!(lossy.comm, "\u{fffd}");
    }

    #[test]
    fn a_line_cut_before_the_last_used_field_is_an_error() {
        let line = format!("42 (a) {TAIL}");
        let enough = line.find(" 18446744073709551615").unwrap() + 2;
        for cut in 0..line.len() {
            assert_eq!(parse(TextLine::new("test", 1), &line.as_bytes()[..cut]).is_ok(), cut >= enough, "cut at {cut}");
        }
    }

    #[test]
    fn a_zombie_with_running_threads_is_alive() {
        let stat = |line: String| parse(TextLine::new("test", 1), line.as_bytes()).unwrap();
        assert!(!stat(format!("42 (a) {TAIL}")).is_ended());
        assert!(!stat(format!("42 (a) {}", TAIL.replacen('S', "Z", 1))).is_ended());
        assert!(stat(format!("42 (a) {}", TAIL.replacen('S', "Z", 1).replace("20 0 4", "20 0 1"))).is_ended());
    }

    #[test]
    fn a_process_that_ends_or_changes_while_it_is_read_gives_no_value() {
        let tree = tempfile::tempdir().unwrap();
        let directory = tree.path().join("proc/42");
        std::fs::create_dir_all(&directory).unwrap();
        let write = |line: &str| std::fs::write(directory.join("stat"), format!("42 (a) {line}\n")).unwrap();
        let root = Root::new(tree.path());
        write(TAIL);
        let value = || Ok(Outcome::Ok(b"value".to_vec()));
        assert_eq!(read_while_alive(&root, "test", 42, |_, _| value()), Outcome::Ok(b"value".to_vec()));
        let reused = read_while_alive(&root, "test", 42, |_, _| {
            write(&TAIL.replace("98765", "98766"));
            value()
        });
        assert_eq!(reused, ended());
        let gone = read_while_alive(&root, "test", 42, |_, _| {
            std::fs::remove_dir_all(&directory).unwrap();
            value()
        });
        assert_eq!(gone, ended());
        assert_eq!(read_while_alive(&root, "test", 42, |_, _| value()), ended());
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(TextLine::new("test", 1), &bytes);
        }

        #[test]
        fn random_numbers_never_panic(numbers in proptest::collection::vec(any::<i128>(), 0..60)) {
            let tail: String = numbers.iter().map(|number| format!(" {number}")).collect();
            let _ = parse(TextLine::new("test", 1), format!("1 (a) S{tail}").as_bytes());
        }
    }
}
