//! php-fpm: a process for each request.

mod locate;

use chokepoint_model::change::ServerKind;

use crate::advice::{ConfigLine, Demand, WorkerUnit};
use crate::{Dialect, MasterDef, ReloadSignal, ServerDef, is_program};

/// php.net/manual/en/install.fpm.configuration.php.
pub(crate) const PHP_FPM: ServerDef = ServerDef {
    id: "php-fpm",
    name: "php-fpm",
    unit: WorkerUnit::Processes,
    file: "/etc/php/*/fpm/pool.d/www.conf",
    source: "https://www.php.net/manual/en/install.fpm.configuration.php",
    master: Some(&MASTER),
    recognise: |identity| is_program(identity, "php-fpm"),
    lines,
};

/// Its processes' titles are in sapi/fpm/fpm/fpm_env.c. It opens its main file as it was given (fpm_conf_init_main), and executes its program again in order to reload
/// (fpm_process_ctl.c, fpm_pctl_exec).
pub(crate) const MASTER: MasterDef = MasterDef {
    dialect: Dialect::PhpFpm,
    kind: Some(ServerKind::PhpFpm),
    is_apart: false,
    of_directory: None,
    programs: &["php-fpm"],
    titles: &["php-fpm"],
    is_worker: |said| said.starts_with("pool "),
    is_leaving: |_| false,
    locate: locate::locate,
    built_in_texts: &[],
    prefix: |_, _| None,
    main_in_title: |title| title.strip_prefix('(')?.strip_suffix(')').map(str::to_owned),
    main_is_of_start: true,
    test_arguments: |main, _, _| ["-t", "-y", main].map(str::to_owned).into(),
    reload_signal: ReloadSignal::Usr2,
    executes_itself: true,
    path_options: &["-p", "-y", "--fpm-config", "--prefix"],
    title_words: &["master", "pool", "process"],
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
