//! Merges stacks with equal beginnings into the tree that text and pictures draw.

use std::collections::HashMap;

use indexmap::IndexMap;

use crate::layers::layer::Layer;
use crate::profile::{Profile, Sample, Stack, Thread};
use crate::sampling::interned::OTHER;

/// Nodes of a tree, but for those that stand for what is beyond. What is drawn of a profile, branches of a share that can be seen, has far fewer.
const NODES_MAX: usize = 1 << 18;

/// What a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Label {
    /// The whole profile.
    Root,
    /// A program, as index into the profile's `threads` of one of its threads.
    Program(u32),
    /// A function, as index into the profile's `frames`.
    Frame(u32),
    /// Everything called here that the tree has no room for.
    Other,
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
#[derive(Debug)]
struct NodeBuilder {
    parent: usize,
    label: Label,
    total: u64,
    own: u64,
    /// Mostly one.
    layers: Vec<(Layer, u64)>,
}

/// A tree while it is built. Children come after their parents.
struct TreeBuilder {
    nodes: Vec<NodeBuilder>,
    known: HashMap<(usize, Label), usize>,
    nodes_max: usize,
}

/// The tree of the wanted busy samples: programs, then functions from the outermost one.
pub fn build(profile: &Profile, wanted: impl Fn(&Sample, &Thread) -> bool) -> Node {
    build_within(NODES_MAX, profile, wanted)
}

fn build_within(nodes_max: usize, profile: &Profile, wanted: impl Fn(&Sample, &Thread) -> bool) -> Node {
    let programs = programs(profile);
    // Threads of one program share their nodes.
    let mut groups: IndexMap<(u32, u32), u64> = IndexMap::new();
    for (sample, _, thread) in profile.busy().filter(|(sample, _, thread)| wanted(sample, thread)) {
        let Some(program) = programs.get(thread.program.as_str()) else { continue };
        let weight = groups.entry((*program, sample.stack)).or_default();
        *weight = weight.saturating_add(sample.weight);
    }
    let walked = groups.keys().map(|(_, stack)| profile.stack(*stack).map_or(0, |stack| stack.frames.len() + 1)).sum::<usize>();
    if walked > nodes_max {
        // The tree may have no room for all: the heaviest come first.
        groups.sort_by(|_, one, _, other| other.cmp(one));
    }
    let mut tree = TreeBuilder { nodes: vec![NodeBuilder::of(0, Label::Root)], known: HashMap::new(), nodes_max };
    for ((program, stack), weight) in groups {
        let Some(stack) = profile.stack(stack) else { continue };
        tree.add(Label::Program(program), stack, weight);
    }
    tree.finish()
}

/// A thread of each program, as index into the profile's `threads`.
fn programs(profile: &Profile) -> HashMap<&str, u32> {
    let mut programs = HashMap::new();
    for (index, thread) in (0..).zip(&profile.threads) {
        programs.entry(thread.program.as_str()).or_insert(index);
    }
    programs
}

impl TreeBuilder {
    fn add(&mut self, program: Label, stack: &Stack, weight: u64) {
        let mut at = 0;
        self.nodes[0].add(weight, stack.layer);
        for label in std::iter::once(program).chain(stack.frames.iter().map(|frame| Label::Frame(*frame))) {
            at = self.child(at, label);
            self.nodes[at].add(weight, stack.layer);
            if self.nodes[at].label == Label::Other {
                break;
            }
        }
        self.nodes[at].own = self.nodes[at].own.saturating_add(weight);
    }

    /// What a node called; beyond the bound the one that stands for everything else that it called, of which each node has one.
    fn child(&mut self, parent: usize, label: Label) -> usize {
        if let Some(known) = self.known.get(&(parent, label)) {
            return *known;
        }
        let label = if self.nodes.len() < self.nodes_max { label } else { Label::Other };
        let next = self.nodes.len();
        let child = *self.known.entry((parent, label)).or_insert(next);
        if child == next {
            self.nodes.push(NodeBuilder::of(parent, label));
        }
        child
    }

    /// Converts the nodes from the last to the first, so that they are complete when the parent takes them.
    fn finish(self) -> Node {
        drop(self.known);
        let mut children: Vec<Vec<Node>> = self.nodes.iter().map(|_| Vec::new()).collect();
        for (index, built) in self.nodes.iter().enumerate().rev() {
            let mut own = std::mem::take(&mut children[index]);
            // They were taken from the last to the first; equal ones stay in the order in which they came.
            own.reverse();
            own.sort_by_key(|child| std::cmp::Reverse(child.total));
            let node = Node { label: built.label, layer: built.layer(), total: built.total, own: built.own, children: own };
            if index == 0 {
                return node;
            }
            children[built.parent].push(node);
        }
        Node { label: Label::Root, layer: Layer::Unknown, total: 0, own: 0, children: Vec::new() }
    }
}

impl NodeBuilder {
    fn of(parent: usize, label: Label) -> Self {
        Self { parent, label, total: 0, own: 0, layers: Vec::new() }
    }

    fn add(&mut self, weight: u64, layer: Layer) {
        self.total = self.total.saturating_add(weight);
        match self.layers.iter_mut().find(|(known, _)| *known == layer) {
            Some((_, sum)) => *sum = sum.saturating_add(weight),
            None => self.layers.push((layer, weight)),
        }
    }

    /// The layer of most of its time; of equal ones the first in the table.
    fn layer(&self) -> Layer {
        let heaviest = self.layers.iter().max_by_key(|(layer, weight)| (*weight, std::cmp::Reverse(*layer)));
        heaviest.map_or(Layer::Unknown, |(layer, _)| *layer)
    }
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
            Label::Program(thread) => {
                let thread = usize::try_from(*thread).ok().and_then(|index| profile.threads.get(index));
                thread.map_or("", |thread| thread.program.as_str())
            }
            Label::Frame(frame) => {
                let frame = usize::try_from(*frame).ok().and_then(|index| profile.frames.get(index));
                frame.map_or("", |frame| frame.name.as_str())
            }
            Label::Other => OTHER,
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
    fn beyond_the_bound_the_lightest_stacks_are_other_and_no_weight_is_lost() {
        let light: String = (0..50).map(|number| format!("a;f;light{number};x 1\n")).collect();
        let profile = folded::read(&format!("{light}a;f;heavy;deep;deeper 90\n")).unwrap();
        let tree = build_within(8, &profile, |_, _| true);
        assert_eq!((tree.total, tree.children.len()), (140, 1));
        let f = &tree.children[0].children[0];
        let found: Vec<(&str, u64)> = f.children.iter().map(|child| (child.name(&profile), child.total)).collect();
        assert_eq!(found, [("heavy", 90), (OTHER, 49), ("light0", 1)]);
        assert_eq!(f.children[1].own, 49);
        let whole = build(&profile, |_, _| true);
        assert_eq!((whole.children[0].children[0].children.len(), whole.total), (51, 140));
    }

    #[test]
    fn very_deep_stacks_are_built_without_overflow() {
        let deep = format!("a{} 1\n", ";f".repeat(2047));
        let profile = folded::read(&deep).unwrap();
        assert_eq!(build(&profile, |_, _| true).depth(), 2049);
        assert!(folded::read(&format!("a{} 1\n", ";f".repeat(50_000))).is_err());
    }
}
