//! Pauses of a server that is watched: for a while it reads nothing and answers nothing, although requests stand there and as many come as before.

use std::collections::BTreeMap;

use crate::facts::Context;
use crate::facts::pool::MOST;
use crate::observation::{RequestSample, RequestSocket, RequestTimes};

use super::connections::tier_of;
use super::rhythm::tick_ms;

/// Fewest answers that are usual in such a time: chance then leaves one in twenty thousand without one (Poisson).
const ANSWERS_MIN: f64 = 10.0;

/// Spells in which nothing was read or answered although requests stood.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pauses {
    /// Share of the time that was watched.
    pub(crate) share: f64,
    /// The longest one, microseconds.
    pub(crate) longest_us: u64,
    /// Mean number of requests that stood at their ends.
    pub(crate) standing: f64,
}

/// The time of a sample, and the first tier's sockets in it by their cookies.
type Moment<'s> = (u64, BTreeMap<u64, &'s RequestSocket>);

/// What happened at the first tier between two samples.
struct Interval {
    us: u64,
    /// Answers, and connections that ended.
    answered: u64,
    /// Requests that stood unread at both ends of it, and at its end.
    stayed: usize,
    standing: usize,
    /// Requests that were read, or not, and stood unanswered at both ends.
    unanswered: usize,
    /// Between the first of these that came and the last, microseconds.
    apart_us: u64,
}

impl Pauses {
    /// `None` if there are none, or if the samples do not have all connections.
    pub(crate) fn of(ctx: &Context<'_>) -> Option<Self> {
        let first = ctx.path.tiers.first()?;
        let samples: Vec<&(u64, RequestSample)> = ctx.in_window(&ctx.obs.netns.get(&first.netns)?.request_samples).collect();
        if samples.iter().any(|(_, sample)| sample.share < 1.0) {
            return None;
        }
        let sockets: Vec<Moment<'_>> = samples.into_iter().map(|(at_us, sample)| (*at_us, own(ctx, sample))).collect();
        let intervals: Vec<Interval> = sockets.windows(2).map(|two| Interval::between(&two[0], &two[1])).collect();
        let all_us = intervals.iter().map(|interval| interval.us).sum::<u64>().max(1);
        let usual = intervals.iter().map(|interval| interval.answered).sum::<u64>() as f64 / all_us as f64;
        let most = intervals.iter().map(|interval| interval.unanswered).max().unwrap_or(0) as f64;
        // Each of those that stand had so many answers in the time. Long requests have few, which come together once they were asked for together.
        let is_quick = |interval: &Interval| usual * interval.us as f64 > ANSWERS_MIN * most;
        // Those that came one after another, with as much time in between as answers take, were not asked for together.
        let came_apart = |interval: &Interval| usual * interval.apart_us as f64 >= ANSWERS_MIN;
        // A few that were read and stand are long ones, while nobody asks for others.
        let stand = |interval: &Interval| interval.unanswered as f64 > MOST * most && (is_quick(interval) || came_apart(interval));
        let is_still = |interval: &Interval| interval.answered == 0 && (interval.stayed > 0 || stand(interval));
        let spells = intervals.split(|interval| !is_still(interval)).filter_map(|spell| {
            let us = spell.iter().map(|interval| interval.us).sum::<u64>();
            let last = spell.last()?;
            (usual * us as f64 >= ANSWERS_MIN).then_some((us, last.standing.max(last.unanswered)))
        });
        let (us, standing): (Vec<u64>, Vec<usize>) = spells.unzip();
        Some(Self {
            share: us.iter().sum::<u64>() as f64 / all_us as f64,
            longest_us: *us.iter().max()?,
            standing: standing.iter().sum::<usize>() as f64 / standing.len() as f64,
        })
    }
}

impl Interval {
    fn between((from_us, from): &Moment<'_>, (to_us, to): &Moment<'_>) -> Self {
        // A long answer has many segments, and each answer had a request, perhaps before.
        let answers = |cookie: &u64, socket: &RequestSocket| {
            let grew = |of: fn(&RequestTimes) -> Option<u64>| {
                let count = |socket: &RequestSocket| socket.times.as_ref().and_then(of).unwrap_or(0);
                count(socket).saturating_sub(from.get(cookie).map_or(0, |before| count(before)))
            };
            grew(|times| times.data_segs_out).min(grew(|times| times.data_segs_in).max(1))
        };
        let is_unread = |socket: &RequestSocket| socket.receive_queue > 0;
        let us = to_us.saturating_sub(*from_us);
        let tick_ms = tick_ms(to.values().filter_map(|socket| socket.times));
        // Nothing came since, to the tick of the clock at both ends.
        let is_as_old = |later: &RequestSocket| later.times.is_none_or(|times| 1_000 * (times.last_data_recv_ms + 2 * tick_ms) >= us);
        let stands = |cookie: &u64, socket: &RequestSocket| {
            let is_same = |later: &&&RequestSocket| segments(later) == segments(socket) && is_as_old(later);
            is_asked(socket) && to.get(cookie).filter(is_same).is_some_and(|later| is_asked(later))
        };
        let ended = from.keys().filter(|cookie| !to.contains_key(cookie)).count() as u64;
        let standing: Vec<&RequestSocket> =
            from.iter().filter(|(cookie, socket)| stands(cookie, socket)).map(|(_, socket)| *socket).collect();
        let ages_ms = || standing.iter().filter_map(|socket| Some(socket.times?.last_data_recv_ms));
        let apart_ms = ages_ms().max().zip(ages_ms().min()).map_or(0, |(oldest, youngest)| oldest - youngest);
        let stayed = from.iter().filter(|(cookie, socket)| is_unread(socket) && to.get(cookie).is_some_and(|later| is_unread(later)));
        Self {
            us,
            answered: to.iter().map(|(cookie, socket)| answers(cookie, socket)).sum::<u64>() + ended,
            stayed: stayed.count(),
            standing: to.values().filter(|socket| is_unread(socket)).count(),
            unanswered: standing.len(),
            apart_us: apart_ms * 1_000,
        }
    }
}

/// True if the last that was said on a connection is a request.
fn is_asked(socket: &RequestSocket) -> bool {
    socket.receive_queue > 0 || socket.times.is_some_and(|times| times.received_last() == Some(true) && !times.never_received())
}

/// Segments with data, received and sent.
fn segments(socket: &RequestSocket) -> Option<(u64, u64)> {
    socket.times?.data_segs_in.zip(socket.times?.data_segs_out)
}

/// The first tier's accepted connections, and those that wait to be accepted, by their cookies.
fn own<'s>(ctx: &Context<'_>, sample: &'s RequestSample) -> BTreeMap<u64, &'s RequestSocket> {
    let netns = ctx.path.tiers.first().map(|first| first.netns);
    let is_own = |socket: &&RequestSocket| socket.cookie != 0 && netns.is_some_and(|netns| tier_of(ctx, netns, &socket.address) == Some(0));
    sample.sockets.iter().filter(is_own).map(|socket| (socket.cookie, socket)).collect()
}
