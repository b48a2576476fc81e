//! Remedy `raise-syn-backlog`: allows as many open handshakes as the listener itself has room for (`tcp_max_syn_backlog`).

use crate::facts::Context;
use crate::fix::change::{Activation, Change};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedies::sums::Advised;
use crate::fix::remedy::Signal;
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::judge::stations::syn_queue::{KEY_BACKLOG, queue_of};
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "raise-syn-backlog", finding: FindingId::SYN_QUEUE_FULL, activation: Activation::Live, propose };

/// Largest value proposed: twice this still fits the kernel's signed number.
const BACKLOG_MAX: u64 = 1 << 20;

/// Applies only if the sysctl limits the queue. Beyond the listener's own backlog it gives no room.
fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let id = placed.at.netns?;
    let queue = queue_of(ctx, placed)?;
    queue.backlog_limit?;
    let from = ctx.obs.netns.get(&id)?.sysctl_number(KEY_BACKLOG)?;
    // The kernel gives unknown peers only three quarters of it.
    let sum = Message::new("sum-handshakes").with("limit", queue.listen_limit);
    let advised =
        Advised::new(queue.listen_limit.saturating_mul(2) as f64, sum).power_of_two(u64::MAX).at_most(BACKLOG_MAX, "sum-handshakes-most");
    let to = Some(advised.number).filter(|to| *to > from)?;
    let change = Change::Sysctl {
        key: KEY_BACKLOG.to_owned(),
        netns: id,
        netns_name: ctx.netns_name(id),
        from: from.to_string(),
        to: to.to_string(),
    };
    let text = Message::new("remedy-raise-syn-backlog-text")
        .with("from", from)
        .with("to", to)
        .with("limit", queue.listen_limit)
        .with("sum", advised.sum);
    Some(Proposal {
        reload: None,
        change: vec![change],
        text,
        risk: Message::new("remedy-raise-syn-backlog-risk"),
        signal: Signal::Refusals(StationId::SYN_QUEUE),
        lifts: Lift::Further,
    })
}
