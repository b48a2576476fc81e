//! Selects the server and the location that answer a request, in nginx's order of addresses, names and locations.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use percent_encoding::percent_decode_str;

use crate::Setting;
use crate::nginx::effective::Http;
use crate::nginx::effective::listen::{Address, ListenSocket};
use crate::nginx::effective::location::{Location, Matcher};
use crate::nginx::effective::pattern::Match;
use crate::nginx::effective::server::Server;
use crate::nginx::effective::server_name::{Fit, normalized};

/// The local end of a connection to nginx.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalAddress {
    /// Address and port that the client connected to.
    Ip(IpAddr, u16),
    /// A unix socket's path.
    Unix(String),
}

/// The server and the location that answer a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection<'a> {
    /// The socket that it arrived at.
    pub socket: &'a ListenSocket,
    /// The server.
    pub server: &'a Server,
    /// Servers that would answer instead if a name of theirs matches the host. Only PCRE or the machine itself can tell.
    pub servers_possible: Vec<&'a Server>,
    /// The location; none if no location matches and the server itself answers.
    pub location: Option<&'a Location>,
    /// Locations that would answer instead if their regular expression matches, which only PCRE can tell; the first that matches wins.
    pub locations_possible: Vec<&'a Location>,
    /// The path that was compared: decoded, without query, `.`, `..` and doubled slashes.
    pub path: String,
}

impl Selection<'_> {
    /// The `gzip_comp_level` that is set and in force for the request, where responses are compressed.
    pub fn gzip_level(&self) -> Option<Setting<u64>> {
        let location = self.location.filter(|_| self.is_certain()).map(|location| &location.settings);
        let settings = location.or_else(|| self.servers_possible.is_empty().then_some(&self.server.settings))?;
        settings.flag("gzip").filter(|gzip| gzip.value)?;
        settings.number("gzip_comp_level").filter(|level| level.origin.place().is_some())
    }

    /// True if no other server or location could answer.
    pub fn is_certain(&self) -> bool {
        self.servers_possible.is_empty() && self.locations_possible.is_empty()
    }
}

impl Http {
    /// Selects what answers a request on an address, for a host (`Host` header or TLS name) and a path with or without a query. None if no `listen`
    /// takes that address.
    pub fn select(&self, local: &LocalAddress, host: &str, path: &str) -> Option<Selection<'_>> {
        let socket = self.listening(local)?;
        let (server, servers_possible) = self.server(socket, &normalized(host))?;
        let path = normalized_path(path);
        let (location, locations_possible) = location_for(server, &path);
        Some(Selection { socket, server, servers_possible, location, locations_possible, path })
    }

    /// The socket for a local address: the address itself, else the wildcard of its family, else an IPv6 wildcard that takes IPv4.
    fn listening(&self, local: &LocalAddress) -> Option<&ListenSocket> {
        let exactly = |address: &Address| self.sockets.iter().find(|socket| !socket.udp && socket.address == *address);
        match local {
            LocalAddress::Unix(path) => exactly(&Address::Unix(path.clone())),
            LocalAddress::Ip(ip, port) => {
                // The configuration does not tell what a name resolves to. Only "localhost" always means the same.
                let localhost = ip.is_loopback().then(|| Address::Name("localhost".to_owned(), *port));
                let v4 = Address::Ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED), *port);
                let v6 = Address::Ip(IpAddr::V6(Ipv6Addr::UNSPECIFIED), *port);
                let own_wildcard = if ip.is_ipv4() { &v4 } else { &v6 };
                let closest = exactly(&Address::Ip(*ip, *port)).or_else(|| localhost.and_then(|name| exactly(&name)));
                closest.or_else(|| exactly(own_wildcard)).or_else(|| exactly(&v6).filter(|socket| socket.takes_ipv4))
            }
        }
    }

    /// The server for a host on a socket, and those that may answer instead.
    fn server(&self, socket: &ListenSocket, host: &str) -> Option<(&Server, Vec<&Server>)> {
        let mut best: Option<(Fit, &Server)> = None;
        let mut possible = Vec::new();
        for server in socket.servers.iter().filter_map(|&index| self.servers.get(index)) {
            let fits = server.names.iter().filter_map(|name| name.fit(host));
            match fits.max() {
                Some(Fit::Perhaps) => possible.push(server),
                Some(fit) if best.as_ref().is_none_or(|(known, _)| fit > *known) => best = Some((fit, server)),
                _ => {}
            }
        }
        match best {
            // Regular expressions come after names and wildcards, so possible ones only count if no name or wildcard matched.
            Some((fit, server)) if fit > Fit::Regex => Some((server, Vec::new())),
            Some((_, server)) => Some((server, possible)),
            None => self.servers.get(socket.default_server).map(|server| (server, possible)),
        }
    }
}

/// A path as nginx compares it with locations: without query and fragment, decoded, slashes merged, dot segments resolved.
pub(crate) fn normalized_path(path: &str) -> String {
    let bare = path.split(['?', '#']).next().unwrap_or_default();
    let decoded = crate::text::decode(&percent_decode_str(bare).collect::<Vec<u8>>());
    let mut parts: Vec<&str> = Vec::new();
    for part in decoded.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let is_directory = ["/", "/.", "/.."].iter().any(|end| decoded.ends_with(end));
    let joined = parts.join("/");
    if joined.is_empty() || !is_directory { format!("/{joined}") } else { format!("/{joined}/") }
}

/// A location and how it matched.
enum LocationMatch<'a> {
    Exact(&'a Location),
    Regex(&'a Location),
    Prefix(&'a Location),
    None,
}

/// nginx's search (`ngx_http_core_find_location`): the exact path, else the longest prefix with its inner locations, else the first regular
/// expression of this level, else that prefix.
struct Search<'a, 'p> {
    path: &'p str,
    possible: Vec<&'a Location>,
}

impl<'a> Search<'a, '_> {
    fn find(&mut self, locations: &'a [Location]) -> LocationMatch<'a> {
        let exact = locations.iter().find(|location| matches!(&location.matcher, Matcher::Exact(path) if path == self.path));
        if let Some(location) = exact {
            return LocationMatch::Exact(location);
        }
        let mut longest: Option<(&'a Location, usize, bool)> = None;
        for location in locations {
            if let Matcher::Prefix { path, no_regex } = &location.matcher
                && self.path.starts_with(path.as_str())
                && longest.is_none_or(|(_, len, _)| path.len() > len)
            {
                longest = Some((location, path.len(), *no_regex));
            }
        }
        let mut found = LocationMatch::None;
        let mut regex_barred = false;
        if let Some((location, _, no_regex)) = longest {
            regex_barred = no_regex;
            found = match self.find(&location.locations) {
                LocationMatch::None => LocationMatch::Prefix(location),
                LocationMatch::Prefix(inner) => LocationMatch::Prefix(inner),
                decided => return decided,
            };
        }
        if regex_barred {
            return found;
        }
        for location in locations {
            let Matcher::Regex(pattern) = &location.matcher else { continue };
            match pattern.is_match(self.path) {
                Match::No => {}
                Match::Unknown => self.possible.push(location),
                Match::Yes => {
                    return match self.find(&location.locations) {
                        LocationMatch::None => LocationMatch::Regex(location),
                        LocationMatch::Exact(inner) | LocationMatch::Regex(inner) | LocationMatch::Prefix(inner) => {
                            LocationMatch::Regex(inner)
                        }
                    };
                }
            }
        }
        found
    }
}

/// The location of a server for a path, and those that may answer instead.
pub(crate) fn location_for<'a>(server: &'a Server, path: &str) -> (Option<&'a Location>, Vec<&'a Location>) {
    let mut search = Search { path, possible: Vec::new() };
    let location = match search.find(&server.locations) {
        LocationMatch::Exact(location) | LocationMatch::Regex(location) | LocationMatch::Prefix(location) => Some(location),
        LocationMatch::None => None,
    };
    (location, search.possible)
}

/// The named location of a server, at any level.
pub(crate) fn named_location<'a>(locations: &'a [Location], name: &str) -> Option<&'a Location> {
    locations.iter().find_map(|location| match &location.matcher {
        Matcher::Named(known) if known == name => Some(location),
        _ => named_location(&location.locations, name),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_are_normalized() {
        for (path, expected) in [
            ("/", "/"),
            ("", "/"),
            ("/a//b/./c/../d?x=/../y", "/a/b/d"),
            ("/a/", "/a/"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/../../x", "/x"),
            ("/%41%2e%zz", "/A.%zz"),
            ("/%", "/%"),
        ] {
            assert_eq!(normalized_path(path), expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn normalizing_a_path_twice_changes_nothing(path in "[/a.%2eé?#]{0,20}") {
            let once = normalized_path(&path);
            prop_assert!(once.starts_with('/'));
            if !path.contains('%') {
                prop_assert_eq!(normalized_path(&once), once.clone());
            }
        }
    }
}
