//! What of an nginx configuration bears on throughput, in the model's form.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chokepoint_config::nginx::{
    Address, Http, ListenSocket, Main, Nginx, Pass, PassKind, Reuse, Settings, Target, Upstream, WorkerProcesses,
};
use chokepoint_model::observation::Request;
use chokepoint_model::observation::{ListenerAddress, NginxConfig, NginxListen, NginxPass, Origin, Setting};

use super::levels::{Level, levels};
use super::limits::limits;
use super::room::{Room, entry_bytes, pass_bytes};
use super::selected::{asks, debug_logs, own, rewrite_log, tls_sessions};
use super::setting;

/// Connections of one worker where nothing is set (ngx_event.c, DEFAULT_CONNECTIONS).
const WORKER_CONNECTIONS_DEFAULT: u32 = 512;

/// The configuration as this request meets it, with `auto` workers counted as cores.
pub(super) fn config(
    nginx: &Nginx,
    files: Vec<(String, i64)>,
    cores: u32,
    request: &Request,
    room: &mut Room,
) -> Result<NginxConfig, String> {
    let levels = levels(nginx);
    let sockets = nginx.http.iter().flat_map(|http| &http.sockets);
    let sockets = sockets.chain(nginx.stream.iter().flat_map(|stream| &stream.sockets));
    let mut opened = Vec::new();
    for listen in sockets.filter(|socket| socket.bound && !socket.udp).flat_map(listens) {
        room.take(entry_bytes(&listen.origin))?;
        opened.push(listen);
    }
    Ok(NginxConfig {
        version: None,
        file: files.first().map(|(path, _)| path.clone()).unwrap_or_default(),
        files,
        worker_processes: worker_processes(&nginx.main, cores),
        worker_connections: nginx
            .main
            .worker_connections()
            .map_or(Setting { value: WORKER_CONNECTIONS_DEFAULT, origin: Origin::default() }, |found| setting(found, clamped)),
        worker_rlimit_nofile: nginx.main.worker_rlimit_nofile().map(|found| setting(found, |limit| limit)),
        listens: opened,
        passes: passes(nginx, &levels, room)?,
        limits: limits(nginx, &levels, request, room)?,
        asks: asks(nginx, request, room)?,
        own: own(nginx, request),
        debug_logs: debug_logs(nginx, request, room)?,
        debug_connections: !nginx.main.events.own("debug_connection").is_empty(),
        rewrite_log: rewrite_log(nginx, request),
        tls_sessions: tls_sessions(nginx, request),
    })
}

fn clamped(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn worker_processes(main: &Main, cores: u32) -> Setting<u32> {
    match main.worker_processes() {
        Some(found) => setting(found, |workers| match workers {
            WorkerProcesses::Auto => cores,
            WorkerProcesses::Count(count) => clamped(count),
        }),
        None => Setting { value: 1, origin: Origin::default() },
    }
}

/// The literal addresses of an address; "localhost" is loopback everywhere, other names are not looked up.
pub(super) fn addresses(address: &Address) -> Vec<ListenerAddress> {
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

fn listens(socket: &ListenSocket) -> Vec<NginxListen> {
    let backlog = socket.backlog.origin.place().and_then(|_| u32::try_from(socket.backlog.value).ok());
    let place = option_at(socket);
    let made = |address| NginxListen { address, backlog, reuseport: socket.reuseport, origin: place.clone() };
    addresses(&socket.address).into_iter().map(made).collect()
}

/// Where a socket's options stand, or would.
fn option_at(socket: &ListenSocket) -> Origin {
    let place = socket.options_at.as_ref().or(socket.listens.first());
    place.map_or_else(Origin::default, |place| Origin { file: place.file.to_string(), line: place.line })
}

fn passes(nginx: &Nginx, levels: &[Level<'_>], room: &mut Room) -> Result<Vec<NginxPass>, String> {
    let mut found = Vec::new();
    for (level, pass) in levels.iter().filter_map(|level| Some((level, level.pass?))) {
        found.extend(pass_to(nginx, level.http, level.settings, pass, room)?);
    }
    Ok(found)
}

/// One entry for each upstream block or address that a pass may go to.
pub(super) fn pass_to(
    nginx: &Nginx,
    http: Option<&Http>,
    settings: &Settings,
    pass: &Pass,
    room: &mut Room,
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
        NginxPass {
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
