//! PostgreSQL: a process for each connection. Connections beyond `max_connections` are refused.

mod locate;
mod session;

use crate::advice::{ConfigLine, Demand, WorkerUnit};
use crate::{Dialect, MasterDef, ReloadSignal, ServerDef, SessionsDef, is_program};

/// postgresql.org/docs/current/runtime-config.html.
pub(crate) const POSTGRESQL: ServerDef = ServerDef {
    id: "postgresql",
    name: "PostgreSQL",
    unit: WorkerUnit::Processes,
    file: "/etc/postgresql/15/main/postgresql.conf",
    source: "https://www.postgresql.org/docs/current/runtime-config-connection.html",
    master: Some(&MASTER),
    recognise: |identity| is_program(identity, "postgres") || is_program(identity, "postmaster"),
    lines,
};

/// A process for each session, started by the first one.
pub(crate) const SESSIONS: SessionsDef = SessionsDef { programs: &["postgres", "postmaster"], of_title: Some(session::of_title) };

/// The titles of its processes begin with "postgres: "; the first one keeps its command line.
pub(crate) const MASTER: MasterDef = MasterDef {
    dialect: Dialect::Postgresql,
    kind: None,
    is_apart: false,
    of_directory: None,
    programs: &["postgres", "postmaster"],
    titles: &["postgres"],
    is_worker: |_| false,
    is_leaving: |_| false,
    locate: locate::locate,
    built_in_texts: &[],
    prefix: |_, _| None,
    main_in_title: |_| None,
    main_is_of_start: true,
    test_arguments: |main, _, _| ["-C".to_owned(), "max_connections".to_owned(), "-c".to_owned(), format!("config_file={main}")].into(),
    reload_signal: ReloadSignal::Hup,
    executes_itself: false,
    path_options: &["-D"],
    title_words: &[],
};

fn lines(demand: &Demand) -> Vec<ConfigLine> {
    vec![ConfigLine::new(format!("max_connections = {}", demand.in_flight), "size-line-connections")]
}
