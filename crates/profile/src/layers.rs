//! Layers: the kind of work of a sample. Each sample belongs to exactly one: the layer of the innermost function that a rule names.

use std::collections::HashMap;

use crate::profile::{Frame, FrameKind};

pub(crate) mod layer;
mod rules;

pub use layer::{LAYERS, Layer, LayerDef};
pub use rules::{MatchOn, RULES, Rule};

/// The layers that the rules give one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayerMatch {
    /// The layer if the function is anywhere in the stack.
    anywhere: Option<Layer>,
    /// The layer if the function is the innermost one.
    leaf: Option<Layer>,
    kernel: bool,
}

/// The rules, prepared for lookups.
#[derive(Debug)]
pub struct Rules {
    /// Names without `*`.
    exact: HashMap<(MatchOn, &'static str), Layer>,
    /// Names with `*`, in the order of the table.
    patterns: Vec<(MatchOn, &'static str, Layer)>,
}

impl Default for Rules {
    fn default() -> Self {
        Self::new()
    }
}

impl Rules {
    /// Prepares the table of rules.
    pub fn new() -> Self {
        let mut rules = Self { exact: HashMap::new(), patterns: Vec::new() };
        for rule in RULES {
            for name in rule.names {
                if name.contains('*') {
                    rules.patterns.push((rule.on, name, rule.layer));
                } else {
                    rules.exact.entry((rule.on, name)).or_insert(rule.layer);
                }
            }
        }
        rules
    }

    /// The layers of a function.
    pub fn of(&self, frame: &Frame) -> LayerMatch {
        // Compilers append suffixes: ".isra.0", ".constprop.0", ".cold".
        let bare = frame.name.split('.').next().filter(|name| !name.is_empty() && frame.kind == FrameKind::Kernel);
        let name = bare.unwrap_or(&frame.name);
        match frame.kind {
            FrameKind::Kernel => LayerMatch {
                anywhere: self.find(MatchOn::Kernel, name).or_else(|| self.find(MatchOn::KernelModule, &frame.module)),
                leaf: self.find(MatchOn::KernelLeaf, name),
                kernel: true,
            },
            FrameKind::User => {
                let anywhere = self.find(MatchOn::User, name).or_else(|| self.find(MatchOn::UserFile, &frame.module));
                LayerMatch { anywhere, leaf: None, kernel: false }
            }
            FrameKind::Jit => LayerMatch { anywhere: Some(Layer::Interpreter), leaf: None, kernel: false },
        }
    }

    /// The layer of a stack, outermost function first.
    pub fn layer(&self, frames: &[&Frame]) -> Layer {
        let matches: Vec<LayerMatch> = frames.iter().map(|frame| self.of(frame)).collect();
        layer_of(&matches)
    }

    fn find(&self, on: MatchOn, name: &str) -> Option<Layer> {
        let exact = self.exact.get(&(on, name)).copied();
        exact.or_else(|| self.patterns.iter().find(|(place, pattern, _)| *place == on && matches(pattern, name)).map(|(.., layer)| *layer))
    }
}

/// The layer of a stack from the matches of its functions, outermost first. If the stack is in the kernel, its kernel frames decide.
pub(crate) fn layer_of(frames: &[LayerMatch]) -> Layer {
    let Some(leaf) = frames.last() else { return Layer::Unknown };
    if let Some(layer) = leaf.leaf {
        return layer;
    }
    let part = frames.iter().rev().take_while(|frame| frame.kernel == leaf.kernel);
    part.filter_map(|frame| frame.anywhere).next().unwrap_or(if leaf.kernel { Layer::KernelOther } else { Layer::Application })
}

/// Whether a name matches a pattern in which `*` stands for any letters.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or("")) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_layer_is_in_the_table() {
        for def in LAYERS {
            let id = serde_json::to_value(def.layer).unwrap();
            assert_eq!(id, def.id);
            assert_eq!(def.layer.def().id, def.id);
            assert!(def.color.len() == 7 && def.color.starts_with('#') && !def.title.is_empty());
            // Deserialisation accepts every variant of the table, and the last variant has the highest number: none is missing.
            assert_eq!(serde_json::from_value::<Layer>(id).unwrap(), def.layer);
        }
        assert_eq!(LAYERS.len(), Layer::Idle as usize + 1);
    }

    #[test]
    fn every_rule_is_explained_and_each_name_stands_once() {
        let mut seen = HashMap::new();
        for rule in RULES {
            assert!(!rule.meaning.is_empty() && !rule.source.is_empty() && !rule.names.is_empty(), "{rule:?}");
            for name in rule.names {
                assert!(!name.is_empty() && *name != "*");
                if let Some(other) = seen.insert((rule.on, *name), rule.layer) {
                    panic!("{name} stands for {other:?} and for {:?}", rule.layer);
                }
            }
        }
    }

    #[test]
    fn every_layer_has_a_rule_or_is_a_remainder() {
        let remains = [Layer::Application, Layer::KernelOther, Layer::Unknown];
        for def in LAYERS.iter().filter(|def| !remains.contains(&def.layer)) {
            assert!(RULES.iter().any(|rule| rule.layer == def.layer), "{}", def.id);
        }
    }

    #[test]
    fn patterns_match_names() {
        for (pattern, name, expected) in [
            ("tcp_*", "tcp_ack", true),
            ("tcp_*", "udp_ack", false),
            ("*_xmit", "veth_xmit", true),
            ("*_xmit", "veth_xmit_x", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "ac", false),
            ("a*a", "a", false),
            ("exact", "exact", true),
            ("exact", "exactly", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_patterns_and_names_are_compared(pattern in "[a*é]{0,8}", name in "[aé]{0,12}") {
            matches(&pattern, &name);
            prop_assert!(matches("*", &name));
            let name_is_like_itself = matches(&name, &name);
            prop_assert!(name_is_like_itself);
        }
    }
}
