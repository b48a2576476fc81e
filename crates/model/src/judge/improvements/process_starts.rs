//! Processes that are started for requests and end after them. It is waste: a process that stays serves the next request without a start.

use super::hot::{Hot, Sight, WorkJudgement};
use crate::facts::profile::{PAGE_FAULT, PROCESS_START, ProfileShare, is_of};
use crate::judge::finding::Evidence;
use crate::observation::ProfilePart;
use crate::output::message::Message;

/// What they cost, with their number for each response; `None` if the tier started none, so that the work is that of threads, or if it was not read.
pub(super) fn judge(sight: &Sight<'_, '_>, hot: &Hot, named: ProfileShare) -> Option<WorkJudgement> {
    let per_s = sight.profiled.starts_per_s(sight.tier).filter(|per_s| *per_s > 0.0)?;
    // A process that stays has its memory from the requests before.
    let is_start = |part: &ProfilePart| is_of(part, PROCESS_START) || part.is_started && part.layer == PAGE_FAULT;
    let share = sight.share(is_start).unwrap_or(named);
    let rate_rps = sight.ctx.account().and_then(|account| account.rate_rps()).filter(|rate_rps| *rate_rps > 0.0);
    let text = Message::new("evidence-process-starts").with("tier", sight.tier.name.as_str()).with("per_s", per_s);
    let text = text.with("is_known", if rate_rps.is_some() { "yes" } else { "no" });
    let text = text.with("each", rate_rps.map_or(0.0, |rate_rps| per_s / rate_rps));
    let proof = Evidence::new(text, sight.profiled.source(), Some(per_s));
    Some(WorkJudgement { is_wasted: true, proofs: vec![proof], ..WorkJudgement::of(hot, share) })
}
