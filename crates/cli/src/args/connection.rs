//! How `bench` and `diagnose` reach the target: flags for TLS, and for another address than that of the URL. curl has the same names.

use std::path::PathBuf;

use clap::Args;

// Not a documentation comment: clap would begin the help of the verb with it.
#[derive(Debug, Default, Args)]
pub(crate) struct Connection {
    /// https: trust the certificates in this file
    ///
    /// https: trust the certificate authorities in this PEM file instead of the system's.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure", help_heading = "Target", display_order = 4, hide_short_help = true)]
    pub(crate) cacert: Option<PathBuf>,
    /// https: accept any certificate
    ///
    /// https: accept any certificate, like curl -k.
    #[arg(short = 'k', long, help_heading = "Target", display_order = 5)]
    pub(crate) insecure: bool,
    /// https: a full handshake for each connection
    ///
    /// https: do a full handshake for each connection, and never resume a session.
    #[arg(long, help_heading = "Load", hide_short_help = true)]
    pub(crate) tls_no_resumption: bool,
    /// Use ADDRESS for HOST:PORT, without the resolver
    ///
    /// Use ADDRESS for HOST:PORT instead of asking the resolver: "HOST:PORT:ADDRESS[,ADDRESS]". May be given several times.
    #[arg(long, value_name = "HOST:PORT:ADDRESS", requires = "url", help_heading = "Target", display_order = 6, hide_short_help = true)]
    pub(crate) resolve: Vec<String>,
    /// Connect to another host and port
    ///
    /// Connect to HOST2:PORT2 instead of the URL's HOST1:PORT1. The Host header and the TLS server name stay those of the URL. An empty HOST1 or PORT1
    /// matches any, an empty HOST2 or PORT2 means the same. May be given several times; the first match is used.
    #[arg(
        long,
        value_name = "HOST1:PORT1:HOST2:PORT2",
        requires = "url",
        help_heading = "Target",
        display_order = 7,
        hide_short_help = true
    )]
    pub(crate) connect_to: Vec<String>,
}
