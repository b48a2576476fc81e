//! Running a program with exactly the rights of a server's master: its users, groups and capabilities, and none of this process's descriptors, keys,
//! environment, terminal and ignored signals. The program cannot gain rights. It keeps only this process's limits: cgroup, resource limits, priority.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use chokepoint_foreign::Identity;

/// The only variable of its environment.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// Most capabilities of a set.
const CAPABILITIES_MAX: u32 = 64;
/// Highest signal number (signal(7)).
const SIGNALS_MAX: libc::c_int = 64;
/// Most descriptors closed one by one, where the kernel cannot close all at once (before Linux 5.11).
const DESCRIPTORS_MAX: libc::c_int = 65_536;

/// The rights that the child takes before it executes the program.
#[derive(Debug, Clone)]
struct Confinement {
    uids: [u32; 3],
    gids: [u32; 3],
    groups: Vec<u32>,
    /// The master's effective capabilities that this process has too.
    capabilities: u64,
    /// True where this process can take the rights of others.
    is_root: bool,
    /// True where the program may gain rights from its file.
    gains_rights: bool,
}

/// A command that executes an open file with the rights of this identity. A user other than root must already have these rights. The error is a clause.
pub(super) fn command(program: &File, name: &str, identity: &Identity) -> Result<Command, String> {
    let own = rustix::process::geteuid().as_raw();
    let uids = identity.uids;
    if own != 0 && uids.iter().any(|uid| *uid != own) {
        return Err(format!(
            "it runs as user {}, and user {own} cannot act as that user: run chokepoint as that user, or as root",
            identity.uid()
        ));
    }
    let ours = rustix::thread::capabilities(None).map_err(|error| format!("chokepoint's own capabilities cannot be read ({error})"))?;
    let ours = ours.permitted.bits();
    let confinement = Confinement {
        uids: [uids[0], uids[1], uids[2]],
        gids: [identity.gids[0], identity.gids[1], identity.gids[2]],
        groups: identity.groups.clone(),
        capabilities: identity.capabilities & ours,
        is_root: own == 0,
        // A user's own server may need the capability of its file to bind its ports in the test. The user could run it so at any time.
        gains_rights: own != 0 && identity.capabilities & !ours != 0,
    };
    // By the descriptor, so that exactly the inspected file is executed, wherever its path leads now.
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command.arg0(name).current_dir("/").env_clear().env("PATH", PATH);
    let confine = move || confinement.apply();
    #[allow(unsafe_code)]
    // SAFETY: between fork and exec the closure makes system calls only: it neither allocates nor takes locks.
    unsafe {
        command.pre_exec(confine);
    }
    Ok(command)
}

fn done(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[allow(unsafe_code)]
fn control(option: libc::c_int, one: libc::c_ulong, two: libc::c_ulong) -> io::Result<libc::c_int> {
    // SAFETY: the options used here take numbers alone (prctl(2)), and change the calling process, which is about to execute a program.
    let result = unsafe { libc::prctl(option, one, two, 0, 0) };
    done(result.into()).map(|()| result)
}

impl Confinement {
    /// Confines the calling process, just before it executes the program. System calls only.
    #[allow(unsafe_code)]
    fn apply(&self) -> io::Result<()> {
        // SAFETY: takes no pointers. A new session has no terminal to write commands into (tty_ioctl(4), TIOCSTI).
        unsafe { libc::setsid() };
        close_descriptors_on_exec();
        leave_session_keyring()?;
        reset_signals_and_umask();
        if self.is_root {
            // SAFETY: the kernel reads `len` numbers from the vector, which lives through the call.
            done(unsafe { libc::syscall(libc::SYS_setgroups, self.groups.len(), self.groups.as_ptr()) })?;
            // SAFETY: takes numbers.
            done(unsafe { libc::syscall(libc::SYS_setresgid, self.gids[0], self.gids[1], self.gids[2]) })?;
            for capability in 0..CAPABILITIES_MAX {
                // The call fails beyond the kernel's last capability.
                let Ok(has) = control(libc::PR_CAPBSET_READ, capability.into(), 0) else { break };
                if has == 1 && self.capabilities >> capability & 1 == 0 {
                    control(libc::PR_CAPBSET_DROP, capability.into(), 0)?;
                }
            }
            control(libc::PR_SET_KEEPCAPS, 1, 0)?;
            // SAFETY: takes numbers.
            done(unsafe { libc::syscall(libc::SYS_setresuid, self.uids[0], self.uids[1], self.uids[2]) })?;
        }
        control(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong, 0)?;
        // Root has capabilities by its user id. Any other user keeps the master's only as ambient ones (capabilities(7)).
        let is_ambient = self.is_root && self.uids[1] != 0;
        set_capabilities(self.capabilities, if is_ambient { self.capabilities } else { 0 })?;
        if is_ambient {
            for capability in (0..CAPABILITIES_MAX).filter(|capability| self.capabilities >> capability & 1 == 1) {
                control(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE as libc::c_ulong, capability.into())?;
            }
        }
        if !self.gains_rights {
            control(libc::PR_SET_NO_NEW_PRIVS, 1, 0)?;
        }
        Ok(())
    }
}

/// Leaves the session keyring, whose keys every process of the session possesses, whatever its user (session-keyring(7)). Succeeds without effect where the
/// kernel has no keys, or where keyctl(2) is forbidden (a container's filter), as it is then to the program too.
#[allow(unsafe_code)]
fn leave_session_keyring() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: a name of null asks for a new keyring without one (keyctl(2)).
    let joined = unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>()) };
    match done(joined) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => Ok(()),
        joined => joined,
    }
}

/// Resets all signal actions, and the umask so that only the owner can write new files.
#[allow(unsafe_code)]
fn reset_signals_and_umask() {
    // struct sigaction of the kernel: no handler, no flags, an empty mask.
    let default = [0_u64; 4];
    for signal in 1..=SIGNALS_MAX {
        // SAFETY: the kernel reads a struct of at most 32 bytes from the array, which lives through the call. The C library would skip two
        // signals that it uses itself. Errors for signals that cannot be set are ignored.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), std::ptr::null::<u64>(), size_of::<u64>()) };
    }
    // SAFETY: takes a number and cannot fail.
    unsafe { libc::umask(0o022) };
}

/// Marks all descriptors but the standard ones to be closed on exec.
#[allow(unsafe_code)]
fn close_descriptors_on_exec() {
    // SAFETY: takes numbers; it marks descriptors and closes none yet.
    let marked = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if marked != 0 {
        for descriptor in 3..DESCRIPTORS_MAX {
            // SAFETY: takes numbers; errors for closed descriptors are ignored.
            unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// capset(2) for the calling thread, without allocation.
#[allow(unsafe_code)]
fn set_capabilities(permitted: u64, inheritable: u64) -> io::Result<()> {
    /// `_LINUX_CAPABILITY_VERSION_3` (linux/capability.h).
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let (low, high) = (|set: u64| set as u32, |set: u64| (set >> 32) as u32);
    // Effective, permitted and inheritable, the lower halves first.
    let data = [low(permitted), low(permitted), low(inheritable), high(permitted), high(permitted), high(inheritable)];
    // SAFETY: the kernel reads a header of two numbers and, by its version, two records of three from arrays that live through the call.
    done(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn own() -> Identity {
        Identity::of(Path::new("/proc"), std::process::id()).unwrap()
    }

    /// A command's own rights, descriptors and environment, as it prints them.
    fn status(identity: &Identity) -> String {
        let shell = File::open("/bin/sh").unwrap();
        let script = "cat /proc/self/status; echo fds $(ls /proc/self/fd | wc -l); echo session $(cut -d' ' -f6 /proc/self/stat); env; cat /proc/keys 2>/dev/null; true";
        let output = command(&shell, "sh", identity).unwrap().args(["-c", script]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn line<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap().split_whitespace().collect()
    }

    #[test]
    #[allow(unsafe_code)]
    fn nothing_is_inherited() {
        let open = File::open("/").unwrap();
        // SAFETY: the descriptor is open; it is to be inherited.
        unsafe { libc::fcntl(open.as_raw_fd(), libc::F_SETFD, 0) };
        // SAFETY: nothing in this process uses this signal; the ignored action is to be inherited.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
        let text = status(&own());
        assert_eq!((line(&text, "SigIgn:"), line(&text, "Umask:")), (vec!["0000000000000000"], vec!["0022"]), "{text}");
        // Three, and the one with which ls reads the directory.
        assert_eq!(line(&text, "fds"), ["4"], "{text}");
        assert_eq!(line(&text, "NoNewPrivs:"), ["1"]);
        assert!(!text.contains("CARGO") && text.contains("PATH=/usr/sbin:"), "{text}");
        let session = fs::read_to_string("/proc/self/stat").unwrap().split_whitespace().nth(5).map(str::to_owned).unwrap();
        assert_ne!(line(&text, "session"), [session.as_str()]);
    }

    /// Adds a key to this session's keyring that only possessors can see.
    #[allow(unsafe_code)]
    fn add_key(name: &std::ffi::CStr) -> bool {
        const SESSION: libc::c_long = -3;
        const SET_PERMISSIONS: libc::c_long = 5;
        const POSSESSOR_ALL: libc::c_long = 0x3f00_0000;
        // SAFETY: the texts end with a zero and live through the calls; one byte is read of the value (add_key(2), keyctl(2)).
        unsafe {
            let key = libc::syscall(libc::SYS_add_key, c"user".as_ptr(), name.as_ptr(), c"x".as_ptr(), 1_usize, SESSION);
            key > 0 && libc::syscall(libc::SYS_keyctl, SET_PERMISSIONS, key, POSSESSOR_ALL) == 0
        }
    }

    #[test]
    fn the_session_keyring_is_not_inherited() {
        let name = format!("chokepoint-test-{}", std::process::id());
        let is_seen = |keys: &str| keys.contains(&name);
        if !add_key(&std::ffi::CString::new(name.as_str()).unwrap()) || !fs::read_to_string("/proc/keys").is_ok_and(|keys| is_seen(&keys)) {
            println!("skipped: no keys here (add_key(2))");
            return;
        }
        let text = status(&own());
        assert!(text.contains("keyring") && !is_seen(&text), "{text}");
    }

    #[test]
    fn the_rights_are_exactly_those_of_the_identity() {
        if rustix::process::geteuid().as_raw() != 0 {
            let why = command(&File::open("/bin/sh").unwrap(), "sh", &Identity { uids: [0; 4], ..own() }).unwrap_err();
            assert!(why.contains("cannot act as"), "{why}");
            println!("skipped: only root takes others' rights");
            return;
        }
        let root = own();
        let nobody = Identity { uids: [65_534; 4], gids: [65_533; 4], groups: vec![7, 9], capabilities: 0, ..root.clone() };
        let text = status(&nobody);
        assert_eq!(
            (line(&text, "Uid:"), line(&text, "Gid:"), line(&text, "Groups:")),
            (vec!["65534"; 4], vec!["65533"; 4], vec!["7", "9"])
        );
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
            assert_eq!(line(&text, set), ["0000000000000000"], "{set}");
        }
        // CAP_NET_BIND_SERVICE, as a service manager gives it.
        let text = status(&Identity { capabilities: 1 << 10, ..nobody });
        assert_eq!((line(&text, "CapEff:"), line(&text, "CapBnd:")), (vec!["0000000000000400"], vec!["0000000000000400"]));
        let text = status(&Identity { capabilities: 1 << 10, groups: Vec::new(), ..root });
        assert_eq!((line(&text, "Uid:"), line(&text, "CapEff:")), (vec!["0"; 4], vec!["0000000000000400"]));
    }
}
