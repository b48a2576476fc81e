//! The parts of a php-fpm configuration that bear on throughput, in the model's form.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chokepoint_config::php_fpm::{Fpm, Listen, Manager, Pool};
use chokepoint_model::observation::{ListenerAddress, Origin, PhpFpmConfig, PhpFpmPool, Setting};

use super::origin::setting;
use super::room::{ConfigRoom, pool_bytes};

/// The configuration. Pools without an address or a manager are left out: php-fpm would not start them.
pub(super) fn config(fpm: &Fpm, files: Vec<(String, i64)>, room: &mut ConfigRoom) -> Result<PhpFpmConfig, String> {
    let mut pools = Vec::new();
    for pool in fpm.pools.iter().filter_map(pool) {
        room.take(pool_bytes(&pool.name, &pool.pm.origin))?;
        pools.push(pool);
    }
    Ok(PhpFpmConfig {
        file: files.first().map(|(path, _)| path.clone()).unwrap_or_default(),
        files,
        pid_file: fpm.global.text("pid").map(|pid| pid.value),
        process_control_timeout_s: fpm.global.seconds("process_control_timeout").map_or_else(unset, |found| setting(found, positive)),
        process_max: fpm.global.number("process.max").map(|found| setting(found, children)).filter(|most| most.value > 0),
        pools,
    })
}

fn children(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

fn unset() -> Setting<u64> {
    Setting { value: 0, origin: Origin::default() }
}

fn positive(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn pool(pool: &Pool) -> Option<PhpFpmPool> {
    let listen = match pool.listen()?.value {
        // php-fpm binds a bare port to every address, which the kernel shows as `::`.
        Listen::Port(port) => ListenerAddress::Tcp(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port),
        Listen::Ip(ip, port) => ListenerAddress::Tcp(ip, port),
        Listen::Name(name, port) if name == "localhost" => ListenerAddress::Tcp(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        Listen::Name(..) => return None,
        Listen::Unix(path) => ListenerAddress::Unix(path),
    };
    let manager = setting(pool.manager()?, |manager| {
        let name = match manager {
            Manager::Static => "static",
            Manager::Dynamic => "dynamic",
            Manager::Ondemand => "ondemand",
        };
        name.to_owned()
    });
    Some(PhpFpmPool {
        name: pool.name.clone(),
        listen,
        backlog: setting(pool.backlog(), |backlog| backlog),
        pm: manager,
        max_children: setting(pool.max_children()?, children),
        max_requests: pool.number("pm.max_requests").map_or_else(unset, |found| setting(found, positive)),
        terminate_timeout_s: pool.seconds("request_terminate_timeout").map_or_else(unset, |found| setting(found, positive)),
    })
}
