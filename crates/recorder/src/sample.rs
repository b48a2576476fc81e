//! A sample: what was seen of each watched server in a span of time. Samples of adjacent spans add up to one of both: means keep the time they were seen for, and
//! response times keep their counts.

use std::collections::BTreeMap;

use chokepoint_model::report::{LedgerLossKind, LedgerPlaceKind, LedgerReport};
use chokepoint_statistics::histogram::{Counts, Histogram};
use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::largest::keep_largest;
use crate::response::{ResponseTimes, Unanswered};

/// Most groups of URLs in a sample, and most upstreams.
const GROUPS_MAX: usize = 16;
/// Digits after the point of kept sums.
const ROUND: f64 = 1e4;

/// A sum over time, and the seconds in which it was seen. Seconds of zero: it was not seen, which is not a value of zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, f64)", into = "(f64, f64)")]
pub struct Mean {
    /// Value times seconds.
    pub sum: f64,
    /// Seconds.
    pub seconds: f64,
}

impl Mean {
    /// A value that was seen for this long. `None` was not seen.
    pub fn of(value: Option<f64>, seconds: f64) -> Self {
        value.filter(|value| value.is_finite()).map_or(Self::default(), |value| Self { sum: rounded(value * seconds), seconds })
    }

    /// The mean value; `None` if it was not seen.
    pub fn value(self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.sum / self.seconds)
    }

    /// Adds another span.
    pub fn merge(&mut self, other: Self) {
        self.sum = rounded(self.sum + other.sum);
        self.seconds = rounded(self.seconds + other.seconds);
    }
}

impl From<(f64, f64)> for Mean {
    fn from((sum, seconds): (f64, f64)) -> Self {
        Self { sum, seconds }
    }
}

impl From<Mean> for (f64, f64) {
    fn from(mean: Mean) -> Self {
        (mean.sum, mean.seconds)
    }
}

fn rounded(value: f64) -> f64 {
    (value * ROUND).round() / ROUND
}

/// What was seen of all watched servers in a span of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When the span began, seconds since 1970.
    pub at_s: u64,
    /// Its length, seconds.
    pub span_s: u32,
    /// The servers that were seen in it.
    pub targets: Vec<TargetSample>,
    /// What the whole host did; not looked at each second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
}

/// What was seen of one watched server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetSample {
    /// Its name.
    pub target: String,
    /// Requests under way.
    pub under_way: Mean,
    /// Requests a second.
    pub rate: Mean,
    /// Where they stood: request-seconds in the seconds of `under_way`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Standing>,
    /// What was lost in the same seconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
    /// Connections by what they do, as nginx counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Workers of the pools of php-fpm on its path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<String, PoolUse>,
    /// The queues of its listeners.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<Queue>,
    /// The ports of its edges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Ports>,
    /// The ages of its unanswered requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<Unanswered>,
    /// What its access log told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged: Option<Logged>,
    /// How long its requests took; in samples of a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseTimes>,
}

/// Requests at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The tier, or "client".
    pub tier: String,
    /// The kind of place.
    pub place: LedgerPlaceKind,
    /// Mean number times seconds.
    pub request_seconds: f64,
}

/// Requests that were lost in one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// The tier that refused them, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// The place that refused them, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// How.
    pub kind: LedgerLossKind,
    /// How many; estimates are no whole numbers.
    pub count: f64,
}

/// The accept queue of a listener; of the sockets that share an address (SO_REUSEPORT) the fullest: that one refuses first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// Its address.
    pub listener: String,
    /// The most that waited.
    pub most: u32,
    /// The limit.
    pub limit: u32,
}

/// The local ports of an edge: those from which a tier dials an upstream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ports {
    /// The dialling tier and the address that it dials.
    pub edge: String,
    /// Most ports of live connections.
    pub live: u64,
    /// Most in TIME_WAIT on the dialling side.
    pub time_wait: u64,
    /// Ports that the range has.
    pub limit: u64,
}

/// Connections of an nginx, as its status page tells them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Connections {
    /// Those whose request is being read.
    pub reading: Mean,
    /// Those whose request is being served or answered.
    pub writing: Mean,
    /// Those that are kept for another request.
    pub waiting: Mean,
}

/// Workers of a pool, as its status page tells them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolUse {
    /// Workers with a request.
    pub active: Mean,
    /// All workers.
    pub total: Mean,
}

/// What an access log told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Logged {
    /// Answers by status.
    pub status: BTreeMap<u16, u64>,
    /// Bytes of answers.
    pub bytes: u64,
    /// Lines that do not match the log's format, or that were skipped because the log grew faster than it is read.
    pub unread: u64,
    /// Groups of URLs, those with most answers: a path whose values are "*". The rest is not listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub urls: BTreeMap<String, GroupUse>,
    /// Upstreams by address, those with most answers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub upstreams: BTreeMap<String, GroupUse>,
    /// Durations by name: "request", "upstream-connect", "upstream-header", "upstream-response".
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub durations_us: BTreeMap<String, Durations>,
}

/// Answers to the requests for a group of URLs, or of an upstream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupUse {
    /// How many.
    pub answers: u64,
    /// Of those, the ones that failed.
    pub failed: u64,
    /// Sum of their response times, microseconds. `None` if the log has none.
    pub time_us: Option<u64>,
    /// Bytes of the answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// Durations by name, as those of [`Logged`], in wider buckets: a percentile is at most one part in 16 too high.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub durations_us: BTreeMap<String, Durations>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Counts of durations, microseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "KeptDurations", into = "KeptDurations")]
pub struct Durations(pub Counts);

/// Durations as they are kept: pairs of bucket and count, sum, largest.
#[derive(Serialize, Deserialize)]
struct KeptDurations(Vec<(u16, u64)>, f64, u64);

impl TryFrom<KeptDurations> for Durations {
    type Error = &'static str;

    fn try_from(KeptDurations(buckets, sum, max): KeptDurations) -> Result<Self, Self::Error> {
        Counts::from_parts(buckets, sum, max).map(Self).ok_or("counts of durations that cannot be")
    }
}

impl From<Durations> for KeptDurations {
    fn from(Durations(counts): Durations) -> Self {
        let (buckets, sum, max) = counts.parts();
        Self(buckets.to_vec(), sum, max)
    }
}

impl Queue {
    /// How full it is: a queue without room for anybody is refusing.
    fn fill(&self) -> f64 {
        f64::from(self.most) / f64::from(self.limit).max(0.5)
    }
}

impl Sample {
    /// Adds the sample of another span of the same watch.
    pub fn merge(&mut self, other: &Self) {
        match (&mut self.host, &other.host) {
            (Some(ours), Some(theirs)) => ours.merge(theirs),
            (None, theirs) => self.host.clone_from(theirs),
            (Some(_), None) => {}
        }
        for theirs in &other.targets {
            match self.targets.iter_mut().find(|ours| ours.target == theirs.target) {
                Some(ours) => ours.merge(theirs),
                None => self.targets.push(theirs.clone()),
            }
        }
    }

    /// The sample of this server.
    pub fn target(&self, name: &str) -> Option<&TargetSample> {
        self.targets.iter().find(|target| target.target == name)
    }
}

impl TargetSample {
    /// From the account of a span of this many seconds; without one nothing was seen.
    pub fn of(target: &str, ledger: Option<&LedgerReport>, seconds: f64) -> Self {
        let Some(ledger) = ledger else { return Self { target: target.to_owned(), ..Self::default() } };
        let standing = |place: &chokepoint_model::report::LedgerPlace| Standing {
            tier: place.tier.clone(),
            place: place.place,
            request_seconds: rounded(place.mean * seconds),
        };
        let loss = |loss: &chokepoint_model::report::LedgerLoss| Loss {
            tier: loss.tier.clone(),
            place: loss.place.clone(),
            kind: loss.kind,
            count: rounded(loss.per_s * seconds),
        };
        let mut sample = Self {
            target: target.to_owned(),
            under_way: Mean::of(Some(ledger.under_way), seconds),
            rate: Mean::of(ledger.rate_rps, seconds),
            losses: ledger.losses.iter().map(loss).collect(),
            ..Self::default()
        };
        // A tier with several listeners or edges has several lines of one kind.
        ledger.places.iter().map(standing).for_each(|standing| sample.stand(standing));
        sample
    }

    /// Takes the ages of unanswered requests: the most that each can be, microseconds, which is less by at most a tick. Reading the sockets took so long.
    pub fn see_unanswered(&mut self, ages_us: &[u64], tick_us: u64, took_us: u64) {
        let mut histogram = Histogram::default();
        ages_us.iter().for_each(|age_us| histogram.add(*age_us));
        self.unanswered = (histogram.total() > 0).then(|| Unanswered { tick_us, ages_us: Durations(histogram.counts()), took_us });
    }

    /// Takes the queue of a listening socket.
    pub fn see_queue(&mut self, queue: Queue) {
        match self.queues.iter_mut().find(|known| known.listener == queue.listener) {
            Some(known) if known.fill() < queue.fill() => *known = queue,
            Some(_) => {}
            None => self.queues.push(queue),
        }
    }

    fn stand(&mut self, standing: Standing) {
        match self.places.iter_mut().find(|place| place.tier == standing.tier && place.place == standing.place) {
            Some(place) => place.request_seconds = rounded(place.request_seconds + standing.request_seconds),
            None => self.places.push(standing),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.under_way.merge(other.under_way);
        self.rate.merge(other.rate);
        other.places.iter().cloned().for_each(|standing| self.stand(standing));
        for theirs in &other.losses {
            let same = |ours: &&mut Loss| (&ours.tier, &ours.place, ours.kind) == (&theirs.tier, &theirs.place, theirs.kind);
            match self.losses.iter_mut().find(same) {
                Some(ours) => ours.count = rounded(ours.count + theirs.count),
                None => self.losses.push(theirs.clone()),
            }
        }
        for theirs in &other.ports {
            match self.ports.iter_mut().find(|ours| ours.edge == theirs.edge) {
                Some(ours) => {
                    (ours.live, ours.time_wait) = (ours.live.max(theirs.live), ours.time_wait.max(theirs.time_wait));
                    ours.limit = theirs.limit;
                }
                None => self.ports.push(theirs.clone()),
            }
        }
        for theirs in &other.queues {
            match self.queues.iter_mut().find(|ours| ours.listener == theirs.listener) {
                Some(ours) => (ours.most, ours.limit) = (ours.most.max(theirs.most), theirs.limit),
                None => self.queues.push(theirs.clone()),
            }
        }
        if let Some(theirs) = other.connections {
            let ours = self.connections.get_or_insert_default();
            ours.reading.merge(theirs.reading);
            ours.writing.merge(theirs.writing);
            ours.waiting.merge(theirs.waiting);
        }
        for (pool, theirs) in &other.pools {
            let ours = self.pools.entry(pool.clone()).or_default();
            ours.active.merge(theirs.active);
            ours.total.merge(theirs.total);
        }
        if let Some(theirs) = &other.unanswered {
            let ours = self.unanswered.get_or_insert_default();
            ours.tick_us = ours.tick_us.max(theirs.tick_us);
            let (ours_total, theirs_total) = (ours.ages_us.0.total(), theirs.ages_us.0.total());
            let took_us = u128::from(ours.took_us) * u128::from(ours_total) + u128::from(theirs.took_us) * u128::from(theirs_total);
            ours.took_us = u64::try_from(took_us / u128::from(ours_total + theirs_total).max(1)).unwrap_or(u64::MAX);
            ours.ages_us.0.merge(&theirs.ages_us.0);
        }
        if let Some(theirs) = &other.logged {
            self.logged.get_or_insert_default().merge(theirs);
        }
    }

    /// Mean number of requests at a place.
    pub fn mean_at(&self, standing: &Standing) -> f64 {
        if self.under_way.seconds > 0.0 { standing.request_seconds / self.under_way.seconds } else { 0.0 }
    }

    /// Lost requests a second; `None` if nothing was seen.
    pub fn lost_per_s(&self) -> Option<f64> {
        let lost: f64 = self.losses.iter().map(|loss| loss.count).sum();
        (self.under_way.seconds > 0.0).then(|| lost / self.under_way.seconds)
    }

    /// Mean number of connections that have either a request or an answer: they are among those under way, and may be idle.
    pub(crate) fn undecided(&self) -> f64 {
        let undecided = self.places.iter().filter(|standing| standing.place == LedgerPlaceKind::Undecided);
        undecided.map(|standing| self.mean_at(standing)).sum()
    }

    /// Mean response time by Little's law, seconds. `None` if no request was answered, or if more connections may be idle than are known to have a request.
    pub fn response_s(&self) -> Option<f64> {
        let rate = self.rate.value().filter(|rate| *rate > 0.0)?;
        let under_way = self.under_way.value()?;
        (2.0 * self.undecided() <= under_way).then(|| under_way / rate)
    }
}

impl GroupUse {
    fn merge(&mut self, other: &Self) {
        let sums = [(&mut self.answers, other.answers), (&mut self.failed, other.failed), (&mut self.bytes, other.bytes)];
        sums.into_iter().for_each(|(ours, theirs)| *ours = ours.saturating_add(theirs));
        self.time_us = self.time_us.into_iter().chain(other.time_us).reduce(u64::saturating_add);
        merge_durations(&mut self.durations_us, &other.durations_us);
    }
}

fn merge_durations(ours: &mut BTreeMap<String, Durations>, theirs: &BTreeMap<String, Durations>) {
    for (name, durations) in theirs {
        ours.entry(name.clone()).or_default().0.merge(&durations.0);
    }
}

impl Logged {
    /// Adds those of another span.
    pub fn merge(&mut self, other: &Self) {
        for (status, count) in &other.status {
            let sum = self.status.entry(*status).or_default();
            *sum = sum.saturating_add(*count);
        }
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.unread = self.unread.saturating_add(other.unread);
        for (ours, theirs) in [(&mut self.urls, &other.urls), (&mut self.upstreams, &other.upstreams)] {
            theirs.iter().for_each(|(group, theirs)| ours.entry(group.clone()).or_default().merge(theirs));
            keep_largest(ours, GROUPS_MAX, |group| group.answers as f64);
        }
        merge_durations(&mut self.durations_us, &other.durations_us);
    }

    /// Number of answers.
    pub fn answers(&self) -> u64 {
        self.status.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durations(values: &[u64]) -> BTreeMap<String, Durations> {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.add(*value));
        BTreeMap::from([("request".to_owned(), Durations(histogram.counts()))])
    }

    fn sample(under_way: f64, rate: Option<f64>, standing: f64) -> Sample {
        let place = Standing { tier: "nginx".to_owned(), place: LedgerPlaceKind::Cpu, request_seconds: standing };
        let loss = Loss { tier: None, place: None, kind: LedgerLossKind::Refused, count: 1.5 };
        let target = TargetSample {
            target: "a".to_owned(),
            under_way: Mean::of(Some(under_way), 1.0),
            rate: Mean::of(rate, 1.0),
            places: vec![place],
            losses: vec![loss],
            connections: Some(Connections { writing: Mean::of(Some(under_way), 1.0), ..Connections::default() }),
            pools: BTreeMap::from([("www".to_owned(), PoolUse { active: Mean::of(rate, 1.0), total: Mean::of(Some(20.0), 1.0) })]),
            ports: vec![Ports { edge: "nginx to 127.0.0.1:9000".to_owned(), live: standing as u64, time_wait: 7, limit: 28_232 }],
            queues: vec![Queue { listener: "0.0.0.0:80".to_owned(), most: standing as u32, limit: 511 }],
            unanswered: None,
            response: None,
            logged: Some(Logged {
                status: BTreeMap::from([(200, 2)]),
                bytes: 10,
                unread: 0,
                urls: BTreeMap::new(),
                upstreams: BTreeMap::from([(
                    "127.0.0.1:9000".to_owned(),
                    GroupUse { answers: 2, failed: 1, time_us: Some(3), ..GroupUse::default() },
                )]),
                durations_us: durations(&[1_000, 2_000]),
            }),
        };
        Sample { at_s: 100, span_s: 1, targets: vec![target], host: None }
    }

    #[test]
    fn samples_add_up_and_what_was_not_seen_is_no_zero() {
        let mut sum = sample(4.0, Some(8.0), 4.0);
        sum.merge(&sample(2.0, None, 1.0));
        let target = sum.target("a").unwrap();
        assert_eq!((target.under_way.value(), target.rate.value()), (Some(3.0), Some(8.0)), "the rate was seen in one of two seconds");
        assert_eq!((target.mean_at(&target.places[0]), target.lost_per_s()), (2.5, Some(1.5)));
        assert_eq!((target.queues[0].most, target.response_s()), (4, Some(3.0 / 8.0)));
        let logged = target.logged.as_ref().unwrap();
        assert_eq!((logged.answers(), logged.bytes, logged.durations_us["request"].0.total()), (4, 20, 4));
        assert_eq!(logged.upstreams["127.0.0.1:9000"], GroupUse { answers: 4, failed: 2, time_us: Some(6), ..GroupUse::default() });
        let (connections, pool) = (target.connections.unwrap(), target.pools["www"]);
        assert_eq!((connections.writing.value(), connections.reading.value()), (Some(3.0), None));
        assert_eq!((pool.active.value(), pool.total.value()), (Some(8.0), Some(20.0)), "busy workers were seen in one of two seconds");
        let unseen = TargetSample::of("b", None, 1.0);
        assert_eq!((unseen.under_way.value(), unseen.lost_per_s(), unseen.response_s()), (None, None, None));
    }

    #[test]
    fn of_the_sockets_of_one_address_the_fullest_is_kept() {
        let queue = |most, limit| Queue { listener: "0.0.0.0:80".to_owned(), most, limit };
        let mut target = TargetSample::default();
        [queue(0, 511), queue(7, 8), queue(100, 511)].into_iter().for_each(|queue| target.see_queue(queue));
        assert_eq!(target.queues, [queue(7, 8)]);
        target.see_queue(Queue { listener: "[::]:80".to_owned(), ..queue(1, 8) });
        assert_eq!(target.queues.len(), 2);
    }

    #[test]
    fn a_sample_comes_back_from_json_and_damage_is_refused() {
        let sample = sample(4.0, None, 4.0);
        let json = serde_json::to_string(&sample).unwrap();
        assert_eq!(serde_json::from_str::<Sample>(&json).unwrap(), sample);
        for (from, to) in [("[[506,", "[[9506,"), ("\"request_seconds\":4.0", "\"request_seconds\":\"4\"")] {
            let damaged = json.replace(from, to);
            assert_ne!(damaged, json, "{json}");
            assert!(serde_json::from_str::<Sample>(&damaged).is_err(), "{damaged}");
        }
    }
}
