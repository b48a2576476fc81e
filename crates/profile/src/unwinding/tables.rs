//! The unwind tables of program files (`.eh_frame`, and the table to search it with), and limits on the memory they take. Whoever runs a program controls
//! what its file claims to contain.

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use object::read::{ReadCache, ReadCacheOps, ReadRef};

/// Maximum bytes of the unwind tables of all files together: a quarter of this program's memory limit (256 MB, docs/fuzzing.md), enough for a few hundred
/// programs and libraries. Search tables that the unwinder builds for files files_without_tables one count as well.
const ALL_BYTES_MAX: u64 = 64 << 20;
/// Maximum bytes of debugging information read from one file. They are freed before the next file.
const DEBUG_BYTES_MAX: u64 = 48 << 20;
/// Maximum bytes of the tables of one file; the largest browsers have about 20 MB.
pub(crate) const FILE_BYTES_MAX: u64 = 32 << 20;
/// Maximum bytes of headers read from all files together; a file usually has less than 10 kB.
const HEADERS_ALL_MAX: u64 = 256 << 20;
/// Maximum bytes of the headers of one file.
pub(crate) const HEADERS_MAX: u64 = 1 << 20;
/// Maximum number of files that the note names.
const NAMED_MAX: usize = 4;

/// The most bytes that a profile holds of other programs' files, and of what it makes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryLimit {
    /// Of the unwind tables of all files, while stacks are walked.
    pub(crate) tables: u64,
    /// Of the debugging information of one file, while names are read.
    pub(crate) debug: u64,
}

impl Default for MemoryLimit {
    fn default() -> Self {
        Self { tables: ALL_BYTES_MAX, debug: DEBUG_BYTES_MAX }
    }
}

impl MemoryLimit {
    /// Within this many bytes in all. Search tables stay while names are read: an eighth of the tables; what is made of debugging information takes about as much
    /// as it does. So the two times each have about the half and a quarter.
    pub(crate) fn within(bytes: u64) -> Self {
        let most = Self::default();
        Self { tables: most.tables.min(bytes / 2), debug: most.debug.min(bytes / 4) }
    }
}

/// The bytes of a program. Its file stays open, since it may be deleted meanwhile.
#[derive(Debug)]
pub(crate) enum Bytes {
    File(File),
    Memory(Vec<u8>),
}

/// A section: its bytes and address range.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) range: Range<u64>,
    pub(crate) bytes: Arc<[u8]>,
}

/// Where a section lies in its file, and its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SectionRange {
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) address: u64,
}

impl SectionRange {
    /// Reads the section's bytes; none if the file does not contain them.
    pub(crate) fn read(self, bytes: &Bytes) -> Option<Section> {
        let range = self.address..self.address.checked_add(self.size)?;
        let end = self.offset.checked_add(self.size)?;
        let length = usize::try_from(self.size).ok()?;
        let bytes = match bytes {
            Bytes::File(file) => {
                file.metadata().ok().filter(|meta| end <= meta.len())?;
                // Allocated at its final size and filled in place, so the bytes are held only once.
                let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, length).collect();
                std::os::unix::fs::FileExt::read_exact_at(file, Arc::get_mut(&mut bytes)?, self.offset).ok()?;
                bytes
            }
            Bytes::Memory(bytes) => bytes.get(usize::try_from(self.offset).ok()?..usize::try_from(end).ok()?)?.into(),
        };
        Some(Section { range, bytes })
    }
}

/// The memory that is left for the files of one profile.
#[derive(Debug)]
pub(crate) struct Room {
    /// Of the tables of all files, and what is left of it.
    tables_max: u64,
    tables: u64,
    headers: u64,
    /// Bytes of tables that there was no room for.
    left_out: u64,
    /// Number of files without an unwind table for lack of room, and the names of the first ones.
    files_without_tables: usize,
    named: Vec<String>,
}

impl Default for Room {
    fn default() -> Self {
        Self::within(MemoryLimit::default())
    }
}

impl Room {
    pub(crate) fn within(limit: MemoryLimit) -> Self {
        let MemoryLimit { tables, .. } = limit;
        Self { tables_max: tables, tables, headers: HEADERS_ALL_MAX, left_out: 0, files_without_tables: 0, named: Vec::new() }
    }

    /// The allowance for the headers of one more file.
    pub(crate) fn headers(&self) -> Allowance {
        Allowance::new(self.headers.min(HEADERS_MAX))
    }

    /// Subtracts what was read of a file's headers. If some had to be skipped, the note says so.
    pub(crate) fn spend_headers(&mut self, path: &str, allowance: &Allowance) {
        self.headers = self.headers.saturating_sub(allowance.taken.get());
        if allowance.refused.get() {
            self.add_to_note(path);
        }
    }

    /// Reserves bytes for a file's tables. False if there is no room for them; the note then says so.
    pub(crate) fn take(&mut self, path: &str, bytes: u64) -> bool {
        let fits = bytes <= self.tables.min(FILE_BYTES_MAX);
        if fits {
            self.tables -= bytes;
        } else {
            self.left_out = self.left_out.saturating_add(bytes);
            self.add_to_note(path);
        }
        fits
    }

    fn add_to_note(&mut self, path: &str) {
        let name = path.rsplit('/').next().unwrap_or(path);
        if !self.named.iter().any(|known| known == name) {
            self.files_without_tables += 1;
            if self.named.len() < NAMED_MAX {
                self.named.push(name.chars().take(64).collect());
            }
        }
    }

    /// Which files have no unwind table for lack of room, in a sentence.
    pub(crate) fn note(&self) -> Option<String> {
        (self.files_without_tables > 0).then(|| {
            format!(
                "stacks through {}{} are unwound by frame pointers only, {} of unwind tables are left out: those of one file may take at most {}, and those of all files {}",
                self.named.join(", "),
                if self.files_without_tables > self.named.len() { " and others" } else { "" },
                mib(self.left_out),
                mib(FILE_BYTES_MAX.min(self.tables_max)),
                mib(self.tables_max)
            )
        })
    }
}

/// A size for readers.
pub(crate) fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)).replace(".0 ", " ")
}

/// Bytes that may be read from a file while it is parsed. They are held until the parsing ends.
#[derive(Debug)]
pub(crate) struct Allowance {
    most: u64,
    taken: Cell<u64>,
    refused: Cell<bool>,
}

impl Allowance {
    pub(crate) fn new(most: u64) -> Self {
        Self { most, taken: Cell::new(0), refused: Cell::new(false) }
    }

    fn take(&self, bytes: u64) -> Result<(), ()> {
        let taken = self.taken.get().saturating_add(bytes);
        if taken > self.most {
            self.refused.set(true);
            return Err(());
        }
        self.taken.set(taken);
        Ok(())
    }
}

/// A file to parse, of which only the allowance may be read.
#[derive(Debug)]
pub(crate) struct Bounded<'data, R: ReadCacheOps> {
    pub(crate) cache: &'data ReadCache<R>,
    pub(crate) allowance: &'data Allowance,
}

impl<R: ReadCacheOps> Clone for Bounded<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: ReadCacheOps> Copy for Bounded<'_, R> {}

impl<'data, R: ReadCacheOps> ReadRef<'data> for Bounded<'data, R> {
    fn len(self) -> Result<u64, ()> {
        self.cache.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'data [u8], ()> {
        // Reads beyond the end of the file fail and use no allowance.
        if offset.checked_add(size).is_none_or(|end| self.cache.len().is_ok_and(|length| end > length)) {
            return Err(());
        }
        self.allowance.take(size)?;
        self.cache.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'data [u8], ()> {
        /// Bytes that the cache holds for a string beside its text.
        const ENTRY: u64 = 64;
        self.allowance.take(ENTRY)?;
        let found = self.cache.read_bytes_at_until(range, delimiter);
        self.allowance.take(found.map_or(ENTRY, |bytes| bytes.len() as u64))?;
        found
    }
}
