//! Attacks: what somebody with an ordinary account on the same host does against a `chokepoint` that root runs, and what must hold.
//!
//! An attack is one TOML file below `lab/attacks`, in the folder of its kind (docs/scenarios.md). It is a scenario of one host with root's servers and those of the
//! attacker, a user of its own. Its steps run there: the attacker's programs, and the product's own binary as root runs it. The results are checked from
//! outside: bytes of files, processes, connections, output, time and memory.

pub(crate) mod document;
mod hold;
mod scene;
mod step;
mod trial;

use std::path::Path;

pub use document::{Attack, AttackStep, Contains, Lines};
pub use step::StepResult;
pub use trial::{Outcome, Trial, TrialOptions};

use crate::scenario::read_text;
use crate::scenario::{ScenarioError, nearest};

/// A kind of attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The folder below `lab/attacks`.
    pub name: &'static str,
    /// A heading.
    pub title: &'static str,
}

/// The kinds of attacks in the order of the documentation, one line each.
pub const KINDS: &[Kind] = &[
    Kind { name: "look-alikes", title: "Programs that look like a server" },
    Kind { name: "configuration", title: "Configuration and logs of servers" },
    Kind { name: "status", title: "Status pages" },
    Kind { name: "page", title: "The page and the metrics of `watch`" },
    Kind { name: "recorder", title: "What `watch` records" },
    Kind { name: "processes", title: "Memory, names and files of processes" },
    Kind { name: "peers", title: "What is received" },
    Kind { name: "files", title: "Files that are written and read by name" },
];

/// Kind, name and text of the built-in attacks, in the order of their names. `build.rs` collects them from `lab/attacks`.
const BUILTIN: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/attacks.rs"));

impl Attack {
    /// The built-in attacks: the kinds in the order of [`KINDS`], the attacks of a kind in the order of their names.
    ///
    /// # Errors
    /// Where a built-in file is not valid: a bug, which a test looks for.
    pub fn builtin() -> Result<Vec<Attack>, ScenarioError> {
        let of = |kind: &'static Kind| BUILTIN.iter().filter(move |(folder, ..)| *folder == kind.name);
        KINDS.iter().flat_map(of).map(|(kind, name, text)| Attack::parse(text, &format!("built-in {name}"), kind)).collect()
    }

    /// Finds attacks: a built-in one by its name, all built-in ones of a kind by the kind's, or one by the path of a file. A name with a `/` or the ending
    /// `.toml` is a path.
    ///
    /// # Errors
    /// [`ScenarioError::NotFound`] with the nearest names; [`ScenarioError::Unreadable`] where a file cannot be read; [`ScenarioError::Invalid`].
    pub fn find(name_or_path: &str) -> Result<Vec<Attack>, ScenarioError> {
        if name_or_path.contains('/') || name_or_path.ends_with(".toml") {
            let text = read_text(Path::new(name_or_path), name_or_path)?;
            return Attack::parse(&text, name_or_path, "files").map(|attack| vec![attack]);
        }
        let mut attacks = Attack::builtin()?;
        attacks.retain(|attack| attack.name == name_or_path || attack.kind() == name_or_path);
        if attacks.is_empty() {
            let names = BUILTIN.iter().map(|(_, name, _)| *name).chain(KINDS.iter().map(|kind| kind.name));
            return Err(ScenarioError::NoAttack {
                wanted: name_or_path.to_owned(),
                near: nearest::nearest(name_or_path, names).join(", "),
            });
        }
        Ok(attacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_attack_is_valid_and_belongs_to_a_kind() {
        let attacks = Attack::builtin().unwrap();
        assert_eq!(attacks.len(), BUILTIN.len(), "a folder below lab/attacks is not in KINDS");
        for kind in KINDS {
            assert!(attacks.iter().any(|attack| attack.kind() == kind.name), "{}: no attack of this kind", kind.name);
        }
        for attack in &attacks {
            assert!(attack.scene("/r/chokepoint").is_ok(), "{}: {:?}", attack.name, attack.scene("/r/chokepoint"));
        }
    }

    #[test]
    fn an_attack_is_found_by_its_name_its_kind_and_its_file() {
        let first = &Attack::builtin().unwrap()[0];
        assert_eq!(Attack::find(&first.name).unwrap().len(), 1);
        assert!(Attack::find(first.kind()).unwrap().len() > 1);
        let near = Attack::find(&format!("{}x", first.name)).unwrap_err().to_string();
        assert!(near.contains(&first.name), "{near}");
        assert!(Attack::find("/nonexistent.toml").is_err());
    }
}
