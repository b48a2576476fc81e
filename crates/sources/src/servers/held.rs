//! Whether a server itself listens where its configuration has its status page. A configuration may name any address, of another program's or of another host:
//! root asks nobody but the server.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use chokepoint_foreign::SocketFile;
use chokepoint_model::observation::{Listener, ListenerAddress};
use chokepoint_model::path::is_configured_at;
use chokepoint_recording::Outcome;

use crate::sock_diag::listeners::{LISTENERS, parse_listeners};
use crate::sock_diag::socket_files::{BoundListener, bound_listeners};
use crate::table::ReadContext;
use crate::text::process::files::{PROCESS_FILES, parse};

/// The listeners of the namespace, and the sockets that the server's own process holds.
pub(super) struct Held {
    listeners: Vec<Listener>,
    own: BTreeSet<u64>,
    /// The files of the unix sockets on which anybody listens.
    bound: Vec<BoundListener>,
}

impl Held {
    /// Reads both; nothing if one of them cannot be read.
    pub(super) fn read(context: &ReadContext<'_>) -> Option<Self> {
        let bytes = |items: crate::table::Items| match items.into_iter().find(|(item, _)| item.is_empty())?.1 {
            Outcome::Ok(bytes) => Some(bytes),
            _ => None,
        };
        let listeners = parse_listeners(&bytes((LISTENERS.read)(context))?).ok()?;
        let own = parse(&bytes((PROCESS_FILES.read)(context))?).ok()?.sockets.into_iter().collect();
        let bound = bound_listeners(context.sockets().ok()?.diag())?;
        Some(Self { listeners, own, bound })
    }

    /// True if the server itself listens on the socket with this file, which was held before the lists were read.
    pub(super) fn listens_at(&self, file: SocketFile) -> bool {
        self.bound.iter().any(|listener| listener.file == file && self.own.contains(&listener.inode))
    }

    /// The clause that says why a page at this address is not asked for; `None` if the server itself answers there.
    pub(super) fn refuses(&self, at: &ListenerAddress) -> Option<String> {
        let answering = self.answering(at);
        if answering.is_empty() {
            return Some(format!("{at}: the server does not listen there itself, so it is not asked"));
        }
        if !answering.iter().all(|listener| self.own.contains(&listener.inode)) {
            return Some(format!("{at}: another process listens there, so it is not asked"));
        }
        let ListenerAddress::Tcp(ip, _) = at else { return None };
        (!is_local(*ip)).then(|| format!("{at}: that is no address of this host, so it is not asked"))
    }

    /// Connections that wait at an address; nothing if nobody listens there.
    pub(super) fn queued(&self, at: &ListenerAddress) -> Option<u32> {
        let there = self.listeners.iter().filter(|listener| is_configured_at(at, &listener.address));
        there.map(|listener| listener.accept_queue).reduce(u32::saturating_add)
    }

    /// The listeners that get a connection to this address: those bound to it, else those of all addresses.
    fn answering(&self, at: &ListenerAddress) -> Vec<&Listener> {
        let bound: Vec<&Listener> = self.listeners.iter().filter(|listener| is_configured_at(at, &listener.address)).collect();
        let ListenerAddress::Tcp(ip, port) = at else { return bound };
        if !bound.is_empty() {
            return bound;
        }
        let takes = |listener: &&Listener| match &listener.address {
            ListenerAddress::Tcp(all, of) if of == port && all.is_unspecified() => {
                all.is_ipv4() == ip.is_ipv4() || (all.is_ipv6() && !listener.v6_only)
            }
            _ => false,
        };
        self.listeners.iter().filter(takes).collect()
    }
}

/// True for an address of this network namespace: all of loopback, and any for which the kernel takes the address itself as the own one. Nothing is sent: connect(2) of a datagram socket only looks
/// the route up.
fn is_local(ip: IpAddr) -> bool {
    let any: IpAddr = if ip.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let own = || {
        let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
        socket.connect(SocketAddr::new(ip, 9))?;
        socket.local_addr()
    };
    ip.is_loopback() || own().is_ok_and(|own| own.ip() == ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(address: &str, inode: u64, v6_only: bool) -> Listener {
        let address = match address.parse::<SocketAddr>() {
            Ok(at) => ListenerAddress::Tcp(at.ip(), at.port()),
            Err(_) => ListenerAddress::Unix(address.to_owned()),
        };
        Listener { address, v6_only, inode, accept_queue: 2, accept_queue_limit: 5, drops: None }
    }

    fn refuses(listeners: &[(&str, u64, bool)], own: &[u64], at: &str) -> Option<String> {
        let listeners = listeners.iter().map(|(address, inode, v6_only)| listener(address, *inode, *v6_only)).collect();
        Held { listeners, own: own.iter().copied().collect(), bound: Vec::new() }.refuses(&listener(at, 0, false).address)
    }

    #[test]
    fn only_the_server_itself_is_asked() {
        for (listeners, own, at, why) in [
            (&[("127.0.0.1:80", 7, false)][..], &[7][..], "127.0.0.1:80", None),
            (&[("127.0.0.1:80", 7, false)], &[8], "127.0.0.1:80", Some("another process listens there")),
            (&[("127.0.0.1:81", 7, false)], &[7], "127.0.0.1:80", Some("does not listen there itself")),
            // A listener of one address is asked before that of all.
            (&[("0.0.0.0:80", 7, false), ("127.0.0.1:80", 8, false)], &[7], "127.0.0.1:80", Some("another process")),
            (&[("0.0.0.0:80", 7, false)], &[7], "127.0.0.1:80", None),
            (&[("[::]:80", 7, false)], &[7], "127.0.0.1:80", None),
            (&[("[::]:80", 7, true)], &[7], "127.0.0.1:80", Some("does not listen there itself")),
            // Connections to a listener of several processes reach any of them.
            (&[("127.0.0.1:80", 7, false), ("127.0.0.1:80", 8, false)], &[7], "127.0.0.1:80", Some("another process")),
            // 192.0.2.0/24 belongs to nobody (RFC 5737), whatever a server was told to listen on.
            (&[("0.0.0.0:80", 7, false)], &[7], "192.0.2.9:80", Some("no address of this host")),
            (&[("192.0.2.9:80", 7, false)], &[7], "192.0.2.9:80", Some("no address of this host")),
            (&[("/run/s", 7, false)], &[7], "/run/s", None),
            (&[("/run/s", 7, false), ("/run/s", 8, false)], &[7], "/run/s", Some("another process")),
            (&[("/run/other", 7, false)], &[7], "/run/s", Some("does not listen there itself")),
        ] {
            let refused = refuses(listeners, own, at);
            assert_eq!(
                refused.as_deref().map(|refused| why.is_some_and(|why| refused.contains(why))),
                why.map(|_| true),
                "{at}: {refused:?}"
            );
        }
    }

    #[test]
    fn the_own_addresses_are_local() {
        assert!(is_local("127.0.0.1".parse().unwrap()) && is_local("127.8.8.8".parse().unwrap()));
        assert!(!is_local("192.0.2.9".parse().unwrap()));
    }
}
