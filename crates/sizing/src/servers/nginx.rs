//! nginx: event loops. A request takes a connection to the client and one to the server behind.

use super::{ConfigLine, Demand, ServerDef, ServerKind, WorkerUnit, is_program};

/// nginx.org/en/docs/ngx_core_module.html.
pub(super) const NGINX: ServerDef = ServerDef {
    kind: ServerKind::Nginx,
    name: "nginx",
    unit: WorkerUnit::Loops,
    file: "/etc/nginx/nginx.conf",
    source: "https://nginx.org/en/docs/ngx_core_module.html",
    recognise: |identity| is_program(identity, "nginx"),
    lines,
};

/// Backlog of `listen` on Linux unless it is given.
const BACKLOG_DEFAULT: u32 = 511;
/// Default of worker_connections.
const CONNECTIONS_DEFAULT: u32 = 512;
/// Descriptors of a worker besides connections: listeners, logs, epoll and files that are sent.
const OTHER_FILES: u32 = 64;

fn lines(demand: &Demand) -> Vec<ConfigLine> {
    let needed = (2 * demand.in_flight).div_ceil(demand.cores.max(1));
    // Only what has to change: a setting in force that suffices stays, and so do the descriptors for it.
    let connections = demand.connections_now.map_or(needed.max(CONNECTIONS_DEFAULT), |now| needed.max(now));
    let grows = demand.connections_now.is_none_or(|now| connections > now);
    let files = connections + OTHER_FILES;
    let lacks_files = demand.files_now.map_or(grows, |now| now < u64::from(needed + OTHER_FILES));
    let lacks_loops = demand.loops_now.is_none_or(|now| now < demand.cores);
    let mut lines = Vec::new();
    lines.extend(lacks_loops.then(|| ConfigLine::new("worker_processes auto;", "size-line-loops")));
    lines.extend(lacks_files.then(|| ConfigLine::new(format!("worker_rlimit_nofile {files};"), "size-line-files")));
    lines.extend(grows.then(|| ConfigLine::new(format!("events {{ worker_connections {connections}; }}"), "size-line-connections")));
    lines.extend(
        demand.longer_queue(BACKLOG_DEFAULT).map(|queue| ConfigLine::new(format!("listen ... backlog={queue};"), "size-line-queue")),
    );
    lines
}
