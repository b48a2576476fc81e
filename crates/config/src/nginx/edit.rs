//! Edits of a configuration: each names a directive and changes only its bytes.

pub(crate) mod address;
pub(crate) mod debug_log;
pub(crate) mod reuse;
pub(crate) mod sessions;

use std::collections::BTreeMap;

use thiserror::Error;

use super::parser::error::SyntaxError;
use super::parser::file::{self, Body, Directive, File};
use super::parser::quote::quoted;
use super::tree::Tree;
use crate::edit::{Replacement, indentation, is_first_on_line, line_end, line_ending, line_start, removal};
use crate::{Edited, Node};

/// Why an edit was not made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EditError {
    /// The file is included in several places, and the edit would change all of them.
    #[error("{path} is included in several places, so an edit would apply to all of them: {}", includes.join(", "))]
    SharedFile {
        /// Path of the file.
        path: String,
        /// "a.conf:3", one for each include.
        includes: Vec<String>,
    },
    /// The directive lacks what the edit is to change.
    #[error("{file}:{line}: \"{name}\" {why}")]
    Unfit {
        /// Path of the file.
        file: String,
        /// Line of the directive.
        line: u32,
        /// Its name.
        name: String,
        /// What it lacks.
        why: &'static str,
    },
    /// An upstream of that name already exists with another content.
    #[error("an upstream \"{0}\" exists already")]
    Exists(String),
    /// Two edits change the same bytes.
    #[error("two edits change the same text in {0}")]
    Overlap(String),
    /// The file would not parse afterwards: the value contains what cannot be quoted.
    #[error("the edit would break the file: {0}")]
    Broken(#[from] SyntaxError),
}

/// Where a new directive goes in its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// At the end of the block.
    End,
    /// Before the first directive of the block.
    Start,
    /// After this directive.
    After(Node),
    /// Before this directive.
    Before(Node),
}

/// Collects edits of one tree. A method changes nothing if the configuration already has the wanted form, so that edits can be repeated.
#[derive(Debug, Clone)]
pub struct Editor<'t> {
    tree: &'t Tree,
    replacements: BTreeMap<usize, Vec<Replacement>>,
    shared_allowed: bool,
}

impl<'t> Editor<'t> {
    /// No edits yet.
    pub fn new(tree: &'t Tree) -> Self {
        Self { tree, replacements: BTreeMap::new(), shared_allowed: false }
    }

    /// Allows edits of files that are included in several places.
    pub fn allow_shared(mut self) -> Self {
        self.shared_allowed = true;
        self
    }

    /// File and directive of a node, if the file may be edited.
    fn editable(&self, node: Node) -> Result<(&'t File, &'t Directive), EditError> {
        let file = &self.tree.files()[node.file];
        let includes = self.tree.sharers(node.file);
        if !self.shared_allowed && !includes.is_empty() {
            let includes = includes.iter().map(ToString::to_string).collect();
            return Err(EditError::SharedFile { path: file.path.to_string(), includes });
        }
        Ok((file, self.tree.directive(node)))
    }

    pub(super) fn unfit(&self, node: Node, why: &'static str) -> EditError {
        let place = self.tree.place(node);
        EditError::Unfit { file: place.file.to_string(), line: place.line, name: self.tree.directive(node).name().to_owned(), why }
    }

    fn replace(&mut self, node: Node, span: std::ops::Range<usize>, text: String) {
        let list = self.replacements.entry(node.file).or_default();
        let replacement = Replacement { span, text };
        if !list.contains(&replacement) {
            list.push(replacement);
        }
    }

    /// Sets one argument in place, counted from 0.
    pub fn set_argument(&mut self, node: Node, index: usize, value: &str) -> Result<(), EditError> {
        let (_, directive) = self.editable(node)?;
        let word = directive.args().get(index).ok_or_else(|| self.unfit(node, "has no such argument"))?;
        if word.value != value {
            self.replace(node, word.span.clone(), quoted(value));
        }
        Ok(())
    }

    /// Sets all arguments of a simple directive; unchanged ones keep their form.
    pub fn set_arguments(&mut self, node: Node, values: &[&str]) -> Result<(), EditError> {
        let (_, directive) = self.editable(node)?;
        if directive.values() == values {
            return Ok(());
        }
        if directive.args().len() == values.len() {
            return values.iter().enumerate().try_for_each(|(index, value)| self.set_argument(node, index, value));
        }
        let name_end = directive.words().first().map_or(directive.span.start, |word| word.span.end);
        let last_end = directive.words().last().map_or(name_end, |word| word.span.end);
        let text = values.iter().map(|value| format!(" {}", quoted(value))).collect();
        self.replace(node, name_end..last_end, text);
        Ok(())
    }

    /// Sets a `name=value` option of a directive (`backlog=8192` of a `listen`, `max_conns=` of an upstream's `server`): in place if it has the
    /// option, otherwise after its last argument.
    pub fn set_option(&mut self, node: Node, name: &str, value: &str) -> Result<(), EditError> {
        let wanted = format!("{name}={value}");
        self.put_option(node, |word| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')), &wanted)
    }

    /// Adds a flag to a directive (`reuseport`) unless it has it.
    pub fn set_flag(&mut self, node: Node, flag: &str) -> Result<(), EditError> {
        self.put_option(node, |word| word == flag, flag)
    }

    fn put_option(&mut self, node: Node, is_it: impl Fn(&str) -> bool, wanted: &str) -> Result<(), EditError> {
        let (_, directive) = self.editable(node)?;
        if directive.args().is_empty() {
            return Err(self.unfit(node, "has no arguments"));
        }
        let options = directive.args().get(1..).unwrap_or_default();
        match options.iter().find(|word| is_it(&word.value)) {
            Some(word) if word.value == wanted => {}
            Some(word) => self.replace(node, word.span.clone(), quoted(wanted)),
            None => {
                let end = directive.words().last().map_or(directive.end, |word| word.span.end);
                self.replace(node, end..end, format!(" {}", quoted(wanted)));
            }
        }
        Ok(())
    }

    /// Removes an option or flag by the part before its `=`, with the white space before it.
    pub fn remove_option(&mut self, node: Node, name: &str) -> Result<(), EditError> {
        let (file, directive) = self.editable(node)?;
        for word in directive.args().iter().skip(1).filter(|word| word.value.split('=').next() == Some(name)) {
            let start = file.text()[..word.span.start].trim_end_matches([' ', '\t', '\r', '\n']).len();
            self.replace(node, start..word.span.end, String::new());
        }
        Ok(())
    }

    /// Removes a directive with its block, and its whole line if nothing else is on it.
    pub fn remove(&mut self, node: Node) -> Result<(), EditError> {
        let (file, directive) = self.editable(node)?;
        self.replace(node, removal(file.text(), directive.span.clone()), String::new());
        Ok(())
    }

    /// Sets a simple directive of a block to these arguments: in place if the block has it, otherwise added at `position`. `block` is `None` for the
    /// main context. For directives that may occur several times, use [`Editor::add`].
    pub fn set(&mut self, block: Option<Node>, name: &str, values: &[&str], position: Position) -> Result<(), EditError> {
        let nodes = block.map_or_else(|| self.tree.top(), |block| self.tree.children(block));
        match nodes.into_iter().find(|&node| self.tree.directive(node).name() == name) {
            Some(node) => self.set_arguments(node, values),
            None => self.add(block, name, values, position),
        }
    }

    /// Adds a simple directive to a block unless the block has the same one.
    pub fn add(&mut self, block: Option<Node>, name: &str, values: &[&str], position: Position) -> Result<(), EditError> {
        let nodes = block.map_or_else(|| self.tree.top(), |block| self.tree.children(block));
        let is_it = |directive: &Directive| directive.name() == name && directive.values() == values;
        if nodes.iter().any(|&node| is_it(self.tree.directive(node))) {
            return Ok(());
        }
        let line: String = std::iter::once(quoted(name)).chain(values.iter().map(|value| format!(" {}", quoted(value)))).collect();
        self.insert(block, &[format!("{line};")], position)
    }

    /// Adds an `upstream` with these lines ("server 127.0.0.1:9000;", "keepalive 16;") to the http block `http`: after its last upstream, else before
    /// its first server, if these are in the same file; else at its end.
    pub fn add_upstream(&mut self, http: Node, name: &str, lines: &[&str]) -> Result<(), EditError> {
        for node in self.tree.children(http) {
            let directive = self.tree.directive(node);
            if directive.name() != "upstream" || directive.args().first().map(|word| word.value.as_str()) != Some(name) {
                continue;
            }
            let present: Vec<Vec<String>> = self.tree.children(node).iter().map(|&child| words_of(self.tree.directive(child))).collect();
            let wanted = file::parse("upstream", &lines.join("\n"))?;
            let wanted: Vec<Vec<String>> = wanted.directives().iter().map(words_of).collect();
            return if present == wanted { Ok(()) } else { Err(EditError::Exists(name.to_owned())) };
        }
        let (file, _) = self.editable(http)?;
        let block = upstream_block(file, name, lines.iter().map(|line| (*line).to_owned()));
        let own: Vec<Node> = self.tree.children(http).into_iter().filter(|node| node.file == http.file).collect();
        let is_it = |node: &&Node, name: &str| self.tree.directive(**node).name() == name;
        let last_upstream = own.iter().rev().find(|node| is_it(node, "upstream")).copied();
        let first_server = own.iter().find(|node| is_it(node, "server")).copied();
        let position = match (last_upstream, first_server) {
            (Some(upstream), _) => Position::After(upstream),
            (None, Some(server)) => Position::Before(server),
            (None, None) => Position::End,
        };
        self.insert(Some(http), &block, position)
    }

    /// Adds an `upstream` with these directives of one argument before a `server` of the http block, in the same file. The name must be free.
    pub(super) fn add_upstream_before(&mut self, server: Node, name: &str, lines: &[(&str, &str)]) -> Result<(), EditError> {
        let (file, _) = self.editable(server)?;
        let lines = lines.iter().map(|(directive, value)| format!("{directive} {};", quoted(value)));
        let block = upstream_block(file, name, lines);
        self.insert_before(server, &block)
    }

    /// True if a directive is directly in a block, or in a file that the block includes.
    pub(super) fn is_in(&self, node: Node, block: Node) -> bool {
        self.tree.children(block).contains(&node)
    }

    /// Inserts lines into a block, with its indentation and line endings.
    fn insert(&mut self, block: Option<Node>, lines: &[String], position: Position) -> Result<(), EditError> {
        let node = match (position, block) {
            (Position::After(sibling), _) => return self.insert_after(sibling, lines),
            (Position::Before(sibling), _) => return self.insert_before(sibling, lines),
            (_, Some(block)) => block,
            (_, None) => return self.insert_at_top(lines),
        };
        let (file, directive) = self.editable(node)?;
        let Body::Block(children) = &directive.body else { return Err(self.unfit(node, "has no block")) };
        let text = file.text();
        let close = directive.span.end - 1;
        if let (Position::Start, Some(&first)) = (position, children.first()) {
            return self.insert_before(Node { file: node.file, entry: first }, lines);
        }
        if line_end(text, directive.end) > close {
            // A block on one line stays on one line.
            let padded = text[..close].ends_with([' ', '\t']);
            let end = text[..close].trim_end_matches([' ', '\t']).len();
            let more: String = lines.iter().map(|line| format!(" {}", line.trim())).collect();
            self.replace(node, end..end, if padded { more } else { format!("{more} ") });
            return Ok(());
        }
        let outer = indentation(text, directive.span.start);
        let indent = self.inner_indent(file, children).unwrap_or_else(|| format!("{outer}{}", indent_unit(file)));
        let ending = line_ending(text, directive.end);
        if is_first_on_line(text, close) {
            let at = line_start(text, close);
            self.replace(node, at..at, joined(lines, &indent, ending));
        } else {
            let end = text[..close].trim_end_matches([' ', '\t']).len();
            self.replace(node, end..close, format!("{ending}{}{outer}", joined(lines, &indent, ending)));
        }
        Ok(())
    }

    fn insert_before(&mut self, sibling: Node, lines: &[String]) -> Result<(), EditError> {
        let (file, directive) = self.editable(sibling)?;
        let text = file.text();
        let start = directive.span.start;
        if is_first_on_line(text, start) {
            let at = line_start(text, start);
            self.replace(sibling, at..at, joined(lines, indentation(text, start), line_ending(text, start)));
        } else {
            let more: String = lines.iter().map(|line| format!("{} ", line.trim())).collect();
            self.replace(sibling, start..start, more);
        }
        Ok(())
    }

    fn insert_after(&mut self, sibling: Node, lines: &[String]) -> Result<(), EditError> {
        let (file, directive) = self.editable(sibling)?;
        let text = file.text();
        let end = directive.span.end;
        let rest = &text[end..line_end(text, end)];
        if is_first_on_line(text, directive.span.start) && (rest.trim().is_empty() || rest.trim_start().starts_with('#')) {
            let indent = indentation(text, directive.span.start);
            let ending = line_ending(text, end);
            let at = line_end(text, end);
            let before = if text[..at].ends_with('\n') { "" } else { ending };
            self.replace(sibling, at..at, format!("{before}{}", joined(lines, indent, ending)));
        } else {
            let more: String = lines.iter().map(|line| format!(" {}", line.trim())).collect();
            self.replace(sibling, end..end, more);
        }
        Ok(())
    }

    fn insert_at_top(&mut self, lines: &[String]) -> Result<(), EditError> {
        let Some(file) = self.tree.files().first() else { return Ok(()) };
        let text = file.text();
        let ending = line_ending(text, text.len());
        let before = if text.is_empty() || text.ends_with('\n') { "" } else { ending };
        let node = Node { file: 0, entry: 0 };
        self.replace(node, text.len()..text.len(), format!("{before}{}", joined(lines, "", ending)));
        Ok(())
    }

    /// The indentation of the first directive of a block that begins a line.
    fn inner_indent(&self, file: &File, children: &[usize]) -> Option<String> {
        let starts = children.iter().map(|&child| file.directives()[child].span.start);
        starts.filter(|&start| is_first_on_line(file.text(), start)).map(|start| indentation(file.text(), start).to_owned()).next()
    }

    /// The changed files, each parsed again; empty if the configuration says everything already.
    pub fn finish(&self) -> Result<Vec<Edited>, EditError> {
        let mut edited = Vec::new();
        for (&index, replacements) in &self.replacements {
            let file = &self.tree.files()[index];
            if let Some(one) = Edited::of(&file.path, file.text(), replacements).map_err(|_| EditError::Overlap(file.path.to_string()))? {
                file::parse(&one.path, &one.after)?;
                edited.push(one);
            }
        }
        Ok(edited)
    }
}

fn upstream_block(file: &File, name: &str, lines: impl Iterator<Item = String>) -> Vec<String> {
    let unit = indent_unit(file);
    let mut block = vec![format!("upstream {} {{", quoted(name))];
    block.extend(lines.map(|line| format!("{unit}{line}")));
    block.push("}".to_owned());
    block
}

fn words_of(directive: &Directive) -> Vec<String> {
    directive.words().iter().map(|word| word.value.clone()).collect()
}

fn joined(lines: &[String], indent: &str, ending: &str) -> String {
    lines.iter().map(|line| format!("{indent}{line}{ending}")).collect()
}

/// One level of indentation as the file uses it: that of the first directive in a block that is deeper than its block; four blanks where there
/// is none.
fn indent_unit(file: &File) -> String {
    let inner = file.directives().iter().filter_map(|directive| Some((directive, file.directives().get(directive.parent?)?)));
    for (directive, parent) in inner {
        if is_first_on_line(file.text(), directive.span.start) {
            let own = indentation(file.text(), directive.span.start);
            if let Some(unit) = own.strip_prefix(indentation(file.text(), parent.span.start)).filter(|unit| !unit.is_empty()) {
                return unit.to_owned();
            }
        }
    }
    "    ".to_owned()
}
