//! Where a load connects to: a TCP address or a unix socket.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr as UnixAddr;
use std::sync::Arc;

use chokepoint_foreign::ListeningSocket;

/// Where to connect to.
#[derive(Debug, Clone)]
pub enum Address {
    /// An IP address and a port.
    Tcp(SocketAddr),
    /// A unix socket (unix(7)): a path or an abstract name.
    Unix(Box<UnixAddr>),
    /// A unix socket that a configuration names: the socket of a known server, whatever the path leads to by now.
    Listening {
        /// The path, only to be shown.
        path: Box<str>,
        /// What each connection goes to.
        socket: Arc<ListeningSocket>,
    },
}

impl Address {
    /// A unix socket by its path or, with a leading `@`, by its abstract name. As in ss(8), each further `@` stands for a NUL. It is an error if the name is
    /// longer than 107 bytes, empty or contains a NUL.
    pub fn unix(name: &str) -> io::Result<Self> {
        let address = match name.strip_prefix('@') {
            Some("") => return Err(io::Error::new(io::ErrorKind::InvalidInput, "the abstract name is empty")),
            Some(name) => UnixAddr::from_abstract_name(name.replace('@', "\0"))?,
            None if name.is_empty() => return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is empty")),
            None => UnixAddr::from_pathname(name)?,
        };
        Ok(Address::Unix(Box::new(address)))
    }

    /// The TCP address; none for a unix socket.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) | Address::Listening { .. } => None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Tcp(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(address) => match (address.as_pathname(), address.as_abstract_name()) {
                (Some(path), _) => write!(f, "unix:{}", path.display()),
                (_, Some(name)) => write!(f, "unix:@{}", String::from_utf8_lossy(name).replace('\0', "@")),
                (None, None) => f.write_str("unix:(unnamed)"),
            },
            Address::Listening { path, .. } => write!(f, "unix:{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_written_unchanged() {
        for name in ["/run/php/fpm.sock", "@app", "@a@b", "relative.sock"] {
            let address = Address::unix(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(address.to_string(), format!("unix:{name}"));
            assert!(address.tcp().is_none());
        }
        assert_eq!(Address::from(SocketAddr::from(([127, 0, 0, 1], 80))).to_string(), "127.0.0.1:80");
        for wrong in ["", "@", "/a\0b", &"/x".repeat(60), &format!("@{}", "x".repeat(108))] {
            assert!(Address::unix(wrong).is_err(), "{wrong:?}");
        }
    }
}
