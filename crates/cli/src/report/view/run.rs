//! When and where a run was, in a few words: for reports that are written to a file.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, RunReport};

use super::Phrases;

/// The time, the host, the kernel and the version, as far as they are known. A replay takes them from the recording.
pub(crate) fn facts(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<String> {
    let Some(RunReport { time, host, kernel, version }) = &diagnosis.run else { return Vec::new() };
    let all = [("report-run-time", time), ("report-run-host", host), ("report-run-kernel", kernel), ("report-run-version", version)];
    let known = all.into_iter().filter_map(|(id, value)| Some((id, value.as_deref()?)));
    known.map(|(id, value)| phrases.say(&Message::new(id).with("value", value))).collect()
}
