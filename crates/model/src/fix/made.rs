//! The changes that a session made: which stand, which lie over which, and what putting one back means.

use super::judge::FindingIdentity;
use super::noise::Gain;
use crate::fix::change::Change;
use crate::output::report::Remedy;

/// A change that was made, whether or not it still stands. Its number is its place in [`Made`], from 1.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) place: FindingIdentity,
    pub(super) remedy: Remedy,
    /// Index of its round, once it was measured.
    pub(super) round: Option<usize>,
    /// What it gave when it was kept, beyond chance.
    pub(super) gain: Gain,
    /// True where it cost goodput and stays only because the next cause explains that.
    pub(super) explained: bool,
    /// True where leaving it out showed that it is needed.
    pub(super) needed: bool,
    /// True where it is an improvement and removes no cause.
    pub(super) improves: bool,
}

/// All changes of a session.
#[derive(Debug, Default)]
pub(super) struct Made {
    all: Vec<Entry>,
    /// Numbers of those that stand, oldest first.
    pub(super) standing: Vec<u32>,
    /// The first change of each setting: it holds the value that was found at the beginning.
    found: Vec<Change>,
}

impl Made {
    /// Takes a change in and gives its number.
    pub(super) fn add(&mut self, entry: Entry) -> u32 {
        for change in &entry.remedy.change {
            if !self.found.iter().any(|first| first.is_same_setting(change)) {
                self.found.push(change.clone());
            }
        }
        self.all.push(entry);
        self.all.len() as u32
    }

    pub(super) fn get(&self, number: u32) -> Option<&Entry> {
        self.all.get((number as usize).checked_sub(1)?)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Entry> {
        self.all.get_mut((number as usize).checked_sub(1)?)
    }

    /// Name of a change's remedy.
    pub(super) fn remedy_id(&self, number: u32) -> String {
        self.get(number).map(|entry| entry.remedy.id.clone()).unwrap_or_default()
    }

    /// Puts a number among those that stand, at its old place: settings lie over each other in the order in which they were made.
    pub(super) fn stand(&mut self, number: u32) {
        if let Err(place) = self.standing.binary_search(&number) {
            self.standing.insert(place, number);
        }
    }

    /// Takes a number out of those that stand.
    pub(super) fn fall(&mut self, number: u32) {
        self.standing.retain(|other| *other != number);
    }

    /// True where later changes that stand set each of its settings again: taking it back changes nothing on the host.
    pub(super) fn is_replaced(&self, number: u32) -> bool {
        self.get(number).is_some_and(|entry| entry.remedy.change.iter().all(|change| self.is_covered(number, change)))
    }

    /// The remedy as it must be applied to put a change back: without the settings that later changes set again (undoing those returns to
    /// what lies below them), and from the values that the host holds without it. From then on the change is no more than that.
    pub(super) fn reduce_to_put_back(&mut self, number: u32) -> Option<Remedy> {
        let entry = self.get(number)?;
        let uncovered = entry.remedy.change.iter().filter(|change| !self.is_covered(number, change));
        let change: Vec<Change> = uncovered.map(|change| change.with_from(self.below(number, change))).collect();
        let remedy = Remedy { runtime: change.iter().map(Change::command).collect(), change, ..entry.remedy.clone() };
        self.get_mut(number)?.remedy.change.clone_from(&remedy.change);
        Some(remedy)
    }

    fn is_covered(&self, number: u32, change: &Change) -> bool {
        let later = self.standing.iter().filter(|other| **other > number).filter_map(|other| self.get(*other));
        later.flat_map(|entry| &entry.remedy.change).any(|other| other.is_same_setting(change))
    }

    /// The value that a setting holds without this change: that of the newest one below it that stands, or the one found at the beginning.
    fn below(&self, number: u32, change: &Change) -> String {
        let same = |other: &&Change| other.is_same_setting(change);
        let earlier = self.standing.iter().rev().filter(|other| **other < number).filter_map(|other| self.get(*other));
        let standing = earlier.filter_map(|entry| entry.remedy.change.iter().find(same)).map(|other| other.to().to_owned()).next();
        let found = || self.found.iter().find(same).map(|first| first.from().to_owned());
        standing.or_else(found).unwrap_or_else(|| change.from().to_owned())
    }
}
