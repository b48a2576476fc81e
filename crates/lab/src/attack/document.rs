//! The fields of an attack's file, schema 1 (docs/scenarios.md). Unknown fields are refused.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::scenario::names;
use crate::scenario::{ByteSize, ScenarioError, TEXT_BYTES_MAX, TimeSpan};

/// The user and group of the attacker, below those that Debian reserves for nobody (Debian policy, 9.2.2) and above those of systemd's dynamic users. No entry
/// in /etc/passwd is needed.
pub(crate) const ATTACKER: u32 = 65_531;

/// An attack.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attack {
    /// Version of the format: 1.
    pub schema: u32,
    /// Its name: lower-case letters, digits and `-`.
    pub name: String,
    /// What another user, or a container, does. It continues "another user ...".
    pub does: String,
    /// What must hold, in sentences.
    pub holds: String,
    /// Programs that the attack needs: a name, or a path.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Hosts as in a scenario; default: one, "host".
    #[serde(rename = "host", default)]
    pub(super) hosts: Vec<toml::Table>,
    /// Links as in a scenario.
    #[serde(rename = "link", default)]
    pub(super) links: Vec<toml::Table>,
    /// Files as in a scenario.
    #[serde(rename = "file", default)]
    pub(super) files: Vec<toml::Table>,
    /// Servers as in a scenario, on the host "host" unless they say another.
    #[serde(rename = "server", default)]
    pub(super) servers: Vec<toml::Table>,
    /// What is run, one after the other.
    #[serde(rename = "step")]
    pub steps: Vec<AttackStep>,
    /// Files below the run directory that are the same at the end: content, owner, mode, kind.
    #[serde(default)]
    pub unchanged: Vec<String>,
    /// Paths below the run directory where there must be nothing at the end.
    #[serde(default)]
    pub absent: Vec<String>,
    /// Files below the run directory that nobody reads.
    #[serde(default)]
    pub unread: Vec<String>,
    /// What files must contain at the end.
    #[serde(default)]
    pub contains: Vec<Contains>,
    #[serde(skip)]
    kind: String,
}

/// One step. Exactly one of `chokepoint`, `root` and `attacker` says what is run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackStep {
    /// The product's own binary with these arguments, as root.
    pub chokepoint: Option<Vec<String>>,
    /// A program that root runs.
    pub root: Option<Vec<String>>,
    /// A program that the attacker runs.
    pub attacker: Option<Vec<String>>,
    /// True: the next step begins while this one runs. It is ended after the last step.
    #[serde(default)]
    pub background: bool,
    /// In the background: the next step begins once the output contains this.
    pub until: Option<String>,
    /// The exit status must be one of these; default: 0, for `chokepoint` any but 2 (wrong usage).
    #[serde(default)]
    pub status: Vec<i32>,
    /// Longest time; default: 30 s.
    pub time: Option<TimeSpan>,
    /// Largest resident memory of `chokepoint`; default: 256 MiB.
    pub memory: Option<ByteSize>,
    /// Largest CPU time of `chokepoint`, as a share of the time that it runs: 0.5 is half of a core.
    pub cpu: Option<f64>,
    /// What its output must contain.
    #[serde(default)]
    pub says: Vec<String>,
    /// What its output must not contain.
    #[serde(default)]
    pub hides: Vec<String>,
    /// What lines of its output must contain.
    #[serde(default)]
    pub lines: Vec<Lines>,
    /// Environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Each line of an output that contains `with` must contain `have`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// Selects lines.
    pub with: String,
    /// What they must contain.
    pub have: String,
}

/// What a file must contain at the end.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contains {
    /// Path below the run directory.
    pub file: String,
    /// The text.
    pub text: String,
}

impl Attack {
    /// Reads an attack's text. `origin` is the file's name as the user knows it.
    ///
    /// # Errors
    /// [`ScenarioError::Attack`] with what is wrong.
    pub fn parse(text: &str, origin: &str, kind: &str) -> Result<Attack, ScenarioError> {
        let wrong = |why: String| ScenarioError::Attack { origin: origin.to_owned(), why };
        if text.len() > TEXT_BYTES_MAX {
            return Err(ScenarioError::TooLarge { origin: origin.to_owned(), bytes_max: TEXT_BYTES_MAX });
        }
        let text = text.replace("{attacker}", &ATTACKER.to_string());
        let mut attack: Attack = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        kind.clone_into(&mut attack.kind);
        match attack.problem() {
            Some(why) => Err(wrong(why)),
            None => Ok(attack),
        }
    }

    /// Its kind: a name of [`super::KINDS`].
    pub fn kind(&self) -> &str {
        &self.kind
    }

    fn problem(&self) -> Option<String> {
        if self.schema != 1 {
            return Some(format!("this chokepoint reads schema 1, but the file has schema {}", self.schema));
        }
        if let Err(why) = names::check_name(&self.lab_name()) {
            return Some(why);
        }
        for (n, step) in (1..).zip(&self.steps) {
            let actors = [&step.chokepoint, &step.root, &step.attacker];
            let words: Vec<_> = actors.into_iter().flatten().collect();
            let is_one = matches!(words[..], [words] if !words.is_empty());
            if !is_one {
                return Some(format!("step {n}: give one of `chokepoint`, `root` and `attacker`, with at least one word"));
            }
            if step.until.is_some() && !step.background {
                return Some(format!("step {n}: `until` needs `background`"));
            }
        }
        let is_judged = self.steps.iter().any(|step| step.chokepoint.is_some()) || self.steps.iter().any(|step| !step.says.is_empty());
        (!is_judged).then(|| "no step runs `chokepoint` or checks an output: it could not fail".to_owned())
    }

    /// The name of the lab in which it runs.
    pub(super) fn lab_name(&self) -> String {
        format!("attack-{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "does = 'd'\nholds = 'h'\nschema = 1\nname = 'x'\n";

    #[test]
    fn a_step_has_one_actor_and_an_attack_can_fail() {
        let problem =
            |rest: &str| Attack::parse(&format!("{LEAST}{rest}"), "x.toml", "files").map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(problem("[[step]]\nchokepoint = ['undo']\n"), Ok(()));
        for (rest, word) in [
            ("[[step]]\nchokepoint = ['undo']\nroot = ['true']\n", "step 1"),
            ("[[step]]\nattacker = []\n", "step 1"),
            ("[[step]]\nattacker = ['true']\n", "could not fail"),
            ("[[step]]\nchokepoint = ['undo']\nuntil = 'x'\n", "background"),
            ("steps = 1\n", "unknown field"),
        ] {
            assert!(problem(rest).is_err_and(|error| error.contains(word) && error.contains("x.toml")), "{rest}");
        }
    }
}
