//! Output files of flags (`--html`, `--record`, `--csv`): written completely or not at all, and readable by their owner only. A file that cannot be
//! written is refused before anything is measured.

mod place;

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::Diagnosis;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fchmod, fsync, linkat, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::Usage;
use crate::args::Diagnose;
use crate::report::markdown;
use crate::report::page;
use crate::terminal::output;
use place::{FilePlace, PlaceError};

/// Mode of a new file: read and written by its owner only, because it describes this host.
const MODE: u32 = 0o600;
/// The most random names that are tried for a temporary file.
const NAMES_MAX: u32 = 16;

/// An output file. Until it is complete it has no name, or a temporary one; a file that it replaces stays until then.
#[derive(Debug)]
pub(crate) struct Output {
    what: &'static str,
    path: PathBuf,
    place: FilePlace,
    out: File,
    /// Its temporary name; nothing if the file system supports files without a name.
    temporary: Option<OsString>,
}

impl Output {
    /// Opens the directory and creates the file. The error says why it cannot be written; call this before anything is measured.
    pub(crate) fn open(file: &Path, what: &'static str) -> Result<Self> {
        let cannot = || format!("the {what} {} cannot be written", file.display());
        let place = match chokepoint_foreign::as_caller(|| FilePlace::of(file)).with_context(cannot)? {
            Ok(place) => place,
            Err(refused @ (PlaceError::Kind(_) | PlaceError::NoName)) => return Err(Usage(format!("{}: {refused}", cannot())).into()),
            Err(refused) => return Err(refused).with_context(cannot),
        };
        let (out, temporary) = match nameless(&place) {
            Some(out) => (out, None),
            None => named(&place).map(|(out, name)| (out, Some(name))).with_context(cannot)?,
        };
        Ok(Self { what, path: file.to_owned(), place, out, temporary })
    }

    /// [`Output::open`], if a file is given.
    pub(crate) fn open_where(file: Option<&Path>, what: &'static str) -> Result<Option<Self>> {
        file.map(|file| Self::open(file, what)).transpose()
    }

    /// The path as the user gave it.
    pub(crate) fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// Writes the whole file and gives it its name.
    pub(crate) fn write(mut self, bytes: &[u8]) -> Result<()> {
        let cannot = format!("the {} {} cannot be written", self.what, self.path.display());
        self.put(bytes).context(cannot)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        if self.ensure_name()? {
            self.out.write_all(bytes)?;
        }
        self.out.sync_all()?;
        self.rename_into_place()
    }

    /// Gives a file without a name a temporary one. True if this made another, empty file: without /proc a file cannot be linked later.
    fn ensure_name(&mut self) -> io::Result<bool> {
        if self.temporary.is_some() {
            return Ok(false);
        }
        let own = format!("/proc/self/fd/{}", self.out.as_raw_fd());
        let linked = first_free(|name| linkat(CWD, own.as_str(), &self.place.directory, name, AtFlags::SYMLINK_FOLLOW));
        if let Ok(((), name)) = linked {
            self.temporary = Some(name);
            return Ok(false);
        }
        let (out, name) = named(&self.place)?;
        (self.out, self.temporary) = (out, Some(name));
        Ok(true)
    }

    /// Renames the temporary file to its final name.
    fn rename_into_place(&mut self) -> io::Result<()> {
        let Some(temporary) = &self.temporary else { return Ok(()) };
        // The mode of a replaced file is kept if it permits less.
        let mode = self.place.mode.map_or(MODE, |mode| mode & MODE);
        fchmod(&self.out, Mode::from_raw_mode(mode))?;
        renameat(&self.place.directory, temporary, &self.place.directory, &self.place.name)?;
        self.temporary = None;
        // The file exists: a directory that cannot be opened for the sync is not a failure.
        let reopened = openat(&self.place.directory, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        if let Ok(directory) = reopened {
            let _ = fsync(directory);
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = unlinkat(&self.place.directory, temporary, AtFlags::empty());
        }
    }
}

/// A file without a name (open(2), O_TMPFILE), which vanishes however the program ends. Not every file system supports it.
fn nameless(place: &FilePlace) -> Option<File> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    openat(&place.directory, ".", flags, Mode::from_raw_mode(MODE)).ok().map(File::from)
}

/// A hidden file with a random name in the same directory.
fn named(place: &FilePlace) -> io::Result<(File, OsString)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (out, name) = first_free(|name| openat(&place.directory, name, flags, Mode::from_raw_mode(MODE)))?;
    Ok((File::from(out), name))
}

/// Tries random names until one is free.
fn first_free<T>(mut make: impl FnMut(&OsString) -> rustix::io::Result<T>) -> io::Result<(T, OsString)> {
    for _ in 0..NAMES_MAX {
        // `RandomState` has random keys.
        let name = OsString::from(format!(".chokepoint-{:016x}.part", RandomState::new().build_hasher().finish()));
        match make(&name) {
            Err(Errno::EXIST) => {}
            made => return Ok((made?, name)),
        }
    }
    Err(Errno::EXIST.into())
}

/// The output files of a diagnosis.
pub(crate) struct DiagnosisFiles {
    /// `--record`.
    pub(crate) record: Option<Output>,
    /// The report in other formats.
    pub(crate) pages: ReportPages,
}

/// `--html` and `--markdown`, or why they cannot be written.
pub(crate) struct ReportPages {
    html: Result<Option<Output>>,
    markdown: Result<Option<Output>>,
}

impl DiagnosisFiles {
    /// Creates every file. An error if one cannot be written; a replay can be repeated, so it prints its report before the error.
    pub(crate) fn open(args: &Diagnose) -> Result<Self> {
        let open = |file: &Option<PathBuf>| Output::open_where(file.as_deref(), "report");
        let record = Output::open_where(args.record.as_deref(), "recording")?;
        let pages = ReportPages { html: open(&args.html), markdown: open(&args.markdown) };
        let pages = if args.replay.is_some() { pages } else { ReportPages { html: Ok(pages.html?), markdown: Ok(pages.markdown?) } };
        Ok(Self { record, pages })
    }
}

impl ReportPages {
    /// Writes both; a failure of one does not prevent the other.
    pub(crate) fn write(self, report: &Diagnosis, words: &Catalogue) -> [Result<()>; 2] {
        let html = |file: Output| {
            let page = page::diagnosis::page(report, words);
            file.write(page::file::render(&page, Some(&serde_json::to_string(report)?), &markdown::render(report, words)).as_bytes())
        };
        let markdown = |file: Output| file.write(markdown::render(report, words).as_bytes());
        [self.html.and_then(|file| file.map_or(Ok(()), html)), self.markdown.and_then(|file| file.map_or(Ok(()), markdown))]
    }
}

/// The first error. The others are printed on stderr: each is about another file.
pub(crate) fn first_error(results: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let mut first = Ok(());
    for error in results.into_iter().filter_map(Result::err) {
        match &first {
            Ok(()) => first = Err(error),
            Err(_) => output::note(&format!("chokepoint: {}", output::once(&error))),
        }
    }
    first
}

/// A capture file that grows as packets arrive. Its first bytes replace an existing file, and it stays incomplete if the capture ends early.
pub(crate) struct GrowingFile {
    output: Output,
    is_in_place: bool,
}

impl GrowingFile {
    /// Creates the file.
    pub(crate) fn open(file: &Path) -> Result<Self> {
        Ok(Self { output: Output::open(file, "capture")?, is_in_place: false })
    }

    /// Appends bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let path = self.output.path();
        self.grow(bytes).with_context(|| format!("the capture {path} can no longer be written"))
    }

    fn grow(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_in_place {
            self.output.ensure_name()?;
            self.output.rename_into_place()?;
            self.is_in_place = true;
        }
        self.output.out.write_all(bytes)
    }
}

/// Makes a directory for output files, accessible by its owner only, and checks that files can be written there.
pub(crate) fn make_directory(directory: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.with_context(|| format!("{} cannot be created", directory.display()))?;
    Output::open(&directory.join("probe"), "directory").map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = (fs::read_dir(directory).expect("a directory"))
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn write(file: &Path, what: &'static str, bytes: &[u8]) -> Result<()> {
        Output::open(file, what)?.write(bytes)
    }

    fn mode(file: &Path) -> u32 {
        fs::metadata(file).expect("it is there").permissions().mode() & 0o7777
    }

    #[test]
    fn a_file_is_created_and_replaced_with_owner_only_mode_and_no_temporary_file_is_left() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("report.html");
        for text in ["a long first report", "second"] {
            write(&file, "report", text.as_bytes()).expect("it can be written");
            assert_eq!((fs::read_to_string(&file).expect("it is there").as_str(), mode(&file)), (text, 0o600));
        }
        for (before, after) in [(0o644, 0o600), (0o400, 0o400), (0o200, 0o200), (0o777, 0o600)] {
            fs::set_permissions(&file, PermissionsExt::from_mode(before)).expect("it is ours");
            write(&file, "report", b"third").expect("it can be written");
            assert_eq!(mode(&file), after, "{before:o}");
        }
        assert_eq!(names(directory.path()), ["report.html"]);
    }

    #[test]
    fn the_old_file_stays_until_the_new_one_is_complete() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("report.html");
        fs::write(&file, "old").expect("a file");
        drop(Output::open(&file, "report").expect("it can be written"));
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "old");
        assert_eq!(names(directory.path()), ["report.html"]);
    }

    #[test]
    fn a_file_can_be_written_without_support_for_nameless_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("report.html");
        let open_named = || {
            let place = FilePlace::of(&file).expect("it can be written");
            let (out, temporary) = named(&place).expect("it can be written");
            Output { what: "report", path: file.clone(), place, out, temporary: Some(temporary) }
        };
        drop(open_named());
        assert!(names(directory.path()).is_empty());
        open_named().write(b"text").expect("it can be written");
        assert_eq!((names(directory.path()), mode(&file)), (vec!["report.html".to_owned()], 0o600));
    }

    #[test]
    fn a_link_of_our_own_stays_a_link() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("deep")).expect("a directory");
        symlink("deep", directory.path().join("way")).expect("a link");
        symlink("../real", directory.path().join("deep/link")).expect("a link");
        fs::write(directory.path().join("real"), "old").expect("a file");
        write(&directory.path().join("way/link"), "report", b"new").expect("it can be written");
        assert!(fs::symlink_metadata(directory.path().join("deep/link")).expect("the link").is_symlink());
        assert_eq!(fs::read_to_string(directory.path().join("real")).expect("the file"), "new");
    }

    #[test]
    fn a_path_that_is_no_file_is_refused_with_the_reason() {
        let directory = tempfile::tempdir().expect("a directory");
        symlink("loop", directory.path().join("loop")).expect("a link");
        let inside = |name: &str| directory.path().join(name);
        for file in [PathBuf::from("/dev/null"), PathBuf::from("/dev/full"), inside("."), inside(".."), inside(""), PathBuf::new()] {
            let error = write(&file, "report", b"text").expect_err("it is no file");
            assert!(error.is::<Usage>(), "{}: {error:#}", file.display());
        }
        for name in ["no/such/directory", "loop", "loop/x"] {
            let error = write(&inside(name), "report", b"text").expect_err("there is no such place");
            assert!(!error.is::<Usage>() && format!("{error:#}").contains(name), "{error:#}");
        }
        assert!(!fs::metadata("/dev/null").expect("it is there").is_file());
        assert_eq!(names(directory.path()), ["loop"]);
    }

    #[test]
    fn a_capture_replaces_the_old_file_with_its_first_bytes_and_may_stay_incomplete() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("a.pcapng");
        fs::write(&file, "old").expect("a file");
        let mut growing = GrowingFile::open(&file).expect("it can be written");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "old");
        growing.append(b"one").expect("it can be written");
        growing.append(b" two").expect("it can be written");
        assert_eq!((fs::read_to_string(&file).expect("it is there").as_str(), mode(&file)), ("one two", 0o600));
        drop(growing);
        assert_eq!(names(directory.path()), ["a.pcapng"]);
    }
}
