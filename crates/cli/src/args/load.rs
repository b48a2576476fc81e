//! The load of the command line: the arguments of every verb that offers one.

use std::path::PathBuf;

use clap::Args;

// Not a documentation comment: clap would begin the help of the verb with it.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct Load {
    /// Connections, each with one request at a time
    ///
    /// Load with this many connections. Each sends its next request when it gets the response to the last one (closed loop). [default: 100; with -q up
    /// to 1,000]
    #[arg(short = 'c', long, value_name = "N")]
    pub(crate) connections: Option<u32>,
    /// Requests per second in all (open loop)
    ///
    /// Load with this many requests per second in all, however fast the responses are (open loop). Response times count from when a request was due.
    #[arg(short = 'q', long, value_name = "N")]
    pub(crate) rate: Option<f64>,
    /// Stop after this many requests
    ///
    /// Stop the load after this many requests.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) requests: Option<u64>,
    /// Give up a request after this time
    ///
    /// Give up a request after this time: 2s, 500ms; a bare number is seconds. [default: 2s, bench: 10s]
    #[arg(short = 't', long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// Method [default: GET]; -X is the same
    ///
    /// Method of the requests. -X and --request, as in curl, mean the same. A method other than GET and HEAD may change something, so it needs --yes. [default: GET]
    #[arg(
        short = 'm',
        long,
        short_alias = 'X',
        alias = "request",
        value_name = "METHOD",
        default_value = "GET",
        hide_default_value = true
    )]
    pub(crate) method: String,
    /// Header, "Name: value"; repeatable
    ///
    /// Send this header, "Name: value". May be given several times.
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// Body of each request
    ///
    /// Send this body with each request. The method stays GET unless -m changes it. (wrk's -d is a time; here that is -z.)
    #[arg(short = 'd', long, alias = "data", value_name = "TEXT", conflicts_with = "body_file")]
    pub(crate) body: Option<String>,
    /// File with the body
    ///
    /// Send the contents of this file as the body of each request.
    #[arg(short = 'D', long, value_name = "FILE", hide_short_help = true)]
    pub(crate) body_file: Option<PathBuf>,
    /// Content-Type of the body
    ///
    /// Content-Type of the body, for example application/json.
    #[arg(short = 'T', long, value_name = "TYPE", hide_short_help = true)]
    pub(crate) content_type: Option<String>,
    /// The Accept header
    ///
    /// Send this Accept header, for example text/html.
    #[arg(short = 'A', long, value_name = "TYPE", hide_short_help = true)]
    pub(crate) accept: Option<String>,
    /// A new connection for each request
    ///
    /// Open a new connection for each request.
    #[arg(long, hide_short_help = true)]
    pub(crate) disable_keepalive: bool,
    /// FastCGI parameter, "NAME=VALUE"; repeatable
    ///
    /// Send this FastCGI parameter, "NAME=VALUE". It is added to the parameters made from the URL, or replaces the one with its name. May be given several
    /// times.
    #[arg(long = "fcgi-param", value_name = "PARAM", hide_short_help = true)]
    pub(crate) fcgi_params: Vec<String>,
    /// Threads of the load generator [default: as it needs]
    ///
    /// Threads of the load generator. (This is wrk's -t; here -t is the timeout.) [default: one, and more if the generator is the limit while cores are idle that
    /// neither it nor the server uses; with -n one]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) threads: Option<u32>,
    /// Cores for these threads, "0" or "0,2-3"
    ///
    /// Restrict the load generator's threads to these cores: numbers and ranges, as in "0" or "0,2-3". [default: all cores]
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    pub(crate) cpus: Option<String>,
    /// Stop when this holds, "errors>20% || p99>5s"
    ///
    /// Stop the load when one of these conditions holds, for example "errors>20% || p99>5s". [default: none; this one if the load needs --yes]
    #[arg(long, value_name = "EXPR", hide_short_help = true)]
    pub(crate) guard: Option<String>,
}
