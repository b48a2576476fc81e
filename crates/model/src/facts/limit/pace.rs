//! Responses that leave at the rate that a configuration allows each of them.

use std::collections::BTreeMap;

use crate::facts::Context;
use crate::facts::harm::{Cost, NOISE_SHARE};
use crate::facts::path::Tier;
use crate::observation::NginxLimit;

/// Fewest samples of a connection over which it has a rate: a response leaves in pieces, each of some tens of kilobytes, with a pause after each.
const SAMPLES_MIN: usize = 5;
/// Share of the bytes that must have left at that rate.
const BYTES_SHARE: f64 = 0.5;

/// What shows that responses leave at the allowed rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// They take as long as that.
    Responses {
        /// Bytes of a response.
        bytes: f64,
        /// How long one took, seconds: the median.
        took_s: f64,
        /// The least part of it that the pace explains, seconds.
        paced_s: f64,
    },
    /// Connections got that many bytes a second, for as long as they were watched.
    Connections {
        /// How many did.
        count: usize,
        /// Bytes a second of each: the mean.
        each_per_s: f64,
        /// Share of the bytes of all connections that left on these.
        share: f64,
    },
}

impl Pace {
    /// `None` if the pace is no harm, or if neither responses nor connections tell.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier, config: &NginxLimit) -> Option<Self> {
        let rate = config.bytes_per_s? as f64;
        let responses = match &ctx.obs.load {
            Some(load) => Some((load.received_bytes as f64 / load.requests.max(1) as f64, load.latency_us.p50 as f64 / 1e6)),
            None => ctx.access_logs(tier).max_by_key(|log| log.lines).and_then(|log| {
                let took_us = log.request_time_us?.p50;
                Some((log.bytes as f64 / log.lines.max(1) as f64, took_us as f64 / 1e6))
            }),
        };
        match responses {
            Some((bytes, took_s)) => Self::of_responses((bytes, took_s), (bytes - config.bytes_at_once as f64) / rate),
            // What is left out of a response's pace at its beginning cannot be told on a connection.
            None if config.bytes_at_once == 0 => Self::of_connections(ctx, tier, rate),
            None => None,
        }
    }

    /// nginx sends up to a second's worth at once and the rest at the rate, or, where it reads the file itself (`sendfile off`), all of it at the rate
    /// (ngx_http_write_filter_module.c): a response takes as long as all of it at the rate (`all_s`), or up to a second less. One that takes longer waits for something else as well.
    fn of_responses((bytes, took_s): (f64, f64), all_s: f64) -> Option<Self> {
        let exact = (all_s * (1.0 - NOISE_SHARE)..=all_s * (1.0 + NOISE_SHARE)).contains(&took_s);
        let paced_s = if exact { all_s.min(took_s) } else { all_s - 1.0 };
        let is_paced = paced_s > 0.0 && (exact || (paced_s..all_s).contains(&took_s));
        (is_paced && Cost::of_time(paced_s / took_s).hurts()).then_some(Self::Responses { bytes, took_s, paced_s })
    }

    fn of_connections(ctx: &Context<'_>, tier: &Tier, rate: f64) -> Option<Self> {
        let view = ctx.obs.netns.get(&tier.netns)?;
        let mut sent: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        for (at_us, sample) in ctx.in_window(&view.request_samples) {
            for socket in sample.sockets.iter().filter(|socket| socket.cookie != 0 && tier.accepts(&socket.address)) {
                let bytes = socket.times.and_then(|times| times.bytes_acked.or(times.bytes_sent));
                sent.entry(socket.cookie).or_default().extend(bytes.map(|bytes| (*at_us, bytes)));
            }
        }
        let (mut all, mut paced, mut count, mut seconds) = (0.0, 0.0, 0, 0.0);
        for seen in sent.values() {
            let [(from_us, from), .., (to_us, to)] = seen.as_slice() else { continue };
            let (bytes, took_s) = (to.saturating_sub(*from) as f64, to_us.saturating_sub(*from_us) as f64 / 1e6);
            all += bytes;
            if seen.len() >= SAMPLES_MIN && (bytes / took_s / rate - 1.0).abs() <= NOISE_SHARE {
                (paced, count, seconds) = (paced + bytes, count + 1, seconds + took_s);
            }
        }
        (count > 0 && paced >= BYTES_SHARE * all).then(|| Self::Connections { count, each_per_s: paced / seconds, share: paced / all })
    }
}
