//! The arguments of `chokepoint capacity`.

use clap::Args;

use super::Look;

/// What `-h` says at the end.
pub(super) const EXIT: &str = "\
Exit status: 0 it was told, 1 nothing could be told, 2 usage,
130 stopped by Ctrl-C. Examples: --help";

pub(super) const HELP: &str = "\
It sends no load. It watches the traffic that is there, and says for each station of the request's path how much of it is used, at which rate of requests it is full, \
and which one fills first. A station with a ceiling (cores, workers, link) has that; of a table or a queue it assumes that each request takes as much of it as \
now. What could not be read, or was not used, is called unknown and never roomy.

Only the time that was watched counts: run it at the peak of the day.

Examples:
  chokepoint capacity http://127.0.0.1/                 watch for 10 seconds
  chokepoint capacity -z 1m --growth 5%/week http://127.0.0.1/
                                                        and when the first station is full

Exit status: 0 it was told, 1 nothing could be told, 2 usage, 130 stopped by Ctrl-C.";

#[derive(Debug, Args)]
pub(crate) struct Capacity {
    /// http://HOST[:PORT]; other kinds: --help
    ///
    /// The server to watch: http://HOST[:PORT], https://HOST[:PORT], http+unix:SOCKET, fcgi://HOST[:9000]/SCRIPT, fcgi+unix:SOCKET:/SCRIPT.
    #[arg(default_value = "http://127.0.0.1/", help_heading = "Target", display_order = 0)]
    pub(crate) url: String,
    /// Watch for this long
    ///
    /// Watch for this long: 10s or 2m; a bare number is seconds.
    #[arg(short = 'z', long, value_name = "TIME", default_value = "10s", help_heading = "Watch")]
    pub(crate) duration: String,
    /// Growth of the traffic, "5%/week"
    ///
    /// Growth of the traffic per day, week, month or year, compounded: "5%/week". Says when the first station is full.
    #[arg(long, value_name = "RATE", help_heading = "Watch")]
    pub(crate) growth: Option<String>,
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
    /// Print every station and every note
    ///
    /// Print every station with the sentence behind its figures, and every note.
    #[arg(short = 'v', long, help_heading = "Output", conflicts_with = "json")]
    pub(crate) verbose: bool,
    /// Print the report as JSON
    ///
    /// Print the report as JSON instead of text. docs/json.md describes it.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}
