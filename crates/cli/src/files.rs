//! Files that the user asked for (`--html`, `--markdown`, `--csv`, `--keep`): written whole or not at all.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::Diagnosis;

use crate::args::Diagnose;
use crate::{html, markdown};

/// Writes every file that was asked for. One that fails does not keep the others from being written; the first error is returned.
pub(crate) fn write_all(args: &Diagnose, report: &Diagnosis, words: &Catalogue) -> Result<()> {
    let html = args.html.as_deref().map(|file| html::render(report, words).and_then(|text| write(file, &text)));
    let markdown = args.markdown.as_deref().map(|file| write(file, &markdown::render(report, words)));
    html.unwrap_or(Ok(())).and(markdown.unwrap_or(Ok(())))
}

/// Writes a scenario that is to be kept.
pub(crate) fn write_scenario(file: &Path, text: &str) -> Result<()> {
    write_whole(file, text.as_bytes()).with_context(|| format!("the scenario {} cannot be written", file.display()))
}

/// Writes a page or a picture of connections.
pub(crate) fn write_page(file: &Path, text: &str) -> Result<()> {
    write_whole(file, text.as_bytes()).with_context(|| format!("the page {} cannot be written", file.display()))
}

/// A capture that grows while packets come. It is begun anew, and stays as far as it got where the capture ends early.
pub(crate) struct Growing {
    out: fs::File,
    name: PathBuf,
}

impl Growing {
    /// Makes the file, or empties it.
    pub(crate) fn open(file: &Path) -> Result<Self> {
        let out = fs::File::create(file).with_context(|| format!("the capture {} cannot be written", file.display()))?;
        Ok(Self { out, name: file.to_owned() })
    }

    /// Writes more of it.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).with_context(|| format!("the capture {} cannot be written any further", self.name.display()))
    }
}

/// Writes a picture or a list of stacks.
pub(crate) fn write_profile(file: &Path, bytes: &[u8]) -> Result<()> {
    write_whole(file, bytes).with_context(|| format!("the profile {} cannot be written", file.display()))
}

/// Writes what a load came to.
pub(crate) fn write_load(file: &Path, text: &str) -> Result<()> {
    write(file, text)
}

fn write(file: &Path, text: &str) -> Result<()> {
    write_whole(file, text.as_bytes()).with_context(|| format!("the report {} cannot be written", file.display()))
}

/// Puts the bytes beside the file and renames: a reader sees the old file or the new one. A pipe or a device is written to as it stands, and
/// behind a symbolic link it is the file that is replaced and not the link.
fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = match fs::metadata(file) {
        Ok(found) if found.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Ok(found) if !found.is_file() => return OpenOptions::new().write(true).open(file)?.write_all(bytes),
        Ok(_) => fs::canonicalize(file)?,
        Err(_) => file.to_owned(),
    };
    let partial = partial(&target)?;
    // A name of our own that nobody else may have put there: `create_new` follows no link.
    let mut out = OpenOptions::new().write(true).create_new(true).open(&partial)?;
    let written = out.write_all(bytes).and_then(|()| out.sync_all()).and_then(|()| fs::rename(&partial, &target));
    written.inspect_err(|_| drop(fs::remove_file(&partial)))
}

/// The name under which a file is written before it is whole: hidden, in the same directory, and this process's own.
fn partial(target: &Path) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.part", std::process::id()));
    Ok(target.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = (fs::read_dir(directory).expect("a directory"))
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_made_and_replaced_and_nothing_else_is_left() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("report.html");
        for text in ["a long first report", "second"] {
            write_whole(&file, text.as_bytes()).expect("it can be written");
            assert_eq!(fs::read_to_string(&file).expect("it is there"), text);
        }
        assert_eq!(names(directory.path()), ["report.html"]);
    }

    #[test]
    fn a_link_stays_a_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("real"), directory.path().join("link"));
        fs::write(&file, "old").expect("a file");
        std::os::unix::fs::symlink("real", &link).expect("a link");
        write_whole(&link, b"new").expect("it can be written");
        assert!(fs::symlink_metadata(&link).expect("the link").is_symlink());
        assert_eq!(fs::read_to_string(&file).expect("the file"), "new");
    }

    #[test]
    fn a_device_is_written_to_and_not_replaced() {
        write_whole(Path::new("/dev/null"), b"text").expect("it can be written");
        assert!(!fs::metadata("/dev/null").expect("it is there").is_file());
        assert!(write_whole(Path::new("/dev/full"), b"text").is_err());
    }

    #[test]
    fn what_cannot_be_written_is_an_error_and_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["no/such/directory", ".", "..", ""] {
            assert!(write_whole(&directory.path().join(name), b"text").is_err(), "{name}");
        }
        let error = format!("{:#}", write(&directory.path().join("no/report.md"), "text").expect_err("no such directory"));
        assert!(error.contains("report.md"), "{error}");
        assert!(names(directory.path()).is_empty());
    }
}
