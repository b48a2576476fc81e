//! Numbers of sock_diag(7) (linux/sock_diag.h, linux/inet_diag.h), requests for dumps, and what can be wrong with a dump.

use crate::netlink::wire::WireError;

/// `SOCK_DIAG_BY_FAMILY` (linux/sock_diag.h).
pub(crate) const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `TCPDIAG_GETSOCK` (linux/inet_diag.h): TCP sockets of both families.
pub(crate) const TCPDIAG_GETSOCK: u16 = 18;
pub(crate) const AF_UNIX: u8 = libc::AF_UNIX as u8;
pub(crate) const AF_INET: u8 = libc::AF_INET as u8;
pub(crate) const AF_INET6: u8 = libc::AF_INET6 as u8;
/// One request for a dump: the label of the sockets for errors, and the request's kind and body.
pub(super) struct DumpRequest {
    pub(super) label: &'static str,
    pub(super) kind: u16,
    pub(super) body: Vec<u8>,
}

/// A request for a dump, and requests that together give the same on a kernel that does not know the first.
pub(super) struct DumpRequests {
    pub(super) first: DumpRequest,
    pub(super) fallback: Vec<DumpRequest>,
}

/// Why a dump of sockets cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DiagError {
    /// A malformed message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A message of another kind.
    #[error("netlink message of kind {0} among sockets")]
    Kind(u16),
    /// Another address family.
    #[error("socket of address family {0}")]
    Family(u8),
    /// An unknown TCP state.
    #[error("socket in unknown state {0}")]
    State(u8),
    /// A line of the counts is not a pair of numbers.
    #[error("'{0}' is not a count of sockets by state")]
    Count(String),
}
