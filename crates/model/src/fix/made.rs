//! The changes that a session made: which stand, which override which, and what it takes to put one back.

use super::judge::FindingIdentity;
use super::noise::Gain;
use crate::fix::change::Change;
use crate::output::report::Remedy;

/// A change that was made, whether or not it still stands. Its number is its position in [`Made`], from 1.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) place: FindingIdentity,
    pub(super) remedy: Remedy,
    /// Index of its round, once it was measured.
    pub(super) round: Option<usize>,
    /// What it gave beyond chance when it was kept.
    pub(super) gain: Gain,
    /// True if it cost goodput and stays only because the next cause explains the loss.
    pub(super) explained: bool,
    /// True if leaving it out showed that it is needed.
    pub(super) needed: bool,
    /// True if it is an improvement that removes no cause.
    pub(super) improves: bool,
}

/// All changes of a session.
#[derive(Debug, Default)]
pub(super) struct Made {
    all: Vec<Entry>,
    /// Numbers of those that stand, oldest first.
    pub(super) standing: Vec<u32>,
    /// The first change of each setting. It holds the value found at the start.
    found: Vec<Change>,
}

impl Made {
    /// Adds a change and returns its number.
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

    /// Puts a number back among those that stand, at its old position. Later changes override earlier ones in the order in which they were made.
    pub(super) fn stand(&mut self, number: u32) {
        if let Err(place) = self.standing.binary_search(&number) {
            self.standing.insert(place, number);
        }
    }

    /// Takes a number out of those that stand.
    pub(super) fn fall(&mut self, number: u32) {
        self.standing.retain(|other| *other != number);
    }

    /// True if later changes that stand set each of its settings again. Taking it back then changes nothing on the host.
    pub(super) fn is_replaced(&self, number: u32) -> bool {
        self.get(number).is_some_and(|entry| entry.remedy.change.iter().all(|change| self.is_covered(number, change)))
    }

    /// Reduces a change to what must be applied to put it back, and returns it. Settings that later changes set again are left out (undoing those returns to
    /// the value below them), and the old values are those that the host holds now.
    pub(super) fn reduce_to_put_back(&mut self, number: u32) -> Option<Remedy> {
        let entry = self.get(number)?;
        let uncovered = entry.remedy.change.iter().filter(|change| !self.is_covered(number, change));
        let change: Vec<Change> = uncovered.map(|change| change.with_from(self.below(number, change))).collect();
        let remedy = Remedy { change, ..entry.remedy.clone() };
        self.get_mut(number)?.remedy.change.clone_from(&remedy.change);
        Some(remedy)
    }

    fn is_covered(&self, number: u32, change: &Change) -> bool {
        let later = self.standing.iter().filter(|other| **other > number).filter_map(|other| self.get(*other));
        later.flat_map(|entry| &entry.remedy.change).any(|other| other.is_same_setting(change))
    }

    /// The value of a setting without this change: that of the newest standing change before it, or the one found at the start.
    fn below(&self, number: u32, change: &Change) -> String {
        let same = |other: &&Change| other.is_same_setting(change);
        let earlier = self.standing.iter().rev().filter(|other| **other < number).filter_map(|other| self.get(*other));
        let standing = earlier.filter_map(|entry| entry.remedy.change.iter().find(same)).map(|other| other.to().to_owned()).next();
        let found = || self.found.iter().find(same).map(|first| first.from().to_owned());
        standing.or_else(found).unwrap_or_else(|| change.from().to_owned())
    }
}
