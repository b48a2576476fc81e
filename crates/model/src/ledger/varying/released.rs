//! Requests that were held up together: they came one after another, none was answered meanwhile, and all were answered in the same moment. Each connection that is kept shows when its last
//! request came and when it was answered, however short that was beside the time between two samples, and whether or not anything is under way when it is looked at.

use std::collections::BTreeSet;

use crate::facts::Context;
use crate::ledger::Account;
use crate::ledger::held_up::{Carried, is_accepted};
use crate::observation::{RequestSocket, TcpState};

use super::SPELLS_MIN;

/// Ticks of the kernel's clock by which two times differ that are not the same: each is rounded by itself.
const APART_TICKS: u64 = 2;
/// So many such differences takes a request at least that was held up: one by which another came before or after it, and two in which the end of a third is told from both ends of their wait.
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
    /// Of the first tier. `None` if it was not seen often enough to be more than one pause, or if most answers went over connections that were closed since: those may have been answered
    /// in between.
    pub(crate) fn of(ctx: &Context<'_>, account: &Account) -> Option<Self> {
        let first = ctx.path.tiers.first()?;
        let view = ctx.obs.netns.get(&first.netns)?;
        // Of some of the connections only, others may have been answered meanwhile.
        let whole = ctx.in_window(&view.request_samples).map(|(_, sample)| sample).filter(|sample| sample.share >= 1.0);
        let samples: Vec<Vec<&RequestSocket>> =
            whole.map(|sample| sample.sockets.iter().filter(|socket| is_accepted(first, socket)).collect()).collect();
        let (_, answered) = Carried::read_and_answers(samples.iter().flatten().copied());
        let is_kept = account.rate_rps().is_none_or(|rate_rps| 2.0 * answered as f64 >= rate_rps * ctx.seconds());
        is_kept.then(|| Self::among(&samples, account.counted.tick_ms)).flatten().filter(|held| held.seen >= SPELLS_MIN)
    }

    fn among(samples: &[Vec<&RequestSocket>], tick_ms: u64) -> Option<Self> {
        let apart_ms = APART_TICKS * tick_ms.max(1);
        let (mut all_ms, mut held_ms, mut longest_ms, mut seen) = (0, 0, 0, 0);
        let mut known = BTreeSet::new();
        for sockets in samples {
            let mut answered: Vec<Answered> = sockets.iter().filter_map(|socket| last_answered(socket, &mut known)).collect();
            answered.sort_unstable_by_key(|one| one.ended_ms);
            let held_before = held_ms;
            for one in answered.iter().filter(|one| one.is_new) {
                all_ms += one.took_ms();
                if was_held(one, &answered, apart_ms) {
                    held_ms += one.took_ms();
                    longest_ms = longest_ms.max(one.took_ms());
                }
            }
            seen += usize::from(held_ms > held_before);
        }
        (all_ms > 0).then(|| Self { share: held_ms as f64 / all_ms as f64, longest_ms, seen })
    }
}

/// `None` for a connection with a request under way, and for one on which none came yet.
fn last_answered(socket: &RequestSocket, known: &mut BTreeSet<(u64, Option<u64>)>) -> Option<Answered> {
    let times = socket.times.filter(|times| !times.never_sent() && times.data_segs_in != Some(0))?;
    let is_idle = socket.state == TcpState::Established && socket.receive_queue == 0 && socket.send_queue == 0;
    let (came_ms, ended_ms) = (times.last_data_recv_ms, times.last_data_sent_ms);
    let is_new = known.insert((socket.cookie, times.data_segs_out));
    (is_idle && times.received_last() != Some(true)).then_some(Answered { came_ms, ended_ms, is_new })
}

/// True if another one came clearly before or after it, waited for at least half as long, and ended in the same moment, and none ended while both waited: for so long that the end of a third
/// one would be told from theirs. `all`: in the order of their ends, so that of thousands of connections only those are looked at that ended in that moment.
fn was_held(one: &Answered, all: &[Answered], apart_ms: u64) -> bool {
    if one.took_ms() <= LONG_TIMES * apart_ms {
        return false;
    }
    let first_ended_at = |ended_ms: u64| all.partition_point(|other| other.ended_ms < ended_ms);
    let in_same_moment = &all[first_ended_at((one.ended_ms + 1).saturating_sub(apart_ms))..first_ended_at(one.ended_ms + apart_ms)];
    in_same_moment.iter().any(|other| {
        let (from_ms, until_ms) = (other.came_ms.min(one.came_ms), other.ended_ms.max(one.ended_ms));
        let came_apart = other.came_ms.abs_diff(one.came_ms) > apart_ms;
        let waited_as_long = 2 * other.took_ms() >= one.took_ms();
        let would_be_told = from_ms > until_ms + (LONG_TIMES - 1) * apart_ms;
        let none_ended = || all.get(first_ended_at(until_ms + apart_ms)).is_none_or(|third| third.ended_ms + apart_ms > from_ms);
        came_apart && waited_as_long && would_be_told && none_ended()
    })
}

#[cfg(test)]
mod tests {
    use chokepoint_statistics::Random;

    use super::*;
    use crate::ledger::connection_state::tests::socket;
    use crate::observation::RequestTimes;

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
