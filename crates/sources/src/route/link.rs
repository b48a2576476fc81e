//! One network interface: `struct ifinfomsg` and its attributes (linux/if_link.h).

use chokepoint_model::observation::Link;

use super::RouteError;
use crate::netlink::wire::{Message, attributes, split, text, u32_at, u64_at};

/// Bytes of `struct ifinfomsg`.
pub(crate) const MESSAGE_BYTES: usize = 16;
pub(crate) const IFLA_IFNAME: u16 = 3;
pub(crate) const IFLA_MTU: u16 = 4;
pub(crate) const IFLA_STATS: u16 = 7;
pub(crate) const IFLA_LINKINFO: u16 = 18;
pub(crate) const IFLA_STATS64: u16 = 23;
/// Within IFLA_LINKINFO.
pub(crate) const IFLA_INFO_KIND: u16 = 1;
const IFF_UP: u32 = 1;

pub(super) fn parse(message: &Message<'_>) -> Result<Link, RouteError> {
    let (fixed, rest) = message.split("ifinfomsg", MESSAGE_BYTES)?;
    let mut link = Link { index: u32_at(fixed, 4).unwrap_or(0), up: u32_at(fixed, 8).unwrap_or(0) & IFF_UP != 0, ..Link::default() };
    let mut wide = false;
    for attribute in attributes(rest) {
        let attribute = attribute?;
        match attribute.kind {
            IFLA_IFNAME => link.name = text(attribute.value),
            IFLA_MTU => link.mtu = u32_at(attribute.value, 0).unwrap_or(0),
            IFLA_LINKINFO => {
                for inner in attributes(attribute.value) {
                    let inner = inner?;
                    if inner.kind == IFLA_INFO_KIND {
                        link.kind = Some(text(inner.value));
                    }
                }
            }
            IFLA_STATS64 => {
                wide = true;
                counters(&mut link, |word| u64_at(attribute.value, 8 * word).unwrap_or(0));
            }
            // The same counters in 32 bits, for kernels without the wide ones.
            IFLA_STATS if !wide => counters(&mut link, |word| u64::from(u32_at(attribute.value, 4 * word).unwrap_or(0))),
            _ => {}
        }
    }
    Ok(link)
}

/// The first words of `struct rtnl_link_stats64`, and of its variant with 32 bits.
fn counters(link: &mut Link, word: impl Fn(usize) -> u64) {
    link.rx_packets = word(0);
    link.tx_packets = word(1);
    link.rx_bytes = word(2);
    link.tx_bytes = word(3);
    link.rx_errors = word(4);
    link.tx_errors = word(5);
    link.rx_dropped = word(6);
    link.tx_dropped = word(7);
}

/// Our own message: interface index and its speed in bits a second.
pub(super) fn parse_speed(message: &Message<'_>) -> Result<(u32, u64), RouteError> {
    let (fixed, _) = split(message.body, "link speed", 8)?;
    Ok((u32_at(fixed, 0).unwrap_or(0), u64::from(u32_at(fixed, 4).unwrap_or(0)) * 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::{attribute, request};
    use crate::route::{LINK_SPEED, RTM_NEWLINK, parse_links};

    fn body() -> Vec<u8> {
        let mut body = vec![0; MESSAGE_BYTES];
        body[4] = 7;
        body[8] = 1;
        let wide: Vec<u8> = (1..=8_u64).flat_map(|word| (word * 1_000_000_000_000).to_ne_bytes()).collect();
        let narrow: Vec<u8> = (1..=8_u32).flat_map(u32::to_ne_bytes).collect();
        body.extend(attribute(IFLA_IFNAME, b"eth0\0"));
        body.extend(attribute(IFLA_MTU, &1500_u32.to_ne_bytes()));
        body.extend(attribute(IFLA_STATS64, &wide));
        body.extend(attribute(IFLA_STATS, &narrow));
        body.extend(attribute(IFLA_LINKINFO, &attribute(IFLA_INFO_KIND, b"veth\0")));
        body
    }

    #[test]
    fn wide_counters_win_in_any_order() {
        let bytes = [request(RTM_NEWLINK, 2, 0, &body()), request(LINK_SPEED, 0, 0, &[7, 0, 0, 0, 16, 39, 0, 0])].concat();
        let link = &parse_links(&bytes).unwrap()[0];
        assert_eq!((link.index, link.name.as_str(), link.kind.as_deref(), link.up, link.mtu), (7, "eth0", Some("veth"), true, 1500));
        assert_eq!((link.rx_packets, link.tx_dropped), (1_000_000_000_000, 8_000_000_000_000));
        assert_eq!(link.speed_bits_per_s, Some(10_000_000_000));
    }

    #[test]
    fn every_cut_gives_a_link_or_an_error() {
        let body = body();
        for cut in 0..body.len() {
            let parsed = parse_links(&request(RTM_NEWLINK, 2, 0, &body[..cut]));
            assert!(cut >= MESSAGE_BYTES || parsed.is_err(), "cut at {cut}");
        }
        assert!(parse_links(&request(LINK_SPEED, 0, 0, &[7, 0, 0])).is_err());
    }
}
