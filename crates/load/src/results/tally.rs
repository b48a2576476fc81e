//! The counts of one thread, by slice, and how the threads' counts become the result.

use std::collections::BTreeMap;
use std::sync::Arc;

use chokepoint_model::load::{self, Errors, GeneratorThread, Handshakes, LoadResult, Loop, Measured, Slice, TlsFailure};

use crate::engine::control::{Control, OwnCount, Progress, lock};
use crate::plan::Plan;
use crate::protocol::certificates;
use crate::protocol::fastcgi::answer::ErrorOutput;
use crate::results::histogram::Durations;
use crate::results::outcome::{Detail, Ended, Failure, RequestEnd, add_errors};
use crate::results::published::{Snapshot, Tenth};
use crate::results::series::{SLICE_NS, Timeline};
use crate::results::tails::Tails;

/// A day of slices and an hour of waiting. Later counts are added to the last slice.
const SLICES_MAX: usize = 25 * 36_000;
/// Maximum number of examples of failures, and maximum bytes of each.
const SAMPLES_MAX: usize = 8;
const SAMPLE_BYTES_MAX: usize = 200;
/// Maximum number of connections whose TCP_INFO is in the result.
const TCP_SAMPLE_MAX: usize = 64;
/// Statuses have three digits.
const STATUSES: usize = 1000;

/// A slice that has ended, for the guards.
pub(crate) struct EndedSlice {
    pub(crate) slice: u64,
    pub(crate) ended: u64,
    pub(crate) not_good: u64,
}

/// One thread's counts.
#[derive(Default)]
pub(crate) struct Tally {
    status: Vec<u64>,
    expected: Vec<bool>,
    errors: Errors,
    good: u64,
    drained: u64,
    drained_good: u64,
    /// Requests of the warm-up that ended after it, while load was offered.
    early: u64,
    early_good: u64,
    good_latency: Durations,
    /// Of answers with an unexpected status.
    wrong_latency: Durations,
    /// Of requests without an answer.
    failed_latency: Durations,
    /// From the intended start to the first byte, for answers that came in pieces.
    first_byte: Durations,
    /// The part of `good_latency` and `wrong_latency` whose answers came in pieces.
    in_pieces: Durations,
    pub(crate) connect: Durations,
    pub(crate) tls: Durations,
    pub(crate) handshakes: Handshakes,
    pub(crate) connections: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) late: u64,
    /// Requests that were sent once more, because a kept connection had been closed.
    pub(crate) resent: u64,
    /// The part of `late` for which no connection was free.
    pub(crate) late_held: u64,
    in_flight: u32,
    /// The part of `in_flight` whose answer has begun.
    answers_begun: u32,
    /// Time that requests were in flight until `changed_ns`, summed over all of them.
    under_way_ns: u128,
    /// Closed loop: time for which connections could not be had, summed over all of them.
    pub(crate) without_connection_ns: u64,
    /// When the number in flight last changed.
    changed_ns: u64,
    /// Where other threads read it.
    own_count: Arc<OwnCount>,
    pub(crate) last_end_ns: u64,
    pub(crate) error_output: ErrorOutput,
    /// TCP_INFO of some connections, read at the end of the load.
    pub(crate) tcp_info: Option<Vec<Vec<u8>>>,
    slices: Vec<Slice>,
    slice: Slice,
    slice_end_ns: u64,
    timeline: Timeline,
    tails: Tails,
    samples: Vec<String>,
    /// Why the first failed TLS handshake failed.
    tls_failure: Option<TlsFailure>,
    /// The kinds of failures that have an example.
    sampled: Vec<(u16, Option<Failure>)>,
    published_in_flight: u32,
}

impl Tally {
    /// `warm_ns`: requests whose intended start is earlier are not counted. `own_count`: where other threads read what is in flight.
    pub(crate) fn new(expect: &[(u16, u16)], warm_ns: u64, own_count: Arc<OwnCount>) -> Self {
        let expected = (0..STATUSES as u16).map(|status| expect.iter().any(|&(low, high)| low <= status && status <= high)).collect();
        Tally {
            status: vec![0; STATUSES],
            expected,
            own_count,
            slice_end_ns: SLICE_NS,
            timeline: Timeline::new(warm_ns),
            ..Tally::default()
        }
    }

    /// Reserves memory for the slices of a load of this length, so that none is allocated while it runs.
    pub(crate) fn reserve(&mut self, duration_ns: u64) {
        self.slices.reserve(((duration_ns / SLICE_NS + 1) as usize).min(SLICES_MAX));
        self.timeline.reserve(duration_ns);
    }

    /// End of the current slice.
    pub(crate) fn slice_end_ns(&self) -> u64 {
        self.slice_end_ns
    }

    /// A request starts. `counted`: it is not part of the warm-up.
    #[inline(always)]
    pub(crate) fn start(&mut self, counted: bool, now_ns: u64) {
        self.timeline.end_due_buckets(now_ns, self.in_flight);
        if counted {
            self.slice.started += 1;
            self.timeline.start();
        }
        self.set_in_flight(self.in_flight + 1, now_ns);
    }

    /// A request has ended.
    pub(crate) fn end_in_flight(&mut self, now_ns: u64) {
        self.set_in_flight(self.in_flight - 1, now_ns);
    }

    /// Tells other threads for how long this one has been on a core.
    pub(crate) fn spent(&self, cpu_ns: u64) {
        self.own_count.set_spent(cpu_ns);
    }

    /// An incomplete answer has begun.
    pub(crate) fn begin_answer(&mut self) {
        self.answers_begun += 1;
        self.own_count.set_begun(self.answers_begun);
    }

    /// A request has ended whose answer had begun.
    pub(crate) fn end_answer(&mut self) {
        self.answers_begun -= 1;
        self.own_count.set_begun(self.answers_begun);
    }

    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    #[inline(always)]
    fn set_in_flight(&mut self, number: u32, now_ns: u64) {
        self.add_time_in_flight(now_ns);
        self.in_flight = number;
        self.own_count.set(number, self.changed_ns, self.under_way_ns as u64);
    }

    /// Adds the time in flight until now.
    #[inline(always)]
    fn add_time_in_flight(&mut self, now_ns: u64) {
        self.under_way_ns += u128::from(self.in_flight) * u128::from(now_ns.saturating_sub(self.changed_ns));
        self.changed_ns = self.changed_ns.max(now_ns);
    }

    /// The load has ended. Requests still in flight are awaited, but their time no longer counts.
    pub(crate) fn end_offering(&mut self, end_ns: u64) {
        self.add_time_in_flight(end_ns);
        // The thread may have noticed it a little late.
        let late_ns = u128::from(self.in_flight) * u128::from(self.changed_ns.saturating_sub(end_ns));
        self.under_way_ns = self.under_way_ns.saturating_sub(late_ns);
        self.changed_ns = u64::MAX;
    }

    /// The warm-up is over. Its requests were not counted; this resets what was counted besides them.
    pub(crate) fn end_warm_up(&mut self, warm_ns: u64) {
        (self.under_way_ns, self.changed_ns) = (0, warm_ns);
        // A request with an intended start at this moment may be in the slice that has just ended.
        self.slice = self.slices.pop().unwrap_or_default();
        self.slice.in_flight = 0;
        self.slices.clear();
        self.tails = Tails::default();
        self.samples.clear();
        self.sampled.clear();
        self.tls_failure = None;
        self.connect = Durations::default();
        (self.tls, self.handshakes) = (Durations::default(), Handshakes::default());
        (self.connections, self.received_bytes, self.sent_bytes) = (0, 0, 0);
    }

    /// Counts a request's end. `drained`: after the end of the load. Returns whether the answer was expected.
    #[inline(always)]
    pub(crate) fn end(&mut self, ended: &Ended, latency_ns: u64, now_ns: u64, drained: bool) -> bool {
        self.end_in_flight(now_ns);
        self.last_end_ns = now_ns;
        let mut good = false;
        match ended.end {
            RequestEnd::Status(status) => {
                let status = usize::from(status).min(STATUSES - 1);
                self.status[status] += 1;
                good = self.expected[status];
                if good { self.slice.good += 1 } else { self.slice.wrong += 1 }
            }
            RequestEnd::Failure(failure) => {
                *failure.counter(&mut self.errors) += 1;
                self.slice.failed += 1;
            }
        }
        self.drained += u64::from(drained);
        self.tails.record_ns(latency_ns);
        if good {
            self.good += 1;
            self.drained_good += u64::from(drained);
            self.good_latency.record_ns(latency_ns);
            self.timeline.good(latency_ns);
        } else if matches!(ended.end, RequestEnd::Status(_)) {
            self.wrong_latency.record_ns(latency_ns);
            self.timeline.wrong(latency_ns);
        } else {
            self.failed_latency.record_ns(latency_ns);
            self.timeline.failed(latency_ns);
        }
        if !good || matches!(ended.detail, Detail::Text(_)) {
            self.sample(ended);
        }
        good
    }

    /// A request of the warm-up has ended. `counts`: after the warm-up and before the end of the load. Then it is part of the rates, which are those of the
    /// answers of that time; without it a load would lose the share that a response time has of its length. It is part of nothing else.
    pub(crate) fn end_of_warm_up(&mut self, ended: &Ended, now_ns: u64, counts: bool) {
        self.end_in_flight(now_ns);
        if !counts {
            return;
        }
        self.early += 1;
        match ended.end {
            RequestEnd::Status(status) if self.expected[usize::from(status).min(STATUSES - 1)] => {
                self.early_good += 1;
                self.slice.good += 1;
            }
            RequestEnd::Status(_) => self.slice.wrong += 1,
            RequestEnd::Failure(_) => self.slice.failed += 1,
        }
    }

    /// Records the time of the first byte of an answer that came in pieces. `answered`: the answer became complete.
    pub(crate) fn in_pieces(&mut self, first_byte_ns: u64, latency_ns: u64, answered: bool) {
        self.first_byte.record_ns(first_byte_ns);
        if answered {
            self.in_pieces.record_ns(latency_ns);
        }
    }

    /// Counts requests of an open loop that were due but could not be sent, with the latency they had by the end.
    pub(crate) fn never_sent(&mut self, count: u64, latency_ns: u64) {
        self.errors.never_sent += count;
        self.drained += count;
        self.failed_latency.record_ns_times(latency_ns, count);
    }

    /// Keeps the first example of each kind of failure. It only allocates for the first few.
    #[cold]
    fn sample(&mut self, ended: &Ended) {
        if self.samples.len() >= SAMPLES_MAX {
            return;
        }
        let kind = match ended.end {
            RequestEnd::Status(status) => (status, None),
            RequestEnd::Failure(failure) => (0, Some(failure)),
        };
        if self.sampled.contains(&kind) {
            return;
        }
        self.sampled.push(kind);
        let tls_failure = match &ended.detail {
            Detail::Io(error) if ended.end == RequestEnd::Failure(Failure::TlsFailed) => Some(certificates::failure(error)),
            _ => None,
        };
        self.tls_failure = self.tls_failure.or(tls_failure);
        let what = match ended.end {
            RequestEnd::Status(status) => {
                let reason = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
                format!("answered {status} {}", reason.unwrap_or("(a status without a name)"))
            }
            RequestEnd::Failure(failure) => failure.text().to_owned(),
        };
        self.add_sample(match &ended.detail {
            Detail::None => what,
            Detail::Io(error) => match tls_failure.and_then(certificates::wrong_certificate) {
                Some(why) => format!("{what}: {why}"),
                None => format!("{what}: {error}"),
            },
            Detail::Text(text) => format!("{what}: {text}"),
        });
    }

    /// Adds an example that is not the end of a request, such as bytes on an idle connection, once.
    pub(crate) fn note(&mut self, text: &str) {
        if self.samples.len() < SAMPLES_MAX && !self.samples.iter().any(|sample| sample == text) {
            self.add_sample(text.to_owned());
        }
    }

    fn add_sample(&mut self, mut text: String) {
        let end = text.floor_char_boundary(SAMPLE_BYTES_MAX);
        text.truncate(end);
        self.samples.push(text);
    }

    /// Ends the current slice if its time is over. The caller repeats until `None`.
    #[inline(always)]
    pub(crate) fn next_ended_slice(&mut self, now_ns: u64, control: &Control) -> Option<EndedSlice> {
        self.timeline.end_due_buckets(now_ns, self.in_flight);
        if now_ns < self.slice_end_ns {
            return None;
        }
        let slice = self.slice_end_ns / SLICE_NS - 1;
        self.slice_end_ns += SLICE_NS;
        Some(self.close_slice(slice, control))
    }

    #[cold]
    fn close_slice(&mut self, number: u64, control: &Control) -> EndedSlice {
        self.tails.end_slice();
        let mut slice = std::mem::take(&mut self.slice);
        slice.in_flight = self.in_flight;
        let ended = u64::from(slice.good) + u64::from(slice.wrong) + u64::from(slice.failed);
        let since = Progress {
            started: u64::from(slice.started),
            ended,
            good: u64::from(slice.good),
            failed: u64::from(slice.failed),
            in_flight: 0,
        };
        control.add(&since, i64::from(self.in_flight) - i64::from(self.published_in_flight));
        self.published_in_flight = self.in_flight;
        if self.slices.len() < SLICES_MAX {
            self.slices.push(slice);
        } else if let Some(last) = self.slices.last_mut() {
            add_slice(last, &slice);
        }
        EndedSlice { slice: number, ended, not_good: ended - since.good }
    }

    /// Publishes an ended slice and all counts so far, if there is a viewer. `warm_slices`: number of slices of the warm-up, which are not published.
    pub(crate) fn publish(&self, control: &Control, thread: usize, closed: &EndedSlice, warm_slices: u64) {
        let (Some(published), Some(number)) = (control.published(), closed.slice.checked_sub(warm_slices)) else { return };
        let mut latency = self.failed_latency.clone();
        latency.add(&self.wrong_latency);
        latency.add(&self.good_latency);
        let numbered = (0u16..).zip(&self.status).filter(|(_, count)| **count > 0);
        let status = numbered.map(|(status, count)| (status, *count)).collect();
        let snapshot = Snapshot { latency, status, errors: self.errors, samples: self.samples.clone() };
        let tenth = Tenth { ended: closed.ended, good: closed.ended - closed.not_good };
        lock(published).add(thread, number, tenth, snapshot);
    }

    /// Adds another thread's counts.
    fn add(&mut self, tally: Tally) {
        for (sum, count) in self.status.iter_mut().zip(&tally.status) {
            *sum += count;
        }
        add_errors(&mut self.errors, &tally.errors);
        self.good += tally.good;
        self.drained += tally.drained;
        self.under_way_ns += tally.under_way_ns;
        self.without_connection_ns += tally.without_connection_ns;
        self.drained_good += tally.drained_good;
        self.early += tally.early;
        self.early_good += tally.early_good;
        self.good_latency.add(&tally.good_latency);
        self.wrong_latency.add(&tally.wrong_latency);
        self.failed_latency.add(&tally.failed_latency);
        self.first_byte.add(&tally.first_byte);
        self.in_pieces.add(&tally.in_pieces);
        self.connect.add(&tally.connect);
        self.tls.add(&tally.tls);
        self.handshakes.full += tally.handshakes.full;
        self.handshakes.resumed += tally.handshakes.resumed;
        self.connections += tally.connections;
        self.received_bytes += tally.received_bytes;
        self.sent_bytes += tally.sent_bytes;
        self.late += tally.late;
        self.resent += tally.resent;
        self.late_held += tally.late_held;
        self.error_output.add(&tally.error_output);
        let slices = self.slices.len().max(tally.slices.len());
        self.slices.resize(slices, Slice::default());
        for (sum, slice) in self.slices.iter_mut().zip(&tally.slices) {
            add_slice(sum, slice);
        }
        self.tls_failure = self.tls_failure.or(tally.tls_failure);
        for sample in &tally.samples {
            self.note(sample);
        }
        self.timeline.add(tally.timeline);
        self.tails.add(tally.tails);
        self.tcp_info.get_or_insert_default().extend(tally.tcp_info.into_iter().flatten());
    }

    /// Ends the last slice, however short it is.
    pub(crate) fn finish(&mut self, control: &Control) {
        self.own_count.set(0, self.changed_ns, self.under_way_ns as u64);
        self.timeline.finish(self.in_flight);
        if self.slice != Slice::default() || self.published_in_flight != self.in_flight {
            self.close_slice(self.slice_end_ns / SLICE_NS - 1, control);
        }
    }
}

fn add_slice(sum: &mut Slice, other: &Slice) {
    sum.started = sum.started.saturating_add(other.started);
    sum.good = sum.good.saturating_add(other.good);
    sum.wrong = sum.wrong.saturating_add(other.wrong);
    sum.failed = sum.failed.saturating_add(other.failed);
    sum.in_flight = sum.in_flight.saturating_add(other.in_flight);
}

/// Merges the threads' counts. `duration_ns`: how long load was offered.
pub(crate) fn merge(plan: &Plan, tallies: Vec<(Tally, GeneratorThread)>, duration_ns: u64) -> Measured {
    let (tallies, threads): (Vec<_>, Vec<_>) = tallies.into_iter().unzip();
    // The first one becomes the sum: a single thread's counts are not copied.
    let sum = tallies.into_iter().reduce(|mut sum, tally| {
        sum.add(tally);
        sum
    });
    let mut sum = sum.unwrap_or_else(|| Tally::new(&plan.expect, 0, Arc::default()));
    if let Some(error_output) = sum.error_output.text() {
        // It often explains why an answer was wrong, so it always gets a place among the examples.
        sum.samples.truncate(SAMPLES_MAX - 1);
        sum.note(&error_output);
    }
    let timeline = std::mem::take(&mut sum.timeline);
    let good_latency_us = sum.good_latency.percentiles();
    let lost = lost(plan, &sum);
    let (latency, detail) = detail(plan, &mut sum);
    let mut tcp_info = sum.tcp_info.take().unwrap_or_default();
    tcp_info.truncate(TCP_SAMPLE_MAX);
    let detail = load::Detail { series: timeline.into_series(), tcp_info, ..detail };
    let numbered = (0u16..).zip(&sum.status);
    let status: BTreeMap<u16, u64> = numbered.filter(|(_, count)| **count > 0).map(|(status, count)| (status, *count)).collect();
    let result = LoadResult {
        shape: plan.shape,
        keep_alive: plan.keep_alive,
        timeout_us: plan.timeout.as_micros() as u64,
        duration_us: duration_ns / 1000,
        requests: status.values().sum::<u64>() + sum.errors.total(),
        status,
        good: sum.good,
        drained: sum.drained,
        drained_good: sum.drained_good,
        early: sum.early,
        early_good: sum.early_good,
        under_way_us: Some(u64::try_from(sum.under_way_ns / 1000).unwrap_or(u64::MAX)),
        without_connection_us: matches!(plan.shape, Loop::Closed { .. }).then_some(sum.without_connection_ns / 1000),
        errors: sum.errors,
        latency_us: latency.percentiles,
        latency_us_p99_range: latency.p99_us,
        good_latency_us,
        lost: Some(lost),
        connect_us: sum.connect.percentiles(),
        latency_histogram: latency.text,
        connections: sum.connections,
        tls: plan.options.tls.as_ref().map(|tls| load::TlsLoad {
            offers_sessions: tls.resume,
            handshakes: sum.handshakes,
            // Without a handshake there is no time of one.
            time_us: (sum.handshakes != load::Handshakes::default()).then(|| sum.tls.percentiles()),
            failure: sum.tls_failure,
        }),
        received_bytes: sum.received_bytes,
        sent_bytes: sum.sent_bytes,
        late: sum.late,
        resent: sum.resent,
        slices: sum.slices,
        threads,
        stopped_by: None,
        interrupted: false,
        error_samples: sum.samples,
    };
    Measured { result, detail }
}

/// The client time lost to failures and late answers.
fn lost(plan: &Plan, sum: &Tally) -> load::Lost {
    let us = |span: std::time::Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    let patience_us = load::patience_us(plan.options.objective.map(us), us(plan.timeout));
    let (late, late_us) = sum.good_latency.beyond(patience_us);
    let (_, failed_us) = sum.failed_latency.beyond(0);
    let (_, wrong_us) = sum.wrong_latency.beyond(0);
    let (_, good_us) = sum.good_latency.beyond(0);
    // A client that cannot have a connection loses all of its time, although its tries fail at once.
    let missed_us = failed_us + wrong_us + sum.without_connection_ns / 1000;
    load::Lost { patience_us, late, time_us: late_us + missed_us, of_us: good_us + missed_us }
}

/// The latency of all requests.
struct Latency {
    percentiles: load::Percentiles,
    p99_us: Option<(u64, u64)>,
    text: String,
}

/// The latency of all requests, and details for a report on the load itself. The latencies of `sum` are merged into one: copies of each histogram would be the
/// largest memory of a load.
fn detail(plan: &Plan, sum: &mut Tally) -> (Latency, load::Detail) {
    let mut answered = std::mem::take(&mut sum.good_latency);
    answered.add(&sum.wrong_latency);
    // For an answer that came at once, the first byte came when it was complete.
    let first_byte_us = if sum.in_pieces.is_empty() && sum.first_byte.is_empty() {
        answered.percentiles()
    } else {
        let mut first_byte = answered.clone();
        first_byte.subtract(&sum.in_pieces);
        first_byte.add(&sum.first_byte);
        first_byte.percentiles()
    };
    let mut latency = answered;
    latency.add(&sum.failed_latency);
    let published = Latency { percentiles: latency.percentiles(), p99_us: sum.tails.p99_us(&latency), text: latency.text() };
    let detail = load::Detail {
        warm_up_us: plan.options.warm_up.as_micros() as u64,
        first_byte_us,
        latency_us_mean: latency.mean(),
        latency_us_stdev: latency.stdev(),
        quantiles: latency.quantiles(),
        distribution: latency.distribution(),
        tls_us: sum.tls.percentiles(),
        late_held: sum.late_held,
        series: load::Series::default(),
        tcp_info: Vec::new(),
        corrected_latency_us: matches!(plan.shape, Loop::Closed { .. }).then(|| latency.corrected().percentiles()),
    };
    (published, detail)
}
