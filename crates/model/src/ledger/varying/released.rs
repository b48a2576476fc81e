//! Requests that were held up together: they came one after another, none was answered meanwhile, and all were answered in the same moment. Each connection that is kept shows when its last
//! request came and when it was answered, however short that was beside the time between two samples, and whether or not anything is under way when it is looked at.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::observation::{RequestSample, RequestSocket, RequestTimes, TcpState};

use super::SPELLS_MIN;

/// Ticks of the kernel's clock by which two times differ that are not the same: each is rounded by itself.
const APART_TICKS: u64 = 2;
/// How many such differences a request takes at least of which it can be told with which others it waited.
const LONG_TIMES: u64 = 3;

/// The last request of a connection that was answered, as ages when it was looked at, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Answered {
    came_ms: u64,
    ended_ms: u64,
    /// It was not seen in a sample before.
    is_new: bool,
}

impl Answered {
    fn took_ms(&self) -> u64 {
        self.came_ms.saturating_sub(self.ended_ms)
    }
}

/// Requests of a tier that were held up together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HeldTogether {
    /// Their share of the time that all requests took which were seen answered.
    pub(crate) share: f64,
    /// The longest, milliseconds.
    pub(crate) longest_ms: u64,
    /// Samples that show some.
    seen: usize,
}

impl HeldTogether {
    /// `None` if it was not seen often enough to be more than one pause, or if most answers went over connections that were closed since: those may have been answered in between.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier, rate_rps: Option<f64>) -> Option<Self> {
        let view = ctx.obs.netns.get(&tier.netns)?;
        // Of some of the connections only, others may have been answered meanwhile.
        let whole = ctx.in_window(&view.request_samples).map(|(_, sample)| sample).filter(|sample| sample.share >= 1.0);
        let samples: Vec<Vec<&RequestSocket>> = whole.map(|sample| accepted(tier, sample)).collect();
        let is_kept = rate_rps.is_none_or(|rate_rps| 2.0 * answers(&samples) as f64 >= rate_rps * ctx.seconds());
        Self::among(&samples, ctx.account()?.counted.tick_ms).filter(|held| held.seen >= SPELLS_MIN && is_kept)
    }

    fn among(samples: &[Vec<&RequestSocket>], tick_ms: u64) -> Option<Self> {
        let apart_ms = APART_TICKS * tick_ms.max(1);
        let (mut all_ms, mut held_ms, mut longest_ms, mut seen) = (0, 0, 0, 0);
        let mut known = BTreeSet::new();
        for sockets in samples {
            let answered: Vec<Answered> = sockets.iter().filter_map(|socket| last_answered(socket, &mut known)).collect();
            let new = || answered.iter().filter(|one| one.is_new);
            let held = new().filter(|one| was_held(one, &answered, apart_ms)).map(Answered::took_ms);
            let held: Vec<u64> = held.collect();
            all_ms += new().map(Answered::took_ms).sum::<u64>();
            held_ms += held.iter().sum::<u64>();
            longest_ms = longest_ms.max(held.iter().copied().max().unwrap_or(0));
            seen += usize::from(!held.is_empty());
        }
        (all_ms > 0).then(|| Self { share: held_ms as f64 / all_ms as f64, longest_ms, seen })
    }
}

fn accepted<'a>(tier: &Tier, sample: &'a RequestSample) -> Vec<&'a RequestSocket> {
    let is_its = |socket: &&RequestSocket| socket.inode != 0 && tier.accepts(&socket.address);
    sample.sockets.iter().filter(is_its).collect()
}

/// Requests that were surely answered on the connections that are in more than one sample: each has at least a segment, and so has its answer.
fn answers(samples: &[Vec<&RequestSocket>]) -> u64 {
    let mut ends: BTreeMap<u64, [&RequestSocket; 2]> = BTreeMap::new();
    for socket in samples.iter().flatten() {
        ends.entry(socket.cookie).or_insert([socket, socket])[1] = socket;
    }
    let grew = |[first, last]: [&RequestSocket; 2], of: fn(&RequestTimes) -> Option<u64>| {
        let of = |socket: &RequestSocket| of(socket.times.as_ref()?);
        of(last)?.checked_sub(of(first)?)
    };
    let of_connection = |both| Some(grew(both, |times| times.data_segs_in)?.min(grew(both, |times| times.data_segs_out)?));
    ends.into_values().filter_map(of_connection).sum()
}

/// `None` for a connection with a request under way, and for one on which none came yet.
fn last_answered(socket: &RequestSocket, known: &mut BTreeSet<(u64, Option<u64>)>) -> Option<Answered> {
    let times = socket.times.filter(|times| !times.never_sent() && times.data_segs_in != Some(0))?;
    let is_idle = socket.state == TcpState::Established && socket.receive_queue == 0 && socket.send_queue == 0;
    let (came_ms, ended_ms) = (times.last_data_recv_ms, times.last_data_sent_ms);
    let is_new = known.insert((socket.cookie, times.data_segs_out));
    (is_idle && times.received_last() != Some(true)).then_some(Answered { came_ms, ended_ms, is_new })
}

/// True if another one came clearly before or after it, waited for at least half as long, and ended in the same moment, and none ended while both waited.
fn was_held(one: &Answered, all: &[Answered], apart_ms: u64) -> bool {
    let waited_with = |other: &&Answered| {
        other.came_ms.abs_diff(one.came_ms) > apart_ms
            && other.ended_ms.abs_diff(one.ended_ms) < apart_ms
            && 2 * other.took_ms() >= one.took_ms()
    };
    let none_between = |other: &Answered| {
        let (from_ms, until_ms) = (other.came_ms.min(one.came_ms), other.ended_ms.max(one.ended_ms));
        !all.iter().any(|third| third.ended_ms + apart_ms <= from_ms && third.ended_ms >= until_ms + apart_ms)
    };
    one.took_ms() > LONG_TIMES * apart_ms && all.iter().filter(waited_with).any(none_between)
}

#[cfg(test)]
mod tests {
    use chokepoint_statistics::Random;

    use super::*;
    use crate::ledger::connection_state::tests::socket;

    /// Requests on kept connections of clients that pause between two of them: when each came and when it was answered, seconds.
    struct Traffic {
        connections: Vec<Vec<(f64, f64)>>,
    }

    fn exponential(mean_s: f64, random: &mut Random) -> f64 {
        -mean_s * random.uniform().max(1e-9).ln()
    }

    impl Traffic {
        /// Each of these clients pauses for a random time of this mean; `answer` gives the end of a request from its arrival.
        fn of(clients: usize, pause_s: f64, seed: u64, mut answer: impl FnMut(f64, &mut Random) -> f64) -> Self {
            let mut random = Random::new(seed);
            let mut connections = vec![Vec::new(); clients];
            let mut due: Vec<f64> = (0..clients).map(|_| exponential(pause_s, &mut random)).collect();
            // In the order of their arrival, since a queue has a state.
            while let Some((who, came)) =
                due.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, came)| *came < 30.0)
            {
                let ended = answer(came, &mut random);
                connections[who].push((came, ended));
                due[who] = ended + exponential(pause_s, &mut random);
            }
            Self { connections }
        }

        /// What five samples a second show of it.
        fn held(&self, tick_ms: u64) -> Option<HeldTogether> {
            let sample = |at: f64| {
                let age = |then: f64| (((at - then) * 1e3) as u64 / tick_ms) * tick_ms;
                let of = |(cookie, requests): (usize, &Vec<(f64, f64)>)| {
                    let came = requests.iter().filter(|(came, _)| *came <= at).count();
                    let ended = requests.iter().filter(|(_, ended)| *ended <= at).count();
                    let times = RequestTimes {
                        last_data_recv_ms: age(requests[came.checked_sub(1)?].0),
                        last_data_sent_ms: age(requests[ended.checked_sub(1)?].1),
                        data_segs_in: Some(came as u64),
                        data_segs_out: Some(ended as u64),
                        ..RequestTimes::default()
                    };
                    Some(RequestSocket { cookie: cookie as u64 + 1, ..socket(Some(times)) })
                };
                self.connections.iter().enumerate().filter_map(of).collect::<Vec<_>>()
            };
            let samples: Vec<Vec<RequestSocket>> = (5..140).map(|n| sample(f64::from(n) * 0.2 + f64::from(n * 7 % 11) * 0.009)).collect();
            HeldTogether::among(&samples.iter().map(|sample| sample.iter().collect()).collect::<Vec<_>>(), tick_ms)
        }
    }

    /// Requests that come while the server stands still, for the last part of each period, are answered at its end.
    fn stalled(came: f64, (period_s, stall_s): (f64, f64), service_s: f64) -> f64 {
        let at = came % period_s;
        let waits = if at > period_s - stall_s { period_s - at } else { 0.0 };
        came + waits + service_s
    }

    #[test]
    fn requests_that_a_stall_holds_up_are_held_together() {
        for (seed, (period_s, stall_s)) in (1..).zip([(0.120, 0.060), (0.5, 0.1), (1.0, 0.3), (2.0, 0.9), (5.0, 1.5)]) {
            for (tick_ms, clients) in [(1, 20), (4, 40), (4, 200)] {
                let traffic = Traffic::of(clients, 0.2, seed, |came, _| stalled(came, (period_s, stall_s), 0.001));
                let held = traffic.held(tick_ms).unwrap();
                assert!(held.share > 0.5 && held.seen >= SPELLS_MIN, "{period_s} {stall_s} {tick_ms} {clients}: {held:?}");
                assert!(held.longest_ms as f64 <= 1e3 * stall_s + 2.0 * tick_ms as f64, "{held:?}");
            }
        }
    }

    #[test]
    fn requests_that_take_their_own_time_or_wait_for_each_other_are_not() {
        type Answer<'a> = Box<dyn FnMut(f64, &mut Random) -> f64 + 'a>;
        for (seed, (tick_ms, clients)) in (1..).zip([(1, 5), (4, 20), (1, 60), (4, 200)]) {
            let mut free_s = 0.0_f64;
            let mut slots = [0.0_f64; 4];
            let servers: [(&str, Answer<'_>); 6] = [
                ("each takes as long", Box::new(|came, _| came + 0.1)),
                ("some are slow", Box::new(|came, random| came + if random.uniform() < 0.1 { 0.5 } else { 0.002 })),
                ("each its own", Box::new(|came, random| came + exponential(0.1, random))),
                (
                    "one after another",
                    Box::new(move |came, random| {
                        free_s = free_s.max(came) + exponential(0.003, random);
                        free_s
                    }),
                ),
                (
                    "four workers",
                    Box::new(move |came, random| {
                        let slot = slots.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
                        *slot = slot.max(came) + exponential(0.04, random);
                        *slot
                    }),
                ),
                ("quick", Box::new(|came, _| came + 0.001)),
            ];
            for (name, answer) in servers {
                let held = Traffic::of(clients, 0.4, seed, answer).held(tick_ms);
                assert!(held.is_none_or(|held| held.share < 0.2), "{name} {tick_ms} {clients}: {held:?}");
            }
        }
    }
}
