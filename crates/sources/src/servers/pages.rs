//! The status pages that a configuration enables, and how to request each from the server's own network namespace.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chokepoint_config::nginx::{Address, Destination, Http, Listen, LocalAddress, Location, Nginx, Server, ServerName};
use chokepoint_config::{haproxy, php_fpm};
use chokepoint_model::observation::ListenerAddress;
use serde::{Deserialize, Serialize};

use super::config::ParsedConfig;

/// Marks our own requests in query and user agent. Others may use it, too: lines of logs with it are not counted if they are those of our requests (`logs/asked.rs`).
pub(super) const MARK: &str = "chokepoint-status";
/// Most pools of one php-fpm to poll.
const POOLS_MAX: usize = 16;
/// Variables that make a line of nginx's access log contain [`MARK`].
const SHOWS_MARK: [&str; 5] = ["request", "request_uri", "args", "query_string", "http_user_agent"];

/// A status page and how to request it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StatusPage {
    /// nginx's `stub_status`, over HTTP.
    Nginx {
        at: ListenerAddress,
        /// The `Host` that selects its server; empty for none.
        host: String,
        path: String,
    },
    /// php-fpm's `pm.status_path`, over FastCGI.
    PhpFpm {
        pool: String,
        at: ListenerAddress,
        path: String,
        /// True if a worker of the pool itself responds (no `pm.status_listen`).
        own: bool,
    },
    /// HAProxy's command socket (`stats socket`), which tells how its servers do.
    Haproxy {
        /// The path of a unix socket.
        path: String,
    },
    /// An enabled page that cannot be requested, with the reason.
    Barred {
        /// The item of its readings.
        item: String,
        why: String,
    },
}

/// Items of the source: nginx, the servers behind a proxy, a pool's page behind a separate listener, and a page that the pool itself serves.
pub(super) const ITEM_NGINX: &str = "nginx";
pub(super) const ITEM_PROXY: &str = "servers";
pub(super) const ITEM_POOL: &str = "pool ";
pub(super) const ITEM_OWN_POOL: &str = "own pool ";

impl StatusPage {
    /// The item of its readings.
    pub(super) fn item(&self) -> String {
        match self {
            Self::Nginx { .. } => ITEM_NGINX.to_owned(),
            Self::Haproxy { .. } => ITEM_PROXY.to_owned(),
            Self::PhpFpm { pool, own: false, .. } => format!("{ITEM_POOL}{pool}"),
            Self::PhpFpm { pool, own: true, .. } => format!("{ITEM_OWN_POOL}{pool}"),
            Self::Barred { item, .. } => item.clone(),
        }
    }

    /// True if it can only be requested inside the server's network namespace. A unix socket is reachable from anywhere, but its queue can only be read inside.
    pub(super) fn needs_netns(&self) -> bool {
        match self {
            Self::Nginx { at, .. } => matches!(at, ListenerAddress::Tcp(..)),
            Self::PhpFpm { at, own, .. } => *own || matches!(at, ListenerAddress::Tcp(..)),
            Self::Haproxy { .. } | Self::Barred { .. } => false,
        }
    }
}

/// The pages of a configuration: at most one of nginx, whose workers count together, one for each pool of php-fpm, and the command socket of HAProxy.
pub(super) fn pages(parsed: &ParsedConfig) -> Vec<StatusPage> {
    match parsed {
        ParsedConfig::Nginx(nginx) => of_nginx(nginx).into_iter().collect(),
        ParsedConfig::PhpFpm(fpm) => fpm.pools.iter().filter_map(of_pool).take(POOLS_MAX).collect(),
        ParsedConfig::Haproxy(haproxy) => of_haproxy(haproxy).into_iter().collect(),
        ParsedConfig::Postgresql(_) => Vec::new(),
    }
}

/// The first unix socket for commands. One at an address may be anybody's, and needs no file.
fn of_haproxy(read: &haproxy::Haproxy) -> Option<StatusPage> {
    let mut paths = read.global.stats_sockets.iter().filter_map(|socket| match &socket.value {
        haproxy::Address::Unix(path) if path.starts_with('/') => Some(path.clone()),
        _ => None,
    });
    paths.next().map(|path| StatusPage::Haproxy { path })
}

/// A location with `stub_status`, with its server.
type StatusLocation<'a> = (&'a Server, &'a Location);

fn of_nginx(nginx: &Nginx) -> Option<StatusPage> {
    let http = nginx.http.as_ref()?;
    let mut found: Vec<StatusLocation<'_>> = Vec::new();
    for server in &http.servers {
        add(server, &server.locations, &mut found);
    }
    let mut why = None;
    for (server, location) in found {
        match reached(http, server, location) {
            Ok(page) => return Some(page),
            Err(lack) => why = why.or(Some(lack)),
        }
    }
    why.map(|why| StatusPage::Barred { item: ITEM_NGINX.to_owned(), why })
}

fn add<'a>(server: &'a Server, locations: &'a [Location], found: &mut Vec<StatusLocation<'a>>) {
    for location in locations {
        if location.stub_status().is_some() {
            found.push((server, location));
        }
        add(server, &location.locations, found);
    }
}

/// How to request a location, or why that is impossible.
fn reached(http: &Http, server: &Server, location: &Location) -> Result<StatusPage, String> {
    let place = &location.place;
    let path = location.path().filter(|_| !location.is_internal());
    let path = path.ok_or_else(|| format!("{place}: no path certainly leads to this location"))?;
    if !shows_mark(http, location) {
        return Err(format!("{place}: its access log would mix our requests with others (access_log off; prevents that)"));
    }
    let plain = server.listens.iter().filter(|listen| !(listen.ssl || listen.quic || listen.udp || listen.proxy_protocol));
    let addresses = plain.flat_map(|listen: &Listen| listen.address.each().take(1)).filter_map(|address| literal(&address));
    for at in addresses {
        let local = match &at {
            ListenerAddress::Tcp(ip, port) => LocalAddress::Ip(*ip, *port),
            ListenerAddress::Unix(path) => LocalAddress::Unix(path.clone()),
        };
        let names = server.names.iter().filter_map(|name| match name {
            ServerName::Exact(name) => Some(name.as_str()),
            _ => None,
        });
        let leads = |host: &&str| {
            let selected = http.select(&local, host, path).filter(chokepoint_config::nginx::Selection::is_certain);
            selected.and_then(|selected| selected.location).is_some_and(|selected| std::ptr::eq(selected, location))
        };
        if let Some(host) = names.chain([""]).find(leads) {
            return Ok(StatusPage::Nginx { at, host: host.to_owned(), path: path.to_owned() });
        }
    }
    Err(format!("{place}: no address without TLS, and no name, certainly leads to this location"))
}

/// The address to connect to. A wildcard is reached through loopback.
fn literal(address: &Address) -> Option<ListenerAddress> {
    Some(match address {
        Address::Ip(IpAddr::V4(ip), port) if ip.is_unspecified() => ListenerAddress::Tcp(Ipv4Addr::LOCALHOST.into(), *port),
        Address::Ip(IpAddr::V6(ip), port) if ip.is_unspecified() => ListenerAddress::Tcp(Ipv6Addr::LOCALHOST.into(), *port),
        Address::Ip(ip, port) => ListenerAddress::Tcp(*ip, *port),
        Address::Name(name, port) if name == "localhost" => ListenerAddress::Tcp(Ipv4Addr::LOCALHOST.into(), *port),
        Address::Name(..) => return None,
        Address::Unix(path) => ListenerAddress::Unix(path.clone()),
    })
}

/// True if our requests are not logged there, or if every followed log shows their mark.
fn shows_mark(http: &Http, location: &Location) -> bool {
    let logs = location.settings.access_logs();
    let followed = logs.logs.iter().filter(|log| !log.gzip && matches!(log.destination, Destination::File(_)));
    let mut formats = followed.map(|log| http.log_format(&log.format));
    formats.all(|format| format.is_none_or(|format| variables(&format.format).any(|name| SHOWS_MARK.contains(&name))))
}

/// The names of the variables in a text: `$name` and `${name}`.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        &rest[..end]
    })
}

fn of_pool(pool: &php_fpm::Pool) -> Option<StatusPage> {
    let path = pool.text("pm.status_path").map(|path| path.value).filter(|path| path.starts_with('/'))?;
    let apart = pool.status_listen();
    let own = apart.is_none();
    let barred = |why: String| {
        let item = format!("{}{}", if own { ITEM_OWN_POOL } else { ITEM_POOL }, pool.name);
        Some(StatusPage::Barred { item, why })
    };
    let at = match apart.or_else(|| pool.listen())?.value {
        php_fpm::Listen::Port(port) => ListenerAddress::Tcp(Ipv6Addr::UNSPECIFIED.into(), port),
        php_fpm::Listen::Ip(ip, port) => ListenerAddress::Tcp(ip, port),
        php_fpm::Listen::Name(name, port) if name == "localhost" => ListenerAddress::Tcp(Ipv4Addr::LOCALHOST.into(), port),
        php_fpm::Listen::Name(name, port) => return barred(format!("it listens at a host name, {name}:{port}, which is not resolved")),
        php_fpm::Listen::Unix(path) => ListenerAddress::Unix(path),
    };
    if own && pool.manager().is_some_and(|manager| manager.value == php_fpm::Manager::Ondemand) {
        return barred("a request would start workers (pm = ondemand without pm.status_listen)".to_owned());
    }
    Some(StatusPage::PhpFpm { pool: pool.name.clone(), at, path, own })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_config::nginx::{Tree, Version};

    fn nginx(http: &str) -> Vec<StatusPage> {
        let text = format!("events {{}}\nhttp {{\n{http}\n}}\n");
        let tree = Tree::load("/n.conf", None, &mut |_: &str| vec![("/n.conf".to_owned(), Ok(text.clone()))]).unwrap();
        pages(&ParsedConfig::Nginx(Box::new(Nginx::of(&tree, Version::FALLBACK))))
    }

    fn fpm(text: &str) -> Vec<StatusPage> {
        let text = format!("[www]\n{text}\n");
        let tree = php_fpm::Tree::load("/f.conf", None, &mut |_: &str| vec![("/f.conf".to_owned(), Ok(text.clone()))]).unwrap();
        pages(&ParsedConfig::PhpFpm(Box::new(php_fpm::Fpm::of(&tree, php_fpm::Version::FALLBACK))))
    }

    fn asked(http: &str) -> String {
        match nginx(http).as_slice() {
            [] => "none".to_owned(),
            [StatusPage::Nginx { at, host, path }] => format!("{at} {host} {path}"),
            [StatusPage::Barred { why, .. }] => why.clone(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_location_is_requested_at_an_address_of_its_server() {
        let status = "location = /status { stub_status; allow 127.0.0.1; deny all; }";
        assert_eq!(asked(&format!("server {{ listen 80; {status} }}")), "127.0.0.1:80  /status");
        assert_eq!(asked(&format!("server {{ listen [::]:81; {status} }}")), "[::1]:81  /status");
        assert_eq!(asked(&format!("server {{ listen 10.0.0.2:8080; server_name a.b; {status} }}")), "10.0.0.2:8080 a.b /status");
        assert_eq!(asked(&format!("server {{ listen unix:/run/n.sock; {status} }}")), "unix:/run/n.sock  /status");
        let second = format!("server {{ listen 80; }} server {{ listen 80; server_name b.c; {status} }}");
        assert_eq!(asked(&second), "127.0.0.1:80 b.c /status", "its name leads past the default server");
        let mixed = format!("server {{ listen 443 ssl; listen 127.0.0.1:8081; {status} }}");
        assert_eq!(asked(&mixed), "127.0.0.1:8081  /status");
        assert_eq!(asked("server { location /in { location /in/status { stub_status on; } } }"), "127.0.0.1:80  /in/status");
    }

    #[test]
    fn an_unreachable_location_has_a_reason() {
        assert_eq!(asked("server { listen 80; location / { return 200; } }"), "none");
        for (http, why) in [
            ("server { listen 443 ssl; location /s { stub_status; } }", "without TLS"),
            ("server { listen 80; server_name ~x; location /s { stub_status; } } server { listen 80 default_server; }", "no name"),
            ("server { location ~ /s { stub_status; } }", "no path"),
            ("server { location @s { stub_status; } }", "no path"),
            ("server { location /s { internal; stub_status; } }", "no path"),
            ("log_format bare '$status $request_time'; access_log /a bare; server { location /s { stub_status; } }", "access log"),
        ] {
            assert!(asked(http).contains(why) && asked(http).starts_with("/n.conf:"), "{http}: {}", asked(http));
        }
        let bare = "log_format bare '$status'; access_log /a bare; server {";
        assert!(asked(&format!("{bare} location /s {{ access_log off; stub_status; }} }}")).ends_with("/s"));
        assert!(asked("log_format f '$status ${request}'; access_log /a f; server { location /s { stub_status; } }").ends_with("/s"));
        let both = "server { listen 443 ssl; location /s { stub_status; } } server { listen 80; location /t { stub_status; } }";
        assert!(asked(both).ends_with("/t"), "one that is reached counts");
    }

    #[test]
    fn a_pool_is_polled_at_its_own_listener_or_its_status_listener() {
        let page = |at: &str, own| {
            let at = match at.strip_prefix("unix:") {
                Some(path) => ListenerAddress::Unix(path.to_owned()),
                None => at.parse::<std::net::SocketAddr>().map(|to| ListenerAddress::Tcp(to.ip(), to.port())).unwrap(),
            };
            vec![StatusPage::PhpFpm { pool: "www".into(), at, path: "/status".into(), own }]
        };
        let pool = |rest: &str| fpm(&format!("listen = 9000\npm = static\npm.max_children = 2\npm.status_path = /status\n{rest}"));
        assert_eq!(pool(""), page("[::]:9000", true));
        assert_eq!(pool("listen = /run/f.sock"), page("unix:/run/f.sock", true));
        assert_eq!(pool("pm.status_listen = 127.0.0.1:9001"), page("127.0.0.1:9001", false));
        assert_eq!(pool("pm.status_listen = [::1]:9001\npm = ondemand"), page("[::1]:9001", false));
        assert_eq!(fpm("listen = 9000\npm = static\npm.max_children = 2"), []);
        let is_barred = |pages: Vec<StatusPage>, part: &str| matches!(&pages[..], [StatusPage::Barred { why, .. }] if why.contains(part));
        assert!(is_barred(pool("pm = ondemand"), "would start workers"));
        assert!(is_barred(pool("listen = db.example:9000"), "not resolved"));
    }
}
