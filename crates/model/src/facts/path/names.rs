//! Names of tiers, from what their processes call themselves.

use std::collections::{BTreeMap, BTreeSet};

use super::{Path, Tier};
use crate::observation::{Identity, ListenerAddress, Observation};

/// Names each tier after its program: the command of its oldest process without a trailing version ("php-fpm8.2" is "php-fpm"). Several of one program have their port or the file of
/// their socket as well ("node:8081"), or a number where these do not tell them apart. The first one is where the requests come in: its place stands in the URL.
pub(super) fn give(obs: &Observation, path: &mut Path) {
    let mut alike: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, tier) in path.tiers.iter().enumerate() {
        alike.entry(program_of(obs, tier)).or_default().push(index);
    }
    for (program, indices) in alike {
        let places: BTreeSet<String> = indices.iter().filter_map(|index| place_of(&path.tiers[*index])).collect();
        let tells_apart = places.len() == indices.len();
        for (number, index) in indices.iter().enumerate() {
            let tier = &mut path.tiers[*index];
            tier.name = match place_of(tier).filter(|_| tells_apart) {
                _ if indices.len() == 1 || *index == 0 => program.clone(),
                Some(place) => format!("{program}:{place}"),
                None if number == 0 => program.clone(),
                None => format!("{program}-{}", number + 1),
            };
        }
    }
}

/// Its first port, or the file of its first socket.
fn place_of(tier: &Tier) -> Option<String> {
    tier.listeners.first().map(|placed| match &placed.listener.address {
        ListenerAddress::Tcp(_, port) => port.to_string(),
        ListenerAddress::Unix(path) => path.rsplit('/').next().unwrap_or(path).to_owned(),
    })
}

fn program_of(obs: &Observation, tier: &Tier) -> String {
    let identity = |pid: &u32| obs.processes.get(pid).and_then(|process| process.identity.first());
    let oldest = tier.pids.iter().filter_map(identity).min_by_key(|identity| (identity.start_ticks, identity.pid));
    match oldest {
        Some(identity) => program_name(identity),
        None => tier.listeners.first().map_or_else(|| "server".to_owned(), |placed| placed.listener.address.to_string()),
    }
}

/// A command without directory and version. The kernel keeps 15 bytes of it (TASK_COMM_LEN, include/linux/sched.h), which may be the path that a program gave itself as its title.
fn program_name(identity: &Identity) -> String {
    let whole = identity.comm.trim_end();
    let file = whole.rsplit('/').find(|part| !part.is_empty()).unwrap_or(whole);
    let base = file.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if base.is_empty() { file.to_owned() } else { base.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_without_directory_and_version() {
        for (comm, name) in [
            ("php-fpm8.2", "php-fpm"),
            ("/srv/www/app/sh", "sh"),
            ("/srv/shop.pl", "shop.pl"),
            ("starman master ", "starman master"),
            ("kworker/u8:1", "u8:"),
            ("8080", "8080"),
            ("///", "///"),
        ] {
            let identity = Identity { comm: comm.to_owned(), ..Identity::default() };
            assert_eq!(program_name(&identity), name, "{comm}");
        }
    }
}
