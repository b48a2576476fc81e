//! A transfer as samples of struct tcp_info, and what limited it.

use std::net::SocketAddr;

use chokepoint_model::tcp::Sender;
use chokepoint_sources::{TcpInfo, TcpInfoPlace};
use serde_json::{Value, json};

use crate::verbs::tcp::sender::{busy_us, sender};

/// Samples that are kept. At the bound every second one is dropped, and half as many are taken from then on.
const SAMPLES_MAX: usize = 4_096;
/// `tcpi_snd_ssthresh` without a threshold (TCP_INFINITE_SSTHRESH), and `tcpi_pacing_rate` without a limit.
const NO_THRESHOLD: u64 = 0x7fff_ffff;
const NO_RATE: u64 = u64::MAX;

const SSTHRESH: TcpInfoPlace = TcpInfoPlace::of("snd_ssthresh");
const PACING: TcpInfoPlace = TcpInfoPlace::of("pacing_rate");
const DELIVERY: TcpInfoPlace = TcpInfoPlace::of("delivery_rate");
const RECEIVED: TcpInfoPlace = TcpInfoPlace::of("bytes_received");

/// The state of the connection at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TransferSample {
    /// Seconds since the request was sent.
    pub(crate) at_s: f64,
    pub(crate) sender: Sender,
    /// Slow-start threshold, segments.
    pub(crate) ssthresh: Option<u64>,
    /// Pacing rate and delivery rate, bytes a second.
    pub(crate) pacing: Option<u64>,
    pub(crate) delivery: Option<u64>,
    /// Bytes that this end has received.
    pub(crate) received: u64,
    /// Time with data in flight, us.
    pub(crate) busy_us: u64,
}

impl TransferSample {
    /// The congestion window, bytes.
    pub(crate) fn cwnd_bytes(&self) -> u64 {
        self.sender.cwnd.saturating_mul(self.sender.mss)
    }
}

/// How many seconds each limit applied during a part of the transfer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct LimitTimes {
    /// The application had nothing to send.
    pub(crate) application: f64,
    /// Data was in flight, within the congestion window.
    pub(crate) network: f64,
    /// The peer's receive window was full.
    pub(crate) rwnd: f64,
    /// The send buffer was full.
    pub(crate) sndbuf: f64,
}

impl LimitTimes {
    /// The times between two samples. The kernel counts in ticks: short times are rough.
    pub(crate) fn between(from: &TransferSample, to: &TransferSample) -> Self {
        let span = (to.at_s - from.at_s).max(0.0);
        let growth = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
        let of = |field: fn(&Sender) -> Option<u64>| growth(field(&from.sender).unwrap_or(0), field(&to.sender).unwrap_or(0));
        let busy = growth(from.busy_us, to.busy_us).min(span);
        let rwnd = of(|sender| sender.rwnd_limited_us).min(busy);
        let sndbuf = of(|sender| sender.sndbuf_limited_us).min(busy - rwnd);
        Self { application: span - busy, network: busy - rwnd - sndbuf, rwnd, sndbuf }
    }

    /// The four in the order of [`LIMITS`].
    pub(crate) fn all(&self) -> [f64; 4] {
        [self.application, self.network, self.rwnd, self.sndbuf]
    }

    /// The index of the largest; nothing if all are zero.
    pub(crate) fn largest(&self) -> Option<usize> {
        let all = self.all();
        (0..all.len()).filter(|place| all[*place] > 0.0).max_by(|a, b| all[*a].total_cmp(&all[*b]))
    }
}

/// Ids of the four in the catalogue.
pub(crate) const LIMITS: [&str; 4] = ["tcp-share-application", "tcp-share-network", "tcp-share-rwnd", "tcp-share-sndbuf"];

/// Samples of one end, thinned out as they become many.
#[derive(Debug, Default)]
pub(crate) struct TransferTrace {
    pub(crate) samples: Vec<TransferSample>,
    /// How often it was thinned out: one of 2^halvings readings is kept.
    halvings: u32,
    readings: u64,
}

impl TransferTrace {
    pub(super) fn add(&mut self, at_s: f64, info: &TcpInfo, buffer: Option<(u32, u32)>) {
        let is_kept = self.readings.is_multiple_of(1 << self.halvings.min(63));
        self.readings += 1;
        if !is_kept {
            return;
        }
        let of = |place: TcpInfoPlace| place.read(info.bytes());
        self.samples.push(TransferSample {
            at_s,
            sender: sender(info.bytes(), buffer),
            ssthresh: of(SSTHRESH).filter(|segments| *segments < NO_THRESHOLD),
            pacing: of(PACING).filter(|rate| *rate != NO_RATE),
            delivery: of(DELIVERY),
            received: of(RECEIVED).unwrap_or(0),
            busy_us: busy_us(info.bytes()).unwrap_or(0),
        });
        if self.samples.len() >= SAMPLES_MAX {
            let mut place = 0;
            self.samples.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.halvings += 1;
        }
    }
}

/// A transfer that was followed.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    pub(crate) control: String,
    /// When the request was sent, seconds since 1970-01-01 UTC.
    pub(crate) began_s: f64,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
    /// True if the peer closed the connection.
    pub(crate) ended: bool,
    /// The namespace of the peer's end, if that end was followed.
    pub(crate) peer_netns: Option<String>,
    pub(crate) trace: TransferTrace,
}

impl Transfer {
    /// What limited the whole transfer.
    pub(crate) fn limit_times(&self) -> Option<LimitTimes> {
        let samples = &self.trace.samples;
        Some(LimitTimes::between(samples.first()?, samples.get(1..)?.last()?))
    }

    /// The receive rate between each sample and the next: time and bytes a second.
    pub(crate) fn receive_rates(&self) -> impl Iterator<Item = (f64, f64)> {
        let pairs = self.trace.samples.windows(2);
        let rate =
            |from: &TransferSample, to: &TransferSample| to.received.saturating_sub(from.received) as f64 / (to.at_s - from.at_s).max(1e-6);
        pairs.filter_map(move |pair| match pair {
            [from, to] => Some((to.at_s, rate(from, to))),
            _ => None,
        })
    }

    pub(super) fn json(&self) -> Value {
        let limits = |times: LimitTimes| json!({ "application_s": times.application, "cwnd_and_path_s": times.network, "rwnd_s": times.rwnd, "sndbuf_s": times.sndbuf });
        let sample = |sample: &TransferSample| {
            json!({
                "at_s": sample.at_s,
                "cwnd_segments": sample.sender.cwnd,
                "mss": sample.sender.mss,
                "bytes_in_flight": sample.sender.bytes_in_flight(),
                "ssthresh_segments": sample.ssthresh,
                "srtt_us": sample.sender.rtt_us,
                "pacing_rate": sample.pacing,
                "delivery_rate": sample.delivery,
                "bytes_received": sample.received,
                "retransmits": sample.sender.total_retrans,
                "limited_by": sample.sender.limiter(),
            })
        };
        json!({
            "schema": "chokepoint/tcp-watch/1",
            "local": self.local,
            "peer": self.peer,
            "congestion_control": self.control,
            "began_s": self.began_s,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "ended": self.ended,
            "seen_from": if self.peer_netns.is_some() { "peer" } else { "here" },
            "netns": self.peer_netns,
            "limited": self.limit_times().map(limits),
            "samples": self.trace.samples.iter().map(sample).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: f64, busy_us: u64, rwnd: u64, sndbuf: u64) -> TransferSample {
        let sender = Sender { rwnd_limited_us: Some(rwnd), sndbuf_limited_us: Some(sndbuf), ..Sender::default() };
        TransferSample { at_s, sender, ssthresh: None, pacing: None, delivery: None, received: 0, busy_us }
    }

    #[test]
    fn the_limit_times_between_two_samples_add_up() {
        let times = LimitTimes::between(&sample(1.0, 0, 0, 0), &sample(2.0, 600_000, 100_000, 200_000));
        for (time, expected) in times.all().into_iter().zip([0.4, 0.3, 0.1, 0.2]) {
            assert!((time - expected).abs() < 1e-9, "{times:?}");
        }
        assert_eq!(times.largest(), Some(0));
        // Counters that are ahead of each other by a tick do not add up to more than the time.
        let ahead = LimitTimes::between(&sample(1.0, 0, 0, 0), &sample(1.5, 700_000, 700_000, 9_000));
        assert_eq!((ahead.all().iter().sum::<f64>(), ahead.largest()), (0.5, Some(2)));
        assert_eq!(LimitTimes::between(&sample(1.0, 0, 0, 0), &sample(1.0, 0, 0, 0)).largest(), None);
    }

    #[test]
    fn samples_of_a_long_transfer_are_thinned_out_evenly() {
        let mut trace = TransferTrace::default();
        let info = TcpInfo::of(vec![0; 280]);
        for at in 0..100_000 {
            trace.add(f64::from(at), &info, None);
        }
        let samples = &trace.samples;
        assert!(samples.len() < SAMPLES_MAX && samples.len() >= SAMPLES_MAX / 2, "{}", samples.len());
        let step = samples[1].at_s - samples[0].at_s;
        assert!(samples.windows(2).all(|pair| pair[1].at_s - pair[0].at_s == step), "{step}");
        assert!(samples[0].at_s == 0.0 && samples.last().is_some_and(|last| last.at_s > 99_000.0));
    }
}
