//! How the number of requests under way at the first tier varied over the samples, and whether their times grew with it. A place that holds requests back answers no
//! faster when more of them stand there, so that each takes longer; in a place that holds none back, each takes its own time however many there are.

mod released;

use std::collections::BTreeSet;

use chokepoint_statistics::runs::few_runs;

use crate::facts::Context;
use crate::facts::harm::Cost;

use super::Account;
use super::count::Counts;
pub(crate) use released::HeldTogether;

/// Most parts of the window that are compared with each other.
const PARTS_MAX: usize = 5;
/// Fewest samples of a part: what happened at one of them, such as a pause of the whole machine, is not what its median says.
const PART_SAMPLES_MIN: usize = 3;
/// Fewest samples for statements about their spread.
const SAMPLES_MIN: usize = 6;
/// Fewest parts of a window that say that the number rises: chance orders four in one of 24 cases, and their times in as few.
const RISING_PARTS_MIN: usize = 4;
/// How many times as many requests make another number of them, so that their times can be compared.
const APART_TIMES: f64 = 1.5;
/// The difference must also be this many times what chance explains in the number of independent requests (its root).
const APART_ROOTS: f64 = 3.0;
/// Spare connections for each request under way from which the clients have a pace of their own.
const SPARE_SHARE_MIN: f64 = 0.5;
/// A peak is more than the usual number by this many roots of it. Where clients wait for most of their time, the number varies as that of those who pause: in 25
/// samples by two roots of them, which is less if they are fewer than half of those who wait. Clients that come in step vary as much even if few pause.
const DRAINED_ROOTS: f64 = 1.5;
/// Where the pausing clients are seen, it is also more by this many standard deviations of their number: in twenty samples chance gives one in 37 runs (normal distribution).
const PEAK_DEVIATIONS: f64 = 3.0;
/// The most of their time for which clients pause who wait for answers most of it.
const PAUSING_SHARE_MAX: f64 = 0.5;
/// Fewest spells with more requests than usual that come again and again: one may be a pause that is over, and two may be its parts.
const SPELLS_MIN: usize = 3;
/// Standard deviations of a random number of answers from which there are more than a place gives by chance: one in some 3 million samples (normal distribution).
const LET_GO_DEVIATIONS: f64 = 5.0;
/// How many times as many requests as before a single place that random arrivals find busy as often are more than random service times explain: those whose variance is some ten times
/// that of an exponential distribution have half as many (Pollaczek and Khinchine).
pub(crate) const CROWD_TIMES_MAX: f64 = 10.0;
/// Chance of so few changes between samples with and without requests from which requests came only for a part of the window (one side of a 95 % test).
const FEW_CHANGES_CHANCE: f64 = 0.025;
/// Times grow with the number if they are longer by at least this power of the ratio of numbers. Behind a limit the power is one, without one it is zero.
const GROWS_POWER: f64 = 0.5;

/// The first tier in one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Moment {
    /// Requests under way at the tier and behind it.
    under_way: f64,
    /// Mean time since those that were read came, milliseconds. `None` if there are none.
    age_ms: Option<f64>,
    /// Connections that clients could have asked on and did not, although they had done so in the window.
    spare: f64,
    /// Connections without a request.
    idle: f64,
    /// Requests of those that are read, and those of them that are the first of their connection.
    service: f64,
    first: f64,
    /// Connections of which it is not known whether they have a request, and those that stream or carry several.
    uncertain: f64,
    /// Requests under way if all that are undecided are.
    at_most: f64,
}

/// A number of requests under way, and the mean time since they came at samples that had as many.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Level {
    pub(crate) under_way: f64,
    pub(crate) age_ms: f64,
}

/// Few and many requests under way in the same window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Levels {
    pub(crate) few: Level,
    pub(crate) many: Level,
}

impl Moment {
    fn is_empty(&self) -> bool {
        self.under_way + self.uncertain < 0.5
    }
}

impl Levels {
    /// The first and the last of these.
    fn of(parts: &[Level]) -> Option<Self> {
        Some(Self { few: *parts.first()?, many: *parts.last()? })
    }

    /// True if the numbers differ so much that the times at one of them say something about the other.
    fn are_apart(&self) -> bool {
        self.few.under_way > 0.0 && self.many.under_way >= APART_TIMES * self.few.under_way && self.differ_by_more_than_chance()
    }

    fn differ_by_more_than_chance(&self) -> bool {
        self.many.under_way - self.few.under_way >= APART_ROOTS * self.few.under_way.max(1.0).sqrt()
    }

    /// True if each request takes longer the more of them there are, and by more than what clients do not mind.
    fn grow(&self, tick_ms: u64) -> bool {
        let times = self.many.under_way / self.few.under_way;
        self.differ_in_age(tick_ms) && self.many.age_ms >= self.few.age_ms * times.powf(GROWS_POWER)
    }

    /// True if requests are there for longer where there are more of them, by more than what clients do not mind.
    fn differ_in_age(&self, tick_ms: u64) -> bool {
        let lost = 1.0 - self.few.age_ms / self.many.age_ms;
        let is_seen = self.many.age_ms - self.few.age_ms > 2.0 * tick_ms as f64;
        self.many.age_ms > 0.0 && is_seen && Cost::of_time(lost).hurts()
    }
}

/// What the samples of the first tier show of its requests.
pub(crate) struct Varying {
    moments: Vec<Moment>,
    /// Those at which a request that came with the load's first ones has had its answer, usually. Before, each is as old as the load, and as many are there as came.
    settled: Vec<Moment>,
    /// Those that read all connections: the number in a random share of them varies by chance.
    whole: Vec<Moment>,
    /// The same with their times, microseconds.
    timed: Vec<(u64, Moment)>,
    tick_ms: u64,
    /// True if requests came only for a part of the window, and these are the samples of that part.
    is_part: bool,
}

impl Varying {
    pub(crate) fn of(account: &Account, ctx: &Context<'_>) -> Self {
        let moment = |counts: Counts| Moment {
            under_way: counts.known_requests() + counts.unaccepted,
            age_ms: (counts.service > 0.0).then(|| counts.age_ms / counts.service),
            spare: counts.spare,
            idle: counts.idle,
            service: counts.service,
            first: counts.first,
            uncertain: counts.undecided + counts.streaming + counts.multiplexed,
            at_most: counts.known_requests() + counts.unaccepted + counts.undecided,
        };
        let view = ctx.path.tiers.first().and_then(|first| ctx.obs.netns.get(&first.netns));
        let samples = || view.into_iter().flat_map(|view| ctx.in_window(&view.request_samples));
        let partial: BTreeSet<u64> = samples().filter(|(_, sample)| sample.share < 1.0).map(|(at_us, _)| *at_us).collect();
        let all = account.first_tier_samples(ctx);
        let mut all: Vec<(u64, Moment)> = all.into_iter().map(|(at_us, counts)| (at_us, moment(counts))).collect();
        let is_part = come_in_spells(&all);
        if is_part {
            leave_asked(&mut all);
        }
        let timed: Vec<(u64, Moment)> = all.iter().filter(|(at_us, _)| !partial.contains(at_us)).copied().collect();
        let whole = timed.iter().map(|(_, moment)| *moment).collect();
        let begins_us = ctx.window_us.0.saturating_add(ctx.obs.load.as_ref().map_or(0, |load| load.latency_us.p50));
        let settled = all.iter().filter(|(at_us, _)| *at_us >= begins_us).map(|(_, moment)| *moment).collect();
        Self {
            moments: all.into_iter().map(|(_, moment)| moment).collect(),
            settled,
            whole,
            timed,
            tick_ms: account.counted.tick_ms,
            is_part,
        }
    }

    /// True if requests came only for a part of the window: that nobody asks for seconds says nothing of how the server keeps up with those who do. All statements are of that
    /// part.
    pub(crate) fn is_part(&self) -> bool {
        self.is_part
    }

    /// Mean number of requests under way and of connections without a request.
    pub(crate) fn means(&self) -> (f64, f64) {
        let mean = |of: fn(&Moment) -> f64| self.moments.iter().map(of).sum::<f64>() / self.moments.len().max(1) as f64;
        (mean(|moment| moment.at_most), mean(|moment| moment.idle))
    }

    /// Mean number of requests that are known to be under way.
    pub(crate) fn known_mean(&self) -> f64 {
        self.moments.iter().map(|moment| moment.under_way).sum::<f64>() / self.moments.len().max(1) as f64
    }

    /// True if there are enough samples for statements about their spread.
    pub(crate) fn are_enough(&self) -> bool {
        self.whole.len() >= SAMPLES_MIN
    }

    /// The most requests under way in a sample.
    pub(crate) fn most(&self) -> f64 {
        self.moments.iter().map(|moment| moment.at_most).fold(0.0, f64::max)
    }

    /// True if half of the samples or more have the most requests that any has: those of clients that all wait.
    pub(crate) fn stays_at_most(&self) -> bool {
        self.share(|moment| moment.at_most >= self.most()) >= 0.5
    }

    /// Share of the samples in which no request was under way, and none possibly.
    pub(crate) fn empty_share(&self) -> f64 {
        self.share(Moment::is_empty)
    }

    /// The most that a request can have waited for others, as a share of its time: all but one of those that are under way, if a single place had to serve them.
    pub(crate) fn met_share(&self) -> f64 {
        let number = |moment: &Moment| moment.under_way + moment.uncertain;
        let met: f64 = self.moments.iter().map(|moment| (number(moment) - 1.0).max(0.0)).sum();
        met / self.moments.iter().map(number).sum::<f64>().max(f64::MIN_POSITIVE)
    }

    /// The most of their time for which clients pause, if they wait for answers.
    pub(crate) fn pausing_share(&self) -> f64 {
        self.pausing_seen().unwrap_or(PAUSING_SHARE_MAX)
    }

    /// The same as it is seen: the share of the connections without a request. `None` if each request comes on a connection of its own.
    fn pausing_seen(&self) -> Option<f64> {
        let sum = |of: fn(&Moment) -> f64| self.moments.iter().map(of).sum::<f64>();
        let are_kept = sum(|moment| moment.first) < 0.5 * sum(|moment| moment.service);
        let (idle, under_way) = (sum(|moment| moment.idle), sum(|moment| moment.under_way));
        are_kept.then(|| (idle / (idle + under_way)).min(PAUSING_SHARE_MAX))
    }

    /// Mean number of spare connections, if most samples had half as many as requests: then clients do not spend most of their time waiting for answers. Where
    /// they come in bursts, those in which most requests stood had them as well: what is spare in between is of no use to them.
    pub(crate) fn spare(&self) -> Option<f64> {
        let mean = self.moments.iter().map(|moment| moment.spare).sum::<f64>() / self.moments.len().max(1) as f64;
        let has_spare = |moment: &Moment| moment.spare >= (SPARE_SHARE_MIN * moment.under_way).max(1.0);
        (self.share(has_spare) > 0.5 && (!self.are_bursts() || self.share_of_requests(has_spare) > 0.5)).then_some(mean)
    }

    /// True if requests come in bursts in which most connections have one: what is idle in between says nothing of these.
    pub(crate) fn come_at_once(&self) -> bool {
        self.are_bursts() && self.share_of_requests(|moment| moment.under_way > moment.idle) > 0.5
    }

    /// The number of requests that is usual, and the least that is more than chance explains.
    fn peak(&self) -> (f64, f64) {
        let usual = median(self.whole.iter().map(|moment| moment.at_most));
        let roots = self.pausing_seen().map_or(DRAINED_ROOTS, |share| DRAINED_ROOTS.max(PEAK_DEVIATIONS * share.sqrt()));
        (usual, usual + (roots * usual.sqrt()).max(2.0))
    }

    /// True if most of the requests' time passes while there are more than usual, again and again: no single pause that is over.
    pub(crate) fn are_bursts(&self) -> bool {
        let (_, peak) = self.peak();
        let is_high = |moment: &Moment| moment.under_way >= peak;
        let spells = self.whole.iter().map(is_high).fold((false, 0), |(before, count), now| (now, count + usize::from(now && !before))).1;
        self.are_enough() && spells >= SPELLS_MIN && self.share_of_requests(is_high) >= 0.5
    }

    /// Requests that are held up together at times and let go together: the most that were gone from one sample to the next, and the time between the two, seconds. So many more than
    /// chance lets a place that is always as quick as it is on average answer in that time, and so quickly that hardly any would stand there if it always were. Arrivals at random find
    /// `rho / (1 - rho)` before a single place (M/M/1; Kleinrock, Queueing Systems, 3.2). `None` too where those that came together wait: the longer they have, the fewer they are.
    pub(crate) fn let_go_at_once(&self, rate_rps: f64) -> Option<(f64, f64)> {
        // However often none was under way in between.
        let asked = self.whole.iter().filter(|moment| moment.under_way >= 0.5).copied().collect();
        self.halves_of(asked).filter(|levels| self.are_enough() && levels.are_apart() && levels.differ_in_age(self.tick_ms))?;
        let under_way = self.known_mean();
        if under_way <= 0.0 || rate_rps <= 0.0 {
            return None;
        }
        // The rate at which a single place answers before which as many stand.
        let usual_rps = rate_rps * (under_way + 1.0) / under_way;
        let gone = self.timed.windows(2).map(|two| {
            let elapsed_s = two[1].0.saturating_sub(two[0].0) as f64 / 1e6;
            (two[0].1.under_way - two[1].1.at_most, elapsed_s)
        });
        let is_more = |(gone, elapsed_s): &(f64, f64)| {
            let by_chance = (usual_rps - rate_rps) * elapsed_s + LET_GO_DEVIATIONS * (usual_rps * elapsed_s).sqrt();
            *gone > by_chance && under_way > CROWD_TIMES_MAX * rate_rps * elapsed_s / gone
        };
        gone.filter(is_more).max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// True if it is known of most requests since when they are there. Of those that are not read it is not.
    pub(crate) fn ages_are_known(&self) -> bool {
        let sum = |of: fn(&Moment) -> f64| self.moments.iter().map(of).sum::<f64>();
        2.0 * sum(|moment| moment.service.min(moment.under_way)) >= sum(|moment| moment.under_way)
    }

    /// The share of the requests' time that passes in samples of this kind. Zero if there are no requests.
    fn share_of_requests(&self, holds: impl Fn(&Moment) -> bool) -> f64 {
        let all: f64 = self.moments.iter().map(|moment| moment.at_most).sum();
        let held: f64 = self.moments.iter().filter(|moment| holds(moment)).map(|moment| moment.at_most).sum();
        held / all.max(f64::MIN_POSITIVE)
    }

    fn share(&self, holds: impl Fn(&Moment) -> bool) -> f64 {
        self.moments.iter().filter(|moment| holds(moment)).count() as f64 / self.moments.len().max(1) as f64
    }

    /// The samples with fewer requests than the median and those with more, if the numbers differ enough to compare their times.
    pub(crate) fn halves(&self) -> Option<Levels> {
        self.halves_of(self.whole.clone())
    }

    fn halves_of(&self, mut sorted: Vec<Moment>) -> Option<Levels> {
        sorted.sort_by(|a, b| a.under_way.total_cmp(&b.under_way));
        let (few, many) = sorted.split_at(sorted.len() / 2);
        let levels = Levels { few: level(few)?, many: level(many)? };
        // Of a number that is partly unknown, what is known may vary alone.
        let few_at_most = median(few.iter().map(|moment| moment.at_most));
        let is_other = levels.few.under_way >= 0.5 && levels.many.under_way >= APART_TIMES * few_at_most;
        (self.are_enough() && is_other).then_some(levels)
    }

    /// True if requests take longer where there are more of them.
    pub(crate) fn grow(&self, levels: &Levels) -> bool {
        levels.grow(self.tick_ms)
    }

    /// The same, and there are so many more that chance explains neither. A few more may be those that take long by themselves, and so are seen.
    pub(crate) fn surely_grow(&self, levels: &Levels) -> bool {
        levels.are_apart() && self.grow(levels)
    }

    /// The usual number of requests under way and the most, if there were more at times than chance explains and soon as few as usual again: they were answered faster than
    /// they came, which a place at its limit cannot do. Where clients wait, there are never many more than those who usually do. Connections that may or may not have a request
    /// count as the usual number, never as more. `None` where they come in bursts that hold most of the requests' time.
    pub(crate) fn drained(&self) -> Option<(f64, f64)> {
        let (usual, peak) = self.peak();
        let first = self.whole.iter().position(|moment| moment.under_way >= peak).filter(|_| self.are_enough() && !self.are_bursts())?;
        self.whole[first..]
            .iter()
            .any(|moment| moment.at_most <= usual)
            .then(|| (usual, self.whole.iter().map(|moment| moment.under_way).fold(0.0, f64::max)))
    }

    /// The same, if there were still as many in the last part: no pause that was over before the watching was.
    pub(crate) fn growing_to_the_end(&self) -> Option<Levels> {
        let levels = self.growing()?;
        let last = parts(&self.settled, PARTS_MAX.min(self.settled.len() / PART_SAMPLES_MIN))?.pop()?;
        Levels { few: levels.few, many: last }.are_apart().then_some(levels)
    }

    /// The part of the window with the fewest requests under way and that with the most, if these differ, and times grew with the number from part to part. Each part
    /// lasts long, so that this is no pause that is over: more came than were answered, or as many were answered however many waited.
    pub(crate) fn growing(&self) -> Option<Levels> {
        // A queue that was long before grows by a small part, but from each part of the window to the next. No pause does that, however few samples a part has.
        let rises = |two: &[Level]| two[1].under_way > two[0].under_way && two[1].age_ms >= two[0].age_ms;
        let rising = parts(&self.settled, PARTS_MAX.min(self.settled.len())).filter(|parts| parts.len() >= RISING_PARTS_MIN);
        let rising = rising.filter(|parts| parts.windows(2).all(rises)).and_then(|parts| Levels::of(&parts));
        let surely = |levels: &Levels| levels.differ_by_more_than_chance() && levels.grow(self.tick_ms);
        if let Some(levels) = rising.filter(surely) {
            return Some(levels);
        }
        let mut sorted = parts(&self.settled, PARTS_MAX.min(self.settled.len() / PART_SAMPLES_MIN))?;
        sorted.sort_by(|a, b| a.under_way.total_cmp(&b.under_way));
        let levels = Levels::of(&sorted)?;
        // A single part with more may be a long pause.
        let many = sorted.iter().filter(|part| Levels { few: levels.few, many: **part }.are_apart()).count();
        let is_apart = many >= 2.min(sorted.len() - 1) && sorted.windows(2).all(|two| two[1].age_ms >= 0.5 * two[0].age_ms);
        (is_apart && levels.grow(self.tick_ms)).then_some(levels)
    }
}

/// True if samples with and without requests follow each other in fewer and longer spells than chance explains: a load that ended, or began, while it was watched. Samples one
/// response time apart see different requests, and twice the mean age is at least that.
fn come_in_spells(all: &[(u64, Moment)]) -> bool {
    let ages_ms: Vec<f64> = all.iter().filter_map(|(_, moment)| moment.age_ms).collect();
    let apart_us = (2e3 * ages_ms.iter().sum::<f64>() / ages_ms.len().max(1) as f64) as u64;
    let (mut next_us, mut empty) = (0, Vec::new());
    for (at_us, moment) in all {
        if *at_us >= next_us {
            next_us = at_us + apart_us;
            empty.push(moment.is_empty());
        }
    }
    let misses = empty.iter().filter(|is_empty| **is_empty).count() as u64;
    let runs = 1 + empty.windows(2).filter(|two| two[0] != two[1]).count() as u64;
    few_runs(empty.len() as u64 - misses, misses, runs) < FEW_CHANGES_CHANCE
}

/// Leaves the samples from the first with a request to the last, or, where requests come in spells within that time too, those with a request.
fn leave_asked(all: &mut Vec<(u64, Moment)>) {
    let asked = |(_, moment): &(u64, Moment)| !moment.is_empty();
    let end = all.iter().rposition(asked).map_or(0, |last| last + 1);
    all.truncate(end);
    all.drain(..all.iter().position(asked).unwrap_or(0));
    if come_in_spells(all) {
        all.retain(asked);
    }
}

/// This many equal parts of the window. `None` if there are too few, or if a part has no request.
fn parts(moments: &[Moment], number: usize) -> Option<Vec<Level>> {
    let part = |n: usize| level(&moments[moments.len() * n / number..moments.len() * (n + 1) / number]);
    (0..number).map(part).collect::<Option<Vec<Level>>>().filter(|parts| parts.len() >= 2)
}

/// The medians of samples. `None` if none of them has a request.
fn level(moments: &[Moment]) -> Option<Level> {
    let mut ages_ms = moments.iter().filter_map(|moment| moment.age_ms).peekable();
    ages_ms.peek()?;
    Some(Level { under_way: median(moments.iter().map(|moment| moment.under_way)), age_ms: median(ages_ms) })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}
