//! Names for the numbers of drops, and one line for connections that share an end. Both methods of counting use it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::net::SocketAddr;
use std::time::Duration;

use super::dropped::Drop;
use super::reasons::meaning;
use crate::host::namespace_names;
use crate::naming::kallsyms::Kallsyms;
use crate::tracefs::Format;

/// A kind of drops, by the kernel's numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DropKey {
    pub(super) reason: u64,
    /// An address within the kernel's code.
    pub(super) location: u64,
    /// An EtherType.
    pub(super) protocol: u64,
    pub(super) socket: Option<bool>,
    /// The program that ran.
    pub(super) program: String,
    /// The number of its namespace.
    pub(super) program_namespace: Option<u64>,
    pub(super) end: DropSocket,
}

/// The socket of a drop, or what the packet's headers say about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DropSocket {
    pub(super) transport: Option<&'static str>,
    pub(super) state: Option<&'static str>,
    /// The number of its namespace.
    pub(super) namespace: Option<u64>,
    pub(super) local: Option<SocketAddr>,
    pub(super) remote: Option<SocketAddr>,
    pub(super) inode: Option<u64>,
}

/// All counted drops.
#[derive(Debug, Default)]
pub(super) struct DropCounts {
    pub(super) kinds: Vec<(DropKey, u64)>,
    pub(super) lost: u64,
    pub(super) duration: Duration,
}

/// What drops of one line have in common: everything of [`DropKey`] except ends and sockets, with the name of the location.
type LineKey = (u64, String, u64, Option<bool>, String, Option<u64>, Option<&'static str>, Option<&'static str>, Option<u64>);

/// The drops with their names, most packets first, and notes on what is not known.
pub(super) fn drops(kinds: Vec<(DropKey, u64)>, format: &Format, kallsyms: impl BufRead) -> (Vec<Drop>, Vec<String>) {
    let locations: Vec<u64> = kinds.iter().map(|(kind, _)| kind.location).collect();
    let functions = Kallsyms::read(kallsyms, &locations);
    let mut lines: BTreeMap<LineKey, Vec<(DropSocket, u64)>> = BTreeMap::new();
    for (kind, count) in kinds {
        let DropKey { reason, location, protocol, socket, program, program_namespace, end } = kind;
        let location = functions.find(location).map_or_else(|| "[kernel]".to_owned(), |(name, _)| name.to_owned());
        let line = (reason, location, protocol, socket, program, program_namespace, end.transport, end.state, end.namespace);
        lines.entry(line).or_default().push((end, count));
    }
    let names = namespace_names();
    let named = |number: Option<u64>| number.map(|number| names.get(&number).cloned().unwrap_or_else(|| format!("net:[{number}]")));
    let mut drops = Vec::new();
    for ((reason, location, protocol, for_socket, program, program_namespace, transport, state, namespace), ends) in lines {
        let name = format.symbols.iter().find(|(number, _)| *number == reason).map(|(_, name)| name.clone());
        let reason = name.unwrap_or_else(|| format!("reason {reason}"));
        drops.extend(join_connections(ends).into_iter().map(|((local, remote), shared)| Drop {
            reason: reason.clone(),
            meaning: meaning(&reason),
            location: location.clone(),
            protocol: protocol_name(protocol),
            for_socket,
            program: program.clone(),
            namespace: named(program_namespace),
            local,
            remote,
            ends: shared.pairs,
            transport,
            state,
            socket_namespace: named(namespace),
            holders: Vec::new(),
            inodes: shared.inodes,
            count: shared.count,
        }));
    }
    drops.sort_by_key(|drop| std::cmp::Reverse(drop.count));
    let mut notes = Vec::new();
    if functions.hidden || functions.is_empty {
        notes.push("this user may not see the names of kernel functions (needs CAP_SYSLOG)".to_owned());
    }
    (drops, notes)
}

/// The local and the remote end.
type Pair = (Option<SocketAddr>, Option<SocketAddr>);

/// Connections that are reported join_connections.
#[derive(Debug, Default)]
struct JoinedConnections {
    pairs: u64,
    inodes: BTreeSet<u64>,
    count: u64,
}

/// Joins connections that share their local end (those of a server), then those that share the remote end (those to a server).
fn join_connections(ends: Vec<(DropSocket, u64)>) -> BTreeMap<Pair, JoinedConnections> {
    let mut pairs: BTreeMap<Pair, JoinedConnections> = BTreeMap::new();
    for (end, count) in ends {
        let shared = pairs.entry((end.local, end.remote)).or_default();
        shared.pairs = u64::from(end.local.is_some() || end.remote.is_some());
        shared.inodes.extend(end.inode);
        shared.count += count;
    }
    let by_local = join(pairs, |(local, _)| (local, None));
    join(by_local, |(local, remote)| if remote.is_some() { (None, remote) } else { (local, None) })
}

/// Joins all pairs with the same `short` form, if there are several.
fn join(pairs: BTreeMap<Pair, JoinedConnections>, short: impl Fn(Pair) -> Pair) -> BTreeMap<Pair, JoinedConnections> {
    let mut shared_by: BTreeMap<Pair, u64> = BTreeMap::new();
    for pair in pairs.keys() {
        *shared_by.entry(short(*pair)).or_default() += 1;
    }
    let mut joined: BTreeMap<Pair, JoinedConnections> = BTreeMap::new();
    for (pair, shared) in pairs {
        let into = joined.entry(if shared_by.get(&short(pair)) > Some(&1) { short(pair) } else { pair }).or_default();
        into.pairs += shared.pairs;
        into.inodes.extend(shared.inodes);
        into.count += shared.count;
    }
    joined
}

/// EtherTypes (IEEE 802, linux/if_ether.h).
fn protocol_name(protocol: u64) -> String {
    match protocol {
        0x0800 => "IPv4".to_owned(),
        0x86dd => "IPv6".to_owned(),
        0x0806 => "ARP".to_owned(),
        0 => "-".to_owned(),
        other => format!("{other:#06x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(local: &str, remote: &str, inode: u64) -> (DropSocket, u64) {
        (DropSocket { local: local.parse().ok(), remote: remote.parse().ok(), inode: Some(inode), ..DropSocket::default() }, 1)
    }

    #[test]
    fn connections_are_joined_by_the_end_they_share() {
        let server = "10.0.0.1:80";
        let behind = "10.0.0.2:9000";
        let lonely = ("10.0.0.1:22", "10.0.0.9:1");
        let joined_ends = join_connections(vec![
            end(server, "10.0.0.3:1000", 1),
            end(server, "10.0.0.4:1000", 2),
            end("10.0.0.1:5001", behind, 3),
            end("10.0.0.1:5002", behind, 4),
            end(lonely.0, lonely.1, 5),
            (DropSocket::default(), 7),
        ]);
        let joined_ends: Vec<(String, u64, usize, u64)> = joined_ends
            .into_iter()
            .map(|((local, remote), shared)| {
                let name = |end: Option<SocketAddr>| end.map_or_else(|| "-".to_owned(), |end| end.to_string());
                (format!("{} {}", name(local), name(remote)), shared.pairs, shared.inodes.len(), shared.count)
            })
            .collect();
        let expected = [
            ("- -".to_owned(), 0, 0, 7),
            (format!("- {behind}"), 2, 2, 2),
            (format!("{} {}", lonely.0, lonely.1), 1, 1, 1),
            (format!("{server} -"), 2, 2, 2),
        ];
        assert_eq!(joined_ends, expected);
    }
}
