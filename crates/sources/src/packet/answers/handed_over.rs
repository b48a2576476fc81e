//! Connections older than the watching whose servers hand over each response whole. On these, what looks like the beginning of a response after a request is one: pieces of a long body, which may quote
//! responses, leave a socket that has more to send.
//!
//! A client decides when its window is open and when it acknowledges, so packets alone do not tell a response from a piece of a long one. The server's socket does: while a body is under way there are bytes that were not
//! sent yet, or the kernel counts the time for which the window or the buffer kept them back (linux/tcp.h, struct tcp_info).

use std::collections::HashMap;
use std::net::SocketAddr;

use super::turns::Connection;
use crate::sock_diag::tcp_peer::Sending;

/// Most connections that are looked at. A look costs some 10 µs, and there are four a second.
const LOOKED_AT_MAX: usize = 64;
/// Looks that show nothing left to send before the connection counts. A server that feeds a body more slowly than its client takes it, for want of a core, has nothing left at about half of them.
const LOOKS_MIN: u32 = 4;
/// Looks after the last doubtful error, and without a response of a connection, after which nothing is looked at any more: of a busy server one turn in eight counts responses.
const LOOKS_WITHOUT: u32 = 16;

/// The connections that are looked at.
#[derive(Debug, Default)]
pub(super) struct HandedOver {
    connections: HashMap<Connection, Looked>,
    /// How many more looks are wanted: some after each error of which it is not known whether it is one.
    wanted: u32,
}

#[derive(Debug, Clone, Copy)]
struct Looked {
    /// Looks in a row that showed nothing left to send.
    passed: u32,
    /// What the window and the buffer kept back until the first look, microseconds.
    held_up_us: Option<u64>,
    /// Looks since the last response.
    since: u32,
}

impl HandedOver {
    /// A response of this connection is not sure. It is looked at from now on, if errors are among those that are not.
    pub(super) fn doubt(&mut self, connection: Connection, is_error: bool) {
        if is_error {
            self.wanted = LOOKS_WITHOUT;
        }
        let has_room = self.wanted > 0 && self.connections.len() < LOOKED_AT_MAX;
        if has_room || self.connections.contains_key(&connection) {
            self.connections.entry(connection).or_insert(Looked { passed: 0, held_up_us: None, since: 0 }).since = 0;
        }
    }

    /// True if each look so far, of enough of them, showed nothing left to send.
    pub(super) fn is_whole(&self, connection: &Connection) -> bool {
        self.connections.get(connection).is_some_and(|looked| looked.passed >= LOOKS_MIN)
    }

    /// Looks at each. `sending` reads the server's socket, by its address and the client's.
    pub(super) fn look(&mut self, sending: impl Fn(SocketAddr, SocketAddr) -> Option<Sending>) {
        self.wanted = self.wanted.saturating_sub(1);
        if self.wanted == 0 {
            self.connections.clear();
        }
        self.connections.retain(|(server, client), looked| {
            looked.since += 1;
            let Some(Sending { unsent: 0, held_up_us }) = sending(*server, *client) else { return false };
            looked.passed += 1;
            looked.since <= LOOKS_WITHOUT && *looked.held_up_us.get_or_insert(held_up_us) == held_up_us
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOTHING_LEFT: Option<Sending> = Some(Sending { unsent: 0, held_up_us: 9_000 });

    fn connection(port: u16) -> Connection {
        (SocketAddr::from(([10, 0, 0, 1], 80)), SocketAddr::from(([10, 0, 0, 9], port)))
    }

    #[test]
    fn a_connection_counts_once_enough_looks_showed_nothing_left() {
        let mut handed_over = HandedOver::default();
        handed_over.doubt(connection(1), false);
        handed_over.look(|_, _| unreachable!("without an error nothing is looked at"));
        handed_over.doubt(connection(1), true);
        for looks in 1..=LOOKS_MIN {
            assert!(!handed_over.is_whole(&connection(1)));
            handed_over.look(|_, _| NOTHING_LEFT);
            assert_eq!(handed_over.is_whole(&connection(1)), looks == LOOKS_MIN);
        }
        assert!(!handed_over.is_whole(&connection(2)));
        for _ in 0..LOOKS_WITHOUT {
            handed_over.look(|_, _| NOTHING_LEFT);
        }
        handed_over.look(|_, _| unreachable!("no error for a while"));
    }

    #[test]
    fn connections_without_end_are_not_looked_at() {
        let mut handed_over = HandedOver::default();
        (0..1_000).for_each(|port| handed_over.doubt(connection(port), true));
        let looks = std::cell::Cell::new(0);
        handed_over.look(|_, _| {
            looks.set(looks.get() + 1);
            NOTHING_LEFT
        });
        assert_eq!(looks.get(), LOOKED_AT_MAX);
    }

    proptest! {
        /// One look at a body that is under way, or one wait for the window, and it begins anew.
        #[test]
        fn what_had_something_left_does_not_count(looks in proptest::collection::vec((0..3_u64, 0..3_u64), 1..40)) {
            let mut handed_over = HandedOver::default();
            let (mut passed, mut first) = (0, None);
            for (unsent, held_up_us) in looks {
                handed_over.doubt(connection(1), true);
                handed_over.look(|_, _| Some(Sending { unsent, held_up_us }));
                let is_passed = unsent == 0 && *first.get_or_insert(held_up_us) == held_up_us;
                (passed, first) = if is_passed { (passed + 1, first) } else { (0, None) };
                prop_assert_eq!(handed_over.is_whole(&connection(1)), passed >= LOOKS_MIN);
            }
        }
    }
}
