//! Warnings about a load's figures: the generator was the limit, requests are missing, or a figure is misleading.

use super::{Asked, Warning};
use crate::fix::change::core_list;
use crate::judge::warnings::resent;
use crate::observation::load::{GENERATOR_LIMITED, GeneratorThread, LoadResult, Loop, Measured, Slice};
use crate::output::catalogue::Catalogue;
use crate::output::message::Message;

/// Share of late sends in an open loop up to which there is no warning.
const LATE_SHARE: f64 = 0.01;
/// Share of requests that may fail because of the generator's own ports, files or memory without a warning.
const LOCAL_SHARE: f64 = 0.001;
/// A corrected percentile this many times the measured one makes the measured one misleading.
const OMITTED_FACTOR: u64 = 2;
/// Smallest difference worth a warning, microseconds.
const OMITTED_US_MIN: u64 = 1_000;
/// A stall: nothing ended for at least this many slices, and for this many times the median latency.
const STALL_SLICES_MIN: usize = 3;
const STALL_FACTOR: f64 = 3.0;
/// A percentile with fewer slower requests than this is chance.
const BEYOND_MIN: u64 = 10;
/// A 3xx status that is no redirect (RFC 9110 section 15.4.5).
const NOT_MODIFIED: u16 = 304;
/// Share of requests that opened a connection, although connections were to be kept, from which there is a warning.
const CLOSED_SHARE: f64 = 0.5;

/// All warnings that apply, the most serious first.
pub(super) fn of(asked: &Asked, measured: &Measured, words: &Catalogue) -> Vec<Warning> {
    let load = &measured.result;
    if load.requests == 0 {
        return Vec::new();
    }
    let all = [
        suspended(asked),
        generator(load),
        local(load),
        late(measured),
        resent(&measured.result),
        never_sent(load),
        omitted(measured),
        stalled(load),
        redirected(load),
    ];
    let rest = [closed(load), few(load), shared(asked, load)];
    let said = all.into_iter().chain(rest).flatten();
    said.map(|message| Warning { id: message.id.trim_start_matches("bench-warning-"), text: words.text(&message) }).collect()
}

fn suspended(asked: &Asked) -> Option<Message> {
    (asked.suspended_s > 0.0).then(|| Message::new("bench-warning-suspended").with("seconds", (asked.suspended_s * 10.0).round() / 10.0))
}

/// The busiest thread's share of its time on a core.
pub(super) fn busy(load: &LoadResult) -> f64 {
    load.threads.iter().map(|thread| share(thread, thread.cpu_us)).fold(0.0, f64::max)
}

fn share(thread: &GeneratorThread, us: u64) -> f64 {
    (us as f64 / thread.wall_us.max(1) as f64).min(1.0)
}

/// The largest share of its time that a thread was ready or ran without a core: soft interrupts, the server or other programs had it.
fn wanted(load: &LoadResult) -> f64 {
    let wanted = |thread: &GeneratorThread| share(thread, thread.cpu_us + thread.wait_us.unwrap_or(0));
    load.threads.iter().map(wanted).fold(0.0, f64::max)
}

/// True if the server may pass more than was measured.
pub(super) fn is_limit(load: &LoadResult) -> bool {
    busy(load) >= GENERATOR_LIMITED || wanted(load) >= GENERATOR_LIMITED || is_local(load)
}

fn is_local(load: &LoadResult) -> bool {
    load.errors.local() as f64 > LOCAL_SHARE * load.requests as f64
}

fn generator(load: &LoadResult) -> Option<Message> {
    let cores: Vec<u32> = load.threads.iter().flat_map(|thread| thread.cpus.iter().copied()).collect();
    let threads = load.threads.len() as u64;
    let id = match (busy(load), wanted(load)) {
        (busy, _) if busy >= GENERATOR_LIMITED => "bench-warning-generator-cpu",
        (_, wanted) if wanted >= GENERATOR_LIMITED => "bench-warning-generator-waited",
        _ => return None,
    };
    let message = Message::new(id).with("busy", busy(load) * 100.0).with("waited", (wanted(load) - busy(load)) * 100.0);
    Some(message.with("threads", threads).with("cores", core_list(&cores)))
}

fn local(load: &LoadResult) -> Option<Message> {
    let errors = &load.errors;
    is_local(load).then(|| {
        let message = Message::new("bench-warning-local").with("ports", errors.local_ports).with("files", errors.local_files);
        message.with("memory", errors.local_memory)
    })
}

fn late(measured: &Measured) -> Option<Message> {
    let (load, held) = (&measured.result, measured.detail.late_held);
    let Loop::Open { connections, .. } = load.shape else { return None };
    if load.late as f64 <= LATE_SHARE * load.requests as f64 {
        return None;
    }
    let id = if held * 2 > load.late { "bench-warning-late-held" } else { "bench-warning-late-generator" };
    let share = load.late as f64 / load.requests as f64 * 100.0;
    Some(Message::new(id).with("late", load.late).with("share", share).with("connections", connections))
}

fn never_sent(load: &LoadResult) -> Option<Message> {
    let count = load.errors.never_sent;
    (count > 0).then(|| Message::new("bench-warning-never-sent").with("n", count))
}

/// For a closed loop whose percentiles miss the requests that slow answers delayed.
fn omitted(measured: &Measured) -> Option<Message> {
    let (raw, corrected) = (&measured.result.latency_us, measured.detail.corrected_latency_us.as_ref()?);
    let points = [("p90", raw.p90, corrected.p90), ("p99", raw.p99, corrected.p99), ("p99.9", raw.p999, corrected.p999)];
    let differs = |raw: u64, corrected: u64| corrected >= raw.saturating_mul(OMITTED_FACTOR).max(raw.saturating_add(OMITTED_US_MIN));
    let (name, raw, corrected) = points.into_iter().find(|(_, raw, corrected)| differs(*raw, *corrected))?;
    let ms = |us: u64| us as f64 / 1e3;
    Some(Message::new("bench-warning-omitted").with("name", name).with("raw", ms(raw)).with("corrected", ms(corrected)))
}

/// The longest time without an end of a request while requests were under way.
fn stalled(load: &LoadResult) -> Option<Message> {
    let is_still = |slice: &Slice| slice.good == 0 && slice.wrong == 0 && slice.failed == 0 && slice.in_flight > 0;
    let (mut longest, mut begin) = (0..0, 0);
    for (place, slice) in load.offered().iter().enumerate() {
        if !is_still(slice) {
            begin = place + 1;
        } else if place + 1 - begin > longest.len() {
            longest = begin..place + 1;
        }
    }
    let median_slices = load.latency_us.p50 as f64 / 1e5;
    let is_stall =
        longest.len() >= STALL_SLICES_MIN && longest.len() as f64 >= STALL_FACTOR * median_slices && longest.len() < load.offered().len();
    let seconds = |slices: usize| slices as f64 / 10.0;
    is_stall.then(|| Message::new("bench-warning-stalled").with("seconds", seconds(longest.len())).with("at", seconds(longest.start)))
}

fn redirected(load: &LoadResult) -> Option<Message> {
    let mut statuses = load.status.keys();
    match (statuses.next(), statuses.next()) {
        (Some(status), None) if (300..400).contains(status) && *status != NOT_MODIFIED => {
            Some(Message::new("bench-warning-redirected").with("status", status.to_string()))
        }
        _ => None,
    }
}

fn closed(load: &LoadResult) -> Option<Message> {
    let answers: u64 = load.status.values().sum();
    let many = answers > 0
        && load.keep_alive
        && load.connections as f64 > CLOSED_SHARE * answers as f64
        && load.connections > 2 * connections(load);
    many.then(|| Message::new("bench-warning-closed").with("connections", load.connections).with("answers", answers))
}

fn connections(load: &LoadResult) -> u64 {
    let (Loop::Closed { connections } | Loop::Open { connections, .. }) = load.shape;
    u64::from(connections)
}

fn few(load: &LoadResult) -> Option<Message> {
    let name = match load.requests {
        n if n / 100 < BEYOND_MIN => "p99",
        n if n / 1000 < BEYOND_MIN => "p99.9",
        _ => return None,
    };
    Some(Message::new("bench-warning-few").with("name", name).with("requests", load.requests))
}

fn shared(asked: &Asked, load: &LoadResult) -> Option<Message> {
    // A generator that did almost nothing took nothing from the server.
    (asked.shares_cores && busy(load) > 0.1).then(|| Message::new("bench-warning-shared").with("busy", busy(load) * 100.0))
}
