//! Names of tiers, from what their processes call themselves.

use std::collections::BTreeMap;

use super::Path;
use crate::observation::{Identity, Observation};

/// Names each tier after its program: the command of its oldest process without a trailing version ("php-fpm8.2" is "php-fpm").
pub(super) fn give(obs: &Observation, path: &mut Path) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for tier in &mut path.tiers {
        let identity = |pid: &u32| obs.processes.get(pid).and_then(|process| process.identity.first());
        let oldest = tier.pids.iter().filter_map(identity).min_by_key(|identity| (identity.start_ticks, identity.pid));
        let name = match oldest {
            Some(identity) => program_name(identity),
            None => tier.listeners.first().map_or_else(|| "server".to_owned(), |placed| placed.listener.address.to_string()),
        };
        let count = seen.entry(name.clone()).or_insert(0);
        *count += 1;
        tier.name = if *count == 1 { name } else { format!("{name}-{count}") };
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
