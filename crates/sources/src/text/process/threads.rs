//! What the threads of a database's sessions do, looked at often enough that one which is woken before the time until which it waits is told from one that sleeps.

use std::time::Duration;

use chokepoint_model::observation::{LookedThread, Observation, ThreadAt, ThreadLook, TimedWait};
use chokepoint_recording::{Entry, Outcome};
use chokepoint_servers::sessions_of;
use rustix::time::{ClockId, clock_gettime};

use super::files::socket_inode;
use super::stat::read_while_alive;
use super::syscall::{self, LINE_BYTES_MAX, LISTED_MAX};
use crate::root::Root;
use crate::scope::put_process;
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};

const NAME: &str = "process_threads";
/// As for `/proc/PID/syscall`, which each thread has as well.
const NEEDS: &str = "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";
/// Most threads to look at, some 12 us each: four times a second that is a part in 300 of a core.
const THREADS_MAX: usize = 64;
/// FUTEX_WAIT_BITSET without its flags (linux/futex.h): the timeout is the time at which it ends. glibc waits so for its locks, conditions and semaphores.
const FUTEX_WAIT_BITSET: u64 = 9;
/// The flags FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME.
const FUTEX_FLAGS: u64 = FUTEX_CLOCK_REALTIME | 0x80;
const FUTEX_CLOCK_REALTIME: u64 = 0x100;
/// Longest time left that is told, nanoseconds: a program may wait until any time.
const LEFT_NS_MAX: i128 = u32::MAX as i128 * 1_000_000;
/// Bytes of a `struct timespec`.
const TIMESPEC_BYTES: usize = 16;
/// Four times a second for each database that serves its sessions by threads: "CLOCK OTHERS", where CLOCK is the time of a steady clock in milliseconds and OTHERS the number of threads besides the main thread; then a
/// line for each of up to 64 of them: "THREAD socket" (it waits for a single socket), "THREAD futex" (without an end), "THREAD until PLACE END LEFT" (in futex(2) until a time: low bits of the address and of the time,
/// and the milliseconds left at CLOCK) or "THREAD other". Of the memory that a call points to, only descriptors and times are read. Of another process nothing, once.
pub(crate) const PROCESS_THREADS: Source =
    Source { name: NAME, scope: ScopeKind::Process, cadence: Cadence::Often, needs: Some(NEEDS), read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid() else { return Vec::new() };
    let is_such = format!("{NAME} {pid}");
    // What a program is called does not change while it serves.
    if context.phase != Phase::First && context.notes.get(&is_such).is_none() {
        return Vec::new();
    }
    let outcome = read_while_alive(context.root, NAME, pid, |_, stat| {
        if !sessions_of(&stat.comm).is_some_and(|def| def.are_threads()) {
            return Ok(Outcome::Ok(Vec::new()));
        }
        context.notes.set(&is_such, Vec::new());
        let root = context.root.clone();
        Ok(context.root.delayed(pid, move || look(&root, pid)))
    });
    only_item(outcome)
}

/// The clocks of futex(2), nanoseconds.
#[derive(Clone, Copy)]
struct Clocks {
    monotonic_ns: i128,
    real_ns: i128,
}

impl Clocks {
    fn now() -> Self {
        let of = |id| Duration::try_from(clock_gettime(id)).map_or(0, |time| time.as_nanos() as i128);
        Self { monotonic_ns: of(ClockId::Monotonic), real_ns: of(ClockId::Realtime) }
    }
}

/// What a thread was found in.
enum Found {
    Other,
    Socket,
    Untimed,
    /// Until a time of one of the clocks, nanoseconds.
    Until {
        place: u16,
        end_ns: i128,
        is_real: bool,
    },
}

/// All that the process can delay in one piece: within [`Root::delayed`]. Threads that end during the read are left out; of many an even selection is looked at.
fn look(root: &Root, pid: u32) -> Outcome {
    let names = root.names(&format!("proc/{pid}/task"), LISTED_MAX, None).map_or_else(|_| Vec::new(), |(names, _)| names);
    let mut others: Vec<u32> = names.iter().filter_map(|name| name.to_str()?.parse().ok()).filter(|thread| *thread != pid).collect();
    others.sort_unstable();
    let (mut found, mut lacking) = (Vec::new(), None);
    for thread in others.iter().step_by(others.len().div_ceil(THREADS_MAX).max(1)) {
        let file = format!("proc/{pid}/task/{thread}/syscall");
        match root.read(&file, LINE_BYTES_MAX, Some(NEEDS)) {
            Outcome::Ok(line) => found.push((*thread, of_line(root, pid, &line))),
            lack => lacking = Some(lack),
        }
    }
    if let Some(lack) = lacking.filter(|_| found.is_empty()) {
        return root.of_process(pid, lack);
    }
    Outcome::Ok(text_of(&found, others.len(), Clocks::now()).into_bytes())
}

fn text_of(found: &[(u32, Found)], others: usize, now: Clocks) -> String {
    let mut text = format!("{} {others}\n", now.monotonic_ns / 1_000_000);
    for (thread, found) in found {
        let line = match found {
            Found::Other => format!("{thread} other\n"),
            Found::Socket => format!("{thread} socket\n"),
            Found::Untimed => format!("{thread} futex\n"),
            Found::Until { place, end_ns, is_real } => {
                let left_ms = (end_ns - if *is_real { now.real_ns } else { now.monotonic_ns }).clamp(0, LEFT_NS_MAX) / 1_000_000;
                format!("{thread} until {place} {} {left_ms}\n", *end_ns as u32)
            }
        };
        text.push_str(&line);
    }
    text
}

/// What a line of `syscall` says.
fn of_line(root: &Root, pid: u32, line: &[u8]) -> Found {
    let Some(number) = syscall::number_of(line) else { return Found::Other };
    let line = String::from_utf8_lossy(line);
    let (call, names, arguments) = syscall::call_of(&line);
    if number == libc::SYS_futex {
        if syscall::has_no_timeout(&line) {
            return Found::Untimed;
        }
        return until(root, pid, &line, arguments).unwrap_or(Found::Other);
    }
    let awaited = syscall::descriptors(root, pid, names, arguments);
    let is_socket = |descriptor: i32| match root.link_process(pid, &format!("fd/{descriptor}"), None) {
        Outcome::Ok(target) => socket_inode(&String::from_utf8_lossy(&target)).is_some(),
        _ => false,
    };
    match awaited.as_slice() {
        [one] if !call.starts_with("accept") && is_socket(one.descriptor) => Found::Socket,
        _ => Found::Other,
    }
}

/// A wait in futex(2) until a time. `None` for a timeout that counts from a beginning that is not known.
fn until(root: &Root, pid: u32, line: &str, [address, operation, _]: [u64; 3]) -> Option<Found> {
    if operation & !FUTEX_FLAGS != FUTEX_WAIT_BITSET {
        return None;
    }
    let timeout = u64::from_str_radix(line.split_ascii_whitespace().nth(4)?.strip_prefix("0x")?, 16).ok()?;
    let bytes = syscall::memory(root, pid, timeout, TIMESPEC_BYTES);
    let (seconds, rest) = bytes.split_first_chunk::<8>()?;
    let end_ns = i128::from(i64::from_ne_bytes(*seconds)) * 1_000_000_000 + i128::from(i64::from_ne_bytes(*rest.first_chunk()?));
    Some(Found::Until { place: address as u16, end_ns, is_real: operation & FUTEX_CLOCK_REALTIME != 0 })
}

/// Parses the lines. Nothing is a process of another kind.
pub(crate) fn parse(bytes: &[u8]) -> Result<ThreadLook, ParseError> {
    const EXPECTED: &str = "CLOCK OTHERS, then THREAD and what it does";
    if bytes.is_empty() {
        return Ok(ThreadLook::default());
    }
    let text = whole(NAME, bytes)?;
    let mut all = lines(NAME, &text);
    let (place, first) = all.next().ok_or_else(|| TextLine::new(NAME, 1).expected(EXPECTED, &text))?;
    let (clock, others) = first.split_once(' ').ok_or_else(|| place.expected(EXPECTED, first))?;
    let threads = all.map(|(place, line)| {
        let fields: Vec<&str> = line.split(' ').collect();
        let (id, at) = match fields[..] {
            [id, "other"] => (id, ThreadAt::Other),
            [id, "socket"] => (id, ThreadAt::Socket),
            [id, "futex"] => (id, ThreadAt::Untimed),
            [id, "until", at, end, left] => {
                let (at, end) = (place.number(EXPECTED, Some(at))?, place.number(EXPECTED, Some(end))?);
                (id, ThreadAt::Until(TimedWait { place: at, end, left_ms: place.number(EXPECTED, Some(left))? }))
            }
            _ => return Err(place.expected(EXPECTED, line)),
        };
        Ok(LookedThread { id: place.number(EXPECTED, Some(id))?, at })
    });
    let threads = threads.collect::<Result<_, _>>()?;
    let (clock_ms, others) = (place.number(EXPECTED, Some(clock))?, place.number(EXPECTED, Some(others))?);
    Ok(ThreadLook { clock_ms, others, threads })
}

fn put(observation: &mut Observation, entry: &Entry) {
    put_process(observation, entry, |process| &mut process.thread_looks, parse);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process whose thread 43 waits in this call. Its descriptor 4 is a socket, and its memory has a time at address 32.
    fn looked(call: &str) -> ThreadLook {
        let tree = tempfile::tempdir().unwrap();
        let process = tree.path().join("proc/42");
        for thread in ["42", "43"] {
            std::fs::create_dir_all(process.join("task").join(thread)).unwrap();
            std::fs::write(process.join("task").join(thread).join("syscall"), call).unwrap();
        }
        std::fs::create_dir_all(process.join("fd")).unwrap();
        std::os::unix::fs::symlink("socket:[104]", process.join("fd/4")).unwrap();
        let memory = [[0; 32].as_slice(), &i64::MAX.to_ne_bytes(), &7_i64.to_ne_bytes()].concat();
        std::fs::write(process.join("mem"), memory).unwrap();
        let Outcome::Ok(bytes) = look(&Root::new(tree.path()), 42) else { panic!("not read") };
        parse(&bytes).unwrap()
    }

    fn at(number: libc::c_long, arguments: &str) -> ThreadAt {
        let look = looked(&format!("{number} {arguments} 0x7ffc00000000 0x7f0000000000\n"));
        assert_eq!((look.others, look.threads.len(), look.threads[0].id), (1, 1, 43));
        look.threads[0].at
    }

    #[test]
    fn a_wait_until_a_time_is_told_from_others() {
        assert_eq!(at(libc::SYS_futex, "0x12345 0x189 0x0 0x0 0x0 0xffffffff"), ThreadAt::Untimed);
        for operation in ["0x189", "0x89", "0x9"] {
            let ThreadAt::Until(wait) = at(libc::SYS_futex, &format!("0x12345 {operation} 0x0 0x20 0x0 0xffffffff")) else {
                panic!("{operation}")
            };
            assert_eq!((wait.place, wait.left_ms > 1_000_000), (0x2345, true));
        }
        assert_eq!(at(libc::SYS_futex, "0x12345 0x80 0x0 0x20 0x0 0x0"), ThreadAt::Other, "counted from its beginning");
        assert_eq!(at(libc::SYS_futex, "0x12345 0x189 0x0 0xfff0 0x0 0x0"), ThreadAt::Other, "no such memory");
        assert_eq!(at(libc::SYS_recvfrom, "0x4 0x20 0x9 0x0 0x0 0x0"), ThreadAt::Socket);
        assert_eq!(at(libc::SYS_accept4, "0x4 0x0 0x0 0x0 0x0 0x0"), ThreadAt::Other);
        assert_eq!(at(libc::SYS_recvfrom, "0x5 0x20 0x9 0x0 0x0 0x0"), ThreadAt::Other, "no socket");
        for line in ["running\n", "", "-1 0x0 0x0\n", "202\n"] {
            assert_eq!(looked(line).threads[0].at, ThreadAt::Other, "{line:?}");
        }
    }

    #[test]
    fn what_was_not_written_so_is_refused() {
        let text = "500 3\n7 other\n8 until 4 5 6\n";
        assert_eq!(parse(text.as_bytes()).unwrap().threads.len(), 2);
        assert_eq!(parse(b"").unwrap(), ThreadLook::default());
        for wrong in ["500\n", "500 x\n", "x 3\n", "500 3\n7\n", "500 3\n7 until 4 5\n", "500 3\n7 until 70000 5 6\n", "500 3\n7 oth"] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
