//! The arguments of `chokepoint tcp`.

use std::path::PathBuf;

use clap::Args;

use super::Look;

pub(super) const EXIT: &str = "\
Exit status: 0 it was read, 1 it could not be, 2 usage.
Examples: --help";

pub(super) const HELP: &str = "\
Examples:
  chokepoint tcp 10.0.0.2:80                  open a connection and print its state
  chokepoint tcp 10.0.0.2:80 --get /          print it again after the response to GET /
  chokepoint tcp 10.0.0.2:80 --get /big --watch --html big.html
                                              follow one transfer: windows, round trips, rates, and what limits it
  chokepoint tcp --live                       all connections of this host, in all network namespaces, a line an edge, each second
  chokepoint tcp --live --edge '*->:80'       only those to port 80, and whether they are kept

Exit status: 0 it was read, 1 it could not be, 2 usage.";

#[derive(Debug, Args)]
pub(crate) struct Tcp {
    /// Server to connect to; [ADDRESS]:PORT for IPv6
    #[arg(value_name = "HOST:PORT", required_unless_present = "live", help_heading = "Target")]
    pub(crate) target: Option<String>,
    /// Send GET PATH and print the state again
    ///
    /// Send GET PATH by HTTP/1.1, and print the state of the connection again after the response.
    #[arg(long, value_name = "PATH", help_heading = "One connection")]
    pub(crate) get: Option<String>,
    /// Follow the transfer to its end
    ///
    /// Follow the transfer until the peer closes, or sends nothing for --timeout. If the peer's socket is on this host, it is measured there, because
    /// the windows are the sender's; otherwise at this end.
    #[arg(long, conflicts_with = "live", help_heading = "One connection")]
    pub(crate) watch: bool,
    /// Give up connecting or waiting after this
    ///
    /// Give up connecting, or waiting for data, after this time: 5s, 500ms; a bare number is seconds.
    #[arg(short = 't', long, value_name = "TIME", default_value = "5s", help_heading = "One connection")]
    pub(crate) timeout: String,
    /// Sum up the connections that this host has
    ///
    /// Sum up the connections that this host has, instead of opening one: round-trip times, retransmissions and what limits each sender, one line for each edge. The
    /// worst come first. On a terminal they are read again each second, until you press q; --edge tells more of some of them.
    #[arg(long, conflicts_with_all = ["target", "get"], help_heading = "All connections")]
    pub(crate) live: bool,
    /// --live: only those from client A to server B
    ///
    /// With --live: only connections from client A to server B. Each side is ADDRESS, ADDRESS:PORT, :PORT or *. Also reports whether they are kept (see -z).
    #[arg(long, value_name = "A->B", requires = "live", help_heading = "All connections")]
    pub(crate) edge: Option<String>,
    /// --live: watch this long for keepalive, up to 50s
    ///
    /// With --live: watch for this long, at most 50s, which connections open and close, and report whether they are kept and why not.
    /// [default: 5s with --edge, otherwise 0s, which does not watch]
    #[arg(short = 'z', long, value_name = "TIME", requires = "live", help_heading = "All connections")]
    pub(crate) duration: Option<String>,
    /// Print the result as JSON
    ///
    /// Print the result as JSON (docs/schema/tcp-1.json; with --watch tcp-watch-1.json; with --live tcp-live-1.json), instead of text.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// --watch: write the charts as one HTML page
    ///
    /// With --watch: also write the charts into this file, as one HTML page.
    #[arg(long, value_name = "FILE", requires = "watch", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) look: Look,
}
