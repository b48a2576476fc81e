//! nginx: event loops. A request takes a connection to the client and one to the server behind.

mod locate;

use chokepoint_model::change::ServerKind;

use crate::advice::{ConfigLine, Demand, WorkerUnit};
use crate::{Dialect, MasterDef, ReloadSignal, ServerDef, is_program};

/// nginx.org/en/docs/ngx_core_module.html.
pub(crate) const NGINX: ServerDef = ServerDef {
    id: "nginx",
    name: "nginx",
    unit: WorkerUnit::Loops,
    file: "/etc/nginx/nginx.conf",
    source: "https://nginx.org/en/docs/ngx_core_module.html",
    master: Some(&MASTER),
    recognise: |identity| is_program(identity, "nginx"),
    lines,
};

/// Its processes' titles are in src/os/unix/ngx_process_cycle.c, a relative main file in ngx_conf_full_name. Forks with its configuration have its titles with their own names.
pub(crate) const MASTER: MasterDef = MasterDef {
    dialect: Dialect::Nginx,
    kind: Some(ServerKind::Nginx),
    is_apart: false,
    of_directory: None,
    programs: &["nginx", "openresty", "freenginx", "angie"],
    titles: &["nginx", "angie", "freenginx"],
    is_worker: |said| said == "worker process",
    is_leaving: |said| said == "worker process is shutting down",
    locate: locate::locate,
    // What `nginx -V` prints.
    prefix: |title, built_in| Some(locate::prefix(title, built_in)),
    built_in_texts: &["nginx version: ", "configure arguments:"],
    main_in_title: |title| locate::argument(title, "-c").filter(|file| file.starts_with('/')),
    main_is_of_start: false,
    test_arguments,
    reload_signal: ReloadSignal::Hup,
    executes_itself: false,
    path_options: &["-c", "-e", "-p"],
    title_words: &["cache", "down", "is", "loader", "manager", "master", "privileged", "process", "shutting", "worker"],
};

fn test_arguments(main: &str, _: &[String], title: &str) -> Vec<String> {
    let given = ["-p", "-g", "-e"].into_iter().filter_map(|option| Some([option.to_owned(), locate::argument(title, option)?]));
    ["-t", "-c", main].map(str::to_owned).into_iter().chain(given.flatten()).collect()
}

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
