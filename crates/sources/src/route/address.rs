//! One address of an interface: `struct ifaddrmsg` and its attributes (linux/if_addr.h).

use std::net::IpAddr;

use chokepoint_model::observation::Address;

use super::RouteError;
use crate::netlink::wire::{Message, attributes, u32_at};

/// Bytes of `struct ifaddrmsg`.
pub(crate) const MESSAGE_BYTES: usize = 8;
pub(crate) const IFA_ADDRESS: u16 = 1;
pub(crate) const IFA_LOCAL: u16 = 2;

/// Nothing for a message without an internet address (other families).
pub(super) fn parse(message: &Message<'_>) -> Result<Option<Address>, RouteError> {
    let (fixed, rest) = message.split("ifaddrmsg", MESSAGE_BYTES)?;
    let (mut address, mut local) = (None, None);
    for attribute in attributes(rest) {
        let attribute = attribute?;
        match attribute.kind {
            IFA_ADDRESS => address = ip(attribute.value),
            // On a point-to-point link IFA_ADDRESS is the other end.
            IFA_LOCAL => local = ip(attribute.value),
            _ => {}
        }
    }
    Ok(local.or(address).map(|ip| Address { ip, prefix_bits: fixed[1], link: u32_at(fixed, 4).unwrap_or(0) }))
}

/// An address of four or sixteen bytes.
pub(crate) fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => bytes.first_chunk::<4>().map(|bytes| IpAddr::from(*bytes)),
        16 => bytes.first_chunk::<16>().map(|bytes| IpAddr::from(*bytes)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::request;
    use crate::route::{RTM_NEWADDR, parse_addresses};

    #[test]
    fn the_local_end_of_a_point_to_point_link_is_the_address() {
        let mut body = vec![2, 32, 0, 0, 5, 0, 0, 0];
        body.extend_from_slice(&[8, 0, 1, 0, 10, 0, 0, 2, 8, 0, 2, 0, 10, 0, 0, 1]);
        let found = parse_addresses(&request(RTM_NEWADDR, 2, 0, &body)).unwrap();
        assert_eq!(found, [Address { ip: "10.0.0.1".parse().unwrap(), prefix_bits: 32, link: 5 }]);
        for cut in 0..body.len() {
            let _ = parse_addresses(&request(RTM_NEWADDR, 2, 0, &body[..cut]));
        }
        assert_eq!(parse_addresses(&request(RTM_NEWADDR, 2, 0, &body[..8])).unwrap(), []);
    }
}
