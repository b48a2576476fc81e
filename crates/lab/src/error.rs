//! Why a lab could not be built or taken down.

use std::path::PathBuf;

use crate::down::report::DownReport;
use crate::preflight::Missing;

/// Why a lab could not be built or taken down.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The machine lacks something that the scenario needs.
    #[error("this machine cannot run the scenario:\n  {}", missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  "))]
    Preflight {
        /// Everything that is missing; at least one.
        missing: Vec<Missing>,
    },
    /// A lab of that name is up or was left behind.
    #[error("lab \"{name}\" is already up ({how}): `chokepoint lab down {name}` takes it down")]
    Exists {
        /// Its name.
        name: String,
        /// Up, being built, or left behind.
        how: String,
    },
    /// Another lab has set the same setting of the machine.
    #[error(
        "lab \"{other}\" has set {key} for the whole machine, and only one lab can: take it down first (`chokepoint lab down {other}`)"
    )]
    SysctlTaken {
        /// The other lab.
        other: String,
        /// The setting.
        key: String,
    },
    /// A namespace of that name exists.
    #[error("a network namespace \"{netns}\" exists{}; `ip netns del {netns}` removes it if it is not needed", by.as_ref().map_or_else(|| " and this lab did not make it".to_owned(), |lab| format!(" and belongs to lab \"{lab}\"")))]
    NamespaceTaken {
        /// The namespace.
        netns: String,
        /// Its lab, if known.
        by: Option<String>,
    },
    /// The machine itself needs what the scenario would take.
    #[error("{key} = {wanted} would harm this machine: {why}")]
    HostInUse {
        /// The setting.
        key: String,
        /// The scenario's value.
        wanted: String,
        /// What the machine uses now.
        why: String,
    },
    /// A setting could not be read or written, or has another value after the write.
    #[error("{key} {place}: {why}")]
    Sysctl {
        /// The setting.
        key: String,
        /// Where: "on this machine" or "in host X".
        place: String,
        /// What went wrong.
        why: String,
    },
    /// A program that builds the network failed.
    #[error("{command}: {output}")]
    Tool {
        /// Its command line.
        command: String,
        /// Its output, or how it ended.
        output: String,
    },
    /// A file operation of the lab failed.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A namespace could not be entered.
    #[error("cannot enter the namespace of host \"{host}\": {source} (CAP_SYS_ADMIN is needed)")]
    Netns {
        /// The host.
        host: String,
        /// Why.
        source: std::io::Error,
    },
    /// A server did not start.
    #[error("server \"{server}\" {why}{log}")]
    Server {
        /// The server.
        server: String,
        /// What happened to it.
        why: String,
        /// Its last lines of output, each on its own line; or nothing.
        log: String,
    },
    /// A placeholder or value that proved wrong during the build.
    #[error("{0}")]
    Scenario(String),
    /// The state file cannot be read, so nothing can be cleaned up by it.
    #[error("{}: {why}; remove the lab by hand: `ip netns list` shows its namespaces (cp-...)", path.display())]
    State {
        /// The state file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No lab of that name is up.
    #[error("no lab \"{0}\" is up")]
    NotUp(String),
    /// Another process is building it or taking it down.
    #[error("another process is building lab \"{0}\" or taking it down")]
    Busy(String),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// Building failed, and what had been built could not be removed.
    #[error("{cause}\nand it could not be cleaned up: {report}")]
    Unclean {
        /// Why building failed.
        cause: Box<LabError>,
        /// What is left.
        report: Box<DownReport>,
    },
}

impl LabError {
    /// For `map_err` on file operations.
    pub(crate) fn io(what: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> LabError {
        let path = path.to_owned();
        move |source| LabError::Io { what, path, source }
    }
}
