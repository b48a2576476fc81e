//! Addresses that HAProxy listens on or connects to (`str2sa_range` of src/tools.c; its manual, sections 4.2 "bind" and 5.2 "server").

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::quantity;

/// Most ports of one range: `bind :20000-20100` is a socket for each.
const RANGE_MAX: u16 = 1_024;

/// An address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// An address and port. The unspecified address means every address.
    Ip(IpAddr, u16),
    /// A unix socket's path. An abstract one begins with `@`, as in kernel tables.
    Unix(String),
    /// A name to resolve, and a port.
    Name(String, u16),
    /// What no address can be made of: a port that the client's one decides, a descriptor that HAProxy was given, UDP.
    Unknown,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V6(address), port) => write!(f, "[{address}]:{port}"),
            Self::Ip(IpAddr::V4(address), port) => write!(f, "{address}:{port}"),
            Self::Unix(path) => write!(f, "unix@{path}"),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// The addresses of a word of `bind`: several with commas, and a range of ports. Only [`Address::Unknown`] if that is true of one of them.
pub(super) fn listens(word: &str) -> Vec<Address> {
    let all: Vec<Address> = word.split(',').flat_map(|one| each_port(one).unwrap_or_else(|| vec![parse(one)])).collect();
    if all.contains(&Address::Unknown) { vec![Address::Unknown] } else { all }
}

/// The addresses of a range of ports; nothing if the word has none.
fn each_port(word: &str) -> Option<Vec<Address>> {
    let (host, ports) = word.rsplit_once(':')?;
    let (low, high) = ports.split_once('-')?;
    let port = |text: &str| u16::try_from(quantity::number(text)?).ok();
    let (low, high) = (port(low)?, port(high)?);
    // More ports than that are not compared with sockets.
    let is_whole = low <= high && high - low < RANGE_MAX;
    Some(if is_whole { (low..=high).map(|port| parse(&format!("{host}:{port}"))).collect() } else { vec![Address::Unknown] })
}

/// The address of a word.
pub(super) fn parse(word: &str) -> Address {
    for prefix in ["unix@", "uxst@"] {
        if let Some(path) = word.strip_prefix(prefix) {
            return if path.is_empty() { Address::Unknown } else { Address::Unix(path.to_owned()) };
        }
    }
    if let Some(name) = word.strip_prefix("abns@") {
        return Address::Unix(format!("@{name}"));
    }
    if word.starts_with('/') {
        return Address::Unix(word.to_owned());
    }
    let (family, rest) = match word.split_once('@') {
        Some(("ipv4" | "tcp4" | "tcp", rest)) => (Some(4), rest),
        Some(("ipv6" | "tcp6", rest)) => (Some(6), rest),
        Some(_) => return Address::Unknown,
        None => (None, word),
    };
    of_ip(rest, family).unwrap_or(Address::Unknown)
}

fn of_ip(text: &str, family: Option<u8>) -> Option<Address> {
    // What stands behind the last colon is the port, of IPv6 addresses too.
    let (host, port) = text.rsplit_once(':')?;
    let port = u16::try_from(quantity::number(port)?).ok().filter(|port| *port > 0)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let any = if family == Some(6) { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
    if host.is_empty() || host == "*" {
        return Some(Address::Ip(any, port));
    }
    match host.parse::<IpAddr>() {
        Ok(ip) => Some(Address::Ip(ip, port)),
        Err(_) if host == "localhost" && family != Some(6) => Some(Address::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
        Err(_) => {
            let is_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
            is_name.then(|| Address::Name(host.to_ascii_lowercase(), port))
        }
    }
}
