//! Persistent connections in the configurations of nginx servers: those to upstreams and those to clients.

use std::net::SocketAddr;

use chokepoint_config::SourceLine;
use chokepoint_config::nginx::{Address, Http, Nginx, PassKind, Target};
use chokepoint_model::edge::{ClientKeeps, ServerKeeps};
use chokepoint_model::observation::{ListenerAddress, NetnsId, Origin};
use chokepoint_recording::Outcome;
use chokepoint_servers::Dialect;

use super::access::files;
use super::config::{ParsedConfig, collect, parsed};
use super::master::master;
use super::nginx::levels::levels;
use super::nginx::passes::addresses;
use super::origin::origin;
use crate::netns::link_of;
use crate::root::Root;

/// Most masters to read.
const MASTERS_MAX: usize = 64;
/// Defaults of nginx: how long idle connections of clients are kept, and for how many requests.
const IDLE_MS_DEFAULT: u64 = 75_000;
const REQUESTS_DEFAULT: u64 = 1000;

/// The settings of one server for persistent connections.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfiguredKeeps {
    /// The network namespace of its master.
    pub netns: NetnsId,
    /// One entry for each pass to upstreams: its literal addresses and its settings.
    pub clients: Vec<(Vec<SocketAddr>, ClientKeeps)>,
    /// Its listening addresses and their settings, of several servers at one address those of the default one. Locations may differ.
    pub servers: Vec<(SocketAddr, ServerKeeps)>,
}

/// Reads the configuration files of the running nginx servers. Unreadable and malformed ones are left out; the sockets then tell less.
pub fn read_configured_keeps(root: &Root) -> Vec<ConfiguredKeeps> {
    let pids = root.pids().unwrap_or_default();
    pids.into_iter().filter_map(|pid| read(root, pid)).take(MASTERS_MAX).collect()
}

fn read(root: &Root, pid: u32) -> Option<ConfiguredKeeps> {
    let master = master(root, pid).ok()?.filter(|master| master.def.dialect == Dialect::Nginx)?;
    let netns = link_of(root, pid).ok()?;
    let Outcome::Ok(text) = collect(&files(root, master.pid).ok()?, &master).outcome else { return None };
    match parsed(&String::from_utf8_lossy(&text)).ok()?.1 {
        ParsedConfig::Nginx(nginx) => Some(ConfiguredKeeps { netns, clients: clients(&nginx), servers: servers(&nginx) }),
        ParsedConfig::PhpFpm(_) | ParsedConfig::Haproxy(_) | ParsedConfig::Postgresql(_) => None,
    }
}

fn sockets(address: &Address) -> impl Iterator<Item = SocketAddr> {
    addresses(address).into_iter().filter_map(|address| match address {
        ListenerAddress::Tcp(ip, port) => Some(SocketAddr::new(ip, port)),
        ListenerAddress::Unix(_) => None,
    })
}

fn at(place: &SourceLine) -> Origin {
    Origin { file: place.file.to_string(), line: place.line }
}

fn clients(nginx: &Nginx) -> Vec<(Vec<SocketAddr>, ClientKeeps)> {
    let mut found = Vec::new();
    for level in levels(nginx) {
        let (Some(pass), Some(http)) = (level.pass, level.http) else { continue };
        if !matches!(pass.kind, PassKind::Proxy | PassKind::Fastcgi) {
            continue;
        }
        let reuse = pass.reuse(http, level.settings);
        let header = reuse.connection_header.map(|header| header.value.to_ascii_lowercase()).unwrap_or_default();
        if header.contains('$') {
            // It depends on each request.
            continue;
        }
        let fastcgi = pass.kind == PassKind::Fastcgi;
        let keeps = ClientKeeps {
            origin: at(&pass.place),
            tls: pass.tls,
            pool: reuse.keepalive.is_some_and(|keepalive| keepalive.value > 0),
            asks_to_close: if fastcgi {
                !reuse.fastcgi_keep_conn.is_some_and(|keep| keep.value)
            } else {
                !["", "keep-alive"].contains(&&*header)
            },
            http10: !fastcgi && header != "keep-alive" && reuse.http_version.is_none_or(|version| version.value == "1.0"),
            fastcgi,
        };
        let behind = pass.targets().into_iter().flat_map(|target| behind(http, target));
        found.push((behind.collect(), keeps));
    }
    found
}

fn behind(http: &Http, target: &Target) -> Vec<SocketAddr> {
    match target {
        Target::Address(address) => sockets(address).collect(),
        Target::Upstream(name) => {
            let servers = http.upstream(name).into_iter().flat_map(|upstream| &upstream.servers);
            servers.filter(|server| !server.down).flat_map(|server| sockets(&server.address)).collect()
        }
        Target::Variable(_) => Vec::new(),
    }
}

fn servers(nginx: &Nginx) -> Vec<(SocketAddr, ServerKeeps)> {
    let Some(http) = &nginx.http else { return Vec::new() };
    let mut found = Vec::new();
    for socket in http.sockets.iter().filter(|socket| !socket.udp) {
        let Some(server) = http.servers.get(socket.default_server) else { continue };
        let idle = server.settings.time_ms("keepalive_timeout");
        let requests = server.settings.number("keepalive_requests");
        let idle_ms = idle.as_ref().map_or(IDLE_MS_DEFAULT, |idle| idle.value);
        let said = if idle_ms == 0 { idle.map(|idle| idle.origin) } else { requests.as_ref().map(|requests| requests.origin.clone()) };
        let said = said.map(|said| origin(&said)).filter(|said| said.line > 0);
        let keeps = ServerKeeps {
            origin: said.unwrap_or_else(|| at(&server.place)),
            idle_s: idle_ms as f64 / 1e3,
            requests: requests.map_or(REQUESTS_DEFAULT, |requests| requests.value),
        };
        found.extend(sockets(&socket.address).map(|address| (address, keeps.clone())));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_config::dump;

    /// Settings of connections to upstreams, by their addresses.
    type Asked = Vec<(Vec<SocketAddr>, ClientKeeps)>;
    /// Settings of connections of clients, by listening address.
    type Served = Vec<(SocketAddr, ServerKeeps)>;

    fn of(text: &str) -> (Asked, Served) {
        let mut whole = "server nginx\nprefix /\nversion 1.22.1\naccess_log \nerror_log \n".to_owned();
        dump::add(&mut whole, "/nginx.conf", text);
        let ParsedConfig::Nginx(nginx) = parsed(&whole).unwrap().1 else { panic!("it is nginx's") };
        (clients(&nginx), servers(&nginx))
    }

    fn proxy(upstream: &str, location: &str) -> ClientKeeps {
        let text = format!(
            "events {{}}\nhttp {{ upstream b {{ server 10.0.0.2:8080; {upstream} }} server {{ listen 80; location / {{ proxy_pass http://b; {location} }} }} }}"
        );
        let (clients, _) = of(&text);
        assert_eq!((clients.len(), &clients[0].0[..]), (1, &["10.0.0.2:8080".parse().unwrap()][..]), "{text}");
        assert_eq!((clients[0].1.origin.file.as_str(), clients[0].1.origin.line), ("/nginx.conf", 2));
        clients[0].1.clone()
    }

    #[test]
    fn the_settings_of_a_proxy_are_read() {
        let plain = proxy("", "");
        assert!(plain.asks_to_close && plain.http10 && !plain.pool && !plain.tls);
        let kept = proxy("keepalive 8;", "proxy_http_version 1.1; proxy_set_header Connection \"\";");
        assert!(!kept.asks_to_close && !kept.http10 && kept.pool);
        let old = proxy("keepalive 8;", "proxy_set_header Connection \"\";");
        assert!(!old.asks_to_close && old.http10);
    }

    #[test]
    fn the_settings_for_idle_connections_are_read() {
        let (_, servers) = of("events {}\nhttp {\nkeepalive_timeout 0;\nserver { listen 8080; listen 10.0.0.2:81; } }");
        assert_eq!(servers.len(), 2);
        assert!(servers.iter().all(|(_, keeps)| keeps.idle_s == 0.0 && keeps.requests == 1000 && keeps.origin.line == 3), "{servers:?}");
        let (_, servers) = of("events {}\nhttp { server { listen 8080; keepalive_requests 300; } }");
        assert_eq!((servers[0].1.idle_s, servers[0].1.requests), (75.0, 300));
    }

    #[test]
    fn settings_with_variables_are_left_out() {
        let (clients, _) =
            of("events {}\nhttp { server { listen 80; location / { proxy_pass http://10.0.0.2; proxy_set_header Connection $x; } } }");
        assert!(clients.is_empty());
        let (clients, _) = of("events {}\nhttp { server { listen 80; location / { fastcgi_pass 10.0.0.2:9000; } } }");
        assert!(clients[0].1.fastcgi && clients[0].1.asks_to_close && !clients[0].1.pool);
        let (clients, _) = of("events {}\nhttp { server { listen 80; location / { proxy_pass https://10.0.0.2; } } }");
        assert!(clients[0].1.tls && clients[0].0 == ["10.0.0.2:443".parse().unwrap()]);
    }
}
