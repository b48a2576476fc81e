//! Dumps of sockets within bounds. Beyond its bound a dump counts sockets by state.

use std::collections::BTreeMap;

use chokepoint_recording::Outcome;

use super::protocol::{DumpRequest, DumpRequests};
use crate::netlink::{DUMP_BYTES_MAX, DumpError, Netlink};
use crate::table::{Items, ReadContext, only_item};

/// Item of "sockets" that counts, by state, the sockets beyond the bound: lines of "state-number count".
pub(super) const LEFT_OUT: &str = "left-out";

/// The messages of a dump within its bound.
#[derive(Default)]
struct DumpedSockets {
    bytes: Vec<u8>,
    kept: usize,
    left_out: BTreeMap<u8, u64>,
}

impl DumpedSockets {
    fn add(&mut self, message: &[u8], sockets_max: usize) -> Result<(), DumpError> {
        if self.kept < sockets_max && self.bytes.len() + message.len() <= DUMP_BYTES_MAX {
            self.kept += 1;
            self.bytes.extend_from_slice(message);
        } else if sockets_max == usize::MAX {
            return Err(DumpError::TooLong);
        } else {
            *self.left_out.entry(message.get(STATE_AT).copied().unwrap_or(0)).or_default() += 1;
        }
        Ok(())
    }

    /// Adds one dump, or nothing of it if it fails. sock_diag never says that its list changed during the dump: a socket that moved may be missing or appear
    /// twice. Counts tolerate that.
    fn read(&mut self, netlink: &Netlink, part: &DumpRequest, sockets_max: usize) -> Result<(), DumpError> {
        let before = (self.bytes.len(), self.kept, self.left_out.clone());
        let result = netlink.dump_into(part.kind, &part.body, &mut |message| self.add(message, sockets_max));
        if result.is_err() {
            self.bytes.truncate(before.0);
            (self.kept, self.left_out) = (before.1, before.2);
        }
        result.map(|_| ())
    }
}

/// Reads the dumps into one item. A dump that fails becomes an item of its own, so that the others still count.
pub(super) fn read(context: &ReadContext<'_>, dumps: &[DumpRequests], sockets_max: usize) -> Items {
    let sockets = match context.sockets() {
        Ok(sockets) => sockets,
        Err(lack) => return only_item(lack),
    };
    let mut gathered = DumpedSockets::default();
    let (mut failures, mut any) = (Vec::new(), false);
    for parts in dumps {
        let mut fail = |part: &DumpRequest, error: &DumpError| {
            let missing = format!("this kernel cannot list {} sockets", part.label);
            failures.push((part.label.to_owned(), error.outcome(&missing, None)));
        };
        match gathered.read(sockets.diag(), &parts.first, sockets_max) {
            Ok(()) => any = true,
            Err(error) if parts.fallback.is_empty() => fail(&parts.first, &error),
            Err(_) => {
                for part in &parts.fallback {
                    match gathered.read(sockets.diag(), part, sockets_max) {
                        Ok(()) => any = true,
                        Err(error) => fail(part, &error),
                    }
                }
            }
        }
    }
    if !any {
        return failures.into_iter().take(1).map(|(_, outcome)| (String::new(), outcome)).collect();
    }
    let mut items = only_item(Outcome::Ok(gathered.bytes));
    items.extend(failures);
    if !gathered.left_out.is_empty() {
        let text: String = gathered.left_out.iter().map(|(state, count)| format!("{state} {count}\n")).collect();
        items.push((LEFT_OUT.to_owned(), Outcome::Ok(text.into_bytes())));
    }
    items
}

/// Offset of the state in a message: the second byte of `struct inet_diag_msg`. The second byte of `struct unix_diag_msg` is the type, 1 for a stream, which is
/// also the number of the connected state; all its sockets are connected.
const STATE_AT: usize = crate::netlink::wire::HEADER_BYTES + 1;

#[cfg(test)]
mod tests {
    use super::super::protocol::{AF_INET, SOCK_DIAG_BY_FAMILY};
    use super::*;
    use crate::netlink::wire::{messages, request};

    #[test]
    fn sockets_beyond_the_bound_are_counted_by_state() {
        let message = |state| request(SOCK_DIAG_BY_FAMILY, 0, 0, &[AF_INET, state, 0, 0]);
        let mut gathered = DumpedSockets::default();
        for state in [1, 1, 6, 6, 6, 1] {
            gathered.add(&message(state), 3).unwrap();
        }
        assert_eq!((gathered.kept, gathered.left_out), (3, BTreeMap::from([(1, 1), (6, 2)])));
        assert_eq!(messages(&gathered.bytes).count(), 3);
    }
}
