//! One message of a dump: an internet socket or a unix socket.

use super::protocol::{AF_INET, AF_INET6, AF_UNIX, DiagError, SOCK_DIAG_BY_FAMILY, TCPDIAG_GETSOCK};
use super::{inet, unix};
use crate::netlink::wire::Message;

/// A socket of either kind.
pub(super) enum DiagSocket {
    Inet(inet::InetSocket),
    Unix(unix::UnixSocket),
}

pub(super) fn parse_socket(message: &Message<'_>) -> Result<DiagSocket, DiagError> {
    if !matches!(message.kind, SOCK_DIAG_BY_FAMILY | TCPDIAG_GETSOCK) {
        return Err(DiagError::Kind(message.kind));
    }
    match message.body.first() {
        Some(&AF_UNIX) => unix::parse(message).map(DiagSocket::Unix),
        Some(&(AF_INET | AF_INET6)) => inet::parse(message).map(DiagSocket::Inet),
        family => Err(DiagError::Family(family.copied().unwrap_or(0))),
    }
}
