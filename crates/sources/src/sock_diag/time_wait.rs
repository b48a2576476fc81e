//! The source "time_wait": sockets in TIME_WAIT, counted by the addresses and ports that they occupy. A busy server has tens of thousands, and a single one
//! does not matter.

use std::collections::BTreeMap;
use std::net::IpAddr;

use chokepoint_model::observation::{TimeWaitAccepted, TimeWaitDialled, TimeWaits};
use chokepoint_recording::Outcome;

use super::inet;
use super::message::{DiagSocket, parse_socket};
use super::protocol::{DiagError, DumpRequest};
use crate::netlink::DumpError;
use crate::netlink::wire::messages;
use crate::root::Root;
use crate::scope::put_netns;
use crate::table::{Cadence, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::net::sockstat;

/// Groups of each kind to keep, the largest first.
const GROUPS_MAX: usize = 256;
/// Groups of each kind to count, which bounds memory. Sockets beyond them are only in the total.
const COUNTED_MAX: usize = 200_000;

/// Sockets in TIME_WAIT.
pub(crate) const TIME_WAIT: Source = Source {
    name: "time_wait",
    scope: ScopeKind::Netns,
    cadence: Cadence::Slow,
    needs: None,
    read: |context| only_item(read(context)),
    put: |observation, entry| put_netns(observation, entry, |netns| &mut netns.time_waits, parse),
    redact: Redact::Text,
};

/// Local address and port and remote address, or local address and remote address and port.
type Key = (IpAddr, u16, IpAddr);

#[derive(Default)]
struct Counts {
    total: u64,
    dialled: BTreeMap<Key, u64>,
    accepted: BTreeMap<Key, u64>,
}

impl Counts {
    fn add(&mut self, bytes: &[u8]) -> Result<(), DiagError> {
        for message in messages(bytes) {
            if let DiagSocket::Inet(socket) = parse_socket(&message?)? {
                self.total += 1;
                count(&mut self.dialled, (socket.local.0, socket.remote.1, socket.remote.0));
                count(&mut self.accepted, (socket.local.0, socket.local.1, socket.remote.0));
            }
        }
        Ok(())
    }

    /// Lines of "total N", "dialled N LOCAL REMOTE PORT" and "accepted N LOCAL PORT REMOTE". The kernel does not report which side a socket was on: the side
    /// whose port many sockets share is the listener's.
    fn text(&self) -> String {
        let mut text = format!("total {}\n", self.total);
        for (kind, groups) in [("dialled", &self.dialled), ("accepted", &self.accepted)] {
            let mut sorted: Vec<(&Key, &u64)> = groups.iter().filter(|(_, count)| **count > 1).collect();
            sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
            for ((local, port, remote), count) in sorted.into_iter().take(GROUPS_MAX) {
                text.push_str(&format!("{kind} {count} {local} {remote} {port}\n"));
            }
        }
        text
    }
}

fn count(groups: &mut BTreeMap<Key, u64>, key: Key) {
    if groups.len() < COUNTED_MAX || groups.contains_key(&key) {
        *groups.entry(key).or_default() += 1;
    }
}

fn read(context: &ReadContext<'_>) -> Outcome {
    let sockets = match context.sockets() {
        Ok(sockets) => sockets,
        Err(lack) => return lack,
    };
    if none_waits(context.root) {
        return Outcome::Ok(Counts::default().text().into_bytes());
    }
    let parts = inet::time_waits();
    let attempt = |part: &DumpRequest| {
        let (mut counts, mut broken) = (Counts::default(), None);
        let dumped = sockets.diag().dump_into(part.kind, &part.body, &mut |message| {
            broken = broken.take().or_else(|| counts.add(message).err());
            Ok(())
        });
        (dumped, counts, broken)
    };
    let (mut dumped, mut counts, mut broken) = attempt(&parts.first);
    if dumped.is_err() {
        for part in &parts.fallback {
            let (result, more, wrong) = attempt(part);
            if result.is_ok() {
                (dumped, broken) = (result, broken.or(wrong));
                counts.total += more.total;
                counts.dialled.extend(more.dialled);
                counts.accepted.extend(more.accepted);
            }
        }
    }
    match (dumped, broken) {
        (Ok(_), None) => Outcome::Ok(counts.text().into_bytes()),
        (Ok(_), Some(error)) => Outcome::Failed(error.to_string(), None),
        (Err(error), _) => DumpError::outcome(&error, "this kernel cannot list TCP sockets", None),
    }
}

/// True if the kernel's count for this namespace is zero, as on most hosts. Then the dump, which walks the host's table of all connections, is not needed. "tw"
/// counts both families (net/ipv4/proc.c).
fn none_waits(root: &Root) -> bool {
    matches!(sockstat::read_files(root), Outcome::Ok(text) if sockstat::parse(&text).is_ok_and(|counts| counts.get("TCP.tw") == Some(&0)))
}

/// A malformed line of the counts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a line of sockets in TIME_WAIT")]
pub(crate) struct LineError(String);

fn parse(bytes: &[u8]) -> Result<TimeWaits, LineError> {
    let text = String::from_utf8_lossy(bytes);
    let mut waits = TimeWaits::default();
    let mut has_total = false;
    for line in text.lines() {
        let wrong = || LineError(line.chars().take(80).collect());
        let words: Vec<&str> = line.split(' ').collect();
        let count = words.get(1).and_then(|count| count.parse().ok()).ok_or_else(wrong)?;
        match words.as_slice() {
            ["total", _] => (waits.total, has_total) = (count, true),
            [kind, _, local, remote, port] => {
                let local = local.parse().map_err(|_| wrong())?;
                let remote = remote.parse().map_err(|_| wrong())?;
                let port = port.parse().map_err(|_| wrong())?;
                match *kind {
                    "dialled" => waits.dialled.push(TimeWaitDialled { local, remote: (remote, port), count }),
                    "accepted" => waits.accepted.push(TimeWaitAccepted { local: (local, port), remote, count }),
                    _ => return Err(wrong()),
                }
            }
            _ => return Err(wrong()),
        }
    }
    if has_total { Ok(waits) } else { Err(LineError(String::new())) }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::{AF_INET, SOCK_DIAG_BY_FAMILY};
    use super::*;
    use proptest::prelude::*;

    fn message(local: u16, remote: u16) -> Vec<u8> {
        let mut body = vec![AF_INET, 6, 3, 0];
        body.extend_from_slice(&local.to_be_bytes());
        body.extend_from_slice(&remote.to_be_bytes());
        body.extend_from_slice(&[127, 0, 0, 1]);
        body.resize(24, 0);
        body.extend_from_slice(&[127, 0, 0, 1]);
        body.resize(72, 0);
        crate::netlink::wire::request(SOCK_DIAG_BY_FAMILY, 0, 0, &body)
    }

    #[test]
    fn the_shared_port_tells_the_accepting_from_the_dialling_side() {
        let mut counts = Counts::default();
        for port in 40_000..40_010 {
            counts.add(&message(port, 9000)).unwrap();
        }
        for port in 50_000..50_003 {
            counts.add(&message(80, port)).unwrap();
        }
        let waits = parse(counts.text().as_bytes()).unwrap();
        let ip = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(waits.total, 13);
        assert_eq!(waits.dialled, [TimeWaitDialled { local: ip, remote: (ip, 9000), count: 10 }]);
        assert_eq!(waits.accepted, [TimeWaitAccepted { local: (ip, 80), remote: ip, count: 3 }]);
    }

    #[test]
    fn only_a_count_of_zero_skips_the_dump() {
        let tree = tempfile::tempdir().unwrap();
        let file = tree.path().join("proc/thread-self/net/sockstat");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let root = Root::new(tree.path());
        assert!(!none_waits(&root), "no such file");
        for (text, none) in [
            ("sockets: used 5\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 1\n", true),
            ("sockets: used 5\nTCP: inuse 1 orphan 0 tw 1 alloc 1 mem 1\n", false),
            ("sockets: used 5\nTCP: inuse 1 orphan 0 alloc 1 mem 1\n", false),
            ("TCP: inuse 1 orphan 0 tw -1 alloc 1 mem 1\n", false),
            ("TCP: inuse 0 tw 0", false),
            ("", false),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(none_waits(&root), none, "{text:?}");
        }
    }

    #[test]
    fn malformed_lines_are_refused() {
        assert_eq!(parse(b"total 0\n").unwrap(), TimeWaits::default());
        for bad in ["", "total", "total x", "dialled 1 a b 3", "total 1\nsunk 1 ::1 ::1 80", "total 1\ndialled 1 ::1 ::1 99999"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
            let _ = Counts::default().add(&bytes);
        }
    }
}
