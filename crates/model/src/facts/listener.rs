//! Which sockets are connections of which listener.

use std::net::IpAddr;

use crate::observation::{Listener, ListenerAddress, SocketAddress};

/// True where a socket whose local end is this one can be a connection that a listener bound to `address` accepted. One on `::` may take those of IPv4
/// too (ipv6(7)).
pub(crate) fn is_end_of(address: &ListenerAddress, local: (IpAddr, u16)) -> bool {
    let ListenerAddress::Tcp(bound, port) = *address else { return false };
    let (bound, own) = (bound.to_canonical(), local.0.to_canonical());
    port == local.1 && (bound == own || (bound.is_unspecified() && (bound.is_ipv6() || own.is_ipv4())))
}

impl Listener {
    /// True where a socket of the listener's own namespace is a connection that it accepted, or that waits for that: by the local end for TCP, where
    /// an unspecified address stands for all; by the path for unix sockets, which accepted ones inherit (unix(7)).
    ///
    /// Handshakes are another matter: of several listeners the nearest one has them (`syn-queue`).
    pub fn accepts(&self, address: &SocketAddress) -> bool {
        match (&self.address, address) {
            (bound @ ListenerAddress::Tcp(..), SocketAddress::Tcp { local, .. }) => {
                is_end_of(bound, *local) && !(self.v6_only && local.0.to_canonical().is_ipv4())
            }
            (ListenerAddress::Unix(bound), SocketAddress::Unix { path: Some(path), .. }) => bound == path,
            _ => false,
        }
    }

    /// True where it is bound to one address, and not to all of the host's: of several that a connection may be of, it has it.
    pub fn is_bound_to_one(&self) -> bool {
        !matches!(self.address, ListenerAddress::Tcp(ip, _) if ip.is_unspecified())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::UnixPeer;

    fn listener(address: ListenerAddress) -> Listener {
        Listener { address, v6_only: false, inode: 1, accept_queue: 0, accept_queue_limit: 128, drops: None }
    }

    fn tcp(local: &str, port: u16) -> SocketAddress {
        SocketAddress::Tcp { local: (local.parse().unwrap(), port), remote: ("10.0.0.9".parse().unwrap(), 50_000) }
    }

    #[test]
    fn a_tcp_listener_accepts_what_ends_at_its_port_and_address() {
        let bound = |ip: &str| listener(ListenerAddress::Tcp(ip.parse().unwrap(), 80));
        for (ip, local, port, expected) in [
            ("10.0.0.2", "10.0.0.2", 80, true),
            ("10.0.0.2", "::ffff:10.0.0.2", 80, true),
            ("::ffff:10.0.0.2", "10.0.0.2", 80, true),
            ("0.0.0.0", "10.0.0.3", 80, true),
            ("::", "10.0.0.3", 80, true),
            ("0.0.0.0", "2001:db8::3", 80, false),
            ("10.0.0.2", "10.0.0.3", 80, false),
            ("0.0.0.0", "10.0.0.3", 81, false),
        ] {
            assert_eq!(bound(ip).accepts(&tcp(local, port)), expected, "{ip} {local}:{port}");
        }
        assert!(!Listener { v6_only: true, ..bound("::") }.accepts(&tcp("10.0.0.3", 80)));
        assert!(bound("10.0.0.2").is_bound_to_one() && !bound("::").is_bound_to_one());
    }

    #[test]
    fn a_unix_listener_accepts_what_bears_its_path_and_no_tcp() {
        let unix = listener(ListenerAddress::Unix("/run/a.sock".into()));
        let socket = |path: Option<&str>| SocketAddress::Unix { path: path.map(str::to_owned), peer: UnixPeer::Inode(7) };
        assert!(unix.accepts(&socket(Some("/run/a.sock"))));
        assert!(!unix.accepts(&socket(Some("/run/b.sock"))) && !unix.accepts(&socket(None)) && !unix.accepts(&tcp("10.0.0.2", 80)));
        assert!(!listener(ListenerAddress::Tcp("0.0.0.0".parse().unwrap(), 80)).accepts(&socket(Some("/run/a.sock"))));
    }
}
