//! The text files of the repository in memory. Every rule is a function of them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};

/// Directories without files of this project.
const SKIPPED: &[&str] = &["target", ".git", "node_modules", "dist"];
/// Files that the rules read, by extension or by name.
const EXTENSIONS: &[&str] = &["rs", "md", "toml", "sh", "ftl"];
const NAMES: &[&str] = &["Makefile", "run"];
/// The longest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The most files that are read.
const FILES_MAX: usize = 20_000;

/// Text by path relative to the workspace's root, with `/` between the parts.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads all files below `root` that rules read.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut tree = Self::default();
        let mut waiting = vec![String::new()];
        while let Some(directory) = waiting.pop() {
            let path = root.join(&directory);
            let entries = std::fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))?;
            for entry in entries {
                let entry = entry.with_context(|| format!("cannot list {}", path.display()))?;
                let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
                let relative = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
                let kind = entry.file_type()?;
                if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
                    waiting.push(relative);
                } else if kind.is_file() && is_read_by_rules(&name) {
                    tree.read_file(root, relative)?;
                }
            }
        }
        Ok(tree)
    }

    fn read_file(&mut self, root: &Path, relative: String) -> anyhow::Result<()> {
        let path = root.join(&relative);
        let size = std::fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?.len();
        if size > FILE_BYTES_MAX {
            bail!("{relative} is {size} bytes long; at most {FILE_BYTES_MAX} are read");
        }
        if self.files.len() >= FILES_MAX {
            bail!("more than {FILES_MAX} files below {}", root.display());
        }
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        self.files.insert(relative, String::from_utf8_lossy(&bytes).into_owned());
        Ok(())
    }

    /// All files whose path ends with `suffix`.
    pub(crate) fn ending(&self, suffix: &str) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter(move |(path, _)| path.ends_with(suffix)).map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The text of a file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// All files.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ending("")
    }

    /// A tree of the given paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect() }
    }
}

fn is_read_by_rules(name: &str) -> bool {
    NAMES.contains(&name) || name.rsplit_once('.').is_some_and(|(_, extension)| EXTENSIONS.contains(&extension))
}

/// The directory part of a path, without the slash.
pub(crate) fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// The path `relative`, resolved from `directory`. `None` if it leaves the tree.
pub(crate) fn join(directory: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_within_the_tree() {
        assert_eq!(join("docs/schema", "../privileges.md").as_deref(), Some("docs/privileges.md"));
        assert_eq!(join("", "./README.md").as_deref(), Some("README.md"));
        assert_eq!(join("docs", "../../etc/passwd"), None);
    }

    #[test]
    fn this_repository_is_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
        let tree = Tree::read(root).expect("the repository is readable");
        assert!(tree.text("xtask/src/tree.rs").is_some_and(|text| text.starts_with("//!")));
        assert!(tree.all().all(|(path, _)| !path.starts_with("target/")));
    }
}
