//! The entries of one observation within a bound. At the bound, readings between the first and the last are thinned evenly.

use std::collections::BTreeMap;

use chokepoint_recording::{Entry, Outcome, Scope};

use crate::table::{Cadence, Phase};

/// Memory of an entry without its bytes.
const ENTRY_BYTES: usize = 96;

/// Entries that are thinned together: one source for one scope.
type Group = (String, Scope);

struct StoredEntry {
    entry: Entry,
    cadence: Cadence,
    /// Number of the reading in its group if it may be thinned. First and last readings stay.
    number: Option<u64>,
}

#[derive(Default)]
struct Thinning {
    /// Every how many readings one is kept.
    stride: u64,
    taken: u64,
}

/// All entries so far.
pub(super) struct Store {
    kept: Vec<StoredEntry>,
    groups: BTreeMap<Group, Thinning>,
    bytes: usize,
    bytes_max: usize,
    refused: u64,
}

impl Store {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { kept: Vec::new(), groups: BTreeMap::new(), bytes: 0, bytes_max, refused: 0 }
    }

    /// Adds the entries of one read: one or several items of one time.
    pub(super) fn add(&mut self, entries: Vec<Entry>, cadence: Cadence, phase: Phase) {
        let Some(first) = entries.first() else { return };
        let group = (first.source.clone(), first.scope);
        let mut number = None;
        if phase == Phase::Running && !matches!(cadence, Cadence::Ends | Cadence::Once) {
            let thinning = self.groups.entry(group.clone()).or_insert(Thinning { stride: 1, taken: 0 });
            number = Some(thinning.taken);
            thinning.taken += 1;
        }
        let size: usize = entries.iter().map(size_of).sum();
        if self.is_kept(&group, number) && self.bytes + size > self.bytes_max {
            self.thin();
        }
        // Thinning may have dropped this very reading.
        if !self.is_kept(&group, number) {
            return;
        }
        // The items of one reading belong together. A part would be mistaken for the whole.
        if number.is_some() && self.bytes + size > self.bytes_max {
            self.refused += 1;
            return;
        }
        for mut entry in entries {
            if self.bytes + size_of(&entry) > self.bytes_max {
                self.refused += 1;
                entry.outcome = Outcome::Failed(format!("left out: the recording reached its bound of {} bytes", self.bytes_max), None);
            }
            self.bytes += size_of(&entry);
            self.kept.push(StoredEntry { entry, cadence, number });
        }
    }

    fn is_kept(&self, group: &Group, number: Option<u64>) -> bool {
        let stride = self.groups.get(group).map_or(1, |thinning| thinning.stride);
        number.is_none_or(|number| number.is_multiple_of(stride))
    }

    /// Halves the readings that may be thinned: only samples of requests if they take more than half of the bytes, else only sources that are read 20 times a
    /// second if those do, else all.
    fn thin(&mut self) {
        let thinnable = |kept: &&StoredEntry| kept.number.is_some();
        let sum = |of: &dyn Fn(Cadence) -> bool| -> usize {
            self.kept.iter().filter(thinnable).filter(|kept| of(kept.cadence)).map(|kept| size_of(&kept.entry)).sum()
        };
        let total = sum(&|_| true);
        let most = [Cadence::Sampled, Cadence::Fast].into_iter().find(|cadence| 2 * sum(&|of| of == *cadence) > total);
        let chosen = |cadence: Cadence| most.is_none_or(|most| most == cadence);
        for kept in &self.kept {
            let group = (kept.entry.source.clone(), kept.entry.scope);
            // Once for each group: reading number zero is always kept.
            if kept.number == Some(0)
                && kept.entry.item.is_empty()
                && chosen(kept.cadence)
                && let Some(thinning) = self.groups.get_mut(&group)
            {
                thinning.stride = thinning.stride.saturating_mul(2);
            }
        }
        let kept = std::mem::take(&mut self.kept);
        let stays = |kept: &StoredEntry| self.is_kept(&(kept.entry.source.clone(), kept.entry.scope), kept.number);
        self.kept = kept.into_iter().filter(stays).collect();
        self.bytes = self.kept.iter().map(|kept| size_of(&kept.entry)).sum();
    }

    /// One sentence for each loss.
    pub(super) fn losses(&self) -> Vec<String> {
        let mut strides: BTreeMap<(&str, u64), u32> = BTreeMap::new();
        for ((source, _), thinning) in self.groups.iter().filter(|(_, thinning)| thinning.stride > 1) {
            *strides.entry((source, thinning.stride)).or_default() += 1;
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
}
