//! What rules compare: fields of packets and of their connections, with the names that nft(8) has for them.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::netlink::wire::text;

/// A field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Field {
    /// The address that a packet comes from.
    Source(&'static str),
    /// Another address.
    Address(&'static str),
    SourcePort,
    DestinationPort,
    TcpFlags,
    /// Number of the transport protocol.
    Protocol,
    /// IPv4 or IPv6.
    Family,
    /// State of the tracked connection.
    State,
    /// The name of an interface.
    Interface(&'static str),
    /// Any other, with its name.
    Number(String),
}

impl Default for Field {
    fn default() -> Self {
        Field::Number("...".to_owned())
    }
}

/// Bases of a payload (enum nft_payload_bases).
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;

/// The field at an offset of a header, by its length (RFC 791, RFC 8200, RFC 9293).
pub(super) fn in_header(base: u32, offset: u32, length: u32) -> Field {
    match (base, offset, length) {
        (NETWORK, 12, 1..=4) => Field::Source("ip saddr"),
        (NETWORK, 16, 1..=4) => Field::Address("ip daddr"),
        // A shorter part is a prefix. One byte is the time to live of IPv4.
        (NETWORK, 8, 2..=16) => Field::Source("ip6 saddr"),
        (NETWORK, 24, 1..=16) => Field::Address("ip6 daddr"),
        (NETWORK, 9, 1) | (NETWORK, 6, 1) => Field::Protocol,
        (TRANSPORT, 0, 2) => Field::SourcePort,
        (TRANSPORT, 2, 2) => Field::DestinationPort,
        (TRANSPORT, 13, 1) => Field::TcpFlags,
        _ => {
            let name = ["ll", "nh", "th", "ih"].get(base as usize).copied().unwrap_or("?");
            Field::Number(format!("@{name},{},{}", u64::from(offset) * 8, u64::from(length) * 8))
        }
    }
}

impl Field {
    /// A field of "meta" (enum nft_meta_keys).
    pub(super) fn meta(key: u32) -> Self {
        const NAMES: [&str; 25] = [
            "length",
            "protocol",
            "priority",
            "mark",
            "iif",
            "oif",
            "iifname",
            "oifname",
            "iiftype",
            "oiftype",
            "skuid",
            "skgid",
            "nftrace",
            "rtclassid",
            "secmark",
            "nfproto",
            "l4proto",
            "ibrname",
            "obrname",
            "pkttype",
            "cpu",
            "iifgroup",
            "oifgroup",
            "cgroup",
            "random",
        ];
        match key {
            6 => Field::Interface("iifname"),
            7 => Field::Interface("oifname"),
            15 => Field::Family,
            16 => Field::Protocol,
            _ => Field::Number(format!("meta {}", NAMES.get(key as usize).unwrap_or(&"..."))),
        }
    }

    /// A field of "ct" (enum nft_ct_keys).
    pub(super) fn connection(key: u32) -> Self {
        const NAMES: [&str; 18] = [
            "state",
            "direction",
            "status",
            "mark",
            "secmark",
            "expiration",
            "helper",
            "l3proto",
            "saddr",
            "daddr",
            "protocol",
            "proto-src",
            "proto-dst",
            "label",
            "packets",
            "bytes",
            "avgpkt",
            "zone",
        ];
        match key {
            0 => Field::State,
            8 => Field::Source("ct saddr"),
            _ => Field::Number(format!("ct {}", NAMES.get(key as usize).unwrap_or(&"..."))),
        }
    }

    /// True for fields that nft names after the transport protocol: "tcp dport".
    pub(super) fn is_of_transport(&self) -> bool {
        self.is_of_port() || matches!(self, Field::TcpFlags)
    }

    pub(super) fn is_of_port(&self) -> bool {
        matches!(self, Field::SourcePort | Field::DestinationPort)
    }

    pub(super) fn name(&self) -> String {
        match self {
            Field::Source(name) | Field::Address(name) | Field::Interface(name) => (*name).to_owned(),
            Field::SourcePort => "sport".to_owned(),
            Field::DestinationPort => "dport".to_owned(),
            Field::TcpFlags => "flags".to_owned(),
            Field::Protocol => "meta l4proto".to_owned(),
            Field::Family => "meta nfproto".to_owned(),
            Field::State => "ct state".to_owned(),
            Field::Number(name) => name.clone(),
        }
    }

    /// A value of this field.
    fn shown(&self, bytes: &[u8]) -> String {
        match (self, bytes) {
            (Field::Source(name) | Field::Address(name), _) => address(name.starts_with("ip6"), bytes),
            (Field::SourcePort | Field::DestinationPort, [a, b]) => u16::from_be_bytes([*a, *b]).to_string(),
            (Field::Protocol, [6]) => "tcp".to_owned(),
            (Field::Protocol, [17]) => "udp".to_owned(),
            (Field::Protocol, [1]) => "icmp".to_owned(),
            (Field::Protocol, [58]) => "ipv6-icmp".to_owned(),
            (Field::Protocol, [other]) => other.to_string(),
            (Field::Family, [2]) => "ipv4".to_owned(),
            (Field::Family, [10]) => "ipv6".to_owned(),
            (Field::TcpFlags, [bits]) => flags(u32::from(*bits), &["fin", "syn", "rst", "psh", "ack", "urg", "ecn", "cwr"]),
            // The kernel keeps a state as a bit, in the host's order (NF_CT_STATE_BIT, linux/netfilter/nf_conntrack_common.h).
            (Field::State, [a, b, c, d]) => {
                let bits = u32::from_ne_bytes([*a, *b, *c, *d]);
                flags(bits, &["invalid", "established", "related", "new", "", "", "untracked"])
            }
            (Field::Interface(_), _) => format!("\"{}\"", text(bytes)),
            // Numbers of packets are in network order, those of the kernel in the host's.
            (Field::Number(name), [a, b, c, d]) if !name.starts_with('@') => u32::from_ne_bytes([*a, *b, *c, *d]).to_string(),
            _ => hexadecimal(bytes),
        }
    }
}

/// "tcp dport 80", "ct state invalid,new", "tcp flags & (syn|ack) == syn": a field, its mask, what it is compared with.
pub(super) fn value(field: &Field, bytes: &[u8], mask: Option<&[u8]>, operator: &str) -> String {
    let is_zero = bytes.iter().all(|byte| *byte == 0);
    match (field, mask) {
        // "ct state new" is a mask that must leave something.
        (Field::State, Some(mask)) if is_zero && operator.starts_with('!') => format!("{} {}", field.name(), field.shown(mask)),
        (Field::Source(_) | Field::Address(_), Some(mask)) => format!("{} {operator}{}/{}", field.name(), field.shown(bytes), ones(mask)),
        (Field::Number(_) | Field::TcpFlags | Field::State, Some(mask)) => {
            let operator = if operator.is_empty() { "== " } else { operator };
            format!("{} & ({}) {operator}{}", field.name(), field.shown(mask), field.shown(bytes))
        }
        (_, Some(_)) => format!("{} & ... {operator}{}", field.name(), field.shown(bytes)),
        (_, None) => format!("{} {operator}{}", field.name(), field.shown(bytes)),
    }
}

/// "1-5": a range's two ends.
pub(super) fn between(field: &Field, from: &[u8], to: &[u8], operator: &str) -> String {
    format!("{} {operator}{}-{}", field.name(), field.shown(from), field.shown(to))
}

fn flags(bits: u32, names: &[&str]) -> String {
    let named: Vec<&str> =
        names.iter().enumerate().filter(|(at, name)| bits >> at & 1 == 1 && !name.is_empty()).map(|(_, name)| *name).collect();
    if named.is_empty() { format!("{bits:#x}") } else { named.join("|") }
}

/// An address, of which a rule may compare the first bytes only: "10.1.0.0/16".
fn address(is_v6: bool, bytes: &[u8]) -> String {
    let whole = if is_v6 || bytes.len() > 4 { 16 } else { 4 };
    let mut all = [0; 16];
    all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let [a, b, c, d, ..] = all;
    let shown = if whole == 4 { Ipv4Addr::new(a, b, c, d).to_string() } else { Ipv6Addr::from(all).to_string() };
    if bytes.len() < whole { format!("{shown}/{}", 8 * bytes.len()) } else { shown }
}

fn ones(mask: &[u8]) -> u32 {
    mask.iter().map(|byte| byte.count_ones()).sum()
}

fn hexadecimal(bytes: &[u8]) -> String {
    const BYTES_MAX: usize = 16;
    let digits: String = bytes.iter().take(BYTES_MAX).map(|byte| format!("{byte:02x}")).collect();
    format!("0x{digits}{}", if bytes.len() > BYTES_MAX { "..." } else { "" })
}
