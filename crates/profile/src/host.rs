//! What the profiler reads of processes in `/proc`: names, mappings, parents, threads, cgroups. A process that has ended reads as absent.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use chokepoint_foreign::of_process;

/// Maximum bytes of one file of `/proc`.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The same of the kernel's symbols, which are read line by line.
const KALLSYMS_BYTES_MAX: u64 = 64 << 20;
/// Where the kernel's files of processes are.
pub(crate) const PROC: &str = "/proc";
/// What is read at once of a process's memory, bytes: a page of any architecture, or a part of one.
const PIECE_BYTES: u64 = 4096;
/// Where the hierarchies of cgroups are mounted (systemd's and the kernel documentation's place).
const CGROUP_MOUNT: &str = "/sys/fs/cgroup";
/// Maximum number of processes in a scan; `pid_max` is at most 4,194,304.
const PROCESSES_MAX: usize = 1 << 20;

/// The text of one of the kernel's files, up to a bound; none if it cannot be read.
pub(crate) fn text(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// The kernel's symbols (`/proc/kallsyms`), up to a bound; nothing if they cannot be read.
pub(crate) fn kallsyms() -> impl BufRead {
    let file: Box<dyn Read> = open("/proc/kallsyms").map_or_else(|| Box::new(std::io::empty()) as _, |file| Box::new(file) as _);
    BufReader::with_capacity(64 << 10, file.take(KALLSYMS_BYTES_MAX))
}

pub(crate) fn open(path: &str) -> Option<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()
}

/// [`text`] of a file of a process that the process can delay.
fn text_of_process(pid: u32, file: &str) -> Option<String> {
    let path = format!("{PROC}/{pid}/{file}");
    delayed(pid, move || text(&path))
}

/// A reading that the process can delay, within the budget of its user.
pub(crate) fn delayed<T: Send + 'static>(pid: u32, read: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    of_process(Path::new(PROC), pid, read).ok()?
}

/// What a descriptor of a process refers to, as the kernel writes it (proc_pid_fd(5)).
pub(crate) fn descriptor(pid: u32, number: u64) -> Option<String> {
    fs::read_link(format!("/proc/{pid}/fd/{number}")).ok()?.into_os_string().into_string().ok()
}

pub(crate) fn descriptors(pid: u32) -> Vec<u32> {
    numbers(&format!("/proc/{pid}/fd"))
}

pub(crate) fn exists(path: impl AsRef<std::path::Path>) -> bool {
    fs::metadata(path).is_ok()
}

/// Names of network namespaces by their numbers (ip-netns(8)), at most 65,536.
pub(crate) fn namespace_names() -> HashMap<u64, String> {
    let Ok(entries) = fs::read_dir("/run/netns") else { return HashMap::new() };
    let named = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        Some((fs::metadata(entry.path()).ok()?.ino(), entry.file_name().into_string().ok()?))
    });
    named.take(1 << 16).collect()
}

/// Words of another process's memory, read a piece at a time while one stack is walked.
#[derive(Debug)]
pub(crate) struct MemoryWords {
    pid: u32,
    /// The last piece that was read, and where it begins.
    piece: RefCell<Option<(u64, Vec<u8>)>>,
}

impl MemoryWords {
    pub(crate) fn of(pid: u32) -> Self {
        Self { pid, piece: RefCell::default() }
    }

    /// A word; none if the process has ended, delays the reading, or this user may not trace it.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let begin = address - address % PIECE_BYTES;
        let at = usize::try_from(address - begin).ok()?;
        let mut piece = self.piece.borrow_mut();
        if piece.as_ref().is_none_or(|(known, _)| *known != begin) {
            let pid = self.pid;
            *piece = Some((begin, delayed(pid, move || memory(pid, begin)).unwrap_or_default()));
        }
        let (_, bytes) = piece.as_ref()?;
        Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
    }
}

/// A piece of a process's memory. Through its file a program that waits for a lock of the process's can be ended; a call (process_vm_readv(2)) waits without an
/// end, but needs no right to open other users' files.
fn memory(pid: u32, begin: u64) -> Option<Vec<u8>> {
    let mut piece = vec![0; PIECE_BYTES as usize];
    match File::open(format!("{PROC}/{pid}/mem")) {
        Ok(file) => file.read_exact_at(&mut piece, begin).ok()?,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            let local = libc::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: piece.len() };
            let remote = libc::iovec { iov_base: usize::try_from(begin).ok()? as *mut libc::c_void, iov_len: piece.len() };
            // SAFETY: the kernel writes only into `piece`, which lives through the call; the remote address is never dereferenced here.
            let read = unsafe { libc::process_vm_readv(libc::pid_t::try_from(pid).ok()?, &raw const local, 1, &raw const remote, 1, 0) };
            usize::try_from(read).ok().filter(|read| *read == piece.len())?;
        }
        Err(_) => return None,
    }
    Some(piece)
}

/// The name of a process or thread (proc_pid_comm(5)).
pub(crate) fn comm(pid: u32, tid: u32) -> Option<String> {
    text(&format!("/proc/{pid}/task/{tid}/comm")).map(|name| name.trim_end_matches('\n').to_owned())
}

/// The text of a process's mappings.
pub(crate) fn maps(pid: u32) -> Option<String> {
    text_of_process(pid, "maps")
}

pub(crate) fn threads(pid: u32) -> Vec<u32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// Whether a process is a kernel thread. Kernel threads have no memory of their own, and so no mappings.
pub(crate) fn is_kernel_thread(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        && text_of_process(pid, "cmdline").is_some_and(|line| line.is_empty())
}

/// A process's number in the innermost PID namespace (NSpid of proc_pid_status(5)): the number that a program in a container writes.
pub(crate) fn pid_inside(pid: u32) -> Option<u32> {
    let status = text(&format!("/proc/{pid}/status"))?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?.parse().ok()
}

/// Whether a process is in this cgroup or below it (proc_pid_cgroup(5)). `cgroup` may include the hierarchy's mount point, and needs no slash in front.
pub(crate) fn in_cgroup(pid: u32, cgroup: &str) -> bool {
    let wanted = cgroup_path(cgroup);
    text(&format!("/proc/{pid}/cgroup")).is_some_and(|text| text.lines().any(|line| is_in_cgroup(line, &wanted)))
}

/// Whether there is a cgroup of this name: a directory of a hierarchy, or, where none is mounted, a process in it.
pub(crate) fn is_cgroup(cgroup: &str) -> bool {
    let wanted = cgroup_path(cgroup);
    let hierarchies = || fs::read_dir(CGROUP_MOUNT).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let is_directory = |path: &str| fs::metadata(path).is_ok_and(|found| found.is_dir());
    !wanted.split('/').any(|part| part == "..")
        && (is_directory(&format!("{CGROUP_MOUNT}{wanted}"))
            || hierarchies().any(|mount| is_directory(&format!("{}{wanted}", mount.display())))
            || numbers("/proc").into_iter().any(|pid| in_cgroup(pid, cgroup)))
}

/// A cgroup's path with one slash in front and none at its end; the root is the empty path.
fn cgroup_path(cgroup: &str) -> String {
    let path = cgroup.strip_prefix(CGROUP_MOUNT).filter(|rest| rest.is_empty() || rest.starts_with('/')).unwrap_or(cgroup);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.iter().map(|part| format!("/{part}")).collect()
}

/// "4:cpu,cpuacct:/a/b" lies in "/a", and in "/cpu,cpuacct/a" or "/cpu/a", where version 1 mounts it.
fn is_in_cgroup(line: &str, wanted: &str) -> bool {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return false };
    let below = |wanted: &str| path.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_mount = |mount: &str| {
        let named = controllers.strip_prefix("name=") == Some(mount) || (controllers.is_empty() && mount == "unified");
        named || mount == controllers || controllers.split(',').any(|controller| controller == mount)
    };
    let (mount, rest) = wanted.trim_start_matches('/').split_once('/').unwrap_or((wanted.trim_start_matches('/'), ""));
    below(wanted) || (is_mount(mount) && below(&cgroup_path(rest)))
}

/// Whether the processor's counters are available: perf's "cpu" (x86), "cpu_core" (hybrid), "armv8_pmuv3..." (Arm) and the like.
pub(crate) fn has_pmu() -> bool {
    let Ok(devices) = fs::read_dir("/sys/bus/event_source/devices") else { return false };
    let names = devices.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.into_iter().any(|name| is_pmu(&name))
}

fn is_pmu(name: &str) -> bool {
    name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv") || name.starts_with("apple_")
}

/// CPU time of a thread so far, nanoseconds (the first number of `/proc/PID/task/TID/schedstat`, Documentation/scheduler/sched-stats.rst).
pub(crate) fn thread_run_ns(pid: u32, tid: u32) -> Option<u64> {
    text(&format!("/proc/{pid}/task/{tid}/schedstat"))?.split_whitespace().next()?.parse().ok()
}

/// The number of a process's network namespace (namespaces(7)).
pub(crate) fn network_namespace(pid: u32) -> Option<u64> {
    let link = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
    link.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

/// Time that a thread has been ready to run but waited for a core, nanoseconds (the second number of its schedstat).
pub(crate) fn thread_delay_ns(pid: u32, tid: u32) -> Option<u64> {
    text(&format!("/proc/{pid}/task/{tid}/schedstat"))?.split_whitespace().nth(1)?.parse().ok()
}

/// The parent of each process.
pub(crate) fn parents() -> HashMap<u32, u32> {
    let processes = numbers("/proc");
    processes.into_iter().take(PROCESSES_MAX).filter_map(|pid| Some((pid, parent(&text(&format!("/proc/{pid}/stat"))?)?))).collect()
}

/// The fourth field of `/proc/PID/stat`. The name in front of it may contain anything.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Cores that are online ("0-3,8").
pub(crate) fn cores_online() -> Vec<u32> {
    let listed = text("/sys/devices/system/cpu/online").map(|text| ranges(&text)).filter(|cores| !cores.is_empty());
    listed.unwrap_or_else(|| (0..std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))).collect())
}

fn ranges(text: &str) -> Vec<u32> {
    let mut cores = Vec::new();
    for part in text.trim().split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(low), Ok(high)) = (low.parse::<u32>(), high.parse::<u32>()) {
            cores.extend(low..=high.min(low.saturating_add(8192)));
        }
    }
    cores
}

/// Time of each core so far, in clock ticks: (all, idle, stolen) by core number (proc_stat(5)). Idle includes waiting for disks.
pub(crate) fn core_times() -> HashMap<u32, (u64, u64, u64)> {
    core_times_of(&text("/proc/stat").unwrap_or_default())
}

fn core_times_of(stat: &str) -> HashMap<u32, (u64, u64, u64)> {
    let mut times = HashMap::new();
    for line in stat.lines() {
        let mut fields = line.split_whitespace();
        let Some(core) = fields.next().and_then(|name| name.strip_prefix("cpu")?.parse().ok()) else { continue };
        let ticks: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
        // Guest time is already part of user time.
        let all = ticks.iter().take(8).fold(0_u64, |sum, ticks| sum.saturating_add(*ticks));
        times.insert(core, (all, at(3).saturating_add(at(4)), at(7)));
    }
    times
}

fn numbers(directory: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The monotonic clock, nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time of this thread and of its readings of processes, seconds.
pub(crate) fn thread_cpu_s() -> f64 {
    chokepoint_foreign::thread_cpu().as_secs_f64()
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives through the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The descriptor that a system call returned, or its error.
///
/// # Safety
/// Nobody else may hold the descriptor.
pub(crate) unsafe fn owned_fd(returned: libc::c_long) -> std::io::Result<OwnedFd> {
    let fd = libc::c_int::try_from(returned).ok().filter(|fd| *fd >= 0).ok_or_else(std::io::Error::last_os_error)?;
    // SAFETY: as the caller states.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The last part of a path, without the kernel's mark for deleted files.
pub(crate) fn file_name(path: &str) -> &str {
    let path = path.trim_end_matches(" (deleted)");
    path.rsplit('/').next().unwrap_or(path)
}

/// File descriptors left to the rest of the program.
pub(crate) const DESCRIPTORS_SPARE: u64 = 128;

/// Raises the soft limit of file descriptors to the hard one. Returns the new limit.
pub(crate) fn raise_descriptors() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a structure that lives through them.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return 0;
        }
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) == 0 { raised.rlim_cur } else { limit.rlim_cur }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_path_matches_in_both_versions() {
        let matches = |line: &str, named: &str| is_in_cgroup(line, &cgroup_path(named));
        for (line, named) in [
            ("0::/system.slice/nginx.service", "system.slice/nginx.service"),
            ("0::/system.slice/nginx.service", "/system.slice/nginx.service"),
            ("0::/system.slice/nginx.service", "/sys/fs/cgroup/system.slice/nginx.service/"),
            ("0::/system.slice/nginx.service", "system.slice"),
            ("4:cpu,cpuacct:/web", "/sys/fs/cgroup/cpu,cpuacct/web"),
            ("4:cpu,cpuacct:/web", "/sys/fs/cgroup/cpu/web"),
            ("4:cpu,cpuacct:/web", "cpuacct/web"),
            ("1:name=systemd:/web", "/sys/fs/cgroup/systemd/web"),
            ("0::/web/a", "/sys/fs/cgroup/unified/web"),
            ("0::/web/a", "/"),
        ] {
            assert!(matches(line, named), "{line} {named}");
        }
        for (line, named) in [
            ("0::/system.slice2", "system.slice"),
            ("0::/web", "memory/web"),
            ("0::/web", "eb"),
            ("4:cpu,cpuacct:/web", "cpu,/web"),
            ("nonsense", "/web"),
        ] {
            assert!(!matches(line, named), "{line} {named}");
        }
    }

    #[test]
    fn a_cgroup_that_nobody_made_is_none() {
        let own = text("/proc/self/cgroup").unwrap_or_default();
        let own = own.lines().filter_map(|line| line.splitn(3, ':').nth(2)).next();
        assert!(own.is_none_or(|own| is_cgroup(own) && is_cgroup(own.trim_start_matches('/'))), "{own:?}");
        for unknown in ["no/such.service", "/no/such.service", "/sys/fs/cgroup/no/such.service", "../.."] {
            assert!(!is_cgroup(unknown), "{unknown}");
        }
    }

    #[test]
    fn a_process_name_with_brackets_does_not_hide_the_parent() {
        assert_eq!(parent("7 (a) b) (c) S 42 7 7 0"), Some(42));
        assert_eq!(parent("7 (a"), None);
        assert_eq!(parent(""), None);
    }

    #[test]
    fn core_lists_and_times_are_parsed() {
        assert_eq!(ranges("0-2,5\n"), [0, 1, 2, 5]);
        assert!(ranges("x,1-,-").is_empty());
        assert!(ranges("0-4000000000").len() < 10_000);
        let times = core_times_of("cpu  1 2 3\ncpu0 10 0 20 60 5 1 2 2 7 0\ncpux 1\ncpu1\nintr 5\n");
        assert_eq!(times[&0], (100, 65, 2));
        assert_eq!(times[&1], (0, 0, 0));
        assert_eq!(times.len(), 2);
    }

    #[test]
    fn this_process_is_found_and_an_unused_number_is_not() {
        let pid = std::process::id();
        assert!(threads(pid).contains(&pid));
        assert!(comm(pid, pid).is_some() && maps(pid).is_some());
        assert!(parents().contains_key(&pid));
        assert!(!is_kernel_thread(pid));
        assert_eq!(maps(u32::MAX), None);
        let values = [0x1234_5678_9abc_def0_u64, 7];
        let own = MemoryWords::of(pid);
        for value in &values {
            assert_eq!(own.word(&raw const *value as u64), Some(*value));
        }
        assert_eq!((own.word(8), own.word(u64::MAX), MemoryWords::of(u32::MAX).word(8)), (None, None, None));
    }
}
