//! The entries of the last few seconds, for an observation without an end. Older entries are dropped, except readings that are taken only once and the newest
//! reading of each kind.

use std::collections::BTreeMap;
use std::time::Duration;

use chokepoint_model::observation::{Observation, Request};
use chokepoint_recording::{Entry, Outcome, Scope};

use crate::assemble::place;
use crate::root::WHY_ENDED;
use crate::source;
use crate::table::Cadence;

/// Sources of a process that are read periodically although their cadence is `Ends`.
const REPEATED: [&str; 1] = ["process_files"];

/// The recent entries. Memory is bounded by what is read in that time, and by the number of processes and namespaces.
#[derive(Debug)]
pub struct Recent {
    keep_us: u64,
    /// In the order of time.
    entries: Vec<Entry>,
}

impl Recent {
    /// Keeps readings for this long.
    pub fn new(keep: Duration) -> Self {
        Self { keep_us: u64::try_from(keep.as_micros()).unwrap_or(u64::MAX), entries: Vec::new() }
    }

    /// Adds new entries and drops old ones.
    pub fn add(&mut self, entries: Vec<Entry>) {
        self.entries.extend(entries);
        // Stable: those of one time keep the order in which they were read.
        self.entries.sort_by_key(|entry| entry.at_us);
        let newest_us = self.entries.last().map_or(0, |entry| entry.at_us);
        self.let_go(newest_us.saturating_sub(self.keep_us));
    }

    /// Drops entries from before that time.
    fn let_go(&mut self, from_us: u64) {
        let mut last: BTreeMap<(&str, Scope), u64> = BTreeMap::new();
        let mut ended: BTreeMap<Scope, u64> = BTreeMap::new();
        for entry in self.entries.iter().take_while(|entry| entry.at_us < from_us) {
            last.insert((&entry.source, entry.scope), entry.at_us);
            if matches!(&entry.outcome, Outcome::Absent(why, _) if why == WHY_ENDED) {
                ended.insert(entry.scope, entry.at_us);
            }
        }
        let stays = |entry: &Entry| {
            let is_newest = || last.get(&(entry.source.as_str(), entry.scope)) == Some(&entry.at_us);
            // Another process may have its pid now.
            let is_gone = ended.get(&entry.scope).is_some_and(|ended_us| entry.at_us <= *ended_us);
            entry.at_us >= from_us || (!is_gone && (is_read_once(entry) || is_newest()))
        };
        let stays: Vec<bool> = self.entries.iter().map(stays).collect();
        let mut stays = stays.into_iter();
        self.entries.retain(|_| stays.next().unwrap_or(true));
    }

    /// All entries, in the order of time.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The observation of these entries for a request and a window (microseconds since the observation began), without the sources named in `without`.
    pub fn observation(&self, request: &Request, window_us: (u64, u64), without: &[&str]) -> Observation {
        let mut observation = Observation { request: request.clone(), window_us: Some(window_us), ..Observation::default() };
        let wanted = |entry: &&Entry| !without.contains(&entry.source.as_str());
        self.entries.iter().filter(wanted).for_each(|entry| place(&mut observation, entry));
        observation
    }
}

/// True for entries of sources that are not read periodically.
fn is_read_once(entry: &Entry) -> bool {
    let cadence = source(&entry.source).map(|source| source.cadence);
    matches!(cadence, Some(Cadence::Once | Cadence::Ends)) && !REPEATED.contains(&entry.source.as_str())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SECOND_US: u64 = 1_000_000;

    fn entry(at_us: u64, source: &str, scope: Scope, text: &str) -> Entry {
        Entry { at_us, source: source.to_owned(), scope, item: String::new(), outcome: Outcome::Ok(text.as_bytes().to_vec()) }
    }

    fn times(recent: &Recent, source: &str) -> Vec<u64> {
        recent.entries().iter().filter(|entry| entry.source == source).map(|entry| entry.at_us / SECOND_US).collect()
    }

    #[test]
    fn old_readings_are_dropped_except_single_and_newest_ones() {
        let mut recent = Recent::new(Duration::from_secs(5));
        let netns = Scope::Netns(1);
        recent.add(vec![entry(0, "addresses", netns, ""), entry(0, "sockets", netns, ""), entry(SECOND_US, "sockets", netns, "")]);
        for second in 0..100_000 {
            recent.add(vec![entry(second * SECOND_US, "listeners", netns, ""), entry(second * SECOND_US, "listeners", netns, "")]);
            assert!(recent.entries().len() <= 17, "{} entries after {second} s", recent.entries().len());
        }
        // The newest reading before the window stays whole: it has the counters' values at the beginning.
        let expected: Vec<u64> = (99_993..100_000).flat_map(|second| [second, second]).collect();
        assert_eq!(times(&recent, "listeners"), expected);
        assert_eq!((times(&recent, "addresses"), times(&recent, "sockets")), (vec![0], vec![1]));
    }

    #[test]
    fn entries_of_an_ended_process_are_dropped_and_those_of_a_process_with_the_same_pid_stay() {
        let gone = |at_us, pid| Entry {
            outcome: Outcome::Absent(WHY_ENDED.to_owned(), None),
            ..entry(at_us, "process_cpu", Scope::Process(pid), "")
        };
        let mut recent = Recent::new(Duration::from_secs(5));
        for pid in [7, 8] {
            recent.add(vec![entry(0, "process_identity", Scope::Process(pid), ""), entry(0, "process_files", Scope::Process(pid), "")]);
            recent.add(vec![gone(SECOND_US, pid)]);
        }
        recent.add(vec![entry(5 * SECOND_US, "process_identity", Scope::Process(8), "")]);
        assert_eq!(times(&recent, "process_identity"), [0, 0, 5]);
        recent.add(vec![entry(9 * SECOND_US, "process_cpu", Scope::Process(8), "")]);
        recent.add(vec![entry(7 * SECOND_US, "listeners", Scope::Netns(1), "")]);
        let left: BTreeSet<Scope> = recent.entries().iter().map(|entry| entry.scope).collect();
        assert_eq!(left, BTreeSet::from([Scope::Netns(1), Scope::Process(8)]));
        assert_eq!(times(&recent, "process_identity"), [5]);
    }

    #[test]
    fn the_entries_make_an_observation_of_the_window() {
        let mut recent = Recent::new(Duration::from_secs(5));
        recent.add(vec![entry(1, "listeners", Scope::Netns(1), ""), entry(2, "sockets", Scope::Netns(2), "")]);
        let request = Request { port: 80, ..Request::default() };
        let observation = recent.observation(&request, (1, 2), &["sockets"]);
        assert_eq!((observation.request, observation.window_us), (request, Some((1, 2))));
        assert_eq!(observation.netns.keys().map(|id| id.0).collect::<Vec<_>>(), [1]);
    }
}
