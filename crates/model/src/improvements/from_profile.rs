//! What a profile shows that could be faster: one kind of work that takes much of the CPU time that limits, or CPU time that is badly spread.

use crate::facts::Context;
use crate::facts::cores::{Limiting, SATURATED_UTILIZATION, limiting};
use crate::fix::NOISE_SHARE;
use crate::load::GeneratorThread;
use crate::message::Message;
use crate::path::Tier;
use crate::profile::{self, Profiled, Share, gain_of, is_of, limit_name};
use crate::report::{At, Confidence, Evidence, Finding, Role, Station};
use crate::stations::Placed;

/// Cores that must be idle on average for a server that cannot use them to be worth a word.
const IDLE_MIN: f64 = 0.5;
/// Busy share up to which a core has room for what another one has too much of.
const ROOM_MAX: f64 = 0.7;
/// Share of a full core from which it is the received packets that fill it.
const SOFTIRQ_SHARE_MIN: f64 = 0.5;

/// One kind of work of which there could be less.
struct Hot {
    /// The finding.
    id: &'static str,
    /// The layer, or what goes across layers.
    what: &'static str,
    /// The layer of the function that is named as a proof.
    layer: &'static str,
    /// The share of it that can be had at best.
    avoidable: f64,
    /// True where a known remedy does away with it and takes nothing from anybody: not where it is a trade, a matter of the program, or the clients' doing.
    is_wasted: bool,
    title: &'static str,
    explanation: &'static str,
}

/// An allocator can be replaced, a handshake resumed, a script kept compiled, a lock split: all of it can go at best. What is compressed is seldom
/// sent as it is instead, and a low level of zlib takes about half of what the usual one does (zlib Manual, deflateInit).
#[rustfmt::skip]
const HOT: &[Hot] = &[
    Hot { id: "compression-hot", what: profile::COMPRESSION, layer: profile::COMPRESSION, avoidable: 0.5, is_wasted: false,
        title: "finding-compression-hot-title", explanation: "finding-compression-hot-explanation" },
    Hot { id: "tls-handshake-hot", what: profile::TLS_HANDSHAKE, layer: TLS, avoidable: 1.0, is_wasted: false,
        title: "finding-tls-handshake-hot-title", explanation: "finding-tls-handshake-hot-explanation" },
    Hot { id: "opcode-cache-off", what: profile::SCRIPT_COMPILE, layer: "interpreter", avoidable: 1.0, is_wasted: true,
        title: "finding-opcode-cache-off-title", explanation: "finding-opcode-cache-off-explanation" },
    Hot { id: "allocator-hot", what: profile::ALLOCATOR, layer: profile::ALLOCATOR, avoidable: 1.0, is_wasted: false,
        title: "finding-allocator-hot-title", explanation: "finding-allocator-hot-explanation" },
    Hot { id: "lock-contention", what: profile::LOCK, layer: profile::LOCK, avoidable: 1.0, is_wasted: false,
        title: "finding-lock-contention-title", explanation: "finding-lock-contention-explanation" },
];

/// The layer of all that TLS does.
const TLS: &str = "tls";
const SINGLE: &str = "single-core-saturated";
const SOFTIRQ: &str = "softirq-on-one-core";
/// Told by what runs before a load, too, where no profile knows.
pub(super) const BUSY_POLLING: &str = "busy-polling";

/// All that is told here.
pub(crate) const FINDINGS: &[&str] = &[HOT[0].id, HOT[1].id, HOT[2].id, HOT[3].id, HOT[4].id, SINGLE, SOFTIRQ, BUSY_POLLING];

/// The findings of a profile, true where it is wasted; none where none was taken.
pub(super) fn findings(ctx: &Context<'_>, stations: &[Placed]) -> Vec<(Finding, bool)> {
    let Some(profiled) = Profiled::of(ctx) else { return Vec::new() };
    let limiting = limiting(ctx);
    let told = |finding: Finding| (finding, false);
    let mut found: Vec<(Finding, bool)> = Vec::new();
    for limiting in &limiting {
        let Some(station) = station_of(stations, limiting) else { continue };
        for tier in &limiting.tiers {
            found.extend(HOT.iter().filter_map(|hot| of_hot(ctx, &profiled, (limiting, station), tier, hot)));
        }
        found.extend(single(ctx, &profiled, limiting, station).map(told));
    }
    if limiting.is_empty() {
        found.extend(softirq(ctx, &profiled, stations).map(told));
    }
    found
}

/// The reading of the cores that limit.
fn station_of<'s>(stations: &'s [Placed], limiting: &Limiting<'_, '_>) -> Option<&'s Station> {
    // The station reads the groups in their order.
    let cores = stations.iter().filter(|placed| placed.station.station == "cpu");
    cores.map(|placed| &placed.station).nth(limiting.group.id.0)
}

/// A kind of work without which as much as is avoidable at best would give more than noise can hide.
fn of_hot(
    ctx: &Context<'_>,
    profiled: &Profiled<'_>,
    (limiting, station): (&Limiting<'_, '_>, &Station),
    tier: &Tier,
    hot: &Hot,
) -> Option<(Finding, bool)> {
    let mut share = profiled.share(limiting, |part| tier.pids.contains(&part.pid) && is_of(part, hot.what))?;
    let unsent = (hot.what == profile::TLS_HANDSHAKE).then(|| not_for_bytes(ctx, profiled, limiting, tier)).flatten();
    // Signatures are the innermost functions of stacks that often cannot be walked to the handshake that they are for.
    let unsent = unsent.filter(|unsent| unsent.value > share.value);
    share = unsent.unwrap_or(share);
    let gain = |share: f64| gain_of(hot.avoidable * share);
    if gain(share.value) < NOISE_SHARE {
        return None;
    }
    let mut proofs = vec![proof(ctx, profiled, limiting, tier, share)];
    if unsent.is_some() {
        let text = Message::new("evidence-handshakes-unsent");
        proofs.push(Evidence { text: ctx.text(text), source: "load generator".to_owned(), value: None });
    }
    if let Some(function) = profiled.hottest(tier, hot.layer) {
        let text = Message::new("evidence-hot-function").with("function", function);
        proofs.push(Evidence { text: ctx.text(text), source: profiled.source(), value: None });
    }
    proofs.push(bound(ctx, share.times(hot.avoidable)));
    let is_sure = gain(share.low) >= NOISE_SHARE;
    let confidence = if is_sure { Confidence::High } else { Confidence::Medium };
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("share", share.value * 100.0);
        ctx.text(message.with("of", limit_name(ctx, limiting)))
    };
    let told = finding(hot.id, &tier.name, station.at.clone(), confidence, (args(hot.title), args(hot.explanation)), proofs);
    Some((told, hot.is_wasted && is_sure))
}

/// What could be gained at most without a share of the limiting time.
fn bound(ctx: &Context<'_>, share: Share) -> Evidence {
    let text = Message::new("evidence-hot-bound").with("gain", gain_of(share.value) * 100.0);
    let text = ctx.text(text.with("low", gain_of(share.low) * 100.0).with("high", gain_of(share.high) * 100.0));
    Evidence { text, source: "Amdahl 1967".to_owned(), value: Some(gain_of(share.value)) }
}

/// CPU time that encrypting a byte may cost, more than any took: AES-128-GCM 3.4 ns without the instructions for it, 0.3 with them (openssl-speed(1) on a core of
/// this decade).
const BYTE_CPU_S: f64 = 5e-9;
/// The same for each request, whatever its size: two records, each way one. Their ciphers take 1 us of it, the rest is the library around them.
const REQUEST_CPU_S: f64 = 20e-6;
/// Share of the requests that must come on a connection of their own for handshakes to be what TLS spends its time with.
const CONNECTIONS_SHARE_MIN: f64 = 0.2;

/// What TLS takes of the time that limits beyond what the bytes that were sent can explain, where most requests open a connection: it must be
/// handshakes. Nothing where that is not known.
fn not_for_bytes(ctx: &Context<'_>, profiled: &Profiled<'_>, limiting: &Limiting<'_, '_>, tier: &Tier) -> Option<Share> {
    let load = ctx.obs.load.as_ref().filter(|_| ctx.path.is_first(tier))?;
    let opened = load.connections as f64 >= CONNECTIONS_SHARE_MIN * load.requests as f64;
    let all = profiled.share(limiting, |part| tier.pids.contains(&part.pid) && part.layer == TLS).filter(|_| opened)?;
    let limit_s = limiting.threads.unwrap_or(limiting.group.cores.len()).max(1) as f64 * load.duration_us as f64 / 1e6;
    let bytes = load.received_bytes.saturating_add(load.sent_bytes) as f64;
    let explained = (bytes * BYTE_CPU_S + load.requests as f64 * REQUEST_CPU_S) / limit_s;
    let less = |share: f64| (share - explained).max(0.0);
    Some(Share { value: less(all.value), low: less(all.low), high: less(all.high), of: all.of })
}

fn proof(ctx: &Context<'_>, profiled: &Profiled<'_>, limiting: &Limiting<'_, '_>, tier: &Tier, share: Share) -> Evidence {
    let text = Message::new("evidence-hot-share").with("tier", tier.name.as_str()).with("share", share.value * 100.0);
    let text = text.with("low", share.low * 100.0).with("high", share.high * 100.0).with("samples", share.of);
    let text = ctx.text(text.with("of", limit_name(ctx, limiting)));
    Evidence { text, source: profiled.source(), value: Some(share.value) }
}

/// Threads that are fewer than the cores, whose time is all used while cores are idle.
fn single(ctx: &Context<'_>, profiled: &Profiled<'_>, limiting: &Limiting<'_, '_>, station: &Station) -> Option<Finding> {
    let threads = limiting.threads.filter(|_| limiting.idle >= IDLE_MIN)?;
    let tier = limiting.tiers.first()?;
    // By two clocks that have nothing to do with each other: the scheduler's, and the samples'.
    let ran = profiled.cores_used(tier);
    if ran < SATURATED_UTILIZATION * threads as f64 - RAN_GRAIN * threads as f64 {
        return None;
    }
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("threads", threads as f64);
        ctx.text(message.with("cores", limiting.group.cores.len() as f64).with("idle", limiting.idle).with("ran", ran))
    };
    let proofs = vec![
        Evidence { text: args("evidence-single-ran"), source: profiled.source(), value: Some(ran) },
        Evidence { text: args("evidence-single-idle"), source: "/proc/stat".to_owned(), value: Some(limiting.idle) },
    ];
    let told = (args("finding-single-core-saturated-title"), args("finding-single-core-saturated-explanation"));
    Some(finding(SINGLE, &tier.name, station.at.clone(), Confidence::High, told, proofs))
}

/// How far the count of samples may lie below the time that a thread ran, as a share of a core: what runs with interrupts off is sampled later,
/// and a shared core is taken away meanwhile.
const RAN_GRAIN: f64 = 0.2;

/// One core that is full of received packets while all others have room: what comes in is not spread.
fn softirq(ctx: &Context<'_>, profiled: &Profiled<'_>, stations: &[Placed]) -> Option<Finding> {
    let cores = profiled.cores_with(profile::SOFTIRQ);
    let is_full = |busy: f64| busy >= SATURATED_UTILIZATION;
    let mut full = cores.iter().filter(|(_, (busy, _))| is_full(*busy));
    let ((cpu, (busy, share)), None) = (full.next()?, full.next()) else { return None };
    let share = (*share).filter(|share| share.low >= SOFTIRQ_SHARE_MIN)?;
    let has_room = |(other, (busy, _)): (&u32, &(f64, Option<Share>))| other == cpu || *busy <= ROOM_MAX;
    // A generator that must stay on this core fills it by itself.
    let stays = |thread: &GeneratorThread| thread.cpus == [*cpu];
    if cores.len() < 2 || !cores.iter().all(has_room) || ctx.obs.load.iter().flat_map(|load| &load.threads).any(stays) {
        return None;
    }
    // The servers are to be found on the other cores as well, or these would not help them.
    let station = stations
        .iter()
        .map(|placed| &placed.station)
        .find(|station| station.station == "cpu" && station.limit.is_some_and(|limit| limit >= 2.0))?;
    let tier = ctx.owner(&station.tier).tiers().first().map_or("", |tier| ctx.path.tiers[tier.0].name.as_str());
    let args = |id: &'static str| {
        let message = Message::new(id).with("cpu", f64::from(*cpu)).with("busy", busy * 100.0).with("share", share.value * 100.0);
        ctx.text(message.with("low", share.low * 100.0).with("high", share.high * 100.0).with("samples", share.of))
    };
    let proofs = vec![Evidence { text: args("evidence-softirq-share"), source: profiled.source(), value: Some(share.value) }];
    let told = (args("finding-softirq-on-one-core-title"), args("finding-softirq-on-one-core-explanation"));
    Some(finding(SOFTIRQ, tier, station.at.clone(), Confidence::Medium, told, proofs))
}

pub(super) fn finding(
    id: &str,
    tier: &str,
    at: At,
    confidence: Confidence,
    (title, explanation): (String, String),
    evidence: Vec<Evidence>,
) -> Finding {
    Finding {
        id: id.to_owned(),
        station: "cpu".to_owned(),
        tier: tier.to_owned(),
        at,
        role: Role::Cause,
        symptom_of: Vec::new(),
        confidence,
        title,
        evidence,
        explanation,
        remedies: Vec::new(),
    }
}
