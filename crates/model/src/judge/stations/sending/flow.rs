//! What was sampled of the connections at one listener of the path, or of those that a tier opened to an upstream.

use std::collections::BTreeMap;
use std::net::IpAddr;

use chokepoint_statistics::{median_high, wilson};

use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::sum::mean;
use crate::judge::location::{EdgeId, Location};
use crate::observation::load::{LoadResult, Loop};
use crate::observation::{ListenerAddress, RequestSample, RequestSocket, TcpSample};
use crate::output::message::Message;

/// Readings with connections that are needed before anything is reported.
const READINGS_MIN: usize = 3;
/// Connections of one reading that are looked at, sending ones before others, where the requests' sockets stand for those that are sampled one by one: as many as of these.
const SAMPLED_MAX: usize = 32;

/// One direction of one edge: the connections whose sender is in `netns`.
pub(super) struct Flow<'a> {
    /// The tier that sends.
    pub(super) tier: &'a Tier,
    /// Its name in sentences: the listener, or the upstream's address.
    pub(super) name: String,
    /// True if the peers are the clients of the path.
    pub(super) is_outermost: bool,
    /// Where it is.
    pub(super) at: Location,
    /// Which sockets are its.
    end: End,
    /// The samples, grouped by reading.
    pub(super) readings: Vec<Vec<TcpSample>>,
    /// Mean number of sampled connections that can have had a request under way at once; `None` without our own load.
    under_way: Option<f64>,
    /// The same without our own load, by the account.
    watched: Option<f64>,
}

/// Where the time of the sampled connections went according to the kernel, microseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    /// There was something to send or not yet acknowledged.
    pub(super) busy: f64,
    /// The peer's window was full.
    pub(super) window: f64,
    /// The send buffer was full, and everything in it was sent.
    pub(super) buffer: f64,
}

impl<'a> Flow<'a> {
    fn of(ctx: &Context<'a>, tier: &'a Tier, at: Location, end: End) -> Option<Self> {
        let view = ctx.obs.netns.get(&tier.netns)?;
        let own = |samples: &Vec<TcpSample>| samples.iter().filter(|sample| end.is_of(sample)).cloned().collect::<Vec<_>>();
        let followed: Vec<_> = ctx.in_window(&view.tcp_samples).map(|(_, samples)| own(samples)).collect();
        // A connection for a single request has ended before it can be read again.
        let readings = Some(followed).filter(|readings| are_enough(readings)).or_else(|| listed(ctx, tier, end))?;
        Some(Self::with(ctx, tier, at, end, readings))
    }

    fn with(ctx: &Context<'a>, tier: &'a Tier, at: Location, end: End, readings: Vec<Vec<TcpSample>>) -> Self {
        let sampled = mean(readings.iter().map(|reading| reading.len() as u64));
        let under_way = ctx.obs.load.as_ref().map(|load| in_flight(load).min(sampled)).filter(|count| *count > 0.0);
        let watched = ctx.account().filter(|_| ctx.obs.load.is_none()).map(|account| account.under_way().min(sampled));
        let watched = watched.filter(|count| *count > 0.0);
        let is_outermost = at.edge.is_none() && ctx.path.is_first(tier);
        Self { watched, tier, name: at.listener_name(), is_outermost, at, end, readings, under_way }
    }

    /// The same flow as the samples of the requests' sockets show it: more often, and also connections for a single request; without what only the kernel's clocks tell.
    pub(super) fn by_requests(&self, ctx: &Context<'a>) -> Option<Self> {
        Some(Self::with(ctx, self.tier, self.at.clone(), self.end, listed(ctx, self.tier, self.end)?))
    }

    /// All samples.
    pub(super) fn samples(&self) -> impl Iterator<Item = &TcpSample> {
        self.readings.iter().flatten()
    }

    /// Mean number of sampled connections with something in the send queue.
    pub(super) fn sending_mean(&self) -> f64 {
        self.mean_of(|sample| sample.send_queue > 0)
    }

    fn mean_of(&self, is_counted: impl Fn(&TcpSample) -> bool) -> f64 {
        mean(self.readings.iter().map(|reading| reading.iter().filter(|sample| is_counted(sample)).count() as u64))
    }

    /// Share of the time of the requests under way in which a connection was in such a state; `None` without our own load. Sending connections are sampled
    /// first, so the share may be too high if there are very many.
    pub(super) fn time_share(&self, is_so: impl Fn(&TcpSample) -> bool) -> Option<f64> {
        Some((self.mean_of(is_so) / self.under_way?).min(1.0))
    }

    /// [`Flow::time_share`], also of requests that were only watched.
    pub(super) fn time_share_watched(&self, is_so: impl Fn(&TcpSample) -> bool) -> Option<f64> {
        Some((self.mean_of(is_so) / self.under_way.or(self.watched)?).min(1.0))
    }

    /// True if such a share of the requests' time is harm, judged by the lower end of its interval, which follows from the number of connections sampled.
    pub(super) fn hurts(&self, share: f64) -> bool {
        Cost::of_time(wilson(share.min(1.0), self.samples().count() as u64).0).hurts()
    }

    /// Where the connections' time went: between two readings of the same connection, or in its whole life if it was seen once.
    pub(super) fn times(&self) -> Option<Times> {
        let mut ends: BTreeMap<u64, (&TcpSample, &TcpSample)> = BTreeMap::new();
        for sample in self.samples() {
            ends.entry(sample.cookie).and_modify(|(_, last)| *last = sample).or_insert((sample, sample));
        }
        let mut times = Times::default();
        for (first, last) in ends.into_values() {
            let is_once = std::ptr::eq(first, last);
            let grown = |clock: fn(&TcpSample) -> Option<u64>| {
                let before = if is_once { 0 } else { clock(first)? };
                Some(clock(last)?.saturating_sub(before) as f64)
            };
            times.busy += grown(|sample| sample.busy_us)?;
            times.window += grown(|sample| sample.rwnd_limited_us)?;
            times.buffer += grown(|sample| sample.sndbuf_limited_us)?;
        }
        (times.busy > 0.0).then_some(times)
    }

    /// The largest send buffer, bytes including the kernel's overhead.
    pub(super) fn buffer(&self) -> Option<u64> {
        self.samples().filter_map(|sample| sample.send_buffer).max().map(u64::from)
    }

    /// Median of the shortest round trips and of the smoothed ones, microseconds.
    pub(super) fn round_trips_us(&self) -> Option<(f64, f64)> {
        let measured = |us: &u64| *us > 0 && *us < u64::from(u32::MAX);
        let shortest = median_high(self.samples().filter_map(|sample| sample.min_rtt_us.filter(measured)).collect())?;
        let smoothed = median_high(self.samples().map(|sample| sample.rtt_us).filter(|us| *us > 0).collect())?;
        Some((shortest as f64, smoothed as f64))
    }

    /// A message with the arguments of the sentences.
    pub(super) fn args(&self, id: &'static str) -> Message {
        let sockets: std::collections::BTreeSet<u64> = self.samples().map(|sample| sample.cookie).collect();
        let message = Message::new(id).with("tier", self.tier.name.as_str()).with("name", self.name.as_str());
        message.with("sockets", sockets.len() as u64).with("side", self.at.side())
    }

    /// The message if nothing is wrong.
    pub(super) fn state(&self) -> Message {
        if self.samples().any(|sample| sample.busy_us.is_none()) {
            return self.args("state-sending-counted").with("sending", self.sending_mean());
        }
        let share = |part: f64, all: f64| part / all.max(1.0) * 100.0;
        let times = self.times().unwrap_or_default();
        let message = self.args("state-sending-ok").with("buffer", share(times.buffer, times.busy));
        message.with("window", share(times.window, times.busy)).with("sending", self.sending_mean())
    }
}

/// The end of a flow's connections that is at a listener: the sender's own, or its peer's.
#[derive(Debug, Clone, Copy)]
enum End {
    Local((IpAddr, u16)),
    Remote((IpAddr, u16)),
}

impl End {
    fn is_of(self, sample: &TcpSample) -> bool {
        match self {
            Self::Local(listener) => is_end(sample.local, listener),
            Self::Remote(listener) => is_end(sample.remote, listener),
        }
    }
}

fn are_enough(readings: &[Vec<TcpSample>]) -> bool {
    readings.iter().filter(|reading| !reading.is_empty()).count() >= READINGS_MIN
}

/// The connections with this end in each sample of the requests' sockets. `None` if they are in too few.
fn listed(ctx: &Context<'_>, tier: &Tier, end: End) -> Option<Vec<Vec<TcpSample>>> {
    let own = |sample: &RequestSample| {
        let mut own: Vec<TcpSample> = sample.sockets.iter().filter_map(RequestSocket::sample).filter(|sample| end.is_of(sample)).collect();
        own.sort_by_key(|sample| sample.send_queue == 0);
        own.truncate(SAMPLED_MAX);
        own
    };
    let samples = &ctx.obs.netns.get(&tier.netns)?.request_samples;
    Some(ctx.in_window(samples).map(|(_, sample)| own(sample)).collect()).filter(|readings: &Vec<_>| are_enough(readings))
}

/// Mean number of requests under way at once.
fn in_flight(load: &LoadResult) -> f64 {
    match load.shape {
        Loop::Closed { connections } => f64::from(connections),
        Loop::Open { .. } => load.under_way().unwrap_or(0.0).max(1.0),
    }
}

/// The answers that each tier sends from each port that receives requests, and the requests that it sends to each TCP upstream.
pub(super) fn flows<'a>(ctx: &Context<'a>) -> Vec<Flow<'a>> {
    let mut found = Vec::new();
    for tier in &ctx.path.tiers {
        let at = |(ip, port)| Location::at_listener(tier.netns, ListenerAddress::Tcp(ip, port));
        for listener in tcp_listeners(tier) {
            found.extend(Flow::of(ctx, tier, at(listener), End::Local(listener)));
        }
        for upstream in tier.upstreams.iter().map(|index| &ctx.path.tiers[*index]) {
            for listener in tcp_listeners(upstream) {
                let at = Location { edge: Some(EdgeId::Tiers(tier.id, upstream.id)), ..at(listener) };
                found.extend(Flow::of(ctx, tier, at, End::Remote(listener)));
            }
        }
    }
    found
}

fn is_end(end: (IpAddr, u16), (ip, port): (IpAddr, u16)) -> bool {
    end.1 == port && (ip.is_unspecified() || ip.to_canonical() == end.0.to_canonical())
}

/// TCP listeners of a tier. Of those with the same port the widest stands for all of them.
fn tcp_listeners(tier: &Tier) -> Vec<(IpAddr, u16)> {
    let mut found: Vec<(IpAddr, u16)> = Vec::new();
    for placed in &tier.listeners {
        let ListenerAddress::Tcp(ip, port) = placed.listener.address else { continue };
        let covered = |(other, taken): &(IpAddr, u16)| *taken == port && (*other == ip || other.is_unspecified());
        if !found.iter().any(covered) {
            found.retain(|(_, taken)| *taken != port || !ip.is_unspecified());
            found.push((ip, port));
        }
    }
    found
}
