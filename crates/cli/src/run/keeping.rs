//! Keeps runs for `chokepoint runs`. A run that cannot be kept is a note, never a failure of the measurement.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use chokepoint_load::{Plan, Stages};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::load::{Loop, Percentiles};
use chokepoint_model::message::Message;
use chokepoint_model::outcome::utc;
use chokepoint_model::report::{LoadReport, Served};
use chokepoint_model::url::without_values;
use chokepoint_runs::{Better, Figure, NewRun, State, Store};
use serde::Serialize;
use serde_json::Value;

use crate::args::Keep;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;

/// When a run began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    time: SystemTime,
    at: Instant,
}

impl Begun {
    /// Now.
    pub(crate) fn now() -> Self {
        Self { time: SystemTime::now(), at: Instant::now() }
    }

    /// A run of this verb and target that ends now, without figures yet. `interrupt`: whether the user stopped it.
    pub(crate) fn run(&self, kind: &str, target: &str, interrupt: &Interrupt) -> NewRun {
        NewRun {
            kind: kind.to_owned(),
            state: if interrupt.is_set() { State::Interrupted } else { State::Done },
            began: rfc3339(self.time),
            duration_s: self.at.elapsed().as_secs_f64(),
            target: without_values(target),
            label: String::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            headline: String::new(),
            figures: Vec::new(),
            surroundings: BTreeMap::new(),
            load: BTreeMap::new(),
            document: "null".to_owned(),
            fingerprint: None,
        }
    }
}

/// A time as RFC 3339 in UTC, to the second.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).ok().and_then(utc).unwrap_or_default()
}

/// Keeps a run, unless the user does not want that. `run` is called only if it is wanted.
pub(crate) fn keep(args: &Keep, words: &Catalogue, run: impl FnOnce() -> Result<NewRun>) {
    if args.no_keep {
        return;
    }
    let kept = run().and_then(|run| {
        let run = NewRun { label: args.label.clone().unwrap_or_default(), ..run };
        Ok(Store::open(&directory(words)?)?.add(&run)?)
    });
    if let Err(error) = kept {
        output::note(&words.text(&Message::new("runs-not-kept").with("why", output::once(&error))));
    }
}

/// The directory of the kept runs.
///
/// # Errors
/// No variable names one.
pub(crate) fn directory(words: &Catalogue) -> Result<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let known = chokepoint_remedy::default_state_dir(uid, |name| std::env::var_os(name));
    known.ok_or_else(|| anyhow::anyhow!(words.text(&Message::new("runs-no-directory"))))
}

/// The field of a kept document with the report as a page: it reads the same in a newer program.
const PAGE: &str = "page";

/// A report, and the same as a page if it has one, as the JSON text to keep: without values of queries and user information in URLs, whatever the report itself hides.
///
/// # Errors
/// The report cannot be written as JSON.
pub(crate) fn document(report: &impl Serialize, page: Option<Value>) -> Result<String> {
    let mut value = serde_json::to_value(report)?;
    if let (Some(fields), Some(page)) = (value.as_object_mut(), page) {
        fields.insert(PAGE.to_owned(), page);
    }
    hide(&mut value);
    Ok(value.to_string())
}

/// A kept document as the verb printed it, and its page.
pub(crate) fn parts(document: &str) -> (Value, Option<Value>) {
    let mut value: Value = serde_json::from_str(document).unwrap_or_default();
    let page = value.as_object_mut().and_then(|fields| fields.remove(PAGE));
    (value, page)
}

fn hide(value: &mut Value) {
    match value {
        Value::String(text) => *text = without_values(text),
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(fields) => fields.values_mut().for_each(hide),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The figures of a load, the main one first.
pub(crate) fn figures(load: &LoadReport) -> Vec<Figure> {
    let failed = load.failed_share().map(|share| ("failed", share * 100.0, "%", Better::Less));
    let rates = [("goodput", load.goodput_rps, "/s", Better::More), ("throughput", load.throughput_rps, "/s", Better::More)];
    let named = |all: Percentiles| [("p50", all.p50), ("p90", all.p90), ("p99", all.p99), ("p99.9", all.p999), ("max", all.max)];
    let times = load.latency_us.map(named).into_iter().flatten().map(|(name, us)| (name, us as f64, "us", Better::Less));
    let all = rates.into_iter().chain(failed).chain(times).filter(|(_, value, ..)| value.is_finite());
    all.map(|(name, value, unit, better)| Figure { name: name.to_owned(), value, unit: unit.to_owned(), better }).collect()
}

/// The figures before a fix that stays, after those of the state in which the run left the server.
pub(crate) fn figures_before(served: &Served) -> Vec<Figure> {
    let failed = served.failed_share.map(|share| ("failed before", share * 100.0, "%", Better::Less));
    let p99 = served.p99_us.map(|us| ("p99 before", us as f64, "us", Better::Less));
    let all = [("goodput before", served.goodput_rps, "/s", Better::More)]
        .into_iter()
        .chain(p99)
        .chain(failed)
        .filter(|(_, value, ..)| value.is_finite());
    all.map(|(name, value, unit, better)| Figure { name: name.to_owned(), value, unit: unit.to_owned(), better }).collect()
}

/// The load that was offered, as names and values. Of headers it keeps the names, of a body the length.
pub(crate) fn load(plan: &Plan) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut set = |name: &str, value: String| drop(all.insert(name.to_owned(), value));
    match plan.shape {
        Loop::Closed { connections } => {
            set("loop", "closed".to_owned());
            set("connections", connections.to_string());
        }
        Loop::Open { rate_per_s, connections } => {
            set("loop", "open".to_owned());
            set("rate", format!("{rate_per_s}/s"));
            set("connections", format!("up to {connections}"));
        }
    }
    let seconds = |duration: std::time::Duration| format!("{} s", duration.as_secs_f64());
    set("timeout", seconds(plan.timeout));
    set("method", plan.method.clone());
    set("connections are kept", plan.keep_alive.to_string());
    let names = |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let options = &plan.options;
    let optional = [
        ("duration", plan.duration.map(seconds)),
        ("requests", plan.requests.map(|requests| requests.to_string())),
        ("headers", Some(names(&plan.headers)).filter(|names| !names.is_empty())),
        ("body (bytes)", Some(plan.body.len()).filter(|length| *length > 0).map(|length| length.to_string())),
        ("warm-up", Some(options.warm_up).filter(|time| !time.is_zero()).map(seconds)),
        ("requests per connection", options.requests_per_connection.map(|requests| requests.to_string())),
        ("targets", options.targets.as_ref().map(|targets| targets.targets.len().to_string())),
        ("stages", options.stages.as_ref().map(stages)),
        ("threads", plan.threads.map(|threads| threads.to_string())),
        ("cores of the generator", plan.cpus.as_ref().map(|cpus| format!("{cpus:?}"))),
        ("source addresses", Some(options.bind.len()).filter(|count| *count > 0).map(|count| count.to_string())),
    ];
    for (name, value) in optional {
        value.into_iter().for_each(|value| set(name, value));
    }
    all
}

/// Stages as --stages takes them, with the rate from which they start.
fn stages(stages: &Stages) -> String {
    let stage = |stage: &chokepoint_load::Stage| format!("{}s:{}", stage.duration.as_secs_f64(), stage.rate_per_s);
    format!("from {}/s: {}", stages.start_per_s, stages.stages.iter().map(stage).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_document_has_no_values_of_queries_and_no_user_information() {
        let report =
            serde_json::json!({ "url": "http://user:secret@h/?token=abc", "samples": ["GET /x?key=\"q\" failed"], "n": 1.5, "none": null });
        let kept = document(&report, Some(serde_json::json!({ "subject": "http://h/?token=secret" }))).expect("JSON");
        let back: Value = serde_json::from_str(&kept).expect("JSON");
        assert!(!kept.contains("secret") && !kept.contains("abc"), "{kept}");
        assert_eq!((&back["n"], &back["none"]), (&serde_json::json!(1.5), &Value::Null));
        let (document, page) = parts(&kept);
        assert!(document.get("page").is_none() && document["n"] == 1.5 && page.is_some_and(|page| page["subject"].is_string()));
        assert_eq!(parts("no JSON"), (Value::Null, None));
    }

    #[test]
    fn times_are_in_utc_to_the_second() {
        assert_eq!(rfc3339(UNIX_EPOCH + std::time::Duration::from_millis(951_782_400_999)), "2000-02-29T00:00:00Z");
    }
}
