//! A log that records each step of each request. It is waste, unless somebody wants it written under load.

use super::hot::{Hot, Sight, WorkJudgement};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::profile::ProfileShare;
use crate::judge::finding::Evidence;
use crate::observation::{NginxConfig, Origin, ServerView};
use crate::output::message::Message;

/// Bytes per mebibyte, the unit for the growth of a log.
const MIB: f64 = (1 << 20) as f64;

/// Whose doing it is; `None` if no log in force records each step, because what is written then is errors.
pub(super) fn judge(sight: &Sight<'_, '_>, hot: &Hot, share: ProfileShare) -> Option<WorkJudgement> {
    let ctx = sight.ctx;
    let nginx = ctx.nginx_of(sight.tier).filter(|nginx| !nginx.debug_logs.is_empty() || nginx.rewrite_log.is_some())?;
    let mut judged = WorkJudgement { is_wasted: true, ..WorkJudgement::of(hot, share) };
    for log in &nginx.debug_logs {
        let text = Message::new("evidence-debug-log").with("to", log.to.as_str()).with("levels", log.levels.as_str());
        judged.proofs.push(proof(text, &log.origin));
    }
    judged.proofs.extend(nginx.rewrite_log.as_ref().map(|origin| proof(Message::new("evidence-rewrite-log"), origin)));
    judged.proofs.extend(grew(ctx, sight.tier));
    if let Some((id, origin)) = meant(nginx) {
        judged.is_wasted = false;
        judged.explanation = "finding-debug-log-explanation-meant";
        judged.proofs.push(proof(Message::new(id), origin));
    }
    Some(judged)
}

/// What shows that somebody wants these lines from a server under load. They are no waste then.
fn meant(nginx: &NginxConfig) -> Option<(&'static str, &Origin)> {
    let first = nginx.debug_logs.first()?;
    if nginx.debug_connections {
        return Some(("evidence-debug-connection", &first.origin));
    }
    let all = nginx.rewrite_log.is_none() && nginx.debug_logs.iter().all(|log| log.is_memory);
    all.then_some(("evidence-debug-log-memory", &first.origin))
}

/// How much was written, if the files could be read.
fn grew(ctx: &Context<'_>, tier: &Tier) -> Option<Evidence> {
    let requests = ctx.obs.load.as_ref().map(|load| load.requests).filter(|requests| *requests > 0)?;
    let views = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid));
    let logs = views.flat_map(|view: &ServerView| view.error_logs.values()).filter_map(|log| log.last());
    let extents = logs.map(|log| log.extent).filter(|extent| !extent.rotated);
    let bytes: u64 = extents.map(|extent| extent.skipped_bytes.saturating_add(extent.read_bytes)).fold(0, u64::saturating_add);
    let text = Message::new("evidence-debug-log-grew").with("tier", tier.name.as_str()).with("mib", bytes as f64 / MIB);
    let text = text.with("bytes", (bytes / requests) as f64);
    (bytes > 0).then(|| Evidence::new(text, "error log", Some(bytes as f64)))
}

fn proof(text: Message, origin: &Origin) -> Evidence {
    Evidence::new(text, origin.to_string(), None)
}
