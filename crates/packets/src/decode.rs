//! From the bytes of a packet to its TCP segment: link layer, VLAN tags, IPv4 and IPv6 with their options, extension headers and fragments.

pub(crate) mod fragment;
mod ip;
mod link;
pub(crate) mod tcp;

use fragment::Fragments;
use tcp::Segment;

use crate::capture::Packet;

/// What a packet was.
#[derive(Debug)]
pub(crate) enum Decoded<'a> {
    /// A TCP segment.
    Tcp(Segment<'a>),
    /// Something else that is well-formed as far as it was looked at.
    Other,
    /// A fragment that does not make a whole datagram yet.
    Fragment,
    /// So little of it was kept, or it is so malformed, that it cannot be told.
    Unreadable,
    /// Its link layer is not known.
    UnknownLink,
}

/// A network-layer packet within a captured one.
#[derive(Debug, Clone, Copy)]
struct Network<'a> {
    /// Bytes that were kept.
    bytes: &'a [u8],
    /// Bytes that it had on the wire, padding of the link layer included.
    wire_bytes: usize,
}

/// Decodes one packet.
pub(crate) fn decode<'a>(packet: &Packet<'a>, fragments: &'a mut Fragments) -> Decoded<'a> {
    match link::network(packet) {
        link::Found::Ip(network) => ip::segment(network, packet.at_ns, fragments),
        link::Found::Other => Decoded::Other,
        link::Found::Unreadable => Decoded::Unreadable,
        link::Found::UnknownLink => Decoded::UnknownLink,
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word))
}
