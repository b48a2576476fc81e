//! Cores that other programs take while requests wait for them: a cause, because the servers could do without these programs.

use std::collections::BTreeSet;

use super::Gained;
use crate::facts::Context;
use crate::facts::cores::{Lowered, MainWork, Taken, Taker, busy, taken};
use crate::fix::change::core_list;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::judge::watched;
use crate::ledger::{hundredths, tenths};
use crate::observation::RealTimePolicy;
use crate::output::message::Message;
use crate::output::profile::own_work;
use crate::output::report::Confidence;

/// Cores without work, on average, from which a server that is held to others would have use of them.
const IDLE_CORE_MIN: f64 = 0.5;

/// A finding for each group of cores: a cause, since without these programs the servers would answer more.
pub(super) fn findings(ctx: &Context<'_>, stations: &[StationReading]) -> Vec<Gained> {
    taken(ctx)
        .iter()
        .filter(|taken| watched::suffers(ctx, taken.is_never_idle))
        .filter_map(|taken| Some(Gained { finding: finding(ctx, stations, taken)?, is_cause: true, gain: taken.times() - 1.0 }))
        .collect()
}

/// Says what the servers' own work takes of the cores that they get, unless another cause names it.
pub(super) fn tell_own_work(ctx: &Context<'_>, finding: &mut Finding, others: &[Finding]) {
    if finding.id != FindingId::CORES_TAKEN || others.iter().any(|other| other.station == StationId::CPU && other.at == finding.at) {
        return;
    }
    let work = ctx.only_tier(&finding.owner).and_then(|tier| Some((tier, MainWork::of(ctx, tier)?)));
    finding.explanation.extend(work.map(|(tier, work)| own_work(ctx, tier, &work, "finding-cores-taken-own")));
}

fn finding<'a>(ctx: &Context<'a>, stations: &[StationReading], taken: &Taken<'_, 'a>) -> Option<Finding> {
    let at = |reading: &&StationReading| reading.station == StationId::CPU;
    // The station's readings follow the order of the groups.
    let cores = stations.iter().filter(at).nth(taken.group.id.0)?;
    let tier = taken.waits_most(ctx)?;
    let is_stolen = taken.stolen > taken.named;
    let share = 100.0 * if is_stolen { taken.stolen } else { taken.named } / taken.group.count();
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("cores", taken.group.list());
        message.with("count", taken.group.count()).with("share", share.min(100.0))
    };
    let takers = taken.main_takers();
    let title = match takers {
        [first, others @ ..] if !is_stolen => {
            let id = if others.is_empty() { "finding-cores-taken-title" } else { "finding-cores-taken-title-several" };
            args(id).with("name", first.first().comm.as_str()).with("others", others.len() as f64)
        }
        _ => args("finding-cores-taken-title-stolen"),
    };
    let ran = args("evidence-cores-taken-ran").with("ran", thousandths(taken.ran)).with("delayed", tenths(taken.delayed));
    let times = tenths(taken.times());
    let bound = Evidence::new(args("evidence-cores-taken-bound").with("times", times), "/proc/PID/schedstat", Some(times));
    // How much these programs cost is what tells them from a cause beside another.
    let mut evidence = vec![Evidence::new(ran, "/proc/PID/schedstat", Some(tenths(taken.delayed))), bound];
    evidence.extend(takers.iter().flat_map(|taker| std::iter::once(told(taker)).chain(precedes(taker))));
    evidence.extend(held(ctx, taken).map(|(beyond, idle)| {
        let text = args("evidence-cores-taken-held").with("beyond", core_list(&beyond)).with("idle", idle);
        Evidence::new(text, "/proc/PID/status", Some(idle))
    }));
    evidence.extend(Lowered::of(ctx, taken, tier).map(|lowered| yields(&lowered, args("evidence-cores-taken-lowered"))));
    if hundredths(taken.stolen) > 0.0 {
        let stolen = args("evidence-cores-taken-stolen").with("stolen", hundredths(taken.stolen));
        evidence.push(Evidence::new(stolen, "/proc/stat", Some(hundredths(taken.stolen))));
    }
    let explanation = if is_stolen { "finding-cores-taken-explanation-stolen" } else { "finding-cores-taken-explanation" };
    Some(Finding {
        // Below that, part of the wait may be that of a thread for its own clients.
        confidence: if taken.times() >= 2.0 { Confidence::High } else { Confidence::Medium },
        title,
        explanation: vec![args(explanation)],
        evidence,
        ..Finding::new(FindingId::CORES_TAKEN, StationId::CPU, tier, cores.at.clone())
    })
}

fn told(taker: &Taker<'_>) -> Evidence {
    let (first, count) = (taker.first(), taker.processes.len());
    let group = first.cgroup.as_deref().filter(|path| *path != "/");
    let id = if group.is_some() { "evidence-cores-taken-by-group" } else { "evidence-cores-taken-by" };
    let text = Message::new(id).with("name", first.comm.as_str()).with("pid", first.pid.to_string()).with("more", count as f64 - 1.0);
    let text = text.with("used", hundredths(taker.cores)).with("user", first.uid.map_or_else(|| "?".to_owned(), |uid| uid.to_string()));
    Evidence::new(text.with("group", group.unwrap_or("")), "/proc/PID/stat", Some(hundredths(taker.cores)))
}

/// That a program runs before all ordinary ones.
fn precedes(taker: &Taker<'_>) -> Option<Evidence> {
    let realtime = taker.processes.iter().find_map(|process| process.realtime)?;
    let policy = match realtime.policy {
        RealTimePolicy::Fifo => "SCHED_FIFO",
        RealTimePolicy::RoundRobin => "SCHED_RR",
        RealTimePolicy::Deadline => "SCHED_DEADLINE",
    };
    let text = Message::new("evidence-cores-taken-realtime").with("name", taker.first().comm.as_str()).with("policy", policy);
    let text = text.with("priority", realtime.priority);
    Some(Evidence::new(text, "/proc/PID/stat", Some(f64::from(realtime.priority))))
}

/// The cores that the servers may not use, if there are any and enough of their time is left to be of use: somebody chose that, and may have forgotten it.
fn held(ctx: &Context<'_>, taken: &Taken<'_, '_>) -> Option<(Vec<u32>, f64)> {
    let online = ctx.obs.cpu.last()?.cores.iter().map(|(core, _)| *core);
    let beyond: BTreeSet<u32> = online.filter(|core| !taken.group.cores.contains(core)).collect();
    let idle = tenths(beyond.len() as f64 - busy(ctx, &beyond)?);
    (idle >= IDLE_CORE_MIN).then(|| (beyond.into_iter().collect(), idle))
}

/// That the server has less than others by a setting.
fn yields(lowered: &Lowered<'_>, text: Message) -> Evidence {
    match *lowered {
        Lowered::Group(id, _, share) => {
            let (file, usual) = id.version.usual_share();
            let text = text.with("kind", "group").with("group", id.path.as_str()).with("file", file).with("usual", usual as f64);
            Evidence::new(text.with("value", share as f64), "cgroup", Some(share as f64))
        }
        Lowered::Idle(pid) => Evidence::new(text.with("kind", "idle").with("pid", pid.to_string()), "/proc/PID/stat", None),
        Lowered::Nice(pid, own, other) => {
            let text = text.with("kind", "nice").with("pid", pid.to_string()).with("value", f64::from(own)).with("other", f64::from(other));
            Evidence::new(text, "/proc/PID/stat", Some(f64::from(own)))
        }
        Lowered::Session(pid, own, other) => {
            let text =
                text.with("kind", "session").with("pid", pid.to_string()).with("value", f64::from(own)).with("other", f64::from(other));
            Evidence::new(text, "/proc/PID/autogroup", Some(f64::from(own)))
        }
    }
}

fn thousandths(value: f64) -> f64 {
    (1000.0 * value).round() / 1000.0
}
