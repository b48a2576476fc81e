//! Which socket belongs to which listener: the only definition.

use std::net::IpAddr;

use crate::observation::{Listener, ListenerAddress, SocketAddress};

impl Listener {
    /// True if the listener is bound to this TCP address and port, or to all addresses of a family that has it. A listener on `::` takes IPv4 connections
    /// too unless IPV6_V6ONLY is set (ipv6(7)).
    pub(crate) fn covers(&self, (ip, port): (IpAddr, u16)) -> bool {
        let ListenerAddress::Tcp(bound, bound_port) = self.address else { return false };
        let (bound, ip) = (bound.to_canonical(), ip.to_canonical());
        let covers_family = bound.is_ipv4() == ip.is_ipv4() || (bound.is_ipv6() && !self.v6_only);
        port == bound_port && (bound == ip || (bound.is_unspecified() && covers_family))
    }

    /// True if a socket of the listener's own namespace is a connection that the listener accepted or that waits in its accept queue. A TCP socket is matched
    /// by its local end. A unix socket is matched by its path, which accepted sockets inherit (unix(7)).
    ///
    /// If several listeners match, the one bound to a single address has the connection ([`Listener::is_bound_to_one`]).
    pub fn accepts(&self, address: &SocketAddress) -> bool {
        match (&self.address, address) {
            (ListenerAddress::Tcp(..), SocketAddress::Tcp { local, .. }) => self.covers(*local),
            (ListenerAddress::Unix(bound), SocketAddress::Unix { path: Some(path), .. }) => bound == path,
            _ => false,
        }
    }

    /// True if it is bound to a single address and not to all addresses of the host.
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
