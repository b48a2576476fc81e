//! The parts of an nginx configuration that bear on throughput, in the model's form.

pub(super) mod levels;
mod limits;
pub(super) mod passes;
pub(super) mod selected;

use chokepoint_config::nginx::{ListenSocket, Main, Nginx, WorkerProcesses};
use chokepoint_model::observation::{NginxConfig, NginxListen, NginxPass, Origin, Request, Setting};

use super::origin::setting;
use super::room::{ConfigRoom, entry_bytes};
use levels::{ConfigLevel, levels};
use limits::limits;
use passes::{addresses, clamped, pass_to};
use selected::{asks, debug_logs, gzip_level, leads_to, listener_leads_to, own, rewrite_log, tls_sessions};

/// Default connections of one worker (ngx_event.c, DEFAULT_CONNECTIONS).
const WORKER_CONNECTIONS_DEFAULT: u32 = 512;

/// The configuration for this request. `auto` workers count as cores.
pub(super) fn config(
    nginx: &Nginx,
    files: Vec<(String, i64)>,
    cores: u32,
    request: &Request,
    room: &mut ConfigRoom,
) -> Result<NginxConfig, String> {
    let levels = levels(nginx);
    let sockets = nginx.http.iter().flat_map(|http| &http.sockets);
    let sockets = sockets.chain(nginx.stream.iter().flat_map(|stream| &stream.sockets));
    let mut opened = Vec::new();
    for listen in sockets.filter(|socket| socket.bound && !socket.udp).flat_map(listens) {
        room.take(entry_bytes(&listen.origin))?;
        opened.push(listen);
    }
    let leads_to = leads_to(nginx, request, room)?;
    Ok(NginxConfig {
        version: None,
        file: files.first().map(|(path, _)| path.clone()).unwrap_or_default(),
        files,
        user: nginx.main.settings.one("user").map(|user| user.arg(0).to_owned()),
        worker_processes: worker_processes(&nginx.main, cores),
        worker_connections: nginx
            .main
            .worker_connections()
            .map_or(Setting { value: WORKER_CONNECTIONS_DEFAULT, origin: Origin::default() }, |found| setting(found, clamped)),
        worker_rlimit_nofile: nginx.main.worker_rlimit_nofile().map(|found| setting(found, |limit| limit)),
        listens: opened,
        passes: passes(nginx, &levels, room)?,
        limits: limits(nginx, &levels, request, room)?,
        shares_no_listener: leads_to.is_some() && leads_to == listener_leads_to(nginx, request, room)?,
        leads_to,
        asks: asks(nginx, request, room)?,
        own: own(nginx, request),
        debug_logs: debug_logs(nginx, request, room)?,
        debug_connections: !nginx.main.events.own("debug_connection").is_empty(),
        rewrite_log: rewrite_log(nginx, request),
        tls_sessions: tls_sessions(nginx, request),
        gzip_level: gzip_level(nginx, request),
    })
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

fn listens(socket: &ListenSocket) -> Vec<NginxListen> {
    let backlog = socket.backlog.origin.place().and_then(|_| u32::try_from(socket.backlog.value).ok());
    let place = option_at(socket);
    let made = |address| NginxListen { address, backlog, reuseport: socket.reuseport, origin: place.clone() };
    addresses(&socket.address).into_iter().map(made).collect()
}

/// The line with a socket's options, or the line to put them in.
fn option_at(socket: &ListenSocket) -> Origin {
    let place = socket.options_at.as_ref().or(socket.listens.first());
    place.map_or_else(Origin::default, |place| Origin { file: place.file.to_string(), line: place.line })
}

fn passes(nginx: &Nginx, levels: &[ConfigLevel<'_>], room: &mut ConfigRoom) -> Result<Vec<NginxPass>, String> {
    let mut found = Vec::new();
    for (level, pass) in levels.iter().filter_map(|level| Some((level, level.pass?))) {
        found.extend(pass_to(nginx, level.http, level.settings, pass, room)?);
    }
    Ok(found)
}
