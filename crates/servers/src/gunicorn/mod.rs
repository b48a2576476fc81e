//! gunicorn: a process for each request, or with `threads` a thread of one (gthread).

use crate::advice::{ConfigLine, Demand, WorkerUnit};
use crate::{ServerDef, is_program, runs};

/// docs.gunicorn.org/en/stable/settings.html.
pub(crate) const GUNICORN: ServerDef = ServerDef {
    id: "gunicorn",
    name: "gunicorn",
    unit: WorkerUnit::Processes,
    file: "gunicorn.conf.py",
    source: "https://docs.gunicorn.org/en/stable/settings.html",
    master: None,
    recognise: |identity| is_program(identity, "gunicorn") || runs(identity, "gunicorn"),
    lines,
};

/// Default of `backlog`.
const BACKLOG_DEFAULT: u32 = 2048;

fn lines(demand: &Demand) -> Vec<ConfigLine> {
    let mut lines = vec![match demand.threads() {
        Some(threads) => ConfigLine::new(format!("threads = {threads}"), "size-line-threads"),
        None => ConfigLine::new(format!("workers = {}", demand.workers), "size-line-workers"),
    }];
    lines.extend(demand.longer_queue(BACKLOG_DEFAULT).map(|queue| ConfigLine::new(format!("backlog = {queue}"), "size-line-queue")));
    lines
}
