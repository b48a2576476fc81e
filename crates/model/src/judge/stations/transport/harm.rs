//! What lost packets cost clients: those of a load that wait for a timeout, long answers whose congestion window stays small, and watched connections that send again what was
//! lost.

use super::Sent;
use crate::facts::Context;
use crate::facts::cores::cores_are_spare;
use crate::facts::harm::Cost;
use crate::facts::suffered::SENT_AGAIN_US;
use crate::facts::suffered::held::Held;
use crate::judge::finding::Evidence;
use crate::ledger::tenths;
use crate::observation::load::{LoadResult, Loop, Percentiles};
use crate::output::message::Message;

/// Loss below which a congestion window hardly stays small: 1.22 / sqrt(0.001) is 39 segments.
const LOSS_SHARE_MIN: f64 = 0.001;
/// Segments that most servers send at first (RFC 6928). Shorter answers need no larger window.
const INITIAL_WINDOW: f64 = 10.0;
/// Payload of a segment on Ethernet with timestamps, bytes.
const SEGMENT_BYTES: f64 = 1448.0;
/// Congestion control's states while lost segments are sent again: TCP_CA_Recovery and TCP_CA_Loss (include/uapi/linux/tcp.h).
const RECOVERING: [u64; 2] = [3, 4];
/// Number of requests below which shares of them say nothing.
const REQUESTS_MIN: u64 = 30;

/// How the clients suffered.
pub(super) enum Harm {
    /// Watched: the mean number of connections that had data out and sent lost segments again, that of requests under way, and the share of their time.
    Recovering { connections: f64, under_way: f64, time_share: f64 },
    /// Requests waited for timeouts: how many, how much longer they took, and the share of the clients' time in a closed loop.
    Waited { waits: u64, requests: u64, longer_us: u64, time_share: Option<f64> },
    /// Answers needed more round trips: segments per answer, the window that this much loss allows, and the share of the response time.
    SmallWindow { segments: f64, window: f64, trips_us: f64, time_share: f64 },
}

impl Harm {
    /// True if the requests themselves were seen to suffer. Otherwise the time is calculated.
    pub(super) fn is_measured(&self) -> bool {
        matches!(self, Harm::Waited { .. })
    }

    pub(super) fn explanation(&self) -> &'static str {
        match self {
            Harm::Recovering { .. } => "finding-packet-loss-explanation-recovering",
            Harm::Waited { .. } => "finding-packet-loss-explanation",
            Harm::SmallWindow { .. } => "finding-packet-loss-explanation-window",
        }
    }

    pub(super) fn proof(&self) -> Evidence {
        match *self {
            Harm::Recovering { connections, under_way, time_share } => {
                let text = Message::new("evidence-loss-recovering").with("connections", tenths(connections));
                let text = text.with("under_way", tenths(under_way)).with("share", time_share * 100.0);
                Evidence::new(text, "sock_diag tcpi_ca_state", Some(time_share))
            }
            Harm::Waited { waits, requests, longer_us, time_share } => {
                let id = if time_share.is_some() { "evidence-loss-waited-closed" } else { "evidence-loss-waited" };
                let text = Message::new(id).with("waits", waits).with("requests", requests);
                let text = text.with("ms", longer_us as f64 / 1e3).with("share", time_share.unwrap_or(0.0) * 100.0);
                Evidence::new(text, "load", Some(longer_us as f64))
            }
            Harm::SmallWindow { segments, window, trips_us, time_share } => {
                let text = Message::new("evidence-loss-window").with("segments", segments).with("window", window);
                let text = text.with("ms", trips_us / 1e3).with("share", time_share * 100.0);
                Evidence::new(text, "load; Mathis et al. 1997", Some(time_share))
            }
        }
    }
}

/// The harm of all lost segments. If the cores are full, what is not sent because of lost packets would not be computed either.
pub(super) fn of(ctx: &Context<'_>, senders: &[Sent<'_>]) -> Option<Harm> {
    if !cores_are_spare(ctx) {
        return None;
    }
    let Some(load) = &ctx.obs.load else { return recovering(ctx, senders) };
    let load = Some(load).filter(|load| load.requests >= REQUESTS_MIN)?;
    let waits = senders.iter().map(|sent| sent.waits).sum();
    waited(ctx, load, waits).or_else(|| small_window(ctx, load, senders))
}

/// Watched traffic: the connections of the path that send lost segments again when they are looked at, of the requests under way. So many of these have an answer, or a
/// request, with a hole in it.
fn recovering(ctx: &Context<'_>, senders: &[Sent<'_>]) -> Option<Harm> {
    let worst = senders.iter().max_by_key(|sent| sent.lost).filter(|sent| sent.share() >= LOSS_SHARE_MIN)?;
    let held = Held::of(ctx, worst.netns, |sample| sample.send_queue > 0 && RECOVERING.contains(&sample.loss_state))?;
    let Held { connections, under_way, .. } = held;
    held.cost().hurts().then_some(Harm::Recovering { connections, under_way, time_share: held.share() })
}

/// As many requests as there were waits for a timeout took longer by one timeout.
fn waited(ctx: &Context<'_>, load: &LoadResult, waits: u64) -> Option<Harm> {
    let share = waits as f64 / load.requests as f64;
    let usual = if share < 0.5 { load.latency_us.p50 as f64 } else { ctx.alone_us()? };
    let longer_us = (exceeded_by(&load.latency_us, share)? as f64 - usual).max(0.0) as u64;
    if longer_us < SENT_AGAIN_US {
        return None;
    }
    let time_share = match load.shape {
        Loop::Closed { connections } => {
            // A packet may be lost again. Each wait is counted with the shortest time only.
            let lost_us = waits as f64 * longer_us.min(load.timeout_us) as f64;
            Some(lost_us / (f64::from(connections.max(1)) * load.duration_us.max(1) as f64)).map(|share| share.min(1.0))
        }
        Loop::Open { .. } => None,
    };
    let cost = Cost { requests: share, time: time_share.unwrap_or(0.0) };
    cost.hurts().then_some(Harm::Waited { waits, requests: load.requests, longer_us, time_share })
}

/// The least time that the slowest requests of this share took: the next higher percentile that is known.
fn exceeded_by(took: &Percentiles, share: f64) -> Option<u64> {
    let known = [(0.5, took.p50), (0.25, took.p75), (0.1, took.p90), (0.05, took.p95), (0.01, took.p99), (0.001, took.p999)];
    known.into_iter().find(|(of, _)| *of <= share).map(|(_, us)| us)
}

/// Long answers of the first tier: with a share p of the segments lost the congestion window is about 1.22 / sqrt(p) segments on average (Mathis, Semke,
/// Mahdavi and Ott, The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, 1997). The time to connect serves as the round trip.
fn small_window(ctx: &Context<'_>, load: &LoadResult, senders: &[Sent<'_>]) -> Option<Harm> {
    let sent = senders.first().filter(|sent| sent.share() >= LOSS_SHARE_MIN)?;
    let segments = load.received_bytes as f64 / load.requests as f64 / SEGMENT_BYTES;
    if !ctx.can_divide_by_good() || segments < INITIAL_WINDOW || load.latency_us.p50 == 0 {
        return None;
    }
    let window = 1.22 / sent.share().sqrt();
    let unhindered = (segments / INITIAL_WINDOW + 1.0).log2();
    let trips_us = (segments / window - unhindered).max(0.0) * load.connect_us.p50 as f64;
    let time_share = (trips_us / load.latency_us.p50 as f64).min(1.0);
    Cost::of_time(time_share).hurts().then_some(Harm::SmallWindow { segments, window, trips_us, time_share })
}
