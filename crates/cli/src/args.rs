//! The command line: it only parses; what the words mean is resolved in `settings`.

mod deferred;
mod whereabouts;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use deferred::Deferred;
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
    /// Find what holds a server back; with --fix remove it and prove that it is removed
    #[command(after_help = DIAGNOSE_HELP)]
    Diagnose(Deferred<Diagnose>),
    /// Show where requests stand now, live in the terminal like top: beside the traffic that is there, without load
    #[command(after_help = whereabouts::HELP)]
    Where(Deferred<Where>),
    /// Take back every change that was applied
    #[command(after_help = UNDO_HELP)]
    Undo(Deferred<Undo>),
    /// Say what packet captures show of TCP: who set connections up, what they carried, what was lost, who closed them, whether they are kept
    #[command(after_help = STREAMS_HELP)]
    Streams(Deferred<Streams>),
    /// Connect and print all that the kernel knows of the connection (TCP_INFO), with units and meanings, and its initial congestion window; or
    /// sum up the connections that the host has
    #[command(after_help = TCP_HELP)]
    Tcp(Deferred<Tcp>),
    /// Break real servers in network namespaces of their own, to try, test and learn
    Lab(Deferred<Lab>),
    /// Load a server and tell what came of it: rates, times, outcomes; nothing is diagnosed
    #[command(after_help = BENCH_HELP)]
    Bench(Deferred<Bench>),
    /// Sample what the CPUs run: layers, bounds, call trees and flame graphs
    #[command(after_help = PROFILE_HELP)]
    Profile(Deferred<Profile>),
    /// Explain a station or a finding: what it limits, how it shows, how sure, remedies
    Explain(Deferred<Explain>),
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
  chokepoint undo --forget 3    leave the settings of number 3 as they are, for good";

const DIAGNOSE_HELP: &str = "\
Without -c, -q, -n or --load nothing is sent: the traffic that is there is watched.

Examples:
  chokepoint diagnose http://127.0.0.1/                 watch for 10 s
  chokepoint diagnose -c 200 http://127.0.0.1/          200 connections for 10 s
  chokepoint diagnose -c 200 --fix http://127.0.0.1/    and remove what holds it back
  chokepoint diagnose -c 200 --bisect http://127.0.0.1/ and load each tier by itself
  chokepoint diagnose -c 9 fcgi://127.0.0.1:9000/srv/app/index.php
                                                        php-fpm alone; SCRIPT is the file on its host
  chokepoint diagnose -c 9 fcgi+unix:/run/php/php8.2-fpm.sock:/srv/app/index.php?q=1
                                                        the same over a unix socket; @NAME is an abstract one

Exit status: 0 a verdict was reached, 1 none could be, 2 usage.";

const BENCH_HELP: &str = "\
Without -q it is a closed loop: each connection sends its next request when the last is answered. With -q it is an open loop: requests are due \
at that rate whatever the answers, time counts from when each was due, and what could not be sent in time is late and not left out.

A target that no listener on this host answers for, or a method other than GET and HEAD, is loaded only with --yes (a terminal is asked), and then \
under --guard, 'errors>20% || p99>5s' where none is given.

Examples:
  chokepoint bench http://127.0.0.1/                    100 connections for 10 s
  chokepoint bench -q 5000 -z 30s --warm-up 2s http://127.0.0.1/
                                                        5,000 requests a second for 30 s
  chokepoint bench -n 100000 -c 50 http://127.0.0.1/    100,000 requests, however long they take
  chokepoint bench --fail-if 'p99>250ms || errors>0.1%' http://127.0.0.1/
                                                        ends with 99 where one of them holds
  chokepoint bench --stages 10s:100,30s:1000 http://127.0.0.1/
                                                        from none to 100/s in 10 s, then to 1,000/s in 30 s
  chokepoint bench --targets urls.txt --seed 1          URLs drawn at random
  chokepoint bench -c 9 fcgi://127.0.0.1:9000/srv/app/index.php
                                                        php-fpm alone; also http+unix:SOCKET:/PATH, fcgi+unix:SOCKET:/SCRIPT

Exit status: 0 it was measured, 1 nothing answered as expected, 2 usage, 99 a --fail-if condition held.";

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// What to load: http://HOST[:PORT][/PATH], https://HOST[:PORT][/PATH], http+unix:SOCKET[:/PATH], fcgi://HOST[:9000]/SCRIPT[?QUERY], fcgi+unix:SOCKET:/SCRIPT[?QUERY]
    #[arg(required_unless_present = "targets")]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) load: Load,
    /// Change the rate of an open loop in stages, "10s:100,30s:1000": within each it goes evenly from the rate before (at first that of -q, or
    /// none) to the one given, so that this comes to 500 requests in 10 s and 16,500 in the next 30 s. "0s:50" is a jump, "5s:50" behind it a
    /// level. The stages end the load
    #[arg(long, value_name = "LIST", conflicts_with = "duration")]
    pub(crate) stages: Option<String>,
    /// Ask for what this file lists (- is stdin), in turn: a line each, "METHOD URL", a URL, or a path. All of one server; -H and -d go with each
    #[arg(long, value_name = "FILE")]
    pub(crate) targets: Option<PathBuf>,
    /// Draw from the targets at random, the same for the same number, instead of taking them in turn
    #[arg(long, value_name = "N", requires = "targets")]
    pub(crate) seed: Option<u64>,
    /// Load for this long [default: 10s, without an end where -n is given]
    #[arg(short = 'z', long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Load for this long before anything is counted, on the same connections
    #[arg(long, value_name = "TIME")]
    pub(crate) warm_up: Option<String>,
    /// Statuses that count as good answers
    #[arg(long, value_name = "LIST", default_value = "2xx,3xx")]
    pub(crate) expect: String,
    /// A kept connection carries this many requests and is then opened anew
    #[arg(long, value_name = "N", conflicts_with = "disable_keepalive")]
    pub(crate) requests_per_connection: Option<u32>,
    /// Connect from these addresses of this host, taken in turn; each has local ports of its own, about 28,000 by default
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    pub(crate) bind: Vec<std::net::IpAddr>,
    /// https: trust the authorities in this file of certificates (PEM) instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) cacert: Option<PathBuf>,
    /// https: take any certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// https: a full handshake for every connection
    #[arg(long)]
    pub(crate) tls_no_resumption: bool,
    /// Network namespace from which the client connects: a name, a PID or a path
    #[arg(long, value_name = "NETNS")]
    pub(crate) client_netns: Option<String>,
    /// Do not ask before loading a host that is not this one, or by a method that may change something
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
    /// End with status 99 where this holds: p50 to p999 and max, errors, rps, good; "p99>250ms || errors>0.1% || rps<1000"
    #[arg(long, value_name = "EXPR")]
    pub(crate) fail_if: Option<String>,
    /// Print the report as JSON (docs/schema/bench-1.json)
    #[arg(long)]
    pub(crate) json: bool,
    /// Write what happened when into this file: a line every 10 ms, or coarser where that would be over 6,000; - is stdout, as for the files below
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub(crate) csv: Option<PathBuf>,
    /// Write the distribution of the times into this file, as HdrHistogram's plotters read it
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub(crate) hgrm: Option<PathBuf>,
    /// Write the report into this file as Markdown, for a pull request
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write a JUnit report into this file: a test case for each condition of --fail-if, and one for whether anything was answered
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub(crate) junit: Option<PathBuf>,
}
const PROFILE_HELP: &str = "\
Examples:
  chokepoint profile                             all processes, 10 s
  chokepoint profile -z 5 --pid 4711             a process and what it started
  chokepoint profile --html flames.html          and a flame graph that needs no other file
  chokepoint profile --json > before.json        keep it; then after a change
  chokepoint profile --diff before.json --html difference.html
  chokepoint profile --pid 4711 --count libc:malloc --requests 5000    calls a request, with what the probe costs

All processes take CAP_PERFMON (or root); processes of one's own less, see docs/privileges.md.";

#[derive(Debug, Args)]
pub(crate) struct Diagnose {
    /// What to diagnose: http://HOST[:PORT][/PATH], http+unix:SOCKET[:/PATH], or a FastCGI server without the web server before it:
    /// fcgi://HOST[:9000]/SCRIPT[?QUERY], fcgi+unix:SOCKET:/SCRIPT[?QUERY]
    #[arg(required_unless_present = "replay")]
    pub(crate) url: Option<String>,
    /// Apply load: 100 connections
    #[arg(long = "load", help_heading = "Load")]
    pub(crate) loaded: bool,
    #[command(flatten)]
    pub(crate) load: Load,
    /// Watch or load for this long
    #[arg(short = 'z', long, value_name = "TIME", default_value = "10s")]
    pub(crate) duration: String,
    /// Statuses that count as good answers
    #[arg(long, value_name = "LIST", default_value = "2xx,3xx")]
    pub(crate) expect: String,
    /// The objective: the p99 of response time within which answers are good enough
    #[arg(long, value_name = "P99", value_parser = non_empty)]
    pub(crate) slo: Option<String>,
    /// Network namespace from which the client connects: a name, a PID or a path
    #[arg(long, value_name = "NETNS")]
    pub(crate) client_netns: Option<String>,
    /// Network namespace in which the server listens: a name, a PID or a path
    #[arg(long, value_name = "NETNS")]
    pub(crate) server_netns: Option<String>,
    /// Apply the remedies one by one, measure after each, and keep what helps (undo: chokepoint undo)
    #[arg(long)]
    pub(crate) fix: bool,
    /// Load each tier by itself as well: what nginx answers without the servers behind it, and these without nginx; each by as many
    /// connections (with -q by up to 100 that wait for their answers)
    #[arg(long, conflicts_with_all = ["fix", "replay"])]
    pub(crate) bisect: bool,
    /// Do not ask before changing a setting, loading a host that is not this one, or loading by a method that may change something
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
    /// With --fix: also put configuration edits in force that the server has not read yet. A reload for one change does that with every file edited
    /// since; without this flag --fix asks, and with --yes it refuses
    #[arg(long, requires = "fix")]
    pub(crate) reload_unseen: bool,
    /// Take no profile in the last third of the time
    #[arg(long, conflicts_with = "replay")]
    pub(crate) no_profile: bool,
    /// Capture packets where the server is, meanwhile, or read them from FILE (pcap, pcapng), and tell beside the verdict what they show, by stream
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, conflicts_with_all = ["replay", "bisect"])]
    pub(crate) capture: Option<Option<PathBuf>>,
    /// Write what was read into this file, for `--replay`
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// What a recording and the report hide: public addresses, secrets and what is not read; private addresses and names too; or nothing
    ///
    /// At the levels public and all a recording keeps of configurations only the names of directives and the values that the model reads, of command lines
    /// the program's name and the options that say where its configuration is, of logs counts and the lines that a report quotes. Values of queries, user
    /// information, headers and passwords are hidden. Reports hide user information and values of queries unless the level is none. What was kept and what was hidden is told when the file is written. docs/recording.md lists it.
    #[arg(long, value_name = "LEVEL", default_value = "public", conflicts_with = "replay")]
    pub(crate) redact: RedactLevel,
    /// Diagnose a recording instead of this host; needs no privilege
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "fix", "connections", "rate", "requests", "loaded"])]
    pub(crate) replay: Option<PathBuf>,
    /// Print the long report: every station, all evidence, the steps of each remedy, and every reading that is missing
    #[arg(short = 'v', long, conflicts_with = "json")]
    pub(crate) verbose: bool,
    /// Print the report as JSON (docs/schema/diagnosis-1.json)
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the report into this file as well, as one HTML page that needs no other file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the report into this file as well, in Markdown for a ticket or a pull request
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

/// How much of the addresses a recording hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RedactLevel {
    /// Public addresses, secrets, and whatever the model does not read
    Public,
    /// That, private addresses and host names
    All,
    /// Nothing
    None,
}

/// The load to apply.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct Load {
    /// Load by this many connections, each sending its next request when the last is answered
    #[arg(short = 'c', long, value_name = "N")]
    pub(crate) connections: Option<u32>,
    /// Load by this many requests a second in all, whatever the answers (open loop)
    #[arg(short = 'q', long, value_name = "N")]
    pub(crate) rate: Option<f64>,
    /// Load by this many requests in all
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) requests: Option<u64>,
    /// Give up a request after this time [default: 2s, bench: 10s]
    #[arg(short = 't', long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// Method
    #[arg(short = 'm', long, value_name = "METHOD", default_value = "GET")]
    pub(crate) method: String,
    /// A header, "Name: value"; may be given several times
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// Body of each request
    #[arg(short = 'd', long, value_name = "TEXT", conflicts_with = "body_file")]
    pub(crate) body: Option<String>,
    /// File with the body of each request
    #[arg(short = 'D', long, value_name = "FILE")]
    pub(crate) body_file: Option<PathBuf>,
    /// Content-Type of the body
    #[arg(short = 'T', long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// What the answer may be: the Accept header
    #[arg(short = 'A', long, value_name = "TYPE")]
    pub(crate) accept: Option<String>,
    /// A connection per request
    #[arg(long)]
    pub(crate) disable_keepalive: bool,
    /// A FastCGI parameter, "NAME=VALUE", beside those made of the URL or in their place; may be given several times
    #[arg(long = "fcgi-param", value_name = "PARAM")]
    pub(crate) fcgi_params: Vec<String>,
    /// Threads of the generator
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: u32,
    /// Cores for the generator's threads, "0" or "0,2-3"
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// Stop the load when this holds, "errors>20% || p99>5s"
    #[arg(long, value_name = "EXPR")]
    pub(crate) guard: Option<String>,
}

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
    /// Captures: pcap or pcapng, plain, .gz or .zst; - is stdin. With -i the words of a filter
    #[arg(required_unless_present = "interface", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Capture on this interface instead, "any" for all of a namespace; needs CAP_NET_RAW
    #[arg(short, long, value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// In this network namespace: a name below /run/netns, a path, or a process id
    #[arg(long, value_name = "NETNS", requires = "interface")]
    pub(crate) netns: Option<String>,
    /// Write the packets to a pcapng file as well
    #[arg(long, value_name = "FILE", requires = "interface")]
    pub(crate) write: Option<PathBuf>,
    /// Capture for this long [default: until Ctrl-C]
    #[arg(short = 'z', long, value_name = "TIME", requires = "interface")]
    pub(crate) duration: Option<String>,
    /// Keep so many bytes of each packet
    #[arg(long, value_name = "BYTES", requires = "interface", default_value_t = 262_144, value_parser = clap::value_parser!(u32).range(64..=262_144))]
    pub(crate) snap: u32,
    /// Print the report as JSON (docs/schema/streams-1.json)
    #[arg(long, conflicts_with = "each")]
    pub(crate) json: bool,
    /// Print each stream as a line of JSON when it ends, instead of the report
    #[arg(long)]
    pub(crate) each: bool,
    /// Write pictures as one HTML page: a stream's bytes in flight and its sequence numbers over time, and the connections of its edge
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// The stream to draw, by its number (tcp.stream) [default: the one that lost most time]
    #[arg(long, value_name = "N", requires = "html")]
    pub(crate) stream: Option<u64>,
    /// Draw the sender's congestion window beside its bytes in flight, out of what tcp --watch --json printed of the same connection
    #[arg(long, value_name = "FILE", requires = "html")]
    pub(crate) cwnd: Option<PathBuf>,
    /// Streams that may be open at once (about 2.7 KB each); of more the longest silent are summarised early
    #[arg(long, value_name = "N", default_value_t = 60_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) open_max: u32,
}

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
    /// Read the connections that the host has instead: round trips, windows, retransmissions, idle times, who holds them back, the worst first
    #[arg(long, conflicts_with_all = ["target", "get"])]
    pub(crate) live: bool,
    /// Of those, the ones from client A to server B, and whether connections are kept there (see -z)
    #[arg(long, value_name = "A->B", requires = "live")]
    pub(crate) edge: Option<String>,
    /// Watch for so long, at most 50s, which connections begin and end, and tell whether they are kept and why not; 5s with --edge, 0s for not at all
    #[arg(short = 'z', long, value_name = "TIME", requires = "live")]
    pub(crate) duration: Option<String>,
    /// Ask for this path by HTTP/1.1 and look again when the answer has come
    #[arg(long, value_name = "PATH")]
    pub(crate) get: Option<String>,
    /// Follow the transfer until the peer closes or is silent for --timeout: at the peer's end where that is on this host, else at ours
    #[arg(long, conflicts_with = "live")]
    pub(crate) watch: bool,
    /// Write what was followed as one HTML page with drawings
    #[arg(long, value_name = "FILE", requires = "watch")]
    pub(crate) html: Option<PathBuf>,
    /// Give up connecting or waiting after this time
    #[arg(short = 't', long, value_name = "TIME", default_value = "5s")]
    pub(crate) timeout: String,
    /// Print it as JSON (docs/schema/tcp-1.json, of --watch tcp-watch-1.json, of --live tcp-live-1.json)
    #[arg(long)]
    pub(crate) json: bool,
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
pub(crate) struct Lab {
    #[command(subcommand)]
    pub(crate) verb: LabVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabVerb {
    /// List the scenarios, and the labs that are up
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Build a scenario and leave it up
    Up {
        /// A scenario's name or a file
        scenario: String,
    },
    /// Take down one lab or all of them
    Down {
        /// A scenario's name; all where none is given
        scenario: Option<String>,
    },
    /// Build a scenario, diagnose it, fix it, undo the fix, take it down, and check what it expects
    Run(Box<LabRun>),
}

#[derive(Debug, Args)]
pub(crate) struct LabRun {
    /// A scenario's name or a file
    pub(crate) scenario: String,
    /// Run it this many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,
    /// Only watch while a load runs that is not ours (no --load, no fix)
    #[arg(long)]
    pub(crate) passive: bool,
    /// Only diagnose: change nothing, whatever the scenario expects of a fix
    #[arg(long)]
    pub(crate) no_fix: bool,
    /// Seconds of each load instead of the scenario's
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(3..=3600))]
    pub(crate) duration: Option<u16>,
    /// Write a recording of each run into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Print a JSON line a run instead of reports
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Profile {
    /// Sample for this long; Ctrl-C ends it earlier and shows what there is
    #[arg(short = 'z', long, visible_alias = "seconds", value_name = "TIME", default_value = "10s")]
    pub(crate) duration: String,
    /// Only this process and what it starts; may be given several times
    #[arg(short = 'p', long, value_name = "PID", conflicts_with = "cgroup")]
    pub(crate) pid: Vec<u32>,
    /// Only the processes in this cgroup and below it
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<String>,
    /// Only these cores, "0" or "0,2-3"
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// Count this instead of sampling, for --count-for: CATEGORY:TRACEPOINT, LIBRARY:FUNCTION, FUNCTION of the kernel, or a counter such as cycles or
    /// page-faults; may be given several times. Without a word: malloc, tcp_recvmsg, sendfile, connect, accept
    #[arg(long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["replay", "diff", "cpus", "record", "html", "svg", "folded", "pprof", "firefox", "duration"], help_heading = "Counting")]
    pub(crate) count: Vec<String>,
    /// Count what needs no probe, too: cycles, instructions, misses of the TLB and caches, page faults
    #[arg(long, conflicts_with_all = ["replay", "diff", "cpus", "record", "html", "svg", "folded", "pprof", "firefox", "duration"], help_heading = "Counting")]
    pub(crate) counters: bool,
    /// Count for this long: a probe slows what it counts down
    #[arg(long, value_name = "TIME", default_value = "3s", help_heading = "Counting")]
    pub(crate) count_for: String,
    /// Requests a second meanwhile, for calls a request; or the URL of a page of nginx's stub_status, read before and after
    #[arg(long, value_name = "RATE|URL", help_heading = "Counting")]
    pub(crate) requests: Option<String>,
    /// Show what threads wait for instead of what runs: stacks where they stop running, weighted by how long they do
    #[arg(long, conflicts_with_all = ["cpus", "frequency", "diff", "count", "counters", "drops"])]
    pub(crate) off_cpu: bool,
    /// Count the packets that the kernel drops instead of sampling: its reasons, where, and while what ran
    #[arg(long, conflicts_with_all = ["replay", "diff", "pid", "cgroup", "cpus", "record", "html", "svg", "folded", "pprof", "firefox", "count", "counters"], help_heading = "Counting")]
    pub(crate) drops: bool,
    /// Samples a second on each core
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 99, value_parser = clap::value_parser!(u32).range(1..=i64::from(chokepoint_profile::FREQUENCY_HZ_MAX)))]
    pub(crate) frequency: u32,
    /// Show a stored profile (--json) or folded stacks instead of sampling
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pid", "cgroup", "cpus", "frequency", "duration"])]
    pub(crate) replay: Option<PathBuf>,
    /// Branches of the call tree from this share on, per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub(crate) tree: f64,
    /// Print the profile as JSON, with the summary (docs/schema/profile-1.json)
    #[arg(long)]
    pub(crate) json: bool,
    /// Hold it against an earlier profile (--json or folded stacks)
    #[arg(long, value_name = "FILE")]
    pub(crate) diff: Option<PathBuf>,
    /// Write the profile into this file, as --json prints it
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Write a flame graph into this file: a page to search, zoom and narrow down; with --diff of the difference
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write a flame graph into this file, as a picture
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write folded stacks into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,
    /// Write the profile into this file for pprof
    #[arg(long, value_name = "FILE")]
    pub(crate) pprof: Option<PathBuf>,
    /// Write the profile into this file for the Firefox Profiler
    #[arg(long, value_name = "FILE")]
    pub(crate) firefox: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A station's or finding's id; all ids are listed where none is given
    pub(crate) id: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn non_empty(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.to_owned()) }
}
