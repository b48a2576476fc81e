//! Edits of a php-fpm configuration: sets a key of a pool in place, or adds it in the right position.

pub(crate) mod socket;

use std::collections::BTreeMap;

use thiserror::Error;

use super::error::SyntaxError;
use super::file::{self, Kind};
use super::tree::Tree;
use crate::edit::{Replacement, line_end, line_ending, line_start, removal};
use crate::{Edited, Node};

/// Why an edit was not made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EditError {
    /// No section of that name.
    #[error("there is no section [{0}]")]
    NoSection(String),
    /// The file is included in several places.
    #[error("{path} is included in several places, so an edit would apply to all of them: {}", includes.join(", "))]
    SharedFile {
        /// Path of the file.
        path: String,
        /// "php-fpm.conf:3", one for each include.
        includes: Vec<String>,
    },
    /// The pool cannot be copied or moved.
    #[error("[{pool}] is not moved: {why}")]
    Unfit {
        /// Its name.
        pool: String,
        /// Why.
        why: String,
    },
    /// A value with a line feed, which this format cannot hold.
    #[error("the value of \"{0}\" contains a line break")]
    LineEnding(String),
    /// Two edits want to change the same bytes.
    #[error("two edits change the same text in {0}")]
    Overlap(String),
    /// The file would not parse afterwards.
    #[error("the edit would break the file: {0}")]
    Broken(#[from] SyntaxError),
}

/// Collects edits of one tree. An edit that asks for what the configuration already says changes nothing.
#[derive(Debug, Clone)]
pub struct Editor<'t> {
    tree: &'t Tree,
    replacements: BTreeMap<usize, Vec<Replacement>>,
}

impl<'t> Editor<'t> {
    /// Starts without edits.
    pub fn new(tree: &'t Tree) -> Self {
        Self { tree, replacements: BTreeMap::new() }
    }

    /// Sets a key of a section (a pool's name, or "global"). The line in force is changed in place. If there is none, a line is added:
    /// below a commented-out sample of the key (`;listen.backlog = 511`), else below the line of the key that its name extends (`listen`),
    /// else at the end of the section.
    pub fn set(&mut self, section: &str, key: &str, value: &str) -> Result<(), EditError> {
        if value.contains(['\n', '\r', '\0']) {
            return Err(EditError::LineEnding(key.to_owned()));
        }
        let lines = self.section(section)?;
        let is_key = |node: &&Node| matches!(&self.tree.entry(**node).kind, Kind::Set { key: known, index: None, .. } if known.eq_ignore_ascii_case(key));
        match lines.iter().rev().find(is_key) {
            Some(&node) => self.set_value(node, value),
            None => self.add(&lines, key, value),
        }
    }

    /// Sets the value on one line.
    pub fn set_value(&mut self, node: Node, value: &str) -> Result<(), EditError> {
        self.check_editable(node)?;
        let text = quoted(value);
        if let Kind::Set { value: old, value_span, .. } = &self.tree.entry(node).kind {
            let same = old == value || self.tree.files()[node.file].text()[value_span.clone()] == *text;
            if !same {
                // A new value needs a blank after the `=` if there was no value before.
                let old_text = self.tree.files()[node.file].text();
                let glued = value_span.is_empty() && old_text[..value_span.start].ends_with('=');
                self.push(node.file, Replacement { span: value_span.clone(), text: if glued { format!(" {text}") } else { text } });
            }
        }
        Ok(())
    }

    /// Removes a line.
    pub fn remove(&mut self, node: Node) -> Result<(), EditError> {
        self.check_editable(node)?;
        let span = removal(self.tree.files()[node.file].text(), self.tree.entry(node).span.clone());
        self.push(node.file, Replacement { span, text: String::new() });
        Ok(())
    }

    /// The changed files, each parsed again; empty if the configuration already says everything.
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

    fn push(&mut self, file: usize, replacement: Replacement) {
        let list = self.replacements.entry(file).or_default();
        if !list.contains(&replacement) {
            list.push(replacement);
        }
    }

    fn check_editable(&self, node: Node) -> Result<(), EditError> {
        let includes = self.tree.includers(node.file);
        if includes.len() <= 1 {
            return Ok(());
        }
        let path = self.tree.files()[node.file].path.to_string();
        Err(EditError::SharedFile { path, includes: includes.iter().map(ToString::to_string).collect() })
    }

    /// The lines of a section in the order in which they take effect, including its headings.
    fn section(&self, name: &str) -> Result<Vec<Node>, EditError> {
        let mut lines = Vec::new();
        // Lines before any heading belong to the global section.
        let mut inside = name.eq_ignore_ascii_case("global");
        for &node in self.tree.order() {
            if let Kind::Section(heading) = &self.tree.entry(node).kind {
                inside = heading.eq_ignore_ascii_case(name);
            }
            if inside {
                lines.push(node);
            }
        }
        if lines.is_empty() { Err(EditError::NoSection(name.to_owned())) } else { Ok(lines) }
    }

    fn add(&mut self, lines: &[Node], key: &str, value: &str) -> Result<(), EditError> {
        let stem = key.split('.').next().unwrap_or(key);
        let named =
            |wanted: &str, node: &Node| matches!(&self.tree.entry(*node).kind, Kind::Set { key, .. } if key.eq_ignore_ascii_case(wanted));
        let family = |node: &Node| matches!(&self.tree.entry(*node).kind, Kind::Set { key, .. } if key.split('.').next() == Some(stem));
        let beside = lines.iter().rev().find(|node| family(node)).or_else(|| lines.iter().find(|node| named(stem, node)));
        let Some(&node) = beside.or(lines.last()) else { return Ok(()) };
        self.check_editable(node)?;
        let file = &self.tree.files()[node.file];
        let text = file.text();
        let own = lines.iter().filter(|line| line.file == node.file).map(|&line| self.tree.entry(line));
        let start = own.map(|entry| entry.span.start).min().unwrap_or(0);
        let later = file
            .entries()
            .iter()
            .filter(|entry| matches!(entry.kind, Kind::Section(_)) && entry.span.start > self.tree.entry(node).span.start);
        let end = later.map(|entry| entry.span.start).min().unwrap_or(text.len());
        let below = sample(&text[start..end], key).map_or(self.tree.entry(node).span.start, |at| start + at);
        let at = line_end(text, below);
        let ending = line_ending(text, below);
        let before = if at == line_start(text, at) { "" } else { ending };
        self.push(node.file, Replacement { span: at..at, text: format!("{before}{key} = {}{ending}", quoted(value)) });
        Ok(())
    }
}

/// The position of the last commented-out sample of a key: `;key = ...` or `; key = ...`.
pub(super) fn sample(text: &str, key: &str) -> Option<usize> {
    let mut at = 0;
    let mut found = None;
    for line in text.split_inclusive('\n') {
        let rest = line.trim_start_matches([' ', '\t']).strip_prefix(';').map(|rest| rest.trim_start_matches([' ', '\t']));
        let after = rest.and_then(|rest| rest.strip_prefix(key)).map(|rest| rest.trim_start_matches([' ', '\t']));
        if after.is_some_and(|after| after.starts_with('=')) {
            found = Some(at);
        }
        at += line.len();
    }
    found
}

/// The text that php-fpm reads back as this value: unquoted if that is safe, in double quotes otherwise.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | ':' | '%' | '-' | '*' | '[' | ']' | ',' | '@');
    if !value.is_empty() && value.chars().all(is_plain) {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"").replace("${", "\\${"))
}
