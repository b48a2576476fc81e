//! Opening sampling events by perf_event_open(2): which counter, what each sample carries.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use perf_event_open_sys as sys;
use serde::{Deserialize, Serialize};
use sys::bindings as b;

/// Bytes of the user stack that each sample carries: deep enough for interpreters, small enough for 62 samples in a ring of 1 MiB.
pub(crate) const STACK_BYTES: u32 = 16 << 10;

/// What makes a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The hardware's cycle counter: by a non-maskable interrupt on most machines, so that code with interrupts off is seen as well.
    Cycles,
    /// A timer of the kernel: code that runs with interrupts off is billed to where they are enabled again.
    CpuClock,
    /// No clock of what runs: stacks of what waits, weighted by how long it did.
    OffCpu,
}

impl Clock {
    /// The name that perf gives it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::CpuClock => "cpu-clock",
            Self::OffCpu => "off-cpu",
        }
    }
}

/// The registers that are asked for, as bits of `sample_regs_user` (asm/perf_regs.h), lowest bit first: the order in which they come.
#[cfg(target_arch = "x86_64")]
pub(crate) const REGISTERS: &[u32] = &[4, 5, 6, 7, 8];
/// SI, DI, BP, SP, IP of x86_64; X0, X1, X29, LR, SP, PC of aarch64; none where stacks are not unwound.
#[cfg(target_arch = "aarch64")]
pub(crate) const REGISTERS: &[u32] = &[0, 1, 29, 30, 31, 32];
/// No user stacks on other machines.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) const REGISTERS: &[u32] = &[];

/// The registers of a sample, in the order of `REGISTERS`.
pub(crate) type Registers = [u64; 6];

/// The first two arguments of the system call that a thread is in (syscall(2)); of no meaning where it is in none.
pub(crate) fn arguments(registers: &Registers) -> [u64; 2] {
    let [first, second, ..] = *registers;
    if cfg!(target_arch = "x86_64") { [second, first] } else { [first, second] }
}

/// Whether samples carry user registers and stacks on this architecture.
pub(crate) const USER_STACKS: bool = !REGISTERS.is_empty();

/// The attributes of an event.
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
    attr.set_use_clockid(1);
    attr.clockid = libc::CLOCK_MONOTONIC;
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = u32::try_from(ring_bytes / 4).unwrap_or(u32::MAX);
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

/// Opens an event for a thread (-1: all) on a core.
pub(crate) fn open(attr: &b::perf_event_attr, pid: i32, cpu: u32) -> io::Result<OwnedFd> {
    open_at(attr, pid, i32::try_from(cpu).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?)
}

/// Opens an event for a thread on whatever core it runs.
pub(crate) fn open_anywhere(attr: &b::perf_event_attr, pid: i32) -> io::Result<OwnedFd> {
    open_at(attr, pid, -1)
}

fn open_at(attr: &b::perf_event_attr, pid: i32, cpu: i32) -> io::Result<OwnedFd> {
    let mut attr = *attr;
    // SAFETY: `attr` is a whole structure of the size that it says and outlives the call; the kernel writes to its size field at most.
    let fd = unsafe { sys::perf_event_open(&raw mut attr, pid, cpu, -1, u64::from(b::PERF_FLAG_FD_CLOEXEC) as _) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that the kernel just gave and that nobody else holds.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Starts counting.
pub(crate) fn enable(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is open and is a perf event; the argument is no pointer.
    done(unsafe { sys::ioctls::ENABLE(fd.as_raw_fd(), 0) })
}

/// Stops counting.
pub(crate) fn disable(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: as for `enable`.
    done(unsafe { sys::ioctls::DISABLE(fd.as_raw_fd(), 0) })
}

/// Sends the samples of an event to the ring of another one on the same core.
pub(crate) fn redirect(fd: &OwnedFd, ring: &OwnedFd) -> io::Result<()> {
    // SAFETY: both descriptors are open perf events; the argument is a descriptor, no pointer.
    done(unsafe { sys::ioctls::SET_OUTPUT(fd.as_raw_fd(), ring.as_raw_fd()) })
}

fn done(status: i32) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
