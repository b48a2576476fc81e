//! Changes of a running server that a user's plan asks for, and no finding: text in its configuration, and its cores.

use crate::facts::path::{self, Tier};
use crate::fix::change::{Activation, Change, ServerSetting, core_list};
use crate::observation::{Identity, Observation};

/// Which configurations can be changed.
const CHANGEABLE: &str = "only that of nginx, of php-fpm, and of HAProxy with a master process (-W) can be changed";

/// The first process of a server on the path, by the name of its tier.
///
/// # Errors
/// There is no such tier, or it has several first processes, or they cannot be seen. A clause without a full stop.
pub fn first_process(obs: &Observation, server: &str) -> Result<u32, String> {
    first(obs, server).map(|identity| identity.pid)
}

fn first<'o>(obs: &'o Observation, server: &str) -> Result<&'o Identity, String> {
    let tiers = path::discover(obs).tiers;
    let tier = named(&tiers, server)?;
    let seen = tier.pids.iter().filter_map(|pid| obs.processes.get(pid)?.identity.last());
    let first: Vec<&Identity> = seen.filter(|identity| !tier.pids.contains(&identity.parent)).collect();
    match first[..] {
        [identity] => Ok(identity),
        [] => Err(format!("the processes of {server} cannot be seen")),
        _ => Err(format!("{server} has {} processes that no other one of them started", first.len())),
    }
}

/// Replaces a piece of text in the configuration of a server.
///
/// # Errors
/// As of [`first_process`], or it is no server whose configuration is known.
pub fn text(obs: &Observation, server: &str, find: &str, with: &str) -> Result<Change, String> {
    let identity = first(obs, server)?;
    let view = obs.servers.get(&identity.pid);
    let config = view.and_then(|view| view.config.last());
    let config = config.ok_or_else(|| format!("the configuration of {server} was not read: {CHANGEABLE}"))?;
    let text = view.and_then(|view| view.files.text.as_ref());
    let kind = text.ok_or_else(|| format!("the configuration of {server} is read and cannot be changed: {CHANGEABLE}"))?.server();
    let (pid, start_ticks) =
        view.and_then(|view| view.files.master).map_or((identity.pid, identity.start_ticks), |master| (master.pid, master.start_ticks));
    let setting = ServerSetting::Text { server: kind, find: find.to_owned(), with: with.to_owned() };
    Ok(Change::Server {
        server: kind,
        pid,
        start_ticks,
        file: view.and_then(|view| view.files.main.clone()).unwrap_or_else(|| config.file().to_owned()),
        setting,
        from: find.to_owned(),
        to: with.to_owned(),
        activation: Activation::Reload,
    })
}

/// Restricts a server to some cores.
///
/// # Errors
/// As of [`first_process`].
pub fn affinity(obs: &Observation, server: &str, cores: &[u32]) -> Result<Change, String> {
    let identity = first(obs, server)?;
    Ok(Change::Affinity {
        pid: identity.pid,
        start_ticks: identity.start_ticks,
        process: format!("{server} (process {})", identity.pid),
        from: core_list(&identity.cpus_allowed),
        to: core_list(cores),
    })
}

fn named<'t>(tiers: &'t [Tier], server: &str) -> Result<&'t Tier, String> {
    tiers.iter().find(|tier| tier.name == server).ok_or_else(|| {
        let names: Vec<&str> = tiers.iter().map(|tier| tier.name.as_str()).collect();
        match names[..] {
            [] => "no server on this host answers for the URL".to_owned(),
            _ => format!("no server \"{server}\" is on the path, only {}", names.join(", ")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_not_there_is_told() {
        let obs = Observation::default();
        assert!(first_process(&obs, "nginx").unwrap_err().contains("no server on this host"));
        assert!(text(&obs, "nginx", "a", "b").is_err() && affinity(&obs, "nginx", &[0]).is_err());
    }
}
