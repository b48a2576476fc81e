//! uWSGI: a process for each request, or with `threads` a thread of one.

use crate::advice::{ConfigLine, Demand, WorkerUnit};
use crate::{ServerDef, is_program};

/// uwsgi-docs.readthedocs.io/en/latest/Options.html.
pub(crate) const UWSGI: ServerDef = ServerDef {
    id: "uwsgi",
    name: "uWSGI",
    unit: WorkerUnit::Processes,
    file: "/etc/uwsgi/apps-enabled/*.ini",
    source: "https://uwsgi-docs.readthedocs.io/en/latest/Options.html",
    master: None,
    recognise: |identity| is_program(identity, "uwsgi"),
    lines,
};

/// Default of `listen`.
const BACKLOG_DEFAULT: u32 = 100;

fn lines(demand: &Demand) -> Vec<ConfigLine> {
    let mut lines = vec![match demand.threads() {
        Some(threads) => ConfigLine::new(format!("threads = {threads}"), "size-line-threads"),
        None => ConfigLine::new(format!("processes = {}", demand.workers), "size-line-workers"),
    }];
    // uWSGI does not start if the queue is longer than net.core.somaxconn.
    lines.extend(
        demand.longer_queue(BACKLOG_DEFAULT).map(|queue| ConfigLine::new(format!("listen = {queue}"), "size-line-queue-somaxconn")),
    );
    lines
}
