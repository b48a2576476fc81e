//! Finding `processes-stopped`: requests wait for processes of a server that a signal, a debugger or a frozen control group has stopped, all the time or again and again.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::StoppedProcesses;
use crate::facts::queue::accepting::{Idle, idle};
use crate::facts::queue::halted::{HaltedProcesses, halted_by};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::judge::unseen::paused_share;
use crate::ledger::tenths;
use crate::output::message::Message;
use crate::output::report::Confidence;

use super::slow::{halted_words, state_file, stopped_proof};
use super::{listener_of, longest};

/// The finding of each tier with stopped processes that no other finding (`found`) names. It stands at the tier's listener with the longest queue.
pub(super) fn judge(ctx: &Context<'_>, read: &[StationReading], found: &[Finding]) -> Vec<Finding> {
    let of_tier = |tier: &Tier| {
        let at = longest(ctx, read, tier)?;
        let stopped = of(ctx, tier, found.iter()).filter(|stopped| stopped.hurt(ctx));
        let again = || {
            HaltedProcesses::of(ctx, tier).filter(|halted| halted.hurt(ctx, paused_share(ctx))).map(|halted| again(ctx, tier, &halted, at))
        };
        stopped.map(|stopped| finding(ctx, tier, &stopped, at)).or_else(again)
    };
    ctx.path.tiers.iter().filter_map(of_tier).collect()
}

/// The stopped processes of a tier without those whose queue nobody accepts from, if a finding tells that.
fn of<'f>(ctx: &Context<'_>, tier: &Tier, found: impl Iterator<Item = &'f Finding>) -> Option<StoppedProcesses> {
    let none = found.filter(|finding| finding.id == FindingId::ACCEPTS_NONE && finding.owner.has(tier.id));
    let why = none.filter_map(|finding| idle(ctx, tier, finding.at.listener_of(tier)?));
    let told: Vec<u32> = why.flat_map(|why| if let Idle::Stopped(pids) = why { pids } else { Vec::new() }).collect();
    StoppedProcesses::of(ctx, tier, &told)
}

/// The stopped processes that this finding names.
pub(crate) fn named(ctx: &Context<'_>, tier: &Tier) -> Vec<u32> {
    StoppedProcesses::of(ctx, tier, &[]).map_or_else(Vec::new, |stopped| stopped.pids)
}

fn finding(ctx: &Context<'_>, tier: &Tier, stopped: &StoppedProcesses, at: &StationReading) -> Finding {
    let StoppedProcesses { pids, of, held, queued } = stopped;
    let list: Vec<String> = pids.iter().map(u32::to_string).collect();
    let listener = listener_of(ctx, at).map(|(_, placed)| placed.listener.address.to_string()).unwrap_or_default();
    let under_way = ctx.account().map_or(0.0, |account| account.under_way());
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("pids", list.join(", ")).with("listener", listener.as_str());
        let message = message.with("processes", pids.len() as f64).with("all", *of as f64).with("under_way", tenths(under_way));
        let message = message.with("kind", if pids.len() < *of { "some" } else { "all" });
        message.with("held", tenths(*held)).with("queued", tenths(*queued)).with("state", halted_words(halted_by(ctx, pids)))
    };
    let mut evidence = vec![stopped_proof(ctx, pids)];
    let stands = [("evidence-processes-stopped-held", *held), ("evidence-processes-stopped-queued", *queued)];
    evidence.extend(
        stands
            .into_iter()
            .filter(|(_, number)| *number > 0.0)
            .map(|(id, number)| Evidence::new(args(id), "sock_diag", Some(tenths(number)))),
    );
    Finding {
        confidence: Confidence::High,
        title: args("finding-processes-stopped-title"),
        evidence,
        explanation: vec![args("finding-processes-stopped-explanation")],
        ..at.finding(FindingId::PROCESSES_STOPPED)
    }
}

/// For processes that go on each time.
fn again(ctx: &Context<'_>, tier: &Tier, halted: &HaltedProcesses<'_>, at: &StationReading) -> Finding {
    let HaltedProcesses { pids, of, most, share, waiting } = halted;
    let list: Vec<String> = pids.iter().map(u32::to_string).collect();
    let under_way = ctx.account().map_or(0.0, |account| account.under_way());
    // Halted in each look, it ran at least once in between.
    let share = share.min(most.looks as f64 / (most.looks as f64 + 1.0));
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("pids", list.join(", ")).with("state", halted_words(most.by));
        let message = message.with("processes", pids.len() as f64).with("all", *of as f64).with("share", (100.0 * share).round());
        message.with("kind", if pids.len() < *of { "again-some" } else { "again" })
    };
    let seen = args("evidence-processes-stopped-again").with("looks", most.looks as f64).with("halted", most.halted as f64);
    let waits = args("evidence-processes-stopped-waiting").with("waiting", tenths(*waiting)).with("under_way", tenths(under_way));
    Finding {
        confidence: Confidence::High,
        title: args("finding-processes-stopped-title"),
        evidence: vec![
            Evidence::new(seen.with("pid", most.pid.to_string()), state_file(most.by), Some(most.halted as f64)),
            Evidence::new(waits, "sock_diag", Some(tenths(*waiting))),
        ],
        explanation: vec![args("finding-processes-stopped-explanation")],
        ..at.finding(FindingId::PROCESSES_STOPPED)
    }
}
