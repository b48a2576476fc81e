//! Ids of stations and findings. They are compared, and become strings only in the report.

use std::fmt;

/// Id of a station in kebab-case: "conntrack-table".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub &'static str);

/// Id of a finding in kebab-case. It names the problem: "conntrack-table-full".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FindingId(pub &'static str);

impl fmt::Display for StationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Stations that the cause graph, remedies and predictions name.
impl StationId {
    /// The load generator.
    pub const LOAD_GENERATOR: Self = Self("load-generator");
    /// The demand.
    pub const CLIENTS: Self = Self("clients");
    /// The interface through which answers leave.
    pub const LINK: Self = Self("link");
    /// A shaper that holds answers back.
    pub const SHAPER: Self = Self("shaper");
    /// The table of tracked connections.
    pub const CONNTRACK_TABLE: Self = Self("conntrack-table");
    /// Open handshakes of a listener.
    pub const SYN_QUEUE: Self = Self("syn-queue");
    /// Connections waiting to be accepted.
    pub const ACCEPT_QUEUE: Self = Self("accept-queue");
    /// Connections of nginx's workers.
    pub const WORKER_CONNECTIONS: Self = Self("worker-connections");
    /// File descriptors of a process.
    pub const FILE_DESCRIPTORS: Self = Self("file-descriptors");
    /// Processes and threads of a cgroup or a user.
    pub const TASKS: Self = Self("tasks");
    /// Local ports towards an upstream.
    pub const EPHEMERAL_PORTS: Self = Self("ephemeral-ports");
    /// Workers that serve one connection at a time.
    pub const WORKER_POOL: Self = Self("worker-pool");
    /// The CPU time that a cgroup allows.
    pub const CPU_QUOTA: Self = Self("cpu-quota");
    /// The cores.
    pub const CPU: Self = Self("cpu");
}

/// Findings that stations, the cause graph and remedies share.
impl FindingId {
    /// The cores of the load generator were the limit.
    pub(crate) const GENERATOR_LIMITED: Self = Self("load-generator-limited");
    /// Packets are lost on the network path, and requests wait for them.
    pub(crate) const PACKET_LOSS: Self = Self("packet-loss");
    /// The send buffer is smaller than the bandwidth-delay product of the network path.
    pub(crate) const BUFFER_LIMITED: Self = Self("send-buffer-limited");
    /// Small writes wait for an acknowledgement that the peer delays.
    pub(crate) const ACK_STALL: Self = Self("delayed-ack-stall");
    /// New connections begin with fewer segments than usual, and their answers take more round trips.
    pub(crate) const SMALL_WINDOW: Self = Self("small-initial-window");
    /// The clients' receive windows accept no more at once.
    pub(crate) const RECEIVER_LIMITED: Self = Self("receiver-limited");
    /// Packets found the table of tracked connections full.
    pub(crate) const TABLE_FULL: Self = Self("conntrack-table-full");
    /// SYNs found a SYN queue full.
    pub(crate) const SYN_QUEUE_FULL: Self = Self("syn-queue-full");
    /// Connections found an accept queue full.
    pub(crate) const ACCEPT_QUEUE_FULL: Self = Self("accept-queue-full");
    /// Nobody accepts the connections that wait.
    pub(crate) const ACCEPTS_NONE: Self = Self("accepts-none");
    /// Processes of a server are stopped, and requests wait for them.
    pub(crate) const PROCESSES_STOPPED: Self = Self("processes-stopped");
    /// A tracer stops threads of a server again and again, and requests wait meanwhile.
    pub(crate) const PROCESSES_TRACED: Self = Self("processes-traced");
    /// Connections come faster than they are accepted, while cores are idle.
    pub(crate) const ACCEPTS_SLOWLY: Self = Self("accepts-slowly");
    /// A configured setting is not active.
    pub(crate) const NOT_IN_FORCE: Self = Self("setting-not-in-force");
    /// Workers of nginx had no connection left.
    pub(crate) const CONNECTIONS_EXHAUSTED: Self = Self("worker-connections-exhausted");
    /// A process had no descriptor left.
    pub(crate) const FILES_EXHAUSTED: Self = Self("file-descriptors-exhausted");
    /// No process or thread could be started.
    pub(crate) const TASKS_EXHAUSTED: Self = Self("tasks-exhausted");
    /// A cgroup may do no more with a disk.
    pub(crate) const DISK_LIMITED: Self = Self("disk-limited");
    /// As many requests or connections as the configuration of a server allows at once.
    pub(crate) const SERVER_LIMIT_REACHED: Self = Self("server-limit-reached");
    /// The configuration limits this traffic.
    pub(crate) const LIMITED_BY_CONFIG: Self = Self("rate-limited-by-config");
    /// A packet filter takes packets of the path.
    pub(crate) const PACKETS_FILTERED: Self = Self("packets-filtered");
    /// No local port was left for connections to an upstream.
    pub(crate) const PORTS_EXHAUSTED: Self = Self("ephemeral-ports-exhausted");
    /// The search for a free port takes the cores.
    pub(crate) const TIME_WAIT_SEARCH: Self = Self("time-wait-port-search");
    /// A connection is opened for each request, and that is expensive.
    pub(crate) const CHURN: Self = Self("upstream-connection-churn");
    /// Requests fail because they meet kept connections that the upstream is just closing.
    pub(crate) const CLOSE_RACE: Self = Self("idle-close-race");
    /// Nobody answers the connections to an upstream.
    pub(crate) const UNREACHABLE: Self = Self("upstream-unreachable");
    /// A server is asked again and again for the same request, because the calls fail.
    pub(crate) const REPEATED: Self = Self("calls-repeated");
    /// All workers are busy or waiting, and none is free.
    pub(crate) const POOL_EXHAUSTED: Self = Self("worker-pool-exhausted");
    /// The pool's workers wait for another server.
    pub(crate) const POOL_BLOCKED: Self = Self("workers-blocked-on-upstream");
    /// The pool's workers wait for each other.
    pub(crate) const POOL_TAKES_TURNS: Self = Self("workers-wait-for-each-other");
    /// Requests hold the pool's workers until these are ended.
    pub(crate) const REQUESTS_HANG: Self = Self("requests-hang");
    /// Workers wait for clients that have their answer to end the connection.
    pub(crate) const WAITS_FOR_CLIENTS: Self = Self("waits-for-clients");
    /// Most requests wait for each other inside a program.
    pub(crate) const WAITS_INSIDE: Self = Self("waits-inside");
    /// Requests wait for a server that was not seen to answer any.
    pub(crate) const ANSWERS_NONE: Self = Self("answers-none");
    /// A server answers requests with errors of its own.
    pub(crate) const ANSWERS_ERRORS: Self = Self("answers-errors");
    /// A runtime collects garbage for more of the time than is usual, and requests wait meanwhile.
    pub(crate) const COLLECTS_GARBAGE: Self = Self("collects-garbage");
    /// A CPU quota stops servers whose cores have room.
    pub(crate) const THROTTLED: Self = Self("cgroup-cpu-throttled");
    /// A shaper holds answers back.
    pub(crate) const EGRESS_SHAPED: Self = Self("egress-shaped");
    /// Compression takes much CPU time.
    pub(crate) const COMPRESSION_HOT: Self = Self("compression-hot");
    /// TLS handshakes take much CPU time.
    pub(crate) const TLS_HANDSHAKE_HOT: Self = Self("tls-handshake-hot");
    /// Scripts are compiled for each request.
    pub(crate) const OPCODE_CACHE_OFF: Self = Self("opcode-cache-off");
    /// Processes are started and ended all the time, which takes much CPU time.
    pub(crate) const PROCESS_STARTS: Self = Self("process-starts-hot");
    /// A log of each step of a request takes much CPU time.
    pub(crate) const DEBUG_LOG: Self = Self("debug-log");
    /// The allocator takes much CPU time.
    pub(crate) const ALLOCATOR_HOT: Self = Self("allocator-hot");
    /// Threads wait for each other's locks.
    pub(crate) const LOCK_CONTENTION: Self = Self("lock-contention");
    /// There are fewer threads than cores, and the threads run all the time.
    pub(crate) const SINGLE_CORE: Self = Self("single-core-saturated");
    /// Received packets fill one core while others are idle.
    pub(crate) const SOFTIRQ_ON_ONE_CORE: Self = Self("softirq-on-one-core");
    /// Other programs take cores that the servers need.
    pub(crate) const CORES_TAKEN: Self = Self("cores-taken-by-others");
    /// A program polls, so its busy cores say nothing about load.
    pub(crate) const BUSY_POLLING: Self = Self("busy-polling");
}

/// Findings about CPU time that could be saved: improvements, which are reported only if nothing is choked.
pub(crate) const CPU_FINDINGS: &[FindingId] = &[
    FindingId::COMPRESSION_HOT,
    FindingId::TLS_HANDSHAKE_HOT,
    FindingId::OPCODE_CACHE_OFF,
    FindingId::DEBUG_LOG,
    FindingId::PROCESS_STARTS,
    FindingId::ALLOCATOR_HOT,
    FindingId::LOCK_CONTENTION,
    FindingId::SINGLE_CORE,
    FindingId::SOFTIRQ_ON_ONE_CORE,
    FindingId::CORES_TAKEN,
    FindingId::BUSY_POLLING,
];
