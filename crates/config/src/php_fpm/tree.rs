//! All files of one php-fpm configuration, and the order in which their lines take effect.

use std::collections::BTreeMap;

use super::error::{INCLUDE_DEPTH_MAX, LoadError};
use super::file::{self, Entry, File, Kind};
use crate::budget::Budget;
use crate::include::{FILE_COUNT_MAX, Gap, Resolve, absolute};
use crate::{Node, SourceLine, dump};

/// Memory of an include besides its characters.
const INCLUDE_BYTES: usize = 256;
/// The prefix of Debian's build. Relative paths are resolved against it (`php-fpm -p` changes it).
const PREFIX: &str = "/usr";

/// A configuration: the main file first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    files: Vec<File>,
    /// Every line in php-fpm's order. An `include` line is replaced by the lines of its files.
    order: Vec<Node>,
    includes: BTreeMap<usize, Vec<Node>>,
    /// Included files that could not be read: php-fpm would refuse to start.
    pub gaps: Vec<Gap>,
}

impl Tree {
    /// Reads `main` and everything it includes. Relative paths are relative to `prefix`, or to "/usr" if none is given.
    pub fn load(main: &str, prefix: Option<&str>, resolve: &mut dyn Resolve) -> Result<Self, LoadError> {
        let unreadable = |why: String| LoadError::Unreadable { path: main.to_owned(), why };
        let found = resolve.resolve(main, None).into_iter().next().ok_or_else(|| unreadable("not found".to_owned()))?;
        let text = found.1.map_err(unreadable)?;
        let tree = Self { files: Vec::new(), order: Vec::new(), includes: BTreeMap::new(), gaps: Vec::new() };
        let mut loader =
            Loader { prefix: prefix.unwrap_or(PREFIX), resolve, budget: Budget::new(), pool: 0, by_path: BTreeMap::new(), tree };
        let main = loader.add(&found.0, &text)?;
        loader.follow(main, &mut Vec::new())?;
        Ok(loader.tree)
    }

    /// Reads files that were joined as `nginx -T` joins them ([`dump::add`]), the main one first.
    pub fn from_dump(text: &str, prefix: Option<&str>) -> Result<Self, LoadError> {
        let files = dump::sections(text);
        let why = "the dump contains no file".to_owned();
        let main = files.first().ok_or(LoadError::Unreadable { path: "php-fpm.conf".to_owned(), why })?.0;
        Self::load(main, prefix, &mut |pattern: &str| dump::resolve(&files, pattern))
    }

    /// The files, the main one first, each once.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Every line in the order in which it takes effect.
    pub fn order(&self) -> &[Node] {
        &self.order
    }

    /// The line at a node of this tree.
    ///
    /// # Panics
    /// If the node is of another tree.
    pub fn entry(&self, node: Node) -> &Entry {
        &self.files[node.file].entries()[node.entry]
    }

    /// The file and line of an entry.
    pub fn place(&self, node: Node) -> SourceLine {
        SourceLine { file: self.files[node.file].path.clone(), line: self.entry(node).line, node }
    }

    /// The include lines that include a file.
    pub fn includers(&self, file: usize) -> Vec<SourceLine> {
        self.includes.get(&file).into_iter().flatten().map(|&node| self.place(node)).collect()
    }
}

struct Loader<'a> {
    prefix: &'a str,
    resolve: &'a mut dyn Resolve,
    /// The remaining memory budget of the whole configuration.
    budget: Budget,
    /// Length of the name of the section that the next line belongs to.
    pool: usize,
    by_path: BTreeMap<String, usize>,
    tree: Tree,
}

impl Loader<'_> {
    fn add(&mut self, path: &str, text: &str) -> Result<usize, LoadError> {
        if let Some(&index) = self.by_path.get(path) {
            return Ok(index);
        }
        if self.tree.files.len() >= FILE_COUNT_MAX {
            return Err(LoadError::TooMany { what: "files", limit: FILE_COUNT_MAX });
        }
        self.tree.files.push(file::parse_within(path, text, &mut self.budget)?);
        self.by_path.insert(path.to_owned(), self.tree.files.len() - 1);
        Ok(self.tree.files.len() - 1)
    }

    fn follow(&mut self, file: usize, chain: &mut Vec<Node>) -> Result<(), LoadError> {
        if chain.len() >= INCLUDE_DEPTH_MAX {
            let mut names: Vec<String> = chain.iter().map(|&node| self.tree.place(node).to_string()).collect();
            names.push(self.tree.files[file].path.to_string());
            return Err(LoadError::IncludeDepth { chain: names.join(" -> ") });
        }
        for entry in 0..self.tree.files[file].entries().len() {
            let node = Node { file, entry };
            let pattern = match &self.tree.entry(node).kind {
                Kind::Set { key, index: None, value, .. } if key == "include" => absolute(self.prefix, value),
                _ => {
                    if let Kind::Section(name) = &self.tree.entry(node).kind {
                        self.pool = name.len();
                    }
                    if !self.budget.take(self.tree.entry(node).in_force_bytes(self.pool)) {
                        return Err(LoadError::TooMuch);
                    }
                    self.tree.order.push(node);
                    continue;
                }
            };
            chain.push(node);
            let files = self.find(&pattern, node)?;
            if !self.budget.take(INCLUDE_BYTES + pattern.len() + files.len() * size_of::<Node>()) {
                return Err(LoadError::TooMuch);
            }
            for next in files {
                let known = self.tree.includes.entry(next).or_default();
                if !known.contains(&node) {
                    known.push(node);
                }
                self.follow(next, chain)?;
            }
            chain.pop();
        }
        Ok(())
    }

    /// For php-fpm a pattern without a match is only a warning.
    fn find(&mut self, pattern: &str, node: Node) -> Result<Vec<usize>, LoadError> {
        let mut files = Vec::new();
        let from = self.tree.files[node.file].path.to_string();
        for (path, text) in self.resolve.resolve(pattern, Some(&from)) {
            match text {
                Ok(text) => files.push(self.add(&path, &text)?),
                Err(why) => {
                    let place = self.tree.place(node);
                    self.tree.gaps.push(Gap { place, path, why });
                }
            }
        }
        Ok(files)
    }
}
