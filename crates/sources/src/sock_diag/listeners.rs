//! The source "listeners": the listening TCP and unix sockets of a namespace.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use chokepoint_model::observation::{Listener, ListenerAddress, TcpState};
use chokepoint_recording::Outcome;

use super::dump::read;
use super::message::{DiagSocket, parse_socket};
use super::namesakes::{Namesakes, leads_to};
use super::protocol::{AF_UNIX, DiagError};
use super::{inet, unix};
use crate::netlink::wire::{Message, WireError, messages};
use crate::scope::put_netns;
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source};

/// Listening sockets, each with its queue and the connections that it dropped.
pub(crate) const LISTENERS: Source = Source {
    name: "listeners",
    scope: ScopeKind::Netns,
    cadence: Cadence::Fast,
    needs: None,
    read: read_listeners,
    put: |observation, entry| put_netns(observation, entry, |netns| &mut netns.listeners, parse_listeners),
    redact: Redact::InetDiag,
};

/// A namespace without a unix listener, as most of those of containers, is asked for unix sockets again after this time.
const UNIX_ASKED_AGAIN: Duration = Duration::from_millis(900);

/// When a namespace was last seen to have no unix listener.
#[derive(Debug, Default)]
pub(super) struct UnixAbsence(Option<Instant>);

impl UnixAbsence {
    /// True while unix sockets need not be asked for.
    pub(super) fn holds(&self) -> bool {
        self.0.is_some_and(|seen| seen.elapsed() < UNIX_ASKED_AGAIN)
    }
}

fn read_listeners(context: &ReadContext<'_>) -> Items {
    let all = || read(context, &[inet::listeners(), unix::listeners()], usize::MAX);
    let Some(sockets) = context.netlink else { return all() };
    let mut absence = sockets.memory::<UnixAbsence>().borrow_mut();
    if context.phase == Phase::Running && absence.holds() {
        return read(context, &[inet::listeners()], usize::MAX);
    }
    let mut items = all();
    let mut namesakes = sockets.memory::<Namesakes>().borrow_mut();
    if let [(_, Outcome::Ok(bytes)), ..] = items.as_slice() {
        namesakes.learn(bytes, leads_to);
    }
    namesakes.mark(&mut items);
    let is_unix = |message: Result<Message<'_>, WireError>| !message.is_ok_and(|message| message.body.first() != Some(&AF_UNIX));
    let none = matches!(&items[..], [(_, Outcome::Ok(bytes))] if !messages(bytes).any(is_unix));
    absence.0 = none.then(Instant::now);
    items
}

/// Parses the listening sockets of a dump. A listener that appears twice, because the list changed during the dump, counts once.
pub(crate) fn parse_listeners(bytes: &[u8]) -> Result<Vec<Listener>, DiagError> {
    let mut listeners = Vec::new();
    let mut seen = BTreeSet::new();
    for message in messages(bytes) {
        let listener = match parse_socket(&message?)? {
            DiagSocket::Inet(socket) if socket.state == TcpState::Listen => Listener {
                address: ListenerAddress::Tcp(socket.local.0, socket.local.1),
                inode: socket.inode,
                accept_queue: socket.receive_queue,
                accept_queue_limit: socket.send_queue,
                drops: socket.drops,
                v6_only: socket.v6_only,
            },
            DiagSocket::Unix(socket) if socket.listens && socket.is_stream => Listener {
                // A listener always has a name: nobody could connect to an unnamed one.
                address: ListenerAddress::Unix(socket.path.unwrap_or_default()),
                inode: socket.inode,
                accept_queue: socket.receive_queue,
                accept_queue_limit: socket.send_queue,
                drops: None,
                v6_only: false,
            },
            _ => continue,
        };
        if seen.insert((listener.inode, listener.address.clone())) {
            listeners.push(listener);
        }
    }
    Ok(listeners)
}
