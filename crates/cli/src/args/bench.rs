//! The arguments of `chokepoint bench`.

use std::path::PathBuf;

use clap::Args;

use super::{Connection, Keep, Load, Look};

/// What `-h` says at the end.
pub(super) const EXIT: &str = "\
Exit status: 0 it was measured, 1 no response was as expected, 2 usage,
99 a --fail-if condition held. All flags and examples: --help";

pub(super) const HELP: &str = "\
Without -q the load is a closed loop: each connection sends its next request when it gets the response to the last one. With -q it is an open loop: \
requests are due at that rate, however fast the responses are. The response time counts from when a request was due. A request that could not be sent \
in time is sent late, not skipped.

chokepoint asks before it loads another host, or uses a method other than GET and HEAD; without a terminal that needs --yes. Such a load has a guard \
that stops it: --guard, by default 'errors>20% || p99>5s'.

Examples:
  chokepoint bench http://127.0.0.1/                    100 connections for 10 s
  chokepoint bench -q 5000 -z 30s --warm-up 2s http://127.0.0.1/
                                                        5,000 requests per second for 30 s
  chokepoint bench -n 100000 -c 50 http://127.0.0.1/    100,000 requests, however long they take
  chokepoint bench --fail-if 'p99>250ms || errors>0.1%' http://127.0.0.1/
                                                        exit with 99 if one of them holds
  chokepoint bench --stages 10s:100,30s:1000 http://127.0.0.1/
                                                        from 0 to 100/s in 10 s, then to 1,000/s in 30 s
  chokepoint bench --targets urls.txt --seed 1          URLs of a file, chosen at random
  chokepoint bench -c 9 fcgi://127.0.0.1:9000/srv/app/index.php
                                                        php-fpm alone; also http+unix:SOCKET:/PATH, fcgi+unix:SOCKET:/SCRIPT

Exit status: 0 it was measured, 1 no response was as expected, 2 usage, 99 a --fail-if condition held.";

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// http://HOST[:PORT][/PATH]; other kinds: --help
    ///
    /// What to load: http://HOST[:PORT][/PATH], https://HOST[:PORT][/PATH], http+unix:SOCKET[:/PATH], fcgi://HOST[:9000]/SCRIPT[?QUERY], fcgi+unix:SOCKET:/SCRIPT[?QUERY]
    #[arg(required_unless_present = "targets", help_heading = "Target", display_order = 0)]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) load: Load,
    /// Change the rate in stages, "10s:100,30s:1000"
    ///
    /// Change the rate of an open loop in stages, "TIME:RATE,...". In each stage the rate changes evenly from the one before (at first that of -q,
    /// or 0) to the given one: "10s:100,30s:1000" sends 500 requests in 10 s and 16,500 in the next 30 s. "0s:50" jumps to 50/s, and "5s:50" after
    /// it holds that rate. The load ends with the last stage.
    #[arg(long, value_name = "LIST", conflicts_with = "duration", help_heading = "Load", hide_short_help = true)]
    pub(crate) stages: Option<String>,
    /// Request the targets listed in this file, in turn
    ///
    /// Request the targets listed in this file (- is stdin), in turn. Each line is "METHOD URL", a URL, or a path. All must be on one server. -H and -d
    /// apply to each.
    #[arg(long, value_name = "FILE", help_heading = "Target", display_order = 1)]
    pub(crate) targets: Option<PathBuf>,
    /// Choose the targets at random
    ///
    /// Choose the targets at random instead of in turn. The same number gives the same order.
    #[arg(long, value_name = "N", requires = "targets", help_heading = "Target", display_order = 2, hide_short_help = true)]
    pub(crate) seed: Option<u64>,
    /// Load for this long [default: 10s]
    ///
    /// Load for this long: 10s, 500ms or 2m; a bare number is seconds. [default: 10s, without an end if -n is given]
    #[arg(short = 'z', long, value_name = "TIME", help_heading = "Load")]
    pub(crate) duration: Option<String>,
    /// Load for this long before counting
    ///
    /// Load for this long before anything is counted, on the same connections. [default: none]
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub(crate) warm_up: Option<String>,
    /// Statuses that count as good [default: 2xx,3xx]
    ///
    /// Statuses that count as good responses: classes, numbers and ranges, as in 2xx,301-302. Other responses count as failed. [default: 2xx,3xx]
    #[arg(long, value_name = "LIST", default_value = "2xx,3xx", hide_default_value = true, help_heading = "Load", hide_short_help = true)]
    pub(crate) expect: String,
    /// Requests on a connection before it is closed
    ///
    /// Close a connection after this many requests and open a new one. [default: no limit]
    #[arg(long, value_name = "N", conflicts_with = "disable_keepalive", help_heading = "Load", hide_short_help = true)]
    pub(crate) requests_per_connection: Option<u32>,
    /// Connect from these addresses, in turn
    ///
    /// Connect from these addresses of this host, in turn. Each has its own local ports (about 28,000 by default), so more addresses allow more connections.
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',', help_heading = "Target", display_order = 3, hide_short_help = true)]
    pub(crate) bind: Vec<std::net::IpAddr>,
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Network namespace of the client: name, PID or path
    ///
    /// Network namespace from which the client connects: a name below /run/netns, the PID of a process in it, or a path.
    #[arg(long, value_name = "NETNS", help_heading = "Target", display_order = 8)]
    pub(crate) client_netns: Option<String>,
    /// Do not ask before loading another host
    ///
    /// Do not ask before loading another host, or using a method that may change something (any but GET and HEAD).
    #[arg(long, short = 'y', help_heading = "Load")]
    pub(crate) yes: bool,
    /// Exit with 99 if this holds: 'p99>1s || rps<1000'
    ///
    /// Exit with status 99 if one of these conditions holds; join them by ||. Conditions compare by >, >=, < or <=: p50 to p999 and max with a time,
    /// errors with a percentage, rps and goodput with a rate. Example: 'p99>250ms || errors>0.1% || rps<1000'.
    #[arg(long, value_name = "EXPR", help_heading = "Output")]
    pub(crate) fail_if: Option<String>,
    /// Print the report as JSON
    ///
    /// Print the report as JSON instead of text. docs/json.md describes it and has recipes for jq.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Write a time series as CSV
    ///
    /// Write rates, response times and errors over time into this file: a line every 10 ms, or less often if there would be more than 6,000 lines.
    /// - is stdout, also for the files below.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,
    /// Write the latency distribution for HdrHistogram
    ///
    /// Write the distribution of response times into this file, in the format that HdrHistogram's plotters read.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) hgrm: Option<PathBuf>,
    /// Write the report as Markdown
    ///
    /// Write the report into this file as Markdown, for a pull request.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write a JUnit report
    ///
    /// Write a JUnit report into this file: a test case for each condition of --fail-if, and one that fails if no response was as expected.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) junit: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keep: Keep,
    #[command(flatten)]
    pub(crate) look: Look,
}
