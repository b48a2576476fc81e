//! An access log whose file is named by the user: that of a container, which its engine writes, or any other.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chokepoint_config::log_format::COMBINED;
use serde::Deserialize;

use super::LineKind;
use crate::root::open_path;
use crate::servers::counter::{LogCounter, LogGrowth};
use crate::servers::tail::BYTES_MAX;

/// The stream of a program on which an access log is written.
const STREAM: &str = "stdout";

/// A log that is followed by its path, through rotation and truncation.
pub struct NamedLog {
    path: PathBuf,
    counter: LogCounter,
    /// The open file, and up to where it was read.
    open: Option<(File, u64)>,
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
    /// Follows a log of this nginx format, by default `combined`, from its end on. `escape`: "default", "json" or "none".
    ///
    /// # Errors
    /// The format cannot be compiled.
    pub fn new(path: &Path, format: Option<&str>, escape: &str) -> Result<Self, String> {
        let counter = LogCounter::new(&LineKind::Access(vec![(format.unwrap_or(COMBINED).to_owned(), escape.to_owned())]), true)?;
        let mut log = Self { path: path.to_owned(), counter, open: None };
        if let Ok(mut file) = open_path(path) {
            let end = file.seek(SeekFrom::End(0)).unwrap_or(0);
            log.open = Some((file, end));
        }
        Ok(log)
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
        let newest = match open_path(&self.path) {
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
        self.counter.read(file, from, BYTES_MAX, logged)
    }
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
        let mut log = NamedLog::new(&path, Some("$status $request_time"), "default").unwrap();
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
        assert!(NamedLog::new(&path, Some("$"), "default").is_err());
    }
}
