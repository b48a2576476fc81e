//! The arguments of `chokepoint watch`.

mod incidents;

use std::path::PathBuf;

use clap::Args;

use super::Look;
pub(super) use incidents::{EXIT as INCIDENTS_EXIT, HELP as INCIDENTS_HELP};
pub(crate) use incidents::{ExportIncident, Incidents, IncidentsVerb, ListIncidents, ShowIncident};

pub(super) const EXIT: &str = "\
Exit status: 0 it was watched, 1 it could not be, 2 usage, 130 stopped by
Ctrl-C, 143 by SIGTERM. Examples: --help";

pub(super) const HELP: &str = "\
It sends no load and changes nothing. It samples the sockets and threads of the servers, and keeps for each second where their requests stood: seconds for an \
hour, ten seconds for a day, minutes for thirty days. When a server begins to serve its clients worse, it diagnoses it while that lasts, and keeps an incident with the \
evidence: `chokepoint incidents`. Fewer requests alone are no incident.

Without a URL it watches every server that listens on this host.

Examples:
  chokepoint watch                            every server, until Ctrl-C
  chokepoint watch http://127.0.0.1/          one server
  chokepoint watch --headless                 only incidents are printed
  chokepoint watch --json http://127.0.0.1/   a JSON line every second
  chokepoint watch --config /etc/chokepoint/watch.toml

docs/watch/README.md says what is kept, what it costs, and what the configuration file takes.

q, Ctrl-C and SIGTERM end it within a second. What was not finished by then is told on stderr; the exit status is the same, and the history is whole.

Exit status: 0 it was watched, 1 it could not be, 2 usage, 130 stopped by Ctrl-C, 143 by SIGTERM.";

#[derive(Debug, Clone, Args)]
pub(crate) struct Watch {
    /// Servers to watch [default: all that listen here]
    ///
    /// The servers to watch: http://HOST[:PORT], https://HOST[:PORT], http+unix:SOCKET, fcgi://HOST[:9000]/SCRIPT. [default: all that listen on this host]
    #[arg(value_name = "URL", help_heading = "Target", display_order = 0)]
    pub(crate) urls: Vec<String>,
    /// Network namespace of the clients: name, PID or path
    ///
    /// Network namespace from which the clients connect: a name below /run/netns, the PID of a process in it, or a path.
    #[arg(long, value_name = "NETNS", help_heading = "Target", display_order = 1)]
    pub(crate) client_netns: Option<String>,
    /// Network namespace of the servers: name, PID or path
    ///
    /// Network namespace in which the servers listen: a name below /run/netns, the PID of a process in it, or a path.
    #[arg(long, value_name = "NETNS", help_heading = "Target", display_order = 2)]
    pub(crate) server_netns: Option<String>,
    /// Read settings from this TOML file
    ///
    /// Read settings from this TOML file. Flags have precedence. SIGHUP reads it again.
    #[arg(long, value_name = "FILE", help_heading = "Recorder")]
    pub(crate) config: Option<PathBuf>,
    /// Print the settings in force as TOML, and end
    #[arg(long, help_heading = "Recorder")]
    pub(crate) print_config: bool,
    /// Directory of what is kept
    ///
    /// Directory of what is kept. [default: where `runs` keeps its file, see docs/runs.md]
    #[arg(long, value_name = "DIR", help_heading = "Recorder")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Serve metrics here [default: 127.0.0.1:9464]
    ///
    /// Serve metrics for Prometheus (/metrics) and a JSON API (/api/v1) at this address of loopback, at a unix socket (unix:PATH), or nowhere (off).
    /// [default: 127.0.0.1:9464]
    #[arg(long, value_name = "ADDRESS", help_heading = "Recorder")]
    pub(crate) listen: Option<String>,
    /// Watch for this long [default: until Ctrl-C]
    ///
    /// Watch for this long: 10s or 2m; a bare number is seconds. [default: until Ctrl-C]
    #[arg(short = 'z', long, value_name = "TIME", help_heading = "Recorder")]
    pub(crate) duration: Option<String>,
    /// Print incidents only
    #[arg(long, help_heading = "Output")]
    pub(crate) headless: bool,
    /// Print a line of JSON each second
    ///
    /// Print a line of JSON for each second (docs/schema/sample-1.json) and for each incident (docs/schema/incident-1.json), and one when nothing is
    /// measured any more, or again (docs/schema/stale-1.json).
    #[arg(long, conflicts_with = "headless", help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}
