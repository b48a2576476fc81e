//! Where an nginx configuration passes requests on: the addresses behind each pass.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chokepoint_config::nginx::{Address, Http, Nginx, Pass, PassKind, Reuse, Settings, Target, Upstream};
use chokepoint_model::observation::{ListenerAddress, NginxPass, Origin};

use crate::servers::room::{ConfigRoom, pass_bytes};

/// The IP addresses of an address. "localhost" is loopback everywhere; other names are not resolved.
pub(in crate::servers) fn addresses(address: &Address) -> Vec<ListenerAddress> {
    match address {
        Address::Ip(ip, port) => vec![ListenerAddress::Tcp(*ip, *port)],
        Address::Unix(path) => vec![ListenerAddress::Unix(path.clone())],
        Address::Name(name, port) if name == "localhost" => {
            let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
            loopback.into_iter().map(|ip| ListenerAddress::Tcp(ip, *port)).collect()
        }
        Address::Name(..) => Vec::new(),
    }
}

pub(super) fn clamped(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// One entry for each upstream block or address that a pass can go to.
pub(super) fn pass_to(
    nginx: &Nginx,
    http: Option<&Http>,
    settings: &Settings,
    pass: &Pass,
    room: &mut ConfigRoom,
) -> Result<Vec<NginxPass>, String> {
    let reuse: Option<Reuse> = http.map(|http| pass.reuse(http, settings));
    let known = |name: &str| -> Option<&Upstream> {
        match http {
            Some(http) => http.upstream(name),
            None => nginx.stream.iter().flat_map(|stream| &stream.upstreams).find(|upstream| upstream.name.eq_ignore_ascii_case(name)),
        }
    };
    let made = |target: &Target| {
        let upstream = match target {
            Target::Upstream(name) => known(name),
            _ => None,
        };
        let servers = match (target, upstream) {
            (Target::Address(address), _) => addresses(address),
            (_, Some(upstream)) => {
                upstream.servers.iter().filter(|server| !server.down).flat_map(|server| addresses(&server.address)).collect()
            }
            _ => Vec::new(),
        };
        let in_reserve = upstream.iter().flat_map(|upstream| &upstream.servers).filter(|server| server.backup && !server.down);
        NginxPass {
            backups: in_reserve.flat_map(|server| addresses(&server.address)).collect(),
            kind: kind_name(pass.kind).to_owned(),
            upstream: upstream.map(|upstream| upstream.name.clone()),
            servers,
            keepalive: upstream.map(|upstream| clamped(upstream.keepalive.value.connections)).filter(|kept| *kept > 0),
            keepalive_requests: upstream.map(|upstream| upstream.keepalive_requests.value),
            reuses: reuse.as_ref().is_some_and(|reuse| reuse.in_force == Some(true)),
            origin: Origin { file: pass.place.file.to_string(), line: pass.place.line },
        }
    };
    let kept = |pass: NginxPass| room.take(pass_bytes(&pass)).map(|()| pass);
    pass.targets().into_iter().map(made).map(kept).collect()
}

fn kind_name(kind: PassKind) -> &'static str {
    match kind {
        PassKind::Proxy => "proxy",
        PassKind::Fastcgi => "fastcgi",
        PassKind::Uwsgi => "uwsgi",
        PassKind::Scgi => "scgi",
        PassKind::Grpc => "grpc",
        PassKind::Memcached => "memcached",
    }
}
