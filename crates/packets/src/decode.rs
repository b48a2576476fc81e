//! Finds the TCP segment in the bytes of a packet: link layer, VLAN tags, IPv4 and IPv6 with options, extension headers and fragments.

mod big_endian;
pub(crate) mod fragment;
mod ip;
mod link;
pub(crate) mod packet;
pub(crate) mod tcp;

use fragment::Fragments;
use packet::Decoded;

use crate::capture::Packet;

/// Decodes one packet.
pub(crate) fn decode<'a>(packet: &Packet<'a>, fragments: &'a mut Fragments) -> Decoded<'a> {
    match link::network(packet) {
        link::Found::Ip(network) => ip::segment(network, packet.at_ns, fragments),
        link::Found::Other => Decoded::Other,
        link::Found::Unreadable => Decoded::Unreadable,
        link::Found::UnknownLink => Decoded::UnknownLink,
    }
}
