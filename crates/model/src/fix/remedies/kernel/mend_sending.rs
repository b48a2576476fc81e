//! Remedies for sockets that cannot send fast enough: a larger send buffer through the kernel's setting, and advice for what a program sets itself.

use crate::facts::Context;
use crate::fix::change::{Activation, Change};
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedy::Signal;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::judge::stations::sending::{KEY_WMEM, largest_buffer, sizes};
use crate::output::message::Message;
use crate::predict::Lift;

/// The largest send buffer that Linux allows by default on a host with enough memory (net/ipv4/tcp.c, tcp_init): 4 MiB.
const DEFAULT_MAX_BYTES: u64 = 4 << 20;

pub(in crate::fix::remedies) const RAISE_BUFFER: RemedyDef =
    RemedyDef { id: "raise-send-buffer", finding: FindingId::BUFFER_LIMITED, activation: Activation::Live, propose };

pub(in crate::fix::remedies) const FREE_BUFFER: AdviceDef = AdviceDef {
    id: "free-send-buffer",
    finding: FindingId::BUFFER_LIMITED,
    activation: Activation::Restart,
    advise: |ctx, placed| {
        let is_programs = !is_by_sysctl(ctx, placed)?;
        is_programs.then(|| advice(at(ctx, placed, "remedy-free-send-buffer-text"), "remedy-free-send-buffer-risk"))
    },
};

pub(in crate::fix::remedies) const SEND_AT_ONCE: AdviceDef = AdviceDef {
    id: "send-at-once",
    finding: FindingId::ACK_STALL,
    activation: Activation::Reload,
    advise: |ctx, placed| Some(advice(at(ctx, placed, "remedy-send-at-once-text"), "remedy-send-at-once-risk")),
};

pub(in crate::fix::remedies) const WIDEN_FIRST_WINDOW: AdviceDef = AdviceDef {
    id: "widen-first-window",
    finding: FindingId::SMALL_WINDOW,
    activation: Activation::Live,
    advise: |ctx, placed| Some(advice(at(ctx, placed, "remedy-widen-first-window-text"), "remedy-widen-first-window-risk")),
};

pub(in crate::fix::remedies) const ASK_CLIENTS: AdviceDef = AdviceDef {
    id: "ask-clients",
    finding: FindingId::RECEIVER_LIMITED,
    activation: Activation::Live,
    advise: |ctx, placed| Some(advice(at(ctx, placed, "remedy-ask-clients-text"), "remedy-ask-clients-risk")),
};

/// True if the sampled buffers have grown as far as the kernel lets them. The kernel makes a buffer twice as large as the congestion window asks for
/// (net/ipv4/tcp_input.c, tcp_sndbuf_expand), so a smaller one was set by the program (SO_SNDBUF).
fn is_by_sysctl(ctx: &Context<'_>, placed: &StationReading) -> Option<bool> {
    Some(largest_buffer(ctx, placed)? >= sizes(ctx, placed.at.netns?)?[2])
}

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let id = placed.at.netns?;
    let [least, first, max] = sizes(ctx, id)?;
    if !is_by_sysctl(ctx, placed)? {
        return None;
    }
    let wanted = DEFAULT_MAX_BYTES.max(max.saturating_mul(2));
    let kib = |bytes: u64| bytes as f64 / 1024.0;
    let sum = Message::new(if wanted == DEFAULT_MAX_BYTES { "sum-buffer-default" } else { "sum-buffer-twice" });
    let text = at(ctx, placed, "remedy-raise-send-buffer-text");
    let from = format!("{least} {first} {max}");
    let to = format!("{least} {first} {wanted}");
    Some(Proposal {
        reload: None,
        change: vec![Change::Sysctl { key: KEY_WMEM.to_owned(), netns: id, netns_name: ctx.netns_name(id), from, to }],
        text: text.with("from", kib(max)).with("to", kib(wanted)).with("sum", sum.with("now", kib(max)).with("needed", kib(wanted))),
        risk: Message::new("remedy-raise-send-buffer-risk"),
        signal: Signal::Goodput,
        lifts: Lift::Further,
    })
}

fn at(ctx: &Context<'_>, placed: &StationReading, id: &'static str) -> Message {
    let kind = ctx.only_tier(&placed.owner).map_or("other", |tier| ctx.words_for(tier));
    Message::new(id)
        .with("name", placed.at.listener_name())
        .with("tier", ctx.owner_name(&placed.owner))
        .with("kind", kind)
        .with("side", placed.at.side())
}

/// Its gain must be measured: no ceiling predicts it.
fn advice(text: Message, risk: &'static str) -> Advice {
    Advice::words(text, risk, Lift::Further)
}
