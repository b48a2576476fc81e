//! Readings of the whole host, independent of network namespaces.

use serde::{Deserialize, Serialize};

/// Fixed facts about the running kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelInfo {
    /// `uname -r`.
    pub release: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Clock ticks a second in `/proc/stat` (`sysconf(_SC_CLK_TCK)`).
    pub ticks_per_s: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Online cores.
    pub cores: u32,
    /// Boot time, seconds since 1970 (`btime` of `/proc/stat`). `None` if it was not read. It changes when the clock is set.
    pub boot_s: Option<i64>,
}

/// CPU times since boot, in clock ticks (proc(5), `/proc/stat`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreTimes {
    /// User mode.
    pub user: u64,
    /// User mode at low priority.
    pub nice: u64,
    /// Kernel mode.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle while input or output was outstanding. Unreliable by design (proc(5)), so it counts as idle.
    pub iowait: u64,
    /// Hardware interrupts.
    pub irq: u64,
    /// Soft interrupts.
    pub softirq: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

impl CoreTimes {
    /// All ticks, busy and idle.
    pub fn total(&self) -> u64 {
        self.busy() + self.idle + self.iowait
    }

    /// Ticks in which the core was not idle. Steal counts as busy because the host could not use that time.
    pub fn busy(&self) -> u64 {
        self.user + self.nice + self.system + self.irq + self.softirq + self.steal
    }
}

/// CPU times of every online core.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Core number and its times. The kernel leaves out offline cores.
    pub cores: Vec<(u32, CoreTimes)>,
}

/// Memory of the host, bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// MemTotal.
    pub total: u64,
    /// MemAvailable.
    pub available: u64,
    /// SwapTotal.
    pub swap_total: u64,
    /// SwapFree.
    pub swap_free: u64,
}

/// Processes and threads of the whole host, and how many there may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskLimits {
    /// Processes and threads of the host in all namespaces, threads of the kernel included (`/proc/loadavg`).
    pub tasks: u64,
    /// `kernel.threads-max`: the most of them.
    pub threads_max: u64,
    /// `kernel.pid_max` of this program's pid namespace: ids are below it.
    pub pid_max: u64,
    /// Processes of that namespace whose ids are below 300, which are not given again (RESERVED_PIDS, kernel/pid.c).
    pub low_pids: u64,
    /// True if that namespace is the first one, which has an id for each process and thread of the host.
    pub is_first: bool,
}

impl TaskLimits {
    /// Ids below this are not given again once all were given (RESERVED_PIDS, kernel/pid.c, `alloc_pid`).
    pub const RESERVED_PIDS: u64 = 300;
}

/// One row of `/proc/net/softnet_stat`, counters since boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SoftnetRow {
    /// Core number: the column if the kernel prints one, else the position of the row.
    pub cpu: u32,
    /// Packets processed.
    pub processed: u64,
    /// Packets dropped because the netdev backlog was full.
    pub dropped: u64,
    /// Times that the budget or the time slice ran out with work left. No packet is lost.
    pub time_squeeze: u64,
    /// Packets in the backlog now, if the kernel prints it.
    pub backlog: Option<u64>,
}

/// One line of the kernel log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelLine {
    /// Microseconds since boot.
    pub at_us: u64,
    /// Sequence number in the log.
    pub sequence: u64,
    /// The text, without prefix and continuation lines.
    pub text: String,
}

impl KernelLine {
    /// True for a line that the model reads and recordings keep: the kernel logs it, rate-limited, when it drops a packet because no conntrack entry is free
    /// (net/netfilter/nf_conntrack_core.c, `__nf_conntrack_alloc`).
    pub fn is_read(&self) -> bool {
        self.text.contains("nf_conntrack") && self.text.contains("table full")
    }
}
