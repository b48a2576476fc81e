//! All files of one PostgreSQL configuration, and the order in which their lines take effect.

use super::error::{INCLUDE_DEPTH_MAX, LoadError};
use super::file::{self, Entry, File};
use crate::budget::Budget;
use crate::include::{FILE_COUNT_MAX, Gap, Resolve, absolute, directory};
use crate::{Node, SourceLine, dump};

/// A configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    files: Vec<File>,
    order: Vec<Node>,
    /// Included files that could not be read.
    pub gaps: Vec<Gap>,
}

impl Tree {
    /// Reads `main` with what it includes, and then `also`, those of the files that exist: what ALTER SYSTEM wrote.
    ///
    /// # Errors
    /// The main file cannot be read, a line that PostgreSQL would refuse, or more than this reader takes.
    pub fn load(main: &str, also: &[String], resolve: &mut dyn Resolve) -> Result<Self, LoadError> {
        let tree = Self { files: Vec::new(), order: Vec::new(), gaps: Vec::new() };
        let mut loader = Loader { resolve, budget: Budget::new(), tree };
        let unreadable = |why: String| LoadError::Unreadable { path: main.to_owned(), why };
        let found = loader.resolve.resolve(main, None).into_iter().next().ok_or_else(|| unreadable("not found".to_owned()))?;
        loader.follow(&found.0, &found.1.map_err(unreadable)?, 0)?;
        for path in also {
            for (path, text) in loader.resolve.resolve(path, None) {
                let unreadable = |why: String| LoadError::Unreadable { path: path.clone(), why };
                loader.follow(&path, &text.map_err(unreadable)?, 0)?;
            }
        }
        Ok(loader.tree)
    }

    /// Reads files that were joined in one text ([`dump::add`]), the main one first; `also` as for [`Tree::load`].
    ///
    /// # Errors
    /// As of [`Tree::load`], or there is no file.
    pub fn from_dump(text: &str, also: &[String]) -> Result<Self, LoadError> {
        let files = dump::sections(text);
        let why = "the dump contains no file".to_owned();
        let main = files.first().ok_or(LoadError::Unreadable { path: "postgresql.conf".to_owned(), why })?.0;
        Self::load(main, also, &mut |pattern: &str| dump::resolve(&files, pattern))
    }

    /// The files in the order in which they were read.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The last line that sets this, as PostgreSQL reads them.
    pub(super) fn last(&self, name: &str) -> Option<(&Entry, SourceLine)> {
        let is_it = |node: &&Node| self.entry(**node).name == name;
        self.order.iter().rfind(is_it).map(|node| (self.entry(*node), self.place(*node)))
    }

    fn entry(&self, node: Node) -> &Entry {
        &self.files[node.file].entries()[node.entry]
    }

    fn place(&self, node: Node) -> SourceLine {
        SourceLine { file: self.files[node.file].path.clone(), line: self.entry(node).line, node }
    }
}

struct Loader<'a> {
    resolve: &'a mut dyn Resolve,
    budget: Budget,
    tree: Tree,
}

impl Loader<'_> {
    fn follow(&mut self, path: &str, text: &str, depth: usize) -> Result<(), LoadError> {
        if depth > INCLUDE_DEPTH_MAX {
            return Err(LoadError::IncludeDepth { file: path.to_owned() });
        }
        if self.tree.files.len() >= FILE_COUNT_MAX {
            return Err(LoadError::TooMany);
        }
        let file = self.tree.files.len();
        self.tree.files.push(file::parse_within(path, text, &mut self.budget)?);
        for entry in 0..self.tree.files[file].entries().len() {
            let node = Node { file, entry };
            let Entry { name, value, .. } = self.tree.entry(node);
            let wanted = absolute(directory(path), value);
            match name.as_str() {
                "include" | "include_if_exists" => {
                    let is_needed = name == "include";
                    self.include(&wanted, path, (node, is_needed), depth)?;
                }
                // All files there whose names end so and do not begin with a dot, in the order of their names.
                "include_dir" => self.include(&format!("{}/*.conf", wanted.trim_end_matches('/')), path, (node, false), depth)?,
                _ => self.tree.order.push(node),
            }
        }
        Ok(())
    }

    fn include(&mut self, wanted: &str, from: &str, (node, is_needed): (Node, bool), depth: usize) -> Result<(), LoadError> {
        let found = self.resolve.resolve(wanted, Some(from));
        if found.is_empty() && is_needed {
            let gap = Gap { place: self.tree.place(node), path: wanted.to_owned(), why: "not found".to_owned() };
            self.tree.gaps.push(gap);
        }
        for (path, text) in found {
            match text {
                Ok(text) => self.follow(&path, &text, depth + 1)?,
                Err(why) => self.tree.gaps.push(Gap { place: self.tree.place(node), path, why }),
            }
        }
        Ok(())
    }
}
