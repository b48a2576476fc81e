//! The records that the kernel logged during the observation, from `/dev/kmsg`.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};

use chokepoint_model::observation::{KernelLine, Observation};
use chokepoint_recording::{Entry, Outcome};

use crate::reduction::Reduction;
use crate::root::{outcome_of, reading_of};
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};

const NAME: &str = "kernel_log";
/// Needed if `kernel.dmesg_restrict` is 1 (Documentation/admin-guide/sysctl/kernel.rst).
const NEEDS: &str = "CAP_SYSLOG";
const FILE: &str = "dev/kmsg";
/// The newest records up to both bounds are kept.
const BYTES_MAX: usize = 256 << 10;
const RECORDS_MAX: usize = 2000;
/// Most records of one read: the largest log buffer (2^25 bytes) has fewer.
const RECORDS_READ_MAX: usize = 1 << 20;
/// A record with its prefix and continuation lines has at most 8 KiB (CONSOLE_EXT_LOG_MAX). A smaller buffer leads to EINVAL.
const RECORD_BYTES_MAX: usize = 16 << 10;

/// At both ends for the host. The first read gives item "mark": the prefix of the last record before the observation. The last read gives item "": all
/// records after that one, by their numbers, since times in the log drift away from every clock that a program can read. Item "lost" follows if records were
/// overwritten before the read, or exceeded the bounds.
pub(crate) const KERNEL_LOG: Source =
    Source { name: NAME, scope: ScopeKind::Host, cadence: Cadence::Ends, needs: Some(NEEDS), read, put, redact: Redact::Reduced };

const ITEM_MARK: &str = "mark";
const ITEM_LOST: &str = "lost";

fn read(context: &ReadContext<'_>) -> Items {
    let first = context.phase == Phase::First;
    // After an empty mark, from an empty log, every record is new.
    let mark = context.notes.get(NAME).filter(|_| !first);
    let after = mark.as_ref().and_then(|mark| parse_record(TextLine::new(NAME, 1), std::str::from_utf8(mark).ok()?).ok());
    let log = match context.root.open(FILE).and_then(|file| read_after(file, after.map(|mark| mark.sequence))) {
        Ok(log) => log,
        Err(error) => return vec![(if first { ITEM_MARK } else { "" }.to_owned(), outcome_of(&error, Some(NEEDS)))],
    };
    if !first && mark.is_none() {
        return only_item(Outcome::Failed("the position of the log at the beginning could not be read".to_owned(), None));
    }
    if first {
        context.notes.set(NAME, log.last_prefix.clone());
        return vec![(ITEM_MARK.to_owned(), Outcome::Ok(log.last_prefix))];
    }
    let lost = log.lost;
    let mut entries = only_item(Outcome::Ok(log.text()));
    if lost > 0 {
        let why =
            format!("{lost} records were overwritten before they were read, or are more than {RECORDS_MAX} records or {BYTES_MAX} bytes");
        entries.push((ITEM_LOST.to_owned(), Outcome::Failed(why, None)));
    }
    entries
}

/// The result of one read of the log.
#[derive(Debug, Default)]
struct LogRead {
    /// The newest records after the mark, one line each, and their size.
    records: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Prefix of the last record, "priority,sequence,microseconds,flags;" and a newline; empty for an empty log.
    last_prefix: Vec<u8>,
    /// Expected number of the next record.
    next: Option<u64>,
    /// Records after the mark that are missing.
    lost: u64,
}

impl LogRead {
    fn new(mark: Option<u64>) -> Self {
        Self { next: mark.map(|mark| mark.saturating_add(1)), ..Self::default() }
    }

    /// Adds a record if it is after the mark. The oldest records make room for it.
    fn add(&mut self, line: &[u8], sequence: u64, mark: Option<u64>) {
        let prefix = line.split(|&byte| byte == b';').next().unwrap_or_default();
        self.last_prefix = [prefix, b";\n"].concat();
        if mark.is_some_and(|mark| sequence <= mark) {
            return;
        }
        self.lost = self.lost.saturating_add(sequence.saturating_sub(self.next.unwrap_or(sequence)));
        self.next = sequence.checked_add(1);
        self.bytes += line.len() + 1;
        self.records.push_back([line, b"\n"].concat());
        while self.records.len() > RECORDS_MAX || self.bytes > BYTES_MAX {
            self.bytes -= self.records.pop_front().map_or(0, |oldest| oldest.len());
            self.lost = self.lost.saturating_add(1);
        }
    }

    fn text(self) -> Vec<u8> {
        self.records.into_iter().flatten().collect()
    }
}

/// Reads every record of the log, one for each read(2) (Documentation/ABI/testing/dev-kmsg), and keeps those after the mark. EPIPE means that the next record
/// was overwritten; the next read continues after the gap, which the numbers show.
fn read_after(mut file: impl Read, mark: Option<u64>) -> std::io::Result<LogRead> {
    let mut log = LogRead::new(mark);
    let mut buffer = vec![0; RECORD_BYTES_MAX];
    for _ in 0..RECORDS_READ_MAX {
        let length = match file.read(&mut buffer) {
            // A file of a tree ends; the device returns EAGAIN.
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted || error.raw_os_error() == Some(libc::EPIPE) => continue,
            Err(error) => return Err(error),
        };
        // Continuation lines ("\n KEY=value") name the device of a record and are not used.
        for line in buffer[..length].split(|&byte| byte == b'\n').filter(|line| !line.starts_with(b" ")) {
            let Some(record) = std::str::from_utf8(line).ok().and_then(|line| parse_record(TextLine::new(NAME, 1), line).ok()) else {
                continue;
            };
            log.add(line, record.sequence, mark);
        }
    }
    Ok(log)
}

/// Parses records "priority,sequence,microseconds,flags[,...];text", one per line. Skips continuation lines, which begin with a space. An empty text is an
/// empty log.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<KernelLine>, ParseError> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let text = whole(NAME, bytes)?;
    lines(NAME, &text).filter(|(_, line)| !line.starts_with(' ')).map(|(place, line)| parse_record(place, line)).collect()
}

/// Reduces the log to the records that the model reads.
pub(crate) fn reduced(bytes: &[u8], reduction: &mut Reduction) -> Outcome {
    let mut kept = Vec::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let record = std::str::from_utf8(line).ok().and_then(|line| parse_record(TextLine::new(NAME, 1), line.trim_end_matches('\n')).ok());
        match record {
            // The mark has no text.
            Some(record) if record.is_read() || record.text.is_empty() => kept.extend_from_slice(line),
            _ => reduction.log_lines += 1,
        }
    }
    Outcome::Ok(kept)
}

fn parse_record(place: TextLine, line: &str) -> Result<KernelLine, ParseError> {
    const EXPECTED: &str = "priority,sequence,microseconds,flags;text";
    let (prefix, text) = line.split_once(';').ok_or_else(|| place.expected(EXPECTED, line))?;
    let mut fields = prefix.split(',');
    let _priority: u32 = place.number(EXPECTED, fields.next())?;
    let sequence = place.number(EXPECTED, fields.next())?;
    let at_us = place.number(EXPECTED, fields.next())?;
    fields.next().ok_or_else(|| place.expected(EXPECTED, line))?;
    Ok(KernelLine { at_us, sequence, text: text.to_owned() })
}

fn put(observation: &mut Observation, entry: &Entry) {
    match (entry.item.as_str(), &entry.outcome) {
        // The mark is no reading of the log.
        (ITEM_MARK, Outcome::Ok(_)) => {}
        _ => observation.kernel_log.push(entry.at_us, reading_of(&entry.outcome, parse)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;
    use crate::table::Notes;
    use chokepoint_recording::Scope;

    /// The device: each read returns a record or an error.
    struct Device(std::vec::IntoIter<Result<String, i32>>);
    impl Read for Device {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match self.0.next() {
                None => Err(std::io::Error::from_raw_os_error(libc::EAGAIN)),
                Some(Err(errno)) => Err(std::io::Error::from_raw_os_error(errno)),
                Some(Ok(record)) => {
                    buffer[..record.len()].copy_from_slice(record.as_bytes());
                    Ok(record.len())
                }
            }
        }
    }

    fn device(records: Vec<Result<String, i32>>) -> Device {
        Device(records.into_iter())
    }

    fn record(sequence: u64, text: &str) -> Result<String, i32> {
        Ok(format!("4,{sequence},{}000,-;{text}\n SUBSYSTEM=net\n DEVICE=+net:lo\n", sequence))
    }

    #[test]
    fn only_records_after_the_mark_are_kept() {
        let log = read_after(device(vec![record(7, "old"), record(8, "new;er"), record(9, "newest")]), Some(7)).unwrap();
        assert_eq!((log.lost, log.last_prefix.as_slice()), (0, b"4,9,9000,-;\n".as_slice()));
        let lines = parse(&log.text()).unwrap();
        assert_eq!(lines[0], KernelLine { at_us: 8000, sequence: 8, text: "new;er".into() });
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn overwritten_records_are_counted() {
        let log = read_after(device(vec![Err(libc::EPIPE), record(12, "a"), Err(libc::EPIPE), record(15, "b")]), Some(9)).unwrap();
        assert_eq!(log.lost, 4, "10, 11, 13 and 14");
        assert_eq!(parse(&log.text()).unwrap().len(), 2);
        assert!(read_after(device(vec![Err(libc::EIO)]), None).is_err());
    }

    #[test]
    fn the_newest_records_are_kept_within_the_bounds() {
        let many = (0..3000).map(|sequence| record(sequence, "x")).collect();
        let log = read_after(device(many), None).unwrap();
        assert_eq!(log.lost, 1000);
        let lines = parse(&log.text()).unwrap();
        assert_eq!((lines.len(), lines[0].sequence), (RECORDS_MAX, 1000));
        let long = (0..300).map(|sequence| record(sequence, &"y".repeat(2000))).collect();
        let log = read_after(device(long), None).unwrap();
        let (lost, text) = (log.lost, log.text());
        assert!(text.len() <= BYTES_MAX);
        assert_eq!(parse(&text).unwrap().len() as u64 + lost, 300);
    }

    #[test]
    fn continuation_lines_are_skipped_and_further_fields_allowed() {
        let lines = parse(b"6,339,5140900,-,caller=T1;eth0: link up\n SUBSYSTEM=net\n").unwrap();
        assert_eq!(lines, [KernelLine { at_us: 5_140_900, sequence: 339, text: "eth0: link up".into() }]);
        for wrong in ["\n", "4,1,2;x\n", "4,1,2,-\n", "4,a,2,-;x\n", "4,1,2,-;x", ";\n"] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        assert_eq!(parse(b"").unwrap(), []);
    }

    #[test]
    fn the_second_read_continues_after_the_first() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir(tree.path().join("dev")).unwrap();
        std::fs::write(tree.path().join("dev/kmsg"), "4,5,1,-;before\n").unwrap();
        let (root, notes) = (Root::new(tree.path()), Notes::default());
        let context = |phase| ReadContext::new(&root, Scope::Host, phase, &notes);
        assert!(matches!(&read(&context(Phase::Last))[..], [(_, Outcome::Failed(..))]), "without a mark new records are unknown");
        let first = read(&context(Phase::First));
        assert_eq!(first, [("mark".to_owned(), Outcome::Ok(b"4,5,1,-;\n".to_vec()))]);
        assert_eq!(read(&context(Phase::Last)), [(String::new(), Outcome::Ok(Vec::new()))]);
        std::fs::write(tree.path().join("dev/kmsg"), "4,6,2,-;after\n").unwrap();
        assert_eq!(read(&context(Phase::Last)), [(String::new(), Outcome::Ok(b"4,6,2,-;after\n".to_vec()))]);
        std::fs::remove_file(tree.path().join("dev/kmsg")).unwrap();
        assert!(matches!(&read(&context(Phase::Last))[..], [(item, Outcome::Absent(..))] if item.is_empty()));
    }
}
