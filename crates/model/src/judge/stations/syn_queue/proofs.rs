//! The evidence that a SYN queue is full: what it dropped, how many handshakes were open and whose, what limits it, and who suffered.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::{KEY_BACKLOG, Look, Queue, looks};
use crate::facts::Context;
use crate::facts::queue::KEY_COOKIES;
use crate::facts::sum::mean;
use crate::judge::finding::Evidence;
use crate::output::message::Message;

pub(super) fn proofs(ctx: &Context<'_>, queue: &Queue<'_>) -> Vec<Evidence> {
    let netns = ctx.netns_name(queue.netns);
    let refused = queue.refused.unwrap_or(0);
    let text = Message::new("evidence-syn-queue-drops").with("count", refused).with("listener", queue.address.to_string());
    let counter = if queue.backlog_limit.is_some() { "ListenDrops" } else { "TCPReqQFullDrop" };
    let source = format!("/proc/net/netstat: {counter} ({netns})");
    let mut proofs = vec![Evidence::new(text.with("seconds", ctx.seconds()), source, Some(refused as f64))];
    if let Some(peak) = queue.peak() {
        let text = Message::new("evidence-syn-queue-open").with("peak", peak).with("limit", queue.limit());
        let text = text.with("mean", mean(queue.open.iter().copied()));
        proofs.push(Evidence::new(text, format!("sock_diag ({netns})"), Some(peak as f64)));
    }
    proofs.extend(whose(ctx, queue).map(|text| Evidence::new(text, format!("sock_diag ({netns})"), None)));
    let (id, key) = match queue.backlog_limit {
        Some(_) => ("evidence-syn-queue-backlog", KEY_BACKLOG),
        None => ("evidence-syn-queue-listener", KEY_COOKIES),
    };
    let text = Message::new(id).with("backlog", queue.view.sysctl_number(KEY_BACKLOG).unwrap_or(0)).with("limit", queue.listen_limit);
    proofs.push(Evidence::new(text, format!("{key} ({netns})"), queue.view.sysctl_number(key).map(|value| value as f64)));
    if let Some(load) = &ctx.obs.load {
        let text = Message::new("evidence-syn-queue-harm")
            .with("timeouts", load.errors.connect_timeout)
            .with("requests", load.requests)
            .with("ms", load.connect_us.max as f64 / 1e3);
        proofs.push(Evidence::new(text, "load", Some(load.errors.connect_timeout as f64)));
    }
    proofs
}

/// Whose handshakes were open at the peak. One peer that holds all of them is a different problem from thousands that hold one each.
fn whose(ctx: &Context<'_>, queue: &Queue<'_>) -> Option<Message> {
    let own = |placed: &&crate::facts::path::PlacedListener| placed.netns == queue.netns && placed.listener.address == *queue.address;
    let listener = ctx.path.tiers.iter().flat_map(|tier| &tier.listeners).find(own)?;
    let most = looks(ctx, queue.view, &listener.listener).max_by_key(Look::open).map(|look| look.remotes)?;
    let mut counts: BTreeMap<IpAddr, u64> = BTreeMap::new();
    for remote in &most {
        *counts.entry(*remote).or_default() += 1;
    }
    // If several have the same count, the lowest address is taken, so that the result is always the same.
    let (first, count) = counts.iter().rev().max_by_key(|(_, count)| **count)?;
    let text = Message::new("evidence-syn-queue-whose").with("addresses", counts.len() as u64).with("remote", first.to_string());
    Some(text.with("count", *count).with("open", most.len() as u64))
}
