//! What only the start of our own load did: a burst that no later client meets. Beside a cause that costs more over the whole load it is a note.

use crate::facts::Context;
use crate::facts::owner::Owner;
use crate::judge::finding::Finding;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::judge::stations::accept_queue;
use crate::output::message::{Message, Value};
use crate::output::report::StationState;

/// Takes away the findings about accept queues that overflowed at the start of the load alone, if another finding costs the clients more, and returns a note for
/// each. What another finding costs has to be known: else the start may be what hurts.
pub(super) fn put_aside(ctx: &Context<'_>, stations: &mut [StationReading], findings: &mut Vec<Finding>) -> Vec<Message> {
    let is_start = |finding: &Finding| matches!(finding.id, FindingId::ACCEPT_QUEUE_FULL | FindingId::NOT_IN_FORCE);
    let others = findings.iter().filter(|finding| finding.owner != Owner::Client && finding.id != FindingId::ACCEPT_QUEUE_FULL);
    let Some(most) = others.filter_map(|finding| finding.lost_time).reduce(f64::max) else { return Vec::new() };
    let mut notes = Vec::new();
    for reading in stations.iter_mut().filter(|reading| accept_queue::began_with_load(ctx, reading)) {
        let full = findings.iter().find(|finding| finding.id == FindingId::ACCEPT_QUEUE_FULL && reading.is_of(finding));
        let Some(lost) = full.and_then(|full| full.lost_time).filter(|lost| *lost < most) else { continue };
        findings.retain(|finding| !(is_start(finding) && reading.is_of(finding)));
        // The same figures in another sentence.
        reading.why.id = accept_queue::AT_START;
        reading.state = StationState::Near;
        let mut note = Message { id: "warning-start-drops", args: reading.why.args.clone() };
        note.args.insert("share", Value::Number(lost * 100.0));
        notes.push(note);
    }
    notes
}
