//! Opening sampling events with perf_event_open(2): which counter to use, what each sample carries, on which cores and threads.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use perf_event_open_sys as sys;
use serde::{Deserialize, Serialize};
use sys::bindings as b;

use crate::error::Error;
use crate::host;

/// Time between two reads of the rings when none fills up earlier.
const RINGS_READ_EVERY: Duration = Duration::from_millis(100);

/// Bytes of user stack in each sample: deep enough for interpreters, small enough for 62 samples in a ring of 1 MiB.
pub(crate) const STACK_BYTES: u32 = 16 << 10;

/// What triggers a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The hardware's cycle counter. On most machines it uses a non-maskable interrupt, so code with interrupts off is sampled too.
    Cycles,
    /// A kernel timer. Code that runs with interrupts off is attributed to the place where they are enabled again.
    CpuClock,
    /// No clock: stacks of waiting threads, weighted by how long they waited.
    OffCpu,
}

impl Clock {
    /// The name that perf uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::CpuClock => "cpu-clock",
            Self::OffCpu => "off-cpu",
        }
    }
}

/// The requested registers, as bits of `sample_regs_user` (asm/perf_regs.h). Samples hold them in order of the bits, lowest first.
#[cfg(target_arch = "x86_64")]
pub(crate) const REGISTERS: &[u32] = &[4, 5, 6, 7, 8];
/// SI, DI, BP, SP, IP of x86_64; X0, X1, X29, LR, SP, PC of aarch64; none where stacks are not unwound.
#[cfg(target_arch = "aarch64")]
pub(crate) const REGISTERS: &[u32] = &[0, 1, 29, 30, 31, 32];
/// Other machines have no user stacks.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) const REGISTERS: &[u32] = &[];

/// The registers of a sample, in the order of `REGISTERS`.
pub(crate) type Registers = [u64; 6];

/// The first two arguments of the system call that a thread is in (syscall(2)). They have no meaning outside a system call.
pub(crate) fn arguments(registers: &Registers) -> [u64; 2] {
    let [first, second, ..] = *registers;
    if cfg!(target_arch = "x86_64") { [second, first] } else { [first, second] }
}

/// Whether samples carry user registers and stacks on this architecture.
pub(crate) const USER_STACKS: bool = !REGISTERS.is_empty();

pub(crate) fn attributes(clock: Clock, frequency_hz: u32, kernel: bool, inherit: bool, ring_bytes: usize) -> b::perf_event_attr {
    let mut attr = b::perf_event_attr {
        size: u32::try_from(size_of::<b::perf_event_attr>()).unwrap_or(0),
        type_: if clock == Clock::Cycles { b::PERF_TYPE_HARDWARE } else { b::PERF_TYPE_SOFTWARE },
        config: u64::from(if clock == Clock::Cycles { b::PERF_COUNT_HW_CPU_CYCLES } else { b::PERF_COUNT_SW_CPU_CLOCK }),
        ..Default::default()
    };
    attr.__bindgen_anon_1.sample_freq = u64::from(frequency_hz);
    attr.set_freq(1);
    attr.set_disabled(1);
    attr.set_inherit(u64::from(inherit));
    attr.set_exclude_kernel(u64::from(!kernel));
    attr.set_exclude_hv(u64::from(!kernel));
    attr.set_exclude_callchain_user(1);
    attr.set_mmap(1);
    attr.set_mmap2(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr.set_task(1);
    attr.set_sample_id_all(1);
    set_ring(&mut attr, ring_bytes);
    attr.sample_type = u64::from(
        b::PERF_SAMPLE_IP
            | b::PERF_SAMPLE_TID
            | b::PERF_SAMPLE_TIME
            | b::PERF_SAMPLE_CPU
            | b::PERF_SAMPLE_PERIOD
            | b::PERF_SAMPLE_CALLCHAIN,
    );
    if USER_STACKS {
        attr.sample_type |= u64::from(b::PERF_SAMPLE_REGS_USER | b::PERF_SAMPLE_STACK_USER);
        attr.sample_regs_user = REGISTERS.iter().map(|bit| 1 << bit).sum();
        attr.sample_stack_user = STACK_BYTES;
    }
    attr
}

/// Stamps samples with the monotonic clock and wakes the reader when a quarter of the ring is full.
pub(crate) fn set_ring(attr: &mut b::perf_event_attr, ring_bytes: usize) {
    attr.set_use_clockid(1);
    attr.clockid = libc::CLOCK_MONOTONIC;
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = u32::try_from(ring_bytes / 4).unwrap_or(u32::MAX);
}

/// Opens an event for a thread (-1: all) on one core.
pub(crate) fn open(attr: &b::perf_event_attr, pid: i32, cpu: u32) -> io::Result<OwnedFd> {
    open_at(attr, pid, i32::try_from(cpu).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?)
}

/// Opens an event for a thread on whichever core it runs.
pub(crate) fn open_anywhere(attr: &b::perf_event_attr, pid: i32) -> io::Result<OwnedFd> {
    open_at(attr, pid, -1)
}

fn open_at(attr: &b::perf_event_attr, pid: i32, cpu: i32) -> io::Result<OwnedFd> {
    let mut attr = *attr;
    // SAFETY: `attr` is a complete structure of the size it states and outlives the call; the kernel writes at most to its size field.
    let fd = unsafe { sys::perf_event_open(&raw mut attr, pid, cpu, -1, u64::from(b::PERF_FLAG_FD_CLOEXEC) as _) };
    // SAFETY: the kernel has just returned this descriptor.
    unsafe { host::owned_fd(fd.into()) }
}

/// Restricts an event to those of a tracepoint's data that meet this condition.
pub(crate) fn set_filter(fd: &OwnedFd, filter: &CStr) -> io::Result<()> {
    // SAFETY: the descriptor is an open perf event; the kernel copies the string, which outlives the call.
    result_of(unsafe { sys::ioctls::SET_FILTER(fd.as_raw_fd(), filter.as_ptr().cast_mut()) })
}

pub(crate) fn enable(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is an open perf event; the argument is no pointer.
    result_of(unsafe { sys::ioctls::ENABLE(fd.as_raw_fd(), 0) })
}

pub(crate) fn disable(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: as for `enable`.
    result_of(unsafe { sys::ioctls::DISABLE(fd.as_raw_fd(), 0) })
}

/// Sends the samples of an event to the ring of another event on the same core.
pub(crate) fn redirect(fd: &OwnedFd, ring: &OwnedFd) -> io::Result<()> {
    // SAFETY: both descriptors are open perf events; the argument is a descriptor, no pointer.
    result_of(unsafe { sys::ioctls::SET_OUTPUT(fd.as_raw_fd(), ring.as_raw_fd()) })
}

fn result_of(status: i32) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Opens an event for a thread (-1: all) on each core. Cores that went offline are left out.
pub(crate) fn open_cores(attr: &b::perf_event_attr, pid: i32, cores: &[u32]) -> io::Result<Vec<(u32, OwnedFd)>> {
    let mut found = Vec::new();
    for core in cores {
        match open(attr, pid, *core) {
            Ok(fd) => found.push((*core, fd)),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) && cores.len() > 1 => {}
            Err(error) => return Err(error),
        }
    }
    if found.is_empty() { Err(io::Error::from_raw_os_error(libc::ENODEV)) } else { Ok(found) }
}

/// Opens an event for each of these threads on each core. Returns the events of the first thread, then all others; [`gather`] sends the samples of the
/// others to the rings of the first. Both lists are empty if all threads have ended.
pub(crate) fn open_followed(attr: &b::perf_event_attr, threads: &[u32], cores: &[u32]) -> io::Result<(Vec<OwnedFd>, Vec<OwnedFd>)> {
    let (mut leaders, mut followers) = (Vec::new(), Vec::new());
    for thread in threads {
        let Ok(pid) = i32::try_from(*thread) else { continue };
        match open_cores(attr, pid, cores) {
            Ok(found) if leaders.is_empty() => leaders = found.into_iter().map(|(_, fd)| fd).collect(),
            // Redirecting works per core, so the thread needs an event on every core.
            Ok(found) if found.len() == leaders.len() => followers.extend(found.into_iter().map(|(_, fd)| fd)),
            Ok(_) => {}
            // The thread has ended.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((leaders, followers))
}

/// Sends the followers' samples to the leaders' rings, which must be mapped already.
pub(crate) fn gather(leaders: &[OwnedFd], followers: &[OwnedFd]) -> Result<(), Error> {
    for (index, follower) in followers.iter().enumerate() {
        let leader = &leaders[index % leaders.len()];
        redirect(follower, leader).map_err(|error| Error::Io("samples cannot be gathered".to_owned(), error))?;
    }
    Ok(())
}

/// Waits until a ring fills up, at most [`RINGS_READ_EVERY`].
pub(crate) fn wait(fds: &[OwnedFd]) {
    let mut polled: Vec<libc::pollfd> =
        fds.iter().map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }).collect();
    let count = libc::nfds_t::try_from(polled.len()).unwrap_or(0);
    // SAFETY: the array lives through the call and has `count` entries. An interrupted wait is just a short one.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), count, i32::try_from(RINGS_READ_EVERY.as_millis()).unwrap_or(100)) };
    // The event of an ended thread stays ready for ever.
    if ready > 0 && polled.iter().any(|fd| fd.revents & (libc::POLLHUP | libc::POLLERR) != 0) {
        std::thread::sleep(RINGS_READ_EVERY / 4);
    }
}

pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// The machine has no such counter, or the counter cannot sample.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO | libc::EINVAL))
}

pub(crate) fn open_error(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => Error::Unsupported(error),
        _ => Error::Io("perf_event_open".to_owned(), error),
    }
}

pub(crate) fn privilege(what: &str, error: &io::Error) -> Error {
    let level = host::text("/proc/sys/kernel/perf_event_paranoid").and_then(|text| text.trim().parse::<i32>().ok());
    let level = level.map_or_else(|| "unknown".to_owned(), |level| level.to_string());
    let hint = format!(
        "run it as root, or give the program the capability (setcap cap_perfmon,cap_sys_ptrace,cap_syslog+ep); \
         kernel.perf_event_paranoid is {level} here, and the kernel says \"{error}\""
    );
    Error::Privilege { what: what.to_owned(), needs: "CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8)", hint }
}
