//! Finds the TCP segment in the bytes of a packet: link layer, VLAN tags, IPv4 and IPv6 with options, extension headers and fragments.

pub(crate) mod fragment;
mod ip;
mod link;
pub(crate) mod tcp;

use fragment::Fragments;
use tcp::Segment;

use crate::capture::Packet;

/// The kind of a packet.
#[derive(Debug)]
pub(crate) enum Decoded<'a> {
    /// A TCP segment.
    Tcp(Segment<'a>),
    /// Another packet, well-formed as far as it was parsed.
    Other,
    /// A fragment of a datagram that is not complete yet.
    Fragment,
    /// A packet that cannot be decoded: malformed, or too few bytes were captured.
    Unreadable,
    /// A packet of an unknown link layer.
    UnknownLink,
}

/// A network-layer packet within a captured packet.
#[derive(Debug, Clone, Copy)]
struct Network<'a> {
    /// The captured bytes.
    bytes: &'a [u8],
    /// Its bytes on the wire, with the link layer's padding.
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
