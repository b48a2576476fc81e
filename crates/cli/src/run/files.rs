//! Files that the user asked for (`--html`, `--record`, `--csv`): written whole or not at all, for their owner alone. That they can
//! be written is known before anything is measured.

mod output_file;

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
use crate::report::html;
use crate::report::markdown;
use crate::terminal::output;
use output_file::{OutputFile, Refused};

/// What a new file may be: read and written by its owner. It tells of this host.
const MODE: u32 = 0o600;
/// Names that are tried for a file that is not whole yet.
const NAMES_MAX: u32 = 16;

/// A file that was asked for. It has no name, or one of its own, until all of it is written; what was there before stays until then.
#[derive(Debug)]
pub(crate) struct Output {
    what: &'static str,
    shown: PathBuf,
    output_file: OutputFile,
    out: File,
    /// Its name until it is whole; nothing where the file system makes files without one.
    part: Option<OsString>,
}

impl Output {
    /// Finds the place and begins the file there. The error says why it could not be written: to be asked before anything is measured.
    pub(crate) fn open(file: &Path, what: &'static str) -> Result<Self> {
        let cannot = || format!("the {what} {} cannot be written", file.display());
        let output_file = match OutputFile::of(file) {
            Ok(output_file) => output_file,
            Err(refused @ (Refused::Kind(_) | Refused::NoName)) => return Err(Usage(format!("{}: {refused}", cannot())).into()),
            Err(refused) => return Err(refused).with_context(cannot),
        };
        let (out, part) = match nameless(&output_file) {
            Some(out) => (out, None),
            None => named(&output_file).map(|(out, name)| (out, Some(name))).with_context(cannot)?,
        };
        Ok(Self { what, shown: file.to_owned(), output_file, out, part })
    }

    /// As [`Output::open`], where a file was asked for.
    pub(crate) fn open_where(file: Option<&Path>, what: &'static str) -> Result<Option<Self>> {
        file.map(|file| Self::open(file, what)).transpose()
    }

    /// The file as the user named it.
    pub(crate) fn shown(&self) -> String {
        self.shown.display().to_string()
    }

    /// Writes all of it, and puts it in its place.
    pub(crate) fn write(mut self, bytes: &[u8]) -> Result<()> {
        let cannot = format!("the {} {} cannot be written", self.what, self.shown.display());
        self.put(bytes).context(cannot)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        if self.ensure_name()? {
            self.out.write_all(bytes)?;
        }
        self.out.sync_all()?;
        self.output_file()
    }

    /// Gives a file without a name one of its own; true where that took another file, into which nothing is written yet: without /proc a file
    /// cannot be named later.
    fn ensure_name(&mut self) -> io::Result<bool> {
        if self.part.is_some() {
            return Ok(false);
        }
        let own = format!("/proc/self/fd/{}", self.out.as_raw_fd());
        let linked = first_free(|name| linkat(CWD, own.as_str(), &self.output_file.directory, name, AtFlags::SYMLINK_FOLLOW));
        if let Ok(((), name)) = linked {
            self.part = Some(name);
            return Ok(false);
        }
        let (out, name) = named(&self.output_file)?;
        (self.out, self.part) = (out, Some(name));
        Ok(true)
    }

    /// Puts the file, as far as it is written, where it was asked for.
    fn output_file(&mut self) -> io::Result<()> {
        let Some(part) = &self.part else { return Ok(()) };
        // One that was there may be for fewer, and stays so.
        let mode = self.output_file.mode.map_or(MODE, |mode| mode & MODE);
        fchmod(&self.out, Mode::from_raw_mode(mode))?;
        renameat(&self.output_file.directory, part, &self.output_file.directory, &self.output_file.name)?;
        self.part = None;
        // The file is there: that its directory cannot be opened to be synced is no failure.
        let again = openat(&self.output_file.directory, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        if let Ok(directory) = again {
            let _ = fsync(directory);
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = unlinkat(&self.output_file.directory, part, AtFlags::empty());
        }
    }
}

/// A file without a name (open(2), O_TMPFILE): nothing of it is left however the program ends. Not every file system makes them.
fn nameless(output_file: &OutputFile) -> Option<File> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    openat(&output_file.directory, ".", flags, Mode::from_raw_mode(MODE)).ok().map(File::from)
}

/// A file under a random name of its own, hidden, beside the one that was asked for.
fn named(output_file: &OutputFile) -> io::Result<(File, OsString)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (out, name) = first_free(|name| openat(&output_file.directory, name, flags, Mode::from_raw_mode(MODE)))?;
    Ok((File::from(out), name))
}

/// Tries random names until one is free.
fn first_free<T>(mut make: impl FnMut(&OsString) -> rustix::io::Result<T>) -> io::Result<(T, OsString)> {
    for _ in 0..NAMES_MAX {
        // The keys of a map's hasher are random (RandomState).
        let name = OsString::from(format!(".chokepoint-{:016x}.part", RandomState::new().build_hasher().finish()));
        match make(&name) {
            Err(Errno::EXIST) => {}
            made => return Ok((made?, name)),
        }
    }
    Err(Errno::EXIST.into())
}

/// The files that a diagnosis was asked for.
pub(crate) struct Diagnosed {
    /// `--record`.
    pub(crate) record: Option<Output>,
    /// The report in other forms.
    pub(crate) pages: Pages,
}

/// `--html` and `--markdown`, or why they cannot be written.
pub(crate) struct Pages {
    html: Result<Option<Output>>,
    markdown: Result<Option<Output>>,
}

impl Diagnosed {
    /// Begins every file that was asked for. An error where one cannot be written; a replay, which can be repeated, tells it behind its report.
    pub(crate) fn open(args: &Diagnose) -> Result<Self> {
        let open = |file: &Option<PathBuf>| Output::open_where(file.as_deref(), "report");
        let record = Output::open_where(args.record.as_deref(), "recording")?;
        let pages = Pages { html: open(&args.html), markdown: open(&args.markdown) };
        let pages = if args.replay.is_some() { pages } else { Pages { html: Ok(pages.html?), markdown: Ok(pages.markdown?) } };
        Ok(Self { record, pages })
    }
}

impl Pages {
    /// Writes each; one that fails does not keep the other from being written.
    pub(crate) fn write(self, report: &Diagnosis, words: &Catalogue) -> [Result<()>; 2] {
        let html = |file: Output| file.write(html::render(report, words)?.as_bytes());
        let markdown = |file: Output| file.write(markdown::render(report, words).as_bytes());
        [self.html.and_then(|file| file.map_or(Ok(()), html)), self.markdown.and_then(|file| file.map_or(Ok(()), markdown))]
    }
}

/// The first error; the others are told, for each is of another file.
pub(crate) fn first_error(results: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let mut first = Ok(());
    for error in results.into_iter().filter_map(Result::err) {
        match &first {
            Ok(()) => first = Err(error),
            Err(_) => output::note(&format!("chokepoint: {error:#}")),
        }
    }
    first
}

/// A capture that grows while packets come. With its first bytes it takes the place of what was there, and stays as far as it got where the
/// capture ends early.
pub(crate) struct Growing {
    output: Output,
    is_placed: bool,
}

impl Growing {
    /// Begins the file.
    pub(crate) fn open(file: &Path) -> Result<Self> {
        Ok(Self { output: Output::open(file, "capture")?, is_placed: false })
    }

    /// Writes more of it.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let shown = self.output.shown();
        self.grow(bytes).with_context(|| format!("the capture {shown} cannot be written any further"))
    }

    fn grow(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_placed {
            self.output.ensure_name()?;
            self.output.output_file()?;
            self.is_placed = true;
        }
        self.output.out.write_all(bytes)
    }
}

/// Makes the directory that files are to be written into, for its owner alone, and sees that they can be.
pub(crate) fn make_directory(directory: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.with_context(|| format!("{} cannot be made", directory.display()))?;
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
    fn a_file_is_made_and_replaced_for_its_owner_alone_and_nothing_else_is_left() {
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
    fn what_was_there_stays_until_the_new_file_is_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("report.html");
        fs::write(&file, "old").expect("a file");
        drop(Output::open(&file, "report").expect("it can be written"));
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "old");
        assert_eq!(names(directory.path()), ["report.html"]);
    }

    #[test]
    fn a_file_system_without_nameless_files_is_written_to_as_well() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("report.html");
        let begun = || {
            let output_file = OutputFile::of(&file).expect("it can be written");
            let (out, part) = named(&output_file).expect("it can be written");
            Output { what: "report", shown: file.clone(), output_file, out, part: Some(part) }
        };
        drop(begun());
        assert!(names(directory.path()).is_empty());
        begun().write(b"text").expect("it can be written");
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
    fn what_is_no_file_is_refused_in_words() {
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
    fn a_capture_takes_its_place_with_its_first_bytes_and_stays_as_far_as_it_got() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("a.pcapng");
        fs::write(&file, "old").expect("a file");
        let mut growing = Growing::open(&file).expect("it can be written");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "old");
        growing.append(b"one").expect("it can be written");
        growing.append(b" two").expect("it can be written");
        assert_eq!((fs::read_to_string(&file).expect("it is there").as_str(), mode(&file)), ("one two", 0o600));
        drop(growing);
        assert_eq!(names(directory.path()), ["a.pcapng"]);
    }
}
