//! What a child gives up before the first file reaches it: user, groups, capabilities, descriptors, files, network, system calls, and resources beyond its bounds.

use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus, Scope};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal, set_dumpable_behavior, set_parent_process_death_signal, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, Gid, Uid};
use serde::{Deserialize, Serialize};

use crate::calls;
use crate::child::Bounds;
use crate::frame::FILES_MAX;
use crate::memory::resident_bytes;

/// A user and group that own nothing: Debian reserves the numbers from 65000 to 65533 and gives none of them to anybody (Policy 9.2.2), and a container that
/// maps the usual 65,536 users has it as well.
const NOBODYS: u32 = 65_532;
/// Highest capability that is tried; the kernel refuses those that it does not know.
const CAPABILITIES_MAX: u32 = 64;
/// Descriptors of a child: the standard ones, and its files.
const DESCRIPTORS_MAX: u64 = FILES_MAX as u64 + 8;
/// The newest kernel whose rules are asked for. An older one applies those that it has.
const LANDLOCK: ABI = ABI::V7;

/// What a child has given up where not every kernel, container or service lets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// It runs as a user that owns nothing, or as the unprivileged user who runs this program.
    pub user: bool,
    /// It can open no file (Landlock, Linux 5.13).
    pub files: bool,
    /// It can make only the system calls that reading takes (seccomp).
    pub calls: bool,
}

impl Held {
    /// What is missing, as clauses with what remains.
    pub(crate) fn lacking(&self) -> Vec<String> {
        let all = [
            (self.user, "readers of files keep the user root, because another user cannot be taken here (user namespace or CAP_SETUID)"),
            (
                self.files,
                "readers of files run without Landlock, which this kernel does not have or allow: file modes and the other limits remain",
            ),
            (
                self.calls,
                "readers of files run without a filter of system calls (seccomp), which this kernel does not have or allow: the other limits remain",
            ),
        ];
        all.into_iter().filter(|(held, _)| !held).map(|(_, clause)| clause.to_owned()).collect()
    }
}

/// Gives up everything that reading does not take. The process must have one thread.
///
/// # Errors
/// What must hold everywhere and does not: then nothing may be read.
pub(crate) fn give_up(bounds: &Bounds) -> std::io::Result<Held> {
    close_other_descriptors();
    // Opens the file that says how much there is, while it may.
    let _ = resident_bytes();
    limit(bounds)?;
    rustix::thread::set_no_new_privs(true)?;
    forget_capabilities();
    let user = become_nobody();
    drop_capabilities()?;
    // The kernel forgets both when a process changes its user.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let files = forbid_files();
    // Last, because it forbids the calls above.
    let calls = calls::allow_reading_alone();
    Ok(Held { user, files, calls })
}

/// Closes all descriptors but the standard ones: whoever started the parent may have left some open.
#[allow(unsafe_code)]
fn close_other_descriptors() {
    // SAFETY: takes numbers; this thread is the only one, and it has opened nothing yet.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    // Before Linux 5.9. Then what was left open without close-on-exec stays so.
    let _ = closed;
}

/// Limits of memory, time, files and processes (getrlimit(2)).
fn limit(bounds: &Bounds) -> std::io::Result<()> {
    let cpu_s = bounds.cpu.as_secs().max(1);
    let limits = [
        (Resource::As, bounds.memory_bytes),
        (Resource::Nofile, DESCRIPTORS_MAX),
        (Resource::Nproc, 0),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Sigpending, 0),
    ];
    for (resource, most) in limits {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    // A second more, so that the signal says what ended it.
    Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(cpu_s), maximum: Some(cpu_s + 1) })?)
}

/// Takes a user without files, without any group. True if this process has no rights of root's any more.
fn become_nobody() -> bool {
    if rustix::process::geteuid().is_root() {
        let (user, group) = (Uid::from_raw(NOBODYS), Gid::from_raw(NOBODYS));
        // Each may be refused where the others are not; the user comes last, because it takes the right to the others.
        let _ = rustix::thread::set_thread_groups(&[]);
        let _ = rustix::thread::set_thread_res_gid(group, group, group);
        let _ = rustix::thread::set_thread_res_uid(user, user, user);
    }
    !rustix::process::geteuid().is_root()
}

/// Drops capabilities from the sets from which a program could get them, where it may (CAP_SETPCAP): without new privileges none can.
fn forget_capabilities() {
    let _ = rustix::thread::clear_ambient_capability_set();
    let drop = |capability: u32| rustix::thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1_u64 << capability));
    // It fails behind the last capability that this kernel knows.
    let _ = (0..CAPABILITIES_MAX).try_for_each(drop);
}

/// Drops all capabilities.
fn drop_capabilities() -> std::io::Result<()> {
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

/// Forbids to open, make, execute or change any file, to connect or listen, and to reach processes outside. True if the kernel has this for files.
fn forbid_files() -> bool {
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self);
    rules.is_ok_and(|status| status.ruleset != RulesetStatus::NotEnforced)
}
