//! Version 1 of the recording file. Frozen: a changed layout becomes a new version in a new file.
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

use std::io::{BufRead, ErrorKind, Read, Write};

use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

use super::{
    ENTRY_BYTES_MAX, ENTRY_COUNT_MAX, ENTRY_OVERHEAD_BYTES, Meta, ReadError, Recording, TOTAL_BYTES_MAX, UNPACKED_BYTES_MIN,
    UNPACKED_RATIO_MAX,
};
use crate::entry::{Entry, Outcome, Scope};

const KIND_META: u8 = 0;
const KIND_ENTRY: u8 = 1;
const KIND_END: u8 = 2;
/// Length and checksum.
const FRAME_HEAD_BYTES: u64 = 8;
/// Reserved for the closing frame: head, kind and two numbers.
const END_FRAME_BYTES: u64 = FRAME_HEAD_BYTES + 17;

/// The limits as a value, so that tests can reach them with little data.
pub(super) struct Limits {
    pub(super) total_bytes: u64,
    pub(super) entry_bytes: u64,
    pub(super) entry_count: u64,
    pub(super) unpacked_bytes: u64,
    pub(super) unpacked_ratio: u64,
}

impl Limits {
    /// Memory that entries may take after this many bytes of the file.
    fn unpacked(&self, read: u64) -> u64 {
        self.unpacked_bytes.saturating_add(read.saturating_mul(self.unpacked_ratio))
    }
}

/// The limits of real recordings.
pub(super) const LIMITS: Limits = Limits {
    total_bytes: TOTAL_BYTES_MAX,
    entry_bytes: ENTRY_BYTES_MAX,
    entry_count: ENTRY_COUNT_MAX,
    unpacked_bytes: UNPACKED_BYTES_MIN,
    unpacked_ratio: UNPACKED_RATIO_MAX,
};

/// Appends the compressed frames to `out`. Data that would exceed the readers' decompression ratio is written without compression.
pub(super) fn write(entries: &[Entry], meta: &Meta, limits: &Limits, out: &mut Vec<u8>) {
    let begin = out.len();
    if !write_packed(entries, meta, limits, out, Compression::default()) {
        out.truncate(begin);
        let written = write_packed(entries, meta, limits, out, Compression::none());
        assert!(written, "what is not compressed is within the bounds: no entry is smaller than its share");
    }
}

/// The smallest entry takes 35 bytes with its frame.
const _: () = assert!(35 * UNPACKED_RATIO_MAX > 35 + ENTRY_OVERHEAD_BYTES);

/// Memory that entries take, from their number and bytes.
fn unpacked(entries: u64, bytes: u64) -> u64 {
    bytes.saturating_add(entries.saturating_mul(ENTRY_OVERHEAD_BYTES))
}

/// Writes the frames. Returns false, after a part of them, if a reader would refuse them.
fn write_packed(entries: &[Entry], meta: &Meta, limits: &Limits, out: &mut Vec<u8>, compression: Compression) -> bool {
    let begin = out.len();
    let mut gzip = GzBuilder::new().mtime(0).write(out, compression);
    let mut total = 0;
    // A struct of a string and a unit enum can always be written as JSON.
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
        // Bytes that the encoder still holds count as not written, as they would for a reader at this point.
        if unpacked(written, total) > limits.unpacked((gzip.get_ref().len() - begin) as u64) {
            return false;
        }
    }

    payload.clear();
    payload.push(KIND_END);
    payload.extend_from_slice(&written.to_le_bytes());
    payload.extend_from_slice(&(entries.len() as u64 - written).to_le_bytes());
    write_frame(&payload, &mut gzip, &mut total);
    let finished = gzip.finish();
    assert!(finished.is_ok(), "writing to memory cannot fail");
    true
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
    // 64 bytes are more than all fixed fields together.
    let bytes = (strings + entry.source.len() + entry.item.len()) as u64 + 64;
    if bytes > limits.entry_bytes {
        let why = format!("left out of the recording: its {bytes} bytes are more than an entry may have ({})", limits.entry_bytes);
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
    // put_entry limits the text far below 4 GiB.
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Reads the compressed frames.
pub(super) fn read(body: impl BufRead, limits: &Limits) -> Result<Recording, ReadError> {
    let gzip = GzDecoder::new(Counted { inner: body, read: 0 });
    let mut frames = Frames { gzip, limits, total: 0, entries_read: 0, payload: Vec::new() };
    frames.next(META_BYTES_MAX)?;
    let meta = frames.payload.strip_prefix(&[KIND_META]).and_then(|json| serde_json::from_slice::<Meta>(json).ok());
    let meta = meta.ok_or(ReadError::Corrupt { at_entry: 0 })?;

    let mut entries = Vec::new();
    let left_out = loop {
        frames.next(limits.entry_bytes)?;
        let corrupt = ReadError::Corrupt { at_entry: frames.entries_read };
        match frames.payload.split_first() {
            Some((&KIND_ENTRY, _)) => {
                if frames.entries_read >= limits.entry_count {
                    return Err(ReadError::TooLarge { limit: "4,000,000 entries" });
                }
                entries.push(take_entry(std::mem::take(&mut frames.payload)).ok_or(corrupt)?);
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

/// Reads frame after frame from the compressed stream, within the limits.
struct Frames<'a, R> {
    gzip: GzDecoder<Counted<R>>,
    limits: &'a Limits,
    total: u64,
    entries_read: u64,
    /// The payload of the current frame.
    payload: Vec<u8>,
}

/// The file, with a count of the bytes read from it.
struct Counted<R> {
    inner: R,
    read: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.read += amount as u64;
        self.inner.consume(amount);
    }
}

/// Largest meta frame, bytes. A usual one has a hundred.
const META_BYTES_MAX: u64 = 64 << 10;
/// Bytes decompressed between two checks of the limits.
const PIECE_BYTES: u64 = 64 << 10;

impl<R: BufRead> Frames<'_, R> {
    fn next(&mut self, bytes_max: u64) -> Result<(), ReadError> {
        let mut head = [0; 8];
        self.fill(&mut head)?;
        let [l0, l1, l2, l3, c0, c1, c2, c3] = head;
        let length = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
        let checksum = u32::from_le_bytes([c0, c1, c2, c3]);
        if length > bytes_max.min(self.limits.entry_bytes) {
            return Err(ReadError::TooLarge { limit: "64 MiB an entry" });
        }
        self.total += FRAME_HEAD_BYTES + length;
        if self.total > self.limits.total_bytes {
            return Err(ReadError::TooLarge { limit: "512 MiB in all" });
        }
        // `take` grows the buffer with the data that exists: a false length reserves nothing.
        self.payload.clear();
        let before = self.total - length;
        while (self.payload.len() as u64) < length {
            let piece = (length - self.payload.len() as u64).min(PIECE_BYTES);
            let read = (&mut self.gzip).take(piece).read_to_end(&mut self.payload);
            if read.map_err(|error| self.error(error.kind()))? == 0 {
                return Err(ReadError::Cut { entries_read: self.entries_read });
            }
            self.check_size(before + self.payload.len() as u64)?;
        }
        self.check_size(self.total)?;
        if crc32fast::hash(&self.payload) != checksum {
            return Err(ReadError::Corrupt { at_entry: self.entries_read });
        }
        Ok(())
    }

    fn check_size(&self, bytes: u64) -> Result<(), ReadError> {
        let is_within = unpacked(self.entries_read, bytes) <= self.limits.unpacked(self.gzip.get_ref().read);
        if is_within { Ok(()) } else { Err(ReadError::Inflated) }
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.gzip.read_exact(buffer).map_err(|error| self.error(error.kind()))
    }

    /// After the closing frame, the stream must end with a correct checksum of its own, and the file must end too.
    fn finish(mut self) -> Result<(), ReadError> {
        let mut more = [0; 1];
        match self.gzip.read(&mut more) {
            Ok(0) if self.gzip.get_mut().fill_buf().is_ok_and(<[u8]>::is_empty) => Ok(()),
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

/// The entry of a payload. Its bytes are not copied.
fn take_entry(mut payload: Vec<u8>) -> Option<Entry> {
    let mut fields = Fields(payload.get(1..)?);
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
        0 => {
            let head = payload.len() - fields.0.len();
            payload.drain(..head);
            payload.shrink_to_fit();
            Outcome::Ok(payload)
        }
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

/// The rest of a payload.
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
        read(&*out, limits)
    }

    #[test]
    fn data_beyond_the_limits_is_reported_and_the_rest_is_kept() {
        let limits = Limits { total_bytes: 10_000, entry_bytes: 2_000, entry_count: 8, ..LIMITS };
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
    fn a_reader_with_smaller_limits_refuses() {
        let wide = Limits { total_bytes: 1 << 20, entry_bytes: 1 << 16, entry_count: 100, ..LIMITS };
        let mut out = Vec::new();
        write(&vec![entry(3_000); 10], &meta(), &wide, &mut out);
        let refused =
            |total_bytes, entry_bytes, entry_count| read(&*out, &Limits { total_bytes, entry_bytes, entry_count, ..LIMITS }).unwrap_err();
        assert_eq!(refused(10_000, 1 << 16, 100), ReadError::TooLarge { limit: "512 MiB in all" });
        assert_eq!(refused(1 << 20, 1_000, 100), ReadError::TooLarge { limit: "64 MiB an entry" });
        assert_eq!(refused(1 << 20, 1 << 16, 9), ReadError::TooLarge { limit: "4,000,000 entries" });
        assert!(read(&*out, &wide).is_ok());
    }

    /// Frames with correct checksums and wrong contents.
    #[test]
    fn wrong_frames_with_right_checksums_are_refused() {
        let frames = |payloads: &[&[u8]]| {
            let mut out = Vec::new();
            let mut gzip = GzBuilder::new().write(&mut out, Compression::fast());
            for payload in payloads {
                write_frame(payload, &mut gzip, &mut 0);
            }
            gzip.finish().unwrap();
            read(&*out, &LIMITS)
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
        assert_eq!(read(&*out, &LIMITS), Err(ReadError::TooLarge { limit: "64 MiB an entry" }));
    }

    /// A stream of this many tiny entries, or of one large entry, that decompresses to far more than its size.
    fn bomb(entries: usize, bytes: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut gzip = GzBuilder::new().write(&mut out, Compression::best());
        write_frame(b"\0{\"tool\":\"x\",\"redaction\":\"none\"}", &mut gzip, &mut 0);
        let mut payload = Vec::new();
        put_fields(&entry(bytes), &mut payload);
        (0..entries).for_each(|_| write_frame(&payload, &mut gzip, &mut 0));
        gzip.finish().unwrap();
        out
    }

    #[test]
    fn data_that_grows_beyond_its_size_is_refused() {
        let limits = Limits { unpacked_bytes: 100_000, unpacked_ratio: 4, ..LIMITS };
        assert_eq!(read(&*bomb(20_000, 0), &limits), Err(ReadError::Inflated));
        assert_eq!(read(&*bomb(1, 2_000_000), &limits), Err(ReadError::Inflated));
        let mut padded = bomb(20_000, 0);
        padded.resize(10_000_000, 0);
        assert_eq!(read(&*padded, &limits), Err(ReadError::Inflated), "what lies behind it unread allows nothing");
    }

    #[test]
    fn every_written_recording_can_be_read_however_well_it_compresses() {
        let limits = Limits { unpacked_bytes: 1_000_000, unpacked_ratio: 32, ..LIMITS };
        for entries in [vec![entry(0); 20_000], vec![entry(2_000_000)], vec![entry(1)]] {
            assert_eq!(round(&entries, &limits).unwrap().entries, entries);
        }
    }
}
