//! Finding `processes-traced`: requests wait because a tracer (strace, a debugger) stops the threads that serve them at every step.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::TracedProcesses;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::ledger::tenths;
use crate::output::message::Message;
use crate::output::report::Confidence;

use super::longest;

/// The finding of each tier that a tracer slows down. It stands at the tier's listener with the longest queue.
pub(super) fn judge(ctx: &Context<'_>, read: &[StationReading]) -> Vec<Finding> {
    let of_tier = |tier: &Tier| {
        let traced = TracedProcesses::of(ctx, tier).filter(|traced| traced.hurt(ctx))?;
        Some(finding(ctx, tier, &traced, longest(ctx, read, tier)?))
    };
    ctx.path.tiers.iter().filter_map(of_tier).collect()
}

/// Notes of the tiers that are traced and for which that is no finding: it costs, and somebody may have forgotten it.
pub(crate) fn notes(ctx: &Context<'_>, findings: &[Finding]) -> Vec<Message> {
    let is_found =
        |tier: &Tier| findings.iter().any(|finding| finding.id == FindingId::PROCESSES_TRACED && finding.owner.tiers().contains(&tier.id));
    let of_tier = |tier: &Tier| Some(args(tier, &TracedProcesses::of(ctx, tier)?, "warning-traced"));
    ctx.path.tiers.iter().filter(|tier| !is_found(tier)).filter_map(of_tier).collect()
}

/// Who traces processes of a tier, and which.
pub(crate) fn args(tier: &Tier, traced: &TracedProcesses, id: &'static str) -> Message {
    let list: Vec<String> = traced.pids.iter().map(u32::to_string).collect();
    let message = Message::new(id).with("tier", tier.name.as_str()).with("pids", list.join(", ")).with("tracer", traced.tracer.to_string());
    let message = message.with("name", traced.name.as_deref().unwrap_or("?")).with("processes", traced.pids.len() as f64);
    message.with("kind", if traced.pids.len() < traced.of { "some" } else { "all" }).with("all", traced.of as f64)
}

fn finding(ctx: &Context<'_>, tier: &Tier, traced: &TracedProcesses, at: &StationReading) -> Finding {
    let args = |id: &'static str| args(tier, traced, id);
    let share = (100.0 * traced.stopped).round();
    let stopped = args("evidence-processes-traced-stopped").with("share", share).with("looks", traced.looks as f64);
    let under_way = ctx.account().map_or(0.0, |account| account.under_way());
    let waiting = args("evidence-processes-traced-waiting").with("waiting", tenths(traced.waiting)).with("under_way", tenths(under_way));
    Finding {
        confidence: Confidence::High,
        title: args("finding-processes-traced-title"),
        evidence: vec![
            Evidence::new(args("evidence-processes-traced-by"), "/proc/PID/status", None),
            Evidence::new(stopped, "/proc/PID/task/TID/stat", Some(share)),
            Evidence::new(waiting, "sock_diag", Some(tenths(traced.waiting))),
        ],
        explanation: vec![args("finding-processes-traced-explanation")],
        ..at.finding(FindingId::PROCESSES_TRACED)
    }
}
