//! The arguments of `chokepoint where`.

use clap::Args;

use super::Look;

pub(super) const EXIT: &str = "\
Exit status: 0 it was shown, 1 it could not be told where requests stand,
2 usage, 130 stopped by Ctrl-C. Examples: --help";

pub(super) const HELP: &str = "\
Nothing is sent to the server but what its status page takes (docs/privileges.md): the traffic that is there is watched. Sockets and threads are \
sampled about five times a second; what is shown is the mean of the last few seconds, anew every second. On a terminal keys choose what is shown (?); \
elsewhere a block of text is printed every second, or with --json a line.

Examples:
  chokepoint where http://127.0.0.1/                    until q or Ctrl-C
  chokepoint where -z 1m --json http://127.0.0.1/       a JSON line every second for a minute
  chokepoint where --window 30s http://127.0.0.1/       where few requests come
  chokepoint where --server-netns 4711 http://10.0.0.2:8080/
                                                        a server in the network namespace of process 4711

Exit status: 0 it was shown, 1 it could not be told where requests stand, 2 usage, 130 stopped by Ctrl-C.";

#[derive(Debug, Args)]
pub(crate) struct Where {
    /// http://HOST[:PORT]; other kinds: --help
    ///
    /// Whose requests: http://HOST[:PORT], https://HOST[:PORT], http+unix:SOCKET, fcgi://HOST[:9000]/SCRIPT, fcgi+unix:SOCKET:/SCRIPT.
    pub(crate) url: String,
    /// Show it for this long [default: until q or Ctrl-C]
    #[arg(short = 'z', long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Time between accounts
    ///
    /// Time from one account to the next, at least 1s.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: String,
    /// Time that an account covers
    ///
    /// Each account is of the last so many seconds, 2s to 60s.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) window: String,
    /// Network namespace of the client: name, PID or path
    ///
    /// Network namespace from which the client connects: a name, a PID or a path.
    #[arg(long, value_name = "NETNS")]
    pub(crate) client_netns: Option<String>,
    /// Network namespace of the server: name, PID or path
    ///
    /// Network namespace in which the server listens: a name, a PID or a path.
    #[arg(long, value_name = "NETNS")]
    pub(crate) server_netns: Option<String>,
    /// Print a line of JSON each time
    ///
    /// Print a line of JSON each time (docs/schema/where-1.json).
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}
