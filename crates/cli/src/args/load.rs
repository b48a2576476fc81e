//! The load of the command line: the arguments of every verb that offers one.

use std::path::PathBuf;

use clap::Args;

// Not a documentation comment: clap would begin the help of the verb with it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct Load {
    /// Connections, each with one request at a time
    ///
    /// Load with this many connections. Each sends its next request when the last is answered (closed loop). [default: 100; with -q up to 1,000]
    #[arg(short = 'c', long, value_name = "N")]
    pub(crate) connections: Option<u32>,
    /// Requests a second in all, whatever the answers
    ///
    /// Load with this many requests a second in all, whatever the answers (open loop). Times count from when a request was due.
    #[arg(short = 'q', long, value_name = "N")]
    pub(crate) rate: Option<f64>,
    /// Requests in all
    ///
    /// End the load after this many requests.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) requests: Option<u64>,
    /// Give up a request after this time
    ///
    /// Give up a request after this time: 2s, 500ms; a bare number is seconds. [default: 2s, bench: 10s]
    #[arg(short = 't', long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// Method [default: GET]; -X is the same
    ///
    /// Method of the requests. -X and --request, as in curl, are the same. A method other than GET and HEAD may change something and takes --yes.
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
    /// A header, "Name: value". May be given several times.
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// Body of each request
    ///
    /// Body of each request. The method stays GET unless -m says otherwise. (wrk's -d is a time: here that is -z.)
    #[arg(short = 'd', long, alias = "data", value_name = "TEXT", conflicts_with = "body_file")]
    pub(crate) body: Option<String>,
    /// File with the body
    ///
    /// File with the body of each request.
    #[arg(short = 'D', long, value_name = "FILE", hide_short_help = true)]
    pub(crate) body_file: Option<PathBuf>,
    /// Content-Type of the body
    ///
    /// Content-Type of the body, as in application/json.
    #[arg(short = 'T', long, value_name = "TYPE", hide_short_help = true)]
    pub(crate) content_type: Option<String>,
    /// The Accept header
    ///
    /// What the answer may be: the Accept header.
    #[arg(short = 'A', long, value_name = "TYPE", hide_short_help = true)]
    pub(crate) accept: Option<String>,
    /// A new connection for each request
    ///
    /// Open a new connection for each request.
    #[arg(long, hide_short_help = true)]
    pub(crate) disable_keepalive: bool,
    /// FastCGI parameter, "NAME=VALUE"; repeatable
    ///
    /// A FastCGI parameter, "NAME=VALUE", in addition to those made from the URL or in their place. May be given several times.
    #[arg(long = "fcgi-param", value_name = "PARAM", hide_short_help = true)]
    pub(crate) fcgi_params: Vec<String>,
    /// Threads of the load generator [default: 1]
    ///
    /// Threads of the load generator. (wrk's -t: here -t is the timeout.)
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, hide_short_help = true)]
    pub(crate) threads: u32,
    /// Cores for these threads, "0" or "0,2-3"
    ///
    /// Cores for the load generator's threads, "0" or "0,2-3".
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    pub(crate) cpus: Option<String>,
    /// Stop when this holds, "errors>20% || p99>5s"
    ///
    /// Stop the load when one of these conditions holds, "errors>20% || p99>5s".
    #[arg(long, value_name = "EXPR", hide_short_help = true)]
    pub(crate) guard: Option<String>,
}
