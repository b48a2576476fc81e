//! A log as it was when the observation began, and the files that hold what it gained since, renamed, cut or replaced meanwhile.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use chokepoint_foreign::{Files, open_link_if};
use serde::{Deserialize, Serialize};

use super::access::Access;
use super::logs::Lines;
use crate::root::Root;

/// Descriptors of a master among which a log that was renamed is looked for.
const FDS_MAX: usize = 4096;
/// Files beside a log that begin with its name, among which it is looked for when the master has it open no more.
const ROTATED_MAX: usize = 256;
/// Bytes before the mark by which it is seen that a file is still the one it was: a line of a log has its time in it, as a rule.
const TAIL_BYTES: u64 = 512;

/// A log as it was at first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) path: String,
    pub(super) lines: Lines,
    /// With whose rights it is read.
    pub(super) access: Access,
    /// Nothing where it was not there.
    was: Option<Was>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Was {
    device: u64,
    inode: u64,
    size: u64,
    /// Hash of the bytes before `size`.
    tail: u64,
}

impl Was {
    fn of(file: &mut File) -> io::Result<Self> {
        let about = file.metadata()?;
        Ok(Self { device: about.dev(), inode: about.ino(), size: about.size(), tail: tail(file, about.size())? })
    }

    fn is_file(&self, about: &std::fs::Metadata) -> bool {
        about.is_file() && (about.dev(), about.ino()) == (self.device, self.inode)
    }

    /// Whether a file still begins with what it held then: one that was cut and has grown past the mark since does not, nor does another one
    /// that was given the number of one that is gone.
    fn goes_on_in(&self, file: &mut File) -> io::Result<bool> {
        Ok(file.metadata()?.size() >= self.size && tail(file, self.size)? == self.tail)
    }
}

fn tail(file: &mut File, size: u64) -> io::Result<u64> {
    let from = size.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(size - from).read_to_end(&mut bytes)?;
    // The keys of this hasher are fixed, so that it says the same at both ends.
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(&bytes);
    Ok(hasher.finish())
}

/// The files to read, each with the place to begin at.
pub(super) struct Pieces {
    pub(super) files: Vec<(File, u64)>,
    /// The log was replaced or cut, and lines may be lost.
    pub(super) rotated: bool,
}

impl Mark {
    pub(super) fn of(files: &Files, path: String, lines: Lines, access: Access) -> Self {
        let was = access.open(files, &path).and_then(|mut file| Was::of(&mut file)).ok();
        Self { path, lines, access, was }
    }

    /// What the log gained since: in itself; in the file that it was, as long as that is open still or lies beside it; and in the new one.
    pub(super) fn pieces(&self, root: &Root, pid: u32, files: &Files) -> io::Result<Pieces> {
        let opened = self.access.open(files, &self.path);
        let Some(was) = self.was else { return Ok(Pieces { files: vec![(opened?, 0)], rotated: false }) };
        let now = match opened {
            Ok(mut file) if was.is_file(&file.metadata()?) => {
                // Cut: what was there between is gone.
                let goes_on = was.goes_on_in(&mut file)?;
                return Ok(Pieces { files: vec![(file, if goes_on { was.size } else { 0 })], rotated: !goes_on });
            }
            Ok(file) => Some(file),
            // Renamed, and the server writes on into the renamed one until it is told to open its logs again.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let old = self.renamed(root, pid, files, was);
        if old.is_none() && now.is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let rotated = old.is_none();
        let files = old.map(|old| (old, was.size)).into_iter().chain(now.map(|now| (now, 0)));
        Ok(Pieces { files: files.collect(), rotated })
    }

    /// The old file of a log that was renamed.
    fn renamed(&self, root: &Root, pid: u32, files: &Files, was: Was) -> Option<File> {
        let goes_on = |file: &mut File| was.goes_on_in(file).is_ok_and(|goes_on| goes_on);
        let directory = format!("proc/{pid}/fd");
        let (names, _) = root.names(&directory, FDS_MAX, None).unwrap_or_default();
        let paths = names.into_iter().map(|name| root.path(&directory).join(name));
        // The file that was opened before with these rights, wherever it lies now.
        let mut open = paths.filter_map(|path| open_link_if(&path, |about| was.is_file(about)).ok());
        if let Some(file) = open.find_map(|mut file| goes_on(&mut file).then_some(file)) {
            return Some(file);
        }
        let (directory, name) = self.path.rsplit_once('/')?;
        let beside = files.names(if directory.is_empty() { "/" } else { directory }).ok()?;
        let rotated = beside.into_iter().filter(|other| other.starts_with(name)).take(ROTATED_MAX);
        let mut opened = rotated.filter_map(|other| self.access.open(files, &format!("{directory}/{other}")).ok());
        opened.find_map(|mut file| (was.is_file(&file.metadata().ok()?) && goes_on(&mut file)).then_some(file))
    }
}
