//! The entries of one observation within a bound. At the bound, readings between the first and the last are thinned evenly. Adding an entry takes a constant number
//! of steps on average, whatever the store holds: thinning walks all entries, so it is done only once the entries since the last time have paid for it.

use std::collections::{BTreeMap, HashMap};

use chokepoint_recording::{Entry, Outcome, Scope};

use crate::table::{Cadence, Phase};

/// Memory of an entry without its bytes.
const ENTRY_BYTES: usize = 96;
/// Steps of thinning that each offered entry pays for, and the bytes that pay for one more. A thinning that frees an eighth of what is stored can be followed by the
/// next one as soon as the store is full again.
const STEPS_PAID: usize = 8;
const BYTES_A_STEP: usize = 128;
/// Most entries without a value that say that the bound left them out. Further ones are only counted.
const LEFT_OUT_MAX: usize = 4_096;

/// Entries that are thinned together: one source for one scope.
type Group = (String, Scope);

struct StoredEntry {
    entry: Entry,
    size: usize,
    /// Its group and the number of the reading in it, if it may be thinned. First and last readings stay.
    number: Option<(usize, u64)>,
}

struct Thinning {
    cadence: Cadence,
    /// Every how many readings one is kept.
    stride: u64,
    taken: u64,
    /// Its reading number zero, which is always kept, was stored. A group without it is not thinned.
    has_begun: bool,
    /// Bytes of its stored readings.
    bytes: usize,
}

/// All entries so far.
pub(super) struct Store {
    kept: Vec<StoredEntry>,
    groups: HashMap<Group, usize>,
    thinnings: Vec<Thinning>,
    bytes: usize,
    bytes_max: usize,
    refused: u64,
    /// Entries that only say that they were left out.
    left_out: usize,
    /// Steps of thinning that are paid for.
    credit: usize,
    /// Steps of thinning so far.
    steps: usize,
}

impl Store {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            kept: Vec::new(),
            groups: HashMap::new(),
            thinnings: Vec::new(),
            bytes: 0,
            bytes_max,
            refused: 0,
            left_out: 0,
            credit: 0,
            steps: 0,
        }
    }

    /// Adds the entries of one read: one or several items of one time.
    pub(super) fn add(&mut self, entries: Vec<Entry>, cadence: Cadence, phase: Phase) {
        let Some(first) = entries.first() else { return };
        let mut number = None;
        if phase == Phase::Running && !matches!(cadence, Cadence::Ends | Cadence::Once) {
            let group = self.group((first.source.clone(), first.scope), cadence);
            number = Some((group, self.thinnings[group].taken));
            self.thinnings[group].taken += 1;
        }
        let size: usize = entries.iter().map(size_of).sum();
        self.credit += STEPS_PAID * entries.len() + size / BYTES_A_STEP;
        if self.is_kept(number) && self.bytes + size > self.bytes_max {
            self.thin();
        }
        // Thinning may have dropped this very reading.
        if !self.is_kept(number) {
            return;
        }
        // The items of one reading belong together. A part would be mistaken for the whole.
        if number.is_some() && self.bytes + size > self.bytes_max {
            self.refused += 1;
            return;
        }
        if let Some((group, 0)) = number {
            self.thinnings[group].has_begun = entries.iter().any(|entry| entry.item.is_empty());
        }
        for entry in entries {
            self.keep(entry, number);
        }
    }

    fn keep(&mut self, mut entry: Entry, number: Option<(usize, u64)>) {
        if self.bytes + size_of(&entry) > self.bytes_max {
            self.refused += 1;
            self.left_out += 1;
            if self.left_out > LEFT_OUT_MAX {
                return;
            }
            entry.outcome = Outcome::Failed(format!("left out: the recording reached its bound of {} bytes", self.bytes_max), None);
        }
        let size = size_of(&entry);
        self.bytes += size;
        if let Some((group, _)) = number {
            self.thinnings[group].bytes += size;
        }
        self.kept.push(StoredEntry { entry, size, number });
    }

    fn group(&mut self, group: Group, cadence: Cadence) -> usize {
        let next = self.thinnings.len();
        let number = *self.groups.entry(group).or_insert(next);
        if number == next {
            self.thinnings.push(Thinning { cadence, stride: 1, taken: 0, has_begun: false, bytes: 0 });
        }
        number
    }

    fn is_kept(&self, number: Option<(usize, u64)>) -> bool {
        number.is_none_or(|(group, number)| number.is_multiple_of(self.thinnings[group].stride))
    }

    /// Halves the readings that may be thinned: only samples of requests if they take more than half of the bytes, else only sources that are read 20 times a
    /// second if those do, else all. Does nothing before its steps are paid for.
    fn thin(&mut self) {
        let cost = self.kept.len() + self.thinnings.len();
        if self.credit < cost {
            return;
        }
        self.credit -= cost;
        self.steps += cost;
        let sum = |of: &dyn Fn(Cadence) -> bool| -> usize {
            self.thinnings.iter().filter(|thinning| of(thinning.cadence)).map(|thinning| thinning.bytes).sum()
        };
        let total = sum(&|_| true);
        let most = [Cadence::Sampled, Cadence::Fast].into_iter().find(|cadence| 2 * sum(&|of| of == *cadence) > total);
        for thinning in &mut self.thinnings {
            if thinning.has_begun && most.is_none_or(|most| most == thinning.cadence) {
                thinning.stride = thinning.stride.saturating_mul(2);
            }
        }
        let Self { kept, thinnings, bytes, .. } = self;
        kept.retain(|kept| {
            let Some((group, number)) = kept.number else { return true };
            let thinning = &mut thinnings[group];
            let stays = number.is_multiple_of(thinning.stride);
            if !stays {
                thinning.bytes -= kept.size;
                *bytes -= kept.size;
            }
            stays
        });
    }

    /// One sentence for each loss.
    pub(super) fn losses(&self) -> Vec<String> {
        let mut strides: BTreeMap<(&str, u64), u32> = BTreeMap::new();
        let groups = self.groups.iter().map(|((source, _), number)| (source.as_str(), self.thinnings[*number].stride));
        for thinned in groups.filter(|(_, stride)| *stride > 1) {
            *strides.entry(thinned).or_default() += 1;
        }
        let limit = self.bytes_max;
        let thinned = strides
            .keys()
            .map(|(source, stride)| format!("only every {stride}th reading of {source} was kept, to stay within {limit} bytes"));
        let refused = (self.refused > 0).then(|| format!("{} readings were left out, to stay within {limit} bytes", self.refused));
        thinned.chain(refused).collect()
    }

    /// Returns all entries in the order of their arrival, and starts afresh.
    pub(super) fn drain(&mut self) -> Vec<Entry> {
        let kept = std::mem::replace(self, Self::new(self.bytes_max)).kept;
        kept.into_iter().map(|kept| kept.entry).collect()
    }

    /// All entries in the order of their arrival.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.kept.iter().map(|kept| &kept.entry)
    }

    /// All entries in the order of their time. Entries of one time keep their order.
    pub(super) fn into_entries(self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = self.kept.into_iter().map(|kept| kept.entry).collect();
        entries.sort_by_key(|entry| entry.at_us);
        entries
    }
}

fn size_of(entry: &Entry) -> usize {
    let bytes = match &entry.outcome {
        Outcome::Ok(bytes) => bytes.len(),
        Outcome::Absent(why, _) | Outcome::Failed(why, _) => why.len(),
    };
    ENTRY_BYTES + entry.source.len() + entry.item.len() + bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(at_us: u64, source: &str, bytes: usize) -> Vec<Entry> {
        vec![Entry { at_us, source: source.to_owned(), scope: Scope::Netns(1), item: String::new(), outcome: Outcome::Ok(vec![0; bytes]) }]
    }

    fn times(entries: &[Entry], source: &str) -> Vec<u64> {
        entries.iter().filter(|entry| entry.source == source).map(|entry| entry.at_us).collect()
    }

    #[test]
    fn below_the_bound_nothing_is_lost() {
        let mut store = Store::new(1 << 20);
        for at in (0..100).rev() {
            store.add(entry(at, "listeners", 10), Cadence::Fast, Phase::Running);
        }
        assert_eq!(store.losses(), Vec::<String>::new());
        assert_eq!(times(&store.into_entries(), "listeners"), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn beyond_the_bound_frequent_readings_are_thinned_evenly_and_the_ends_stay() {
        let mut store = Store::new(100_000);
        store.add(entry(0, "listeners", 1000), Cadence::Fast, Phase::First);
        for at in 1..=1000 {
            store.add(entry(at, "listeners", 1000), Cadence::Fast, Phase::Running);
            if at % 20 == 0 {
                store.add(entry(at, "netstat", 100), Cadence::Slow, Phase::Running);
            }
        }
        store.add(entry(1001, "listeners", 1000), Cadence::Fast, Phase::Last);
        assert!(store.bytes <= 100_000);
        let losses = store.losses();
        assert!(losses.len() == 1 && losses[0].contains("every 16th reading of listeners"), "{losses:?}");
        let entries = store.into_entries();
        assert_eq!(times(&entries, "netstat").len(), 50, "the rare ones were not touched");
        let kept = times(&entries, "listeners");
        assert_eq!((kept[0], *kept.last().unwrap()), (0, 1001));
        let gaps: std::collections::BTreeSet<u64> = kept[1..kept.len() - 1].windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps, std::collections::BTreeSet::from([16]));
    }

    #[test]
    fn after_a_drain_the_store_is_empty_and_nothing_is_thinned() {
        let mut store = Store::new(5_000);
        for at in 1..=20 {
            store.add(entry(at, "listeners", 1_000), Cadence::Fast, Phase::Running);
        }
        assert!(!store.losses().is_empty() && store.drain().len() < 20);
        for at in 21..=24 {
            store.add(entry(at, "listeners", 1_000), Cadence::Fast, Phase::Running);
        }
        assert_eq!(times(&store.drain(), "listeners"), [21, 22, 23, 24]);
        assert_eq!((store.losses(), store.drain()), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_reading_is_kept_whole_or_not_at_all() {
        let mut store = Store::new(5_000);
        store.add(entry(0, "netstat", 2_000), Cadence::Slow, Phase::First);
        for at in 1..=3 {
            let mut items = entry(at, "sockets", 100);
            items.push(Entry { item: "crowd".to_owned(), ..entry(at, "sockets", 3_000).remove(0) });
            store.add(items, Cadence::Slow, Phase::Running);
        }
        assert!(store.losses().iter().any(|loss| loss.contains("left out")), "{:?}", store.losses());
        assert_eq!(times(&store.into_entries(), "sockets"), [0; 0], "its first item alone would fit");
    }

    #[test]
    fn a_reading_that_cannot_be_thinned_is_refused_with_a_reason() {
        let mut store = Store::new(5_000);
        for at in 0..10 {
            store.add(entry(at, "sockets", 2_000), Cadence::Slow, Phase::Last);
        }
        assert!(store.losses()[0].contains("8 readings were left out"), "{:?}", store.losses());
        let entries = store.into_entries();
        assert_eq!(entries.iter().filter(|entry| matches!(entry.outcome, Outcome::Failed(..))).count(), 8);
    }

    #[test]
    fn beyond_the_bound_left_out_entries_are_only_counted() {
        let mut store = Store::new(10_000);
        let offered = 3 * LEFT_OUT_MAX;
        for at in 0..offered as u64 {
            store.add(entry(at, "process_status", 2_000), Cadence::Once, Phase::First);
        }
        assert!(store.kept.len() <= LEFT_OUT_MAX + 5, "{}", store.kept.len());
        assert_eq!(store.refused as usize, offered - 4);
    }

    proptest! {
        /// Whatever it holds, whatever is offered: what cannot be thinned may fill it, and every group may have a single reading.
        #[test]
        fn adding_takes_a_constant_number_of_steps_on_average(
            fixed in 0..4_000_usize,
            offered in prop::collection::vec((0..4_u8, 0..3_000_u64, 0..600_usize), 1..6_000),
        ) {
            let mut store = Store::new(400_000);
            let (mut entries, mut bytes) = (0, 0);
            let mut add = |store: &mut Store, entry: Entry, cadence, phase| {
                (entries, bytes) = (entries + 1, bytes + size_of(&entry));
                store.add(vec![entry], cadence, phase);
                (entries, bytes)
            };
            for at in 0..fixed as u64 {
                add(&mut store, entry(at, "identity", 60).remove(0), Cadence::Once, Phase::First);
            }
            for (at, (kind, scope, size)) in offered.into_iter().enumerate() {
                let (source, cadence, phase) = match kind {
                    0 => ("requests", Cadence::Sampled, Phase::Running),
                    1 => ("listeners", Cadence::Fast, Phase::Running),
                    2 => ("process_cpu", Cadence::Slow, Phase::Running),
                    _ => ("process_cpu", Cadence::Slow, Phase::First),
                };
                let entry = Entry { scope: Scope::Netns(scope), ..entry(at as u64, source, size).remove(0) };
                let (entries, bytes) = add(&mut store, entry, cadence, phase);
                prop_assert!(store.steps <= STEPS_PAID * entries + bytes / BYTES_A_STEP, "{} steps for {entries} entries", store.steps);
                prop_assert!(store.bytes <= store.bytes_max + store.left_out.min(LEFT_OUT_MAX) * 300);
                prop_assert_eq!(store.bytes, store.kept.iter().map(|kept| kept.size).sum::<usize>());
            }
        }
    }
}
