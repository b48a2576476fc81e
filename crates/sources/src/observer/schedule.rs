//! When each source is due: at its cadence, and later where reading it costs too much.

use std::collections::BTreeSet;

use chokepoint_recording::Scope;

use crate::SOURCES;
use crate::table::{Cadence, Source};

pub(super) const FAST_PERIOD_US: u64 = 50_000;
/// Of what is read four times a second.
const OFTEN_PERIOD_US: u64 = 250_000;
const SLOW_PERIOD_US: u64 = 1_000_000;
/// Where the path does not lead, everything is read this often,
const CALM_PERIOD_US: u64 = 5_000_000;
/// and connections this often, as they are where the client is.
const CALM_EDGE_PERIOD_US: u64 = 15_000_000;
/// While no tier behind the first one was seen, its connections are looked for this often: those to an upstream may live a millisecond.
const EAGER_PERIOD_US: u64 = OFTEN_PERIOD_US;
/// For so much CPU time of each of these sources at most in one observation, and of looking at them; where connections are many, so are those
/// to upstreams, and a few looks find them.
pub(super) const EAGER_SPENT_MAX_US: u64 = 10_000;
/// The longest rest that only the sum of all costs forces.
const STRAINED_MAX_US: u64 = 8_000_000;
/// A source that is read 20 times a second, or eagerly, may use one hundredth of a core, all others one five-hundredth each: most use far less, and the
/// aim is one hundredth for all together.
const SHARE_FAST: u64 = 100;
pub(super) const SHARE_SLOW: u64 = 500;
/// What matters at the beginning and the end of an observation above all may use less,
const SHARE_RARE: u64 = 1_000;
/// so may the files of processes, each of which is asked for by itself: 2 to 4 us a descriptor,
const SHARE_FILES: u64 = 1_600;
/// and so may what changes within a minute, entry by entry: half a microsecond for each connection in TIME_WAIT or in conntrack's table.
pub(super) const SHARE_MINUTE: u64 = 2_500;
/// While no upstream was seen, looking for one may use one twentieth: it is looked for in few observations for long.
pub(super) const SHARE_EAGER: u64 = 20;
/// All sources together may use this share of a core, and so much time beside for what an observation begins with: with what threads need to wake up
/// that is below the aim of one hundredth (docs/measuring.md). Where they would use more, what is dear rests longer.
const SPENT_SHARE_MAX: f64 = 0.006;
const SPENT_FIRST_US: f64 = 20_000.0;
/// How quickly rests grow with what was spent beyond that: by a tenth more, and they are twice as long.
const STRAIN_POWER: i32 = 8;
/// How many times as long it rests at the most: what an observation begins with is dear, and must not keep it from looking again.
const STRAIN_MAX: f64 = 10.0;
/// What keeps to its own share is read this many times as rarely at the most while all together use too much: a queue is then still looked at seven
/// times a second.
const THRIFT_MAX: f64 = 3.0;
/// What is due so soon is read at once: one wake-up for several sources.
const TOGETHER_US: u64 = 2_000;

/// A turn of what is read often begins so much later at the most.
const DRAWN_MAX_US: u64 = 20_000;

/// Sources of CPU time that are held against each other: they are read at their cadence whatever the others cost, for where their times come apart,
/// what one of them saw of the same work the other did not.
const COMPARED: [&str; 4] = ["cpu", "process_cpu", "cgroup_cpu", "ksoftirqd"];

/// Sources that tell which connections the processes of the path hold. They are read one right after the other, for a connection must be seen
/// by both.
const EDGES: [&str; 2] = ["sockets", "process_files"];

/// The source that is read 20 times a second for the queues of the path's listeners.
const LISTENERS: &str = "listeners";

/// The source that counts what earlier connections keep taken, which changes within a minute, and costs most where there is most of it.
const TIME_WAIT: &str = "time_wait";

/// The source that tells for which of them a process waits: read right after them.
const WAITS: &str = "process_syscall";

fn is_fast(source: &Source) -> bool {
    matches!(source.cadence, Cadence::Fast | Cadence::Sampled)
}

pub(super) fn is_edge(source: &Source) -> bool {
    EDGES.contains(&source.name)
}

/// How closely a reader's scopes are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// The path does not lead here: a look now and then is enough.
    Calm,
    /// Where the client is: its tables and ports can be the limit, too, but its connections need only be counted now and then, and nobody
    /// queues at its listeners.
    Client,
    /// On the path: every source at its cadence.
    Path,
    /// On the path while no tier behind the first one was seen and nobody seems to call one: connections are read oftener, but not yet which
    /// process holds them.
    Seek,
    /// The same while somebody calls a listener, and it may be the first tier: both are read oftener.
    Eager,
}

/// How many times as long as usual what is dear must rest after an observation that sampled for so long has spent so much CPU time, microseconds.
pub(super) fn strain(spent_us: u64, sampled_us: u64) -> f64 {
    (spent_us as f64 / (SPENT_FIRST_US + SPENT_SHARE_MAX * sampled_us as f64)).max(1.0).powi(STRAIN_POWER).min(STRAIN_MAX)
}

/// A rest under this strain: no longer than [`STRAINED_MAX_US`] where it would not be without, for a load may last no longer than a few of them.
pub(super) fn strained(rest_us: u64, strain: f64) -> u64 {
    rest_us.max(((rest_us as f64 * strain) as u64).min(STRAINED_MAX_US))
}

/// So many times as rarely is read, under this strain, what is cheap by itself.
fn thrift(source: &Source, strain: f64) -> u64 {
    if COMPARED.contains(&source.name) { 1 } else { strain.ceil().clamp(1.0, THRIFT_MAX) as u64 }
}

/// What one reading took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spent {
    pub(super) source: &'static Source,
    /// CPU time, microseconds.
    pub(super) cost_us: u64,
    /// It gave a value, and one that is not empty or zero.
    pub(super) is_there: bool,
}

/// The next whole multiple of a period: so the turns of all readers fall together and wake the host once.
pub(super) fn next(after_us: u64, period_us: u64) -> u64 {
    (after_us / period_us + 1) * period_us
}

/// A little later than a turn, by an amount that differs from turn to turn and is the same for all readers: what servers do at a beat of their own must
/// not always be seen at the same point of it.
pub(super) fn drawn(turn_us: u64) -> u64 {
    // The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
    let mut mixed = turn_us.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    turn_us + (mixed ^ (mixed >> 31)) % DRAWN_MAX_US
}

struct Slot {
    source: &'static Source,
    due_us: u64,
    /// The longest time between two reads that its cost forced.
    forced_us: u64,
    eager_spent_us: u64,
    /// The last reading gave nothing: there is nothing to be watched closely.
    is_absent: bool,
    /// Its cost asks for a rest longer than its period.
    is_dear: bool,
    /// Of so many turns one is taken.
    thrift: u64,
}

impl Slot {
    fn period_us(&self, pace: Pace) -> u64 {
        match self.source.cadence {
            _ if matches!(pace, Pace::Calm | Pace::Client) && is_edge(self.source) => CALM_EDGE_PERIOD_US,
            _ if pace == Pace::Calm => CALM_PERIOD_US,
            _ if pace == Pace::Client && self.source.name == LISTENERS => SLOW_PERIOD_US,
            Cadence::Fast | Cadence::Sampled if self.is_absent => SLOW_PERIOD_US,
            Cadence::Fast | Cadence::Sampled => FAST_PERIOD_US,
            Cadence::Often if !self.is_absent => OFTEN_PERIOD_US,
            _ if self.is_eager(pace) => EAGER_PERIOD_US,
            _ => SLOW_PERIOD_US,
        }
    }

    fn is_eager(&self, pace: Pace) -> bool {
        let is_sought = match pace {
            Pace::Eager => is_edge(self.source),
            Pace::Seek => self.source.name == EDGES[0],
            Pace::Path | Pace::Client | Pace::Calm => false,
        };
        is_sought && self.eager_spent_us < EAGER_SPENT_MAX_US
    }

    /// Of how many microseconds one may be spent on it.
    fn share(&self, pace: Pace) -> u64 {
        match self.source.cadence {
            Cadence::Fast | Cadence::Sampled => SHARE_FAST,
            _ if self.is_eager(pace) => SHARE_FAST,
            Cadence::Often => SHARE_RARE,
            _ if self.source.name == TIME_WAIT => SHARE_MINUTE,
            _ if self.source.name == EDGES[1] => SHARE_FILES,
            _ => SHARE_SLOW,
        }
    }
}

/// What a reader reads by itself.
#[derive(Debug)]
pub(super) struct Repeat {
    pub(super) sources: Vec<&'static Source>,
    pub(super) until_us: u64,
    /// At whole multiples of it.
    pub(super) period_us: u64,
}

/// The schedule of one reader.
pub(super) struct Schedule {
    slots: Vec<Slot>,
}

impl Schedule {
    /// All sources that are read repeatedly. Those that a reader has no scope for are due without effect.
    pub(super) fn new(now_us: u64) -> Self {
        let repeated = |source: &&&'static Source| !matches!(source.cadence, Cadence::Ends | Cadence::Once) || is_edge(source);
        let mut slots: Vec<Slot> = SOURCES
            .iter()
            .filter(repeated)
            .map(|source| {
                let mut slot = Slot { source, due_us: 0, forced_us: 0, eager_spent_us: 0, is_absent: false, is_dear: false, thrift: 1 };
                slot.due_us = next(now_us, slot.period_us(Pace::Eager));
                slot
            })
            .collect();
        slots.sort_by_key(|slot| (!is_edge(slot.source), slot.source.name != WAITS));
        Self { slots }
    }

    /// What is due; it counts as given out.
    pub(super) fn due(&mut self, now_us: u64, pace: Pace) -> Vec<&'static Source> {
        let mut due = Vec::new();
        for slot in self.slots.iter_mut().filter(|slot| slot.due_us <= now_us + TOGETHER_US) {
            let period_us = slot.period_us(pace);
            // Where the path does not lead no request of its is.
            if pace == Pace::Calm && slot.source.cadence == Cadence::Sampled {
                slot.due_us = next(now_us + TOGETHER_US, period_us);
                continue;
            }
            // Missed turns are not made up for.
            slot.due_us = next(now_us + TOGETHER_US, period_us);
            due.push(slot.source);
        }
        due
    }

    /// Makes the connections due now, so that they are read together with the files that hold them.
    pub(super) fn pair(&mut self, now_us: u64) {
        for slot in self.slots.iter_mut().filter(|slot| slot.source.name == EDGES[0]) {
            slot.due_us = slot.due_us.min(now_us);
        }
    }

    /// Until when connections rest that are dear to read.
    pub(super) fn connections_rest_until_us(&self) -> Option<u64> {
        self.slots.iter().find(|slot| slot.source.name == EDGES[0] && slot.is_dear).map(|slot| slot.due_us)
    }

    /// Puts off the files of processes until then.
    pub(super) fn put_files_off(&mut self, until_us: u64) {
        for slot in self.slots.iter_mut().filter(|slot| slot.source.name == EDGES[1]) {
            slot.due_us = slot.due_us.max(until_us);
        }
    }

    /// What the reader may read 20 times a second by itself (or more rarely under strain), until when, and how often: until the next other source of
    /// these kinds of scope is due. It counts as given out.
    pub(super) fn repeat(&mut self, now_us: u64, pace: Pace, kinds: &BTreeSet<u8>) -> Option<Repeat> {
        let is_often = |slot: &Slot| is_fast(slot.source) && slot.period_us(pace) == FAST_PERIOD_US && !slot.is_dear;
        let of_kind = |slot: &&mut Slot| kinds.contains(&(slot.source.scope as u8));
        let (often, others): (Vec<&mut Slot>, Vec<&mut Slot>) = self.slots.iter_mut().filter(of_kind).partition(|slot| is_often(slot));
        let until_us = others.iter().map(|slot| slot.due_us).min()?;
        let period_us = often.iter().map(|slot| FAST_PERIOD_US * slot.thrift).min()?;
        if until_us <= now_us + period_us {
            return None;
        }
        let repeated = often.into_iter().map(|slot| {
            slot.due_us = until_us;
            slot.source
        });
        Some(Repeat { sources: repeated.collect(), until_us, period_us })
    }

    /// Takes note of what reads cost, and puts off what is too dear, so many times as long as usual.
    pub(super) fn done(&mut self, now_us: u64, pace: Pace, strain: f64, reads: impl Iterator<Item = Spent>) {
        let mut sums: Vec<(Spent, u64)> = Vec::new();
        for read in reads {
            match sums.iter_mut().find(|(sum, _)| sum.source.name == read.source.name) {
                Some((sum, times)) => {
                    (sum.cost_us, sum.is_there, *times) = (sum.cost_us + read.cost_us, sum.is_there | read.is_there, *times + 1);
                }
                None => sums.push((read, 1)),
            }
        }
        for slot in &mut self.slots {
            let Some((sum, times)) = sums.iter().find(|(sum, _)| sum.source.name == slot.source.name) else { continue };
            if slot.is_absent && sum.is_there {
                slot.due_us = slot.due_us.min(next(now_us, FAST_PERIOD_US));
            }
            // A sampled source keeps to its own moments and its own share; a turn without a sample says nothing.
            let is_sampled = slot.source.cadence == Cadence::Sampled;
            slot.is_absent = !sum.is_there && !is_sampled;
            if slot.is_eager(pace) {
                slot.eager_spent_us += sum.cost_us;
            }
            // A look that alone took what there is for eagerness rests as one that is not eager.
            let share = slot.share(pace);
            // Other sources are read once for each scope in one turn, these several times for one.
            let turns = if is_fast(slot.source) { *times } else { 1 };
            let rest_us = (sum.cost_us / turns).saturating_mul(share);
            slot.is_dear = rest_us > slot.period_us(pace) && !is_sampled;
            slot.thrift = thrift(slot.source, strain);
            if !slot.is_dear && slot.thrift > 1 {
                slot.due_us = slot.due_us.max(next(now_us + TOGETHER_US, slot.period_us(pace) * slot.thrift));
            }
            if slot.is_dear {
                let rest_us = if COMPARED.contains(&slot.source.name) { rest_us } else { strained(rest_us, strain) };
                slot.due_us = slot.due_us.max(next(now_us + rest_us, FAST_PERIOD_US));
                if rest_us > slot.period_us(Pace::Path) {
                    slot.forced_us = slot.forced_us.max(rest_us);
                }
            }
        }
    }

    /// When the next source of one of these kinds of scope is due.
    pub(super) fn next_due_us(&self, kinds: &BTreeSet<u8>) -> Option<u64> {
        self.slots.iter().filter(|slot| kinds.contains(&(slot.source.scope as u8))).map(|slot| slot.due_us).min()
    }

    /// One sentence for each source that was read much less often than it should have been.
    pub(super) fn slowed(&self, scope: Scope) -> impl Iterator<Item = String> {
        let slowed = self.slots.iter().filter(|slot| slot.forced_us >= 2 * slot.period_us(Pace::Path));
        slowed.map(move |slot| {
            let place = match scope {
                Scope::Netns(id) => format!(" of net:[{id}]"),
                _ => String::new(),
            };
            format!("{}{place}: up to {} ms passed between two reads, so that reading stays cheap", slot.source.name, slot.forced_us / 1000)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source;
    use crate::table::ScopeKind;

    fn spent(source: &'static Source, cost_us: u64) -> Spent {
        Spent { source, cost_us, is_there: true }
    }

    fn count(cost_us: u64, pace: Pace, name: &str) -> usize {
        let mut schedule = Schedule::new(0);
        let mut reads = 0;
        for now_us in (0..10_000_000).step_by(1_000) {
            let due = schedule.due(now_us, pace);
            reads += due.iter().filter(|source| source.name == name).count();
            let cost = |source: &'static Source| if source.name == name { cost_us } else { 1 };
            schedule.done(now_us, pace, 1.0, due.into_iter().map(|source| spent(source, cost(source))));
        }
        reads
    }

    #[test]
    fn cadences() {
        assert!((195..=205).contains(&count(10, Pace::Path, "listeners")), "20 a second");
        assert!((10..=13).contains(&count(10, Pace::Path, "sockets")), "one a second");
        assert!((36..=41).contains(&count(10, Pace::Eager, "sockets")), "four a second while the path is unknown");
        assert!((2..=4).contains(&count(10, Pace::Calm, "listeners")), "now and then where the path does not lead");
        assert!((9..=12).contains(&count(10, Pace::Client, "listeners")), "nobody queues at the client's");
        assert!((195..=205).contains(&count(10, Pace::Client, "conntrack_count")), "its table may fill in a moment");
        assert_eq!(count(10, Pace::Path, "addresses"), 0, "only at the ends");
    }

    #[test]
    fn what_is_dear_is_read_less_often_and_told() {
        assert!((9..=11).contains(&count(10_000, Pace::Path, "listeners")), "10 ms may be spent once a second");
        assert!((2..=4).contains(&count(10_000, Pace::Path, "sockets")), "10 ms may be spent every four seconds");
        assert!((15..=20).contains(&count(1_000, Pace::Eager, "sockets")), "four a second until the eager time is spent, then one");
        assert_eq!(count(60_000, Pace::Eager, "sockets"), 1, "which one dear read does: half a minute passes after it");
        let mut schedule = Schedule::new(0);
        schedule.done(0, Pace::Path, 1.0, [spent(source("listeners").unwrap(), 10_000)].into_iter());
        let told: Vec<String> = schedule.slowed(Scope::Netns(5)).collect();
        assert_eq!(told, ["listeners of net:[5]: up to 1000 ms passed between two reads, so that reading stays cheap"]);
    }

    #[test]
    fn what_is_not_there_is_not_watched_closely() {
        let mut schedule = Schedule::new(0);
        let mut reads = 0;
        for now_us in (0..10_000_000).step_by(10_000) {
            let due = schedule.due(now_us, Pace::Path).into_iter().filter(|source| source.name == "conntrack_count");
            let due: Vec<&'static Source> = due.collect();
            reads += due.len();
            // It comes after five seconds.
            schedule.done(
                now_us,
                Pace::Path,
                1.0,
                due.into_iter().map(|source| Spent { is_there: now_us > 5_000_000, ..spent(source, 10) }),
            );
        }
        assert!((80..=95).contains(&reads), "{reads}: once a second, then 20 times");
    }

    #[test]
    fn who_holds_connections_is_sought_once_somebody_calls() {
        assert!((36..=41).contains(&count(10, Pace::Seek, "sockets")));
        assert!((10..=13).contains(&count(10, Pace::Seek, "process_files")));
        assert!((36..=41).contains(&count(10, Pace::Eager, "process_files")));
    }

    #[test]
    fn a_reader_goes_on_by_itself_until_another_source_is_due() {
        let kinds = BTreeSet::from([ScopeKind::Netns as u8]);
        let mut schedule = Schedule::new(0);
        assert!(!schedule.due(1_000_000, Pace::Path).is_empty());
        let Repeat { sources: often, until_us, period_us } = schedule.repeat(1_000_000, Pace::Path, &kinds).unwrap();
        assert_eq!(often.iter().map(|source| source.name).collect::<Vec<_>>(), ["listeners", "requests", "conntrack_count"]);
        assert_eq!((until_us, period_us), (2_000_000, FAST_PERIOD_US));
        assert_eq!(schedule.next_due_us(&kinds), Some(2_000_000));
        let given = schedule.due(1_900_000, Pace::Path);
        assert!(given.iter().all(|source| source.scope != ScopeKind::Netns), "what the reader does by itself is not given out");
        assert!(schedule.repeat(1_960_000, Pace::Path, &kinds).is_none(), "there is no turn left");
        assert!(schedule.due(2_000_000, Pace::Path).iter().any(|source| source.name == "listeners"));
        assert!(Schedule::new(0).repeat(0, Pace::Calm, &kinds).is_none(), "nothing is read often there");
        assert!(Schedule::new(0).repeat(0, Pace::Path, &BTreeSet::from([ScopeKind::Host as u8])).is_none(), "nothing of the host's is");
        // Several turns in one answer are no dear reading, one dear one is.
        let turns = |cost_us| (0..20).map(move |_| spent(source("listeners").unwrap(), cost_us));
        schedule.done(2_000_000, Pace::Path, 1.0, turns(100));
        assert_eq!(schedule.repeat(2_000_000, Pace::Path, &kinds).map(|repeat| repeat.sources.len()), Some(3));
        schedule.done(2_000_000, Pace::Path, 1.0, turns(10_000));
        assert_eq!(schedule.repeat(2_000_000, Pace::Path, &kinds).map(|repeat| repeat.sources.len()), Some(2));
    }

    #[test]
    fn under_strain_all_but_what_is_compared_is_read_more_rarely() {
        let reads = |name: &str, strain: f64| {
            let (mut schedule, mut reads) = (Schedule::new(0), 0);
            for now_us in (0..12_000_000).step_by(1_000) {
                let due = schedule.due(now_us, Pace::Path);
                reads += due.iter().filter(|source| source.name == name).count();
                schedule.done(now_us, Pace::Path, strain, due.into_iter().map(|source| spent(source, 10)));
            }
            reads
        };
        assert_eq!((reads("netstat", 1.0), reads("netstat", 1.01), reads("netstat", 9.0)), (12, 7, 5));
        assert!((75..=85).contains(&reads("listeners", 9.0)), "{}: seven a second", reads("listeners", 9.0));
        assert_eq!(COMPARED.map(|name| reads(name, 9.0)), [12; 4]);
        let kinds = BTreeSet::from([ScopeKind::Netns as u8]);
        let mut schedule = Schedule::new(0);
        schedule.due(1_000_000, Pace::Path);
        schedule.done(1_000_000, Pace::Path, 9.0, [spent(source("listeners").unwrap(), 10)].into_iter());
        let repeat = schedule.repeat(1_000_000, Pace::Path, &kinds).unwrap();
        assert_eq!(repeat.period_us, FAST_PERIOD_US, "the other one costs nothing yet");
        schedule.done(2_000_000, Pace::Path, 9.0, repeat.sources.into_iter().map(|source| spent(source, 10)));
        schedule.due(3_000_000, Pace::Path);
        assert_eq!(schedule.repeat(3_000_000, Pace::Path, &kinds).unwrap().period_us, 3 * FAST_PERIOD_US);
    }

    #[test]
    fn what_is_dear_rests_longer_where_all_together_use_too_much() {
        let reads = |strain: f64| {
            let (mut schedule, mut reads) = (Schedule::new(0), 0);
            for now_us in (0..10_000_000).step_by(1_000) {
                let due = schedule.due(now_us, Pace::Path);
                reads += due.iter().filter(|source| source.name == "sockets").count();
                schedule.done(now_us, Pace::Path, strain, due.into_iter().map(|source| spent(source, 3_000)));
            }
            reads
        };
        assert!(reads(2.0) * 3 < reads(1.0) * 2, "{} and {}", reads(2.0), reads(1.0));
        assert_eq!(strain(0, 0), 1.0);
        let all_us = (SPENT_FIRST_US + SPENT_SHARE_MAX * 1e6) as u64;
        assert_eq!(strain(all_us, 1_000_000), 1.0, "as much as there is");
        assert!((strain(all_us + all_us / 10, 1_000_000) - 1.1_f64.powi(8)).abs() < 1e-9, "a tenth too much");
        assert_eq!(strain(u64::MAX, 0), STRAIN_MAX);
    }

    #[test]
    fn files_are_counted_four_times_a_second_where_the_kernel_counts_them() {
        assert!((36..=41).contains(&count(10, Pace::Path, "process_fd_count")));
        assert!((9..=20).contains(&count(1_000, Pace::Path, "process_fd_count")), "1 ms may be spent once a second");
    }

    #[test]
    fn a_sample_keeps_to_its_own_moments_whatever_a_turn_gave_or_cost() {
        let kinds = BTreeSet::from([ScopeKind::Netns as u8]);
        let requests = source("requests").unwrap();
        for spent in [Spent { source: requests, cost_us: 0, is_there: false }, Spent { source: requests, cost_us: 50_000, is_there: true }]
        {
            let mut schedule = Schedule::new(0);
            schedule.due(1_000_000, Pace::Path);
            schedule.done(1_000_000, Pace::Path, 1.0, [spent].into_iter());
            let repeat = schedule.repeat(1_000_000, Pace::Path, &kinds).unwrap();
            assert!(repeat.sources.iter().any(|source| source.name == "requests"), "{spent:?}");
            assert_eq!(schedule.slowed(Scope::Netns(1)).count(), 0);
        }
        assert_eq!(count(10, Pace::Calm, "requests"), 0, "where the path does not lead");
    }

    #[test]
    fn missed_turns_are_not_made_up_for() {
        let mut schedule = Schedule::new(0);
        assert!(!schedule.due(5_000_000, Pace::Path).is_empty());
        assert!(schedule.due(5_010_000, Pace::Path).is_empty());
    }
}
