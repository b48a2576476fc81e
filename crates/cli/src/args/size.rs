//! The arguments of `chokepoint size`.

use std::path::PathBuf;

use clap::Args;

use super::{Connection, Keep, Load, Look};

/// What `-h` says at the end.
pub(super) const EXIT: &str = "\
Exit status: 0 it was measured, 1 no capacity can be told, 2 usage,
130 stopped by Ctrl-C. All flags and examples: --help";

pub(super) const HELP: &str = "\
It doubles the connections of a closed loop from 1 until goodput does not rise any more, looks closer around that knee, and then offers fixed rates to find the \
highest one that holds the objective. After each step it diagnoses the server. From all that it computes the number of workers that keep the cores full, the \
memory that they need, and the lines to configure. It changes nothing.

The server is loaded to its limit: do not run it against production. chokepoint refuses to load another host, or to use a method other than GET and HEAD, \
without --yes. Such a load has a guard that stops it: 'errors>20% || p99>5s'.

Ctrl-C ends the run; the report has what was measured until then.

Examples:
  chokepoint size http://127.0.0.1/                     about two minutes
  chokepoint size --slo 'p99<200ms' http://127.0.0.1/   the capacity at an objective
  chokepoint size --budget 5m --html size.html http://127.0.0.1/
                                                        longer steps, and the curve as a page
  chokepoint size --json http://127.0.0.1/ | jq '.tiers[] | {tier, workers}'

Exit status: 0 it was measured, 1 no capacity can be told, 2 usage, 130 stopped by Ctrl-C.";

#[derive(Debug, Args)]
pub(crate) struct Size {
    /// http://HOST[:PORT][/PATH]; other kinds: --help
    ///
    /// What to load: http://HOST[:PORT][/PATH], https://HOST[:PORT][/PATH], http+unix:SOCKET[:/PATH], fcgi://HOST[:9000]/SCRIPT[?QUERY], fcgi+unix:SOCKET:/SCRIPT[?QUERY]
    #[arg(help_heading = "Target", display_order = 0)]
    pub(crate) url: String,
    /// Objective, "p99<200ms" [default: 1s or half of -t]
    ///
    /// The objective: the p99 of the response time that the capacity has to keep, "p99<200ms". [default: half of the timeout -t, at most 1s]
    #[arg(long, value_name = "OBJECTIVE", help_heading = "Search")]
    pub(crate) slo: Option<String>,
    /// Advise workers for this rate, requests per second
    ///
    /// The rate that the workers have to carry, in requests per second: as many are advised as it takes. [default: all that the cores have time for]
    #[arg(short = 'q', long, value_name = "RATE", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Search")]
    pub(crate) rate: Option<u32>,
    /// Time for the whole run
    ///
    /// Time for the whole run, at least 30s. A longer run has longer steps, and so narrower intervals.
    #[arg(long, value_name = "TIME", default_value = "2m", help_heading = "Search")]
    pub(crate) budget: String,
    /// Most connections that are tried
    ///
    /// Most connections of the closed loop. The search ends earlier if goodput does not rise any more.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(2..=100_000), help_heading = "Search")]
    pub(crate) max_connections: u32,
    /// Give up a request after this time
    ///
    /// Give up a request after this time: 2s, 500ms; a bare number is seconds. [default: 2s]
    #[arg(short = 't', long, value_name = "TIME", help_heading = "Load")]
    pub(crate) timeout: Option<String>,
    /// Method [default: GET]; -X is the same
    ///
    /// Method of the requests. A method other than GET and HEAD may change something, so it needs --yes. [default: GET]
    #[arg(
        short = 'm',
        long,
        short_alias = 'X',
        alias = "request",
        value_name = "METHOD",
        default_value = "GET",
        hide_default_value = true,
        help_heading = "Load"
    )]
    pub(crate) method: String,
    /// Header, "Name: value"; repeatable
    ///
    /// Send this header, "Name: value". May be given several times.
    #[arg(short = 'H', long = "header", value_name = "HEADER", help_heading = "Load")]
    pub(crate) headers: Vec<String>,
    /// Body of each request
    ///
    /// Send this body with each request. The method stays GET unless -m changes it.
    #[arg(short = 'd', long, alias = "data", value_name = "TEXT", help_heading = "Load")]
    pub(crate) body: Option<String>,
    /// A new connection for each request
    ///
    /// Open a new connection for each request.
    #[arg(long, help_heading = "Load")]
    pub(crate) disable_keepalive: bool,
    /// FastCGI parameter, "NAME=VALUE"; repeatable
    ///
    /// Send this FastCGI parameter, "NAME=VALUE". May be given several times.
    #[arg(long = "fcgi-param", value_name = "PARAM", hide_short_help = true, help_heading = "Load")]
    pub(crate) fcgi_params: Vec<String>,
    /// Statuses that count as good [default: 2xx,3xx]
    ///
    /// Statuses that count as good responses: classes, numbers and ranges, as in 2xx,301-302. [default: 2xx,3xx]
    #[arg(long, value_name = "LIST", default_value = "2xx,3xx", hide_default_value = true, hide_short_help = true, help_heading = "Load")]
    pub(crate) expect: String,
    /// Threads of the load generator [default: as it needs]
    ///
    /// Threads of the load generator. [default: one, and more if the generator is the limit while cores are idle that neither it nor the server uses]
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Load")]
    pub(crate) threads: Option<u32>,
    /// Cores for these threads, "0" or "0,2-3"
    ///
    /// Restrict the load generator's threads to these cores: numbers and ranges, as in "0" or "0,2-3". [default: all cores]
    #[arg(long, value_name = "LIST", help_heading = "Load")]
    pub(crate) cpus: Option<String>,
    /// Load another host, or use a method that may change something
    ///
    /// Permit load on another host, and methods that may change something (any but GET and HEAD).
    #[arg(long, short = 'y', help_heading = "Load")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Network namespace of the client: name, PID or path
    ///
    /// Network namespace from which the client connects: a name below /run/netns, the PID of a process in it, or a path.
    #[arg(long, value_name = "NETNS", help_heading = "Target", display_order = 8)]
    pub(crate) client_netns: Option<String>,
    /// Print all steps and every note
    ///
    /// Print all steps, the advice for every server on the path, and every note.
    #[arg(short = 'v', long, help_heading = "Output", conflicts_with = "json")]
    pub(crate) verbose: bool,
    /// Print the report as JSON
    ///
    /// Print the report as JSON instead of text. docs/json.md describes it.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Also write the report and the curve as one HTML page
    ///
    /// Write the report with the curve into this file as well, as one HTML page that needs no other file.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
    /// Also write the curve as a picture
    ///
    /// Write the curve into this file as well, as SVG: goodput and p99 over connections, with the knee and the objective.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,
    /// Also write the report as Markdown
    ///
    /// Write the report into this file as well, in Markdown for a ticket or a pull request.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) markdown: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keep: Keep,
    #[command(flatten)]
    pub(crate) look: Look,
}

impl Size {
    /// What the load of each step has in common.
    pub(crate) fn load(&self) -> Load {
        Load {
            timeout: self.timeout.clone(),
            method: self.method.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
            disable_keepalive: self.disable_keepalive,
            fcgi_params: self.fcgi_params.clone(),
            threads: self.threads,
            cpus: self.cpus.clone(),
            ..Load::default()
        }
    }
}
