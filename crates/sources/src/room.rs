//! What an observation may take in memory that is made of a recording. Nobody knows who wrote the recording, and a few bytes of it can stand for a structure
//! of thousands, so memory is measured while the observation grows, whichever source it grows by.

use chokepoint_recording::{Entry, Outcome};

use crate::netlink::wire::messages;
use crate::root::Root;
use crate::servers::config::SERVER_CONFIG;
use crate::source;

/// Bytes that an observation may take whatever its entries have: ten times what that of a busy server takes.
pub const ROOM_BYTES_MIN: u64 = 64 << 20;
/// How many times the bytes of its entries it may take where that is more: sockets, which are most of them, take less than twice their messages.
const ROOM_RATIO_MAX: u64 = 2;
/// What a word of a text or a message of the kernel becomes at the most: a name in a map with its share of the map's nodes and its value, or a socket.
const PIECE_BYTES: u64 = 256;
/// Memory is looked at after so many bytes of entries and after so many entries: the first of a network namespace makes a view of 5 kB.
const LOOK_BYTES: u64 = 64 << 10;
const LOOK_ENTRIES: u32 = 256;
/// Seven numbers.
const STATM_BYTES_MAX: usize = 256;

/// The recording makes more of its bytes than any does that was read of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "its readings take more than {} MiB and {ROOM_RATIO_MAX} times their bytes once they are parsed, as none do that chokepoint reads: it is damaged or made to fill the memory",
    ROOM_BYTES_MIN >> 20
)]
pub struct Overfull;

/// What is left of the memory.
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
        Self { began: held(), max: ROOM_BYTES_MIN.max(ROOM_RATIO_MAX * bytes), used: 0, unseen_bytes: 0, unseen_entries: 0 }
    }

    /// Whether there is room for what this entry may become while it is read; to be asked before that.
    pub(crate) fn take(&mut self, entry: &Entry) -> Result<(), Overfull> {
        let bytes = bytes_of(entry);
        self.unseen_bytes += bytes;
        self.unseen_entries += 1;
        if self.unseen_bytes >= LOOK_BYTES || self.unseen_entries >= LOOK_ENTRIES {
            self.used = held().saturating_sub(self.began);
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

/// The pieces that a reading falls into: messages of the kernel, or words of a text. A configuration is read within bounds of its own
/// (`chokepoint_config::PARSED_BYTES_MAX`), and so is JSON that is no reading.
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

/// Bytes of memory that this process has now (statm in proc_pid_statm(5): resident pages); 0 where there is no /proc, and then there is no bound.
fn held() -> u64 {
    let Outcome::Ok(text) = Root::default().read("proc/self/statm", STATM_BYTES_MAX, None) else { return 0 };
    let pages = std::str::from_utf8(&text).ok().and_then(|text| text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use chokepoint_recording::Scope;

    use super::*;

    fn entry(source: &str, bytes: Vec<u8>) -> Entry {
        Entry { at_us: 0, source: source.into(), scope: Scope::Netns(7), item: String::new(), outcome: Outcome::Ok(bytes) }
    }

    fn taken(entry: &Entry, used: u64) -> Result<(), Overfull> {
        Room { used, ..Room::of(std::slice::from_ref(entry)) }.fits(entry)
    }

    #[test]
    fn what_an_entry_may_become_is_asked_for_before_it_is_read() {
        let words = |count: usize| entry("netstat", b"1 ".repeat(count));
        assert_eq!(taken(&words(1_000), 0), Ok(()));
        assert_eq!(taken(&words(300_000), 0), Err(Overfull));
        // A long text of few words is none.
        assert_eq!(taken(&entry("netstat", vec![b'1'; 8 << 20]), 0), Ok(()));
        let message = [16_u32.to_le_bytes(), [0; 4], [0; 4], [0; 4]].concat();
        assert_eq!(taken(&entry("sockets", message.repeat(1_000)), 0), Ok(()));
        assert_eq!(taken(&entry("sockets", message.repeat(300_000)), 0), Err(Overfull));
        assert_eq!(taken(&entry("server_config", b"a;\n".repeat(300_000)), 0), Ok(()));
    }

    #[test]
    fn what_was_taken_counts_and_more_may_be_made_of_more() {
        let words = |count: usize, length: usize| entry("netstat", [vec![b'1'; length], vec![b' ']].concat().repeat(count));
        let used = ROOM_BYTES_MIN - (1 << 20);
        assert_eq!(taken(&words(10_000, 1), used), Err(Overfull));
        assert_eq!(taken(&words(10_000, 4_000), used), Ok(()), "entries of 40 MB may become 80 MB");
    }
}
