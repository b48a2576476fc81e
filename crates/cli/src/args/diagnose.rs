//! The arguments of `chokepoint diagnose`.

use std::path::PathBuf;

use clap::Args;

use super::{Connection, Keep, Load, Look};

/// What `-h` and `--help` say at the end.
pub(super) const EXIT: &str = "\
Exit status: 0 a verdict was reached, 1 it could not be, 2 usage,
99 a --fail-if condition held. All flags and examples: --help";

pub(super) const HELP: &str = "\
Without -c, -q, -n or --load no load is sent: existing traffic is watched.

Examples:
  chokepoint diagnose http://127.0.0.1/                 watch for 10 s
  chokepoint diagnose -c 200 http://127.0.0.1/          200 connections for 10 s
  chokepoint diagnose -c 200 --fix http://127.0.0.1/    also remove the limit
  chokepoint diagnose -c 200 --bisect http://127.0.0.1/ also load each tier on its own
  chokepoint diagnose -c 50 --fail-if 'choked || p99>250ms' http://127.0.0.1/
                                                        for CI: exit with 99 if one of them holds
  chokepoint diagnose -c 9 fcgi://127.0.0.1:9000/srv/app/index.php
                                                        php-fpm alone; SCRIPT is the file on its host
  chokepoint diagnose -c 9 fcgi+unix:/run/php/php8.2-fpm.sock:/srv/app/index.php?q=1
                                                        the same over a unix socket; @NAME is an abstract one

Exit status: 0 a verdict was reached, 1 it could not be, 2 usage, 99 a --fail-if condition held.";

#[derive(Debug, Args)]
pub(crate) struct Diagnose {
    /// http[s]://HOST[:PORT][/PATH]; other kinds: --help
    ///
    /// What to diagnose: http://HOST[:PORT][/PATH], https://HOST[:PORT][/PATH], http+unix:SOCKET[:/PATH], or a FastCGI server without the web server in
    /// front of it: fcgi://HOST[:9000]/SCRIPT[?QUERY], fcgi+unix:SOCKET:/SCRIPT[?QUERY].
    #[arg(required_unless_present = "replay", help_heading = "Target", display_order = 0)]
    pub(crate) url: Option<String>,
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
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Load with 100 connections instead of only watching
    ///
    /// Load the target with 100 connections. -c, -q and -n start a load as well. Without any of them no load is sent.
    #[arg(long = "load", help_heading = "Load")]
    pub(crate) loaded: bool,
    #[command(flatten)]
    pub(crate) load: Load,
    /// Watch or load for this long [default: 10s]
    ///
    /// Watch or load for this long: 10s, 500ms or 2m; a bare number is seconds. With --fix this is the time of each measurement. Where 10 s of traffic tell
    /// nothing for or against the server, it is watched for 30 s more, unless -z says how long. [default: 10s]
    #[arg(short = 'z', long, value_name = "TIME", help_heading = "Load")]
    pub(crate) duration: Option<String>,
    /// Statuses that count as good [default: 2xx,3xx]
    ///
    /// Statuses that count as good responses: classes, numbers and ranges, as in 2xx,301-302. Other responses count as failed. [default: 2xx,3xx]
    #[arg(long, value_name = "LIST", default_value = "2xx,3xx", hide_default_value = true, hide_short_help = true, help_heading = "Load")]
    pub(crate) expect: String,
    /// The p99 that is good enough: 'p99<1s', or 1s
    ///
    /// The objective: a p99 response time that is good enough. "p99<1s" and "1s" mean the same. --fix takes back a change that makes p99 miss it.
    #[arg(long, value_name = "P99", value_parser = super::non_empty, help_heading = "Load")]
    pub(crate) slo: Option<String>,
    /// Also load each tier on its own
    ///
    /// Also load each tier on its own: nginx for a page that it answers itself, and the servers behind it without nginx. Each gets as many connections
    /// as all tiers together; with -q, up to 100 connections in a closed loop.
    #[arg(long, conflicts_with_all = ["fix", "replay"], help_heading = "Load")]
    pub(crate) bisect: bool,
    /// Apply remedies one by one and keep what helps
    ///
    /// Apply the remedies one by one, measure after each, and keep what helps. `chokepoint undo` takes back what was kept. A fix is proven under load,
    /// so this needs -c, -q, -n or --load.
    #[arg(long, help_heading = "Fix")]
    pub(crate) fix: bool,
    /// Do not ask before a change or a load elsewhere
    ///
    /// Do not ask before changing a setting, loading another host, or using a method that may change something (any but GET and HEAD).
    #[arg(long, short = 'y', help_heading = "Fix")]
    pub(crate) yes: bool,
    /// Let a reload activate other edits as well
    ///
    /// With --fix: reload a server even if its configuration has other edits that it has not read yet. The reload activates those as well. Without this
    /// flag --fix asks, and with --yes it refuses.
    #[arg(long, requires = "fix", hide_short_help = true, help_heading = "Fix")]
    pub(crate) reload_unseen: bool,
    /// Exit with 99 if this holds: 'choked || p99>1s'
    ///
    /// Exit with status 99 if one of these conditions holds; join them by ||. A condition is a verdict (choked, client-limited, unknown), or compares a
    /// figure by >, >=, < or <=: p50 to p999 and max with a time, errors with a percentage, goodput and rps with a rate. With --fix the last
    /// measurement counts. Example: 'choked || p99>250ms || goodput<1000 || errors>0.1%'.
    #[arg(long, value_name = "EXPR", help_heading = "Output")]
    pub(crate) fail_if: Option<String>,
    /// Print the long report
    ///
    /// Print every station, all evidence, the steps of each remedy, and every source that could not be read.
    #[arg(short = 'v', long, help_heading = "Output", conflicts_with = "json")]
    pub(crate) verbose: bool,
    /// Print the report as JSON
    ///
    /// Print the report as JSON instead of text. docs/json.md describes it and has recipes for jq.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Also write the report as one HTML page
    ///
    /// Write the report into this file as well, as one HTML page that needs no other file.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
    /// Also write the report as Markdown
    ///
    /// Write the report into this file as well, in Markdown for a ticket or a pull request.
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "Output")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write a recording, for --replay
    ///
    /// Write a recording: everything that was read from this host. `--replay FILE` prints the same report from it on any machine.
    #[arg(long, value_name = "FILE", conflicts_with = "replay", help_heading = "Output")]
    pub(crate) record: Option<PathBuf>,
    /// Diagnose a recording; needs no privilege
    ///
    /// Diagnose a recording instead of this host. It needs no privilege.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "fix", "connections", "rate", "requests", "loaded"], help_heading = "Output")]
    pub(crate) replay: Option<PathBuf>,
    /// What recordings and reports hide
    ///
    /// What a recording and the report hide: public addresses, secrets, and everything that the diagnosis does not use (public); also private
    /// addresses and names (all); or nothing (none).
    ///
    /// At the levels public and all, a recording keeps only part of each text. Of configurations it keeps the names of directives and the values that the
    /// diagnosis uses; of command lines the program's name and the options with the place of its configuration; of logs counts and the lines that a report
    /// quotes. Values of queries, user information, headers and passwords are hidden. Reports hide user information and values of queries unless the level is
    /// none. When the file is written, chokepoint reports what it kept and what it hid. docs/recording.md lists everything.
    #[arg(
        long,
        value_name = "LEVEL",
        default_value = "public",
        conflicts_with = "replay",
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub(crate) redact: RedactLevel,
    /// Take no CPU profile
    ///
    /// Take no CPU profile. By default the last third of the measurement is profiled, which uses at most 3 % of a core.
    #[arg(long, conflicts_with = "replay", hide_short_help = true, help_heading = "Output")]
    pub(crate) no_profile: bool,
    /// Capture packets as well, or read them from FILE
    ///
    /// Also report what packets show, by stream: capture them in the server's network namespace during the measurement, or read them from FILE (pcap,
    /// pcapng). They do not change the verdict.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, conflicts_with_all = ["replay", "bisect"], hide_short_help = true, help_heading = "Output")]
    pub(crate) capture: Option<Option<PathBuf>>,
    #[command(flatten)]
    pub(crate) keep: Keep,
    #[command(flatten)]
    pub(crate) look: Look,
}

impl Diagnose {
    /// True if a load is asked for.
    pub(crate) fn is_loaded(&self) -> bool {
        self.loaded || self.load.connections.is_some() || self.load.rate.is_some() || self.load.requests.is_some()
    }
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
