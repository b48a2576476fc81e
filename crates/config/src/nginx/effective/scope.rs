//! Shared by the readers of blocks: the directives of one block, and the problems found.

use std::collections::BTreeMap;

use super::directives::shape_problem;
use super::pass::{Names, Pass};
use super::settings::{Occurrence, Settings};
use crate::nginx::parser::file::Body;
use crate::nginx::tree::Tree;
use crate::{Node, SourceLine};

/// Something that nginx would refuse, or that this reader ignores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its position.
    pub place: SourceLine,
    /// Its description.
    pub text: String,
}

impl Problem {
    pub(crate) fn invalid(directive: &Occurrence, name: &str) -> Self {
        Self { place: directive.place.clone(), text: format!("invalid value \"{}\" in \"{name}\"", directive.args.join(" ")) }
    }
}

/// The tree being read, and the problems found so far.
pub(crate) struct Scope<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) problems: &'a mut Vec<Problem>,
}

impl Scope<'_> {
    /// The directives of a block. Reports shapes that nginx would refuse as problems.
    pub(crate) fn block(&mut self, node: Node) -> Block {
        collect(self.tree, &self.tree.children(node), self.problems)
    }

    pub(crate) fn pass(&mut self, settings: &Settings, names: &Names) -> Option<Pass> {
        match Pass::read(settings, names)? {
            Ok(pass) => Some(pass),
            Err((directive, name)) => {
                self.problems.push(Problem::invalid(&directive, name));
                None
            }
        }
    }
}

/// The directives of one block: simple ones by name, blocks in order.
pub(crate) struct Block {
    pub(crate) simple: BTreeMap<String, Vec<Occurrence>>,
    pub(crate) blocks: Vec<Node>,
}

/// Sorts the directives of one block, and reports directives whose shape nginx would refuse.
pub(crate) fn collect(tree: &Tree, nodes: &[Node], problems: &mut Vec<Problem>) -> Block {
    let mut block = Block { simple: BTreeMap::new(), blocks: Vec::new() };
    for &node in nodes {
        let directive = tree.directive(node);
        let is_block = matches!(directive.body, Body::Block(_));
        if let Some(text) = shape_problem(directive.name(), directive.args().len(), is_block) {
            problems.push(Problem { place: tree.place(node), text });
        }
        if is_block {
            block.blocks.push(node);
        } else {
            let occurrence = Occurrence { args: directive.values(), place: tree.place(node) };
            // Most directives occur once in a block.
            block.simple.entry(directive.name().to_owned()).or_insert_with(|| Vec::with_capacity(1)).push(occurrence);
        }
    }
    block
}
