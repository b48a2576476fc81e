//! The state of a log at the beginning of the observation, and the files with its new lines, even if it was renamed, truncated or replaced.

use std::collections::BTreeSet;
use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use chokepoint_foreign::{FileId, Files, open_link_if};
use serde::{Deserialize, Serialize};

use super::access::Access;
use super::logs::asked::OwnRequests;
use super::logs::written::{check, why_not_open};
use super::logs::{LineKind, LogFile};
use crate::root::Root;

/// Most descriptors of a master to search for a renamed log.
const FDS_MAX: usize = 4096;
/// Most files next to a log, with names that begin with its name, to search once the master has closed it.
const ROTATED_MAX: usize = 256;
/// Bytes before the mark that identify a file's content: lines of logs usually contain their time.
const TAIL_BYTES: u64 = 512;

/// The state of a log at the beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) path: String,
    pub(super) lines: LineKind,
    /// The access to it.
    pub(super) access: Access,
    /// Requests of this program whose lines it may have.
    pub(super) own: OwnRequests,
    /// The users who may have written it, besides root.
    writers: Vec<u32>,
    /// Why it is no evidence, whoever wrote it.
    pub(super) refused: Option<String>,
    /// The requests that it may have lines of.
    pub(super) of: BTreeSet<usize>,
    /// Nothing if it did not exist.
    file: Option<FileState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    /// Hash of the bytes before `size`.
    tail: u64,
}

impl FileState {
    /// The state of a file up to an offset.
    fn at(file: &mut File, size: u64) -> io::Result<Self> {
        let about = file.metadata()?;
        Ok(Self { device: about.dev(), inode: about.ino(), size, tail: tail(file, size)? })
    }

    fn is_file(&self, about: &std::fs::Metadata) -> bool {
        about.is_file() && (about.dev(), about.ino()) == (self.device, self.inode)
    }

    /// True if a file still begins with the content at the mark. A truncated file that has grown past the mark does not, nor does another file with a reused
    /// inode number.
    fn goes_on_in(&self, file: &mut File) -> io::Result<bool> {
        Ok(file.metadata()?.size() >= self.size && tail(file, self.size)? == self.tail)
    }
}

fn tail(file: &mut File, size: u64) -> io::Result<u64> {
    let from = size.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(size - from).read_to_end(&mut bytes)?;
    // The keys of this hasher are fixed, so hashes from both ends of the observation are comparable.
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(&bytes);
    Ok(hasher.finish())
}

/// Opens a log with the rights of those who name it, and of the users who own a directory or link on the way: they could lead the path to a file that only
/// root may read.
pub(super) fn open(access: &Access, files: &Files, path: &Path) -> io::Result<File> {
    let file = access.open(files, path)?;
    let (found, leaders) = files.led(path)?;
    let narrowed = access.narrowed(leaders);
    let theirs = if narrowed == *access { file } else { narrowed.open(files, path).map_err(|error| refused(error, &narrowed))? };
    if FileId::of(&theirs.metadata()?) != FileId::of(&found.metadata()?) {
        return Err(io::Error::other("it was replaced while it was opened"));
    }
    Ok(theirs)
}

/// A refusal that names the users: no privilege of this program would change it.
fn refused(error: io::Error, narrowed: &Access) -> io::Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => io::Error::other(format!("permission denied{}", narrowed.remark())),
        _ => error,
    }
}

/// The files to read, each with the offset to begin at.
pub(super) struct Pieces {
    pub(super) files: Vec<(File, u64)>,
    /// The log was replaced or truncated, and lines may be lost.
    pub(super) rotated: bool,
}

impl Mark {
    pub(super) fn of(master: (&Root, u32), files: &Files, path: String, log: LogFile, access: Access, writers: Vec<u32>) -> Self {
        let (root, pid) = (master.0.clone(), master.1);
        let (named, own) = (path.clone(), OwnRequests::from_now(Some(pid), log.pools));
        let mut mark = Self { path, lines: log.lines, access: access.clone(), own, writers, refused: None, of: log.of, file: None };
        let unread = mark.clone();
        let state = move |files: &Files, _: &Access| {
            let mut file = unread.open(files)?;
            let size = file.metadata()?.size();
            Ok::<_, io::Error>((FileState::at(&mut file, size)?, why_not_open(&root, pid, &file)))
        };
        match access.within_budget(files, &named, state).and_then(|state| state) {
            Ok((state, refused)) => (mark.file, mark.refused) = (Some(state), refused),
            // It stays so: of a log that is evidence later it is not known what is new.
            Err(error) if error.kind() == io::ErrorKind::Other => mark.refused = Some(error.to_string()),
            Err(_) => {}
        }
        mark
    }

    /// Opens the log that is at its path now, if it is evidence.
    fn open(&self, files: &Files) -> io::Result<File> {
        let path = Path::new(&self.path);
        let file = open(&self.access, files, path)?;
        check(files, path, &file, &self.writers)?;
        Ok(file)
    }

    /// Takes whose it is and who may write it from a later mark. It stays at its place.
    pub(super) fn look_again(&mut self, later: Self) {
        (self.access, self.writers, self.of) = (later.access, later.writers, later.of);
    }

    /// Moves the mark to an offset of the file that was read last.
    pub(super) fn move_to(&mut self, file: &mut File, offset: u64) -> io::Result<()> {
        self.file = Some(FileState::at(file, offset)?);
        Ok(())
    }

    /// The files with the log's new lines: the log itself; or the old file, if it is still open or next to the log, and the new one.
    pub(super) fn pieces(&self, root: &Root, pid: u32, files: &Files) -> io::Result<Pieces> {
        if let Some(why) = &self.refused {
            return Err(io::Error::other(why.clone()));
        }
        let opened = self.open(files);
        let Some(state) = self.file else { return Ok(Pieces { files: vec![(opened?, 0)], rotated: false }) };
        let now = match opened {
            Ok(mut file) if state.is_file(&file.metadata()?) => {
                // After a truncation the lines in between are lost.
                let goes_on = state.goes_on_in(&mut file)?;
                return Ok(Pieces { files: vec![(file, if goes_on { state.size } else { 0 })], rotated: !goes_on });
            }
            Ok(file) => Some(file),
            // It was renamed, and the server writes to the renamed file until it reopens its logs.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let old = self.renamed(root, pid, files, state);
        if old.is_none() && now.is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let rotated = old.is_none();
        let files = old.map(|old| (old, state.size)).into_iter().chain(now.map(|now| (now, 0)));
        Ok(Pieces { files: files.collect(), rotated })
    }

    /// The old file of a renamed log.
    fn renamed(&self, root: &Root, pid: u32, files: &Files, state: FileState) -> Option<File> {
        let goes_on = |file: &mut File| state.goes_on_in(file).is_ok_and(|goes_on| goes_on);
        let directory = format!("proc/{pid}/fd");
        let (names, _) = root.names(&directory, FDS_MAX, None).unwrap_or_default();
        let paths = names.into_iter().map(|name| root.path(&directory).join(name));
        // The same file was opened with these rights before, wherever it is now.
        let mut open = paths.filter_map(|path| open_link_if(&path, |about| state.is_file(about)).ok());
        if let Some(file) = open.find_map(|mut file| goes_on(&mut file).then_some(file)) {
            return Some(file);
        }
        let (directory, name) = self.path.rsplit_once('/')?;
        let beside = files.names(if directory.is_empty() { "/" } else { directory }).ok()?;
        let rotated = beside.into_iter().filter(|other| other.starts_with(name)).take(ROTATED_MAX);
        let mut opened = rotated.filter_map(|other| self.access.open(files, format!("{directory}/{other}")).ok());
        opened.find_map(|mut file| (state.is_file(&file.metadata().ok()?) && goes_on(&mut file)).then_some(file))
    }
}
