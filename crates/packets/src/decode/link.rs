//! Link layers: Ethernet with any number of VLAN tags, Linux "cooked" captures, loopback, raw IP (<https://www.tcpdump.org/linktypes.html>).

use super::big_endian::be16;
use super::packet::Network;
use crate::capture::Packet;

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
/// DLT_RAW in the numbering of some systems, and LINKTYPE_RAW.
const RAW: [u16; 3] = [12, 14, 101];
const LOOP: u16 = 108;
const SLL: u16 = 113;
const SLL2: u16 = 276;
const IPV4: u16 = 228;
const IPV6: u16 = 229;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad, and the older tag.
const ETHERTYPES_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const ETHERTYPE_PPPOE: u16 = 0x8864;
/// Most tags of one frame that are followed.
const TAGS_MAX: usize = 8;

/// The contents of a frame.
pub(super) enum Found<'a> {
    Ip(Network<'a>),
    Other,
    Unreadable,
    UnknownLink,
}

pub(super) fn network<'a>(packet: &Packet<'a>) -> Found<'a> {
    let whole = Network { bytes: packet.bytes, wire_bytes: packet.wire_bytes as usize };
    match packet.link {
        ETHERNET => ethertype(whole, 12),
        SLL => ethertype(whole, 14),
        SLL2 => match be16(packet.bytes, 0) {
            Some(kind) => by_type(kind, after(whole, 20)),
            None => Found::Unreadable,
        },
        NULL | LOOP => family(whole),
        IPV4 | IPV6 => Found::Ip(whole),
        link if RAW.contains(&link) => Found::Ip(whole),
        _ => Found::UnknownLink,
    }
}

fn after(network: Network<'_>, bytes: usize) -> Network<'_> {
    Network { bytes: network.bytes.get(bytes..).unwrap_or_default(), wire_bytes: network.wire_bytes.saturating_sub(bytes) }
}

/// A type field at `at`, tags after it, then the packet.
fn ethertype(frame: Network<'_>, mut at: usize) -> Found<'_> {
    for _ in 0..TAGS_MAX {
        let Some(kind) = be16(frame.bytes, at) else { return Found::Unreadable };
        if !ETHERTYPES_VLAN.contains(&kind) {
            return by_type(kind, after(frame, at + 2));
        }
        at += 4;
    }
    Found::Other
}

fn by_type(kind: u16, rest: Network<'_>) -> Found<'_> {
    match kind {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => Found::Ip(rest),
        // Six bytes of PPPoE and two of PPP (RFC 2516): 0x21 is IPv4, 0x57 is IPv6.
        ETHERTYPE_PPPOE => match be16(rest.bytes, 6) {
            Some(0x21 | 0x57) => Found::Ip(after(rest, 8)),
            Some(_) => Found::Other,
            None => Found::Unreadable,
        },
        _ => Found::Other,
    }
}

/// Four bytes of address family, in the byte order of the capturing host (NULL) or of the network (LOOP). IPv4 is 2 everywhere, IPv6 one of
/// three numbers.
fn family(frame: Network<'_>) -> Found<'_> {
    let Some(word) = frame.bytes.first_chunk::<4>() else { return Found::Unreadable };
    let is_ip = |family: u32| matches!(family, 2 | 24 | 28 | 30 | 10);
    if is_ip(u32::from_be_bytes(*word)) || is_ip(u32::from_le_bytes(*word)) { Found::Ip(after(frame, 4)) } else { Found::Other }
}
