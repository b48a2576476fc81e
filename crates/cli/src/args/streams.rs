//! The arguments of `chokepoint streams`.

use std::path::PathBuf;

use clap::Args;

use super::{Keep, Look};

pub(super) const EXIT: &str = "\
Exit status: 0 all was read, 1 a file could not be read to its end, 2 usage.
Examples: --help";

pub(super) const HELP: &str = "\
Several files are read as parts of one capture, in the given order. Streams have the numbers that Wireshark gives them (tcp.stream).

With -i the words after the flags are a filter: tcp, ip, ip6, and port N, host ADDRESS or net ADDRESS/BITS, each with src or dst in front if wanted, \
combined by and, or, not and brackets. Only TCP is captured.

Examples:
  chokepoint streams proxy.pcapng             edges, keepalive, and the streams that lost most time
  chokepoint streams --each proxy.pcap.zst    one JSON line for each stream as it ends
  chokepoint streams --html slow.html proxy.pcapng
                                              also draw the stream that lost most time
  chokepoint streams -i eth0 -z 10s --write ten.pcapng tcp port 80 and not host 10.0.0.9
                                              capture for 10 s, analyse, and store the packets
  tcpdump -i any -w - tcp | chokepoint streams -

Exit status: 0 all was read, 1 a file could not be read to its end, 2 usage.";

#[derive(Debug, Args)]
pub(crate) struct Streams {
    /// Captures (pcap or pcapng); with -i, a filter
    ///
    /// Captures to read: pcap or pcapng, plain, .gz or .zst; - is stdin. With -i, the words of a capture filter.
    #[arg(required_unless_present = "interface", value_name = "FILE", help_heading = "Target")]
    pub(crate) files: Vec<PathBuf>,
    /// Capture on this interface, or on "any"
    ///
    /// Capture packets on this interface instead of reading files. "any" captures on all interfaces of the network namespace. Needs CAP_NET_RAW.
    #[arg(short, long, value_name = "INTERFACE", help_heading = "Capture")]
    pub(crate) interface: Option<String>,
    /// In this network namespace: name, PID or path
    ///
    /// Capture in this network namespace: a name below /run/netns, the PID of a process in it, or a path.
    #[arg(long, value_name = "NETNS", requires = "interface", help_heading = "Capture")]
    pub(crate) netns: Option<String>,
    /// Capture for this long [default: until Ctrl-C]
    ///
    /// Capture for this long: 10s, 500ms or 2m; a bare number is seconds. [default: until Ctrl-C]
    #[arg(short = 'z', long, value_name = "TIME", requires = "interface", help_heading = "Capture")]
    pub(crate) duration: Option<String>,
    /// Also write the packets to a pcapng file
    #[arg(long, value_name = "FILE", requires = "interface", help_heading = "Capture")]
    pub(crate) write: Option<PathBuf>,
    /// Bytes to keep of each packet
    ///
    /// Keep at most this many bytes of each packet. Fewer bytes use less space, but headers beyond them are not analysed.
    #[arg(long, value_name = "BYTES", requires = "interface", default_value_t = 262_144, value_parser = clap::value_parser!(u32).range(64..=262_144), help_heading = "Capture")]
    pub(crate) snap: u32,
    /// Open streams to keep in memory
    ///
    /// Keep at most this many open streams in memory (about 2.7 KB each). Beyond that, the streams that were silent for longest are summarised before
    /// they end.
    #[arg(long, value_name = "N", default_value_t = 60_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000), help_heading = "Capture")]
    pub(crate) open_max: u32,
    /// Print the report as JSON
    ///
    /// Print the report as JSON (docs/schema/streams-1.json), instead of text.
    #[arg(long, conflicts_with = "each", help_heading = "Output")]
    pub(crate) json: bool,
    /// Print a line of JSON for each stream
    ///
    /// Print a line of JSON for each stream when it ends, instead of the report.
    #[arg(long, help_heading = "Output")]
    pub(crate) each: bool,
    /// Write charts as one HTML page
    ///
    /// Write charts into this file, as one HTML page: what the capture carried over time, bytes in flight and sequence numbers of one stream, and the connections of edges.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
    /// --html: the stream to draw, by number
    ///
    /// With --html: draw this stream, by its number (tcp.stream). [default: the one that lost most time]
    #[arg(long, value_name = "N", requires = "html", help_heading = "Output")]
    pub(crate) stream: Option<u64>,
    /// --html: congestion window, from tcp --watch
    ///
    /// With --html: also draw the sender's congestion window, from the output of `chokepoint tcp --watch --json` for the same connection.
    #[arg(long, value_name = "FILE", requires = "html", help_heading = "Output")]
    pub(crate) cwnd: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keep: Keep,
    #[command(flatten)]
    pub(crate) look: Look,
}
