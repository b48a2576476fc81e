//! `chokepoint profile --drops`: the packets that the kernel drops, the reasons, and the destination sockets.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use chokepoint_profile::drops::text as drops_text;
use chokepoint_profile::drops::{Dropping, Drops, Holder, SocketDrops};
use chokepoint_sources::{PortSocket, Root, descriptors_left_out, read_port_sockets, read_socket_programs};

use crate::args;
use crate::run::settings;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use crate::terminal::progress::Progress;

/// Counts drops for the given time or until Ctrl-C, and prints them.
pub(super) fn run(args: &args::Profile, interrupt: &Interrupt) -> Result<()> {
    let duration = settings::duration(&args.duration)?;
    let dropping = Dropping::open()?;
    let before = read_port_sockets(&Root::default());
    let mut progress = Progress::new("counting", Some(duration));
    let drops = dropping.run(|elapsed| {
        progress.tick("");
        elapsed < duration && !interrupt.is_set()
    });
    progress.finish();
    let mut drops = drops?;
    match before.and_then(|before| Ok((before, read_port_sockets(&Root::default())?))) {
        Ok((before, after)) => {
            let inodes = drops.drops.iter().flat_map(|drop| drop.inodes.iter().copied()).collect();
            name_sockets(&mut drops, &before, &after, &read_socket_programs(&Root::default(), &inodes));
        }
        Err(error) => drops.notes.push(format!("the sockets of dropped packets are not known: {error}")),
    }
    drops.notes.extend(descriptors_left_out());
    match args.json {
        true => output::print_json(&(serde_json::to_string(&drops)? + "\n")),
        false => output::print(&drops_text::render(&drops)),
    }
}

/// Adds the owners of the sockets of dropped packets, and the drops that sockets counted between two readings. `programs`: owners by the inode numbers of
/// sockets. For a closed connection, the owner of the listener at its local address.
fn name_sockets(drops: &mut Drops, before: &[PortSocket], after: &[PortSocket], programs: &BTreeMap<u64, String>) {
    let all = || before.iter().chain(after);
    for drop in &mut drops.drops {
        let of_sockets = drop.inodes.iter().filter_map(|inode| programs.get(inode));
        let mut holders: BTreeSet<Holder> =
            of_sockets.map(|program| Holder { program: program.clone(), namespace: drop.socket_namespace.clone() }).collect();
        if let Some(local) = drop.local.filter(|_| holders.is_empty()) {
            let there = all().filter(|socket| {
                socket.local.1 == local.port()
                    && (socket.local.0 == local.ip() || socket.local.0.is_unspecified())
                    && socket.program.is_some()
            });
            let inside = |holder: &Holder| drop.socket_namespace.is_none() || holder.namespace == drop.socket_namespace;
            holders.extend(there.map(holder).filter(inside));
        }
        drop.holders = holders.into_iter().collect();
    }
    let first: BTreeMap<u64, u64> = before.iter().filter_map(|socket| Some((socket.inode, socket.drops?))).collect();
    let counted = after.iter().filter_map(|socket| {
        // The kernel's counter has 32 bits and wraps around.
        let count = wrapping(socket.drops?, first.get(&socket.inode).copied().unwrap_or(0));
        let (protocol, local) = (if socket.udp { "udp" } else { "tcp" }, socket.local.into());
        (count > 0).then(|| SocketDrops { protocol, local, holder: holder(socket), count })
    });
    drops.sockets = counted.collect();
    drops.sockets.sort_by_key(|socket| std::cmp::Reverse(socket.count));
}

fn wrapping(now: u64, before: u64) -> u64 {
    now.wrapping_sub(before) & u64::from(u32::MAX)
}

fn holder(socket: &PortSocket) -> Holder {
    let program = socket.program.clone().unwrap_or_else(|| "(not visible)".to_owned());
    let namespace = socket.netns_name.clone().unwrap_or_else(|| format!("net:[{}]", socket.netns.0));
    Holder { program, namespace: Some(namespace) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_profile::drops::{DROPS_SCHEMA, Drop, Means};
    use chokepoint_sources::netns;

    fn socket(udp: bool, local: &str, inode: u64, drops: u64, program: &str) -> PortSocket {
        let local: std::net::SocketAddr = local.parse().unwrap();
        PortSocket {
            netns: netns::own().unwrap(),
            netns_name: Some("web".to_owned()),
            udp,
            local: (local.ip(), local.port()),
            drops: Some(drops),
            inode,
            uid: 0,
            holder: chokepoint_foreign::Holder::User(0),
            netns_is_users: false,
            program: (!program.is_empty()).then(|| program.to_owned()),
        }
    }

    #[test]
    fn drops_get_the_owner_of_their_socket_and_sockets_the_growth_of_their_counter() {
        let drop = |local: &str, namespace: Option<&str>, inodes: &[u64]| Drop {
            reason: "SOCKET_RCVBUFF".to_owned(),
            meaning: None,
            location: "udp_rcv".to_owned(),
            protocol: "IPv4".to_owned(),
            for_socket: Some(true),
            program: "wrk".to_owned(),
            namespace: None,
            local: local.parse().ok(),
            remote: None,
            ends: 1,
            transport: None,
            state: None,
            socket_namespace: namespace.map(str::to_owned),
            holders: Vec::new(),
            inodes: inodes.iter().copied().collect(),
            count: 1,
        };
        let mut drops = Drops {
            schema: DROPS_SCHEMA,
            means: Means::Bpf,
            duration_s: 1.0,
            packets: 2,
            lost: 0,
            left_out: Vec::new(),
            drops: vec![
                drop("10.0.0.1:53", None, &[]),
                drop("10.0.0.1:54", None, &[]),
                drop("", None, &[]),
                drop("10.0.0.1:53", Some("web"), &[98]),
                drop("10.0.0.1:53", Some("other"), &[]),
                drop("", Some("db"), &[98, 99]),
            ],
            sockets: Vec::new(),
            notes: Vec::new(),
            cost_cpu_s: 0.0,
        };
        let before = [socket(true, "0.0.0.0:53", 1, 7, "named"), socket(false, "[::]:80", 2, u64::from(u32::MAX), "nginx")];
        let after = [
            socket(true, "0.0.0.0:53", 1, 12, "named"),
            socket(false, "[::]:80", 2, 1, "nginx"),
            socket(false, "10.0.0.1:81", 3, 0, "other"),
            socket(true, "10.0.0.2:54", 4, 3, ""),
        ];
        name_sockets(&mut drops, &before, &after, &BTreeMap::from([(99, "php-fpm".to_owned())]));
        let holders: Vec<Vec<&str>> =
            drops.drops.iter().map(|drop| drop.holders.iter().map(|holder| holder.program.as_str()).collect()).collect();
        assert_eq!(holders, [vec!["named"], vec![], vec![], vec!["named"], vec![], vec!["php-fpm"]]);
        assert_eq!(drops.drops[5].holders[0].namespace.as_deref(), Some("db"));
        let counts: Vec<(&str, u16, u64)> =
            drops.sockets.iter().map(|socket| (socket.protocol, socket.local.port(), socket.count)).collect();
        assert_eq!(counts, [("udp", 53, 5), ("udp", 54, 3), ("tcp", 80, 2)]);
    }
}
