//! All files of one HAProxy configuration, in the order in which HAProxy reads them.

use super::error::LoadError;
use super::file::{self, Entry, File};
use crate::budget::Budget;
use crate::include::{FILE_COUNT_MAX, Resolve};
use crate::{Node, SourceLine, dump};

/// Words that begin a section of their own.
const SECTIONS: &[&str] = &[
    "acme",
    "backend",
    "cache",
    "crt-store",
    "defaults",
    "fcgi-app",
    "frontend",
    "global",
    "http-errors",
    "listen",
    "log-forward",
    "log-profile",
    "mailers",
    "namespace_list",
    "peers",
    "program",
    "resolvers",
    "ring",
    "traces",
    "userlist",
];

/// True for a line that begins a section.
pub(super) fn is_section(entry: &Entry) -> bool {
    SECTIONS.contains(&entry.word(0))
}

/// The index of the word "from" in a line that begins a section: the name of its `defaults` follows.
pub(super) fn from(entry: &Entry) -> Option<usize> {
    let least = if entry.word(0) == "defaults" { 1 } else { 2 };
    (least..entry.words.len()).find(|at| entry.word(*at) == "from")
}

/// A configuration: one file after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    files: Vec<File>,
    /// The rest of the memory budget, for the values in force.
    left: usize,
}

impl Tree {
    /// Reads the files, or all that match a pattern, in this order.
    ///
    /// # Errors
    /// A file that cannot be read, a line that HAProxy would refuse or this reader cannot evaluate, or more than it takes.
    pub fn load(mains: &[&str], resolve: &mut dyn Resolve) -> Result<Self, LoadError> {
        let mut budget = Budget::new();
        let mut files = Vec::new();
        for main in mains {
            let unreadable = |why: String| LoadError::Unreadable { path: (*main).to_owned(), why };
            let found = resolve.resolve(main, None);
            if found.is_empty() && !crate::glob::is_pattern(main) {
                return Err(unreadable("not found".to_owned()));
            }
            for (path, text) in found {
                if files.len() >= FILE_COUNT_MAX {
                    return Err(LoadError::TooMany { what: "files", limit: FILE_COUNT_MAX });
                }
                let text = text.map_err(|why| LoadError::Unreadable { path: path.clone(), why })?;
                files.push(file::parse_within(&path, &text, &mut budget)?);
            }
        }
        let tree = Self { files, left: budget.left() };
        let conditional = tree.nodes().find(|(_, entry)| entry.word(0).starts_with(".if")).map(|(node, _)| tree.place(node).to_string());
        match conditional {
            Some(place) => Err(LoadError::Conditional { place }),
            None => Ok(tree),
        }
    }

    /// Reads files that were joined in one text ([`dump::add`]), in their order.
    ///
    /// # Errors
    /// As of [`Tree::load`], or there is no file.
    pub fn from_dump(text: &str) -> Result<Self, LoadError> {
        let files = dump::sections(text);
        if files.is_empty() {
            let why = "the dump contains no file".to_owned();
            return Err(LoadError::Unreadable { path: "haproxy.cfg".to_owned(), why });
        }
        let mains: Vec<String> = (0..files.len()).map(|index| index.to_string()).collect();
        let mains: Vec<&str> = mains.iter().map(String::as_str).collect();
        Self::load(&mains, &mut |index: &str| {
            let found = index.parse().ok().and_then(|index: usize| files.get(index));
            found.map(|(path, text)| ((*path).to_owned(), Ok((*text).to_owned()))).into_iter().collect()
        })
    }

    /// The files in their order.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Every line in the order in which it takes effect.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (Node, &Entry)> {
        let of_file = |(file, parsed): (usize, &'_ File)| (0..parsed.entries().len()).map(move |entry| Node { file, entry });
        let nodes: Vec<Node> = self.files.iter().enumerate().flat_map(of_file).collect();
        nodes.into_iter().map(|node| (node, &self.files[node.file].entries()[node.entry]))
    }

    /// The file and line of an entry.
    ///
    /// # Panics
    /// If the node is of another tree.
    pub fn place(&self, node: Node) -> SourceLine {
        let file = &self.files[node.file];
        SourceLine { file: file.path.clone(), line: file.entries()[node.entry].line, node }
    }

    /// The bytes that the values in force may take.
    pub(super) fn left(&self) -> usize {
        self.left
    }
}
