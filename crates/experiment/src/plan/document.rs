//! The fields of a plan, schema 1 (docs/experiments/README.md). Unknown fields are refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A whole plan as written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Version of the format: 1.
    pub schema: u32,
    /// Name: lower-case letters, digits and `-`.
    pub name: String,
    /// One sentence: the question.
    pub title: String,
    /// True if the variants are the same on purpose (an A/A experiment, which shows what noise alone can look like).
    #[serde(default)]
    pub same: bool,
    /// What is measured: a scenario of the lab, or a running server.
    pub stack: Stack,
    /// The load of each trial. Missing fields are the scenario's.
    #[serde(default)]
    pub load: Load,
    /// What is measured besides the load.
    #[serde(default)]
    pub measure: Measure,
    /// The longest time for all trials: "3m".
    pub budget: Option<String>,
    /// The variants; instead of them, factors.
    #[serde(rename = "variant", default)]
    pub variants: Vec<NamedChange>,
    /// The factors, of whose levels all combinations are variants.
    #[serde(rename = "factor", default)]
    pub factors: Vec<Factor>,
    /// The combinations that are measured, each a level of every factor, in order; default: all.
    #[serde(default)]
    pub only: Vec<Vec<String>>,
}

/// What is measured.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// A scenario: a built-in name, or a path relative to the plan.
    pub scenario: Option<String>,
    /// Or a URL of a running server.
    pub url: Option<String>,
    /// The server on whose cores and processes the table reports; default: the one that clients reach.
    pub server: Option<String>,
}

/// The load of each trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Requests a second of an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Whether connections are reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<bool>,
    /// Path and query of the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Additional header fields.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Length of a trial: "2s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<String>,
    /// Load before the trial, which is not counted: "500ms".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<String>,
    /// Longest time of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
}

/// What is measured besides the load.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// The figure that decides; default: goodput.
    pub decide: Option<String>,
    /// Functions whose calls per request are counted after the trials, as `chokepoint profile --count` names them.
    #[serde(default)]
    pub calls: Vec<String>,
    /// Whether a profile of each variant is taken after the trials.
    #[serde(default)]
    pub profile: bool,
    /// The half width of the interval, percent, at which the experiment stops early.
    pub precision: Option<f64>,
}

/// A named change: a variant, or a level of a factor. In the file its name stands beside the fields of [`Change`].
#[derive(Debug, Clone)]
pub struct NamedChange {
    /// Its name, unique among the variants or levels.
    pub name: String,
    /// What it changes.
    pub change: Change,
}

/// By hand, because a flattened field would let unknown fields pass.
impl<'de> Deserialize<'de> for NamedChange {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let mut table = toml::Table::deserialize(deserializer)?;
        let name = table.remove("name").ok_or_else(|| D::Error::missing_field("name"))?;
        let name = name.as_str().ok_or_else(|| D::Error::custom("a name is a text"))?.to_owned();
        let change = Change::deserialize(table).map_err(|error| D::Error::custom(error.message().to_owned()))?;
        Ok(Self { name, change })
    }
}

/// A factor.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Its levels; the first is the one that the others are compared with.
    #[serde(rename = "level")]
    pub levels: Vec<NamedChange>,
}

/// What a variant changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Change {
    /// Values of the scenario's placeholders `{set:NAME}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, Value>,
    /// Environment variables by server.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, BTreeMap<String, String>>,
    /// Command by server.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub command: BTreeMap<String, Vec<String>>,
    /// Cores by server.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cpus: BTreeMap<String, Vec<u32>>,
    /// Pieces of configuration text that are replaced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<Replace>,
    /// Kernel parameters by host of the scenario; for a running server under the name of `server`, its own namespace.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, BTreeMap<String, Value>>,
    /// Commands run before the variant's trials, in this order. A program and its arguments each; no shell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<Vec<String>>,
    /// Commands run after the variant's trials, also after a failure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub teardown: Vec<Vec<String>>,
    /// Another load. Only levels of a factor may have one: variants with different loads are not compared.
    #[serde(skip_serializing_if = "Load::is_none")]
    pub load: Load,
    /// What must hold for the variant to be what it claims, besides what follows from the fields above.
    #[serde(skip_serializing_if = "Verify::is_none")]
    pub verify: Verify,
}

/// A piece of configuration text that is replaced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replace {
    /// The server.
    pub server: String,
    /// The text, which must be in its configuration exactly once.
    pub find: String,
    /// What takes its place.
    pub with: String,
}

/// What must hold while a variant runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Verify {
    /// Part of the path of a library that every process of a server has mapped, by server.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mapped: BTreeMap<String, String>,
    /// Part of the path of a library that no process of a server has mapped.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub not_mapped: BTreeMap<String, String>,
    /// Number of processes below a server's first one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub workers: BTreeMap<String, u32>,
    /// Whether connections that a host's programs accept are kept: opened connections per good answer below a half, or not.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<String, bool>,
}

/// A text or a number in a plan, kept as written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Load {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// This load with the fields that another one has.
    pub fn with(&self, other: &Self) -> Self {
        let mut headers = self.headers.clone();
        headers.extend(other.headers.clone());
        Self {
            connections: other.connections.or(self.connections),
            rate: other.rate.or(self.rate),
            keep_alive: other.keep_alive.or(self.keep_alive),
            path: other.path.clone().or_else(|| self.path.clone()),
            headers,
            trial: other.trial.clone().or_else(|| self.trial.clone()),
            warm_up: other.warm_up.clone().or_else(|| self.warm_up.clone()),
            timeout: other.timeout.clone().or_else(|| self.timeout.clone()),
        }
    }
}

impl Verify {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Change {
    /// This change and another one. Where both set the same thing, the other one's value counts.
    pub fn and(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.set.extend(other.set.clone());
        for (server, env) in &other.env {
            all.env.entry(server.clone()).or_default().extend(env.clone());
        }
        for (host, sysctls) in &other.sysctls {
            all.sysctls.entry(host.clone()).or_default().extend(sysctls.clone());
        }
        all.command.extend(other.command.clone());
        all.cpus.extend(other.cpus.clone());
        all.config.extend(other.config.iter().cloned());
        all.setup.extend(other.setup.iter().cloned());
        // What was set up last is torn down first.
        all.teardown = other.teardown.iter().chain(&self.teardown).cloned().collect();
        all.load = self.load.with(&other.load);
        all.verify.mapped.extend(other.verify.mapped.clone());
        all.verify.not_mapped.extend(other.verify.not_mapped.clone());
        all.verify.workers.extend(other.verify.workers.clone());
        all.verify.kept.extend(other.verify.kept.clone());
        all
    }
}
