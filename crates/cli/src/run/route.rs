//! Where a URL's host and port are, if not where the resolver says: `--resolve` and `--connect-to`, as in curl.

use std::net::IpAddr;

use anyhow::{Context, Result};

/// Other addresses and peers for hosts and ports.
#[derive(Debug, Clone, Default)]
pub(crate) struct Route {
    resolve: Vec<Resolved>,
    connect_to: Vec<Peer>,
    /// The addresses of all other hosts; the resolver's where it is empty.
    known: Vec<IpAddr>,
}

#[derive(Debug, Clone)]
struct Resolved {
    host: String,
    port: u16,
    addresses: Vec<IpAddr>,
}

/// An empty part stands for any, or for the same.
#[derive(Debug, Clone)]
struct Peer {
    from: (String, Option<u16>),
    to: (String, Option<u16>),
}

impl Route {
    /// The values of `--resolve` and of `--connect-to`.
    pub(crate) fn parse(resolve: &[String], connect_to: &[String]) -> Result<Self> {
        let resolve = resolve.iter().map(|text| {
            resolved(text)
                .with_context(|| format!("--resolve \"{text}\" is not valid: write HOST:PORT:ADDRESS, as in example.com:443:127.0.0.1"))
        });
        let connect_to = connect_to.iter().map(|text| {
            peer(text).with_context(|| {
                format!("--connect-to \"{text}\" is not valid: write HOST1:PORT1:HOST2:PORT2, as in example.com:443:127.0.0.1:8443")
            })
        });
        Ok(Self { resolve: resolve.collect::<Result<_>>()?, connect_to: connect_to.collect::<Result<_>>()?, known: Vec::new() })
    }

    /// The same server again, whatever its name: these addresses for every host.
    pub(crate) fn to(addresses: &[IpAddr]) -> Self {
        Self { known: addresses.to_vec(), ..Self::default() }
    }

    /// The host and port to connect to for those of a URL.
    pub(crate) fn peer(&self, host: &str, port: u16) -> (String, u16) {
        let fits = |peer: &&Peer| (peer.from.0.is_empty() || is_same(&peer.from.0, host)) && peer.from.1.is_none_or(|from| from == port);
        let Some(Peer { to, .. }) = self.connect_to.iter().find(fits) else { return (host.to_owned(), port) };
        let to_host = if to.0.is_empty() { host } else { &to.0 };
        (to_host.to_owned(), to.1.unwrap_or(port))
    }

    /// The addresses that take the place of the resolver's.
    pub(crate) fn addresses(&self, host: &str, port: u16) -> Option<&[IpAddr]> {
        let fits = |resolved: &&Resolved| is_same(&resolved.host, host) && resolved.port == port;
        let resolved = self.resolve.iter().find(fits).map(|resolved| &resolved.addresses);
        resolved.or(Some(&self.known)).filter(|addresses| !addresses.is_empty()).map(|addresses| &addresses[..])
    }
}

fn is_same(one: &str, other: &str) -> bool {
    let bare = |text: &str| text.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    bare(one) == bare(other)
}

/// "HOST:PORT:ADDRESS[,ADDRESS]"; IPv6 addresses may stand in brackets.
fn resolved(text: &str) -> Option<Resolved> {
    let (host, rest) = split_host(text)?;
    let (port, addresses) = rest.split_once(':')?;
    let address = |text: &str| text.trim_start_matches('[').trim_end_matches(']').parse().ok();
    let addresses = addresses.split(',').map(address).collect::<Option<_>>()?;
    (!host.is_empty()).then_some(Resolved { host: host.to_owned(), port: port.parse().ok().filter(|port| *port > 0)?, addresses })
}

/// "HOST1:PORT1:HOST2:PORT2", each of which may be empty.
fn peer(text: &str) -> Option<Peer> {
    let (from_host, rest) = split_host(text)?;
    let (from_port, rest) = rest.split_once(':')?;
    let (to_host, to_port) = split_host(rest)?;
    let port = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().filter(|port| *port > 0).map(Some) };
    Some(Peer { from: (from_host.to_owned(), port(from_port)?), to: (to_host.to_owned(), port(to_port)?) })
}

/// A host, which may be an IPv6 address in brackets, and what follows its colon.
fn split_host(text: &str) -> Option<(&str, &str)> {
    match text.strip_prefix('[') {
        Some(rest) => rest.split_once("]:"),
        None => text.split_once(':'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(resolve: &[&str], connect_to: &[&str]) -> Result<Route> {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Route::parse(&owned(resolve), &owned(connect_to))
    }

    #[test]
    fn hosts_are_found_where_the_flags_say() {
        let route = route(&["Example.com:443:127.0.0.1,[::1]"], &["a.test:80:[::1]:8080", "b.test::c.test:", "::d.test:81"]).unwrap();
        assert_eq!(route.addresses("example.COM", 443).map(<[IpAddr]>::len), Some(2));
        assert_eq!(route.addresses("example.com", 80), None);
        let peer = |host: &str, port| route.peer(host, port);
        assert_eq!(peer("a.test", 80), ("::1".to_owned(), 8080));
        assert_eq!(peer("b.test", 5), ("c.test".to_owned(), 5));
        assert_eq!(peer("a.test", 82), ("d.test".to_owned(), 81));
        assert_eq!(Route::default().peer("x", 1), ("x".to_owned(), 1));
        assert_eq!(Route::to(&[[127, 0, 0, 4].into()]).addresses("x", 1).map(<[IpAddr]>::len), Some(1));
    }

    #[test]
    fn malformed_routes_are_refused_with_an_example() {
        for wrong in ["", "a", "a:80", "a:80:b", "a:0:127.0.0.1", ":80:127.0.0.1", "a:80:"] {
            assert!(route(&[wrong], &[]).is_err_and(|error| error.to_string().contains("HOST:PORT:ADDRESS")), "{wrong}");
        }
        for wrong in ["", "a", "a:80", "a:80:b", "a:x:b:80", "a:80:b:99999"] {
            assert!(route(&[], &[wrong]).is_err_and(|error| error.to_string().contains("HOST1")), "{wrong}");
        }
    }
}
