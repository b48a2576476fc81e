//! Ids of findings that stations, the cause graph and remedies know in common. Each names the bad thing.

/// The cores of the load generator were the limit.
pub(crate) const GENERATOR_LIMITED: &str = "load-generator-limited";
/// Packets get lost on the way, and requests wait for them.
pub(crate) const PACKET_LOSS: &str = "packet-loss";
/// The send buffer is smaller than what the way holds.
pub(crate) const BUFFER_LIMITED: &str = "send-buffer-limited";
/// Small writes wait for an acknowledgement that the peer delays.
pub(crate) const ACK_STALL: &str = "delayed-ack-stall";
/// New connections begin with fewer segments than usual, and their answers take more round trips.
pub(crate) const SMALL_WINDOW: &str = "small-initial-window";
/// The clients take no more at once.
pub(crate) const RECEIVER_LIMITED: &str = "receiver-limited";
/// Packets found no room in the table of tracked connections.
pub(crate) const TABLE_FULL: &str = "conntrack-table-full";
/// SYNs found a queue of handshakes full.
pub(crate) const SYN_QUEUE_FULL: &str = "syn-queue-full";
/// Connections found an accept queue full.
pub(crate) const ACCEPT_QUEUE_FULL: &str = "accept-queue-full";
/// What is written is not in force.
pub(crate) const NOT_IN_FORCE: &str = "setting-not-in-force";
/// Workers of nginx had no connection left.
pub(crate) const CONNECTIONS_EXHAUSTED: &str = "worker-connections-exhausted";
/// A process had no descriptor left.
pub(crate) const FILES_EXHAUSTED: &str = "file-descriptors-exhausted";
/// The configuration limits this traffic.
pub(crate) const LIMITED_BY_CONFIG: &str = "rate-limited-by-config";
/// No local port was left towards an upstream.
pub(crate) const PORTS_EXHAUSTED: &str = "ephemeral-ports-exhausted";
/// The search for a free port takes the cores.
pub(crate) const TIME_WAIT_SEARCH: &str = "time-wait-port-search";
/// A connection is opened for each request, and that costs.
pub(crate) const CHURN: &str = "upstream-connection-churn";
/// Requests meet kept connections that the upstream is just closing, and fail.
pub(crate) const CLOSE_RACE: &str = "idle-close-race";
/// All workers are taken and wait.
pub(crate) const POOL_EXHAUSTED: &str = "worker-pool-exhausted";
/// They wait for another server.
pub(crate) const POOL_BLOCKED: &str = "workers-blocked-on-upstream";
/// Most of all requests wait for each other inside a program.
pub(crate) const WAITS_INSIDE: &str = "waits-inside";
/// A CPU quota stops servers whose cores have more to give.
pub(crate) const THROTTLED: &str = "cgroup-cpu-throttled";
