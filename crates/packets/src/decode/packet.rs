//! A packet at the steps of its decoding: its network layer, its addresses, and its kind.

use super::tcp::Segment;

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
pub(super) struct Network<'a> {
    /// The captured bytes.
    pub(super) bytes: &'a [u8],
    /// Its bytes on the wire, with the link layer's padding.
    pub(super) wire_bytes: usize,
}

/// The addresses of a packet, with IPv4 as `::ffff:a.b.c.d` (RFC 4291, 2.5.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Addresses {
    pub(super) from: u128,
    pub(super) to: u128,
}
