//! When each source is due. What is cheap and compared, or the only proof, keeps to its cadence; all else is read when the bucket can pay for it.

use chokepoint_recording::Scope;

use super::bucket::{Account, Bucket, FLOW_US};
use crate::SOURCES;
use crate::table::{Cadence, ScopeKind, Source};

pub(super) const FAST_PERIOD_US: u64 = 50_000;
/// Of what is read four times a second, and of another try to pay for what waits.
const OFTEN_PERIOD_US: u64 = 250_000;
const SLOW_PERIOD_US: u64 = 1_000_000;
/// Where the path does not lead, everything is read this often.
const ASIDE_PERIOD_US: u64 = 5_000_000;
/// What is due so soon is read at once: one wake-up for several sources.
const TOGETHER_US: u64 = 2_000;
/// A turn of what is repeated begins so much later at the most.
pub(super) const DRAWN_MAX_US: u64 = 20_000;

/// Sources that are read as the bucket affords, where they are not cheap: they cost what there are connections, descriptors, processes or interfaces. All others
/// keep to their cadence: CPU times of cores, processes and cgroups, which are compared, and where their times come apart one saw work that the other did not;
/// counters; the queues of listeners and the count of conntrack's entries, which fill up within a moment. Samples of requests have a part of their own.
const AFFORDED: [&str; 8] = [CONNECTIONS, FILES, WAITS, "tcp_info", "time_wait", "process_fd_count", "links", "qdiscs"];

/// A reading is cheap that takes no more than one of so many parts of what flows in within a second (of what is read four times a second, a quarter): about 1 ms. Of
/// few connections all is read in time then, however many namespaces there are: who waits for whom must not be missed for want of a millisecond. Where all that is
/// cheap is too much together, it is read more rarely, all of it alike.
const CHEAP_PART: u64 = 8;

/// Sources that tell which connections the processes of the path hold. They are read one right after the other, for a connection must be seen
/// by both.
pub(super) const EDGES: [&str; 2] = [CONNECTIONS, FILES];
const CONNECTIONS: &str = "sockets";
pub(super) const FILES: &str = "process_files";

/// The source that tells for which of them a process waits: read right after them.
const WAITS: &str = "process_syscall";

/// Sources that tell of servers: nobody queues at a client's listeners.
const OF_SERVERS: [&str; 2] = [CONNECTIONS, "listeners"];

pub(super) fn is_edge(source: &Source) -> bool {
    EDGES.contains(&source.name)
}

/// What a reader's scopes are to the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watch {
    /// It does not lead there: a look now and then is enough.
    Aside,
    /// Requests come from there: its tables and ports can be the limit, too, but not what tells of servers.
    Client,
    /// Requests are answered there. In search of a tier that was not seen yet, these sources are read oftener while there is plenty in the bucket.
    Path { sought: &'static [&'static str] },
}

/// What one reading took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spent {
    pub(super) source: &'static Source,
    /// CPU time, microseconds.
    pub(super) cost_us: u64,
    /// It gave a value, and one that is not empty or zero.
    pub(super) is_there: bool,
    /// It is the first one of its scope, which waits for nothing.
    pub(super) is_first: bool,
}

/// The next whole multiple of a period: so the turns of all readers fall together and wake the host once.
pub(super) fn next(after_us: u64, period_us: u64) -> u64 {
    (after_us / period_us + 1) * period_us
}

/// So much later than a turn at the most, by an amount that differs from turn to turn and from reader to reader. What servers do at a beat of their own must not
/// always be seen at the same point of it; and where readers took their turns together, the second one on a core would see what is left after the clients had no
/// core while the first one read: a few clients that wait for their answers ask nothing new, and the servers have soon answered all.
pub(super) fn drawn(turn_us: u64, reader: Scope, late_us_max: u64) -> u64 {
    let number = if let Scope::Netns(id) = reader { id } else { 0 };
    // The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
    let mut mixed = (turn_us ^ number.rotate_left(32)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    turn_us + (mixed ^ (mixed >> 31)) % late_us_max
}

struct Slot {
    source: &'static Source,
    /// Whose it is.
    reader: Scope,
    due_us: u64,
    /// When it was given out last.
    given_us: u64,
    account: Account,
    /// The last reading gave nothing: there is nothing to be watched closely.
    is_absent: bool,
    /// It was due and could not be paid for.
    is_late: bool,
    /// The time between its last two turns where want of CPU time made it twice as long as usual or longer, else zero; and the longest between two readings.
    gap_us: u64,
    gap_us_max: u64,
}

impl Slot {
    fn of(source: &'static Source, reader: Scope, now_us: u64) -> Self {
        let account = Account::default();
        Self { source, reader, due_us: 0, given_us: now_us, account, is_absent: false, is_late: false, gap_us: 0, gap_us_max: 0 }
    }

    fn is_cheap(&self) -> bool {
        let period_us = if self.source.cadence == Cadence::Often { OFTEN_PERIOD_US } else { SLOW_PERIOD_US };
        self.account.cost_us() * FLOW_US * CHEAP_PART <= period_us
    }

    fn is_afforded(&self) -> bool {
        AFFORDED.contains(&self.source.name) && !self.is_cheap()
    }

    fn is_sampled(&self) -> bool {
        self.source.cadence == Cadence::Sampled
    }

    /// What the reader repeats by itself.
    fn is_repeated(&self, watch: Watch) -> bool {
        self.cadence_us(watch) == FAST_PERIOD_US || (self.is_sampled() && watch != Watch::Aside)
    }

    fn cadence_us(&self, watch: Watch) -> u64 {
        match self.source.cadence {
            _ if watch == Watch::Aside || (watch == Watch::Client && OF_SERVERS.contains(&self.source.name)) => ASIDE_PERIOD_US,
            Cadence::Fast if !self.is_absent => FAST_PERIOD_US,
            Cadence::Sampled | Cadence::Often if !self.is_absent => OFTEN_PERIOD_US,
            _ => SLOW_PERIOD_US,
        }
    }

    /// A search takes only what is left over; and what takes all that flows in within a second rests until there is plenty, lest all else waits for it.
    fn period_us(&self, watch: Watch, bucket: &Bucket) -> u64 {
        let cadence_us = self.cadence_us(watch);
        let is_sought = matches!(watch, Watch::Path { sought } if sought.contains(&self.source.name));
        match bucket.is_plentiful(&self.account) {
            _ if self.is_sampled() && !self.is_cheap() => {
                cadence_us.max(bucket.sample_period_us(self.account.cost_us())) * bucket.stretch()
            }
            true if is_sought => OFTEN_PERIOD_US,
            _ if !self.is_afforded() => cadence_us * bucket.stretch(),
            false if self.account.cost_us() * FLOW_US > SLOW_PERIOD_US => ASIDE_PERIOD_US,
            _ => cadence_us,
        }
    }

    /// True where it is read now; else it is due later.
    fn takes_turn(&mut self, now_us: u64, watch: Watch, is_paired: bool, bucket: &mut Bucket) -> bool {
        let (at_us, period_us) = (now_us + TOGETHER_US, self.period_us(watch, bucket));
        // There may be less in the bucket by now, and another path. Where the path does not lead no request is.
        let is_early = next(self.given_us, period_us) > at_us && !is_paired;
        if is_early || (self.is_sampled() && watch == Watch::Aside) {
            self.due_us = next(at_us, period_us);
            return false;
        }
        if self.is_afforded() && !bucket.pays(&mut self.account) && !is_paired {
            self.put_off(now_us);
            return false;
        }
        if self.is_afforded() {
            self.account.give();
        }
        let (cadence_us, gap_us) = (self.cadence_us(watch), at_us.saturating_sub(self.given_us));
        let is_forced = (self.is_late || period_us > cadence_us) && gap_us >= 2 * cadence_us;
        self.gap_us = if is_forced { gap_us } else { 0 };
        self.is_late = false;
        // Missed turns are not made up for.
        (self.given_us, self.due_us) = (at_us, self.moment_us(next(at_us, period_us)));
        true
    }

    /// Tries again at the next turn; until then it saves.
    fn put_off(&mut self, now_us: u64) {
        self.due_us = self.moment_us(next(now_us + TOGETHER_US, OFTEN_PERIOD_US));
        self.is_late = true;
    }

    /// Samples of requests have no beat.
    fn moment_us(&self, turn_us: u64) -> u64 {
        if self.is_sampled() { drawn(turn_us, self.reader, OFTEN_PERIOD_US) } else { turn_us }
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
    /// All sources that the reader of this scope reads repeatedly. Those of processes are due without effect while there are none.
    pub(super) fn new(reader: Scope, now_us: u64) -> Self {
        let is_netns = matches!(reader, Scope::Netns(_));
        let is_read = |source: &Source| match source.scope {
            ScopeKind::Netns => is_netns,
            ScopeKind::Host | ScopeKind::Process => !is_netns,
            ScopeKind::Server => false,
        };
        let is_repeated = |source: &Source| !matches!(source.cadence, Cadence::Ends | Cadence::Once) || is_edge(source);
        let sources = SOURCES.iter().filter(|source| is_read(source) && is_repeated(source));
        let mut slots: Vec<Slot> = sources.map(|source| Slot::of(source, reader, now_us)).collect();
        // A sample comes first in its turn: while anything else is read the servers go on, and clients whose core the reader has do not.
        slots.sort_by_key(|slot| (!slot.is_sampled(), !is_edge(slot.source), slot.source.name != WAITS));
        Self { slots }
    }

    /// True where samples of requests have to keep to their part of the bucket.
    pub(super) fn has_expensive_samples(&self) -> bool {
        self.slots.iter().any(|slot| slot.is_sampled() && !slot.is_cheap())
    }

    /// What its sources save.
    pub(super) fn accounts(&mut self) -> impl Iterator<Item = &mut Account> {
        self.slots.iter_mut().map(|slot| &mut slot.account)
    }

    /// What is due and paid, and the connections whenever files are read; it counts as given out.
    pub(super) fn due(&mut self, now_us: u64, watch: Watch, with_files: bool, bucket: &mut Bucket) -> Vec<&'static Source> {
        let mut due = Vec::new();
        for slot in &mut self.slots {
            let is_paired = with_files && slot.source.name == CONNECTIONS;
            if (is_paired || slot.due_us <= now_us + TOGETHER_US) && slot.takes_turn(now_us, watch, is_paired, bucket) {
                due.push(slot.source);
            }
        }
        due
    }

    fn slot(&mut self, name: &str) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.source.name == name)
    }

    /// Puts off the files of processes while the connections of their time, which these others read, are too expensive: without them they tell nothing.
    pub(super) fn pair<'a>(&mut self, now_us: u64, watch: Watch, others: impl Iterator<Item = &'a mut Self>, bucket: &mut Bucket) {
        let Some(files) = self.slot(FILES) else { return };
        let turn_us = files.due_us.max(next(files.given_us, files.period_us(watch, bucket)));
        if turn_us > now_us + TOGETHER_US || (files.is_afforded() && !bucket.pays(&mut files.account)) {
            return;
        }
        let connections = others.filter_map(|other| other.slot(CONNECTIONS));
        if let Some(connections) = connections.max_by_key(|slot| slot.account.cost_us())
            && connections.is_afforded()
            && !bucket.pays(&mut connections.account)
        {
            connections.put_off(now_us);
            files.put_off(now_us);
        }
    }

    /// What the reader may read often by itself, until when, and how often: until the next other source is due. It counts as given out. What waits to be
    /// paid for is no reason to stop: once it is read, that ends the repetition.
    pub(super) fn repeat(&mut self, now_us: u64, watch: Watch, bucket: &mut Bucket) -> Option<Repeat> {
        let (often, others): (Vec<&mut Slot>, Vec<&mut Slot>) = self.slots.iter_mut().partition(|slot| slot.is_repeated(watch));
        let until_us = others.iter().filter(|slot| !slot.is_late).map(|slot| slot.due_us).min()?;
        let period_us = FAST_PERIOD_US * bucket.stretch();
        if until_us <= now_us + period_us {
            return None;
        }
        // A sample that is taken more rarely than the reader would take it by itself is given out alone.
        let given =
            often.into_iter().filter(|slot| !slot.is_sampled() || slot.period_us(watch, bucket) <= slot.cadence_us(watch)).map(|slot| {
                (slot.given_us, slot.due_us) = (until_us - period_us, until_us);
                slot.source
            });
        let sources: Vec<&'static Source> = given.collect();
        (!sources.is_empty()).then_some(Repeat { sources, until_us, period_us })
    }

    /// Takes note of what reads gave and took. The bucket has paid for them already.
    pub(super) fn done(&mut self, now_us: u64, bucket: &mut Bucket, reads: &[Spent]) {
        for slot in &mut self.slots {
            let of_slot = reads.iter().filter(|read| read.source.name == slot.source.name);
            let (first, others): (Vec<&Spent>, Vec<&Spent>) = of_slot.partition(|read| read.is_first);
            let there = first.iter().chain(&others).filter(|read| read.is_there).count();
            let cost_us: u64 = others.iter().map(|read| read.cost_us).sum();
            // Of what is read of few processes at a time, the first readings of all tell more than a turn will take; the first sample of a crowd has all of it, the
            // next ones a share.
            if !slot.is_sampled() {
                slot.account.expect(first.iter().map(|read| read.cost_us).max().unwrap_or(0));
            }
            // One answer has several samples or none; all else is read once in it, for each scope.
            let turns =
                if slot.is_sampled() { others.iter().filter(|read| read.is_there).count() as u64 } else { others.len().min(1) as u64 };
            match cost_us.checked_div(turns) {
                Some(_) if slot.is_afforded() => bucket.charge(&mut slot.account, cost_us),
                Some(turn_us) => slot.account.learn(turn_us),
                None => {}
            }
            if first.len() + others.len() > 0 {
                if slot.is_absent && there > 0 {
                    slot.due_us = slot.due_us.min(next(now_us, FAST_PERIOD_US));
                }
                // A turn without a sample says nothing.
                slot.is_absent = there == 0 && !slot.is_sampled();
                slot.gap_us_max = slot.gap_us_max.max(slot.gap_us);
            }
        }
    }

    /// When the next source is due.
    pub(super) fn next_due_us(&self) -> Option<u64> {
        self.slots.iter().map(|slot| slot.due_us).min()
    }

    /// One sentence for each source that was read half as often as it should have been, or more rarely, until this time: what still waits to be paid for was not read
    /// since its last turn.
    pub(super) fn slowed(&self, scope: Scope, until_us: u64) -> impl Iterator<Item = String> {
        let waits_us = move |slot: &Slot| {
            let gap_us = until_us.saturating_sub(slot.given_us);
            if slot.is_late && gap_us >= 2 * slot.cadence_us(Watch::Path { sought: &[] }) { gap_us } else { 0 }
        };
        let gaps = self.slots.iter().map(move |slot| (slot.source.name, slot.gap_us_max.max(waits_us(slot))));
        gaps.filter(|(_, gap_us)| *gap_us > 0).map(move |(name, gap_us)| {
            let place = match scope {
                Scope::Netns(id) => format!(" of net:[{id}]"),
                _ => String::new(),
            };
            format!("{name}{place}: up to {} ms passed between two reads, so that reading stays cheap", gap_us / 1000)
        })
    }
}

#[cfg(test)]
mod tests;
