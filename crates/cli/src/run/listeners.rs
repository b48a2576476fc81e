//! The listeners of a network namespace in words, for a user whose target has none.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use chokepoint_model::observation::NetnsId;
use chokepoint_sources::{PortSocket, Root, netns, read_port_sockets};

/// Most listeners that are named.
const NAMED_MAX: usize = 8;

/// The TCP listeners of a namespace, "port 80 (nginx), port 9000 (php-fpm8.2)"; nothing if they cannot be read.
pub(crate) fn named(netns: NetnsId) -> Option<String> {
    let sockets = read_port_sockets(&Root::default()).ok()?;
    Some(in_words(sockets.iter().filter(|socket| !socket.udp && socket.netns == netns)))
}

/// Who listens where, for a user whose port has no listener in the server's namespace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    /// The listeners of that namespace, as in [`named`].
    pub(crate) here: String,
    /// The other namespaces in which something listens at that port, "web (nginx)"; empty if none does.
    pub(crate) at_port: String,
}

/// The listeners of a namespace and those of the other ones at this port; nothing if a listener of the namespace has that port.
pub(crate) fn unless_at(netns: NetnsId, port: u16) -> Option<Elsewhere> {
    elsewhere(&read_port_sockets(&Root::default()).ok()?, netns, port)
}

fn elsewhere(sockets: &[PortSocket], netns: NetnsId, port: u16) -> Option<Elsewhere> {
    let (own, others): (Vec<_>, Vec<_>) = sockets.iter().filter(|socket| !socket.udp).partition(|socket| socket.netns == netns);
    if own.iter().any(|socket| socket.local.1 == port) {
        return None;
    }
    let mut places = Vec::new();
    for socket in others.into_iter().filter(|socket| socket.local.1 == port) {
        let place = socket.netns_name.clone().unwrap_or_else(|| socket.netns.to_string());
        let place = socket.program.as_ref().map_or(place.clone(), |program| format!("{place} ({program})"));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    Some(Elsewhere { here: in_words(own.into_iter()), at_port: places.join(", ") })
}

/// [`named`] of the own namespace; nothing if the address is not this host's.
pub(crate) fn of_this_host(address: SocketAddr) -> Option<String> {
    if is_here(Some(address)) { netns::own().ok().and_then(named) } else { None }
}

fn in_words<'a>(sockets: impl Iterator<Item = &'a PortSocket>) -> String {
    let mut ports: BTreeMap<u16, Option<&str>> = BTreeMap::new();
    for socket in sockets {
        let program = ports.entry(socket.local.1).or_default();
        *program = program.or(socket.program.as_deref());
    }
    let name = |(port, program): (&u16, &Option<&str>)| match program {
        Some(program) => format!("port {port} ({program})"),
        None => format!("port {port}"),
    };
    let names: Vec<String> = ports.iter().take(NAMED_MAX).map(name).collect();
    match (names.is_empty(), ports.len().saturating_sub(NAMED_MAX)) {
        (true, _) => "none".to_owned(),
        (false, 0) => names.join(", "),
        (false, more) => format!("{} and {more} more", names.join(", ")),
    }
}

/// True if the address belongs to this host; always true for a unix socket, which has no address. A datagram socket that is connected to an address of this
/// host has the same address at both ends. It sends nothing.
pub(crate) fn is_here(address: Option<SocketAddr>) -> bool {
    let Some(address) = address else { return true };
    let any: IpAddr = if address.is_ipv4() { [0, 0, 0, 0].into() } else { [0u16; 8].into() };
    let own = UdpSocket::bind((any, 0)).and_then(|socket| socket.connect(address).and_then(|()| socket.local_addr()));
    own.is_ok_and(|own| own.ip() == address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(port: u16, program: Option<&str>) -> PortSocket {
        PortSocket {
            netns: NetnsId(1),
            netns_name: None,
            udp: false,
            local: (IpAddr::from([127, 0, 0, 1]), port),
            drops: None,
            inode: 1,
            uid: 0,
            holder: chokepoint_foreign::Holder::User(0),
            netns_is_users: false,
            program: program.map(str::to_owned),
        }
    }

    #[test]
    fn each_port_is_named_once_with_its_program() {
        let sockets = [listener(80, None), listener(80, Some("nginx")), listener(22, None)];
        assert_eq!(in_words(sockets.iter()), "port 22, port 80 (nginx)");
        assert_eq!(in_words(std::iter::empty()), "none");
        let many: Vec<_> = (1..=10).map(|port| listener(port, None)).collect();
        assert!(in_words(many.iter()).ends_with("port 8 and 2 more"));
    }

    #[test]
    fn a_port_that_has_a_listener_in_another_namespace_only_is_named_with_it() {
        let sockets = [
            listener(80, Some("nginx")),
            PortSocket { netns: NetnsId(2), netns_name: Some("web".to_owned()), ..listener(8_080, Some("node")) },
            PortSocket { netns: NetnsId(3), ..listener(8_080, None) },
        ];
        let found = |port| elsewhere(&sockets, NetnsId(1), port);
        let both = Elsewhere { here: "port 80 (nginx)".to_owned(), at_port: format!("web (node), {}", NetnsId(3)) };
        assert_eq!((found(80), found(8_080)), (None, Some(both)));
        assert_eq!(found(81).map(|found| found.at_port), Some(String::new()));
    }

    #[test]
    fn addresses_of_this_host_are_recognized() {
        assert!(is_here(None) && is_here(Some(([127, 0, 0, 1], 80).into())));
        // No host has a documentation address (RFC 5737).
        assert!(!is_here(Some(([192, 0, 2, 1], 80).into())));
    }
}
