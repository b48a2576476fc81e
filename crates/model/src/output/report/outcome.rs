//! What a run of `--fix` achieved: the server before and after, and which settings each round changed. And when and where the run was.

use serde::{Deserialize, Serialize};

use super::{LoadReport, Verdict};

impl LoadReport {
    /// 99th percentile of the response times, microseconds; `None` if no times were read.
    pub fn p99_us(&self) -> Option<u64> {
        self.latency_us.map(|times| times.p99)
    }
}

/// A remedy that could not be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotApplied {
    /// Its id.
    pub remedy: String,
    /// Why.
    pub why: String,
}

/// What a place must cost to be worth a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HarmRule {
    /// The share by which goodput would rise without it, 0 to 1.
    pub goodput_share: f64,
    /// Or the share of the requests that fail there, or are slow because of it.
    pub requests_share: f64,
    /// One sentence.
    pub text: String,
}

/// How the server served at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Served {
    /// Expected answers within the timeout, per second.
    pub goodput_rps: f64,
    /// Share of the completed requests that were not answered as expected, 0 to 1; `None` if nothing completed.
    pub failed_share: Option<f64>,
    /// 99th percentile of the response time, microseconds; `None` if no response times were read.
    pub p99_us: Option<u64>,
    /// What limited the server, in a few words.
    pub limit: String,
    /// The verdict of that measurement.
    pub verdict: Verdict,
}

/// One setting that a round changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    /// The setting: "net.core.somaxconn", "nginx worker_connections".
    pub setting: String,
    /// The same in a few words: "conntrack table".
    pub name: String,
    /// Where it is: a network namespace, a cgroup directory or a file.
    pub place: String,
    /// Its value before.
    pub from: String,
    /// Its value in the round.
    pub to: String,
}

/// What `--fail-if` asked, and what came of it, judged by the state in which the run left the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailIfReport {
    /// The expression as written.
    pub expression: String,
    /// True if one of its conditions held.
    pub held: bool,
    /// Its conditions in their order.
    pub conditions: Vec<FailIfCondition>,
}

/// One condition of [`FailIfReport`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailIfCondition {
    /// The condition as written: "choked", "p99>250ms".
    pub condition: String,
    /// True if it held.
    pub held: bool,
    /// The measured value in `unit`; `None` if the condition names a verdict, or if no request ended that could be measured.
    pub measured: Option<f64>,
    /// The unit of that value; `None` if the condition names a verdict.
    pub unit: Option<FailIfUnit>,
    /// The verdict that was reached; `None` if the condition names a figure.
    pub verdict: Option<Verdict>,
}

/// Unit of a measured value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailIfUnit {
    /// Microseconds.
    Us,
    /// A share from 0 to 1.
    Share,
    /// Requests a second.
    PerSecond,
}

/// When and where the run was, and what measured it. A replay takes it from the recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReport {
    /// When the run began, UTC (RFC 3339); `None` in old recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The host's name; `None` in old recordings and where names are redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The kernel's release (`uname -r`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The version of chokepoint that measured; `None` in old recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}
