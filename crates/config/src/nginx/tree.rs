//! All files of one configuration, with includes followed.

use std::collections::BTreeMap;

use thiserror::Error;

use super::parser::error::SyntaxError;
use super::parser::file::{self, Body, Directive, File};
use crate::budget::Budget;
use crate::include::{FILE_COUNT_MAX, Gap, Resolve, absolute, directory};
use crate::{Node, SourceLine, glob};

/// Includes within includes that are followed; nginx itself has no bound and crashes on a loop.
const INCLUDE_DEPTH_MAX: usize = 64;
/// Memory that an include takes besides the files it brings in or the gap it leaves.
const INCLUDE_BYTES: usize = 256;

/// Why a configuration could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// A file that nginx refuses.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The main file is missing or cannot be read.
    #[error("{path}: {why}")]
    Unreadable {
        /// Its path.
        path: String,
        /// Why.
        why: String,
    },
    /// A file includes itself, directly or through others; nginx itself would run until it crashes.
    #[error("these files include each other in a cycle: {chain}")]
    IncludeLoop {
        /// "a.conf:3 -> b.conf:1 -> a.conf".
        chain: String,
    },
    /// Includes are nested deeper than this reader follows.
    #[error("includes are nested more than {} deep: {chain}", INCLUDE_DEPTH_MAX)]
    IncludeDepth {
        /// The files on the way, in the same form.
        chain: String,
    },
    /// An `include` without exactly one argument.
    #[error("{file}:{line}: invalid number of arguments in \"include\"")]
    IncludeArguments {
        /// Path of the file.
        file: String,
        /// Line of the directive.
        line: u32,
    },
    /// The configuration would take too much memory; each file counts as often as it is included.
    #[error("the configuration and its includes have too many directives: parsed, they would take more than {} MiB", crate::PARSED_BYTES_MAX >> 20)]
    TooMuch,
    /// More items than this reader accepts.
    #[error("the configuration has more than {limit} {what}")]
    TooMany {
        /// "files".
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// A dump (`nginx -T`) without any file.
    #[error("this is not the output of nginx -T: it has no line \"# configuration file ...:\"")]
    NotADump,
}

/// A configuration: the main file first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    files: Vec<File>,
    /// Files that each include directive brings in.
    included: BTreeMap<Node, Vec<usize>>,
    /// Included files that do not exist or could not be read: nginx would refuse to start.
    pub gaps: Vec<Gap>,
}

impl Tree {
    /// Reads `main` and everything that it includes. Relative includes are relative to `prefix`; nginx takes the directory of its main file.
    pub fn load(main: &str, prefix: Option<&str>, resolve: &mut dyn Resolve) -> Result<Self, LoadError> {
        let prefix = prefix.unwrap_or_else(|| directory(main)).to_owned();
        let unreadable = |why: String| LoadError::Unreadable { path: main.to_owned(), why };
        let found = resolve.resolve(main, None).into_iter().next().ok_or_else(|| unreadable("not found".to_owned()))?;
        let text = found.1.map_err(unreadable)?;
        let mut loader = Loader {
            prefix,
            resolve,
            budget: Budget::new(),
            by_path: BTreeMap::new(),
            state: Vec::new(),
            tree: Self { files: Vec::new(), included: BTreeMap::new(), gaps: Vec::new() },
        };
        let main = loader.add(&found.0, &text)?;
        loader.follow(main, &mut Vec::new())?;
        Ok(loader.tree)
    }

    /// The files, the main one first, each once.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The directive at a node.
    ///
    /// # Panics
    /// If the node belongs to another tree.
    pub fn directive(&self, node: Node) -> &Directive {
        &self.files[node.file].directives[node.entry]
    }

    /// File and line of a directive.
    pub fn place(&self, node: Node) -> SourceLine {
        let file = &self.files[node.file];
        SourceLine { file: file.path.clone(), line: file.directives[node.entry].line(), node }
    }

    /// The directives outside of any block. An `include` is replaced by the directives of its files.
    pub fn top(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        self.expand(0, self.files.first().map_or(&[][..], File::top), &mut nodes);
        nodes
    }

    /// The directives in a directive's block, with includes replaced in the same way; empty for a directive without a block.
    pub fn children(&self, node: Node) -> Vec<Node> {
        let mut nodes = Vec::new();
        if let Body::Block(children) = &self.directive(node).body {
            self.expand(node.file, children, &mut nodes);
        }
        nodes
    }

    fn expand(&self, file: usize, entries: &[usize], nodes: &mut Vec<Node>) {
        for &entry in entries {
            let node = Node { file, entry };
            match self.included.get(&node) {
                Some(files) => files.iter().for_each(|&file| self.expand(file, &self.files[file].top, nodes)),
                None => nodes.push(node),
            }
        }
    }

    /// The files that an include directive brings in; empty for any other directive.
    pub(super) fn included(&self, node: Node) -> &[usize] {
        self.included.get(&node).map_or(&[], Vec::as_slice)
    }

    /// The include directives that bring in a file. If there are several, an edit of the file acts in several places.
    pub fn includers(&self, file: usize) -> Vec<SourceLine> {
        let including = self.included.iter().filter(|(_, files)| files.contains(&file));
        including.map(|(&node, _)| self.place(node)).collect()
    }

    /// The include directives through which an edit of this file acts more than once; empty if it acts once.
    pub fn sharers(&self, file: usize) -> Vec<SourceLine> {
        let includers = self.includers(file);
        match includers.len() {
            0 => Vec::new(),
            1 => self.sharers(includers[0].node.file),
            _ => includers,
        }
    }
}

/// How far the includes of a file have been followed.
#[derive(Clone, Copy)]
enum State {
    Parsed,
    /// On the path from the main file to the current one.
    Open,
    Done {
        /// Levels of includes below it.
        height: usize,
        /// Memory that its directives take in the configuration in force, with all includes; bytes.
        size: usize,
    },
}

struct Loader<'a> {
    prefix: String,
    resolve: &'a mut dyn Resolve,
    /// Memory that the whole configuration may still take.
    budget: Budget,
    by_path: BTreeMap<String, usize>,
    state: Vec<State>,
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
        let index = self.tree.files.len();
        self.tree.files.push(file::parse_within(path, text, &mut self.budget)?);
        self.state.push(State::Parsed);
        self.by_path.insert(path.to_owned(), index);
        Ok(index)
    }

    /// Follows the includes of a file; `chain` holds the include directives on the way to it. Returns its height and size.
    fn follow(&mut self, file: usize, chain: &mut Vec<Node>) -> Result<(usize, usize), LoadError> {
        match self.state[file] {
            State::Done { height, size } if chain.len() + height <= INCLUDE_DEPTH_MAX => return Ok((height, size)),
            State::Done { .. } => return Err(LoadError::IncludeDepth { chain: self.chain_text(chain, file) }),
            State::Open => return Err(LoadError::IncludeLoop { chain: self.chain_text(chain, file) }),
            State::Parsed if chain.len() > INCLUDE_DEPTH_MAX => {
                return Err(LoadError::IncludeDepth { chain: self.chain_text(chain, file) });
            }
            State::Parsed => self.state[file] = State::Open,
        }
        let (mut height, mut size) = (0, 0_usize);
        for entry in 0..self.tree.files[file].directives.len() {
            let node = Node { file, entry };
            let directive = self.tree.directive(node);
            size = size.saturating_add(directive.in_force_bytes());
            if directive.name() != "include" || directive.body != Body::Simple {
                continue;
            }
            let [pattern] = directive.args() else {
                let path = self.tree.files[file].path.to_string();
                return Err(LoadError::IncludeArguments { file: path, line: directive.line() });
            };
            let pattern = absolute(&self.prefix, &pattern.value);
            let files = self.find(&pattern, node)?;
            if !self.budget.take(INCLUDE_BYTES + pattern.len() + size_of_val(files.as_slice())) {
                return Err(LoadError::TooMuch);
            }
            self.tree.included.insert(node, files.clone());
            chain.push(node);
            for next in files {
                let (below, more) = self.follow(next, chain)?;
                height = height.max(below + 1);
                size = size.saturating_add(more);
            }
            chain.pop();
        }
        if size > self.budget.left() {
            return Err(LoadError::TooMuch);
        }
        self.state[file] = State::Done { height, size };
        Ok((height, size))
    }

    fn find(&mut self, pattern: &str, node: Node) -> Result<Vec<usize>, LoadError> {
        let gap = |tree: &Tree, path: &str, why: String| Gap { place: tree.place(node), path: path.to_owned(), why };
        let from = self.tree.files[node.file].path.to_string();
        let found = self.resolve.resolve(pattern, Some(&from));
        if found.is_empty() && !glob::is_pattern(pattern) {
            let missing = gap(&self.tree, pattern, "not found".to_owned());
            self.tree.gaps.push(missing);
        }
        let mut files = Vec::new();
        for (path, text) in found {
            match text {
                Ok(text) => files.push(self.add(&path, &text)?),
                Err(why) => {
                    let unreadable = gap(&self.tree, &path, why);
                    self.tree.gaps.push(unreadable);
                }
            }
        }
        Ok(files)
    }

    /// "a.conf:3 -> b.conf:1 -> a.conf".
    fn chain_text(&self, chain: &[Node], last: usize) -> String {
        let mut names: Vec<String> = chain.iter().map(|&node| self.tree.place(node).to_string()).collect();
        names.push(self.tree.files[last].path.to_string());
        names.join(" -> ")
    }
}
