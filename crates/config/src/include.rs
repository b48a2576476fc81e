//! How included files are read: this crate says which files it needs and bounds them; the caller finds and reads them.

/// The most bytes of one configuration file. The largest seen in the field (generated maps and block lists) have about 10 MB.
pub const FILE_BYTES_MAX: usize = 32 << 20;
/// The most files of one configuration.
pub const FILE_COUNT_MAX: usize = 16_384;

/// A file found for a pattern: its path, and its text or the reason why it could not be read.
pub type Resolved = (String, Result<String, String>);

/// Finds the files for an absolute path or glob(7) pattern, sorted by path bytes as glob(3) does in the C locale; empty if none matches.
///
/// Two paths of one file (a symbolic link in `sites-enabled`) count as two files. A caller gives the resolved path if an edit of a file
/// that is included twice must be refused.
pub trait Resolve {
    /// The files of `pattern`, which the file `from` includes; `from` is `None` for the main file. A pattern without a wildcard names one
    /// file: `Err` if it cannot be read, empty if it does not exist.
    fn resolve(&mut self, pattern: &str, from: Option<&str>) -> Vec<Resolved>;
}

/// For callers that do not need to know which file includes.
impl<F: FnMut(&str) -> Vec<Resolved>> Resolve for F {
    fn resolve(&mut self, pattern: &str, _: Option<&str>) -> Vec<Resolved> {
        self(pattern)
    }
}

/// An included file that is missing or could not be read. The server would refuse such a configuration. A reader without permission
/// continues with the files it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The line that includes it.
    pub place: crate::SourceLine,
    /// The requested path or pattern.
    pub path: String,
    /// Why it is missing.
    pub why: String,
}

/// The directory of a path; "/" if the path has none.
pub(crate) fn directory(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(index) => &path[..index],
    }
}

/// An absolute path: a relative one is resolved against the directory.
pub(crate) fn absolute(directory: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", directory.trim_end_matches('/')) }
}
