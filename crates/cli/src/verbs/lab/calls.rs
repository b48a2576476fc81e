//! Calls per request in a lab: counts one server's calls of a function under a separate load. Counting slows a server down, so it never runs during
//! a diagnosis.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};
use chokepoint_lab::Lab;
use chokepoint_lab::scenario::CallsExpect;
use chokepoint_load::Plan;
use chokepoint_profile::{Counting, Scope, What};
use serde::{Deserialize, Serialize};

use crate::run::calls as calls_of;

/// How long the load lasts. Counting lasts slightly longer.
const LOAD: Duration = Duration::from_secs(3);

/// The calls of one function by one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CallCount {
    /// The server's name in the scenario.
    server: String,
    /// The function, as the scenario names it.
    what: String,
    /// The probe: "uprobe libc.so.6:malloc".
    how: Option<String>,
    /// Good answers during the count.
    requests: u64,
    /// Calls per good answer; nothing if they could not be counted.
    per_request: Option<f64>,
    /// Share of the server's CPU time spent on counting.
    probe_share: Option<f64>,
    /// Why nothing was counted.
    why_not: Option<String>,
}

/// Loads the lab and counts calls at the same time.
pub(super) fn count(lab: &Lab, plan: Option<&Plan>, wanted: &CallsExpect) -> Result<CallCount> {
    let server = lab.servers().into_iter().find(|server| server.name == wanted.server);
    let server = server.with_context(|| format!("there is no server {}", wanted.server))?;
    let what: What = wanted.what.parse()?;
    let mut calls = CallCount {
        server: wanted.server.clone(),
        what: wanted.what.clone(),
        how: None,
        requests: 0,
        per_request: None,
        probe_share: None,
        why_not: None,
    };
    let mut plan = plan.context("nothing is loaded")?.clone();
    plan.duration = Some(LOAD);
    let counting = match Counting::open(&Scope::Processes(vec![server.pid]), &[what]) {
        Ok(counting) => counting,
        Err(error) => {
            calls.why_not = Some(error.to_string());
            return Ok(calls);
        }
    };
    let (counts, good) = calls_of::counted(counting, &plan)?;
    calls.requests = good;
    match counts.counts.first() {
        Some(count) => {
            calls.how = Some(count.how.clone());
            calls.per_request = Some(count.programs.iter().filter_map(|program| program.per_request).sum());
            calls.probe_share = count.programs.first().and_then(|program| program.probe_share);
        }
        None => calls.why_not = counts.not_counted.into_iter().next().map(|(_, why)| why),
    }
    Ok(calls)
}

impl CallCount {
    /// Expectations that did not hold. A count that this kernel does not support is not a failure.
    pub(super) fn failures(&self, wanted: Option<&CallsExpect>) -> Vec<String> {
        let (Some(wanted), Some(found)) = (wanted, self.per_request) else { return Vec::new() };
        let [low, high] = wanted.per_request;
        let within = (low..=high).contains(&found);
        (!within).then(|| format!("{found:.2} calls of {} a request, expected {low} to {high}", self.what)).into_iter().collect()
    }
}

impl fmt::Display for CallCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, server) = (&self.what, &self.server);
        match (self.per_request, &self.why_not) {
            (Some(calls), _) => write!(f, "{server} called {what} {calls:.2} times a request ({} requests)", self.requests),
            (None, Some(why)) => write!(f, "calls of {what} were not counted: {why}"),
            (None, None) => write!(f, "{server} did not call {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_outside_the_expected_range_are_a_failure() {
        let wanted = CallsExpect { server: "app".to_owned(), what: "malloc".to_owned(), per_request: [100.0, 200.0] };
        let calls = |per_request| CallCount {
            server: "app".to_owned(),
            what: "malloc".to_owned(),
            how: None,
            requests: 7,
            per_request,
            probe_share: None,
            why_not: Some("no uprobes".to_owned()),
        };
        assert!(calls(Some(150.0)).failures(Some(&wanted)).is_empty() && calls(Some(3.0)).failures(None).is_empty());
        assert!(calls(Some(99.0)).failures(Some(&wanted))[0].contains("99.00 calls of malloc a request, expected 100 to 200"));
        assert!(calls(None).failures(Some(&wanted)).is_empty());
        assert!(calls(Some(150.0)).to_string().contains("150.00 times a request") && calls(None).to_string().contains("no uprobes"));
    }
}
