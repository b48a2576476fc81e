//! Improvements that a profile shows: one kind of work that takes much of the limiting CPU time, or CPU time that is badly spread.

use super::hot::{Hot, Sight, TLS, WorkJudgement};
use super::{Gained, debug_log, handshakes, process_starts};
use crate::facts::Context;
use crate::facts::cores::{Limiting, SATURATED_UTILIZATION, limiting};
use crate::facts::harm::{NOISE_SHARE, gain_of};
use crate::facts::path::Tier;
use crate::facts::profile::{self, ProfileShare, Profiled, is_of};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::observation::load::GeneratorThread;
use crate::output::message::Message;
use crate::output::profile::limit_name;
use crate::output::report::Confidence;

/// Busy share up to which a core has room for the excess of another.
const ROOM_MAX: f64 = 0.7;
/// Share of a full core from which received packets are what fills it.
const SOFTIRQ_SHARE_MIN: f64 = 0.5;

/// An allocator can be replaced, a handshake resumed, a script kept compiled, a log not written, a lock split: at best all of the work goes away. Compressed
/// content is seldom sent uncompressed instead, and a low level of zlib takes about half of what the usual level does (zlib Manual, deflateInit).
#[rustfmt::skip]
const HOT: &[Hot] = &[
    Hot { id: FindingId::COMPRESSION_HOT, what: profile::COMPRESSION, layer: Some(profile::COMPRESSION), avoidable: 0.5, is_reason: true, judge: compression,
        title: "finding-compression-hot-title", explanation: "finding-compression-hot-explanation" },
    Hot { id: FindingId::TLS_HANDSHAKE_HOT, what: profile::TLS_HANDSHAKE, layer: Some(TLS), avoidable: 1.0, is_reason: true, judge: handshakes::judge,
        title: "finding-tls-handshake-hot-title", explanation: "finding-tls-handshake-hot-explanation" },
    Hot { id: FindingId::OPCODE_CACHE_OFF, what: profile::SCRIPT_COMPILE, layer: Some("interpreter"), avoidable: 1.0, is_reason: true, judge: waste,
        title: "finding-opcode-cache-off-title", explanation: "finding-opcode-cache-off-explanation" },
    Hot { id: FindingId::DEBUG_LOG, what: profile::ERROR_LOG, layer: None, avoidable: 1.0, is_reason: true, judge: debug_log::judge,
        title: "finding-debug-log-title", explanation: "finding-debug-log-explanation" },
    Hot { id: FindingId::PROCESS_STARTS, what: profile::PROCESS_START, layer: None, avoidable: 1.0, is_reason: true, judge: process_starts::judge,
        title: "finding-process-starts-hot-title", explanation: "finding-process-starts-hot-explanation" },
    Hot { id: FindingId::ALLOCATOR_HOT, what: profile::ALLOCATOR, layer: Some(profile::ALLOCATOR), avoidable: 1.0, is_reason: false, judge: trade,
        title: "finding-allocator-hot-title", explanation: "finding-allocator-hot-explanation" },
    Hot { id: FindingId::LOCK_CONTENTION, what: profile::LOCK, layer: Some(profile::LOCK), avoidable: 1.0, is_reason: false, judge: trade,
        title: "finding-lock-contention-title", explanation: "finding-lock-contention-explanation" },
];

fn trade(_: &Sight<'_, '_>, hot: &Hot, share: ProfileShare) -> Option<WorkJudgement> {
    Some(WorkJudgement::of(hot, share))
}

/// The level that zlib itself takes: above it "best compression" costs much more time for hardly a smaller response (zlib Manual, deflateInit).
const USUAL_LEVEL: u32 = 6;

/// A level above the usual one is waste; below it, the size of responses is a trade-off.
fn compression(sight: &Sight<'_, '_>, hot: &Hot, share: ProfileShare) -> Option<WorkJudgement> {
    let judged = WorkJudgement::of(hot, share);
    let Some(level) = sight.ctx.nginx_of(sight.tier).and_then(|nginx| nginx.gzip_level.as_ref()) else { return Some(judged) };
    let is_wasted = level.value > USUAL_LEVEL;
    let id = if is_wasted { "evidence-compression-level-high" } else { "evidence-compression-level" };
    let text = Message::new(id).with("level", level.value).with("usual", USUAL_LEVEL);
    let proofs = vec![Evidence::new(text, level.origin.to_string(), Some(f64::from(level.value)))];
    let explanation = if is_wasted { "finding-compression-hot-explanation-high" } else { judged.explanation };
    Some(WorkJudgement { is_wasted, explanation, proofs, ..judged })
}

fn waste(_: &Sight<'_, '_>, hot: &Hot, share: ProfileShare) -> Option<WorkJudgement> {
    Some(WorkJudgement { is_wasted: true, ..WorkJudgement::of(hot, share) })
}

/// The findings of a profile, each with true if it is waste, or beside cores that others take as good a reason; empty if no profile was taken.
pub(super) fn findings(ctx: &Context<'_>, stations: &[StationReading], taken: &[Gained]) -> Vec<Gained> {
    let Some(profiled) = Profiled::of(ctx) else { return Vec::new() };
    let limiting = limiting(ctx);
    let told = |finding: Finding| Gained { finding, is_cause: false, gain: 0.0 };
    let mut found: Vec<Gained> = Vec::new();
    for limiting in &limiting {
        let Some(station) = station_of(stations, limiting) else { continue };
        for tier in &limiting.tiers {
            let sight = Sight { ctx, profiled: &profiled, limiting, tier };
            found.extend(HOT.iter().filter_map(|hot| of_hot(&sight, station, hot, taken)));
        }
    }
    if limiting.is_empty() {
        found.extend(softirq(ctx, &profiled, stations).map(told));
    }
    found
}

/// True if one finding says that locks take most of the time of the other's threads.
pub(super) fn is_mostly_lock(found: &Finding, threads: &Finding) -> bool {
    let share = || found.evidence.iter().filter_map(|proof| proof.value).next();
    found.id == FindingId::LOCK_CONTENTION && found.owner == threads.owner && share().is_some_and(|share| share > 0.5)
}

/// The reading of the limiting cores.
fn station_of<'s>(stations: &'s [StationReading], limiting: &Limiting<'_, '_>) -> Option<&'s StationReading> {
    // The station's readings follow the order of the groups.
    stations.iter().filter(|reading| reading.station == StationId::CPU).nth(limiting.group.id.0)
}

/// The finding for a kind of work, if removing as much as could go away would give more than noise.
fn of_hot(sight: &Sight<'_, '_>, cores: &StationReading, hot: &Hot, taken: &[Gained]) -> Option<Gained> {
    let Sight { profiled, limiting, tier, .. } = *sight;
    let judged = (hot.judge)(sight, hot, sight.share(|part| is_of(part, hot.what))?)?;
    if gain_of(judged.could_go.value) < NOISE_SHARE {
        return None;
    }
    let is_sure = judged.is_sure();
    let share = judged.share;
    let mut proofs = vec![proof(profiled, limiting, tier, share)];
    proofs.extend(judged.proofs);
    if let Some(function) = hot.layer.and_then(|layer| profiled.hottest(tier, layer)) {
        let text = Message::new("evidence-hot-function").with("function", function);
        proofs.push(Evidence::new(text, profiled.source(), None));
    }
    proofs.push(bound(judged.could_go));
    let confidence = if is_sure { judged.confidence } else { Confidence::Medium };
    let is_beside = taken.iter().any(|taken| taken.finding.at == cores.at);
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("share", share.value * 100.0);
        message.with("of", limit_name(limiting)).with("beside", if is_beside { "yes" } else { "no" })
    };
    let found = Finding {
        confidence,
        title: args(judged.title),
        explanation: vec![args(judged.explanation)],
        evidence: proofs,
        ..Finding::new(hot.id, StationId::CPU, tier, cores.at.clone())
    };
    let is_cause = is_sure && (judged.is_wasted || is_beside && judged.is_reason);
    Some(Gained { finding: found, is_cause, gain: gain_of(judged.could_go.value) })
}

/// The most that could be gained without a share of the limiting time.
fn bound(share: ProfileShare) -> Evidence {
    let text = Message::new("evidence-hot-bound").with("gain", gain_of(share.value) * 100.0);
    let text = text.with("low", gain_of(share.low) * 100.0).with("high", gain_of(share.high) * 100.0);
    let times = |share: f64| 1.0 + gain_of(share);
    let text = text.with("times", times(share.value)).with("times_low", times(share.low)).with("times_high", times(share.high));
    let text = text.with("is_factor", if gain_of(share.value) >= 1.0 { "yes" } else { "no" });
    Evidence::new(text, "Amdahl 1967", Some(gain_of(share.value)))
}

fn proof(profiled: &Profiled<'_>, limiting: &Limiting<'_, '_>, tier: &Tier, share: ProfileShare) -> Evidence {
    let text = Message::new("evidence-hot-share").with("tier", tier.name.as_str()).with("share", share.value * 100.0);
    let text = text.with("low", share.low * 100.0).with("high", share.high * 100.0).with("samples", share.of);
    let text = text.with("of", limit_name(limiting));
    Evidence::new(text, profiled.source(), Some(share.value))
}

/// One core that is full of received packets while all others have room: incoming packets are not spread.
fn softirq(ctx: &Context<'_>, profiled: &Profiled<'_>, stations: &[StationReading]) -> Option<Finding> {
    let cores = profiled.cores_with(profile::SOFTIRQ);
    let is_full = |busy: f64| busy >= SATURATED_UTILIZATION;
    let mut full = cores.iter().filter(|(_, (busy, _))| is_full(*busy));
    let ((cpu, (busy, share)), None) = (full.next()?, full.next()) else { return None };
    let share = (*share).filter(|share| share.low >= SOFTIRQ_SHARE_MIN)?;
    let has_room = |(other, (busy, _)): (&u32, &(f64, Option<ProfileShare>))| other == cpu || *busy <= ROOM_MAX;
    // A generator that is pinned to this core fills it by itself.
    let stays = |thread: &GeneratorThread| thread.cpus == [*cpu];
    if cores.len() < 2 || !cores.iter().all(has_room) || ctx.obs.load.iter().flat_map(|load| &load.threads).any(stays) {
        return None;
    }
    // The servers must also run on the other cores, or those cores would not help them.
    let several = stations.iter().find(|reading| reading.station == StationId::CPU && reading.limit.is_some_and(|limit| limit >= 2.0))?;
    let args = |id: &'static str| {
        let message = Message::new(id).with("cpu", f64::from(*cpu)).with("busy", busy * 100.0).with("share", share.value * 100.0);
        message.with("low", share.low * 100.0).with("high", share.high * 100.0).with("samples", share.of)
    };
    let proofs = vec![Evidence::new(args("evidence-softirq-share"), profiled.source(), Some(share.value))];
    Some(Finding {
        confidence: Confidence::Medium,
        title: args("finding-softirq-on-one-core-title"),
        explanation: vec![args("finding-softirq-on-one-core-explanation")],
        evidence: proofs,
        ..Finding::new(FindingId::SOFTIRQ_ON_ONE_CORE, StationId::CPU, *several.owner.tiers().first()?, several.at.clone())
    })
}
