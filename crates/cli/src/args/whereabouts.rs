//! The arguments of `chokepoint where`.

use clap::Args;

use super::Look;

pub(super) const EXIT: &str = "\
Exit status: 0 it was shown, 1 the places of requests could not be read,
2 usage, 130 stopped by Ctrl-C. Examples: --help";

pub(super) const HELP: &str = "\
It sends no load: it watches existing traffic, and sends only the request that the server's status page needs (docs/privileges.md). It samples sockets and \
threads about five times a second and shows the mean of the last seconds, updated every second. On a terminal, press ? for the keys that choose what is shown. \
Elsewhere it prints a block of text every second, or with --json a line.

Examples:
  chokepoint where http://127.0.0.1/                    until q or Ctrl-C
  chokepoint where -z 1m --json http://127.0.0.1/       a JSON line every second for a minute
  chokepoint where --window 30s http://127.0.0.1/       for a server with few requests
  chokepoint where --server-netns 4711 http://10.0.0.2:8080/
                                                        a server in the network namespace of process 4711

Exit status: 0 it was shown, 1 the places of requests could not be read, 2 usage, 130 stopped by Ctrl-C.";

#[derive(Debug, Args)]
pub(crate) struct Where {
    /// http://HOST[:PORT]; other kinds: --help
    ///
    /// The server to watch: http://HOST[:PORT], https://HOST[:PORT], http+unix:SOCKET, fcgi://HOST[:9000]/SCRIPT, fcgi+unix:SOCKET:/SCRIPT.
    #[arg(help_heading = "Target", display_order = 0)]
    pub(crate) url: String,
    /// Network namespace of the client: name, PID or path
    ///
    /// Network namespace from which the client connects: a name below /run/netns, the PID of a process in it, or a path.
    #[arg(long, value_name = "NETNS", help_heading = "Target", display_order = 1)]
    pub(crate) client_netns: Option<String>,
    /// Network namespace of the server: name, PID or path
    ///
    /// Network namespace in which the server listens: a name below /run/netns, the PID of a process in it, or a path.
    #[arg(long, value_name = "NETNS", help_heading = "Target", display_order = 2)]
    pub(crate) server_netns: Option<String>,
    /// Show it for this long [default: until q or Ctrl-C]
    ///
    /// Show it for this long: 10s or 2m; a bare number is seconds. [default: until q or Ctrl-C]
    #[arg(short = 'z', long, value_name = "TIME", help_heading = "Display")]
    pub(crate) duration: Option<String>,
    /// Time between updates
    ///
    /// Time between two updates, at least 1s.
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Display")]
    pub(crate) interval: String,
    /// Time that each update covers
    ///
    /// Each update shows the mean of this many past seconds, 2s to 60s. A longer window suits a server with few requests.
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Display")]
    pub(crate) window: String,
    /// Print a line of JSON at each update
    ///
    /// Print a line of JSON at each update (docs/schema/where-1.json), instead of the display.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}
