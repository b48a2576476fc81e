//! Station `file-descriptors`: the files, sockets and pipes that one process may have open at once. At the limit accept() fails and connections stay in the
//! queue, or an upstream or a file cannot be opened and the answer is an error.

use crate::facts::Context;
use crate::facts::Logged;
use crate::facts::believed::CHURN_SHARE;
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::suffered::{answers_with, in_flight_peak, slower_by, turned_away};
use crate::facts::sum::{mean, per_second};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{CouplingDef, Relation};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::ledger::Account;
use crate::observation::LogEvent;
use crate::observation::load::Loop;
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["raise-nofile", "raise-nofile-by-hand"],
    graph: &[CouplingDef::found(FindingId::TABLE_FULL, FindingId::FILES_EXHAUSTED, Relation::Edge, "coupling-held-table")],
    ..StationDef::new(StationId("file-descriptors"), StationKind::Cliff, &[FindingId::FILES_EXHAUSTED], read, judge)
};

/// accept(), or opening what an answer needs, failed with EMFILE (24), the process's own limit. ENFILE (23) is the host's limit and not counted here.
const NOT_ACCEPTED: LogEvent = LogEvent::AcceptFailed(Some(24));
const NOT_OPENED: &[LogEvent] = &[LogEvent::SocketFailed(Some(24)), LogEvent::OpenFailed(Some(24))];
/// Samples at the limit that are needed if no log mentions it.
const SAMPLES_MIN: usize = 2;
/// Share from which the headroom is reported as small.
const NEAR_SHARE: f64 = 0.8;
/// How long nginx stops accepting after accept() failed for lack of a descriptor (`accept_mutex_delay`). A client that waits longer suffers.
const ACCEPT_PAUSE_US: u64 = 500_000;
/// Statuses of an answer whose upstream or file could not be opened.
const STATUSES_NOT_OPENED: &[u16] = &[500, 502, 503];

/// The descriptors of the tier's process that is closest to its limit.
pub(crate) struct Files {
    /// The process.
    pub(crate) pid: u32,
    /// Its soft limit.
    pub(crate) limit: u64,
    /// The most descriptors that it had open.
    pub(crate) peak: u64,
    /// Samples with the process at its limit.
    full_samples: usize,
    samples: usize,
    /// From the logs of the tier's servers: connections that could not be accepted,
    not_accepted: Option<Logged>,
    /// and descriptors for an answer that could not be opened.
    not_opened: Vec<Logged>,
    /// Mean number of connections that waited to be accepted by the tier. `None` if its queues were not read.
    waiting: Option<f64>,
}

impl Files {
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let processes = tier.pids.iter().filter_map(|pid| {
            let process = ctx.obs.processes.get(pid)?;
            let limits = process.limits.last()?;
            let limit = limits.open_files_soft?;
            let looks = ctx.in_window(&process.files).map(|(at, files)| (*at, files.count));
            let in_window = per_second(looks.chain(ctx.in_window(&process.fd_count).map(|(at, count)| (*at, *count))));
            let counts = if in_window.is_empty() { vec![process.files.last()?.count] } else { in_window };
            let counts: Vec<u64> = counts.into_iter().map(u64::from).collect();
            let room = ((limit as f64 * CHURN_SHARE) as u64).max(1);
            Some(Self {
                pid: *pid,
                limit,
                // A directory that changes while it is read may show one entry too many.
                peak: counts.iter().copied().max()?.min(limit),
                full_samples: counts.iter().filter(|count| **count + room >= limit).count(),
                samples: counts.len(),
                not_accepted: None,
                not_opened: Vec::new(),
                waiting: None,
            })
        });
        let mut fullest = processes.max_by(|a, b| a.share().total_cmp(&b.share()))?;
        fullest.not_accepted = ctx.logged(tier, &NOT_ACCEPTED);
        fullest.not_opened = NOT_OPENED.iter().filter_map(|event| ctx.logged(tier, event)).collect();

        fullest.waiting = Some(ctx.queued(tier)).filter(|queued| !queued.is_empty()).map(mean);
        Some(fullest)
    }

    fn share(&self) -> f64 {
        self.peak as f64 / self.limit.max(1) as f64
    }

    fn logged(&self) -> impl Iterator<Item = &Logged> {
        self.not_accepted.iter().chain(&self.not_opened)
    }

    fn logged_count(&self) -> u64 {
        self.logged().map(|logged| logged.count).sum()
    }

    fn is_logged(&self) -> bool {
        self.logged().next().is_some()
    }

    /// Share of the time in which a process accepted nothing.
    fn paused_share(&self, ctx: &Context<'_>) -> f64 {
        let paused_us = self.not_accepted.as_ref().map_or(0, |logged| logged.count.saturating_mul(ACCEPT_PAUSE_US));
        (paused_us as f64 / 1e6 / ctx.seconds().max(1e-6)).min(1.0)
    }

    /// What watched clients lose while a process accepts nothing: no more than the share of their time that they stood in the queue. Another worker of the
    /// server may accept meanwhile, and clients that keep their connections may open none. Where the queue was not read, the pauses alone tell.
    fn cost_of_pauses(&self, ctx: &Context<'_>) -> Cost {
        let under_way = ctx.account().map_or(0.0, Account::under_way);
        let stood = self.waiting.map_or(1.0, |waiting| waiting / waiting.max(under_way).max(1.0));
        Cost::of_time(self.paused_share(ctx).min(stood))
    }

    /// The number of failures to open something for an answer.
    fn failed_to_open(&self) -> u64 {
        self.not_opened.iter().map(|logged| logged.count).sum()
    }

    /// True if a connection waited to be accepted most of the time.
    fn is_waited_for(&self) -> bool {
        self.waiting.is_some_and(|waiting| waiting >= 1.0)
    }

    fn is_exhausted(&self, ctx: &Context<'_>, tier: &Tier) -> bool {
        let Some(load) = &ctx.obs.load else {
            // Without our own load, a queue in front of a process that stays at its limit is harm too.
            let logged = self.cost_of_pauses(ctx).or(turned_away(ctx, Some(tier.netns), self.failed_to_open()));
            return logged.hurts() || (self.full_samples >= SAMPLES_MIN && self.is_waited_for());
        };
        let lost = load.requests.saturating_sub(load.good);
        // Clients that are not accepted send few requests, so neither the failed share nor a percentile of the answers shows them.
        let share = self.waiting.unwrap_or(0.0) / in_flight_peak(load).max(1.0);
        let stands = self.not_accepted.as_ref().map_or(Cost::default(), |_| Cost::of_time(share.min(1.0)));
        let suffers = Cost::of_requests(lost, load.requests).or(slower_by(load, ACCEPT_PAUSE_US)).or(stands).hurts();
        if self.is_logged() {
            return suffers
                && Cost::of_time(self.paused_share(ctx)).or(Cost::of_requests(self.failed_to_open().min(lost), load.requests)).hurts();
        }
        // A full process that nobody waits for and that can open all it needs has exactly what it wants.
        let stuck = self.is_waited_for() || Cost::of_requests(answers_with(load, STATUSES_NOT_OPENED), load.requests).hurts();
        self.full_samples >= SAMPLES_MIN && stuck && suffers
    }
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let files = ctx.path.tiers.iter().filter_map(|tier| Some((tier, Files::of(ctx, tier)?)));
    files.map(|(tier, files)| reading(ctx, tier, &files)).collect()
}

fn reading(ctx: &Context<'_>, tier: &Tier, files: &Files) -> StationReading {
    let at = Location { pid: Some(files.pid), ..Location::in_netns(tier.netns) };
    let mut station = STATION.reading(tier, at, "files");
    station.limit = Some(files.limit as f64);
    station.used = Some(files.peak as f64);
    station.utilization = Some(files.share());
    // Lines do not count connections: after a failed accept() nginx pauses, and all connections that come meanwhile wait.
    station.refused_per_s = files.is_logged().then(|| files.logged_count() as f64 / ctx.seconds().max(1e-6));
    let args = |id: &'static str| {
        let message = Message::new(id).with("peak", files.peak).with("limit", files.limit).with("pid", files.pid.to_string());
        message.with("count", files.logged_count())
    };
    let (state, why) = match (files.is_exhausted(ctx, tier), !files.is_logged()) {
        (true, false) => (StationState::Refusing, args("state-file-descriptors-logged")),
        (true, true) => (StationState::Refusing, args("state-file-descriptors-full")),
        (false, false) => (StationState::Near, args("state-file-descriptors-harmless")),
        (false, true) if files.share() >= NEAR_SHARE => (StationState::Near, args("state-file-descriptors-near")),
        (false, true) => (StationState::Ok, args("state-file-descriptors-ok")),
    };
    station.in_state(state, why)
}

fn judge(ctx: &Context<'_>, read: &[StationReading]) -> Vec<Finding> {
    let refusing = read.iter().filter(|placed| placed.state == StationState::Refusing);
    refusing
        .filter_map(|placed| {
            let tier = ctx.only_tier(&placed.owner)?;
            Some(finding(ctx, placed, tier, &Files::of(ctx, tier)?))
        })
        .collect()
}

fn finding(ctx: &Context<'_>, placed: &StationReading, tier: &Tier, files: &Files) -> Finding {
    let args = |id: &'static str| Message::new(id).with("tier", tier.name.as_str()).with("limit", files.limit);
    Finding {
        // Only the errno of the failed call is proof. It is in the server's log and in no counter.
        confidence: if files.is_logged() { Confidence::High } else { Confidence::Medium },
        title: args("finding-file-descriptors-exhausted-title"),
        evidence: proofs(ctx, files),
        explanation: vec![args("finding-file-descriptors-exhausted-explanation")],
        ..placed.finding(FindingId::FILES_EXHAUSTED)
    }
}

fn proofs(ctx: &Context<'_>, files: &Files) -> Vec<Evidence> {
    let mut proofs: Vec<Evidence> = files.logged().map(|logged| logged.proof()).collect();
    let text = Message::new("evidence-file-descriptors-open")
        .with("peak", files.peak)
        .with("limit", files.limit)
        .with("pid", files.pid.to_string())
        .with("full", files.full_samples as f64)
        .with("samples", files.samples as f64);
    proofs.push(Evidence::new(text, format!("/proc/{0}/fd, /proc/{0}/limits", files.pid), Some(files.peak as f64)));
    if let Some(waiting) = files.waiting.filter(|waiting| *waiting > 0.0) {
        let clients = ctx.obs.load.as_ref().and_then(|load| match load.shape {
            Loop::Closed { connections } => Some(f64::from(connections)).filter(|clients| *clients < waiting),
            Loop::Open { .. } => None,
        });
        let id = if clients.is_some() { "evidence-file-descriptors-waiting-left" } else { "evidence-file-descriptors-waiting" };
        let text = Message::new(id).with("waiting", waiting).with("clients", clients.unwrap_or(0.0));
        proofs.push(Evidence::new(text, "sock_diag", Some(waiting)));
    }
    if let Some(load) = &ctx.obs.load {
        let lost = load.ended_badly();
        let text = Message::new("evidence-file-descriptors-harm").with("failed", lost).with("requests", load.ended());
        proofs.push(Evidence::new(text.with("p99", load.latency_us.p99 as f64 / 1e3), "load", Some(lost as f64)));
    }
    proofs
}
