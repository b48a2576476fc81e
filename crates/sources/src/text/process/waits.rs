//! What a thread waits for in a system call, where that is no connection: a lock on a file or in shared memory, the disk, a pipe, a full socket, a name server, a process that it
//! started, a timer.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;

use std::os::unix::fs::MetadataExt;

use chokepoint_model::observation::WaitKind;
use chokepoint_recording::Outcome;

use super::syscall::Awaited;
use super::udp;
use crate::root::Root;

/// `/proc/locks` of a host with a thousand locks.
const LOCKS_BYTES_MAX: usize = 64 * 1024;
/// `/proc/PID/net/unix` of a host with some thousand sockets.
const UNIX_BYTES_MAX: usize = 512 * 1024;
/// `/proc/PID/maps` of a runtime with some thousand mappings.
const MAPS_BYTES_MAX: usize = 512 * 1024;
/// Descriptors of a sleeping process that are compared with the locked files.
const OPEN_FILES_MAX: usize = 64;
const COMM_BYTES_MAX: usize = 64;
/// Commands of fcntl(2) that wait for a lock.
const WAITING_COMMANDS: [u64; 2] = [libc::F_SETLKW as u64, libc::F_OFD_SETLKW as u64];
/// A run of letters and digits of this length in a file's name may be a secret (the id of a session), and so many characters of it say which it is.
const RUN_MAX: usize = 20;
const RUN_SHOWN: usize = 4;

/// One wait of one thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wait {
    pub(super) kind: WaitKind,
    /// The file, the name server or the program, if it is known.
    pub(super) object: String,
    /// The process that holds the lock, or the one that was started; 0 if it is not known.
    pub(super) other: u32,
}

/// Calls that wait for the disk when a thread is found in them; the first argument is the file's descriptor.
const DISK_CALLS: &[libc::c_long] = &[
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_syncfs,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_sync_file_range,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_getdents64,
];
const READ_CALLS: &[libc::c_long] = &[libc::SYS_read, libc::SYS_readv];
const WRITE_CALLS: &[libc::c_long] = &[libc::SYS_write, libc::SYS_writev, libc::SYS_splice];
const TIMER_CALLS: &[libc::c_long] = &[libc::SYS_nanosleep, libc::SYS_clock_nanosleep];
const CHILD_CALLS: &[libc::c_long] = &[libc::SYS_wait4, libc::SYS_waitid];
const SEMAPHORE_CALLS: &[libc::c_long] = &[libc::SYS_semop, libc::SYS_semtimedop];
const SEND_CALLS: &[libc::c_long] = &[libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg, libc::SYS_write, libc::SYS_writev];
/// Operations of futex(2) that wait: FUTEX_WAIT, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI, FUTEX_LOCK_PI2 (linux/futex.h), without their flags.
const FUTEX_WAITS: [u64; 5] = [0, 6, 9, 11, 13];
const FUTEX_OPERATION: u64 = 0x7f;
/// FUTEX_PRIVATE_FLAG: no other process has the lock.
const FUTEX_PRIVATE: u64 = 0x80;
/// The type of a socket in `/proc/net/unix` (SOCK_DGRAM).
const DATAGRAM: &str = "0002";

/// The shared mappings of a process, read once when they are asked for: the threads of one look share them.
#[derive(Default)]
pub(super) struct SharedMemory(OnceCell<Vec<Range<u64>>>);

impl SharedMemory {
    /// True if other processes may have the memory at this address too.
    fn has(&self, root: &Root, pid: u32, address: u64) -> bool {
        let mappings = || text(root, &format!("proc/{pid}/maps"), MAPS_BYTES_MAX).map_or_else(Vec::new, |maps| shared(&maps));
        self.0.get_or_init(mappings).iter().any(|mapping| mapping.contains(&address))
    }
}

/// The mappings that are shared ("7f00-7f10 rw-s ...", proc_pid_maps(5)).
fn shared(maps: &str) -> Vec<Range<u64>> {
    let mapping = |line: &str| {
        let (addresses, rest) = line.split_once(' ')?;
        let (from, to) = addresses.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        (rest.as_bytes().get(3) == Some(&b's')).then_some(number(from)?..number(to)?)
    };
    maps.lines().filter_map(mapping).collect()
}

/// The wait of a thread of `pid` in this call, whose arguments are these. `awaited` are the descriptors that it waits for.
pub(super) fn of(
    root: &Root,
    pid: u32,
    (call, [first, second, _]): (libc::c_long, [u64; 3]),
    awaited: &[Awaited],
    memory: &SharedMemory,
) -> Option<Wait> {
    let none = |kind| Some(Wait { kind, object: String::new(), other: 0 });
    if call == libc::SYS_futex {
        let may_be_shared = second & FUTEX_PRIVATE == 0 && FUTEX_WAITS.contains(&(second & FUTEX_OPERATION));
        return if may_be_shared && memory.has(root, pid, first) { none(WaitKind::SharedLock) } else { None };
    }
    // The kernel uses the lower half of the register.
    let descriptor = first as u32 as i32;
    let is = |calls: &[libc::c_long]| calls.contains(&call);
    if call == libc::SYS_flock || call == libc::SYS_fcntl && WAITING_COMMANDS.contains(&second) {
        return Some(Wait { kind: WaitKind::FileLock, object: file(root, pid, descriptor)?, other: lock_holder(root, pid).unwrap_or(0) });
    }
    if is(SEMAPHORE_CALLS) {
        return none(WaitKind::Semaphore);
    }
    if is(TIMER_CALLS) {
        return retried_lock(root, pid).or_else(|| none(WaitKind::Timer));
    }
    if is(CHILD_CALLS) {
        return child(root, pid);
    }
    if is(DISK_CALLS) {
        return Some(Wait { kind: WaitKind::Disk, object: file(root, pid, descriptor)?, other: 0 });
    }
    if is(READ_CALLS) || is(WRITE_CALLS) {
        let target = link(root, pid, descriptor)?;
        return match (target.as_str(), is(WRITE_CALLS)) {
            (pipe, true) if pipe.starts_with("pipe:") => none(WaitKind::FullPipe),
            // Where the process has started others, it waits for what they print.
            (pipe, false) if pipe.starts_with("pipe:") => child(root, pid).or_else(|| none(WaitKind::EmptyPipe)),
            (path, _) if path.starts_with('/') => named_file(root, pid, descriptor, path, is(WRITE_CALLS)),
            (socket, true) => full_socket(root, pid, socket),
            _ => name_server(root, pid, descriptor),
        };
    }
    if is(SEND_CALLS) {
        return full_socket(root, pid, &link(root, pid, descriptor)?);
    }
    awaited.iter().take(2).find_map(|Awaited { descriptor, is_for_room }| match is_for_room {
        true => no_room(root, pid, *descriptor),
        false => name_server(root, pid, *descriptor),
    })
}

/// What a thread that waits until it may write waits for, where that is no connection: a runtime that writes without blocking (Ruby) waits so for a pipe, a FIFO or a log daemon.
fn no_room(root: &Root, pid: u32, descriptor: i32) -> Option<Wait> {
    match link(root, pid, descriptor)?.as_str() {
        pipe if pipe.starts_with("pipe:") => Some(Wait { kind: WaitKind::FullPipe, object: String::new(), other: 0 }),
        path if path.starts_with('/') => named_file(root, pid, descriptor, path, true).filter(|wait| wait.kind == WaitKind::FullPipe),
        socket => full_socket(root, pid, socket),
    }
}

/// A wait at a path: a FIFO that nobody empties, or the disk.
fn named_file(root: &Root, pid: u32, descriptor: i32, path: &str, is_write: bool) -> Option<Wait> {
    use std::os::unix::fs::FileTypeExt;
    let kind = root.metadata(&format!("proc/{pid}/fd/{descriptor}")).ok()?.file_type();
    let kind = match () {
        () if kind.is_fifo() && is_write => WaitKind::FullPipe,
        () if kind.is_file() => WaitKind::Disk,
        // A terminal, a device, a FIFO that is read: it may be where work comes from.
        () => return None,
    };
    Some(Wait { kind, object: masked(path), other: 0 })
}

fn link(root: &Root, pid: u32, descriptor: i32) -> Option<String> {
    match root.link_process(pid, &format!("fd/{descriptor}"), None) {
        Outcome::Ok(target) => Some(String::from_utf8_lossy(&target).into_owned()),
        _ => None,
    }
}

/// The path of an open file.
fn file(root: &Root, pid: u32, descriptor: i32) -> Option<String> {
    link(root, pid, descriptor).filter(|target| target.starts_with('/')).map(|target| masked(&target))
}

fn text(root: &Root, file: &str, bytes_max: usize) -> Option<String> {
    match root.read(file, bytes_max, None) {
        Outcome::Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        _ => None,
    }
}

/// The process that holds the lock for which this one waits (proc_locks(5): a waiter's line has "->" and the number of the holder's).
fn lock_holder(root: &Root, pid: u32) -> Option<u32> {
    let locks = text(root, "proc/locks", LOCKS_BYTES_MAX)?;
    let waits = locks.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let number = fields.next()?;
        (fields.next()? == "->" && fields.nth(3)?.parse() == Ok(pid)).then_some(number)
    })?;
    locks.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        (fields.next()? == waits && fields.next()? != "->").then(|| fields.nth(2)?.parse().ok()).flatten()
    })
}

/// A file that this sleeping process has open, and that another one has locked for writing: whoever finds it locked may sleep before the next try.
fn retried_lock(root: &Root, pid: u32) -> Option<Wait> {
    let locked = locked_files(&text(root, "proc/locks", LOCKS_BYTES_MAX)?, pid);
    if locked.is_empty() {
        return None;
    }
    let (names, _) = root.names(&format!("proc/{pid}/fd"), OPEN_FILES_MAX, None).ok()?;
    names.iter().filter_map(|name| name.to_str()?.parse().ok()).find_map(|descriptor: i32| {
        let open = root.metadata(&format!("proc/{pid}/fd/{descriptor}")).ok()?;
        let other = *locked.get(&(open.dev(), open.ino()))?;
        Some(Wait { kind: WaitKind::RetriedLock, object: file(root, pid, descriptor)?, other })
    })
}

/// Device and inode of the files that other processes than this one have locked for writing, and who has each (proc_locks(5)).
fn locked_files(locks: &str, pid: u32) -> BTreeMap<(u64, u64), u32> {
    let held = locks.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, _, _, "WRITE", holder, file, ..] = fields.as_slice() else { return None };
        let holder: u32 = holder.parse().ok().filter(|holder| *holder != pid)?;
        let mut parts = file.split(':');
        let mut number = || u32::from_str_radix(parts.next()?, 16).ok();
        let device = rustix::fs::makedev(number()?, number()?);
        Some(((device, parts.next()?.parse().ok()?), holder))
    });
    held.collect()
}

/// The process that this one started and waits for: its youngest.
fn child(root: &Root, pid: u32) -> Option<Wait> {
    let other = root.children(pid)?.pop()?;
    Some(Wait { kind: WaitKind::Child, object: name(root, other).unwrap_or_default(), other })
}

/// The name of a process.
fn name(root: &Root, pid: u32) -> Option<String> {
    text(root, &format!("proc/{pid}/comm"), COMM_BYTES_MAX).map(|name| name.trim_end().to_owned())
}

/// A wait for the answer of a name server: at a connected UDP socket.
fn name_server(root: &Root, pid: u32, descriptor: i32) -> Option<Wait> {
    let path = root.path(&format!("proc/{pid}/fd/{descriptor}"));
    let mut protocol = [0; 16];
    // What `lsof` reads (net/socket.c, sockfs_xattr_get).
    let length = rustix::fs::getxattr(path, "system.sockprotoname", &mut protocol).ok()?;
    let table = match protocol.get(..length)?.strip_suffix(b"\0")? {
        b"UDP" => "udp",
        b"UDPv6" => "udp6",
        _ => return None,
    };
    let inode = super::files::socket_inode(&link(root, pid, descriptor)?)?;
    Some(Wait { kind: WaitKind::NameServer, object: udp::name_server(root, pid, table, inode)?.to_string(), other: 0 })
}

/// A wait for room in the queue of whoever reads from a Unix datagram socket, such as a log daemon (unix(7), `net.unix.max_dgram_qlen`). A stream is a connection.
fn full_socket(root: &Root, pid: u32, socket: &str) -> Option<Wait> {
    let inode = super::files::socket_inode(socket)?;
    let table = text(root, &format!("proc/{pid}/net/unix"), UNIX_BYTES_MAX)?;
    is_datagram(&table, inode).then_some(Wait { kind: WaitKind::FullSocket, object: String::new(), other: 0 })
}

/// True if a socket in `/proc/net/unix` sends and receives datagrams (proc_net(5): number, references, protocol, flags, type, state, inode, path).
fn is_datagram(table: &str, inode: u64) -> bool {
    table.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(4);
        fields.next() == Some(DATAGRAM) && fields.nth(1).is_some_and(|field| field.parse() == Ok(inode))
    })
}

/// A path without what may be secret in it.
fn masked(path: &str) -> String {
    let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, ',' | '-');
    let mut shown = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        let run = &rest[..end];
        let is_secret = run.len() >= RUN_MAX && run.bytes().any(|byte| byte.is_ascii_digit());
        if is_secret {
            shown.push_str(&run[..RUN_SHOWN]);
            shown.push('…');
        } else {
            shown.push_str(run);
        }
        rest = &rest[end..];
        if end == 0 {
            shown.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc")).unwrap();
        let locks = "1: POSIX  ADVISORY  WRITE 300 fe:00:1 0 EOF\n2: FLOCK  ADVISORY  WRITE 400 fe:00:2 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 42 fe:00:2 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 43 fe:00:2 0 EOF\n";
        std::fs::write(tree.path().join("proc/locks"), locks).unwrap();
        let root = Root::new(tree.path());
        assert_eq!((lock_holder(&root, 42), lock_holder(&root, 43), lock_holder(&root, 44)), (Some(400), Some(400), None));
    }

    #[test]
    fn a_sleeper_beside_the_holder_of_a_lock_may_try_again() {
        let tree = tempfile::tempdir().unwrap();
        let (fd, file) = (tree.path().join("proc/42/fd"), tree.path().join("orders.db"));
        std::fs::create_dir_all(&fd).unwrap();
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, fd.join("7")).unwrap();
        let open = std::fs::metadata(&file).unwrap();
        let (major, minor) = (rustix::fs::major(open.dev()), rustix::fs::minor(open.dev()));
        let root = Root::new(tree.path());
        let with = |line: &str| {
            let line = line.replace("FILE", &format!("{major:02x}:{minor:02x}:{}", open.ino()));
            std::fs::write(tree.path().join("proc/locks"), line).unwrap();
            retried_lock(&root, 42).map(|wait| (wait.kind, wait.object, wait.other))
        };
        let object = file.to_str().unwrap().to_owned();
        assert_eq!(with("1: POSIX  ADVISORY  WRITE 43 FILE 1073741825 1073741825\n"), Some((WaitKind::RetriedLock, masked(&object), 43)));
        // Its own lock, one for reading, one that another waits for, another file.
        for none in [
            "POSIX  ADVISORY  WRITE 42 FILE 0 EOF",
            "POSIX  ADVISORY  READ 43 FILE 0 EOF",
            "-> POSIX  ADVISORY  WRITE 43 FILE 0 EOF",
            "POSIX  ADVISORY  WRITE 43 00:00:1 0 EOF",
            "x",
            "",
        ] {
            assert_eq!(with(&format!("1: {none}\n")), None, "{none}");
        }
    }

    #[test]
    fn shared_mappings_are_told_from_private_ones() {
        let maps = "7f00-7f10 rw-s 00000000 00:01 7 /dev/shm/sem.1 (deleted)\n7f10-7f20 rw-p 00000000 00:00 0\n7f30-7f40 r--s 0 0:1 8 /run/a\nx\n7f20 rw-s\n";
        assert_eq!(shared(maps), [0x7f00..0x7f10, 0x7f30..0x7f40]);
    }

    #[test]
    fn datagram_sockets_are_told_from_streams() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 11 /run/a.sock\n0000000000000000: 00000002 00000000 00000000 0002 01 12\n";
        assert_eq!((is_datagram(table, 11), is_datagram(table, 12), is_datagram(table, 13)), (false, true, false));
    }

    #[test]
    fn what_may_be_secret_in_a_path_is_not_kept() {
        assert_eq!(masked("/var/lib/php/sessions/sess_4f9q8vq1gq2h3l4m5n6o7p8q9r"), "/var/lib/php/sessions/sess_4f9q…");
        for plain in ["/srv/data/orders-2026.db", "/a", "/var/log/nginx/access.log (deleted)", "/srv/ünïcödé/1"] {
            assert_eq!(masked(plain), plain);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_read(text in ".{0,200}", inode in any::<u64>()) {
            let _ = (masked(&text), locked_files(&text, 1), shared(&text), is_datagram(&text, inode));
        }
    }
}
