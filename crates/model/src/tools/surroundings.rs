//! What a measurement was made on, as names and values: kernel, host, kernel settings, and the servers of the path with their settings. Two runs are compared
//! by it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use crate::facts::path::{self, Tier};
use crate::observation::{CgroupId, NetnsId, NginxConfig, Observation, PhpFpmConfig, ServerConfig, StatedConfig};
use crate::output::outcome::utc;

/// Values by name, by group. What was not read is left out: absent is not zero.
pub type Surroundings = BTreeMap<String, BTreeMap<String, String>>;

/// Kernel settings that change by themselves: the open files of the host.
const COUNTERS: [&str; 1] = ["fs.file-nr"];

/// The most bytes of a value: a list of reserved ports can have 192 KiB.
const VALUE_BYTES_MAX: usize = 400;

/// What an observation shows of it.
pub fn surroundings(obs: &Observation) -> Surroundings {
    let mut found = Found::default();
    if let Some(kernel) = obs.kernel.last() {
        found.set("kernel", "release", &kernel.release);
        found.set("host", "cores", kernel.cores);
    }
    if let Some(name) = &obs.request.machine {
        found.set("host", "name", name);
    }
    if let Some(memory) = obs.memory.last() {
        found.set("host", "memory (bytes)", memory.total);
        found.set("host", "swap (bytes)", memory.swap_total);
    }
    let path = path::discover(obs);
    let namespaces: BTreeSet<NetnsId> = path.tiers.iter().map(|tier| tier.netns).chain([obs.request.client_netns]).collect();
    namespaces.into_iter().for_each(|id| sysctls(obs, id, &mut found));
    path.tiers.iter().for_each(|tier| server(obs, tier, &mut found));
    found.0
}

#[derive(Default)]
struct Found(Surroundings);

impl Found {
    fn set(&mut self, group: &str, name: &str, value: impl Display) {
        let mut value = value.to_string();
        if value.len() > VALUE_BYTES_MAX {
            let length = value.len();
            value.truncate(value.floor_char_boundary(VALUE_BYTES_MAX));
            value.push_str(&format!("… ({length} bytes)"));
        }
        if !value.is_empty() {
            self.0.entry(group.to_owned()).or_default().insert(name.to_owned(), value);
        }
    }
}

/// True if a value is the one that a setting has where nobody set it: a list of what is special leaves it out.
pub fn is_default(name: &str, value: &str) -> bool {
    match value {
        "default" => name.ends_with(" backlog") || name.ends_with(" keepalive"),
        "off" => name.ends_with(" reuseport") || name.ends_with(" reuses connections"),
        "0" => matches!(name, "debug logs" | "swap (bytes)"),
        _ => false,
    }
}

/// The kernel settings of a namespace. Its number changes with each start, so it goes by its name.
fn sysctls(obs: &Observation, id: NetnsId, found: &mut Found) {
    let Some(view) = obs.netns.get(&id) else { return };
    let name = if view.is_host { "host" } else { view.name.as_deref().unwrap_or("without a name") };
    let group = format!("sysctls ({name})");
    for key in view.sysctls.keys().filter(|key| !COUNTERS.contains(&key.as_str())) {
        if let Some(value) = view.sysctl(key) {
            found.set(&group, key, value.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
}

/// A server: its program, its limits, and its settings if it is of a known kind.
fn server(obs: &Observation, tier: &Tier, found: &mut Found) {
    let processes = || tier.pids.iter().filter_map(|pid| obs.processes.get(pid));
    if let Some(program) = processes().find_map(|process| process.identity.last()?.exe.clone()) {
        found.set(&tier.name, "program", program);
    }
    if let Some(limit) = processes().filter_map(|process| process.limits.last()?.open_files_soft).min() {
        found.set(&tier.name, "open files (limit)", limit);
    }
    if let Some(cores) =
        processes().find_map(|process| process.identity.last()).map(|identity| identity.cpus_allowed.len()).filter(|n| *n > 0)
    {
        found.set(&tier.name, "cores it may use", cores);
    }
    let cgroups = || processes().filter_map(|process| CgroupId::of_cpu(process.cgroups.last()?)).flat_map(|cgroup| cgroup.levels());
    if let Some(limit) = cgroups().filter_map(|level| obs.cgroups.get(&level)?.last()?.limit_cores()).min_by(f64::total_cmp) {
        found.set(&tier.name, "CPU quota (cores)", limit);
    }
    match configuration(obs, tier) {
        Some(ServerConfig::Nginx(config)) => nginx(config, &tier.name, found),
        Some(ServerConfig::PhpFpm(config)) => php_fpm(config, &tier.name, found),
        Some(ServerConfig::Stated(config)) => stated(config, &tier.name, found),
        None => {}
    }
}

/// The configuration of the server whose master is one of the tier's processes, or started one of them.
fn configuration<'a>(obs: &'a Observation, tier: &Tier) -> Option<&'a ServerConfig> {
    let parents = tier.pids.iter().filter_map(|pid| Some(obs.processes.get(pid)?.identity.last()?.parent));
    tier.pids.iter().copied().chain(parents).find_map(|pid| obs.servers.get(&pid)?.config.last())
}

fn files(files: &[(String, i64)], group: &str, found: &mut Found) {
    for (file, changed_s) in files {
        if let Some(changed) = utc(*changed_s) {
            found.set(group, &format!("{file} (last change)"), changed);
        }
    }
}

fn stated(config: &StatedConfig, group: &str, found: &mut Found) {
    for limit in &config.limits {
        let owner = if limit.owner.is_empty() { String::new() } else { format!(" of {}", limit.owner) };
        found.set(group, &format!("{}{owner}", limit.setting), limit.value);
    }
    files(&config.files, group, found);
}

fn nginx(config: &NginxConfig, group: &str, found: &mut Found) {
    if let Some((major, minor, patch)) = config.version {
        found.set(group, "version", format!("{major}.{minor}.{patch}"));
    }
    found.set(group, "worker_processes", config.worker_processes.value);
    found.set(group, "worker_connections", config.worker_connections.value);
    if let Some(limit) = &config.worker_rlimit_nofile {
        found.set(group, "worker_rlimit_nofile", limit.value);
    }
    for listen in &config.listens {
        let name = format!("listen {}", listen.address);
        found.set(group, &format!("{name} backlog"), listen.backlog.map_or_else(|| "default".to_owned(), |backlog| backlog.to_string()));
        found.set(group, &format!("{name} reuseport"), on(listen.reuseport));
    }
    for pass in &config.passes {
        let to = pass.upstream.clone().unwrap_or_else(|| pass.servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        let name = format!("{}_pass {to}", pass.kind);
        found.set(group, &format!("{name} reuses connections"), on(pass.reuses));
        if pass.upstream.is_some() {
            let keepalive = pass.keepalive.map_or_else(|| "default".to_owned(), |keepalive| keepalive.to_string());
            found.set(group, &format!("{name} keepalive"), keepalive);
        }
    }
    for limit in &config.limits {
        let name = format!("{} {}", limit.kind, limit.zone);
        match (limit.rate_per_s, limit.connections) {
            (Some(rate), _) => found.set(group, &name, format!("{rate}/s, burst {}", limit.burst)),
            (None, Some(connections)) => found.set(group, &name, connections),
            (None, None) => {}
        }
    }
    if let Some(sessions) = &config.tls_sessions {
        found.set(group, "ssl_session_tickets", on(sessions.tickets.value));
        found.set(group, "ssl_session_cache", &sessions.cache.value);
    }
    found.set(group, "debug logs", config.debug_logs.len());
    files(&config.files, group, found);
}

fn php_fpm(config: &PhpFpmConfig, group: &str, found: &mut Found) {
    for pool in &config.pools {
        let mut set = |name: &str, value: &dyn Display| found.set(group, &format!("{} {name}", pool.name), value);
        set("listen.backlog", &pool.backlog.value);
        set("pm", &pool.pm.value);
        set("pm.max_children", &pool.max_children.value);
        set("pm.max_requests", &pool.max_requests.value);
        set("request_terminate_timeout", &pool.terminate_timeout_s.value);
    }
    files(&config.files, group, found);
}

fn on(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{KernelInfo, Memory, NetnsView, NginxListen, Origin, PhpFpmPool, Setting};
    use crate::reading::{Lack, Reading};

    #[test]
    fn what_was_read_has_a_value_and_the_rest_is_left_out() {
        let mut obs = Observation::default();
        assert_eq!(surroundings(&obs), Surroundings::new(), "absent is not zero");
        obs.kernel.push(0, Reading::Ok(KernelInfo { release: "6.1.0".to_owned(), cores: 2, ..KernelInfo::default() }));
        obs.memory.push(0, Reading::Ok(Memory { total: 4096, ..Memory::default() }));
        let mut view = NetnsView { is_host: true, ..NetnsView::default() };
        for (key, value) in [("net.ipv4.tcp_rmem", "4096\t131072\t6291456\n"), ("fs.file-nr", "1\t0\t2\n"), ("net.core.somaxconn", "128\n")]
        {
            view.sysctls.entry(key.to_owned()).or_default().push(0, Reading::Ok(value.to_owned()));
        }
        view.sysctls.entry("net.ipv4.tcp_tw_reuse".to_owned()).or_default().push(0, Reading::Absent(Lack::new("no")));
        obs.netns.insert(NetnsId(0), view);
        let found = surroundings(&obs);
        let lines: Vec<String> =
            found.iter().flat_map(|(group, values)| values.iter().map(move |(name, value)| format!("{group}: {name} = {value}"))).collect();
        let expected = [
            "host: cores = 2",
            "host: memory (bytes) = 4096",
            "host: swap (bytes) = 0",
            "kernel: release = 6.1.0",
            "sysctls (host): net.core.somaxconn = 128",
            "sysctls (host): net.ipv4.tcp_rmem = 4096 131072 6291456",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn what_nobody_set_is_told_from_what_somebody_did() {
        let listen = NginxListen {
            address: crate::observation::ListenerAddress::Unix("/run/n.sock".to_owned()),
            backlog: None,
            reuseport: false,
            origin: Origin::default(),
        };
        let mut found = Found::default();
        nginx(&NginxConfig { listens: vec![listen.clone()], ..NginxConfig::default() }, "plain", &mut found);
        nginx(
            &NginxConfig { listens: vec![NginxListen { backlog: Some(511), reuseport: true, ..listen }], ..NginxConfig::default() },
            "set",
            &mut found,
        );
        let special = |group: &str| found.0[group].iter().filter(|(name, value)| !is_default(name, value)).count();
        assert_eq!((special("plain"), special("set")), (2, 4), "workers and connections are what the server has: {:?}", found.0);
    }

    #[test]
    fn settings_go_by_the_name_of_their_pool_and_directive() {
        let mut found = Found::default();
        let pool = PhpFpmPool {
            name: "www".to_owned(),
            listen: crate::observation::ListenerAddress::Unix("/run/php.sock".to_owned()),
            backlog: Setting { value: -1, ..Setting::default() },
            pm: Setting { value: "static".to_owned(), ..Setting::default() },
            max_children: Setting { value: 4, ..Setting::default() },
            max_requests: Setting::default(),
            terminate_timeout_s: Setting::default(),
        };
        let config = PhpFpmConfig { pools: vec![pool], files: vec![("/etc/fpm.conf".to_owned(), 0)], ..PhpFpmConfig::default() };
        php_fpm(&config, "php-fpm", &mut found);
        assert_eq!(found.0["php-fpm"]["www pm.max_children"], "4");
        assert_eq!(found.0["php-fpm"]["/etc/fpm.conf (last change)"], "1970-01-01T00:00:00Z");
        nginx(&NginxConfig { version: Some((1, 22, 1)), ..NginxConfig::default() }, "nginx", &mut found);
        assert_eq!(found.0["nginx"]["version"], "1.22.1");
    }
}
