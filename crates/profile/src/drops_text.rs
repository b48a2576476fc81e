//! Drops of packets as text: a line a reason, and where and while what ran it happened.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::drops::{Drop, Drops, Holder};
use crate::text::printable;

/// Places of one reason at most.
const PLACES_MAX: usize = 8;
/// Sockets at most.
const SOCKETS_MAX: usize = 20;

/// The whole text.
pub fn render(drops: &Drops) -> String {
    let rate = |count: u64| count as f64 / drops.duration_s.max(1e-9);
    let mut text = format!(
        "drops of packets for {:.1} s, the whole host: {} ({:.1} a second); {} lost\n",
        drops.duration_s,
        drops.packets,
        rate(drops.packets),
        drops.lost
    );
    // Writing to a string cannot fail, here and below.
    if !drops.left_out.is_empty() {
        let _ = writeln!(text, "left out as no loss: {}", drops.left_out.join(", "));
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
            let socket = if drop.for_socket == Some(true) { ", for a socket" } else { "" };
            let namespace = drop.namespace.as_ref().map_or_else(String::new, |name| format!(" in {name}"));
            let program = printable(&drop.program);
            let local = drop.local.map_or_else(String::new, |local| format!(" for {local}{}", held(&drop.holders)));
            let _ = writeln!(
                text,
                "{:>9}              {} ({}{socket}){local} while {program}{namespace} ran",
                drop.count, drop.location, drop.protocol
            );
        }
        if places.len() > PLACES_MAX {
            let _ = writeln!(text, "{:>9}              and {} more", "", places.len() - PLACES_MAX);
        }
    }
    sockets(drops, &mut text);
    text.push_str(
        "\nnote: what ran is mostly the sender where both ends are on this host, else whoever was interrupted; where no address stands, nothing told which \
         socket it was\n",
    );
    for note in &drops.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let _ = writeln!(text, "counting took {:.2} s of CPU time in this program", drops.cost_cpu_s);
    text
}

/// Who holds the socket at an address, in brackets.
fn held(holders: &[Holder]) -> String {
    match holders {
        [] => " (nobody listens there)".to_owned(),
        [one] => format!(" ({})", name(one)),
        several => format!(" (one of {})", several.iter().map(name).collect::<Vec<_>>().join(", ")),
    }
}

fn name(holder: &Holder) -> String {
    let program = printable(&holder.program);
    holder.namespace.as_ref().map_or_else(|| program.clone(), |namespace| format!("{program} in {namespace}"))
}

/// What sockets themselves counted.
fn sockets(drops: &Drops, text: &mut String) {
    if drops.sockets.is_empty() {
        return;
    }
    text.push_str("\nby the sockets' own counts, connections that a full queue turned away among them:\n");
    for socket in drops.sockets.iter().take(SOCKETS_MAX) {
        let _ = writeln!(text, "{:>9}  {} {} of {}", socket.count, socket.protocol, socket.local, name(&socket.holder));
    }
    if drops.sockets.len() > SOCKETS_MAX {
        let _ = writeln!(text, "           and {} more sockets", drops.sockets.len() - SOCKETS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drops::{DROPS_SCHEMA, SocketDrops};

    #[test]
    fn reasons_with_their_places() {
        let holder = || Holder { program: "nginx".to_owned(), namespace: Some("cp-web".to_owned()) };
        let drop = |reason: &str, program: &str, count| Drop {
            reason: reason.to_owned(),
            meaning: Some("a meaning"),
            location: "tcp_v4_rcv".to_owned(),
            protocol: "IPv4".to_owned(),
            for_socket: Some(true),
            program: program.to_owned(),
            namespace: Some("cp-web".to_owned()),
            local: (reason == "A").then(|| "10.0.0.1:80".parse().unwrap()),
            holders: if program == "nginx" { vec![holder()] } else { Vec::new() },
            count,
        };
        let drops = Drops {
            schema: DROPS_SCHEMA,
            duration_s: 2.0,
            packets: 60,
            lost: 0,
            left_out: vec!["NOT_SPECIFIED".to_owned()],
            drops: vec![drop("B", "nginx", 30), drop("A", "wrk", 20), drop("A", "nginx", 10)],
            sockets: vec![SocketDrops { protocol: "tcp", local: "0.0.0.0:80".parse().unwrap(), holder: holder(), count: 9 }],
            notes: vec![],
            cost_cpu_s: 0.01,
        };
        let text = render(&drops);
        for part in [
            "60 (30.0 a second)",
            "NOT_SPECIFIED",
            "B  a meaning",
            "tcp_v4_rcv (IPv4, for a socket) while nginx in cp-web ran",
            "for 10.0.0.1:80 (nobody listens there) while wrk",
            "for 10.0.0.1:80 (nginx in cp-web) while nginx",
            "9  tcp 0.0.0.0:80 of nginx in cp-web",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
