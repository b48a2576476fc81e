//! The recording file: a version line in clear text, then compressed frames with a checksum each, then a closing frame.
//!
//! ```text
//! chokepoint-recording 1\n             version line, in clear: file(1), head(1) and a person know what it is
//! gzip stream (RFC 1952) of frames:
//!     length u32 | crc32 u32 | payload   both little-endian, both of the payload
//! ```
//!
//! The first frame holds the [`Meta`], each further one an entry, and the last one the number of entries: so a truncated file differs
//! from a short one. Every released version stays readable; [`read`] chooses the reader by the version line.

mod v1;

use std::io::{self, BufRead, Read};

use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::redact::Level;

/// The version that [`write()`] writes.
pub const VERSION: u32 = 1;
/// Largest decompressed size of a recording, bytes: a limit against decompression bombs.
pub const TOTAL_BYTES_MAX: u64 = 512 << 20;
/// Largest entry, bytes.
pub const ENTRY_BYTES_MAX: u64 = 64 << 20;
/// Most entries of a recording. This limits the memory that small entries need besides their bytes.
pub const ENTRY_COUNT_MAX: u64 = 4_000_000;

/// Memory that every recording may take, bytes: more than a usual recording needs.
pub const UNPACKED_BYTES_MIN: u64 = 32 << 20;
/// Memory that entries may take beyond [`UNPACKED_BYTES_MIN`], as a multiple of the bytes read from the file. Recordings of busy servers
/// take 10 to 17 times their size. gzip compresses repetitive data a thousand times.
pub const UNPACKED_RATIO_MAX: u64 = 32;
/// Memory of an entry besides its bytes: the structure, its slot in a growing list, and the heap's overhead.
const ENTRY_OVERHEAD_BYTES: u64 = 256;

const MAGIC: &[u8] = b"chokepoint-recording ";

/// The metadata of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The version of the program that wrote it, "0.1.0".
    pub tool: String,
    /// The redaction applied before it was written.
    pub redaction: Level,
}

/// A recording that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// Its metadata.
    pub meta: Meta,
    /// Its entries, in the order of writing.
    pub entries: Vec<Entry>,
    /// Number of entries missing from the file because they exceeded a recording's limits: normally 0.
    pub left_out: u64,
}

/// Why bytes cannot be read as a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The bytes do not begin like a recording.
    #[error("this is not a chokepoint recording (it does not begin with \"chokepoint-recording\")")]
    NotARecording,
    /// A newer version of the program wrote it.
    #[error("the recording has format version {found}, but this chokepoint knows versions up to {known}: use a newer chokepoint")]
    VersionTooNew {
        /// Its version.
        found: u32,
        /// The newest version that this program can read.
        known: u32,
    },
    /// The file is truncated.
    #[error(
        "the recording is cut off after {entries_read} complete entries: the disk was full, the copy was not finished, or the writer was killed"
    )]
    Cut {
        /// Complete entries before the end.
        entries_read: u64,
    },
    /// The bytes were changed after they were written.
    #[error("the recording is damaged at entry {at_entry} (counted from 0): copy it again from its source")]
    Corrupt {
        /// The entry at which the damage was found; the number of entries if it was found after them.
        at_entry: u64,
    },
    /// It decompresses to more than its size allows.
    #[error(
        "the recording unpacks to more than {} MiB and more than {UNPACKED_RATIO_MAX} times its size, which no recording of chokepoint does: it is damaged, or made to exhaust memory",
        UNPACKED_BYTES_MIN >> 20
    )]
    Inflated,
    /// The file could not be read any further.
    #[error("the recording cannot be read: {0}")]
    Unreadable(io::ErrorKind),
    /// It exceeds a limit of recordings.
    #[error("the recording is larger than allowed ({limit})")]
    TooLarge {
        /// The limit in words: "512 MiB in all".
        limit: &'static str,
    },
}

/// Encodes entries as a recording of the newest version. The same entries and meta give the same bytes.
///
/// An entry larger than [`ENTRY_BYTES_MAX`] is written as a failed entry with that reason. Entries beyond [`TOTAL_BYTES_MAX`] in total or
/// [`ENTRY_COUNT_MAX`] are omitted and counted in [`Recording::left_out`], so a large observation is never lost as a whole.
pub fn write(entries: &[Entry], meta: &Meta) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(format!("{VERSION}\n").as_bytes());
    v1::write(entries, meta, &v1::LIMITS, &mut out);
    out
}

/// Decodes the bytes of a file as a recording.
///
/// # Errors
/// As [`read_from`].
pub fn read(bytes: &[u8]) -> Result<Recording, ReadError> {
    read_from(bytes)
}

/// Reads a recording piece by piece. It holds no more of the file than the reader's buffer.
///
/// # Errors
/// [`ReadError`], also for hostile bytes. Entries take at most [`UNPACKED_BYTES_MIN`] plus [`UNPACKED_RATIO_MAX`] times the bytes read, and everything
/// else takes less than 1 MiB.
pub fn read_from(mut file: impl BufRead) -> Result<Recording, ReadError> {
    let unreadable = |error: io::Error| ReadError::Unreadable(error.kind());
    let mut head = Vec::new();
    file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut head).map_err(unreadable)?;
    if head != MAGIC {
        let begun = !head.is_empty() && MAGIC.starts_with(&head);
        return Err(if begun { ReadError::Cut { entries_read: 0 } } else { ReadError::NotARecording });
    }
    let mut digits = Vec::new();
    file.by_ref().take(VERSION_LINE_MAX).read_until(b'\n', &mut digits).map_err(unreadable)?;
    let (version, _) = read_version(&digits)?;
    let body = file;
    match version {
        0 => Err(ReadError::NotARecording),
        1 => v1::read(body, &v1::LIMITS),
        found => Err(ReadError::VersionTooNew { found, known: VERSION }),
    }
}

/// Longest version line, bytes: nine digits and a line end.
const VERSION_LINE_MAX: u64 = 11;

/// Reads "1\n": the version and the rest.
fn read_version(rest: &[u8]) -> Result<(u32, &[u8]), ReadError> {
    const DIGITS_MAX: usize = 9;
    let digits = rest.iter().take(DIGITS_MAX).take_while(|byte| byte.is_ascii_digit()).count();
    let version = rest[..digits].iter().fold(0_u32, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    match rest.get(digits) {
        Some(b'\n') if digits > 0 => Ok((version, &rest[digits + 1..])),
        None => Err(ReadError::Cut { entries_read: 0 }),
        // A transfer in text mode changes line ends, also in the compressed part.
        Some(b'\r') if digits > 0 => Err(ReadError::Corrupt { at_entry: 0 }),
        Some(_) => Err(ReadError::NotARecording),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entry::{Outcome, Scope};

    fn meta() -> Meta {
        Meta { tool: "0.1.0".to_owned(), redaction: Level::Public }
    }

    fn entries() -> Vec<Entry> {
        let entry = |at_us, source: &str, scope, item: &str, outcome| Entry {
            at_us,
            source: source.to_owned(),
            scope,
            item: item.to_owned(),
            outcome,
        };
        vec![
            entry(0, "request", Scope::Host, "", Outcome::Ok(br#"{"url":"http://127.0.0.1/"}"#.to_vec())),
            entry(5, "netstat", Scope::Netns(4_026_531_840), "", Outcome::Ok(vec![0, 255, 10, 13, 0])),
            entry(
                5,
                "limits",
                Scope::Process(u32::MAX),
                "größe",
                Outcome::Absent("permission denied".into(), Some("CAP_SYS_PTRACE".into())),
            ),
            entry(u64::MAX, "", Scope::Netns(u64::MAX), "x", Outcome::Failed("".into(), None)),
            entry(7, "empty", Scope::Host, "", Outcome::Ok(Vec::new())),
        ]
    }

    #[test]
    fn written_entries_read_back_the_same() {
        let bytes = write(&entries(), &meta());
        assert_eq!(read(&bytes).unwrap(), Recording { meta: meta(), entries: entries(), left_out: 0 });
        assert_eq!(bytes, write(&entries(), &meta()), "the same entries give the same bytes");
        let none = read(&write(&[], &meta())).unwrap();
        assert!(none.entries.is_empty());
    }

    #[test]
    fn a_file_cut_at_any_byte_is_reported_as_truncated() {
        let bytes = write(&entries(), &meta());
        let mut most = 0;
        for end in 1..bytes.len() {
            match read(&bytes[..end]) {
                Err(ReadError::Cut { entries_read }) => {
                    assert!(entries_read >= most, "more of the file cannot hold fewer entries");
                    most = entries_read;
                }
                other => panic!("cut at {end}: {other:?}"),
            }
        }
        assert_eq!(most, entries().len() as u64, "cut in the last bytes, all entries were read");
        assert_eq!(read(&[]), Err(ReadError::NotARecording));
    }

    #[test]
    fn a_changed_byte_never_changes_the_contents() {
        let bytes = write(&entries(), &meta());
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                // A few bits (padding at the end of the compressed stream) carry no data. Then the recording is the same.
                let same = read(&damaged).is_ok_and(|recording| recording.entries == entries() && recording.meta == meta());
                assert!(same || read(&damaged).is_err(), "byte {at} ^ {flip:#x} changed what was read");
            }
        }
        let mut longer = bytes.clone();
        longer.extend_from_slice(b"tail");
        assert_eq!(read(&longer), Err(ReadError::Corrupt { at_entry: entries().len() as u64 }));
    }

    #[test]
    fn other_files_and_other_versions_give_different_errors() {
        for other in [&b"\x7fELF"[..], b"chokepoint-recording", b"chokepoint-recording x\n", b"chokepoint-recording 0\n", b"hello"] {
            let expected = if MAGIC.starts_with(other) { ReadError::Cut { entries_read: 0 } } else { ReadError::NotARecording };
            assert_eq!(read(other), Err(expected), "{}", String::from_utf8_lossy(other));
        }
        assert_eq!(read(b"chokepoint-recording 2\nwhatever"), Err(ReadError::VersionTooNew { found: 2, known: 1 }));
        assert_eq!(read(b"chokepoint-recording 1\r\n"), Err(ReadError::Corrupt { at_entry: 0 }));
        assert_eq!(read(b"chokepoint-recording 99999999999999999999\n"), Err(ReadError::NotARecording));
    }

    /// Version 1 as released. Never regenerate this file: the test checks that it can still be read.
    #[test]
    fn version_1_reads_for_ever() {
        let recording = read(include_bytes!("../tests/data/v1.chokepoint")).unwrap();
        assert_eq!(recording, Recording { meta: meta(), entries: entries(), left_out: 0 });
    }

    fn any_entry() -> impl Strategy<Value = Entry> {
        let scope = prop_oneof![Just(Scope::Host), any::<u64>().prop_map(Scope::Netns), any::<u32>().prop_map(Scope::Process),];
        let outcome = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..300).prop_map(Outcome::Ok),
            (".{0,20}", proptest::option::of(".{0,20}")).prop_map(|(why, needs)| Outcome::Absent(why, needs)),
            (".{0,20}", proptest::option::of(".{0,20}")).prop_map(|(why, needs)| Outcome::Failed(why, needs)),
        ];
        (any::<u64>(), ".{0,20}", scope, ".{0,20}", outcome).prop_map(|(at_us, source, scope, item, outcome)| Entry {
            at_us,
            source,
            scope,
            item,
            outcome,
        })
    }

    proptest! {
        #[test]
        fn any_entries_read_back_the_same(entries in proptest::collection::vec(any_entry(), 0..20)) {
            let recording = read(&write(&entries, &meta())).unwrap();
            prop_assert_eq!(recording.entries, entries);
        }

        #[test]
        fn random_bytes_are_refused(tail in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(read(&tail).is_err());
            let mut headed = b"chokepoint-recording 1\n".to_vec();
            headed.extend_from_slice(&tail);
            prop_assert!(read(&headed).is_err());
        }
    }
}
