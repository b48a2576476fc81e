//! Which end of a connection is on this host.

use std::net::SocketAddr;

/// The local end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum LocalEnd {
    /// This host opened the connection.
    Client,
    /// This host accepted the connection.
    Server,
}

impl LocalEnd {
    /// The local end of a connection, then its client and its server.
    pub(super) fn of(local: SocketAddr, remote: SocketAddr, accepted: bool) -> (Self, SocketAddr, SocketAddr) {
        if accepted { (Self::Server, remote, local) } else { (Self::Client, local, remote) }
    }

    pub(super) fn name(self) -> &'static str {
        if self == Self::Client { "client" } else { "server" }
    }
}
