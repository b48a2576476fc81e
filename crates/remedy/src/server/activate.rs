//! Putting an edited configuration in force by the least disruptive action, and waiting until it is.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use chokepoint_config::php_fpm::Manager;
use chokepoint_model::change::{ServerKind, ServerSetting};
use chokepoint_servers::ReloadSignal;
use rustix::process::{Signal, pidfd_send_signal};

use super::edit;
use super::known_master::KnownMaster;
use super::listener;
use super::master::{Master, Worker, now_ticks};
use super::socket;
use super::view::View;
use crate::netns;
use crate::record::Wanted;

/// Longest wait for new workers after a reload.
const RELOAD_TIME_MAX: Duration = Duration::from_secs(20);
/// How often to check.
const RELOAD_POLL: Duration = Duration::from_millis(50);
/// How long a php-fpm without workers (`ondemand`), or a new worker of a master that does not listen, must survive the reload.
const QUIET_TIME: Duration = Duration::from_millis(500);
/// How long old workers of nginx may keep running: a longer busy one proves nothing about the reload.
const OLD_WORKERS_TIME_MAX: Duration = Duration::from_secs(5);
/// How long workers of nginx that are shutting down may still use the address from which the requests move. One that sends a long answer uses none.
const LEAVING_TIME_MAX: Duration = Duration::from_secs(15);

/// Puts the configuration in force, waits for the evidence, and returns the master afterwards. Without a wanted value it only waits for the reload. The
/// error is a clause.
///
/// nginx: SIGHUP; it calls listen() again for addresses whose `backlog=` changed. php-fpm: SIGUSR2, which ends requests in flight unless
/// `process_control_timeout` is set. php-fpm applies `listen.backlog` only at its start; listen(2) on a duplicate of its socket gives the queue its
/// new limit at once and costs no request.
pub(super) fn run(master: &Master, view: &View, main: &str, setting: &ServerSetting, wanted: Option<Wanted<'_>>) -> Result<Master, String> {
    if let (true, Some(wanted)) = (is_live(setting), wanted) {
        return listen_again(master, view, main, setting, wanted).map(|()| master.clone());
    }
    let now = reload(master, view, main, setting, wanted.map(|wanted| wanted.value))?;
    if let Some(wanted) = wanted.filter(|wanted| wanted.queue.is_some()) {
        listen_again(&now, view, main, setting, wanted)?;
    }
    Ok(now)
}

/// Makes the master read its configuration, and waits for the evidence.
fn reload(master: &Master, view: &View, main: &str, setting: &ServerSetting, value: Option<&str>) -> Result<Master, String> {
    let before = now_ticks();
    let known = KnownMaster::of(&master.identity);
    let process = master.hold()?;
    pidfd_send_signal(&process, signal(master)).map_err(|error| format!("the reload's signal could not be sent ({error})"))?;
    let start = Instant::now();
    let mut why = "no new worker was started".to_owned();
    while start.elapsed() < RELOAD_TIME_MAX {
        thread::sleep(RELOAD_POLL);
        // A php-fpm in the background gets another pid when it reloads.
        match Master::find(master.kind, master.pid(), master.identity.start_ticks, main, Some(&known)) {
            Ok(Some(now)) => match in_force(&now, view, before, start.elapsed(), main, setting, value) {
                Ok(()) => return Ok(now),
                Err(error) => why = error,
            },
            Ok(None) => why = "the server exited during the reload: start it again".to_owned(),
            // Its title is not set yet, or the old master still runs.
            Err(error) => why = error,
        }
    }
    Err(format!("{why}, {} s after the reload: see its error log", RELOAD_TIME_MAX.as_secs()))
}

/// The signal that makes a master reload.
fn signal(master: &Master) -> Signal {
    match master.def.reload_signal {
        ReloadSignal::Hup => Signal::HUP,
        ReloadSignal::Usr2 => Signal::USR2,
    }
}

/// True where a setting needs no reload.
pub(super) fn is_live(setting: &ServerSetting) -> bool {
    matches!(setting, ServerSetting::PhpFpmBacklog { .. })
}

/// Checks whether the wanted value is in force in a server that got the signal at tick `since`.
fn in_force(
    master: &Master,
    view: &View,
    since: u64,
    waited: Duration,
    main: &str,
    setting: &ServerSetting,
    value: Option<&str>,
) -> Result<(), String> {
    let workers = master.workers();
    let is_new = |worker: &&Worker| worker.start_ticks >= since;
    let fresh: Vec<&Worker> = workers.iter().filter(is_new).collect();
    let no_worker_yet = || "no new worker was started".to_owned();
    match (setting, value) {
        (ServerSetting::PhpFpmMaxChildren { pool }, Some(value)) => {
            let of_pool = format!("php-fpm: pool {pool}");
            let count = fresh.iter().filter(|worker| worker.title == of_pool).count();
            let is_static = edit::php_fpm_pool(view, main, pool).is_some_and(|(manager, _)| manager == Some(Manager::Static));
            if workers.len() != fresh.len() {
                Err("old workers have not exited yet".to_owned())
            } else if is_static && count.to_string() != value {
                Err(format!("{count} workers of {value} were started"))
            } else if fresh.is_empty() && waited < QUIET_TIME {
                Err(no_worker_yet())
            } else {
                Ok(())
            }
        }
        _ if master.kind == ServerKind::PhpFpm && fresh.is_empty() && waited >= QUIET_TIME && workers.is_empty() => Ok(()),
        _ if fresh.is_empty() => Err(no_worker_yet()),
        // One that cannot get its sockets or limits ends at once.
        _ if master.def.is_apart && waited < QUIET_TIME => Err("the new worker may still end".to_owned()),
        // nginx ends its old workers shortly after starting new ones. Until then they say nothing about what is in force.
        _ if workers.len() != fresh.len() && waited < OLD_WORKERS_TIME_MAX => Err("old workers have not exited yet".to_owned()),
        (ServerSetting::NginxListenBacklog { .. }, Some(value)) => {
            // Without the right to inspect the sockets, the new workers are the evidence.
            sockets(master, view, main, setting).map_or(Ok(()), |sockets| check_limits(master, &sockets, Wanted { value, queue: None }))
        }
        (ServerSetting::NginxFastcgiAddress { .. }, _) if master.has_leaving_workers() && waited < LEAVING_TIME_MAX => {
            Err("old workers have not finished their requests yet".to_owned())
        }
        (ServerSetting::PhpFpmSecondPool { .. } | ServerSetting::PhpFpmListen { .. }, Some(value)) if value != ServerSetting::UNSET => {
            // "unix:/run/php/www.sock owner=www-data backlog=4096", or an address.
            socket::check_listens(master, value.split(' ').next().unwrap_or_default())
        }
        (ServerSetting::NginxWorkerRlimitNofile, Some(value)) if value != ServerSetting::UNSET => {
            let limit = files_limit(fresh[0].pid);
            match limit {
                Some(limit) if limit != value => Err(format!("the limit of its workers is {limit} instead of {value}")),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// The limit of open files of a process (proc_pid_limits(5)).
fn files_limit(pid: u32) -> Option<String> {
    let text = chokepoint_foreign::read_kernel(format!("/proc/{pid}/limits"), 1 << 14).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next().map(str::to_owned)
}

/// The common limit of a setting's accept queues; nothing where it cannot be read or they differ.
pub(super) fn queue(master: &Master, view: &View, main: &str, setting: &ServerSetting) -> Option<u64> {
    let limits: Vec<u64> = sockets(master, view, main, setting).ok()?.iter().filter_map(listener::limit).collect();
    let first = *limits.first()?;
    limits.iter().all(|limit| *limit == first).then_some(first)
}

/// Duplicates of a setting's listening sockets. The error is a clause.
fn sockets(master: &Master, view: &View, main: &str, setting: &ServerSetting) -> Result<Vec<OwnedFd>, String> {
    let address = match setting {
        ServerSetting::NginxListenBacklog { address } => address.clone(),
        ServerSetting::PhpFpmBacklog { pool } => {
            let listen = edit::php_fpm_pool(view, main, pool).and_then(|(_, listen)| listen);
            listen.ok_or("the address of the pool is not known")?.to_string()
        }
        _ => return Ok(Vec::new()),
    };
    let place = listener::ListenAddress::parse(&address).ok_or_else(|| format!("{address} is not a valid address"))?;
    let sockets = listener::of(&master.hold()?, master.pid(), &place)?;
    if sockets.is_empty() { Err(format!("the server does not listen on {address}")) } else { Ok(sockets) }
}

/// Checks the sockets' limits: the smaller of the wanted limit and `net.core.somaxconn` of the server's namespace.
fn check_limits(master: &Master, sockets: &[OwnedFd], wanted: Wanted<'_>) -> Result<(), String> {
    let backlog = wanted.value.parse::<i64>().ok();
    let asked = wanted.queue.or_else(|| backlog.map(|backlog| u64::try_from(backlog).unwrap_or(u64::MAX)));
    let (Some(asked), Some(somaxconn)) = (asked, somaxconn(master)) else { return Ok(()) };
    let limit = asked.min(somaxconn);
    match sockets.iter().filter_map(listener::limit).find(|now| *now != limit) {
        Some(now) => Err(format!("the limit of the accept queue is {now} instead of {limit}")),
        None => Ok(()),
    }
}

fn somaxconn(master: &Master) -> Option<u64> {
    let place = netns::NetnsHandle::find(master.netns(), Path::new("/")).ok()?;
    place.run(|| chokepoint_foreign::read_kernel("/proc/sys/net/core/somaxconn", 1 << 10)).ok()?.ok()?.trim().parse().ok()
}

/// Sets the limit of the accept queues by listen(2), which works at any time.
fn listen_again(master: &Master, view: &View, main: &str, setting: &ServerSetting, wanted: Wanted<'_>) -> Result<(), String> {
    let sockets = sockets(master, view, main, setting)?;
    let asked = wanted.queue.and_then(|queue| i32::try_from(queue).ok()).or_else(|| wanted.value.parse().ok());
    let backlog = asked.ok_or("the backlog is not a number")?;
    for socket in &sockets {
        rustix::net::listen(socket, backlog).map_err(|error| format!("listen(2): {error}"))?;
    }
    check_limits(master, &sockets, wanted)
}
