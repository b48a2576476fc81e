//! How included files come in: the caller finds and reads them, this crate says which ones are asked for and bounds them.

/// Bytes that one configuration file may have. The largest seen in the field (generated maps and block lists) have some 10 MB.
pub const FILE_BYTES_MAX: usize = 32 << 20;
/// Files that one configuration may have.
pub const FILE_COUNT_MAX: usize = 16_384;

/// A file found for a pattern: its path, and its text or why it could not be read.
pub type Resolved = (String, Result<String, String>);

/// Finds the files for an absolute path or glob(7) pattern, sorted by path bytes as glob(3) does in the C locale; nothing if none matches.
///
/// Two paths of one file (a symbolic link in `sites-enabled`) count as two files; callers that want edits of the link's target refused where it
/// is included twice give the resolved path.
pub trait Resolve {
    /// The files of `pattern`, which the file `from` includes; nothing for the main file. A pattern without a wildcard names one file: `Err` where it
    /// cannot be read, empty if it does not exist.
    fn resolve(&mut self, pattern: &str, from: Option<&str>) -> Vec<Resolved>;
}

/// For whom it makes no difference which file includes.
impl<F: FnMut(&str) -> Vec<Resolved>> Resolve for F {
    fn resolve(&mut self, pattern: &str, _: Option<&str>) -> Vec<Resolved> {
        self(pattern)
    }
}

/// An included file that is missing or could not be read. The server would refuse such a configuration; a reader without the right to read it
/// goes on with what there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The line that includes it.
    pub place: crate::SourceLine,
    /// The path or pattern asked for.
    pub path: String,
    /// Why it is missing.
    pub why: String,
}

/// The directory of a path, "/" for a path without one.
pub(crate) fn directory(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(index) => &path[..index],
    }
}

/// A path as seen from a directory.
pub(crate) fn absolute(directory: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", directory.trim_end_matches('/')) }
}
