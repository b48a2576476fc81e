//! Whose changes are in force: those of a process that still runs are its own. Nobody else takes them back, or changes what it measures.

use std::fmt;

use crate::claim::{Claim, Claims, Place};
use crate::host::HostPending;
use crate::process;
use crate::record::{Intent, Set};
use crate::store::Guard;

/// A running process and changes that are left alone for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Its PID.
    pub pid: u32,
    /// The owner of its changes: "diagnose", "lab:NAME".
    pub owner: String,
    /// The changes, in words: "net.core.somaxconn in web".
    pub changes: Vec<String>,
}

impl fmt::Display for Running {
    /// "`chokepoint lab run NAME` (process 4711)".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = match self.owner.split_once(':') {
            Some(("lab", name)) => format!("chokepoint lab run {name}"),
            _ if self.owner == "diagnose" => "chokepoint diagnose --fix".to_owned(),
            _ => format!("chokepoint {}", self.owner),
        };
        write!(f, "`{command}` (process {})", self.pid)
    }
}

/// The changes of a set that are in force, in words.
fn in_words(set: &Set) -> Vec<String> {
    let open = set.changes.iter().zip(&set.closed).filter(|(_, closed)| !**closed);
    open.map(|(intent, _): (&Intent, &bool)| intent.in_words()).collect()
}

impl Guard {
    /// The process that a set belongs to, if it is another one and still runs.
    pub(crate) fn owner_of(&self, set: &Set) -> Option<Running> {
        let is_others = !self.store.is_rebooted(set) && !process::is_own(set.pid, set.start_ticks);
        let runs = is_others && process::runs(set.pid, set.start_ticks);
        runs.then(|| Running { pid: set.pid, owner: set.purpose.owner.clone(), changes: in_words(set) })
    }

    /// The other running process for which a set is left as it is: its own process, or one that measures in a place of its changes.
    pub(crate) fn kept_by(&self, set: &Set) -> Option<Running> {
        let measured = || self.claim_on(&self.places_of(set));
        let beside = |claim: Claim| Running { pid: claim.pid, owner: claim.owner, changes: in_words(set) };
        self.owner_of(set).or_else(|| measured().map(beside))
    }

    /// The running process that changed something in the place of a change before, whether that is in force or was taken back.
    pub(crate) fn busy(&self, intent: &Intent) -> Option<Running> {
        let places = Place::of(intent);
        let is_there = |set: &&Set| self.places_of(set).iter().any(|other| places.iter().any(|place| place.is(other)));
        let in_force = || self.content.ledger.sets.iter().filter(is_there).find_map(|set| self.owner_of(set));
        let by = |claim: Claim| Running { pid: claim.pid, owner: claim.owner, changes: vec![claim.setting] };
        in_force().or_else(|| self.claim_on(&places).map(by)).or_else(|| self.busy_root(intent))
    }

    /// The claim of another running process on one of these places: of the same user, else of root.
    fn claim_on(&self, places: &[Place]) -> Option<Claim> {
        self.claims.iter().find(|claim| claim.keeps(places)).cloned().or_else(|| self.claim_of_root(places))
    }

    /// A claim of root, for another user.
    fn claim_of_root(&self, places: &[Place]) -> Option<Claim> {
        let claims = Claims::read(self.store.host.as_ref()?, 0, &self.store.boot_id);
        claims.iter().find(|claim| claim.keeps(places)).cloned()
    }

    /// The running process of root with changes in force in the place of a change, for another user.
    fn busy_root(&self, intent: &Intent) -> Option<Running> {
        let host = HostPending::read(self.store.host.as_ref()?, &self.store.boot_id).ok()?;
        let place = intent.told_place();
        let set = host.sets.iter().find(|set| {
            let runs = process::runs(set.pid, set.start_ticks);
            runs && set.changes.iter().any(|other| other.place == place || other.place == intent.change.place())
        })?;
        let changes = set.changes.iter().map(|change| format!("{} in {}", change.key, change.place)).collect();
        Some(Running { pid: set.pid, owner: set.owner.clone(), changes })
    }
}
