//! The journal: append-only lines of JSON, each with a checksum and synced before the action that it describes.
//!
//! A line is `{"crc":"1a2b3c4d","entry":{...}}` with the CRC-32 of the entry's bytes. The process may die at any byte: nobody has relied on an incomplete
//! last line, which is dropped. A damaged line before it is always reported.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::RemedyError;
use crate::record::{Ledger, Record};
use crate::state_dir::HOST_STATE_DIR;

/// Version of the format.
const VERSION: u32 = 1;
/// Largest journal, bytes. A set of changes takes about one kilobyte, and the journal is emptied when nothing is pending.
const JOURNAL_BYTES_MAX: u64 = 16 << 20;
const HEAD: &[u8] = b"{\"crc\":\"";
const MIDDLE: &[u8] = b"\",\"entry\":";
const TAIL: &[u8] = b"}";

/// The content of a journal file.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) ledger: Ledger,
    /// Damaged lines before the last one, counted from 1.
    pub(crate) corrupt_lines: Vec<usize>,
    /// Bytes up to the end of the last whole line.
    whole_bytes: u64,
    /// True where the last whole line lacks its line feed.
    unended: bool,
}

/// The journal of a state directory.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    dir: PathBuf,
    path: PathBuf,
}

impl Journal {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), path: dir.join("journal") }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A file of this name in the journal's directory.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Creates the directory if it is missing, and refuses one in which others could write. Everybody may read root's directory, for the summary in it,
    /// but not the journal and the lock.
    pub(crate) fn prepare_dir(&self) -> Result<(), RemedyError> {
        let failed = |doing| move |error| RemedyError::io(doing, &self.dir, error);
        let (root, readable) = (rustix::process::geteuid().is_root(), fs::Permissions::from_mode(0o755));
        if !self.dir.is_dir() {
            let mode = if root { 0o755 } else { 0o700 };
            fs::DirBuilder::new().recursive(true).mode(mode).create(&self.dir).map_err(failed("create"))?;
            if root {
                fs::set_permissions(&self.dir, readable).map_err(failed("create"))?;
            }
            if let Some(parent) = self.dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                File::open(parent).and_then(|dir| dir.sync_all()).map_err(|error| RemedyError::io("sync", parent, error))?;
            }
        }
        self.check_dir()?;
        // Earlier versions made the directory private to root.
        let closed = |meta: fs::Metadata| meta.mode() & 0o777 == 0o700;
        if root && self.dir == Path::new(HOST_STATE_DIR) && fs::metadata(&self.dir).is_ok_and(closed) {
            fs::set_permissions(&self.dir, fs::Permissions::from_mode(0o755)).map_err(failed("open"))?;
        }
        Ok(())
    }

    /// Refuses a directory in which others could write; for root also one whose path others could redirect.
    fn check_dir(&self) -> Result<(), RemedyError> {
        let failed = |error| RemedyError::io("open", &self.dir, error);
        self.check_owner(&self.dir, &fs::metadata(&self.dir).map_err(failed)?)?;
        if rustix::process::geteuid().is_root() {
            let whole = std::path::absolute(&self.dir).map_err(failed)?;
            chokepoint_foreign::trusted(&whole, 0).map_err(RemedyError::Untrusted)?;
        }
        Ok(())
    }

    fn check_owner(&self, path: &Path, meta: &fs::Metadata) -> Result<(), RemedyError> {
        let unsafe_because = |why| Err(RemedyError::UnsafeDirectory { path: path.to_owned(), why });
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return unsafe_because("belongs to another user");
        }
        if meta.mode() & 0o022 != 0 {
            return unsafe_because("can be written by other users");
        }
        Ok(())
    }

    /// Reads the journal without changing it. A missing one is empty.
    pub(crate) fn read(&self) -> Result<Content, RemedyError> {
        let failed = |error| RemedyError::io("read", &self.path, error);
        if fs::symlink_metadata(&self.dir).is_ok() {
            self.check_dir()?;
        }
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&self.path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::default()),
            Err(error) => return Err(failed(error)),
        };
        let meta = file.metadata().map_err(failed)?;
        self.check_owner(&self.path, &meta)?;
        if !meta.is_file() {
            return Err(RemedyError::UnsafeDirectory { path: self.path.clone(), why: "is not a regular file" });
        }
        let mut bytes = Vec::new();
        file.take(JOURNAL_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > JOURNAL_BYTES_MAX {
            return Err(RemedyError::TooLarge { path: self.path.clone(), limit: JOURNAL_BYTES_MAX });
        }
        let (content, version) = parse(&bytes);
        match version {
            Some(found) if found > VERSION => Err(RemedyError::VersionTooNew { path: self.path.clone(), found, known: VERSION }),
            _ => Ok(content),
        }
    }

    /// Makes the journal ready for appending: creates it if it is missing and cuts off a torn last line.
    pub(crate) fn make_appendable(&self, content: &Content) -> Result<(), RemedyError> {
        let failed = |error| RemedyError::io("write", &self.path, error);
        if content.whole_bytes == 0 && content.corrupt_lines.is_empty() {
            return self.start_anew(content.ledger.next_id.max(1));
        }
        let mut file = OpenOptions::new().append(true).custom_flags(libc::O_NOFOLLOW).open(&self.path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() > content.whole_bytes {
            file.set_len(content.whole_bytes).map_err(failed)?;
        }
        if content.unended {
            file.write_all(b"\n").map_err(failed)?;
        }
        file.sync_all().map_err(failed)
    }

    /// Appends a record. On success it is on disk; after an error the journal has nothing of it, or a torn line.
    pub(crate) fn append(&self, record: &Record) -> Result<(), RemedyError> {
        let failed = |error| RemedyError::io("write", &self.path, error);
        let mut file = OpenOptions::new().append(true).custom_flags(libc::O_NOFOLLOW).open(&self.path).map_err(failed)?;
        let before = file.metadata().map_err(failed)?.len();
        let line = line(record).map_err(failed)?;
        if before + line.len() as u64 > JOURNAL_BYTES_MAX {
            return Err(RemedyError::TooLarge { path: self.path.clone(), limit: JOURNAL_BYTES_MAX });
        }
        let written = file.write_all(&line).and_then(|()| file.sync_all());
        if written.is_err() {
            // The next record must not follow half a line. If this fails too, the next start cuts it off.
            let _ = file.set_len(before).and_then(|()| file.sync_all());
        }
        written.map_err(failed)
    }

    /// Replaces the journal by an empty one, atomically.
    pub(crate) fn start_anew(&self, next_id: u64) -> Result<(), RemedyError> {
        let fresh = self.dir.join("journal.new");
        let failed = |error| RemedyError::io("write", &fresh, error);
        match fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&fresh).map_err(failed)?;
        let head = line(&Record::Head { version: VERSION, next_id }).map_err(failed)?;
        let written = file.write_all(&head).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&fresh, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&fresh);
        }
        written.map_err(failed)?;
        self.sync_dir()
    }

    /// Renames a damaged journal to `journal.damaged-N` and begins a new one.
    pub(crate) fn set_aside(&self, next_id: u64) -> Result<PathBuf, RemedyError> {
        const DAMAGED_MAX: u32 = 1_000;
        let free = (1..=DAMAGED_MAX).map(|n| self.dir.join(format!("journal.damaged-{n}"))).find(|path| !path.exists());
        let damaged = free.unwrap_or_else(|| self.dir.join("journal.damaged"));
        fs::rename(&self.path, &damaged).map_err(|error| RemedyError::io("rename", &self.path, error))?;
        self.start_anew(next_id)?;
        Ok(damaged)
    }

    /// Syncs the directory, so that the files' names are on disk too.
    pub(crate) fn sync_dir(&self) -> Result<(), RemedyError> {
        File::open(&self.dir).and_then(|dir| dir.sync_all()).map_err(|error| RemedyError::io("sync", &self.dir, error))
    }
}

fn line(record: &Record) -> io::Result<Vec<u8>> {
    let entry = serde_json::to_vec(record)?;
    let crc = format!("{:08x}", crc32fast::hash(&entry));
    Ok([HEAD, crc.as_bytes(), MIDDLE, &entry, TAIL, b"\n"].concat())
}

/// The content of a journal's bytes, and the version in its first line.
fn parse(bytes: &[u8]) -> (Content, Option<u32>) {
    let mut content = Content::default();
    let mut version = None;
    let mut at = 0;
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        at += line.len();
        let (text, ended) = line.strip_suffix(b"\n").map_or((line, false), |text| (text, true));
        match entry(text) {
            Parsed::Record(record) => {
                if let Record::Head { version: found, .. } = &record {
                    version = Some(*found);
                }
                content.ledger.take(record);
            }
            Parsed::Newer(found) => version = version.max(Some(found)),
            // The process or the machine stopped while writing the last line. The first line is always whole: the file appears with it.
            Parsed::Damaged if !ended && index > 0 => break,
            Parsed::Damaged => content.corrupt_lines.push(index + 1),
        }
        content.whole_bytes = at as u64;
        content.unended = !ended;
    }
    (content, version)
}

enum Parsed {
    Record(Record),
    /// A head of this newer version.
    Newer(u32),
    Damaged,
}

fn entry(line: &[u8]) -> Parsed {
    let parts = || {
        let (crc, rest) = line.strip_prefix(HEAD)?.split_at_checked(8)?;
        let entry = rest.strip_prefix(MIDDLE)?.strip_suffix(TAIL)?;
        let crc = u32::from_str_radix(std::str::from_utf8(crc).ok()?, 16).ok()?;
        (crc == crc32fast::hash(entry)).then_some(entry)
    };
    let Some(entry) = parts() else { return Parsed::Damaged };
    if let Ok(record) = serde_json::from_slice(entry) {
        return Parsed::Record(record);
    }
    // A newer program wrote a whole line that this one cannot read.
    let version = serde_json::from_slice::<serde_json::Value>(entry).ok().and_then(|entry| entry.get("version")?.as_u64());
    Parsed::Newer(version.and_then(|version| u32::try_from(version).ok()).unwrap_or(VERSION + 1))
}

#[cfg(test)]
mod tests {
    use chokepoint_model::change::Change;
    use chokepoint_model::observation::NetnsId;

    use super::*;
    use crate::record::{How, Intent, Purpose};

    fn intent(id: u64) -> Record {
        let change = Change::Sysctl {
            key: "net.core.somaxconn".into(),
            netns: NetnsId(1),
            netns_name: "host".into(),
            from: "128".into(),
            to: "4096".into(),
        };
        let purpose = Purpose { finding: "f".into(), remedy: "r".into(), owner: "diagnose".into() };
        let changes = vec![Intent { change, was: "128".into(), place: Some(9), backup: None, restoring: false }];
        Record::Intent { id, at_s: 1, pid: 2, start_ticks: 3, boot_id: "b".into(), purpose, changes }
    }

    fn journal() -> (tempfile::TempDir, Journal) {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        journal.prepare_dir().unwrap();
        journal.make_appendable(&journal.read().unwrap()).unwrap();
        (dir, journal)
    }

    fn filled() -> (tempfile::TempDir, Journal) {
        let (dir, journal) = journal();
        let closed = Record::Closed { id: 1, index: 0, how: How::Restored, into: None };
        for record in [intent(1), Record::Applied { id: 1 }, intent(2), closed, Record::Applied { id: 2 }] {
            journal.append(&record).unwrap();
        }
        (dir, journal)
    }

    #[test]
    fn records_add_up_to_sets() {
        let (_dir, journal) = filled();
        let content = journal.read().unwrap();
        assert_eq!(content.ledger.sets.iter().map(|set| (set.id, set.applied)).collect::<Vec<_>>(), [(2, true)]);
        assert_eq!((content.ledger.next_id, content.corrupt_lines.len()), (3, 0));
        let meta = fs::metadata(journal.path()).unwrap();
        assert_eq!(meta.mode() & 0o777, 0o600);
        for line in fs::read_to_string(journal.path()).unwrap().lines() {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
        }
        journal.start_anew(content.ledger.next_id).unwrap();
        let anew = journal.read().unwrap();
        assert_eq!((anew.ledger.sets.len(), anew.ledger.next_id), (0, 3));
    }

    #[test]
    fn a_journal_torn_at_any_byte_is_read_up_to_there_and_can_be_appended_to() {
        let (_dir, journal) = filled();
        let whole = fs::read(journal.path()).unwrap();
        let head = whole.iter().position(|byte| *byte == b'\n').unwrap();
        for end in 0..whole.len() {
            fs::write(journal.path(), &whole[..end]).unwrap();
            let content = journal.read().unwrap();
            // A crash never leaves half a first line: the file appears with it.
            assert_eq!(content.corrupt_lines.is_empty(), end == 0 || end >= head, "cut at {end}");
            // Appending costs three syncs, so only every seventh cut is tried.
            if !content.corrupt_lines.is_empty() || end % 7 != 0 {
                continue;
            }
            journal.make_appendable(&content).unwrap();
            let before = content.ledger.sets.len();
            journal.append(&intent(77)).unwrap();
            let after = journal.read().unwrap();
            assert_eq!((after.ledger.sets.len(), after.corrupt_lines.len()), (before + 1, 0), "cut at {end}");
        }
    }

    #[test]
    fn a_flipped_bit_is_reported_or_has_no_effect() {
        let (_dir, journal) = filled();
        let whole = fs::read(journal.path()).unwrap();
        let good = journal.read().unwrap().ledger;
        // Only the loss of the last line feed looks like a torn line.
        for at in 0..whole.len() - 1 {
            for flip in [0x01, 0x20, 0x80] {
                let mut damaged = whole.clone();
                damaged[at] ^= flip;
                let (content, _) = parse(&damaged);
                assert!(!content.corrupt_lines.is_empty() || content.ledger == good, "byte {at} ^ {flip:#x}");
            }
        }
    }

    #[test]
    fn random_bytes_are_reported_as_damage() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        for length in 0..600 {
            let bytes: Vec<u8> = std::iter::repeat_with(|| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                seed as u8
            })
            .take(length)
            .collect();
            let (content, _) = parse(&bytes);
            assert!(content.ledger.sets.is_empty());
            assert!(length == 0 || !content.corrupt_lines.is_empty(), "{bytes:?}");
        }
        // Entries with the right checksum and an unknown set.
        for entry in [r#"{"record":"closed","id":9,"index":99,"how":"restored"}"#, r#"{"record":"applied","id":18446744073709551615}"#] {
            let line = format!("{{\"crc\":\"{:08x}\",\"entry\":{entry}}}\n", crc32fast::hash(entry.as_bytes()));
            let (content, version) = parse(line.as_bytes());
            assert!(content.ledger.sets.is_empty() && content.corrupt_lines.is_empty() && version.is_none());
        }
    }

    #[test]
    fn a_newer_journal_is_not_touched() {
        let (_dir, journal) = journal();
        let write = |entry: &str| {
            let line = format!("{{\"crc\":\"{:08x}\",\"entry\":{entry}}}\n", crc32fast::hash(entry.as_bytes()));
            fs::write(journal.path(), line).unwrap();
        };
        write(r#"{"record":"head","version":2,"next_id":1}"#);
        assert!(matches!(journal.read(), Err(RemedyError::VersionTooNew { found: 2, known: 1, .. })));
        write(r#"{"record":"unheard of"}"#);
        assert!(matches!(journal.read(), Err(RemedyError::VersionTooNew { .. })));
    }

    #[test]
    fn a_directory_in_which_others_can_write_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let (dir, journal) = filled();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(journal.prepare_dir(), Err(RemedyError::UnsafeDirectory { .. })));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(journal.path(), fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(journal.read(), Err(RemedyError::UnsafeDirectory { .. })));
        fs::remove_file(journal.path()).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", journal.path()).unwrap();
        assert!(journal.read().is_err(), "a link is not followed");
    }
}
