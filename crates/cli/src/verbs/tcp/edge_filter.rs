//! The edge of `--edge`: `A->B`, where each side is an address, an address with a port, a port, or anything.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// What one end must have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Side {
    address: Option<IpAddr>,
    port: Option<u16>,
}

/// Selects connections; by default all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EdgeFilter {
    client: Side,
    server: Side,
}

/// The text is not an edge.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("\"{0}\" is not an edge: write A->B, where A and B are ADDRESS, ADDRESS:PORT, :PORT or *")]
pub(crate) struct EdgeFilterError(String);

impl Side {
    fn takes(&self, of: SocketAddr) -> bool {
        self.address.is_none_or(|address| address == of.ip()) && self.port.is_none_or(|port| port == of.port())
    }
}

impl EdgeFilter {
    /// True for a connection from this client to this server.
    pub(crate) fn takes(&self, client: SocketAddr, server: SocketAddr) -> bool {
        self.client.takes(client) && self.server.takes(server)
    }
}

fn side(text: &str) -> Option<Side> {
    let text = text.trim();
    if text.is_empty() || text == "*" {
        return Some(Side::default());
    }
    if let Ok(whole) = text.parse::<SocketAddr>() {
        return Some(Side { address: Some(whole.ip().to_canonical()), port: Some(whole.port()) });
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(Side { address: Some(address.to_canonical()), port: None });
    }
    let port = text.strip_prefix("*:").or(text.strip_prefix(':'))?.parse().ok()?;
    Some(Side { address: None, port: Some(port) })
}

impl FromStr for EdgeFilter {
    type Err = EdgeFilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || EdgeFilterError(text.to_owned());
        let (client, server) = text.split_once("->").ok_or_else(wrong)?;
        Ok(Self { client: side(client).ok_or_else(wrong)?, server: side(server).ok_or_else(wrong)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(filter: &str, client: &str, server: &str) -> bool {
        filter.parse::<EdgeFilter>().unwrap().takes(client.parse().unwrap(), server.parse().unwrap())
    }

    #[test]
    fn an_edge_is_given_by_either_side_or_both() {
        for (filter, takes_it) in [
            ("10.0.0.1->10.0.0.2:80", true),
            ("10.0.0.1 -> 10.0.0.2", true),
            ("*->:80", true),
            ("->10.0.0.2", true),
            ("10.0.0.1:999->*", true),
            ("10.0.0.2->10.0.0.1", false),
            ("*->:81", false),
            ("10.0.0.1:998->*:80", false),
        ] {
            assert_eq!(takes(filter, "10.0.0.1:999", "10.0.0.2:80"), takes_it, "{filter}");
        }
        assert!(takes("[::1]->[::1]:80", "[::1]:5", "[::1]:80") && takes("::1->*", "[::1]:5", "[::1]:80"));
    }

    #[test]
    fn invalid_edges_are_refused() {
        for text in ["", "10.0.0.1", "a->b", "->:99999", "10.0.0.1:x->*", "80->90"] {
            assert!(text.parse::<EdgeFilter>().unwrap_err().to_string().contains("A->B"), "{text}");
        }
    }
}
