//! The memory bound of an observation from a recording. A recording is untrusted, and a few of its bytes can become a structure of thousands. So memory is
//! measured while the observation grows.

use chokepoint_recording::{Entry, Outcome};

use crate::netlink::wire::messages;
use crate::servers::config::SERVER_CONFIG;
use crate::source;

/// Bytes that any observation may use: ten times those of a busy server.
pub const ROOM_BYTES_MIN: u64 = 64 << 20;
/// How many times the bytes of its entries a larger observation may use. Sockets, the largest part, use less than twice their messages.
const ROOM_RATIO_MAX: u64 = 2;
/// Most bytes that a word of a text or a message of the kernel can become: a name in a map with its share of the map's nodes and its value, or a socket.
const PIECE_BYTES: u64 = 256;
/// Memory is measured after this many bytes of entries, and after this many entries: the first entry of a network namespace makes a view of 5 kB.
const LOOK_BYTES: u64 = 64 << 10;
const LOOK_ENTRIES: u32 = 256;

/// The observation of the recording is larger than that of any real host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "its parsed readings take more than {} MiB and more than {ROOM_RATIO_MAX} times their size, which no readings of chokepoint do: it is damaged, or made to exhaust memory",
    ROOM_BYTES_MIN >> 20
)]
pub struct Overfull;

/// The memory bound of one observation and its use.
#[derive(Debug)]
pub(crate) struct Room {
    began: u64,
    max: u64,
    used: u64,
    unseen_bytes: u64,
    unseen_entries: u32,
}

impl Room {
    /// For an observation out of these entries.
    pub(crate) fn of(entries: &[Entry]) -> Self {
        let bytes = entries.iter().map(bytes_of).sum::<u64>();
        Self { began: resident_bytes(), max: ROOM_BYTES_MIN.max(ROOM_RATIO_MAX * bytes), used: 0, unseen_bytes: 0, unseen_entries: 0 }
    }

    /// Checks that there is room for what this entry can become. To be called before the entry is parsed.
    pub(crate) fn take(&mut self, entry: &Entry) -> Result<(), Overfull> {
        let bytes = bytes_of(entry);
        self.unseen_bytes += bytes;
        self.unseen_entries += 1;
        if self.unseen_bytes >= LOOK_BYTES || self.unseen_entries >= LOOK_ENTRIES {
            self.used = resident_bytes().saturating_sub(self.began);
            (self.unseen_bytes, self.unseen_entries) = (bytes, 1);
        }
        self.fits(entry)
    }

    fn fits(&self, entry: &Entry) -> Result<(), Overfull> {
        let becomes = pieces(entry).saturating_mul(PIECE_BYTES);
        if self.used.saturating_add(becomes) > self.max { Err(Overfull) } else { Ok(()) }
    }
}

fn bytes_of(entry: &Entry) -> u64 {
    if let Outcome::Ok(bytes) = &entry.outcome { bytes.len() as u64 } else { 0 }
}

/// The pieces of a reading: messages of the kernel or words of a text. Configurations (`chokepoint_config::PARSED_BYTES_MAX`) and JSON entries have bounds of
/// their own.
fn pieces(entry: &Entry) -> u64 {
    let (Outcome::Ok(bytes), Some(source)) = (&entry.outcome, source(&entry.source)) else { return 0 };
    let count = if source.redact.is_binary() {
        messages(bytes).count()
    } else if source.name == SERVER_CONFIG.name {
        0
    } else {
        bytes.iter().filter(|byte| byte.is_ascii_whitespace() || **byte == b',').count()
    };
    count as u64
}

/// Resident memory of this process, bytes; 0 without /proc, and then there is no bound.
fn resident_bytes() -> u64 {
    chokepoint_confined::resident_bytes().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use chokepoint_recording::Scope;

    use super::*;

    fn entry(source: &str, bytes: Vec<u8>) -> Entry {
        Entry { at_us: 0, source: source.into(), scope: Scope::Netns(7), item: String::new(), outcome: Outcome::Ok(bytes) }
    }

    fn room_for(entry: &Entry, used: u64) -> Result<(), Overfull> {
        Room { used, ..Room::of(std::slice::from_ref(entry)) }.fits(entry)
    }

    #[test]
    fn an_entry_is_checked_before_it_is_parsed() {
        let words = |count: usize| entry("netstat", b"1 ".repeat(count));
        assert_eq!(room_for(&words(1_000), 0), Ok(()));
        assert_eq!(room_for(&words(300_000), 0), Err(Overfull));
        // A long text of one word is one piece.
        assert_eq!(room_for(&entry("netstat", vec![b'1'; 8 << 20]), 0), Ok(()));
        let message = [16_u32.to_le_bytes(), [0; 4], [0; 4], [0; 4]].concat();
        assert_eq!(room_for(&entry("sockets", message.repeat(1_000)), 0), Ok(()));
        assert_eq!(room_for(&entry("sockets", message.repeat(300_000)), 0), Err(Overfull));
        assert_eq!(room_for(&entry("server_config", b"a;\n".repeat(300_000)), 0), Ok(()));
    }

    #[test]
    fn used_memory_counts_and_more_bytes_allow_more() {
        let words = |count: usize, length: usize| entry("netstat", [vec![b'1'; length], vec![b' ']].concat().repeat(count));
        let used = ROOM_BYTES_MIN - (1 << 20);
        assert_eq!(room_for(&words(10_000, 1), used), Err(Overfull));
        assert_eq!(room_for(&words(10_000, 4_000), used), Ok(()), "entries of 40 MB may become 80 MB");
    }
}
