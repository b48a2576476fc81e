//! HAProxy: event loops. Requests beyond maxconn of a server wait in its queue.

mod locate;

use chokepoint_model::change::ServerKind;

use crate::advice::{ConfigLine, Demand, WorkerUnit};
use crate::{Dialect, MasterDef, ReloadSignal, ServerDef, is_program};

/// docs.haproxy.org/2.6/configuration.html.
pub(crate) const HAPROXY: ServerDef = ServerDef {
    id: "haproxy",
    name: "HAProxy",
    unit: WorkerUnit::Loops,
    file: "/etc/haproxy/haproxy.cfg",
    source: "https://docs.haproxy.org/2.6/configuration.html",
    master: Some(&MASTER),
    recognise: |identity| is_program(identity, "haproxy"),
    lines,
};

/// With `-W` a master starts a worker, which alone listens and has the same command line (docs.haproxy.org/2.6/management.html, section 3); it executes its program again in order to reload
/// (`mworker_reload` in src/mworker.c). Without, the one process is both.
pub(crate) const MASTER: MasterDef = MasterDef {
    dialect: Dialect::Haproxy,
    kind: Some(ServerKind::Haproxy),
    is_apart: true,
    of_directory: Some("*.cfg"),
    programs: &["haproxy"],
    titles: &[],
    is_worker: |_| false,
    is_leaving: |_| false,
    locate: locate::locate,
    // Its version stands there without a beginning of its own.
    built_in_texts: &[],
    prefix: |_, _| None,
    main_in_title: |_| None,
    main_is_of_start: true,
    test_arguments: |main, also, _| {
        let directory = |file: &str| file.strip_suffix("/*.cfg").unwrap_or(file).to_owned();
        let files = [main].into_iter().chain(also.iter().map(String::as_str));
        std::iter::once("-c".to_owned()).chain(files.flat_map(|file| ["-f".to_owned(), directory(file)])).collect()
    },
    reload_signal: ReloadSignal::Usr2,
    executes_itself: true,
    path_options: &["-f", "-C"],
    title_words: &[],
};

fn lines(demand: &Demand) -> Vec<ConfigLine> {
    let mut lines = vec![ConfigLine::new(format!("global: maxconn {}", demand.in_flight), "size-line-connections")];
    lines.extend(demand.behind.map(|workers| ConfigLine::new(format!("server ... maxconn {workers}"), "size-line-server")));
    lines
}
