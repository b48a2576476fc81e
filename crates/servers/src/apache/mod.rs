//! Apache httpd, whose prefork MPM has a process for each connection.

use crate::advice::{ConfigLine, Demand, WorkerUnit};
use crate::{ServerDef, is_program};

/// httpd.apache.org/docs/2.4/mod/mpm_common.html.
pub(crate) const APACHE: ServerDef = ServerDef {
    id: "apache",
    name: "Apache",
    unit: WorkerUnit::Processes,
    file: "/etc/apache2/mods-enabled/mpm_*.conf",
    source: "https://httpd.apache.org/docs/2.4/mod/mpm_common.html",
    master: None,
    recognise: |identity| is_program(identity, "apache2") || is_program(identity, "httpd"),
    lines,
};

/// Defaults of ListenBacklog, and of ThreadsPerChild of the event and worker MPMs.
const BACKLOG_DEFAULT: u32 = 511;
const THREADS_DEFAULT: u32 = 25;

fn lines(demand: &Demand) -> Vec<ConfigLine> {
    let mut lines = match demand.is_threaded || demand.has_threads {
        true => {
            let children = demand.workers.div_ceil(THREADS_DEFAULT);
            vec![
                ConfigLine::new(format!("ThreadsPerChild {THREADS_DEFAULT}"), "size-line-threads"),
                ConfigLine::new(format!("ServerLimit {children}"), "size-line-limit"),
                // It must be a multiple of ThreadsPerChild.
                ConfigLine::new(format!("MaxRequestWorkers {}", children * THREADS_DEFAULT), "size-line-workers"),
            ]
        }
        false => vec![
            // It must not be below MaxRequestWorkers, and is in force after a restart.
            ConfigLine::new(format!("ServerLimit {}", demand.workers), "size-line-limit"),
            ConfigLine::new(format!("MaxRequestWorkers {}", demand.workers), "size-line-workers"),
        ],
    };
    lines.extend(demand.longer_queue(BACKLOG_DEFAULT).map(|queue| ConfigLine::new(format!("ListenBacklog {queue}"), "size-line-queue")));
    lines
}
