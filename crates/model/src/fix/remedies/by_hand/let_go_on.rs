//! Advice for processes that are stopped, or that a tracer stops again and again: to let them go on.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::TracedProcesses;
use crate::facts::queue::accepting::{Idle, idle};
use crate::facts::queue::halted::{HaltedBy, HaltedProcesses, whole};
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::judge::id::FindingId;
use crate::judge::stations::accept_queue::{stopped_processes, tracing_args};
use crate::observation::CgroupVersion;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const LET_GO_ON: AdviceDef = AdviceDef {
    id: "let-go-on",
    finding: FindingId::ACCEPTS_NONE,
    activation: Activation::Live,
    advise: |ctx, placed| {
        let tier = ctx.only_tier(&placed.owner)?;
        let listener = placed.at.listener_of(tier)?;
        let Some(Idle::Stopped(pids)) = idle(ctx, tier, listener) else { return None };
        Some(advice(ctx, tier, &pids))
    },
};

/// The same for some of a server's processes.
pub(in crate::fix::remedies) const LET_SOME_GO_ON: AdviceDef = AdviceDef {
    id: "let-go-on",
    finding: FindingId::PROCESSES_STOPPED,
    activation: Activation::Live,
    advise: |ctx, placed| {
        let tier = ctx.only_tier(&placed.owner)?;
        Some(advice(ctx, tier, &stopped_processes(ctx, tier)))
    },
};

/// For processes that are traced: without the tracer.
pub(in crate::fix::remedies) const LET_DETACH: AdviceDef = AdviceDef {
    id: "let-it-detach",
    finding: FindingId::PROCESSES_TRACED,
    activation: Activation::Live,
    advise: |ctx, placed| {
        let tier = ctx.only_tier(&placed.owner)?;
        let text = tracing_args(tier, &TracedProcesses::of(ctx, tier)?, "remedy-let-it-detach-text");
        Some(Advice::words(text, "remedy-let-it-detach-risk", Lift::Further))
    },
};

fn advice(ctx: &Context<'_>, tier: &Tier, pids: &[u32]) -> Advice {
    let whole = pids.iter().find_map(|pid| whole(ctx, *pid));
    let again = || HaltedProcesses::of(ctx, tier).map(|halted| halted.most);
    let halt = whole.or_else(again);
    let is_again = whole.is_none() && halt.is_some();
    let shown: Vec<String> = pids.iter().map(u32::to_string).collect();
    let text = Message::new("remedy-let-go-on-text").with("tier", tier.name.as_str()).with("pids", shown.join(" "));
    let text = match halt.map(|halt| halt.by) {
        Some(HaltedBy::Freezer(id, freezer)) => {
            let (file, thawed) = match id.version {
                CgroupVersion::V1 => ("freezer.state", "THAWED"),
                CgroupVersion::V2 => ("cgroup.freeze", "0"),
            };
            let kind = if is_again { "thawed-again" } else { "frozen" };
            text.with("kind", kind).with("file", format!("{}/{file}", freezer.dir)).with("thawed", thawed)
        }
        _ => text.with("kind", if is_again { "again" } else { "stopped" }),
    };
    Advice::words(text, "remedy-let-go-on-risk", Lift::Further)
}
