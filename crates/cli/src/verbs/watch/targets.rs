//! Which servers are watched: those that were named, or all that listen on this host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::Result;
use chokepoint_model::observation::{NetnsId, Request};
use chokepoint_model::url::without_values;
use chokepoint_sources::{PortSearch, PortSocket, Root, netns};

use super::config::Settings;

/// Most servers that are watched. Each has its own ledger, and 16 take about as long as reading the sockets.
pub(super) const TARGETS_MAX: usize = 16;
/// This program.
const OWN_PROGRAM: &str = "chokepoint";

/// A server to watch.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Watched {
    pub(super) name: String,
    pub(super) request: Request,
}

/// The servers to watch now.
pub(super) fn watched(settings: &Settings, ports: &mut PortSearch) -> Result<Vec<Watched>> {
    if settings.targets.is_empty() {
        return Ok(listening(&ports.listeners(&Root::default())?, netns::own()?));
    }
    let root = Root::default();
    let named = |name: &Option<String>| name.as_deref().map(|name| netns::resolve(&root, name)).transpose();
    let client_netns = named(&settings.file.client_netns)?.map_or_else(netns::own, |netns| Ok(netns.id))?;
    let server_netns = named(&settings.file.server_netns)?.map(|netns| netns.id);
    let one = |target: &crate::run::settings::Target| Watched {
        name: without_values(&target.url),
        request: Request { client_netns, server_netns, loaded: false, ..target.request() },
    };
    Ok(named_apart(settings.targets.iter().map(one).collect()))
}

/// Servers whose names differ: without the values of their queries, two URLs may read the same.
fn named_apart(mut watched: Vec<Watched>) -> Vec<Watched> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for server in &mut watched {
        let plain = server.name.clone();
        let mut number = 2;
        while !names.insert(server.name.clone()) {
            server.name = format!("{plain} ({number})");
            number += 1;
        }
    }
    watched
}

/// A server for each port on which something listens, those of this namespace first.
fn listening(sockets: &[PortSocket], own: NetnsId) -> Vec<Watched> {
    let mut ports: BTreeMap<(bool, NetnsId, u16), Vec<&PortSocket>> = BTreeMap::new();
    for socket in sockets.iter().filter(|socket| !socket.udp && socket.program.as_deref() != Some(OWN_PROGRAM)) {
        ports.entry((socket.netns != own, socket.netns, socket.local.1)).or_default().push(socket);
    }
    let one = |((is_elsewhere, netns, port), sockets): ((bool, NetnsId, u16), Vec<&PortSocket>)| {
        let addresses: BTreeSet<IpAddr> = sockets.iter().map(|socket| reached_at(socket.local.0)).collect();
        // IPv4 sorts first.
        let address = addresses.into_iter().next()?;
        let host = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
        let program = sockets.iter().find_map(|socket| socket.program.as_deref()).unwrap_or("port");
        let place = match sockets.first().and_then(|socket| socket.netns_name.clone()) {
            Some(name) if is_elsewhere => format!(" in {name}"),
            None if is_elsewhere => format!(" in {netns}"),
            _ => String::new(),
        };
        let request = Request {
            url: format!("http://{host}:{port}/"),
            scheme: "http".to_owned(),
            host,
            port,
            addresses: vec![address],
            client_netns: netns,
            server_netns: Some(netns),
            tool: Some(env!("CARGO_PKG_VERSION").to_owned()),
            ..Request::default()
        };
        Some(Watched { name: format!("{program}:{port}{place}"), request })
    };
    ports.into_iter().filter_map(one).take(TARGETS_MAX).collect()
}

/// An address at which a listener on all addresses is reached.
fn reached_at(listens: IpAddr) -> IpAddr {
    match listens {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(netns: u64, address: &str, port: u16, program: &str) -> PortSocket {
        PortSocket {
            netns: NetnsId(netns),
            netns_name: (netns == 2).then(|| "blue".to_owned()),
            udp: port == 53,
            local: (address.parse().unwrap(), port),
            drops: None,
            inode: 1,
            program: (!program.is_empty()).then(|| program.to_owned()),
        }
    }

    #[test]
    fn no_two_servers_have_one_name() {
        let named = |name: &str| Watched { name: name.to_owned(), request: Request::default() };
        let found = named_apart(["http://h/?id=…", "http://h/?id=… (2)", "http://h/?id=…", "http://h/?id=…"].map(named).into());
        let names: Vec<&str> = found.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["http://h/?id=…", "http://h/?id=… (2)", "http://h/?id=… (3)", "http://h/?id=… (4)"]);
    }

    #[test]
    fn each_port_is_watched_once_and_this_program_never() {
        let sockets = [
            socket(2, "::", 8080, "java"),
            socket(1, "::", 80, "nginx"),
            socket(1, "0.0.0.0", 80, "nginx"),
            socket(1, "10.0.0.7", 9000, ""),
            socket(1, "127.0.0.1", 9464, OWN_PROGRAM),
            socket(1, "0.0.0.0", 53, "named"),
            socket(3, "0.0.0.0", 80, "nginx"),
        ];
        let found = listening(&sockets, NetnsId(1));
        let all: Vec<(&str, &str)> = found.iter().map(|found| (found.name.as_str(), found.request.url.as_str())).collect();
        assert_eq!(
            all,
            [
                ("nginx:80", "http://127.0.0.1:80/"),
                ("port:9000", "http://10.0.0.7:9000/"),
                ("java:8080 in blue", "http://[::1]:8080/"),
                ("nginx:80 in net:[3]", "http://127.0.0.1:80/"),
            ]
        );
        let many: Vec<PortSocket> = (1000..1100).map(|port| socket(1, "0.0.0.0", port, "x")).collect();
        assert_eq!(listening(&many, NetnsId(1)).len(), TARGETS_MAX);
    }
}
