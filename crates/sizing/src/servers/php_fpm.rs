//! php-fpm: a process for each request.

use super::{ConfigLine, Demand, ServerDef, ServerKind, WorkerUnit, is_program};

/// php.net/manual/en/install.fpm.configuration.php.
pub(super) const PHP_FPM: ServerDef = ServerDef {
    kind: ServerKind::PhpFpm,
    name: "php-fpm",
    unit: WorkerUnit::Processes,
    file: "/etc/php/*/fpm/pool.d/www.conf",
    source: "https://www.php.net/manual/en/install.fpm.configuration.php",
    recognise: |identity| is_program(identity, "php-fpm"),
    lines,
};

/// Default of listen.backlog on Linux.
const BACKLOG_DEFAULT: u32 = 511;

fn lines(demand: &Demand) -> Vec<ConfigLine> {
    let mut lines = vec![
        ConfigLine::new("pm = static", "size-line-static"),
        ConfigLine::new(format!("pm.max_children = {}", demand.workers), "size-line-workers"),
    ];
    lines.extend(
        demand.longer_queue(BACKLOG_DEFAULT).map(|queue| ConfigLine::new(format!("listen.backlog = {queue}"), "size-line-queue-restart")),
    );
    lines
}
