//! Names for the numbers of drops, and one line for many connections that share an end: what both ways of reading them have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use super::Drop;
use super::reasons::meaning;
use crate::host::namespace_names;
use crate::kernel::Kallsyms;
use crate::tracefs::Format;

/// A kind of drops as the kernel tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) reason: u64,
    /// An address within the kernel's code.
    pub(super) location: u64,
    /// An EtherType.
    pub(super) protocol: u64,
    pub(super) socket: Option<bool>,
    /// What ran.
    pub(super) program: String,
    /// The number of its namespace.
    pub(super) program_namespace: Option<u64>,
    pub(super) end: DropSocket,
}

/// The socket of a drop, or what the packet says of it.
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

/// All that was counted.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) kinds: Vec<(Kind, u64)>,
    pub(super) lost: u64,
    pub(super) duration: Duration,
}

/// What one line tells: all of [`Kind`] but ends and sockets, with the name of the location.
type Line = (u64, String, u64, Option<bool>, String, Option<u64>, Option<&'static str>, Option<&'static str>, Option<u64>);

/// The drops with their names, the most first, and what could not be told.
pub(super) fn drops(kinds: Vec<(Kind, u64)>, format: &Format, kallsyms: &str) -> (Vec<Drop>, Vec<String>) {
    let functions = Kallsyms::parse(kallsyms);
    let mut lines: BTreeMap<Line, Vec<(DropSocket, u64)>> = BTreeMap::new();
    for (kind, count) in kinds {
        let Kind { reason, location, protocol, socket, program, program_namespace, end } = kind;
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
        drops.extend(together(ends).into_iter().map(|((local, remote), shared)| Drop {
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
    if functions.hidden || kallsyms.is_empty() {
        notes.push("functions of the kernel have no names for this user (CAP_SYSLOG)".to_owned());
    }
    (drops, notes)
}

/// An address and port of each side.
type Pair = (Option<SocketAddr>, Option<SocketAddr>);

/// What is told of connections together.
#[derive(Debug, Default)]
struct Shared {
    pairs: u64,
    inodes: BTreeSet<u64>,
    count: u64,
}

/// Connections that share their end here (those of a server) become one, and then those that share the other end (those to a server).
fn together(ends: Vec<(DropSocket, u64)>) -> BTreeMap<Pair, Shared> {
    let mut pairs: BTreeMap<Pair, Shared> = BTreeMap::new();
    for (end, count) in ends {
        let shared = pairs.entry((end.local, end.remote)).or_default();
        shared.pairs = u64::from(end.local.is_some() || end.remote.is_some());
        shared.inodes.extend(end.inode);
        shared.count += count;
    }
    let by_local = join(pairs, |(local, _)| (local, None));
    join(by_local, |(local, remote)| if remote.is_some() { (None, remote) } else { (local, None) })
}

/// Makes one of all pairs that are the same in short, where there are several.
fn join(pairs: BTreeMap<Pair, Shared>, short: impl Fn(Pair) -> Pair) -> BTreeMap<Pair, Shared> {
    let mut alike: BTreeMap<Pair, u64> = BTreeMap::new();
    for pair in pairs.keys() {
        *alike.entry(short(*pair)).or_default() += 1;
    }
    let mut joined: BTreeMap<Pair, Shared> = BTreeMap::new();
    for (pair, shared) in pairs {
        let into = joined.entry(if alike.get(&short(pair)) > Some(&1) { short(pair) } else { pair }).or_default();
        into.pairs += shared.pairs;
        into.inodes.extend(shared.inodes);
        into.count += shared.count;
    }
    joined
}

/// EtherTypes (IEEE 802, as in linux/if_ether.h).
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
    fn connections_are_told_by_the_end_that_they_share() {
        let server = "10.0.0.1:80";
        let behind = "10.0.0.2:9000";
        let lonely = ("10.0.0.1:22", "10.0.0.9:1");
        let told = together(vec![
            end(server, "10.0.0.3:1000", 1),
            end(server, "10.0.0.4:1000", 2),
            end("10.0.0.1:5001", behind, 3),
            end("10.0.0.1:5002", behind, 4),
            end(lonely.0, lonely.1, 5),
            (DropSocket::default(), 7),
        ]);
        let told: Vec<(String, u64, usize, u64)> = told
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
        assert_eq!(told, expected);
    }
}
