//! Advice for requests that wait inside a program: more room at what they wait for if that is known, otherwise where to look.

use crate::facts::Context;
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedy::Step;
use crate::judge::id::FindingId;
use crate::judge::stations::waiting::{args, found};
use crate::ledger::{Inside, WaitEvidence};
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const MORE_CONNECTIONS: AdviceDef = AdviceDef {
    id: "allow-more-connections",
    finding: FindingId::WAITS_INSIDE,
    activation: Activation::Reload,
    advise: |ctx, _| {
        let inside = found(ctx).filter(|inside| matches!(inside.evidence, Some(WaitEvidence::FullCalls(_))))?;
        let text = args(ctx, "remedy-allow-more-connections-text", &inside);
        Some(Advice::words(text, "remedy-allow-more-connections-risk", Lift::Further))
    },
};

pub(in crate::fix::remedies) const LOOK_INSIDE: AdviceDef = AdviceDef {
    id: "look-inside",
    finding: FindingId::WAITS_INSIDE,
    activation: Activation::Live,
    advise: |ctx, _| {
        let inside = found(ctx)?;
        let text: Message = args(ctx, "remedy-look-inside-text", &inside);
        Some(Advice { runtime: commands(ctx, &inside), ..Advice::words(text, "remedy-look-inside-risk", Lift::Further) })
    },
};

/// Commands that show the stacks at which the tier's threads stop, and how often they make which blocking system calls.
fn commands(ctx: &Context<'_>, inside: &Inside) -> Vec<Step> {
    let Some(pid) = ctx.path.tiers[inside.tier].pids.first() else { return Vec::new() };
    let counts = ["syscalls:sys_enter_futex", "syscalls:sys_enter_clock_nanosleep", "syscalls:sys_enter_epoll_wait"];
    let counts: Vec<String> = counts.iter().map(|name| format!("--count {name}")).collect();
    let commands = [format!("chokepoint profile --off-cpu --pid {pid}"), format!("chokepoint profile --pid {pid} {}", counts.join(" "))];
    commands.into_iter().map(Step::command).collect()
}
