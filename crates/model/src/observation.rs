//! Everything that was read of the hosts during one observation, parsed: the model's only input.
//!
//! `sources::assemble` builds it from raw bytes, live or out of a recording; nothing else may.

mod cgroup;
mod counters;
mod host;
pub mod load;
mod netns;
mod process;
mod profile;
pub mod reading;
mod request_sample;
pub mod series;
mod server;
mod tcp_sample;
mod warmth;
mod wire;

pub use cgroup::{CgroupCpu, CgroupId, CgroupVersion};
pub use counters::Counters;
pub use host::{CoreTimes, CpuTimes, KernelInfo, KernelLine, Memory, SoftnetRow};
pub use netns::{
    Address, ConntrackCpu, Link, Listener, ListenerAddress, NetnsId, NetnsView, Qdisc, Socket, SocketAddress, TcpState, TimeWaitAccepted,
    TimeWaitDialled, TimeWaits, Translation, UnixPeer, Wait,
};
pub use process::{CpuUse, Identity, Limits, OpenFiles, ProcessView, Syscall, ThreadCalls, ThreadTimes};
pub use profile::{CpuProfile, ProfileFunction, ProfilePart};
pub use request_sample::{RequestSample, RequestSocket, RequestTimes};
pub use server::{
    AccessLog, ErrorLog, LogExtent, NginxAsks, NginxConfig, NginxDebugLog, NginxLimit, NginxListen, NginxOwn, NginxPass, NginxStatus,
    NginxTlsSessions, Origin, PhpFpmConfig, PhpFpmPool, PhpFpmStatus, ServerConfig, ServerStatus, ServerView, Setting,
};
pub use tcp_sample::TcpSample;
pub use warmth::{AfterRest, Warmth};
pub use wire::{WireCount, WireEdge, WireSign, WireView};

use std::collections::BTreeMap;

use crate::observation::load::LoadResult;
use crate::observation::series::Series;
use crate::output::report::Request;

/// One observation of one host with all of its network namespaces.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// What was asked for: target, mode, thresholds.
    pub request: Request,
    /// The load that was applied, where any was.
    pub load: Option<LoadResult>,
    /// A few requests one behind the other before that load: what an answer takes where no other is under way. Nothing where load was offered at
    /// a rate, or its requests are counted or may change something.
    pub unloaded: Option<LoadResult>,
    /// What a reference work cost after rests, before that load.
    pub warmth: Option<Warmth>,
    /// The observed window, microseconds since the observation began: the time in which load was applied, or the whole time in passive mode.
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
    /// Where the CPU time went in the last third of the window; unread where no profile was asked for.
    pub profile: Series<CpuProfile>,
    /// What packets showed; unread where no capture was asked for.
    pub wire: Series<WireView>,
    /// CPU use of each core's `ksoftirqd/N` thread, by core.
    pub ksoftirqd: BTreeMap<u32, Series<CpuUse>>,
    /// Every network namespace that was read.
    pub netns: BTreeMap<NetnsId, NetnsView>,
    /// Every process that was read: those on the request's path and those that listen for it.
    pub processes: BTreeMap<u32, ProcessView>,
    /// Every cgroup that may limit the CPU of a process of the path: those processes' own and all above them.
    pub cgroups: BTreeMap<CgroupId, Series<CgroupCpu>>,
    /// Servers of a known kind, by the process id of their master.
    pub servers: BTreeMap<u32, ServerView>,
    /// Network namespaces found on the host; absent where this user may not see all of them.
    pub namespaces_seen: Series<u32>,
    /// Processes whose open sockets could be looked at; absent where this user may not look at all of them.
    pub processes_seen: Series<u32>,
    /// What a bound left out or thinned, one sentence each: told in the report.
    pub bounded: Vec<String>,
    /// Entries that could not be placed (unknown source, unreadable scope): told in the report, never dropped in silence.
    pub unplaced: Vec<String>,
}
