//! Station `disk-limit`: what a cgroup may read and write in a second on a disk. At the limit the kernel lets each read and write wait, and the requests that need them wait in the server.

use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::facts::limit::disk::DiskLimit;
use crate::facts::path::Tier;
use crate::facts::pool::awaited::Awaited;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{CouplingDef, Relation};
use crate::judge::id::{FindingId, StationId};
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::ledger::tenths;
use crate::observation::{CgroupVersion, IoKind};
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["allow-more-of-the-disk"],
    graph: &[
        CouplingDef::found(FindingId::DISK_LIMITED, FindingId::POOL_EXHAUSTED, Relation::Tier, "coupling-disk-limit"),
        CouplingDef::found(FindingId::DISK_LIMITED, FindingId::POOL_TAKES_TURNS, Relation::Tier, "coupling-disk-limit"),
        CouplingDef::found(FindingId::DISK_LIMITED, FindingId::ACCEPTS_SLOWLY, Relation::Tier, "coupling-disk-limit"),
        CouplingDef::found(FindingId::DISK_LIMITED, FindingId::ACCEPT_QUEUE_FULL, Relation::Tier, "coupling-disk-limit"),
        CouplingDef::found(FindingId::DISK_LIMITED, FindingId::POOL_BLOCKED, Relation::Behind, "coupling-disk-limit"),
        CouplingDef::found(FindingId::DISK_LIMITED, FindingId::ANSWERS_NONE, Relation::Behind, "coupling-disk-limit"),
        CouplingDef::found(FindingId::DISK_LIMITED, FindingId::ANSWERS_ERRORS, Relation::Behind, "coupling-disk-limit"),
    ],
    ..StationDef::new(StationId("disk-limit"), StationKind::Rate, &[FindingId::DISK_LIMITED], read, judge)
};

/// Share of the limit from which it counts as reached. What is under way at the ends of the window is not counted, and what a pause left unused is lost (in slices of 100 ms, block/blk-throttle.c).
const REACHED_SHARE: f64 = 0.9;
/// Share from which the headroom is reported as small.
const NEAR_SHARE: f64 = 0.8;
/// Bytes of the unit in sentences.
const MEGABYTE: f64 = 1e6;

/// Whether the limit holds requests back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    /// Threads of the server were found waiting for the disk.
    Seen,
    /// What they wait for was not seen.
    Supposed,
}

fn harm(ctx: &Context<'_>, tier: &Tier, limit: &DiskLimit<'_>) -> Option<Harm> {
    let account = ctx.account()?;
    let (standing, under_way) = (account.standing(tier.id.0), account.under_way());
    if limit.share() < REACHED_SHARE || !Cost::of_time((standing / under_way.max(f64::MIN_POSITIVE)).min(1.0)).hurts() {
        return None;
    }
    match Awaited::of(ctx, tier, standing) {
        Some(awaited) if awaited.is_disk() => Some(Harm::Seen),
        // Whoever waits for something else may use all that there is of the disk beside that.
        Some(_) => None,
        None => Some(Harm::Supposed),
    }
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    ctx.path.tiers.iter().filter_map(|tier| Some(reading(ctx, tier, &DiskLimit::of(ctx, tier)?))).collect()
}

fn reading(ctx: &Context<'_>, tier: &Tier, limit: &DiskLimit<'_>) -> StationReading {
    let at = Location { cgroup: Some(limit.group.dir.clone()), ..Location::in_netns(tier.netns) };
    let mut station = STATION.reading(tier, at, if limit.kind.is_bytes() { "bytes/s" } else { "operations/s" });
    station.limit = Some(limit.limit as f64);
    station.used = Some(limit.rate);
    station.utilization = Some(limit.share());
    let state = match harm(ctx, tier, limit) {
        Some(_) => (StationState::Saturated, "state-disk-limit-reached"),
        None if limit.share() >= REACHED_SHARE => (StationState::Near, "state-disk-limit-harmless"),
        None if limit.share() >= NEAR_SHARE => (StationState::Near, "state-disk-limit-near"),
        None => (StationState::Ok, "state-disk-limit-ok"),
    };
    station.in_state(state.0, args(tier, limit, state.1))
}

/// "read 1.05 MB/s".
pub(crate) fn amount(kind: IoKind, number: f64) -> Message {
    let number = if kind.is_bytes() { number / MEGABYTE } else { number };
    Message::new("disk-limit-amount").with("kind", kind.word()).with("number", number)
}

fn args(tier: &Tier, limit: &DiskLimit<'_>, id: &'static str) -> Message {
    let message = Message::new(id).with("tier", tier.name.as_str()).with("whose", limit.id.path.as_str()).with("disk", limit.disk);
    message.with("may", amount(limit.kind, limit.limit as f64)).with("did", amount(limit.kind, limit.rate))
}

fn judge(ctx: &Context<'_>, read: &[StationReading]) -> Vec<Finding> {
    let reached = read.iter().filter(|reading| reading.state == StationState::Saturated);
    reached
        .filter_map(|reading| {
            let tier = ctx.only_tier(&reading.owner)?;
            let limit = DiskLimit::of(ctx, tier)?;
            Some(finding(ctx, reading, (tier, &limit), harm(ctx, tier, &limit)?))
        })
        .collect()
}

fn finding(ctx: &Context<'_>, reading: &StationReading, (tier, limit): (&Tier, &DiskLimit<'_>), harm: Harm) -> Finding {
    let (file, counters) = match limit.id.version {
        CgroupVersion::V1 => (limit.kind.file_v1(), limit.kind.counters_v1()),
        CgroupVersion::V2 => ("io.max", "io.stat"),
    };
    let source = format!("{}/{file}, {counters}", limit.group.dir);
    let mut proofs = vec![Evidence::new(args(tier, limit, "evidence-disk-limit"), source, Some(limit.rate))];
    let (standing, under_way) = ctx.account().map_or((0.0, 0.0), |account| (account.standing(tier.id.0), account.under_way()));
    let text = Message::new("evidence-disk-limit-standing").with("tier", tier.name.as_str()).with("standing", tenths(standing));
    proofs.push(Evidence::new(text.with("under_way", tenths(under_way)), "sock_diag", Some(tenths(standing))));
    if let Some(awaited) = Awaited::of(ctx, tier, standing).filter(Awaited::is_disk) {
        let text = Message::new("evidence-disk-limit-waits").with("tier", tier.name.as_str()).with("what", awaited.what());
        let text = text.with("looks", awaited.looks as f64).with("seen", awaited.seen as f64);
        proofs.push(Evidence::new(text, "/proc/PID/task/TID/syscall", Some(awaited.seen as f64)));
    }
    Finding {
        confidence: if harm == Harm::Seen { Confidence::High } else { Confidence::Medium },
        title: args(tier, limit, "finding-disk-limited-title"),
        evidence: proofs,
        explanation: vec![args(tier, limit, "finding-disk-limited-explanation")],
        ..reading.finding(FindingId::DISK_LIMITED)
    }
}
