//! Waits that no station shows.

use crate::facts::Context;
use crate::facts::cores::{cores_are_spare, other_tenants};
use crate::facts::suffered::WAKES_US;
use crate::output::message::Message;
use crate::output::report::LedgerPlaceKind;

/// How many times as long as alone an answer may take in a closed loop that is limited by its connections. At the knee itself it takes up to twice as long by
/// chance.
const UNLOADED_TIMES: f64 = 3.0;

/// Answers that take much longer under load than alone although the cores are idle: they wait for something that cannot be observed (threads of one process,
/// a lock, a limit of connections). Below the knee of a closed loop an answer takes about as long as alone, and more connections would give more. Beyond it
/// they would only wait longer (Denning and Buzen, The Operational Analysis of Queueing Network Models, 1978).
pub(crate) fn waits_unseen(ctx: &Context<'_>) -> Option<Message> {
    let (alone, loaded) = ctx.answer_us()?;
    let waits = is_slower(ctx, alone, loaded) && cores_are_spare(ctx);
    waits.then(|| {
        let why = Message::new("verdict-unknown-waits").with("alone", alone / 1e3).with("loaded", loaded / 1e3);
        let others = other_tenants(ctx).into_iter().map(|(_, share)| 100.0 * share).fold(0.0, f64::max);
        why.with("others", others).with("tier", ctx.path.tiers.last().map_or("", |tier| tier.name.as_str()))
    })
}

/// True if answers take so much longer at the servers alone, where requests were found: what they spend on the way and at the client is all that a generator without
/// a core makes longer.
pub(crate) fn at_servers(ctx: &Context<'_>) -> bool {
    let Some((account, (alone, loaded))) = ctx.account().zip(ctx.answer_us()) else { return false };
    let is_at_server = |place| {
        use LedgerPlaceKind::{AcceptQueue, Cpu, Ready, Throttled, Unread, Waiting};
        matches!(place, AcceptQueue | Unread | Cpu | Ready | Throttled | Waiting)
    };
    let share = account.at(is_at_server) / account.under_way().max(f64::MIN_POSITIVE);
    is_slower(ctx, alone, share.min(1.0) * loaded)
}

fn is_slower(ctx: &Context<'_>, alone: f64, loaded: f64) -> bool {
    let wakes = WAKES_US * ctx.path.tiers.len() as f64;
    loaded > UNLOADED_TIMES * alone && loaded > alone + wakes
}
