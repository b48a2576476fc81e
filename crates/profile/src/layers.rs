//! Layers: what kind of work a sample is. Every sample belongs to exactly one, that of the function nearest to the leaf which a rule names.

use std::collections::HashMap;

use crate::profile::{Frame, FrameKind};

pub(crate) mod layer;
mod rules;

pub use layer::{LAYERS, Layer, LayerDef};
pub use rules::{On, RULES, Rule};

/// What the rules say of one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Match {
    /// The layer wherever it stands in the stack.
    anywhere: Option<Layer>,
    /// The layer where it is what runs.
    leaf: Option<Layer>,
    kernel: bool,
}

/// The rules, prepared.
#[derive(Debug)]
pub struct Rules {
    /// Names without `*`.
    exact: HashMap<(On, &'static str), Layer>,
    /// Names with `*`, in the order of the table.
    patterns: Vec<(On, &'static str, Layer)>,
}

impl Default for Rules {
    fn default() -> Self {
        Self::new()
    }
}

impl Rules {
    /// Prepares the table.
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

    /// What the rules say of a function.
    pub fn of(&self, frame: &Frame) -> Match {
        // Compilers append what they made of a function: ".isra.0", ".constprop.0", ".cold".
        let bare = frame.name.split('.').next().filter(|name| !name.is_empty() && frame.kind == FrameKind::Kernel);
        let name = bare.unwrap_or(&frame.name);
        match frame.kind {
            FrameKind::Kernel => Match {
                anywhere: self.find(On::Kernel, name).or_else(|| self.find(On::KernelModule, &frame.module)),
                leaf: self.find(On::KernelLeaf, name),
                kernel: true,
            },
            FrameKind::User => {
                let anywhere = self.find(On::User, name).or_else(|| self.find(On::UserFile, &frame.module));
                Match { anywhere, leaf: None, kernel: false }
            }
            FrameKind::Jit => Match { anywhere: Some(Layer::Interpreter), leaf: None, kernel: false },
        }
    }

    /// The layer of a stack, the outermost function first.
    pub fn layer(&self, frames: &[&Frame]) -> Layer {
        let matches: Vec<Match> = frames.iter().map(|frame| self.of(frame)).collect();
        layer_of(&matches)
    }

    fn find(&self, on: On, name: &str) -> Option<Layer> {
        let exact = self.exact.get(&(on, name)).copied();
        exact.or_else(|| self.patterns.iter().find(|(place, pattern, _)| *place == on && matches(pattern, name)).map(|(.., layer)| *layer))
    }
}

/// The layer of a stack of which each function was looked up, the outermost first. A stack that is in the kernel is judged by its kernel part.
pub(crate) fn layer_of(frames: &[Match]) -> Layer {
    let Some(leaf) = frames.last() else { return Layer::Unknown };
    if let Some(layer) = leaf.leaf {
        return layer;
    }
    let part = frames.iter().rev().take_while(|frame| frame.kernel == leaf.kernel);
    part.filter_map(|frame| frame.anywhere).next().unwrap_or(if leaf.kernel { Layer::KernelOther } else { Layer::Application })
}

/// True where a name is like a pattern in which `*` stands for any letters.
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
    fn the_table_of_layers_is_whole() {
        for def in LAYERS {
            let id = serde_json::to_value(def.layer).unwrap();
            assert_eq!(id, def.id);
            assert_eq!(def.layer.def().id, def.id);
            assert!(def.color.len() == 7 && def.color.starts_with('#') && !def.title.is_empty());
            // Deserialisation knows each of them, so that none is missing in the table: the last is the highest.
            assert_eq!(serde_json::from_value::<Layer>(id).unwrap(), def.layer);
        }
        assert_eq!(LAYERS.len(), Layer::Idle as usize + 1);
    }

    #[test]
    fn every_rule_is_explained_and_no_name_stands_twice() {
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
    fn every_layer_has_a_rule_or_is_what_remains() {
        let remains = [Layer::Application, Layer::KernelOther, Layer::Unknown];
        for def in LAYERS.iter().filter(|def| !remains.contains(&def.layer)) {
            assert!(RULES.iter().any(|rule| rule.layer == def.layer), "{}", def.id);
        }
    }

    #[test]
    fn patterns() {
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
        fn any_pattern_and_name_are_compared(pattern in "[a*é]{0,8}", name in "[aé]{0,12}") {
            matches(&pattern, &name);
            prop_assert!(matches("*", &name));
            let name_is_like_itself = matches(&name, &name);
            prop_assert!(name_is_like_itself);
        }
    }
}
