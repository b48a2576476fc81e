//! When each source is due. Sources that are cheap, compared with each other, or the only proof keep to their cadence. All others are read when the bucket can
//! pay for them.

use chokepoint_recording::Scope;

use super::bucket::{Account, Bucket, EARLY_PART, EARLY_US, FLOW_US, LOADED_PART, LOADED_US};
use crate::SOURCES;
use crate::table::{Cadence, ScopeKind, Source};

pub(super) const FAST_PERIOD_US: u64 = 50_000;
/// Period of sources that are read four times a second, and of attempts to pay for waiting ones.
const OFTEN_PERIOD_US: u64 = 250_000;
const SLOW_PERIOD_US: u64 = 1_000_000;
/// Period of everything in namespaces that are not on the path.
const ASIDE_PERIOD_US: u64 = 5_000_000;
/// Longest time between two samples of requests, however much they cost and whatever the budget owes: the account of a load needs some, and the recorder's window
/// is five seconds.
const SAMPLED_MAX_US: u64 = 2_000_000;
const SAMPLED_RECORDER_MAX_US: u64 = 4_000_000;
/// Sources that are due within this time are read together, with one wake-up.
const TOGETHER_US: u64 = 2_000;
/// Largest random delay of a repeated turn.
pub(super) const DRAWN_MAX_US: u64 = 20_000;

/// Sources that are read when the bucket can pay, unless they are cheap: their cost grows with connections, descriptors, processes or interfaces. All others
/// keep to their cadence. CPU times of cores, processes and cgroups are compared, so they must be read at the same times. Counters are cheap. The queues of
/// listeners and the count of conntrack entries fill up within a moment. Samples of requests have their own part of the inflow.
const AFFORDED: [&str; 9] = [CONNECTIONS, FILES, WAITS, "busy_processes", "tcp_info", "time_wait", OPEN_FILES, "links", "qdiscs"];

/// Limits that hardly ever change, and how far they are used: whoever watches without an end reads them as rarely as what its budget has to afford.
const RARELY: [&str; 2] = ["task_limits", "process_mappings"];

/// A reading is cheap if it costs no more than `1 / CHEAP_PART` of the inflow of a second: about 1 ms (a quarter of that if it is read four times a
/// second). So with few connections everything is read in time, however many namespaces there are: a missing millisecond must not hide who waits for whom. If
/// all cheap sources together are too expensive, all of them are read more rarely by the same factor.
const CHEAP_PART: u64 = 8;

/// Sources that tell which connections the processes of the path hold. They are read right after each other, since both must see a connection.
pub(super) const EDGES: [&str; 2] = [CONNECTIONS, FILES];
const CONNECTIONS: &str = "sockets";
pub(super) const FILES: &str = "process_files";

/// The source that tells for which of these connections a process waits. It is read right after them.
const WAITS: &str = "process_syscall";
/// The number of open descriptors. What ends at a limit between two reads is shown by nothing else but a log, which others write into.
const OPEN_FILES: &str = "process_fd_count";
/// Each of these two may take one part in so many of what samples of requests may in the first seconds: it says why they wait, and is read a quarter as often.
const WAITS_PART: u64 = 4;

/// Statuses of responses on the wire.
const ANSWERS: &str = "answers";

/// Sources that concern servers only: nobody queues at a client's listeners.
const OF_SERVERS: [&str; 2] = [CONNECTIONS, "listeners"];

pub(super) fn is_edge(source: &Source) -> bool {
    EDGES.contains(&source.name)
}

/// Role of a reader's scopes on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathRole {
    /// Not on the path: occasional readings are enough.
    OffPath,
    /// Requests come from there. Its tables and ports can be the limit too, but its listeners cannot.
    Client,
    /// Requests are answered there. While a tier is sought, these sources are read more often if the bucket has plenty.
    OnPath { sought: &'static [&'static str] },
}

/// What the readings are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// A measurement of some seconds under a load of this process, in which every moment counts. Samples of requests come in time for the length of a usual load.
    Measurement,
    /// The same of traffic that others make. It may be as short, and only samples of requests tell whether the server keeps up: the first seconds have as many as a
    /// verdict needs, whatever the budget owes. No load suffers from that, and production no more than the bound of these seconds.
    Watch,
    /// An observation without an end: queues are read four times a second, and what only the search for the path needs every five seconds. So samples of requests, on
    /// which its account rests, keep their rate.
    Recorder,
}

impl Pace {
    /// For how long samples of requests do not wait for the budget, microseconds, and which part of a core they may take meanwhile.
    fn early(self) -> (u64, u64) {
        match self {
            Pace::Measurement => (LOADED_US, LOADED_PART),
            Pace::Watch | Pace::Recorder => (EARLY_US, EARLY_PART),
        }
    }
}

/// Cost of one reading.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadCost {
    pub(super) source: &'static Source,
    /// CPU time, microseconds.
    pub(super) cost_us: u64,
    /// It gave a value that is not empty and not zero.
    pub(super) is_there: bool,
    /// It was the first one of its scope, which needs no payment.
    pub(super) is_first: bool,
}

/// The next whole multiple of a period. So the turns of all readers coincide and wake the host once.
pub(super) fn next(after_us: u64, period_us: u64) -> u64 {
    (after_us / period_us + 1) * period_us
}

/// A pseudo-random moment up to `late_us_max` after a turn, different for each turn and reader. Samples must not keep step with what servers do periodically.
/// And if two readers sampled at the same time on one core, the second one would see too few requests: while the first one reads, the clients have no core
/// and send nothing new, and the servers soon have answered everything.
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
    reader: Scope,
    pace: Pace,
    due_us: u64,
    /// Time of its last turn.
    given_us: u64,
    account: Account,
    /// End of the first seconds, since its first turn.
    early_until_us: Option<u64>,
    /// The last reading gave nothing, so it need not be read often.
    is_absent: bool,
    /// It was due and the bucket could not pay.
    is_late: bool,
    /// Time between its last two turns if the budget made it at least twice as long as usual, else zero.
    gap_us: u64,
    /// The longest such time between two readings.
    gap_us_max: u64,
}

impl Slot {
    fn of(source: &'static Source, reader: Scope, pace: Pace, now_us: u64) -> Self {
        let account = Account::default();
        let (early_until_us, is_absent, is_late) = (None, false, false);
        Self { source, reader, pace, due_us: 0, given_us: now_us, account, early_until_us, is_absent, is_late, gap_us: 0, gap_us_max: 0 }
    }

    fn is_cheap(&self) -> bool {
        let is_often = match self.source.cadence {
            Cadence::Often => true,
            // They come first where every moment counts. Beside thousands of connections a recorder's would cost as much as all its other readings.
            Cadence::Sampled => self.pace == Pace::Recorder,
            _ => false,
        };
        let period_us = if is_often { OFTEN_PERIOD_US } else { SLOW_PERIOD_US };
        self.account.cost_us() * FLOW_US * CHEAP_PART <= period_us
    }

    fn is_afforded(&self) -> bool {
        AFFORDED.contains(&self.source.name) && !self.is_cheap()
    }

    fn is_sampled(&self) -> bool {
        self.source.cadence == Cadence::Sampled
    }

    /// False where no request is served that it could tell of. Statuses on the wire are for a diagnosis: whoever watches without an end makes one when something drops.
    fn is_wanted(&self, role: PathRole) -> bool {
        match self.source.name {
            ANSWERS => self.pace != Pace::Recorder && matches!(role, PathRole::OnPath { .. }),
            _ => !self.is_sampled() || role != PathRole::OffPath,
        }
    }

    /// True if the reader repeats it by itself.
    fn is_repeated(&self, role: PathRole) -> bool {
        self.cadence_us(role) == FAST_PERIOD_US || (self.is_sampled() && role != PathRole::OffPath)
    }

    fn cadence_us(&self, role: PathRole) -> u64 {
        match self.source.cadence {
            _ if role == PathRole::OffPath || (role == PathRole::Client && OF_SERVERS.contains(&self.source.name)) => ASIDE_PERIOD_US,
            _ if self.pace == Pace::Recorder && (AFFORDED.contains(&self.source.name) || RARELY.contains(&self.source.name)) => {
                ASIDE_PERIOD_US
            }
            Cadence::Fast if !self.is_absent && self.pace != Pace::Recorder => FAST_PERIOD_US,
            Cadence::Fast if !self.is_absent => OFTEN_PERIOD_US,
            Cadence::Sampled if !self.is_absent => OFTEN_PERIOD_US,
            // Whoever watches without an end asks first where requests stand. What drops is measured anew by a diagnosis.
            Cadence::Often if !self.is_absent && self.pace != Pace::Recorder => OFTEN_PERIOD_US,
            _ => SLOW_PERIOD_US,
        }
    }

    /// The time until the next turn. A search uses only what is left over. A source that costs the inflow of a whole second pauses until the bucket has plenty,
    /// so that nothing else waits for it.
    fn period_us(&self, now_us: u64, role: PathRole, bucket: &Bucket) -> u64 {
        let cadence_us = self.cadence_us(role);
        let is_sought = matches!(role, PathRole::OnPath { sought } if sought.contains(&self.source.name));
        match bucket.is_plentiful(&self.account) {
            _ if self.is_early(now_us) && self.is_sampled() => {
                cadence_us.max(bucket.early_sample_period_us(self.account.cost_us(), self.pace.early().1)).min(self.sample_period_us_max())
            }
            _ if self.is_early(now_us) => {
                cadence_us.max(bucket.early_sample_period_us(self.account.cost_us(), WAITS_PART * self.pace.early().1))
            }
            _ if self.is_sampled() && !self.is_cheap() => {
                (cadence_us.max(bucket.sample_period_us(self.account.cost_us())) * bucket.backoff()).min(self.sample_period_us_max())
            }
            true if is_sought => OFTEN_PERIOD_US,
            _ if !self.is_afforded() => cadence_us * bucket.backoff(),
            false if self.account.cost_us() * FLOW_US > SLOW_PERIOD_US => ASIDE_PERIOD_US,
            _ => cadence_us,
        }
    }

    /// True in the first seconds for samples, for what processes wait for and for the descriptors that they hold, which do not wait for the budget.
    fn is_early(&self, now_us: u64) -> bool {
        let is_proof = self.is_sampled() || [WAITS, OPEN_FILES].contains(&self.source.name);
        is_proof && self.pace != Pace::Recorder && self.early_until_us.is_none_or(|until_us| now_us < until_us)
    }

    fn sample_period_us_max(&self) -> u64 {
        match self.pace {
            Pace::Measurement | Pace::Watch => SAMPLED_MAX_US,
            Pace::Recorder => SAMPLED_RECORDER_MAX_US,
        }
    }

    /// True if it is read now. Otherwise it becomes due later.
    fn takes_turn(&mut self, now_us: u64, role: PathRole, is_paired: bool, bucket: &mut Bucket) -> bool {
        let (at_us, period_us) = (now_us + TOGETHER_US, self.period_us(now_us, role, bucket));
        // The content of the bucket and the path may have changed.
        let is_early = next(self.given_us, period_us) > at_us && !is_paired;
        if is_early || !self.is_wanted(role) {
            self.due_us = next(at_us, period_us);
            return false;
        }
        let pays = self.is_afforded() && !self.is_early(now_us);
        if pays && !bucket.reserve(&mut self.account) && !is_paired {
            self.put_off(now_us);
            return false;
        }
        if pays {
            self.account.begin_turn();
        }
        let (cadence_us, gap_us) = (self.cadence_us(role), at_us.saturating_sub(self.given_us));
        let is_forced = (self.is_late || period_us > cadence_us) && gap_us >= 2 * cadence_us;
        self.gap_us = if is_forced { gap_us } else { 0 };
        self.is_late = false;
        self.early_until_us.get_or_insert(now_us + self.pace.early().0);
        // Missed turns are not made up for.
        (self.given_us, self.due_us) = (at_us, self.moment_us(next(at_us, period_us)));
        true
    }

    /// Delays it to the next attempt to pay. Until then it saves.
    fn put_off(&mut self, now_us: u64) {
        self.due_us = self.moment_us(next(now_us + TOGETHER_US, OFTEN_PERIOD_US));
        self.is_late = true;
    }

    /// Samples of requests are not periodic.
    fn moment_us(&self, turn_us: u64) -> u64 {
        if self.is_sampled() { drawn(turn_us, self.reader, OFTEN_PERIOD_US) } else { turn_us }
    }
}

/// Sources that a reader repeats by itself.
#[derive(Debug)]
pub(super) struct RepeatedSources {
    pub(super) sources: Vec<&'static Source>,
    pub(super) until_us: u64,
    /// The turns are at whole multiples of this.
    pub(super) period_us: u64,
}

/// The schedule of one reader.
pub(super) struct Schedule {
    slots: Vec<Slot>,
}

impl Schedule {
    /// All sources that the reader of this scope reads periodically. Those of processes have no effect while there are no processes.
    pub(super) fn new(reader: Scope, pace: Pace, now_us: u64) -> Self {
        let is_netns = matches!(reader, Scope::Netns(_));
        let is_read = |source: &Source| match source.scope {
            ScopeKind::Netns => is_netns,
            ScopeKind::Host | ScopeKind::Process => !is_netns,
            ScopeKind::Server => false,
        };
        let is_repeated = |source: &Source| !matches!(source.cadence, Cadence::Ends | Cadence::Once) || is_edge(source);
        let sources = SOURCES.iter().filter(|source| is_read(source) && is_repeated(source));
        let mut slots: Vec<Slot> = sources.map(|source| Slot::of(source, reader, pace, now_us)).collect();
        // A sample comes first in its turn. During other reads the servers go on working, and clients on the reader's core do not.
        slots.sort_by_key(|slot| (!slot.is_sampled(), !is_edge(slot.source), slot.source.name != WAITS));
        Self { slots }
    }

    /// True if samples of requests must keep to their part of the inflow.
    pub(super) fn has_expensive_samples(&self) -> bool {
        self.slots.iter().any(|slot| slot.is_sampled() && !slot.is_cheap())
    }

    /// The accounts of its sources.
    pub(super) fn accounts(&mut self) -> impl Iterator<Item = &mut Account> {
        self.slots.iter_mut().map(|slot| &mut slot.account)
    }

    /// The sources that are due and paid for; and connections, whenever files are read. Their turns begin.
    pub(super) fn due(&mut self, now_us: u64, role: PathRole, with_files: bool, bucket: &mut Bucket) -> Vec<&'static Source> {
        let mut due = Vec::new();
        for slot in &mut self.slots {
            let is_paired = with_files && slot.source.name == CONNECTIONS;
            if (is_paired || slot.due_us <= now_us + TOGETHER_US) && slot.takes_turn(now_us, role, is_paired, bucket) {
                due.push(slot.source);
            }
        }
        due
    }

    fn slot(&mut self, name: &str) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.source.name == name)
    }

    /// Delays the files of processes while the connections, which `others` read, are too expensive. Files alone tell nothing.
    pub(super) fn pair<'a>(&mut self, now_us: u64, role: PathRole, others: impl Iterator<Item = &'a mut Self>, bucket: &mut Bucket) {
        let Some(files) = self.slot(FILES) else { return };
        let turn_us = files.due_us.max(next(files.given_us, files.period_us(now_us, role, bucket)));
        if turn_us > now_us + TOGETHER_US || (files.is_afforded() && !bucket.reserve(&mut files.account)) {
            return;
        }
        let connections = others.filter_map(|other| other.slot(CONNECTIONS));
        if let Some(connections) = connections.max_by_key(|slot| slot.account.cost_us())
            && connections.is_afforded()
            && !bucket.reserve(&mut connections.account)
        {
            connections.put_off(now_us);
            files.put_off(now_us);
        }
    }

    /// The sources that the reader may repeat by itself until another source is due. Their turns begin. A source that waits for payment does not end the
    /// repetition; reading it does.
    pub(super) fn repeat(&mut self, now_us: u64, role: PathRole, bucket: &mut Bucket) -> Option<RepeatedSources> {
        let (often, others): (Vec<&mut Slot>, Vec<&mut Slot>) = self.slots.iter_mut().partition(|slot| slot.is_repeated(role));
        let until_us = others.iter().filter(|slot| !slot.is_late).map(|slot| slot.due_us).min()?;
        let period_us = FAST_PERIOD_US * bucket.backoff();
        if until_us <= now_us + period_us {
            return None;
        }
        // A sample with a longer period than the reader's own repetition is ordered separately.
        let given = often
            .into_iter()
            .filter(|slot| !slot.is_sampled() || slot.period_us(now_us, role, bucket) <= slot.cadence_us(role))
            .map(|slot| {
                (slot.given_us, slot.due_us) = (until_us - period_us, until_us);
                slot.early_until_us.get_or_insert(now_us + slot.pace.early().0);
                slot.source
            });
        let sources: Vec<&'static Source> = given.collect();
        (!sources.is_empty()).then_some(RepeatedSources { sources, until_us, period_us })
    }

    /// Notes results and costs of reads. The bucket has paid for them already.
    pub(super) fn done(&mut self, now_us: u64, bucket: &mut Bucket, reads: &[ReadCost]) {
        for slot in &mut self.slots {
            let of_slot = reads.iter().filter(|read| read.source.name == slot.source.name);
            let (first, others): (Vec<&ReadCost>, Vec<&ReadCost>) = of_slot.partition(|read| read.is_first);
            let there = first.iter().chain(&others).filter(|read| read.is_there).count();
            let cost_us: u64 = others.iter().map(|read| read.cost_us).sum();
            let is_early = slot.is_early(now_us);
            if is_early {
                bucket.give_back(cost_us);
            }
            // First readings can cost more than a turn: they cover all processes, a turn only a few. So do first samples, which have all connections and not a
            // share.
            if !slot.is_sampled() {
                slot.account.raise_cost(first.iter().map(|read| read.cost_us).max().unwrap_or(0));
            }
            // A reply has several samples or none, and one reading of each other source for each scope.
            let turns =
                if slot.is_sampled() { others.iter().filter(|read| read.is_there).count() as u64 } else { others.len().min(1) as u64 };
            match cost_us.checked_div(turns) {
                Some(_) if slot.is_afforded() && !is_early => bucket.settle(&mut slot.account, cost_us),
                Some(turn_us) => slot.account.set_cost(turn_us),
                None => {}
            }
            if first.len() + others.len() > 0 {
                if slot.is_absent && there > 0 {
                    slot.due_us = slot.due_us.min(next(now_us, FAST_PERIOD_US));
                }
                // A turn without a sample proves nothing, and neither does one while packets are left alone.
                slot.is_absent = there == 0 && !slot.is_sampled() && slot.source.name != ANSWERS;
                slot.gap_us_max = slot.gap_us_max.max(slot.gap_us);
            }
        }
    }

    /// The time at which the next source is due.
    pub(super) fn next_due_us(&self) -> Option<u64> {
        self.slots.iter().map(|slot| slot.due_us).min()
    }

    /// One sentence for each source that was read at most half as often as usual until this time. A source that still waits for payment was not read since
    /// its last turn.
    pub(super) fn slowed(&self, scope: Scope, until_us: u64) -> impl Iterator<Item = String> {
        let waits_us = move |slot: &Slot| {
            let gap_us = until_us.saturating_sub(slot.given_us);
            if slot.is_late && gap_us >= 2 * slot.cadence_us(PathRole::OnPath { sought: &[] }) { gap_us } else { 0 }
        };
        let gaps = self.slots.iter().map(move |slot| (slot.source.name, slot.gap_us_max.max(waits_us(slot))));
        gaps.filter(|(_, gap_us)| *gap_us > 0).map(move |(name, gap_us)| {
            let place = match scope {
                Scope::Netns(id) => format!(" of net:[{id}]"),
                _ => String::new(),
            };
            format!("{name}{place}: up to {} ms passed between two reads, to keep reading cheap", gap_us / 1000)
        })
    }
}

#[cfg(test)]
mod tests;
