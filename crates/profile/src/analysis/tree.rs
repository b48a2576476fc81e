//! Merges stacks with equal beginnings into the tree that text and pictures draw.

use std::collections::HashMap;

use crate::layers::layer::Layer;
use crate::profile::{Profile, Sample, SampleGroup, Thread};

/// What a node stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Label {
    /// The whole profile.
    Root,
    /// A program.
    Program(String),
    /// A function, as index into the profile's `frames`.
    Frame(u32),
}

/// A function with one call path, and everything that it called.
#[derive(Debug, Clone)]
pub struct Node {
    /// What it stands for.
    pub label: Label,
    /// The layer of most of its time.
    pub layer: Layer,
    /// Its weight including its children.
    pub total: u64,
    /// Its own weight.
    pub own: u64,
    /// What it called, heaviest first.
    pub children: Vec<Node>,
}

/// A node while the tree is built.
#[derive(Debug, Default)]
struct NodeBuilder {
    total: u64,
    own: u64,
    layers: HashMap<Layer, u64>,
    children: HashMap<Label, usize>,
}

/// The tree of the wanted busy samples: programs, then functions from the outermost one.
pub fn build(profile: &Profile, wanted: impl Fn(&Sample, &Thread) -> bool) -> Node {
    let mut nodes = vec![NodeBuilder::default()];
    for SampleGroup { weight, stack, thread, .. } in profile.busy_groups(wanted) {
        let mut at = 0;
        let labels = std::iter::once(Label::Program(thread.program.clone())).chain(stack.frames.iter().map(|frame| Label::Frame(*frame)));
        nodes[0].add(weight, stack.layer);
        for label in labels {
            let next = nodes.len();
            at = *nodes[at].children.entry(label).or_insert(next);
            if at == next {
                nodes.push(NodeBuilder::default());
            }
            nodes[at].add(weight, stack.layer);
        }
        nodes[at].own = nodes[at].own.saturating_add(weight);
    }
    finish(nodes)
}

impl NodeBuilder {
    fn add(&mut self, weight: u64, layer: Layer) {
        self.total = self.total.saturating_add(weight);
        let sum = self.layers.entry(layer).or_default();
        *sum = sum.saturating_add(weight);
    }

    /// The layer of most of its time; of equal ones the first in the table.
    fn layer(&self) -> Layer {
        let heaviest = self.layers.iter().max_by_key(|(layer, weight)| (**weight, std::cmp::Reverse(**layer)));
        heaviest.map_or(Layer::Unknown, |(layer, _)| *layer)
    }
}

/// Converts the nodes from the last to the first: children come after their parents in the list, so they are complete when the parent takes them.
fn finish(nodes: Vec<NodeBuilder>) -> Node {
    let mut labels: Vec<Label> = vec![Label::Root; nodes.len()];
    for node in &nodes {
        for (label, child) in &node.children {
            labels[*child] = label.clone();
        }
    }
    let mut done: Vec<Option<Node>> = nodes.iter().map(|_| None).collect();
    for (index, node) in nodes.iter().enumerate().rev() {
        let mut children: Vec<(usize, Node)> =
            node.children.values().filter_map(|child| Some((*child, done.get_mut(*child)?.take()?))).collect();
        children.sort_by_key(|(order, child)| (std::cmp::Reverse(child.total), *order));
        let children = children.into_iter().map(|(_, child)| child).collect();
        done[index] = Some(Node { label: labels[index].clone(), layer: node.layer(), total: node.total, own: node.own, children });
    }
    let empty = Node { label: Label::Root, layer: Layer::Unknown, total: 0, own: 0, children: Vec::new() };
    done.first_mut().and_then(Option::take).unwrap_or(empty)
}

impl Node {
    /// Number of levels.
    pub fn depth(&self) -> usize {
        let mut deepest = 0;
        let mut left = vec![(self, 1)];
        while let Some((node, depth)) = left.pop() {
            deepest = deepest.max(depth);
            left.extend(node.children.iter().map(|child| (child, depth + 1)));
        }
        deepest
    }

    /// Its name.
    pub fn name<'a>(&'a self, profile: &'a Profile) -> &'a str {
        match &self.label {
            Label::Root => "all",
            Label::Program(name) => name,
            Label::Frame(frame) => {
                let frame = usize::try_from(*frame).ok().and_then(|index| profile.frames.get(index));
                frame.map_or("", |frame| frame.name.as_str())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::folded;

    #[test]
    fn stacks_with_equal_beginnings_are_merged() {
        let profile = folded::read("a;f;g 3\na;f;h 5\na;f 1\nb;f 2\nc;do_idle_[k] 50\n").unwrap();
        let tree = build(&profile, |_, _| true);
        assert_eq!((tree.total, tree.depth(), tree.children.len()), (11, 4, 2));
        let f = &tree.children[0].children[0];
        assert_eq!((f.name(&profile), f.total, f.own), ("f", 9, 1));
        assert_eq!(f.children.iter().map(|child| child.name(&profile)).collect::<Vec<_>>(), ["h", "g"]);
        let only = build(&profile, |_, thread| thread.program == "b");
        assert_eq!((only.total, only.children.len()), (2, 1));
        assert_eq!(build(&profile, |_, _| false).total, 0);
    }

    #[test]
    fn very_deep_stacks_are_built_without_overflow() {
        let deep = format!("a{} 1\n", ";f".repeat(2047));
        let profile = folded::read(&deep).unwrap();
        assert_eq!(build(&profile, |_, _| true).depth(), 2049);
        assert!(folded::read(&format!("a{} 1\n", ";f".repeat(50_000))).is_err());
    }
}
