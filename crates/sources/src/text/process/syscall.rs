//! What one process waits for: its current system call (`/proc/PID/syscall`) and the sockets that it waits for there.

use std::collections::BTreeMap;

use chokepoint_model::observation::{Observation, Sessions, Syscall, ThreadCalls, ThreadWait, WaitKind};
use chokepoint_recording::{Entry, Outcome};
use chokepoint_servers::{SessionsDef, sessions_of};

use super::files::socket_inode;
use super::sessions;
use super::stat::read_while_alive;
use super::udp;
use super::waits::{self, SharedMemory, Wait};
use crate::root::Root;
use crate::scope::put_process;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine};
use crate::text::facts;

const NAME: &str = "process_syscall";
/// The file needs the right to attach to the process (proc_pid_syscall(5), ptrace(2)) and has mode 0400.
const NEEDS: &str = "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";
/// Nine numbers.
pub(super) const LINE_BYTES_MAX: usize = 512;
/// Most threads of a process to look at, besides the main thread, and most threads to list.
const THREADS_MAX: usize = 16;
pub(super) const LISTED_MAX: usize = 1_024;
/// Most descriptors of one poll(2) or select(2) to look at. A process that waits for more is an event loop.
const DESCRIPTORS_MAX: usize = 64;
/// Descriptors of select(2) (FD_SETSIZE).
const SELECT_MAX: u64 = 1024;
/// Bytes of a `struct pollfd`.
const POLLFD_BYTES: usize = 8;
/// The call of a process outside of any call, or one that left its call during the read.
const RUNNING: &str = "running";
/// Facts of waits: of the main thread, and of other threads.
const MAIN: &str = "main";
const THREAD: &str = "thread";

/// Once a second for each process: `call`, the name of the system call of its main thread (a number if the name is unknown here, "running" outside of any
/// call), and the inodes of the sockets that it waits for: their number as `sockets`, and each as `socket`. Of the memory that a call points to, only
/// descriptors are read; neither descriptors nor addresses are kept. For a process with several threads also: how many other threads were looked at
/// (`threads`), and how many of them wait in accept(2) (`accepting`) and in futex(2) (`locked`); of these, how many without a timeout (`untimed`), and the most that
/// wait at one address (`at_one`). And for what main thread and other threads wait that is no connection (`main` and `thread`), as "KIND THREADS PROCESS OBJECT": what
/// [`WaitKind`] lists, how many of them, the process that holds the lock or was started, and the file, name server or program. Of a database with a process for each session: how many
/// there are (`sessions`), how many of them wait for their client (`idle_sessions`), how many of these within a transaction (`open_sessions`), and among the waits those for a lock.
pub(crate) const PROCESS_SYSCALL: Source =
    Source { name: NAME, scope: ScopeKind::Process, cadence: Cadence::Slow, needs: Some(NEEDS), read, put, redact: Redact::Text };

/// A descriptor that a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Awaited {
    pub(super) descriptor: i32,
    /// True if it waits for room to write, and for nothing to read.
    pub(super) is_for_room: bool,
}

/// How a system call names the descriptors that it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DescriptorArguments {
    /// The first argument is the descriptor.
    One,
    /// An array of `struct pollfd` and its length.
    Poll,
    /// A number of bits, a set for reading and a set for writing.
    Select,
    /// No socket, or too many sockets to name one.
    Nothing,
}

/// The calls in which servers wait, by their number on the reading machine (syscalls(2)).
const CALLS: &[(libc::c_long, &str, DescriptorArguments)] = &[
    (libc::SYS_read, "read", DescriptorArguments::One),
    (libc::SYS_readv, "readv", DescriptorArguments::One),
    (libc::SYS_recvfrom, "recvfrom", DescriptorArguments::One),
    (libc::SYS_recvmsg, "recvmsg", DescriptorArguments::One),
    (libc::SYS_write, "write", DescriptorArguments::One),
    (libc::SYS_writev, "writev", DescriptorArguments::One),
    (libc::SYS_sendto, "sendto", DescriptorArguments::One),
    (libc::SYS_sendmsg, "sendmsg", DescriptorArguments::One),
    (libc::SYS_connect, "connect", DescriptorArguments::One),
    (libc::SYS_accept, "accept", DescriptorArguments::One),
    (libc::SYS_accept4, "accept4", DescriptorArguments::One),
    (libc::SYS_ppoll, "ppoll", DescriptorArguments::Poll),
    (libc::SYS_pselect6, "pselect6", DescriptorArguments::Select),
    (libc::SYS_epoll_pwait, "epoll_pwait", DescriptorArguments::Nothing),
    (libc::SYS_nanosleep, "nanosleep", DescriptorArguments::Nothing),
    (libc::SYS_clock_nanosleep, "clock_nanosleep", DescriptorArguments::Nothing),
    (libc::SYS_futex, "futex", DescriptorArguments::Nothing),
    (libc::SYS_flock, "flock", DescriptorArguments::Nothing),
    (libc::SYS_fcntl, "fcntl", DescriptorArguments::Nothing),
    (libc::SYS_semop, "semop", DescriptorArguments::Nothing),
    (libc::SYS_semtimedop, "semtimedop", DescriptorArguments::Nothing),
    (libc::SYS_fsync, "fsync", DescriptorArguments::Nothing),
    (libc::SYS_fdatasync, "fdatasync", DescriptorArguments::Nothing),
    (libc::SYS_wait4, "wait4", DescriptorArguments::Nothing),
    // Newer architectures have only the calls above.
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_poll, "poll", DescriptorArguments::Poll),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_select, "select", DescriptorArguments::Select),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_epoll_wait, "epoll_wait", DescriptorArguments::Nothing),
];

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid() else { return Vec::new() };
    let root = context.root.clone();
    only_item(read_while_alive(context.root, NAME, pid, |_, stat| {
        let sessions = sessions_of(&stat.comm).filter(|def| !def.are_threads());
        Ok(context.root.delayed(pid, move || read_call(&root, pid, sessions).unwrap_or_else(|lack| lack)))
    }))
}

/// All that the process can delay in one piece: within [`Root::delayed`].
fn read_call(root: &Root, pid: u32, sessions: Option<&SessionsDef>) -> Result<Outcome, Outcome> {
    let line = || match root.of_process(pid, root.read(&format!("proc/{pid}/syscall"), LINE_BYTES_MAX, Some(NEEDS))) {
        Outcome::Ok(bytes) => Ok(bytes),
        lack => Err(lack),
    };
    let before = line()?;
    let (mut call, names, arguments) = call_of(&String::from_utf8_lossy(&before));
    let mut sockets = Vec::new();
    let awaited = descriptors(root, pid, names, arguments);
    let memory = SharedMemory::default();
    let mut wait = number_of(&before).and_then(|number| waits::of(root, pid, (number, arguments), &awaited, &memory));
    for Awaited { descriptor, .. } in awaited {
        if let Outcome::Ok(target) = root.link_process(pid, &format!("fd/{descriptor}"), None) {
            sockets.extend(socket_inode(&String::from_utf8_lossy(&target)));
        }
    }
    // The arguments are valid only if the call has not changed.
    if (!sockets.is_empty() || wait.is_some()) && line()? != before {
        (call, sockets, wait) = (RUNNING.to_owned(), Vec::new(), None);
    }
    let mut text = Vec::new();
    facts::add(&mut text, "call", call.as_bytes());
    facts::add(&mut text, "sockets", sockets.len().to_string().as_bytes());
    for inode in sockets {
        facts::add(&mut text, "socket", inode.to_string().as_bytes());
    }
    let (threads, mut others) = threads(root, pid, &memory);
    // Where a thread waits for the answer, its call says so, and a process without threads has no other way: most of a pool are spared the tables.
    let is_asking = |wait: &Wait| wait.kind == WaitKind::NameServer;
    if threads.looked > 0 && !wait.iter().chain(others.keys()).any(is_asking) {
        others.extend(udp::questions(root, pid));
    }
    if let Some(def) = sessions {
        let (told, waits) = sessions::read(root, pid, def);
        for (name, number) in [("sessions", told.all), ("idle_sessions", told.idle), ("open_sessions", told.open)] {
            facts::add(&mut text, name, number.to_string().as_bytes());
        }
        others.extend(waits);
    }
    if threads.looked > 0 {
        let counts = [("threads", threads.looked), ("accepting", threads.accepting), ("locked", threads.locked)];
        for (name, number) in counts.into_iter().chain([("untimed", threads.untimed), ("at_one", threads.at_one)]) {
            facts::add(&mut text, name, number.to_string().as_bytes());
        }
    }
    for (name, wait, number) in wait.iter().map(|wait| (MAIN, wait, 1)).chain(others.iter().map(|(wait, number)| (THREAD, wait, *number))) {
        facts::add(&mut text, name, format!("{} {number} {} {}", wait.kind.word(), wait.other, wait.object).as_bytes());
    }
    Ok(Outcome::Ok(text))
}

/// The calls of the threads besides the main thread; of many threads an even selection in the order of their creation. Threads that end during the read are
/// left out.
fn threads(root: &Root, pid: u32, memory: &SharedMemory) -> (ThreadCalls, BTreeMap<Wait, u32>) {
    let names = root.names(&format!("proc/{pid}/task"), LISTED_MAX, None).map_or_else(|_| Vec::new(), |(names, _)| names);
    let others: Vec<u32> = names.iter().filter_map(|name| name.to_str()?.parse().ok()).filter(|thread| *thread != pid).collect();
    let mut calls = ThreadCalls::default();
    let mut addresses: BTreeMap<u64, u32> = BTreeMap::new();
    let mut waits: BTreeMap<Wait, u32> = BTreeMap::new();
    for thread in others.iter().step_by(others.len().div_ceil(THREADS_MAX).max(1)) {
        let Outcome::Ok(line) = root.read(&format!("proc/{pid}/task/{thread}/syscall"), LINE_BYTES_MAX, None) else { continue };
        let number = number_of(&line);
        let line = String::from_utf8_lossy(&line);
        let (call, names, arguments) = call_of(&line);
        let [address, ..] = arguments;
        calls.looked += 1;
        let awaited = descriptors(root, pid, names, arguments);
        if let Some(wait) = number.and_then(|number| waits::of(root, pid, (number, arguments), &awaited, memory)) {
            *waits.entry(wait).or_default() += 1;
        }
        calls.accepting += u32::from(matches!(call.as_str(), "accept" | "accept4"));
        if call == "futex" {
            calls.locked += 1;
            calls.untimed += u32::from(has_no_timeout(&line));
            *addresses.entry(address).or_default() += 1;
        }
    }
    calls.at_one = addresses.into_values().max().filter(|threads| *threads > 1).unwrap_or(0);
    (calls, waits)
}

/// The number of the call; none while the thread runs.
pub(super) fn number_of(line: &[u8]) -> Option<libc::c_long> {
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?.parse().ok().filter(|number| *number >= 0)
}

/// True if the fourth argument of futex(2), the address of a timeout, is null.
pub(super) fn has_no_timeout(line: &str) -> bool {
    line.split_ascii_whitespace().nth(4) == Some("0x0")
}

/// The call's name, how it names its descriptors, and its first three arguments, from "45 0x4 0x7f... ..." (proc_pid_syscall(5)). "-1" is a process that
/// waits outside of a call.
pub(super) fn call_of(line: &str) -> (String, DescriptorArguments, [u64; 3]) {
    let mut tokens = line.split_ascii_whitespace();
    let number = tokens.next().and_then(|token| token.parse::<libc::c_long>().ok()).filter(|number| *number >= 0);
    let Some(number) = number else { return (RUNNING.to_owned(), DescriptorArguments::Nothing, [0; 3]) };
    let mut argument = || tokens.next().and_then(|token| u64::from_str_radix(token.strip_prefix("0x")?, 16).ok());
    let arguments = argument().zip(argument()).zip(argument()).map(|((a, b), c)| [a, b, c]);
    let known = CALLS.iter().find(|(known, ..)| *known == number);
    let name = known.map_or_else(|| number.to_string(), |(_, name, _)| (*name).to_owned());
    let names = known.map_or(DescriptorArguments::Nothing, |(_, _, names)| *names);
    arguments.map_or((name.clone(), DescriptorArguments::Nothing, [0; 3]), |arguments| (name, names, arguments))
}

/// The descriptors that a call waits for; none if the memory with them cannot be read.
pub(super) fn descriptors(root: &Root, pid: u32, names: DescriptorArguments, [first, second, third]: [u64; 3]) -> Vec<Awaited> {
    match names {
        DescriptorArguments::Nothing => Vec::new(),
        // The kernel uses the lower half of the register.
        DescriptorArguments::One => vec![Awaited { descriptor: first as u32 as i32, is_for_room: false }],
        DescriptorArguments::Poll => {
            let count = usize::try_from(second).unwrap_or(usize::MAX).min(DESCRIPTORS_MAX);
            let bytes = memory(root, pid, first, count * POLLFD_BYTES);
            let awaited = |pollfd: &[u8]| {
                let descriptor = i32::from_ne_bytes(*pollfd.first_chunk()?);
                let events = i16::from_ne_bytes(*pollfd.get(4..)?.first_chunk()?);
                (descriptor >= 0).then_some(Awaited { descriptor, is_for_room: events & (libc::POLLOUT | libc::POLLIN) == libc::POLLOUT })
            };
            bytes.chunks_exact(POLLFD_BYTES).filter_map(awaited).collect()
        }
        DescriptorArguments::Select => {
            let words = usize::try_from(first.min(SELECT_MAX).div_ceil(64)).unwrap_or(0);
            let set = |address: u64| -> Vec<u64> {
                let bytes = memory(root, pid, address, words * 8);
                bytes.chunks_exact(8).map(|word| word.try_into().map(u64::from_ne_bytes).unwrap_or(0)).collect()
            };
            let of_word = |at: usize, word: u64, is_for_room: bool| {
                let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
                bits.map(move |bit| Awaited { descriptor: at as i32 * 64 + bit, is_for_room })
            };
            let (reads, writes) = (set(second), set(third));
            let is_read = |at: usize| reads.get(at).copied().unwrap_or(0);
            let to_read = reads.iter().enumerate().flat_map(|(at, word)| of_word(at, *word, false));
            let for_room = writes.iter().enumerate().flat_map(|(at, word)| of_word(at, word & !is_read(at), true));
            to_read.chain(for_room).take(DESCRIPTORS_MAX).collect()
        }
    }
}

/// `length` bytes of a process's memory; none if they cannot all be read.
pub(super) fn memory(root: &Root, pid: u32, address: u64, length: usize) -> Vec<u8> {
    if address == 0 || length == 0 {
        return Vec::new();
    }
    root.memory(pid, address, length).unwrap_or_default()
}

/// Parses the facts. There must be as many inodes as `sockets` says.
pub(crate) fn parse(bytes: &[u8]) -> Result<Syscall, ParseError> {
    const EXPECTED: &str = "call, sockets and as many lines \"socket\"";
    let facts = facts::read(NAME, bytes)?;
    let call = facts::need(NAME, &facts, "call", EXPECTED)?.text().into_owned();
    let count = facts::need(NAME, &facts, "sockets", EXPECTED)?;
    let wanted: usize = TextLine::new(NAME, count.line).number(EXPECTED, Some(&count.text()))?;
    let mut sockets = Vec::new();
    for fact in facts.iter().filter(|fact| fact.name == "socket") {
        sockets.push(TextLine::new(NAME, fact.line).number(EXPECTED, Some(&fact.text()))?);
    }
    let number = |name: &str| match facts.iter().find(|fact| fact.name == name) {
        Some(fact) => TextLine::new(NAME, fact.line).number(EXPECTED, Some(&fact.text())),
        None => Ok(0),
    };
    let threads = ThreadCalls {
        looked: number("threads")?,
        accepting: number("accepting")?,
        locked: number("locked")?,
        untimed: number("untimed")?,
        at_one: number("at_one")?,
    };
    if sockets.len() != wanted || call.is_empty() {
        return Err(TextLine::new(NAME, facts.len()).expected(EXPECTED, &format!("{} of {wanted} sockets", sockets.len())));
    }
    let has_sessions = facts.iter().any(|fact| fact.name == "sessions");
    let sessions = Sessions { all: number("sessions")?, idle: number("idle_sessions")?, open: number("open_sessions")? };
    let waits = facts.iter().filter(|fact| [MAIN, THREAD].contains(&fact.name)).map(|fact| {
        let text = fact.text();
        let place = TextLine::new(NAME, fact.line);
        wait(&text, fact.name == MAIN).ok_or_else(|| place.expected("KIND THREADS PROCESS OBJECT", &text))
    });
    let waits = waits.collect::<Result<Vec<_>, _>>()?;
    Ok(Syscall { call: Some(call).filter(|call| call != RUNNING), sockets, threads, waits, sessions: has_sessions.then_some(sessions) })
}

/// "file-lock 1 4711 /srv/data/lock".
fn wait(text: &str, is_main: bool) -> Option<ThreadWait> {
    let mut fields = text.splitn(4, ' ');
    let (kind, threads, other) = (fields.next()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let object = fields.next()?;
    Some(ThreadWait {
        kind: WaitKind::of_word(kind)?,
        is_main,
        threads,
        other: Some(other).filter(|other| *other > 0),
        object: Some(object.to_owned()).filter(|object| !object.is_empty()),
    })
}

fn put(observation: &mut Observation, entry: &Entry) {
    put_process(observation, entry, |process| &mut process.syscall, parse);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a process in this call, with these bytes at address 16 of its memory. Its descriptors 4 and 70 are sockets, and 5 is a pipe.
    fn parsed(line: &str, memory: &[u8]) -> Syscall {
        let tree = tempfile::tempdir().unwrap();
        let process = tree.path().join("proc/42");
        std::fs::create_dir_all(process.join("fd")).unwrap();
        for (descriptor, target) in [(4, "socket:[104]"), (5, "pipe:[105]"), (70, "socket:[170]")] {
            std::os::unix::fs::symlink(target, process.join(format!("fd/{descriptor}"))).unwrap();
        }
        std::fs::write(process.join("syscall"), line).unwrap();
        std::fs::write(process.join("mem"), [&[0; 16], memory].concat()).unwrap();
        let Ok(Outcome::Ok(bytes)) = read_call(&Root::new(tree.path()), 42, None) else { panic!("not read") };
        parse(&bytes).unwrap()
    }

    fn in_call(call: &str, sockets: &[u64]) -> Syscall {
        Syscall { call: Some(call.to_owned()), sockets: sockets.to_vec(), ..Syscall::default() }
    }

    fn pollfds(descriptors: &[i32]) -> Vec<u8> {
        descriptors.iter().flat_map(|descriptor| [descriptor.to_ne_bytes(), [1, 0, 0, 0]].concat()).collect()
    }

    #[test]
    fn each_kind_of_call_names_its_sockets() {
        let tail = "0x0 0x7ffc00000000 0x7f0000000000\n";
        let call = |number: libc::c_long, a: u64, b: u64, c: u64| format!("{number} {a:#x} {b:#x} {c:#x} 0x0 0x0 {tail}");
        assert_eq!(parsed(&call(libc::SYS_recvfrom, 4, 16, 9), &[]), in_call("recvfrom", &[104]));
        let pipe = ThreadWait { kind: WaitKind::EmptyPipe, is_main: true, threads: 1, other: None, object: None };
        assert_eq!(parsed(&call(libc::SYS_read, 5, 16, 9), &[]), Syscall { waits: vec![pipe], ..in_call("read", &[]) }, "a pipe");
        assert_eq!(parsed(&call(libc::SYS_accept4, 0xffff_ffff_0000_0004, 0, 0), &[]), in_call("accept4", &[104]));
        assert_eq!(parsed(&call(libc::SYS_ppoll, 16, 3, 0), &pollfds(&[5, 70, -1])), in_call("ppoll", &[170]));
        assert_eq!(parsed(&call(libc::SYS_ppoll, 16, 3, 0), &pollfds(&[4])), in_call("ppoll", &[]), "memory that ends too soon");
        assert_eq!(parsed(&call(libc::SYS_ppoll, u64::MAX, u64::MAX, 0), &[]), in_call("ppoll", &[]));
        let sets = [(1_u64 << 4).to_ne_bytes(), (1_u64 << 6).to_ne_bytes()].concat();
        assert_eq!(parsed(&call(libc::SYS_pselect6, 71, 16, 0), &sets), in_call("pselect6", &[104, 170]));
        let sleeps = ThreadWait { kind: WaitKind::Timer, is_main: true, threads: 1, other: None, object: None };
        assert_eq!(
            parsed(&call(libc::SYS_clock_nanosleep, 4, 4, 4), &[]),
            Syscall { waits: vec![sleeps], ..in_call("clock_nanosleep", &[]) }
        );
        assert_eq!(parsed("99999 0x4 0x4 0x4 0x0 0x0 0x0 0x1 0x1\n", &[]), in_call("99999", &[]));
        for nothing in ["running\n", "-1 0x7ffc00000000 0x7f0000000000\n", "", "x 0x4", "running 0x4 0x4 0x4"] {
            assert_eq!(parsed(nothing, &[]), Syscall::default(), "{nothing:?}");
        }
        for short in ["0", "0 0x4", "0 4 4 4", "0 0xg 0x0 0x0"] {
            assert_eq!(parsed(short, &[]).sockets, [0; 0], "{short:?}");
        }
    }

    #[test]
    fn calls_of_other_threads_are_counted() {
        let tree = tempfile::tempdir().unwrap();
        let process = tree.path().join("proc/42");
        // The main thread; threads that accept; two that wait for one lock, one of them until a time; one for another lock; one that sleeps.
        let calls = [
            (libc::SYS_futex, 0x4, 0x0),
            (libc::SYS_accept4, 0x4, 0x0),
            (libc::SYS_accept, 0x4, 0x0),
            (libc::SYS_futex, 0x10, 0x0),
            (libc::SYS_futex, 0x10, 0x7f),
            (libc::SYS_futex, 0x20, 0x0),
            (libc::SYS_clock_nanosleep, 0x10, 0x0),
        ];
        for (thread, (call, address, timeout)) in (42..).zip(calls) {
            let directory = process.join(format!("task/{thread}"));
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("syscall"), format!("{call} {address:#x} 0x80 0x2 {timeout:#x} 0x0 0x0 0x0 0x0\n")).unwrap();
        }
        // A thread that has just ended.
        std::fs::create_dir_all(process.join("task/99")).unwrap();
        std::fs::write(process.join("syscall"), "running\n").unwrap();
        let Ok(Outcome::Ok(bytes)) = read_call(&Root::new(tree.path()), 42, None) else { panic!("not read") };
        assert_eq!(parse(&bytes).unwrap().threads, ThreadCalls { looked: 6, accepting: 2, locked: 3, untimed: 2, at_one: 2 });
    }

    /// Reads a process whose main thread waits in the first call, and other threads in the others. Its descriptor 4 is a socket, 5 a pipe, 6 a file.
    fn waits(calls: &[(libc::c_long, u64, u64)]) -> Vec<String> {
        waits_with("70 77 ", calls)
    }

    /// The same of a process that has started these.
    fn waits_with(children: &str, calls: &[(libc::c_long, u64, u64)]) -> Vec<String> {
        let tree = tempfile::tempdir().unwrap();
        let process = tree.path().join("proc/42");
        let file = tree.path().join("file");
        std::fs::write(&file, "x").unwrap();
        std::fs::create_dir_all(process.join("fd")).unwrap();
        std::fs::create_dir_all(tree.path().join("proc/77")).unwrap();
        std::fs::write(tree.path().join("proc/77/comm"), "convert\n").unwrap();
        std::fs::write(
            tree.path().join("proc/locks"),
            "7: FLOCK ADVISORY WRITE 50 fe:00:9 0 EOF\n7: -> FLOCK ADVISORY WRITE 42 fe:00:9 0 EOF\n",
        )
        .unwrap();
        std::fs::create_dir_all(process.join("net")).unwrap();
        std::fs::write(process.join("net/unix"), "1: 2 0 0 0001 03 104\n2: 2 0 0 0002 01 107\n").unwrap();
        let polled = [(7, libc::POLLOUT), (5, libc::POLLOUT), (5, libc::POLLIN), (4, libc::POLLOUT), (6, libc::POLLOUT)];
        let pollfd = |(descriptor, events): (i32, i16)| [&descriptor.to_ne_bytes()[..], &events.to_ne_bytes(), &[0; 2]].concat();
        std::fs::write(process.join("mem"), [vec![0; 16], polled.map(pollfd).concat()].concat()).unwrap();
        std::fs::write(process.join("maps"), "1000-2000 rw-p 0 0:0 0\n2000-3000 rw-s 0 0:1 9 /dev/shm/sem.1\n").unwrap();
        for (descriptor, target) in [(4, "socket:[104]".into()), (5, "pipe:[105]".into()), (6, file.clone()), (7, "socket:[107]".into())] {
            std::os::unix::fs::symlink::<std::path::PathBuf, _>(target, process.join(format!("fd/{descriptor}"))).unwrap();
        }
        for (thread, (call, first, second)) in (42..).zip(calls) {
            let directory = process.join(format!("task/{thread}"));
            std::fs::create_dir_all(&directory).unwrap();
            let line = format!("{call} {first:#x} {second:#x} 0x1 0x0 0x0 0x0 0x0 0x0\n");
            std::fs::write(directory.join("syscall"), &line).unwrap();
            if thread == 42 {
                std::fs::write(process.join("syscall"), &line).unwrap();
                std::fs::write(directory.join("children"), children).unwrap();
            }
        }
        let Ok(Outcome::Ok(bytes)) = read_call(&Root::new(tree.path()), 42, None) else { panic!("not read") };
        let shown = |wait: &ThreadWait| {
            let object = wait.object.as_deref().map(|object| if object == file.to_string_lossy() { "FILE" } else { object });
            format!("{} {:?} {} {:?} {:?}", if wait.is_main { MAIN } else { THREAD }, wait.kind, wait.threads, wait.other, object)
        };
        parse(&bytes).unwrap().waits.iter().map(shown).collect()
    }

    #[test]
    fn what_threads_wait_for_is_told() {
        assert_eq!(waits(&[(libc::SYS_flock, 6, 2)]), ["main FileLock 1 Some(50) Some(\"FILE\")"]);
        assert_eq!(waits(&[(libc::SYS_fcntl, 6, libc::F_SETLKW as u64)]), ["main FileLock 1 Some(50) Some(\"FILE\")"]);
        assert_eq!(waits(&[(libc::SYS_fcntl, 6, libc::F_GETFL as u64)]), [""; 0]);
        assert_eq!(waits(&[(libc::SYS_fsync, 6, 0)]), ["main Disk 1 None Some(\"FILE\")"]);
        assert_eq!(waits(&[(libc::SYS_read, 6, 0)]), ["main Disk 1 None Some(\"FILE\")"]);
        assert_eq!(waits(&[(libc::SYS_write, 5, 0)]), ["main FullPipe 1 None None"]);
        assert_eq!(waits(&[(libc::SYS_sendto, 7, 0)]), ["main FullSocket 1 None None"]);
        assert_eq!(waits(&[(libc::SYS_write, 7, 0)]), ["main FullSocket 1 None None"]);
        // Until there is room: at a socket of datagrams, a pipe, what is read, a connection, a file.
        let polls = |address: u64| waits(&[(libc::SYS_ppoll, address, 1)]);
        assert_eq!([polls(16), polls(24)].concat(), ["main FullSocket 1 None None", "main FullPipe 1 None None"]);
        assert_eq!([polls(32), polls(40), polls(48)].concat(), [""; 0]);
        // A connection, at whose other end a client or a server is.
        assert_eq!(waits(&[(libc::SYS_sendto, 4, 0)]), [""; 0]);
        // FUTEX_WAIT_BITSET with FUTEX_CLOCK_REALTIME in memory that is shared; in memory that is not, as of a thread that waits for the end of another; FUTEX_WAKE; private.
        assert_eq!(waits(&[(libc::SYS_futex, 0x2010, 0x109)]), ["main SharedLock 1 None None"]);
        for (address, operation) in [(0x1010, 0x109), (0x2010, 1), (0x2010, 0x189)] {
            assert_eq!(waits(&[(libc::SYS_futex, address, operation)]), [""; 0]);
        }
        assert_eq!(waits_with("", &[(libc::SYS_read, 5, 0)]), ["main EmptyPipe 1 None None"]);
        // The output of a process that it started.
        assert_eq!(waits(&[(libc::SYS_read, 5, 0)]), ["main Child 1 Some(77) Some(\"convert\")"]);
        assert_eq!(waits(&[(libc::SYS_wait4, 77, 0)]), ["main Child 1 Some(77) Some(\"convert\")"]);
        for nothing in [libc::SYS_futex, libc::SYS_epoll_pwait, libc::SYS_accept4, libc::SYS_recvfrom] {
            assert_eq!(waits(&[(nothing, 4, 0)]), [""; 0]);
        }
        let many = [(libc::SYS_epoll_pwait, 4, 0), (libc::SYS_fsync, 6, 0), (libc::SYS_fsync, 6, 0), (libc::SYS_nanosleep, 1, 0)];
        assert_eq!(waits(&many), ["thread Disk 2 None Some(\"FILE\")", "thread Timer 1 None None"]);
    }

    /// A thread that asks a name server is found at its socket.
    #[test]
    fn a_wait_for_a_name_server_is_told() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect("127.0.0.1:53").unwrap();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&socket);
        let root = Root::default();
        let awaited = [Awaited { descriptor, is_for_room: false }];
        let wait =
            waits::of(&root, std::process::id(), (libc::SYS_recvfrom, [descriptor as u64, 0, 0]), &awaited, &SharedMemory::default());
        let named = Wait { kind: WaitKind::NameServer, object: "127.0.0.1:53".to_owned(), other: 0 };
        assert_eq!(wait, Some(named));
        socket.connect("127.0.0.1:5353").unwrap();
        assert_eq!(
            waits::of(&root, std::process::id(), (libc::SYS_recvfrom, [descriptor as u64, 0, 0]), &awaited, &SharedMemory::default()),
            None
        );
    }

    #[test]
    fn the_socket_of_a_waiting_thread_is_found() {
        let (mut reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let link = std::fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader))).unwrap();
        let inode = socket_inode(&link.to_string_lossy()).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            let _ = sender.send(rustix::thread::gettid().as_raw_nonzero().get());
            let _ = std::io::Read::read(&mut reader, &mut [0; 1]);
        });
        let thread = u32::try_from(receiver.recv().unwrap()).unwrap();
        // A thread has a directory below /proc like a process. It waits as soon as it has run.
        let seen = loop {
            match read_call(&Root::default(), thread, None) {
                Ok(Outcome::Ok(bytes)) if parse(&bytes).unwrap().sockets == [inode] => break true,
                Ok(Outcome::Ok(_)) => std::thread::yield_now(),
                Ok(lack) | Err(lack) => {
                    println!("skipped: {lack:?}");
                    break false;
                }
            }
        };
        drop(writer);
        waiting.join().unwrap();
        assert!(seen || !Root::default().path("proc/self/syscall").exists());
    }

    #[test]
    fn missing_inodes_are_an_error() {
        assert_eq!(parse(b"call running\nsockets 0\n"), Ok(Syscall::default()));
        for wrong in [
            "",
            "call x\n",
            "sockets 0\n",
            "call x\nsockets 1\n",
            "call \nsockets 0\n",
            "call x\nsockets 1\nsocket x\n",
            "call x\nsockets -1\n",
            "call x\nsockets 0\nthreads x\n",
            "call x\nsockets 0\nthreads 1\naccepting -1\n",
            "call x\nsockets 0\nmain disk\n",
            "call x\nsockets 0\nmain disk x 0 \n",
            "call x\nsockets 0\nthread nothing 1 0 \n",
        ] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
