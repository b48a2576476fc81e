//! IPv4 (RFC 791) and IPv6 with its extension headers (RFC 8200).

use super::big_endian::{be16, be32};
use super::fragment::{Fragment, Fragments};
use super::packet::{Addresses, Decoded, Network};
use super::tcp::{self, Ends};

const TCP: u8 = 6;
/// IPv6 extension headers that are skipped: hop-by-hop, routing, destination options, mobility, HIP, Shim6.
const EXTENSIONS: [u8; 6] = [0, 43, 60, 135, 139, 140];
const AUTHENTICATION: u8 = 51;
const FRAGMENT: u8 = 44;
/// Most extension headers that are followed.
const EXTENSIONS_MAX: usize = 16;

pub(super) fn segment<'a>(network: Network<'a>, at_ns: i64, fragments: &'a mut Fragments) -> Decoded<'a> {
    match network.bytes.first().map(|byte| byte >> 4) {
        Some(4) => v4(network, at_ns, fragments),
        Some(6) => v6(network, at_ns, fragments),
        Some(_) => Decoded::Unreadable,
        None => Decoded::Unreadable,
    }
}

/// An IPv4 address mapped into IPv6.
fn mapped(address: u32) -> u128 {
    0xffff_0000_0000 | u128::from(address)
}

fn v4<'a>(network: Network<'a>, at_ns: i64, fragments: &'a mut Fragments) -> Decoded<'a> {
    let bytes = network.bytes;
    let header = usize::from(bytes[0] & 15) * 4;
    let (Some(from), Some(to)) = (be32(bytes, 12), be32(bytes, 16)) else { return Decoded::Unreadable };
    if header < 20 {
        return Decoded::Unreadable;
    }
    let addresses = Addresses { from: mapped(from), to: mapped(to) };
    let protocol = bytes[9];
    // Segmentation offload leaves the length zero if the packet is longer than the field allows.
    let length = match usize::from(be16(bytes, 2).unwrap_or(0)) {
        0 => network.wire_bytes,
        length => length,
    };
    let Some(payload_bytes) = length.checked_sub(header) else { return Decoded::Unreadable };
    let place = be16(bytes, 6).unwrap_or(0);
    let payload = cut(bytes, header, payload_bytes);
    if place & 0x3fff != 0 {
        let piece = Fragment {
            addresses,
            id: u32::from(be16(bytes, 4).unwrap_or(0)),
            protocol,
            offset: usize::from(place & 0x1fff) * 8,
            more: place & 0x2000 != 0,
            bytes: payload,
            wire_bytes: payload_bytes,
        };
        return whole(piece, at_ns, fragments);
    }
    transport(protocol, addresses, payload, payload_bytes)
}

fn v6<'a>(network: Network<'a>, at_ns: i64, fragments: &'a mut Fragments) -> Decoded<'a> {
    let bytes = network.bytes;
    let address = |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk()).map(|address| u128::from_be_bytes(*address));
    let (Some(from), Some(to)) = (address(8), address(24)) else { return Decoded::Unreadable };
    let addresses = Addresses { from, to };
    let mut left = match usize::from(be16(bytes, 4).unwrap_or(0)) {
        0 => network.wire_bytes.saturating_sub(40),
        length => length,
    };
    let (mut next, mut at) = (bytes[6], 40);
    for _ in 0..EXTENSIONS_MAX {
        let length = match next {
            next if EXTENSIONS.contains(&next) => bytes.get(at + 1).map(|units| (usize::from(*units) + 1) * 8),
            AUTHENTICATION => bytes.get(at + 1).map(|units| (usize::from(*units) + 2) * 4),
            FRAGMENT => Some(8),
            _ => return transport(next, addresses, cut(bytes, at, left), left),
        };
        let (Some(length), Some(following)) = (length, bytes.get(at)) else { return Decoded::Unreadable };
        let Some(rest) = left.checked_sub(length) else { return Decoded::Unreadable };
        if next == FRAGMENT {
            let (Some(place), Some(id)) = (be16(bytes, at + 2), be32(bytes, at + 4)) else { return Decoded::Unreadable };
            let (offset, more) = (usize::from(place & 0xfff8), place & 1 != 0);
            if offset > 0 || more {
                let piece =
                    Fragment { addresses, id, protocol: *following, offset, more, bytes: cut(bytes, at + 8, rest), wire_bytes: rest };
                return whole(piece, at_ns, fragments);
            }
        }
        (next, at, left) = (*following, at + length, rest);
    }
    Decoded::Other
}

/// The captured part of `length` bytes that begin at `at`.
fn cut(bytes: &[u8], at: usize, length: usize) -> &[u8] {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.get(..length).unwrap_or(rest)
}

fn whole<'a>(piece: Fragment<'_>, at_ns: i64, fragments: &'a mut Fragments) -> Decoded<'a> {
    let (addresses, protocol) = (piece.addresses, piece.protocol);
    if protocol != TCP {
        return Decoded::Other;
    }
    match fragments.add(&piece, at_ns) {
        Some(payload) => transport(protocol, addresses, payload, payload.len()),
        None => Decoded::Fragment,
    }
}

fn transport(protocol: u8, addresses: Addresses, payload: &[u8], wire_bytes: usize) -> Decoded<'_> {
    if protocol != TCP {
        return Decoded::Other;
    }
    match tcp::parse(payload, wire_bytes) {
        Some(mut segment) => {
            segment.ends = Ends { from: (addresses.from, segment.ends.from.1), to: (addresses.to, segment.ends.to.1) };
            Decoded::Tcp(segment)
        }
        None => Decoded::Unreadable,
    }
}
