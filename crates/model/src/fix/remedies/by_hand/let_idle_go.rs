//! Advice for workers that are kept by idle connections: to let those go sooner, or to keep them without a worker.

use crate::facts::pool::{EndsAwaited, IdleHeld, PoolKind, keeping};
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::judge::id::FindingId;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const LET_IDLE_GO: AdviceDef = AdviceDef {
    id: "let-idle-connections-go",
    finding: FindingId::WAITS_FOR_CLIENTS,
    activation: Activation::Reload,
    advise: |ctx, placed| {
        let tier = ctx.only_tier(&placed.owner).filter(|tier| EndsAwaited::of(ctx, tier).is_none())?;
        let held = IdleHeld::of(ctx, tier)?;
        let setting = keeping(ctx, tier);
        let caller = ctx.path.callers(tier.id).next();
        let id = match (held.kind, caller) {
            (PoolKind::Loops, _) => "remedy-let-idle-connections-go-text-loops",
            (_, Some(_)) => "remedy-let-idle-connections-go-text-behind",
            (_, None) => "remedy-let-idle-connections-go-text",
        };
        let caller = caller.map_or("", |caller| caller.name.as_str());
        let text = Message::new(id).with("tier", tier.name.as_str()).with("caller", caller).with("setting", setting.unwrap_or("unknown"));
        let text = text.with("workers", held.workers as f64).with("all", (held.taken + held.waiting).round());
        let text = text
            .with("unit", if held.kind == PoolKind::Threads { "threads" } else { "workers" })
            .with("waiting", held.waiting.round())
            .with("taken", held.taken.round());
        Some(Advice::words(text, "remedy-let-idle-connections-go-risk", Lift::Further))
    },
};
