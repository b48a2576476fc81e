//! Waits that no station shows.

use crate::facts::Context;
use crate::facts::cores::cores_are_spare;
use crate::facts::suffered::WAKES_US;
use crate::output::message::Message;

/// How many times as long as alone an answer may take in a closed loop that is limited by its connections. At the knee itself it takes up to twice as long by
/// chance.
const UNLOADED_TIMES: f64 = 3.0;

/// Answers that take much longer under load than alone although the cores are idle: they wait for something that cannot be observed (threads of one process,
/// a lock, a limit of connections). Below the knee of a closed loop an answer takes about as long as alone, and more connections would give more. Beyond it
/// they would only wait longer (Denning and Buzen, The Operational Analysis of Queueing Network Models, 1978).
pub(crate) fn waits_unseen(ctx: &Context<'_>) -> Option<Message> {
    let (alone, loaded) = ctx.answer_us()?;
    let wakes = WAKES_US * ctx.path.tiers.len() as f64;
    let waits = loaded > UNLOADED_TIMES * alone && loaded > alone + wakes && cores_are_spare(ctx);
    waits.then(|| {
        let why = Message::new("verdict-unknown-waits").with("alone", alone / 1e3).with("loaded", loaded / 1e3);
        why.with("tier", ctx.path.tiers.last().map_or("", |tier| tier.name.as_str()))
    })
}
