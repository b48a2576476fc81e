//! An access log whose file is named by the user: that of a container, which its engine writes, or any other.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chokepoint_config::log_format::COMBINED;
use chokepoint_foreign::{FileId, Files, as_caller};
use serde::Deserialize;

use super::LineKind;
use super::asked::OwnRequests;
use crate::servers::access::Access;
use crate::servers::counter::{LogCounter, LogGrowth};
use crate::servers::mark;
use crate::servers::tail::BYTES_MAX;

/// The stream of a program on which an access log is written.
const STREAM: &str = "stdout";

/// A log that is followed by its path, through rotation and truncation.
pub struct NamedLog {
    path: PathBuf,
    is_named_by_root: bool,
    counter: LogCounter,
    own: OwnRequests,
    /// The open file, and up to where it was read.
    open: Option<(File, u64)>,
    /// Why it could not be opened at first.
    why_not: Option<String>,
}

/// A line as Docker's json-file driver writes it.
#[derive(Deserialize)]
struct DockerLine<'a> {
    #[serde(borrow)]
    log: Cow<'a, str>,
    #[serde(borrow)]
    stream: Cow<'a, str>,
}

impl NamedLog {
    /// Follows a log of this nginx format, by default `combined`, from its end on. `escape`: "default", "json" or "none". `is_named_by_root`: only root can
    /// change what names it.
    ///
    /// # Errors
    /// The format cannot be compiled.
    pub fn new(path: &Path, is_named_by_root: bool, format: Option<&str>, escape: &str) -> Result<Self, String> {
        let counter = LogCounter::new(&LineKind::Access(vec![(format.unwrap_or(COMBINED).to_owned(), escape.to_owned())]))?;
        let mut log = Self {
            path: path.to_owned(),
            is_named_by_root,
            counter,
            own: OwnRequests::from_now(None, Vec::new()),
            open: None,
            why_not: None,
        };
        match open(path, is_named_by_root) {
            Ok(mut file) => {
                let end = file.seek(SeekFrom::End(0)).unwrap_or(0);
                log.open = Some((file, end));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => log.why_not = Some(error.to_string()),
        }
        Ok(log)
    }

    /// Why it could not be opened at first, if it was there.
    pub fn why_not(&self) -> Option<&str> {
        self.why_not.as_deref()
    }

    /// What the log gained since the last call. A line that is not complete is read again. If the file was replaced, the rest of the old one is read first.
    ///
    /// # Errors
    /// It cannot be read. A file that is not there yet has gained nothing.
    pub fn read(&mut self) -> io::Result<LogGrowth> {
        if let Some((mut file, from)) = self.open.take() {
            let end = self.read_from(&mut file, from)?;
            self.open = Some((file, end));
        }
        let newest = match open(&self.path, self.is_named_by_root) {
            Ok(newest) => newest,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(self.counter.take()),
            Err(error) => return Err(error),
        };
        let id = |file: &File| file.metadata().map(|metadata| (metadata.dev(), metadata.ino()));
        let is_same = match &self.open {
            Some((file, _)) => id(file)? == id(&newest)?,
            None => false,
        };
        if !is_same {
            self.counter.extent.rotated |= self.open.is_some();
            let mut file = newest;
            let end = self.read_from(&mut file, 0)?;
            self.open = Some((file, end));
        }
        Ok(self.counter.take())
    }

    /// Counts the lines from a place on, and returns where the next one begins.
    fn read_from(&mut self, file: &mut File, from: u64) -> io::Result<u64> {
        // It was truncated: what is in it now is new.
        let from = if file.metadata()?.len() < from { 0 } else { from };
        self.counter.expect(self.own.lines());
        let next = self.counter.read(file, from, BYTES_MAX, logged)?;
        self.own.note(self.counter.expected());
        Ok(next)
    }
}

/// Opens a log, a regular file, with the rights of those who can choose what is opened: of whoever names it, without the capabilities that this program was
/// given beyond them, and of the users who own a directory or link on the way, who could lead the path to a file that only root may read.
fn open(path: &Path, is_named_by_root: bool) -> io::Result<File> {
    let (files, path) = (Files::of_directory(Path::new("/"))?, std::path::absolute(path)?);
    if is_named_by_root && !rustix::process::geteuid().is_root() {
        // Root's word and way, and this program's capabilities.
        let (file, (found, leaders)) = (files.open(&path)?, files.led(&path)?);
        if leaders.is_empty() && FileId::of(&file.metadata()?) == FileId::of(&found.metadata()?) {
            return Ok(file);
        }
    }
    as_caller(|| mark::open(&Access::default(), &files, &path))?
}

/// What the server wrote: the line itself, or what a container engine wrapped. `None` for what it wrote to another stream.
fn logged(line: &[u8]) -> Option<Cow<'_, [u8]>> {
    if line.starts_with(b"{\"log\":") {
        let DockerLine { log, stream } = serde_json::from_slice(line).ok()?;
        return (stream == STREAM).then(|| match log {
            Cow::Borrowed(log) => Cow::Borrowed(log.trim_end_matches('\n').as_bytes()),
            Cow::Owned(log) => Cow::Owned(log.trim_end_matches('\n').as_bytes().to_vec()),
        });
    }
    // The log format of the Container Runtime Interface: a time, the stream, F for a whole line or P for a part of one, and the line.
    let mut words = line.splitn(4, |byte| *byte == b' ');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(time), Some(stream @ (b"stdout" | b"stderr")), Some(b"F" | b"P"), Some(rest)) if time.contains(&b'T') => {
            (stream == STREAM.as_bytes()).then_some(Cow::Borrowed(rest))
        }
        _ => Some(Cow::Borrowed(line)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_of_container_engines_are_unwrapped() {
        let of = |line: &str| logged(line.as_bytes()).map(|line| String::from_utf8(line.into_owned()).unwrap());
        for (line, written) in [
            (r#"{"log":"GET \"x\" 200\n","stream":"stdout","time":"2026-11-20T07:17:47.1Z"}"#, Some(r#"GET "x" 200"#)),
            (r#"{"log":"plain\n","stream":"stdout","attrs":{"a":"b"},"time":"t"}"#, Some("plain")),
            (r#"{"log":"an error\n","stream":"stderr","time":"t"}"#, None),
            (r#"{"log":broken"#, None),
            ("2026-11-20T07:17:47.123456789Z stdout F GET x 200", Some("GET x 200")),
            ("2026-11-20T07:17:47.123456789+01:00 stderr F an error", None),
            ("10.0.0.1 - - GET x", Some("10.0.0.1 - - GET x")),
            (r#"{"status":200}"#, Some(r#"{"status":200}"#)),
        ] {
            assert_eq!(of(line).as_deref(), written, "{line}");
        }
    }

    #[test]
    fn a_named_log_is_followed_through_rotation_and_truncation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("access.log");
        let append = |text: &str| {
            std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
        };
        append("200 0.1\n");
        let mut log = NamedLog::new(&path, false, Some("$status $request_time"), "default").unwrap();
        let mut gained = || {
            let growth = log.read().unwrap();
            (growth.status.values().sum::<u64>(), growth.misfits)
        };
        assert_eq!(gained(), (0, 0), "what was there before is not new");
        append("200 0.1\n502 0.2\n200 0.");
        assert_eq!(gained(), (2, 0));
        append("3\n");
        assert_eq!(gained(), (1, 0), "a line that was not complete");
        append("200 0.1\n");
        std::fs::rename(&path, dir.path().join("access.log.1")).unwrap();
        assert_eq!(gained(), (1, 0), "the rest of the old file");
        append("200 0.1\nx\n");
        assert_eq!(gained(), (1, 1), "the new file");
        std::fs::File::create(&path).unwrap();
        assert_eq!(gained(), (0, 0));
        append("200 0.1\n");
        assert_eq!(gained(), (1, 0), "after it was truncated");
        assert!(NamedLog::new(&path, false, Some("$"), "default").is_err());
    }

    #[test]
    fn a_log_is_read_with_the_rights_of_those_who_lead_to_it() {
        use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root gives files away");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("roots.log"), "").unwrap();
        std::fs::set_permissions(at("roots.log"), std::fs::Permissions::from_mode(0o600)).unwrap();
        symlink("roots.log", at("of-root")).unwrap();
        symlink("roots.log", at("of-another")).unwrap();
        lchown(at("of-another"), Some(4001), None).unwrap();
        std::fs::create_dir(at("others")).unwrap();
        std::fs::write(at("others/own.log"), "").unwrap();
        for path in ["others", "others/own.log"] {
            chown(at(path), Some(4001), None).unwrap();
        }
        let why = |name: &str| NamedLog::new(&at(name), true, None, "default").unwrap().why_not().map(str::to_owned);
        assert_eq!([why("roots.log"), why("of-root"), why("others/own.log"), why("none")], [None, None, None, None]);
        assert!(why("of-another").is_some_and(|why| why.contains("user 4001")), "its owner could not read it");
        assert_eq!(why("others").as_deref(), Some("it is not a regular file"));
        for name in ["roots.log", "of-another"] {
            let mut file = std::fs::OpenOptions::new().append(true).open(at("roots.log")).unwrap();
            let mut log = NamedLog::new(&at(name), true, Some("$status"), "default").unwrap();
            file.write_all(b"200\n").unwrap();
            assert_eq!(log.read().map_or(0, |growth| growth.status.values().sum::<u64>()), u64::from(name == "roots.log"), "{name}");
        }
    }
}
