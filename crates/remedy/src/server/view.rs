//! A server's configuration, read with the rights of its master's user and without blocking.

use chokepoint_config::{FILE_BYTES_MAX, Resolved, glob, text};
use chokepoint_foreign::{Files, Rights};

use super::file::real_path;
use super::master::{Master, place_of};

/// Most paths that a pattern may match.
const MATCHES_MAX: usize = 16_384;

/// Texts of files that are not written yet, by path with links resolved.
pub(super) type UnwrittenTexts<'a> = &'a [(String, String)];

/// The files of this host and the rights to read them with.
#[derive(Debug)]
pub(super) struct View {
    files: Files,
    rights: Rights,
    /// Files and patterns that the server reads behind the main file.
    also: Vec<String>,
}

/// The files and directories that a configuration was read from.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Requested files.
    pub(super) files: Vec<String>,
    /// Directories searched for a pattern.
    pub(super) directories: Vec<String>,
}

impl View {
    /// With the rights of the master, or of the main file's owner where there is no master.
    pub(super) fn of(master: Option<&Master>, main: &str) -> Result<Self, String> {
        let files = Files::of_directory("/".as_ref()).map_err(|error| format!("/: {error}"))?;
        let rights = match master {
            Some(master) => master.identity.rights(),
            None => {
                let owner = files.locate(place_of(main)).and_then(|file| file.metadata());
                Rights::of_owner(&owner.map_err(|error| format!("{main}: {error}"))?)
            }
        };
        Ok(Self { files, rights, also: master.map_or_else(Vec::new, |master| master.also().to_vec()) })
    }

    /// Files and patterns that the server reads behind the main file. None are known where it does not run.
    pub(super) fn also(&self) -> &[String] {
        &self.also
    }

    /// Runs `work` with these rights. The error is a clause.
    pub(super) fn run<T: Send>(&self, work: impl FnOnce(&Files) -> T + Send) -> Result<T, String> {
        self.rights.run(|| work(&self.files)).map_err(|error| format!("chokepoint cannot act as user {} ({error})", self.rights.uid()))
    }
}

/// Reads the files of a path or pattern, and notes them in `reading`.
pub(super) fn resolve(files: &Files, pattern: &str, unwritten: UnwrittenTexts<'_>, reading: &mut Reading) -> Vec<Resolved> {
    reading.directories.extend(searched(files, pattern));
    let paths = match files.matching(pattern, MATCHES_MAX) {
        Ok(paths) => paths,
        Err(error) => return vec![(pattern.to_owned(), Err(error.to_string()))],
    };
    let read = |path: String| {
        reading.files.push(path.clone());
        let real = real_path(&path);
        if let Some((_, text)) = unwritten.iter().find(|(path, _)| Some(path) == real.as_ref()) {
            return Some((path, Ok(text.clone())));
        }
        match files.read(&path, FILE_BYTES_MAX) {
            Ok((bytes, _)) => Some((path, Ok(text::decode(&bytes)))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => Some((path, Err(error.to_string()))),
        }
    };
    paths.into_iter().filter_map(read).collect()
}

/// The directories in which a pattern's wildcards are searched.
fn searched(files: &Files, pattern: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in pattern.match_indices('/') {
        let component = pattern[at + 1..].split('/').next().unwrap_or_default();
        if glob::is_pattern(component) {
            let before = if at == 0 { "/" } else { &pattern[..at] };
            found.extend(files.matching(before, MATCHES_MAX).unwrap_or_default());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn requested_files_and_searched_directories_are_noted() {
        let tree = tempfile::tempdir().unwrap();
        for directory in ["a", "b"] {
            fs::create_dir(tree.path().join(directory)).unwrap();
            fs::write(tree.path().join(directory).join("x.conf"), "x").unwrap();
        }
        let files = Files::of_directory(tree.path()).unwrap();
        let mut reading = Reading::default();
        assert_eq!(resolve(&files, "/*/*.conf", &[], &mut reading).len(), 2);
        assert_eq!(resolve(&files, "/a/x.conf", &[], &mut reading).len(), 1);
        assert_eq!(reading.files, ["/a/x.conf", "/b/x.conf", "/a/x.conf"]);
        assert_eq!(reading.directories, ["/", "/a", "/b"]);
    }
}
