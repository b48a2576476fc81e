//! The command line: it only parses; what the words mean is resolved in `settings`.

mod bench;
mod connection;
mod deferred;
mod diagnose;
mod lab;
mod load;
mod look;
mod program;
mod spellings;
mod whereabouts;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use bench::Bench;
pub(crate) use connection::Connection;
use deferred::Deferred;
pub(crate) use diagnose::{Diagnose, RedactLevel};
pub(crate) use lab::{Lab, LabRun, LabVerb};
pub(crate) use load::Load;
pub(crate) use look::{ColorWhen, Look};
pub(crate) use program::program;
pub(crate) use spellings::hint;
pub(crate) use whereabouts::Where;

/// Finds the one place on a request's path that holds a server back, proves it, fixes it reversibly and proves the fix.
#[derive(Debug, Parser)]
#[command(name = "chokepoint", version, propagate_version = true, arg_required_else_help = true, max_term_width = 100, after_help = PROGRAM_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Find what holds a server back; with --fix, remove it
    ///
    /// Find what holds a server back. With --fix, remove it and prove that it is removed.
    #[command(after_help = diagnose::EXIT, after_long_help = diagnose::HELP, disable_help_flag = true, disable_version_flag = true)]
    Diagnose(Deferred<Diagnose>),
    /// Take back every applied change
    #[command(after_help = UNDO_HELP)]
    Undo(Deferred<Undo>),
    /// Explain a station or a finding
    ///
    /// Explain a station or a finding: what it limits, how it shows, how sure it is, and its remedies.
    #[command(after_help = EXPLAIN_HELP)]
    Explain(Deferred<Explain>),
    /// Show live where requests stand now; sends no load
    ///
    /// Show where requests stand now, live in the terminal like top. It watches the traffic that is there and sends no load.
    #[command(after_help = whereabouts::EXIT, after_long_help = whereabouts::HELP)]
    Where(Deferred<Where>),
    /// Load a server and report rates, times and outcomes
    ///
    /// Load a server and report rates, times and outcomes. Nothing is diagnosed.
    #[command(after_help = bench::EXIT, after_long_help = bench::HELP, disable_help_flag = true, disable_version_flag = true)]
    Bench(Deferred<Bench>),
    /// Sample what the CPUs run: layers, calls, flame graphs
    ///
    /// Sample what the CPUs run: layers, bounds, call trees and flame graphs.
    #[command(after_help = PROFILE_EXIT, after_long_help = PROFILE_HELP)]
    Profile(Deferred<Profile>),
    /// Show what the kernel knows of TCP connections
    ///
    /// Connect and print all that the kernel knows of the connection (TCP_INFO), with units and meanings, and its initial congestion window; or
    /// sum up the connections that the host has.
    #[command(after_help = TCP_EXIT, after_long_help = TCP_HELP)]
    Tcp(Deferred<Tcp>),
    /// Report what packet captures show of TCP
    ///
    /// Report what packet captures show of TCP: who opened connections, what they carried, what was lost, who closed them, and whether they are kept.
    #[command(after_help = STREAMS_EXIT, after_long_help = STREAMS_HELP)]
    Streams(Deferred<Streams>),
    /// Break real servers in network namespaces, to try and learn
    ///
    /// Break real servers in network namespaces of their own, to try, test and learn.
    #[command(after_help = lab::EXIT)]
    Lab(Deferred<Lab>),
}

const PROGRAM_HELP: &str = "\
Exit status:
  0    done
  1    it could not be done; undo: something is left that was not taken back
  2    the command line makes no sense
  99   a condition of --fail-if held
  129  stopped by SIGHUP: the terminal went away
  130  stopped by SIGINT: Ctrl-C
  131  stopped by SIGQUIT
  143  stopped by SIGTERM

A signal stops the program in order: changes of --fix that were not proven yet are taken back. \
A second one ends it at once; while changes are taken back only the third does, and `chokepoint undo` takes back what is left.";

const UNDO_HELP: &str = "\
What someone else changed since is left alone and stays in the journal: each undo tells it and ends with 1, until the setting holds one of \
the two values again (set it by hand) or you give it up with --forget. In a file that someone else edited, the change alone is taken out.

Only root takes back what root applied; other users are told what that is.

Examples:
  chokepoint undo               take back every change
  chokepoint undo --list        show them, with their numbers
  chokepoint undo --forget 3    leave the settings of number 3 as they are, for good

Exit status: 0 nothing is left to take back, 1 something is, or it could not be done, 2 usage.";

const PROFILE_EXIT: &str = "Exit status: 0 it was sampled, 1 it could not be, 2 usage. Examples: --help";

const PROFILE_HELP: &str = "\
Examples:
  chokepoint profile                             all processes, 10 s
  chokepoint profile -z 5 --pid 4711             a process and what it started
  chokepoint profile --html flames.html          and a flame graph that needs no other file
  chokepoint profile --json > before.json        keep it; then after a change
  chokepoint profile --diff before.json --html difference.html
  chokepoint profile --pid 4711 --count libc:malloc --requests 5000    calls a request, with what the probe costs

All processes take CAP_PERFMON (or root); processes of one's own less, see docs/privileges.md.

Exit status: 0 it was sampled, 1 it could not be, 2 usage.";

const EXPLAIN_HELP: &str = "\
Examples:
  chokepoint explain                          all ids with their titles
  chokepoint explain accept-queue-full        one page

Exit status: 0 the page was printed, 1 there is no such id, 2 usage.";

#[derive(Debug, Args)]
pub(crate) struct Profile {
    /// Sample for this long
    ///
    /// Sample for this long; Ctrl-C ends it earlier and shows what there is.
    #[arg(short = 'z', long, visible_alias = "seconds", value_name = "TIME", default_value = "10s")]
    pub(crate) duration: String,
    /// Only this process and its children; repeatable
    ///
    /// Only this process and what it starts; may be given several times.
    #[arg(short = 'p', long, value_name = "PID", conflicts_with = "cgroup")]
    pub(crate) pid: Vec<u32>,
    /// Only the processes in this cgroup and below it
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<String>,
    /// Only these cores, "0" or "0,2-3"
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// Count calls or events instead of sampling
    ///
    /// Count this instead of sampling, for --count-for: CATEGORY:TRACEPOINT, LIBRARY:FUNCTION, FUNCTION of the kernel, or a counter such as cycles or
    /// page-faults; may be given several times. Without a word: malloc, tcp_recvmsg, sendfile, connect, accept.
    #[arg(long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["replay", "diff", "cpus", "record", "html", "svg", "folded", "pprof", "firefox", "duration"], help_heading = "Counting")]
    pub(crate) count: Vec<String>,
    /// Count cycles, cache misses and page faults
    ///
    /// Count what needs no probe, too: cycles, instructions, misses of the TLB and caches, page faults.
    #[arg(long, conflicts_with_all = ["replay", "diff", "cpus", "record", "html", "svg", "folded", "pprof", "firefox", "duration"], help_heading = "Counting")]
    pub(crate) counters: bool,
    /// Count for this long
    ///
    /// Count for this long: a probe slows what it counts down.
    #[arg(long, value_name = "TIME", default_value = "3s", help_heading = "Counting")]
    pub(crate) count_for: String,
    /// Requests a second, or the URL of stub_status
    ///
    /// Requests a second meanwhile, for calls a request; or the URL of a page of nginx's stub_status, read before and after.
    #[arg(long, value_name = "RATE|URL", help_heading = "Counting")]
    pub(crate) requests: Option<String>,
    /// Show what threads wait for, not what runs
    ///
    /// Show what threads wait for instead of what runs: stacks where they stop running, weighted by how long they do.
    #[arg(long, conflicts_with_all = ["cpus", "frequency", "diff", "count", "counters", "drops"])]
    pub(crate) off_cpu: bool,
    /// Count packets that the kernel drops
    ///
    /// Count the packets that the kernel drops instead of sampling: its reasons, where, and while what ran.
    #[arg(long, conflicts_with_all = ["replay", "diff", "pid", "cgroup", "cpus", "record", "html", "svg", "folded", "pprof", "firefox", "count", "counters"], help_heading = "Counting")]
    pub(crate) drops: bool,
    /// Samples a second on each core
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 99, value_parser = clap::value_parser!(u32).range(1..=i64::from(chokepoint_profile::FREQUENCY_HZ_MAX)))]
    pub(crate) frequency: u32,
    /// Show a stored profile or folded stacks
    ///
    /// Show a stored profile (--json) or folded stacks instead of sampling.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pid", "cgroup", "cpus", "frequency", "duration"])]
    pub(crate) replay: Option<PathBuf>,
    /// Least share in the call tree, per cent
    ///
    /// Branches of the call tree from this share on, per cent.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub(crate) tree: f64,
    /// Print the profile as JSON, with the summary
    ///
    /// Print the profile as JSON, with the summary (docs/schema/profile-1.json).
    #[arg(long)]
    pub(crate) json: bool,
    /// Compare with an earlier profile
    ///
    /// Hold it against an earlier profile (--json or folded stacks).
    #[arg(long, value_name = "FILE")]
    pub(crate) diff: Option<PathBuf>,
    /// Write the profile as JSON
    ///
    /// Write the profile into this file, as --json prints it.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Write a flame graph as an HTML page
    ///
    /// Write a flame graph into this file: a page to search, zoom and narrow down; with --diff of the difference.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write a flame graph as a picture
    ///
    /// Write a flame graph into this file, as a picture.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write folded stacks
    ///
    /// Write folded stacks into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,
    /// Write the profile for pprof
    ///
    /// Write the profile into this file for pprof.
    #[arg(long, value_name = "FILE")]
    pub(crate) pprof: Option<PathBuf>,
    /// Write the profile for the Firefox Profiler
    ///
    /// Write the profile into this file for the Firefox Profiler.
    #[arg(long, value_name = "FILE")]
    pub(crate) firefox: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) look: Look,
}

const STREAMS_EXIT: &str = "\
Exit status: 0 all was read, 1 a file could not be read or not to its end,
2 usage. Examples: --help";

const STREAMS_HELP: &str = "\
Several files are read as the parts of one capture, in the order in which they are given. Streams have the numbers that Wireshark
gives them (tcp.stream).

Examples:
  chokepoint streams proxy.pcapng             edges, verdicts about keepalive, and the streams that lost most time
  chokepoint streams --each proxy.pcap.zst    one JSON line for each stream as it ends
  chokepoint streams --html slow.html proxy.pcapng
                                              and pictures of the stream that lost most time
  chokepoint streams -i eth0 -z 10s --write ten.pcapng tcp port 80 and not host 10.0.0.9
                                              capture; of filters are known: tcp, ip, ip6, [src|dst] port, host and net, and, or, not, ( )
  tcpdump -i any -w - tcp | chokepoint streams -

Exit status: 0 all was read, 1 a file could not be read or not to its end, 2 usage.";

#[derive(Debug, Args)]
pub(crate) struct Streams {
    /// Captures (pcap, pcapng); with -i a filter
    ///
    /// Captures: pcap or pcapng, plain, .gz or .zst; - is stdin. With -i the words of a filter.
    #[arg(required_unless_present = "interface", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Capture on this interface, or on "any"
    ///
    /// Capture on this interface instead, "any" for all of a namespace; needs CAP_NET_RAW.
    #[arg(short, long, value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// In this network namespace: name, PID or path
    ///
    /// In this network namespace: a name below /run/netns, a path, or a process id.
    #[arg(long, value_name = "NETNS", requires = "interface")]
    pub(crate) netns: Option<String>,
    /// Write the packets to a pcapng file, too
    ///
    /// Write the packets to a pcapng file as well.
    #[arg(long, value_name = "FILE", requires = "interface")]
    pub(crate) write: Option<PathBuf>,
    /// Capture for this long [default: until Ctrl-C]
    #[arg(short = 'z', long, value_name = "TIME", requires = "interface")]
    pub(crate) duration: Option<String>,
    /// Keep so many bytes of each packet
    #[arg(long, value_name = "BYTES", requires = "interface", default_value_t = 262_144, value_parser = clap::value_parser!(u32).range(64..=262_144))]
    pub(crate) snap: u32,
    /// Print the report as JSON
    ///
    /// Print the report as JSON (docs/schema/streams-1.json).
    #[arg(long, conflicts_with = "each")]
    pub(crate) json: bool,
    /// Print each stream as a line of JSON
    ///
    /// Print each stream as a line of JSON when it ends, instead of the report.
    #[arg(long)]
    pub(crate) each: bool,
    /// Write pictures as one HTML page
    ///
    /// Write pictures as one HTML page: a stream's bytes in flight and its sequence numbers over time, and the connections of its edge.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Number of the stream to draw
    ///
    /// The stream to draw, by its number (tcp.stream) [default: the one that lost most time].
    #[arg(long, value_name = "N", requires = "html")]
    pub(crate) stream: Option<u64>,
    /// Draw the congestion window of tcp --watch as well
    ///
    /// Draw the sender's congestion window beside its bytes in flight, out of what tcp --watch --json printed of the same connection.
    #[arg(long, value_name = "FILE", requires = "html")]
    pub(crate) cwnd: Option<PathBuf>,
    /// Streams that may be open at once
    ///
    /// Streams that may be open at once (about 2.7 KB each); of more the longest silent are summarised early.
    #[arg(long, value_name = "N", default_value_t = 60_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) open_max: u32,
    #[command(flatten)]
    pub(crate) look: Look,
}

const TCP_EXIT: &str = "Exit status: 0 it could be read, 1 it could not, 2 usage. Examples: --help";

const TCP_HELP: &str = "\
Examples:
  chokepoint tcp 10.0.0.2:80 --get /          one connection, before and after an answer
  chokepoint tcp 10.0.0.2:80 --get /big --watch --html big.html
                                              follow one transfer: windows, round trips, rates, who limits
  chokepoint tcp --live                       the connections that this host has, in all network namespaces, by edge
  chokepoint tcp --live --edge '*->:80'       those to port 80; A->B takes ADDRESS, ADDRESS:PORT, :PORT or * on each side

Exit status: 0 it could be read, 1 it could not, 2 usage.";

#[derive(Debug, Args)]
pub(crate) struct Tcp {
    /// Where to connect to: HOST:PORT, [ADDRESS]:PORT for IPv6
    #[arg(value_name = "HOST:PORT", required_unless_present = "live")]
    pub(crate) target: Option<String>,
    /// Read the connections that the host has
    ///
    /// Read the connections that the host has instead: round trips, windows, retransmissions, idle times, who holds them back, the worst first.
    #[arg(long, conflicts_with_all = ["target", "get"])]
    pub(crate) live: bool,
    /// Of those, the ones from A to B
    ///
    /// Of those, the ones from client A to server B, and whether connections are kept there (see -z).
    #[arg(long, value_name = "A->B", requires = "live")]
    pub(crate) edge: Option<String>,
    /// Watch for so long what begins and ends, up to 50s
    ///
    /// Watch for so long, at most 50s, which connections begin and end, and tell whether they are kept and why not; 5s with --edge, 0s for not at all.
    #[arg(short = 'z', long, value_name = "TIME", requires = "live")]
    pub(crate) duration: Option<String>,
    /// Ask for this path and look again
    ///
    /// Ask for this path by HTTP/1.1 and look again when the answer has come.
    #[arg(long, value_name = "PATH")]
    pub(crate) get: Option<String>,
    /// Follow the transfer to its end
    ///
    /// Follow the transfer until the peer closes or is silent for --timeout: at the peer's end where that is on this host, else at ours.
    #[arg(long, conflicts_with = "live")]
    pub(crate) watch: bool,
    /// Write what was followed as an HTML page
    ///
    /// Write what was followed as one HTML page with drawings.
    #[arg(long, value_name = "FILE", requires = "watch")]
    pub(crate) html: Option<PathBuf>,
    /// Give up connecting or waiting after this time
    #[arg(short = 't', long, value_name = "TIME", default_value = "5s")]
    pub(crate) timeout: String,
    /// Print it as JSON
    ///
    /// Print it as JSON (docs/schema/tcp-1.json, of --watch tcp-watch-1.json, of --live tcp-live-1.json).
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Debug, Args)]
pub(crate) struct Undo {
    /// Print what was done as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Only show what is applied; change nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Leave the settings of this number (see --list) as they are, and take them out of the journal
    #[arg(long, value_name = "N", conflicts_with = "list")]
    pub(crate) forget: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A station's or finding's id; all ids are listed where none is given
    pub(crate) id: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

fn non_empty(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.to_owned()) }
}
