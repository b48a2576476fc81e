//! Redacts addresses in binary entries in place, so that the messages still parse. Crate `recording` redacts text entries.

use std::net::{IpAddr, Ipv6Addr};

use chokepoint_recording::{Entry, Outcome};

use crate::netlink::wire::{HEADER_BYTES, Message, WireError, attributes, messages};
use crate::route::{LINK_SPEED, RTM_NEWADDR, RTM_NEWLINK, RTM_NEWQDISC, RTM_NEWTCLASS, address, link};
use crate::sock_diag::crowd::CROWD;
use crate::sock_diag::inet;
use crate::sock_diag::protocol::{AF_INET, AF_INET6, AF_UNIX, SOCK_DIAG_BY_FAMILY, TCPDIAG_GETSOCK};
use crate::sock_diag::requests::{REQUESTS, are_sockets};
use crate::source;
use crate::table::Redact;

/// Replaces every address in an entry by the result of `address`, and clears everything that no parser reads (hardware addresses, aliases, tunnel ends).
/// Entries of other kinds are unchanged. Bytes that cannot be parsed could contain an address and are replaced by a failure.
pub fn redact(entry: &Entry, address: &mut dyn FnMut(IpAddr) -> IpAddr) -> Entry {
    let kind = source(&entry.source).map_or(Redact::None, |source| source.redact);
    let Outcome::Ok(bytes) = &entry.outcome else { return entry.clone() };
    // Items with other names are counts and reasons in text, without addresses.
    let is_whole = entry.item.is_empty() || entry.item == CROWD || (entry.source == REQUESTS.name && are_sockets(&entry.item));
    if !is_whole || !matches!(kind, Redact::InetDiag | Redact::UnixDiag | Redact::RouteNetlink) {
        return entry.clone();
    }
    let outcome = match rewritten(bytes, kind, address) {
        Ok(bytes) => Outcome::Ok(bytes),
        Err(error) => Outcome::Failed(format!("left out of this recording, because its addresses could not be found: {error}"), None),
    };
    Entry { outcome, ..entry.clone() }
}

fn rewritten(bytes: &[u8], kind: Redact, address: &mut dyn FnMut(IpAddr) -> IpAddr) -> Result<Vec<u8>, WireError> {
    let mut out = bytes.to_vec();
    for message in messages(bytes) {
        let message = message?;
        // The header's port id is the pid of the observer, which is no secret.
        let at = message.body_at;
        let body = &mut out[at..at + message.body.len()];
        if kind == Redact::RouteNetlink {
            match message.kind {
                RTM_NEWADDR => address_message(&message, body, address)?,
                RTM_NEWLINK => link_message(&message, body)?,
                RTM_NEWQDISC | RTM_NEWTCLASS | LINK_SPEED => {}
                _ => body.fill(0),
            }
        } else {
            match (message.kind, message.body.first()) {
                (SOCK_DIAG_BY_FAMILY | TCPDIAG_GETSOCK, Some(&family @ (AF_INET | AF_INET6))) => inet_message(body, family, address),
                (SOCK_DIAG_BY_FAMILY, Some(&AF_UNIX)) => {}
                _ => body.fill(0),
            }
        }
    }
    Ok(out)
}

fn inet_message(body: &mut [u8], family: u8, address: &mut dyn FnMut(IpAddr) -> IpAddr) {
    let width = if family == AF_INET { 4 } else { 16 };
    for at in inet::ADDRESSES_AT {
        if let Some(place) = body.get_mut(at..at + width) {
            replace(place, address);
        }
    }
}

fn address_message(message: &Message<'_>, body: &mut [u8], address: &mut dyn FnMut(IpAddr) -> IpAddr) -> Result<(), WireError> {
    // Broadcast (4), anycast (5) and multicast (7) addresses; and what is no address: label (3), cache info (6), flags (8).
    const ADDRESSES: [u16; 5] = [address::IFA_ADDRESS, address::IFA_LOCAL, 4, 5, 7];
    const KEPT: [u16; 3] = [3, 6, 8];
    let (_, rest) = message.split("ifaddrmsg", address::MESSAGE_BYTES)?;
    for attribute in attributes(rest) {
        let attribute = attribute?;
        let at = address::MESSAGE_BYTES + attribute.value_at;
        let place = &mut body[at..at + attribute.value.len()];
        if ADDRESSES.contains(&attribute.kind) {
            replace(place, address);
        } else if !KEPT.contains(&attribute.kind) {
            place.fill(0);
        }
    }
    Ok(())
}

fn link_message(message: &Message<'_>, body: &mut [u8]) -> Result<(), WireError> {
    const KEPT: [u16; 4] = [link::IFLA_IFNAME, link::IFLA_MTU, link::IFLA_STATS, link::IFLA_STATS64];
    let (_, rest) = message.split("ifinfomsg", link::MESSAGE_BYTES)?;
    for attribute in attributes(rest) {
        let attribute = attribute?;
        let at = link::MESSAGE_BYTES + attribute.value_at;
        if attribute.kind == link::IFLA_LINKINFO {
            for inner in attributes(attribute.value) {
                let inner = inner?;
                if inner.kind != link::IFLA_INFO_KIND {
                    body[at + inner.value_at..at + inner.value_at + inner.value.len()].fill(0);
                }
            }
        } else if attribute.kind == link::IFLA_IFNAME {
            name(&mut body[at..at + attribute.value.len()]);
        } else if !KEPT.contains(&attribute.kind) {
            body[at..at + attribute.value.len()].fill(0);
        }
    }
    Ok(())
}

/// Clears the hardware address in an interface name ("enx001122334455", systemd.net-naming-scheme(7)).
fn name(bytes: &mut [u8]) {
    if let Some(digits) = bytes.get_mut(3..15)
        && digits.iter().all(u8::is_ascii_hexdigit)
    {
        digits.fill(b'0');
    }
}

/// Replaces an address of four or sixteen bytes. An IPv4 replacement of an IPv6 address is mapped; other misfits become zeros.
fn replace(place: &mut [u8], address: &mut dyn FnMut(IpAddr) -> IpAddr) {
    let Some(old) = address::ip(place) else {
        place.fill(0);
        return;
    };
    match (address(old), place.len()) {
        (IpAddr::V4(new), 4) => place.copy_from_slice(&new.octets()),
        (IpAddr::V6(new), 16) => place.copy_from_slice(&new.octets()),
        (IpAddr::V4(new), 16) => place.copy_from_slice(&new.to_ipv6_mapped().octets()),
        _ => place.fill(0),
    }
}

const _: () = assert!(HEADER_BYTES == 16 && size_of::<Ipv6Addr>() == 16, "the offsets above rest on both");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::request;
    use chokepoint_recording::Scope;
    use proptest::prelude::*;

    fn entry(source: &str, bytes: Vec<u8>) -> Entry {
        Entry { at_us: 1, source: source.into(), scope: Scope::Netns(1), item: String::new(), outcome: Outcome::Ok(bytes) }
    }

    fn stand_in(ip: IpAddr) -> IpAddr {
        match ip {
            IpAddr::V4(_) => "198.18.0.1".parse().unwrap(),
            IpAddr::V6(_) => "2001:db8::1".parse().unwrap(),
        }
    }

    #[test]
    fn sockets_keep_everything_except_their_addresses() {
        let mut body = vec![AF_INET, 1, 0, 0, 0, 80, 0x30, 0x39];
        body.resize(72, 0);
        body[8..12].copy_from_slice(&[8, 8, 8, 8]);
        body[24..28].copy_from_slice(&[9, 9, 9, 9]);
        let before = entry("sockets", request(SOCK_DIAG_BY_FAMILY, 2, 1, &body));
        let after = redact(&before, &mut stand_in);
        let Outcome::Ok(bytes) = &after.outcome else { panic!("it parses") };
        let sockets = crate::sock_diag::sockets::parse_sockets(bytes).unwrap();
        assert_eq!(format!("{:?}", sockets[0].address).matches("198.18.0.1").count(), 2);
        assert!(!bytes.windows(4).any(|window| window == [8; 4] || window == [9; 4]));
        assert_eq!(redact(&after, &mut stand_in), after, "twice is once");
    }

    #[test]
    fn a_malformed_message_is_left_out() {
        let mut bytes = request(SOCK_DIAG_BY_FAMILY, 2, 1, &[2; 72]);
        bytes.pop();
        assert!(matches!(redact(&entry("sockets", bytes), &mut stand_in).outcome, Outcome::Failed(..)));
    }

    #[test]
    fn a_link_loses_its_hardware_address() {
        let mut body = vec![0; 16];
        body.extend_from_slice(&[10, 0, 1, 0, 2, 0x11, 0x22, 0x33, 0x44, 0x55, 0, 0]);
        body.extend_from_slice(&[20, 0, 3, 0]);
        body.extend_from_slice(b"enx021122334455\0");
        let after = redact(&entry("links", request(RTM_NEWLINK, 2, 1, &body)), &mut stand_in);
        let Outcome::Ok(bytes) = &after.outcome else { panic!("it parses") };
        assert_eq!(crate::route::parse_links(bytes).unwrap()[0].name, "enx000000000000");
        assert!(!bytes.windows(3).any(|window| window == [0x11, 0x22, 0x33]));
    }

    proptest! {
        #[test]
        fn any_bytes_keep_their_length_or_fail(body in proptest::collection::vec(any::<u8>(), 0..200), kind in 0_u16..50) {
            let bytes = request(kind, 2, 1, &body);
            for source in ["sockets", "links", "addresses", "qdiscs"] {
                match redact(&entry(source, bytes.clone()), &mut stand_in).outcome {
                    Outcome::Ok(after) => prop_assert_eq!(after.len(), bytes.len()),
                    other => prop_assert!(matches!(other, Outcome::Failed(..))),
                }
            }
        }
    }
}
