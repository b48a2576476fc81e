//! Requests a second: from the load, from logs, or from sockets alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Context;
use crate::facts::path::PlacedListener;
use crate::facts::traffic;
use crate::observation::{ListenerAddress, NetnsId, NetnsView, RequestSample, RequestSocket, RequestTimes};

use super::connections::tier_of;
use super::count::SampleCounts;

/// Size limit of a request that is one segment: every host must accept longer segments (RFC 9293, 3.7.1), and most requests fit into an Ethernet frame.
const REQUEST_BYTES_MAX: u64 = 1_400;
/// Fewest young requests for an estimate.
const YOUNG_MIN: f64 = 30.0;
/// Most segments that a client sends for one request of a segment or less: over TLS its hello, the end of its handshake, and the request in two (RFC 8446, 2; RFC 5246, 7.3).
const EXCHANGE_SEGMENTS_MAX: f64 = 4.0;
/// Share of the connections that must be of one kind, kept or single-request, for all to be counted that way. The error is at most the rest.
const OF_ONE_KIND_MIN: f64 = 0.9;

/// Requests a second.
pub(crate) fn rps(ctx: &Context<'_>, counted: &SampleCounts, under_way: f64) -> Option<f64> {
    if let Some(load) = &ctx.obs.load {
        return Some(load.throughput_rps()).filter(|rate| *rate > 0.0);
    }
    let logged = traffic::of(ctx).map(|load| load.throughput_rps).filter(|rate| *rate > 0.0);
    logged.or_else(|| {
        FirstTierSamples::of(ctx).and_then(|seen| {
            let young = || seen.of_young(counted, under_way).filter(|rate| EXCHANGE_SEGMENTS_MAX * rate >= seen.segments_per_s());
            seen.of_kept().or_else(|| seen.of_staying()).or_else(|| seen.of_accepted(ctx)).or_else(young)
        })
    })
}

/// The samples of the first tier's connections.
struct FirstTierSamples<'a> {
    samples: Vec<(u64, f64, Vec<&'a RequestSocket>)>,
}

impl<'a> FirstTierSamples<'a> {
    fn of(ctx: &Context<'a>) -> Option<Self> {
        let first = ctx.path.tiers.first()?;
        let netns: NetnsId = first.netns;
        let view = ctx.obs.netns.get(&netns)?;
        let of_first = |socket: &&RequestSocket| tier_of(ctx, netns, &socket.address) == Some(0);
        let sample = |(at_us, sample): &'a (u64, RequestSample)| (*at_us, sample.share, sample.sockets.iter().filter(of_first).collect());
        Some(Self { samples: ctx.in_window(&view.request_samples).map(sample).collect() })
    }

    /// For kept connections: the segments received on each between its first and last sample, times the mean number of connections. `None` if most connections
    /// have only one request, or if requests are longer than a segment.
    fn of_kept(&self) -> Option<f64> {
        let mut seen: BTreeMap<u64, (u64, RequestTimes, u64, RequestTimes)> = BTreeMap::new();
        let (mut kept, mut all) = (0.0, 0.0);
        for (at_us, share, sockets) in &self.samples {
            for (socket, times) in sockets.iter().filter_map(|socket| Some((socket, socket.times?))) {
                all += 1.0 / share;
                kept += if times.data_segs_in? > 1 { 1.0 / share } else { 0.0 };
                let entry = seen.entry(socket.cookie).or_insert((*at_us, times, *at_us, times));
                (entry.2, entry.3) = (*at_us, times);
            }
        }
        let (mut arrived, mut bytes, mut seconds) = (0, 0, 0.0);
        for (from_us, from, to_us, to) in seen.values() {
            arrived += to.data_segs_in?.checked_sub(from.data_segs_in?)?;
            bytes += to.bytes_received?.checked_sub(from.bytes_received?)?;
            seconds += (to_us - from_us) as f64 / 1e6;
        }
        let is_whole = arrived > 0 && bytes / arrived < REQUEST_BYTES_MAX;
        let mean = all / self.samples.len().max(1) as f64;
        (kept >= OF_ONE_KIND_MIN * all && is_whole && seconds > 0.0).then(|| arrived as f64 / seconds * mean)
    }

    /// For connections of which some are new and most stay from one sample to the next: the segments received on those of both samples, and on those that came between them.
    /// `None` if many come and go unseen, if a sample has not all of them, or if requests are longer than a segment.
    fn of_staying(&self) -> Option<f64> {
        let (mut arrived, mut bytes, mut stayed, mut all, mut seconds) = (0, 0, 0, 0, 0.0);
        for pair in self.samples.windows(2) {
            let [(from_us, from_share, from), (to_us, to_share, to)] = pair else { continue };
            if from_share.min(*to_share) < 1.0 {
                return None;
            }
            let before: BTreeMap<u64, RequestTimes> = from.iter().filter_map(|socket| Some((socket.cookie, socket.times?))).collect();
            for (socket, times) in to.iter().filter_map(|socket| Some((socket, socket.times?))) {
                let known = before.get(&socket.cookie);
                stayed += usize::from(known.is_some());
                arrived += times.data_segs_in?.checked_sub(known.map_or(Some(0), |before| before.data_segs_in)?)?;
                bytes += times.bytes_received?.checked_sub(known.map_or(Some(0), |before| before.bytes_received)?)?;
            }
            all += before.len();
            seconds += (to_us - from_us) as f64 / 1e6;
        }
        let is_whole = arrived > 0 && bytes / arrived < REQUEST_BYTES_MAX;
        (all > 0 && stayed as f64 >= OF_ONE_KIND_MIN * all as f64 && is_whole).then(|| arrived as f64 / seconds)
    }

    /// For connections with one request each: the connections that the first tier's namespace accepted. The kernel counts those of all listeners together: `None`
    /// unless the samples show that nearly all of them are this tier's, and if other tiers there may have accepted some.
    fn of_accepted(&self, ctx: &Context<'_>) -> Option<f64> {
        let (mut fresh, mut all, mut seen) = (0.0, 0.0, 0.0);
        for (_, share, sockets) in &self.samples {
            for times in sockets.iter().filter_map(|socket| socket.times) {
                all += 1.0 / share;
                fresh += if has_one_request(&times) { 1.0 / share } else { 0.0 };
                seen += if has_one_request(&times) { 1.0 } else { 0.0 };
            }
        }
        let netns = ctx.path.tiers.first()?.netns;
        let view = ctx.obs.netns.get(&netns)?;
        if seen < OF_ONE_KIND_MIN / (1.0 - OF_ONE_KIND_MIN) * ctx.others(netns).seen_elsewhere_most() {
            return None;
        }
        // The counters are read more rarely than the samples: their growth is that of the time between two of their own readings.
        let (_, _, elapsed_us) = ctx.around(&view.netstat)?;
        let opened = ctx.netstat_growth(view, "Tcp.PassiveOpens")? as f64 * 1e6 / elapsed_us.max(1) as f64;
        (all > 0.0 && fresh >= OF_ONE_KIND_MIN * all && opened > 0.0 && are_others_kept(ctx, netns, view)).then_some(opened)
    }

    /// For connections with one request each: unanswered requests that came within the last few ticks. Each request passes through that age if hardly any is
    /// answered sooner. Ages are truncated to whole ticks, so ages of up to `n` ticks span `n` and a half.
    fn of_young(&self, counted: &SampleCounts, under_way: f64) -> Option<f64> {
        let tick_ms = counted.tick_ms.max(1);
        let count = |most_ms: u64| -> f64 {
            let young = |socket: &&&RequestSocket| {
                socket.times.is_some_and(|times| {
                    times.last_data_recv_ms <= most_ms && times.data_segs_in != Some(0) && times.received_last() == Some(true)
                })
            };
            self.samples.iter().map(|(_, share, sockets)| sockets.iter().filter(young).count() as f64 / share).sum()
        };
        let rate = |ticks: u64| (ticks as f64 + 0.5) * tick_ms as f64 / 1e3;
        let samples = self.samples.len() as f64;
        let mut found = None;
        for ticks in 0..=16 {
            let rps = count(ticks * tick_ms) / samples / rate(ticks);
            // At most a quarter of the response time: otherwise requests that are answered sooner are missed.
            if rps <= 0.0 || (ticks > 0 && rate(ticks) > 0.25 * under_way / rps) {
                break;
            }
            found = (count(ticks * tick_ms) >= YOUNG_MIN).then_some(rps).or(found);
        }
        found
    }

    /// Segments with data a second that are seen to have come, at least: on connections of two samples between these, on others since they began. Zero if they are long, as
    /// those of requests with a body.
    fn segments_per_s(&self) -> f64 {
        let Some((begin_us, _, _)) = self.samples.first() else { return 0.0 };
        let mut last: BTreeMap<u64, RequestTimes> = BTreeMap::new();
        let (mut segments, mut bytes, mut end_us) = (0_u64, 0_u64, *begin_us);
        for (at_us, _, sockets) in &self.samples {
            end_us = *at_us;
            for (socket, times) in sockets.iter().filter_map(|socket| Some((socket, socket.times?))) {
                let before = last.insert(socket.cookie, times);
                let is_new = before.is_none() && at_us != begin_us;
                let grew = |of: fn(&RequestTimes) -> Option<u64>| match (of(&times), before.as_ref().and_then(of)) {
                    (Some(now), Some(before)) => now.saturating_sub(before),
                    (Some(now), None) if is_new => now,
                    _ => 0,
                };
                segments += grew(|times| times.data_segs_in);
                bytes += grew(|times| times.bytes_received);
            }
        }
        let are_short = segments > 0 && bytes / segments < REQUEST_BYTES_MAX;
        if are_short { segments as f64 * 1e6 / end_us.saturating_sub(*begin_us).max(1) as f64 } else { 0.0 }
    }
}

fn has_one_request(times: &RequestTimes) -> bool {
    times.data_segs_in == Some(1)
}

/// True if every other tier that listens for TCP in a namespace was seen to keep its connections.
fn are_others_kept(ctx: &Context<'_>, netns: NetnsId, view: &NetnsView) -> bool {
    let is_tcp = |placed: &PlacedListener| placed.netns == netns && matches!(placed.listener.address, ListenerAddress::Tcp(..));
    let others = ctx.path.tiers.iter().enumerate().skip(1).filter(|(_, tier)| tier.listeners.iter().any(is_tcp));
    let mut unseen: BTreeSet<usize> = others.map(|(tier, _)| tier).collect();
    for socket in ctx.in_window(&view.request_samples).flat_map(|(_, sample)| &sample.sockets) {
        let Some((times, tier @ 1..)) = socket.times.zip(tier_of(ctx, netns, &socket.address)) else { continue };
        if has_one_request(&times) {
            return false;
        }
        unseen.remove(&tier);
    }
    unseen.is_empty()
}
