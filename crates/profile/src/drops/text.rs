//! Drops as text: a block for each reason, with the places and the programs that ran.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::drops::{Drop, Drops, Holder};
use chokepoint_foreign::printable;

/// Maximum number of places for one reason.
const PLACES_MAX: usize = 8;
/// Maximum number of sockets.
const SOCKETS_MAX: usize = 20;

/// The whole text.
pub fn render(drops: &Drops) -> String {
    let rate = |count: u64| count as f64 / drops.duration_s.max(1e-9);
    let mut text = format!(
        "dropped packets in {:.1} s on the whole host: {} ({:.1}/s); {} not recorded\n",
        drops.duration_s,
        drops.packets,
        rate(drops.packets),
        drops.lost
    );
    // Writing to a string cannot fail, here and below.
    if !drops.left_out.is_empty() {
        let _ = writeln!(text, "not counted, because these are no losses: {}", drops.left_out.join(", "));
    }
    let mut reasons: BTreeMap<&str, Vec<&Drop>> = BTreeMap::new();
    for drop in &drops.drops {
        reasons.entry(&drop.reason).or_default().push(drop);
    }
    let mut reasons: Vec<(u64, &str, Vec<&Drop>)> =
        reasons.into_iter().map(|(reason, places)| (places.iter().map(|drop| drop.count).sum(), reason, places)).collect();
    reasons.sort_by_key(|(count, ..)| std::cmp::Reverse(*count));
    for (count, reason, places) in reasons {
        let meaning = places.iter().find_map(|drop| drop.meaning).map_or_else(String::new, |meaning| format!("  {meaning}"));
        let _ = writeln!(text, "\n{count:>9} {:>9.1}/s  {reason}{meaning}", rate(count));
        for drop in places.iter().take(PLACES_MAX) {
            let socket = describe_socket(drop);
            let namespace = drop.namespace.as_ref().map_or_else(String::new, |name| format!(" in {name}"));
            let program = printable(&drop.program);
            let end = describe_end(drop);
            let _ = writeln!(
                text,
                "{:>9}              {} ({}{socket}){end} while {program}{namespace} ran",
                drop.count, drop.location, drop.protocol
            );
        }
        if places.len() > PLACES_MAX {
            let _ = writeln!(text, "{:>9}              and {} more", "", places.len() - PLACES_MAX);
        }
    }
    write_sockets(drops, &mut text);
    text.push_str(
        "\nnote: the running program is mostly the sender if both ends are on this host, otherwise whichever program was interrupted\n",
    );
    if drops.drops.iter().any(|drop| drop.local.is_none() && drop.remote.is_none()) {
        text.push_str("note: a line without an address belongs to an unknown socket\n");
    }
    for note in &drops.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let _ = writeln!(text, "chokepoint used {:.2} s of CPU time for counting", drops.cost_cpu_s);
    text
}

/// Whether there was a socket, and what is known of it.
fn describe_socket(drop: &Drop) -> String {
    let transport = drop.transport.map_or_else(String::new, |transport| format!("{} ", transport.to_uppercase()));
    match (drop.for_socket, drop.state) {
        (Some(true), Some(state)) => format!(", for a {transport}socket in {state}"),
        (Some(true), None) => format!(", for a {transport}socket"),
        _ => String::new(),
    }
}

/// The socket's address, or the packets' destination.
fn describe_end(drop: &Drop) -> String {
    let holders = describe_holders(drop);
    match (drop.local, drop.remote) {
        (Some(local), Some(remote)) => format!(" for {local}{holders}, connected to {remote}"),
        (Some(local), None) if drop.ends > 1 => format!(" for {} connections of {local}{holders}", drop.ends),
        (Some(local), None) => format!(" for {local}{holders}"),
        (None, Some(remote)) => format!(" for {} connections to {remote}{holders}", drop.ends),
        (None, None) => holders,
    }
}

/// The programs that hold the socket, in brackets.
fn describe_holders(drop: &Drop) -> String {
    match drop.holders.as_slice() {
        [] if drop.local.is_some() && drop.reason == "NO_SOCKET" => " (nobody listens there)".to_owned(),
        [] => {
            drop.socket_namespace.as_ref().filter(|_| drop.local.is_some()).map_or_else(String::new, |namespace| format!(" in {namespace}"))
        }
        [one] => format!(" ({})", describe_holder(one)),
        several => format!(" (one of {})", several.iter().map(describe_holder).collect::<Vec<_>>().join(", ")),
    }
}

fn describe_holder(holder: &Holder) -> String {
    let program = printable(&holder.program);
    holder.namespace.as_ref().map_or_else(|| program.clone().into_owned(), |namespace| format!("{program} in {namespace}"))
}

/// The sockets' own counts.
fn write_sockets(drops: &Drops, text: &mut String) {
    if drops.sockets.is_empty() {
        return;
    }
    text.push_str("\ncounted by the sockets themselves, including connections that a full accept queue rejected:\n");
    for socket in drops.sockets.iter().take(SOCKETS_MAX) {
        let _ = writeln!(text, "{:>9}  {} {} of {}", socket.count, socket.protocol, socket.local, describe_holder(&socket.holder));
    }
    if drops.sockets.len() > SOCKETS_MAX {
        let _ = writeln!(text, "           and {} more sockets", drops.sockets.len() - SOCKETS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use crate::drops::{DROPS_SCHEMA, Means, SocketDrops};

    #[test]
    fn the_text_lists_reasons_with_their_places() {
        let holder = || Holder { program: "nginx".to_owned(), namespace: Some("cp-web".to_owned()) };
        let drop = |reason: &str, program: &str, count| Drop {
            reason: reason.to_owned(),
            meaning: Some("a meaning"),
            location: "tcp_v4_rcv".to_owned(),
            protocol: "IPv4".to_owned(),
            for_socket: Some(true),
            program: program.to_owned(),
            namespace: Some("cp-web".to_owned()),
            local: (reason != "B").then(|| "10.0.0.1:80".parse().unwrap()),
            remote: (reason == "C").then(|| "10.0.0.2:4000".parse().unwrap()),
            ends: 3,
            transport: Some("tcp"),
            state: (reason == "C").then_some("ESTABLISHED"),
            socket_namespace: Some("cp-db".to_owned()),
            inodes: BTreeSet::new(),
            holders: if program == "nginx" { vec![holder()] } else { Vec::new() },
            count,
        };
        let drops = Drops {
            schema: DROPS_SCHEMA,
            means: Means::Bpf,
            duration_s: 2.0,
            packets: 60,
            lost: 0,
            left_out: vec!["NOT_SPECIFIED".to_owned()],
            drops: vec![drop("B", "nginx", 29), drop("NO_SOCKET", "wrk", 20), drop("A", "nginx", 10), drop("C", "wrk", 1)],
            sockets: vec![SocketDrops { protocol: "tcp", local: "0.0.0.0:80".parse().unwrap(), holder: holder(), count: 9 }],
            notes: vec![],
            cost_cpu_s: 0.01,
        };
        let text = render(&drops);
        for part in [
            "60 (30.0/s)",
            "NOT_SPECIFIED",
            "B  a meaning",
            "tcp_v4_rcv (IPv4, for a TCP socket) (nginx in cp-web) while nginx in cp-web ran",
            "for 3 connections of 10.0.0.1:80 (nobody listens there) while wrk",
            "for 3 connections of 10.0.0.1:80 (nginx in cp-web) while nginx",
            "for a TCP socket in ESTABLISHED) for 10.0.0.1:80 in cp-db, connected to 10.0.0.2:4000 while wrk",
            "9  tcp 0.0.0.0:80 of nginx in cp-web",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
