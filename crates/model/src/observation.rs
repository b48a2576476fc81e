//! Everything that was read of the hosts during one observation, parsed. It is the model's only input.
//!
//! Only `sources::assemble` builds it, from live raw bytes or from a recording.

mod cgroup;
mod counters;
mod edge;
mod filter;
mod host;
pub mod load;
mod log_event;
mod netns;
mod process;
mod profile;
pub mod reading;
mod request;
mod request_sample;
pub mod series;
mod server;
mod socket;
mod stated;
mod tcp_sample;
mod warmth;
mod wire;

pub use cgroup::{CgroupCpu, CgroupId, CgroupIo, CgroupTasks, CgroupVersion, Freezer, IoKind};
pub use counters::Counters;
pub use edge::{Closes, EdgeFacts, EdgeProtocol};
pub use filter::{FilterHook, FilterPorts, FilterRule, FilterRules};
pub use host::{CoreTimes, CpuTimes, KernelInfo, KernelLine, Memory, SoftnetRow, TaskLimits};
pub use log_event::LogEvent;
pub use netns::{Address, ConntrackCpu, Link, NetnsId, NetnsView, Qdisc, Translation};
pub use process::{
    BusyProcess, CpuUse, Identity, Limits, LookedThread, Mappings, OpenFiles, ProcessMemory, ProcessView, RealTime, RealTimePolicy,
    Sessions, Syscall, ThreadAt, ThreadCalls, ThreadLook, ThreadName, ThreadState, ThreadTimes, ThreadWait, TimedWait, Tracing, WaitKind,
};
pub use profile::{CpuProfile, ProfileFunction, ProfilePart};
pub use request::Request;
pub use request_sample::{DumpMoment, Flight, RequestSample, RequestSocket, RequestTimes};
pub use server::{
    AccessLog, ConfigurationFiles, ErrorLog, FileEdit, LogExtent, MasterProcess, NginxAsks, NginxConfig, NginxDebugLog, NginxLimit,
    NginxListen, NginxOwn, NginxPass, NginxStatus, NginxTlsSessions, Origin, PhpFpmConfig, PhpFpmPool, PhpFpmStatus, ProxiedServer,
    ProxiedState, ServerConfig, ServerFiles, ServerStatus, ServerView, Setting, SettingValue, is_unserved,
};
pub use socket::{
    Listener, ListenerAddress, Socket, SocketAddress, TcpState, TimeWaitAccepted, TimeWaitDialled, TimeWaits, UnixPeer, Wait,
};
pub use stated::{LimitOf, LimitScope, StatedConfig, StatedLimit, StatedListen, StatedPass, StatedRefusal};
pub use tcp_sample::TcpSample;
pub use warmth::{AfterRest, Warmth};
pub use wire::{WireAnswers, WireCount, WireEdge, WireSign, WireView};

use std::collections::BTreeMap;

use crate::observation::load::LoadResult;
use crate::observation::series::Series;

/// One observation of one host with all of its network namespaces.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// What was asked for: target, mode, thresholds.
    pub request: Request,
    /// The load that was applied, if any.
    pub load: Option<LoadResult>,
    /// A few requests sent one after another before that load: the response time while no other request is under way. `None` if load was offered at a rate, or
    /// if its requests are counted or may change something.
    pub unloaded: Option<LoadResult>,
    /// Cost of a reference workload after rests, measured before that load.
    pub warmth: Option<Warmth>,
    /// The observed window, microseconds since the observation began: while load was applied, or the whole time in passive mode.
    pub window_us: Option<(u64, u64)>,
    /// Kernel release and fixed facts.
    pub kernel: Series<KernelInfo>,
    /// CPU times per core (`/proc/stat`).
    pub cpu: Series<CpuTimes>,
    /// Memory of the host (`/proc/meminfo`).
    pub memory: Series<Memory>,
    /// Per-CPU packet processing counters (`/proc/net/softnet_stat`), host-wide.
    pub softnet: Series<Vec<SoftnetRow>>,
    /// Kernel log lines since the observation began (`/dev/kmsg`).
    pub kernel_log: Series<Vec<KernelLine>>,
    /// Where CPU time went in the last third of the window. Unread if no profile was asked for.
    pub profile: Series<CpuProfile>,
    /// The processes of the host that used most CPU time, while a core was busy.
    pub busy_processes: Series<Vec<BusyProcess>>,
    /// What captured packets showed. Unread if no capture was asked for.
    pub wire: Series<WireView>,
    /// CPU use of each core's `ksoftirqd/N` thread, by core.
    pub ksoftirqd: BTreeMap<u32, Series<CpuUse>>,
    /// Every network namespace that was read.
    pub netns: BTreeMap<NetnsId, NetnsView>,
    /// Every process that was read: those on the request's path and those that own its listeners.
    pub processes: BTreeMap<u32, ProcessView>,
    /// Every cgroup that may limit the CPU of a process on the path: the processes' own cgroups and all their ancestors.
    pub cgroups: BTreeMap<CgroupId, Series<CgroupCpu>>,
    /// Every cgroup that may limit how many processes and threads there are beside those of the path: their own cgroups and all ancestors.
    pub cgroup_tasks: BTreeMap<CgroupId, Series<CgroupTasks>>,
    /// Every cgroup that limits what processes of the path do with disks.
    pub cgroup_io: BTreeMap<CgroupId, Series<CgroupIo>>,
    /// Whether the cgroups of the path's processes are frozen.
    pub freezers: BTreeMap<CgroupId, Series<Freezer>>,
    /// Number of processes and threads of each user, by its real id; read at both ends.
    pub user_tasks: Series<BTreeMap<u32, u64>>,
    /// Number of processes and threads of the whole host, and how many there may be.
    pub task_limits: Series<TaskLimits>,
    /// Servers of a known kind, by process id of the master.
    pub servers: BTreeMap<u32, ServerView>,
    /// Network namespaces found on the host. Absent if this user may not see all of them.
    pub namespaces_seen: Series<u32>,
    /// Number of processes whose open sockets were readable. Absent if this user may not read all of them.
    pub processes_seen: Series<u32>,
    /// What a limit left out or thinned, one sentence each. The report lists them.
    pub bounded: Vec<String>,
    /// Entries that could not be assigned (unknown source, unreadable scope). The report lists them; none is dropped silently.
    pub unplaced: Vec<String>,
}
