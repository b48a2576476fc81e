//! To whom it is charged what a process or a user takes of something that users share.
//!
//! A user may have thousands of further user ids: those of the user namespaces that this user makes, which `/etc/subuid` grants (subuid(5), newuidmap(1)). They are one
//! user's, and have one share. A container of root's, or of the user of this program, is none of theirs: it has a share of its own, whatever ids are in it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::files::{open_kernel, read_bounded};
use crate::status::real_user;

/// `NS_GET_PARENT`, `_IO(0xb7, 0x2)`: a descriptor of the parent of this user namespace (ioctl_nsfs(2)).
const NS_GET_PARENT: u32 = 0xb702;
/// `NS_GET_OWNER_UID`, `_IO(0xb7, 0x4)`: the user who made this user namespace (ioctl_nsfs(2)).
const NS_GET_OWNER_UID: u32 = 0xb704;
/// Most user namespaces below each other: the kernel allows 32 (user_namespaces(7)).
const LEVELS_MAX: usize = 40;
/// The own user namespace (proc_pid_ns(5)).
const OWN: &str = "/proc/self/ns/user";
/// Where user ids are granted, and the names of users (passwd(5)).
const GRANTS: &str = "/etc/subuid";
const USERS: &str = "/etc/passwd";
/// Most bytes of such a file.
const BYTES_MAX: usize = 1 << 20;
/// Time until they are read again.
const GRANTED_AGE_MAX: Duration = Duration::from_secs(10);

static GRANTED: Mutex<Option<Grants>> = Mutex::new(None);

/// Both files, and when they were read.
struct Grants {
    read: Instant,
    grants: String,
    users: String,
}

/// Somebody who has one share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// A user, with all user ids that were granted to this user.
    User(u32),
    /// A user namespace, by its number, that root or the user of this program made.
    Namespace(u64),
    /// User ids that were granted together to somebody whose own id is not known, by the first of them.
    Granted(u32),
    /// Whoever it is.
    Unknown,
}

impl Holder {
    /// The holder of what this process takes: the user who made the outermost user namespace below this program's own that the process is in, else its real user. `proc`:
    /// where procfs is mounted.
    pub fn of_process(proc: &Path, pid: u32) -> Self {
        match (maker(proc, pid), real_user(proc, pid)) {
            (Ok(Some(maker)), _) => maker,
            // Nobody has granted user ids in the own namespace.
            (Ok(None), Ok(uid)) => Self::User(uid),
            (Err(_), Ok(uid)) => Self::of_user(uid),
            (_, Err(_)) => Self::Unknown,
        }
    }

    /// The holder of what this user takes, as far as that is known without a process.
    pub fn of_user(uid: u32) -> Self {
        if uid == 0 || uid == own() {
            return Self::User(uid);
        }
        let mut grants = GRANTED.lock().unwrap_or_else(PoisonError::into_inner);
        if grants.as_ref().is_none_or(|grants| grants.read.elapsed() >= GRANTED_AGE_MAX) {
            let text = |path: &str| read(path).unwrap_or_default();
            *grants = Some(Grants { read: Instant::now(), grants: text(GRANTS), users: text(USERS) });
        }
        grants.as_ref().map_or(Self::User(uid), |known| granted(uid, &known.grants, &known.users))
    }

    /// True for root and the user of this program.
    pub fn is_own(self) -> bool {
        self == Self::User(0) || self == Self::User(own())
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::User(uid) => write!(out, "user {uid}"),
            Self::Namespace(number) => write!(out, "user namespace {number}"),
            Self::Granted(first) => write!(out, "the users from {first} on"),
            Self::Unknown => out.write_str("users that are not known"),
        }
    }
}

fn own() -> u32 {
    rustix::process::getuid().as_raw()
}

fn read(path: &str) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read_bounded(open_kernel(Path::new(path))?, BYTES_MAX)?).into_owned())
}

/// To whom a user id is granted (subuid(5)): lines of name or user id, first id, count. `users`: passwd(5).
fn granted(uid: u32, grants: &str, users: &str) -> Holder {
    let grant = |line: &str| {
        let mut fields = line.split(':');
        let (name, first, count) =
            (fields.next()?.to_owned(), fields.next()?.parse::<u32>().ok()?, fields.next()?.trim().parse::<u32>().ok()?);
        (uid >= first && uid - first < count).then_some((name, first))
    };
    let Some((name, first)) = grants.lines().find_map(grant) else { return Holder::User(uid) };
    let of_name = |line: &str| {
        let mut fields = line.split(':');
        (fields.next() == Some(name.as_str())).then(|| fields.nth(1)?.parse::<u32>().ok()).flatten()
    };
    let user = name.parse().ok().or_else(|| users.lines().find_map(of_name));
    match user {
        // What root was granted is for containers (dockerd's `userns-remap`).
        Some(user) if user != 0 && user != own() => Holder::User(user),
        _ => Holder::Granted(first),
    }
}

/// The maker of the outermost user namespace below the own one that a process is in; `None` if it is in the own one.
fn maker(proc: &Path, pid: u32) -> io::Result<Option<Holder>> {
    let path = proc.join(pid.to_string()).join("ns/user");
    let number = |file: &File| file.metadata().map(|meta| meta.ino());
    let own_number = number(&open_kernel(Path::new(OWN))?)?;
    let mut namespace = open_kernel(&path)?;
    if number(&namespace)? == own_number {
        return Ok(None);
    }
    for _ in 0..LEVELS_MAX {
        // The kernel refuses the parent of the own one, and of those that are not below it.
        let parent = parent(&namespace)?;
        if number(&parent)? == own_number {
            let user = made_by(&namespace)?;
            let is_trusted = user == 0 || user == own();
            return Ok(Some(if is_trusted { Holder::Namespace(number(&namespace)?) } else { Holder::of_user(user) }));
        }
        namespace = parent;
    }
    Err(io::ErrorKind::NotFound.into())
}

#[allow(unsafe_code)]
fn parent(namespace: &File) -> io::Result<File> {
    // SAFETY: this request of nsfs takes no argument and gives a new descriptor or an error; other files do not know it.
    let parent = unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_PARENT as _) };
    // SAFETY: the descriptor is new and nobody else's.
    if parent >= 0 { Ok(unsafe { File::from_raw_fd(parent) }) } else { Err(io::Error::last_os_error()) }
}

/// The user who made a user namespace.
#[allow(unsafe_code)]
fn made_by(namespace: &File) -> io::Result<u32> {
    let mut uid: libc::uid_t = 0;
    // SAFETY: the request writes one uid_t to this address, which outlives the call.
    let told = unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_OWNER_UID as _, &raw mut uid) };
    if told == 0 { Ok(uid) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[test]
    fn granted_user_ids_are_those_of_whom_they_were_granted_to() {
        let grants = "mallory:100000:65536\n4001:165536:65536\nroot:300000:9\ngone:400000:9\nbroken:1\n:::\n";
        let users = "root:x:0:0::/root:/bin/sh\nmallory:x:1001:1001::/:/bin/sh\n";
        for (uid, holder) in [
            (100_000, Holder::User(1001)),
            (165_535, Holder::User(1001)),
            (165_536, Holder::User(4001)),
            (1001, Holder::User(1001)),
            (231_072, Holder::User(231_072)),
            (300_008, Holder::Granted(300_000)),
            (300_009, Holder::User(300_009)),
            (400_001, Holder::Granted(400_000)),
        ] {
            assert_eq!(granted(uid, grants, users), holder, "{uid}");
        }
        let told = [Holder::User(7), Holder::Namespace(8), Holder::Granted(9), Holder::Unknown].map(|holder| holder.to_string());
        assert_eq!(told, ["user 7", "user namespace 8", "the users from 9 on", "users that are not known"]);
    }

    #[test]
    fn a_process_of_the_own_namespace_is_its_users() {
        assert_eq!(Holder::of_process(Path::new("/proc"), std::process::id()), Holder::User(own()));
        assert_eq!(Holder::of_process(Path::new("/proc"), u32::MAX), Holder::Unknown);
    }

    /// A process of this user in two user namespaces below each other, once it is there.
    fn below(uid: u32) -> Option<Child> {
        let mut command = Command::new("unshare");
        command
            .args(["-Ur", "unshare", "-U", "sh", "-c", "echo ready; sleep 30"])
            .uid(uid)
            .gid(uid)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let mut ready = [0; 6];
        if child.stdout.as_mut()?.read_exact(&mut ready).is_ok() {
            return Some(child);
        }
        let _ = (child.kill(), child.wait());
        None
    }

    #[test]
    fn a_process_of_a_user_namespace_is_its_makers() {
        if own() != 0 {
            println!("skipped: only root can start a process of another user");
            return;
        }
        let of = |uid: u32| {
            let mut child = below(uid)?;
            let holder = Holder::of_process(Path::new("/proc"), child.id());
            let _ = (child.kill(), child.wait());
            Some(holder)
        };
        match (of(4_711), of(0)) {
            (Some(others), Some(roots)) => {
                assert_eq!(others, Holder::User(4_711));
                assert!(matches!(roots, Holder::Namespace(_)) && !roots.is_own(), "{roots:?}");
            }
            _ => println!("skipped: users may make no namespaces here"),
        }
    }

    /// A user id that is not the maker's, as newuidmap(1) gives them.
    #[test]
    fn a_process_with_a_granted_user_id_is_its_makers() {
        if own() != 0 {
            println!("skipped: only root can start a process of another user");
            return;
        }
        let proc = Path::new("/proc");
        let started = |command: &mut Command| {
            let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
            let mut ready = [0; 6];
            let is_ready = child.stdout.as_mut().is_some_and(|out| out.read_exact(&mut ready).is_ok());
            if is_ready {
                return Some(child);
            }
            let _ = (child.kill(), child.wait());
            None
        };
        let sleeps = "echo ready; exec sleep 30";
        let Some(mut made) = started(Command::new("unshare").args(["-U", "sh", "-c", sleeps]).uid(4_712).gid(4_712)) else {
            return println!("skipped: users may make no namespaces here");
        };
        let target = made.id().to_string();
        let map = |kind: &str| std::fs::write(format!("/proc/{target}/{kind}_map"), "0 70000 10").is_ok();
        let is_mapped = map("uid") && map("gid");
        let mut enter = Command::new("nsenter");
        enter.args(["-U", "-S", "5", "-G", "5", "-t", &target, "sh", "-c", sleeps]);
        let inside = is_mapped.then(|| started(&mut enter)).flatten();
        let found = inside.map(|mut inside| {
            let found = (real_user(proc, inside.id()).ok(), Holder::of_process(proc, inside.id()));
            let _ = (inside.kill(), inside.wait());
            found
        });
        let _ = (made.kill(), made.wait());
        match found {
            Some(found) => assert_eq!(found, (Some(70_005), Holder::User(4_712))),
            None => println!("skipped: no nsenter(1) here"),
        }
    }
}
