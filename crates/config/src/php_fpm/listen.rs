//! Addresses that php-fpm listens on (`fpm_sockets_domain_from_address`).

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use crate::quantity;

/// Where a pool listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Listen {
    /// A TCP port of every address, IPv4 and IPv6.
    Port(u16),
    /// An address and port.
    Ip(IpAddr, u16),
    /// A host name, and a port.
    Name(String, u16),
    /// A unix socket's path. No TCP counter covers its accept queue.
    Unix(String),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(port) => write!(f, "{port}"),
            Self::Ip(IpAddr::V6(address), port) => write!(f, "[{address}]:{port}"),
            Self::Ip(address, port) => write!(f, "{address}:{port}"),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
            Self::Unix(path) => f.write_str(path),
        }
    }
}

/// Parses the value of `listen` and similar keys: a number is a port, text with a colon is an address, anything else is a path.
pub fn parse_listen(text: &str) -> Option<Listen> {
    let port = |text: &str| u16::try_from(quantity::number(text)?).ok().filter(|port| *port > 0);
    if text.is_empty() {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return port(text).map(Listen::Port);
    }
    let Some((host, port_text)) = text.rsplit_once(':') else { return Some(Listen::Unix(text.to_owned())) };
    let port = port(port_text)?;
    if host.is_empty() || host == "*" {
        return Some(Listen::Port(port));
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(address) => Some(Listen::Ip(address, port)),
        Err(_) if bare.contains(':') => bare.parse::<Ipv6Addr>().ok().map(|address| Listen::Ip(IpAddr::V6(address), port)),
        Err(_) => Some(Listen::Name(bare.to_owned(), port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_every_form() {
        for (text, expected) in [
            ("9000", "9000"),
            ("127.0.0.1:9000", "127.0.0.1:9000"),
            ("[::1]:9000", "[::1]:9000"),
            ("::1:9000", "[::1]:9000"),
            ("*:9000", "9000"),
            ("localhost:9000", "localhost:9000"),
            ("/run/php/php8.2-fpm.sock", "/run/php/php8.2-fpm.sock"),
            ("php.sock", "php.sock"),
        ] {
            assert_eq!(parse_listen(text).map(|listen| listen.to_string()).as_deref(), Some(expected), "{text}");
        }
        for bad in ["", "0", "70000", "127.0.0.1:", "127.0.0.1:x", "a:b:1"] {
            assert_eq!(parse_listen(bad), None, "{bad}");
        }
    }
}
