//! Version 1 of the recording file. Frozen: a change of layout is a new version beside this one.
//!
//! Payloads, integers little-endian, `str` = length u32 and UTF-8:
//!
//! ```text
//! meta    0 | JSON of Meta
//! entry   1 | at_us u64 | scope u8 (0 host, 1 netns, 2 process) | scope id u64 | source str | item str | outcome
//! outcome     0 | the bytes to the payload's end
//!             1 (absent) or 2 (failed) | why str | 0, or 1 and needs str
//! end     2 | entries u64 | left out u64
//! ```

use std::io::{ErrorKind, Read, Write};

use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

use super::{ENTRY_BYTES_MAX, ENTRY_COUNT_MAX, Meta, ReadError, Recording, TOTAL_BYTES_MAX};
use crate::entry::{Entry, Outcome, Scope};

const KIND_META: u8 = 0;
const KIND_ENTRY: u8 = 1;
const KIND_END: u8 = 2;
/// Length and checksum.
const FRAME_HEAD_BYTES: u64 = 8;
/// Kept free for the closing frame: head, kind and two numbers.
const END_FRAME_BYTES: u64 = FRAME_HEAD_BYTES + 17;

/// The bounds, as a value so that tests reach them with little data.
pub(super) struct Limits {
    pub(super) total_bytes: u64,
    pub(super) entry_bytes: u64,
    pub(super) entry_count: u64,
}

/// The bounds of real recordings.
pub(super) const LIMITS: Limits = Limits { total_bytes: TOTAL_BYTES_MAX, entry_bytes: ENTRY_BYTES_MAX, entry_count: ENTRY_COUNT_MAX };

/// Appends the compressed frames to `out`.
pub(super) fn write(entries: &[Entry], meta: &Meta, limits: &Limits, out: &mut Vec<u8>) {
    let mut gzip = GzBuilder::new().mtime(0).write(out, Compression::default());
    let mut total = 0;
    // A struct of a string and a unit enum always has a JSON form.
    let mut payload = vec![KIND_META];
    payload.extend_from_slice(&serde_json::to_vec(meta).unwrap_or_default());
    write_frame(&payload, &mut gzip, &mut total);

    let mut written = 0;
    for entry in entries {
        payload.clear();
        put_entry(entry, limits, &mut payload);
        if written >= limits.entry_count || total + FRAME_HEAD_BYTES + payload.len() as u64 + END_FRAME_BYTES > limits.total_bytes {
            break;
        }
        write_frame(&payload, &mut gzip, &mut total);
        written += 1;
    }

    payload.clear();
    payload.push(KIND_END);
    payload.extend_from_slice(&written.to_le_bytes());
    payload.extend_from_slice(&(entries.len() as u64 - written).to_le_bytes());
    write_frame(&payload, &mut gzip, &mut total);
    let finished = gzip.finish();
    assert!(finished.is_ok(), "writing to memory cannot fail");
}

fn write_frame(payload: &[u8], gzip: &mut GzEncoder<&mut Vec<u8>>, total: &mut u64) {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    assert!(length < u32::MAX, "entries are bounded before they are framed");
    let written = gzip
        .write_all(&length.to_le_bytes())
        .and_then(|()| gzip.write_all(&crc32fast::hash(payload).to_le_bytes()))
        .and_then(|()| gzip.write_all(payload));
    assert!(written.is_ok(), "writing to memory cannot fail");
    *total += FRAME_HEAD_BYTES + payload.len() as u64;
}

fn put_entry(entry: &Entry, limits: &Limits, out: &mut Vec<u8>) {
    let strings = match &entry.outcome {
        Outcome::Ok(bytes) => bytes.len(),
        Outcome::Absent(why, needs) | Outcome::Failed(why, needs) => why.len() + needs.as_ref().map_or(0, String::len),
    };
    // 64 bytes are more than all the fixed fields together.
    let bytes = (strings + entry.source.len() + entry.item.len()) as u64 + 64;
    if bytes > limits.entry_bytes {
        let why = format!("left out of the recording: its {bytes} bytes are more than one entry may hold ({})", limits.entry_bytes);
        let kept = |text: &str| text.chars().take(256).collect();
        put_fields(&Entry { outcome: Outcome::Failed(why, None), source: kept(&entry.source), item: kept(&entry.item), ..*entry }, out);
    } else {
        put_fields(entry, out);
    }
}

fn put_fields(entry: &Entry, out: &mut Vec<u8>) {
    out.push(KIND_ENTRY);
    out.extend_from_slice(&entry.at_us.to_le_bytes());
    let (scope, id) = match entry.scope {
        Scope::Host => (0, 0),
        Scope::Netns(inode) => (1, inode),
        Scope::Process(pid) => (2, u64::from(pid)),
    };
    out.push(scope);
    out.extend_from_slice(&id.to_le_bytes());
    put_text(&entry.source, out);
    put_text(&entry.item, out);
    let (kind, why, needs) = match &entry.outcome {
        Outcome::Ok(bytes) => {
            out.push(0);
            out.extend_from_slice(bytes);
            return;
        }
        Outcome::Absent(why, needs) => (1, why, needs),
        Outcome::Failed(why, needs) => (2, why, needs),
    };
    out.push(kind);
    put_text(why, out);
    out.push(u8::from(needs.is_some()));
    if let Some(needs) = needs {
        put_text(needs, out);
    }
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    // put_entry bounds the text far below 4 GiB.
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Reads the compressed frames.
pub(super) fn read(body: &[u8], limits: &Limits) -> Result<Recording, ReadError> {
    let mut frames = Frames { gzip: GzDecoder::new(body), limits, total: 0, entries_read: 0, payload: Vec::new() };
    frames.next()?;
    let meta = frames.payload.strip_prefix(&[KIND_META]).and_then(|json| serde_json::from_slice::<Meta>(json).ok());
    let meta = meta.ok_or(ReadError::Corrupt { at_entry: 0 })?;

    let mut entries = Vec::new();
    let left_out = loop {
        frames.next()?;
        let corrupt = ReadError::Corrupt { at_entry: frames.entries_read };
        match frames.payload.split_first() {
            Some((&KIND_ENTRY, fields)) => {
                if frames.entries_read >= limits.entry_count {
                    return Err(ReadError::TooLarge { limit: "4,000,000 entries" });
                }
                entries.push(take_entry(fields).ok_or(corrupt)?);
                frames.entries_read += 1;
            }
            Some((&KIND_END, counts)) => {
                let mut fields = Fields(counts);
                let (count, left_out) = (fields.u64().ok_or(corrupt.clone())?, fields.u64().ok_or(corrupt.clone())?);
                if count != frames.entries_read || !fields.0.is_empty() {
                    return Err(corrupt);
                }
                break left_out;
            }
            _ => return Err(corrupt),
        }
    };
    frames.finish()?;
    Ok(Recording { meta, entries, left_out })
}

/// Takes frame after frame out of the compressed stream, within the bounds.
struct Frames<'a> {
    gzip: GzDecoder<&'a [u8]>,
    limits: &'a Limits,
    total: u64,
    entries_read: u64,
    /// The payload of the newest frame.
    payload: Vec<u8>,
}

impl Frames<'_> {
    fn next(&mut self) -> Result<(), ReadError> {
        let mut head = [0; 8];
        self.fill(&mut head)?;
        let [l0, l1, l2, l3, c0, c1, c2, c3] = head;
        let length = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
        let checksum = u32::from_le_bytes([c0, c1, c2, c3]);
        if length > self.limits.entry_bytes {
            return Err(ReadError::TooLarge { limit: "64 MiB an entry" });
        }
        self.total += FRAME_HEAD_BYTES + length;
        if self.total > self.limits.total_bytes {
            return Err(ReadError::TooLarge { limit: "512 MiB in all" });
        }
        // `take` grows the buffer with what is really there: a length that lies reserves nothing.
        self.payload.clear();
        let read = (&mut self.gzip).take(length).read_to_end(&mut self.payload);
        read.map_err(|error| self.error(error.kind()))?;
        if (self.payload.len() as u64) < length {
            return Err(ReadError::Cut { entries_read: self.entries_read });
        }
        if crc32fast::hash(&self.payload) != checksum {
            return Err(ReadError::Corrupt { at_entry: self.entries_read });
        }
        Ok(())
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.gzip.read_exact(buffer).map_err(|error| self.error(error.kind()))
    }

    /// After the closing frame the stream must end, whole and with its own checksum right, and so must the file.
    fn finish(mut self) -> Result<(), ReadError> {
        let mut more = [0; 1];
        match self.gzip.read(&mut more) {
            Ok(0) if self.gzip.get_ref().is_empty() => Ok(()),
            Ok(_) => Err(ReadError::Corrupt { at_entry: self.entries_read }),
            Err(error) => Err(self.error(error.kind())),
        }
    }

    fn error(&self, kind: ErrorKind) -> ReadError {
        match kind {
            ErrorKind::UnexpectedEof => ReadError::Cut { entries_read: self.entries_read },
            _ => ReadError::Corrupt { at_entry: self.entries_read },
        }
    }
}

fn take_entry(fields: &[u8]) -> Option<Entry> {
    let mut fields = Fields(fields);
    let at_us = fields.u64()?;
    let scope = match (fields.u8()?, fields.u64()?) {
        (0, 0) => Scope::Host,
        (1, inode) => Scope::Netns(inode),
        (2, pid) => Scope::Process(u32::try_from(pid).ok()?),
        _ => return None,
    };
    let source = fields.text()?;
    let item = fields.text()?;
    let outcome = match fields.u8()? {
        0 => Outcome::Ok(fields.0.to_vec()),
        kind @ (1 | 2) => {
            let why = fields.text()?;
            let needs = match fields.u8()? {
                0 => None,
                1 => Some(fields.text()?),
                _ => return None,
            };
            if !fields.0.is_empty() {
                return None;
            }
            if kind == 1 { Outcome::Absent(why, needs) } else { Outcome::Failed(why, needs) }
        }
        _ => return None,
    };
    Some(Entry { at_us, source, scope, item, outcome })
}

/// What is left of a payload.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(u32::from_le_bytes(self.take()?)).ok()?;
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        std::str::from_utf8(head).ok().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::Level;

    fn meta() -> Meta {
        Meta { tool: "0.1.0".to_owned(), redaction: Level::None }
    }

    fn entry(bytes: usize) -> Entry {
        Entry { at_us: 1, source: "s".into(), scope: Scope::Host, item: String::new(), outcome: Outcome::Ok(vec![7; bytes]) }
    }

    fn round(entries: &[Entry], limits: &Limits) -> Result<Recording, ReadError> {
        let mut out = Vec::new();
        write(entries, &meta(), limits, &mut out);
        read(&out, limits)
    }

    #[test]
    fn what_is_beyond_the_bounds_is_said_and_the_rest_survives() {
        let limits = Limits { total_bytes: 10_000, entry_bytes: 2_000, entry_count: 8 };
        let big = round(&[entry(10), entry(5_000), entry(20)], &limits).unwrap();
        assert_eq!((big.entries.len(), big.left_out), (3, 0));
        assert!(matches!(&big.entries[1].outcome, Outcome::Failed(why, None) if why.contains("left out")), "{:?}", big.entries[1]);
        assert_eq!(big.entries[2], entry(20));

        let many = round(&vec![entry(1); 20], &limits).unwrap();
        assert_eq!((many.entries.len(), many.left_out), (8, 12));
        let heavy = round(&vec![entry(1_900); 8], &limits).unwrap();
        assert_eq!((heavy.entries.len(), heavy.left_out), (5, 3));
    }

    #[test]
    fn a_reader_with_smaller_bounds_refuses() {
        let wide = Limits { total_bytes: 1 << 20, entry_bytes: 1 << 16, entry_count: 100 };
        let mut out = Vec::new();
        write(&vec![entry(3_000); 10], &meta(), &wide, &mut out);
        let refused = |total_bytes, entry_bytes, entry_count| read(&out, &Limits { total_bytes, entry_bytes, entry_count }).unwrap_err();
        assert_eq!(refused(10_000, 1 << 16, 100), ReadError::TooLarge { limit: "512 MiB in all" });
        assert_eq!(refused(1 << 20, 1_000, 100), ReadError::TooLarge { limit: "64 MiB an entry" });
        assert_eq!(refused(1 << 20, 1 << 16, 9), ReadError::TooLarge { limit: "4,000,000 entries" });
        assert!(read(&out, &wide).is_ok());
    }

    /// Frames whose checksums are right and whose contents are not.
    #[test]
    fn wrong_frames_with_right_checksums_are_refused() {
        let frames = |payloads: &[&[u8]]| {
            let mut out = Vec::new();
            let mut gzip = GzBuilder::new().write(&mut out, Compression::fast());
            for payload in payloads {
                write_frame(payload, &mut gzip, &mut 0);
            }
            gzip.finish().unwrap();
            read(&out, &LIMITS)
        };
        let head: &[u8] = b"\0{\"tool\":\"x\",\"redaction\":\"none\",\"added later\":1}";
        let end = [&[KIND_END][..], &[0; 16]].concat();
        assert!(frames(&[head, &end]).is_ok());
        let mut good = Vec::new();
        put_fields(&entry(0), &mut good);
        for cut in 0..good.len() {
            assert_eq!(frames(&[head, &good[..cut], &end]), Err(ReadError::Corrupt { at_entry: 0 }), "entry cut at {cut}");
        }
        for wrong in [&b""[..], b"\x09", b"\x02\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", head] {
            assert_eq!(frames(&[head, wrong]), Err(ReadError::Corrupt { at_entry: 0 }), "{wrong:?}");
        }
        assert_eq!(frames(&[&end]), Err(ReadError::Corrupt { at_entry: 0 }));
        assert_eq!(frames(&[head]), Err(ReadError::Cut { entries_read: 0 }));
        assert_eq!(frames(&[head, &end, &good]), Err(ReadError::Corrupt { at_entry: 0 }));
    }

    #[test]
    fn a_decompression_bomb_is_stopped() {
        let mut out = Vec::new();
        let mut gzip = GzBuilder::new().write(&mut out, Compression::fast());
        gzip.write_all(&u32::MAX.to_le_bytes()).unwrap();
        gzip.write_all(&vec![0; 8 << 20]).unwrap();
        gzip.finish().unwrap();
        assert_eq!(read(&out, &LIMITS), Err(ReadError::TooLarge { limit: "64 MiB an entry" }));
    }
}
