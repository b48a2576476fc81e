//! Children of processes of the path that are read without having been found at a listener: those that take the place of others that ended, since the search for the holders of
//! listeners, which walks the descriptors of all processes, may come back to them only after seconds; and those that serve what their parent accepted, which hold no listener.

use std::collections::{BTreeMap, BTreeSet};

use chokepoint_model::observation::Observation;
use chokepoint_recording::{Entry, Scope};

use super::super::scout::PIDS_MAX;
use super::Sampler;
use crate::assemble::place;

/// Most processes to add at once for one that lost some. Another user may start any number of them.
const ADDED_MAX: usize = 64;
/// Most children to read at a time that serve the connections of one process. What these do, the others do as well.
const SERVING_MAX: usize = 64;

/// Who started the processes of the path.
#[derive(Debug, Default)]
pub(super) struct Parents {
    of: BTreeMap<u32, u32>,
    /// Those of which a child ended since its place was last looked for.
    bereft: BTreeSet<u32>,
    /// Those whose connections others may serve, as a rule their children.
    lenders: BTreeSet<u32>,
}

impl Parents {
    /// Notes who started this process.
    pub(super) fn note(&mut self, pid: u32, identity: &[Entry]) {
        let mut one = Observation::default();
        identity.iter().for_each(|entry| place(&mut one, entry));
        let parent = one.processes.get(&pid).and_then(|process| Some(process.identity.last()?.parent));
        self.of.extend(parent.map(|parent| (pid, parent)));
    }

    /// The connections of these processes' listeners may be served by others.
    pub(super) fn lend(&mut self, lenders: BTreeSet<u32>) {
        self.lenders = lenders;
    }

    /// Forgets who started processes that are no longer read.
    pub(super) fn retain(&mut self, pids: &BTreeSet<u32>) {
        self.of.retain(|pid, _| pids.contains(pid));
    }

    /// Who started each of the processes.
    pub(super) fn of(&self) -> &BTreeMap<u32, u32> {
        &self.of
    }

    /// This process ended.
    pub(super) fn lose(&mut self, pid: u32) {
        self.bereft.extend(self.of.remove(&pid));
        self.lenders.remove(&pid);
    }

    /// How many children of this process are read.
    fn children_of(&self, parent: u32) -> usize {
        self.of.values().filter(|of| **of == parent).count()
    }
}

impl Sampler {
    /// Reads the children of those processes of the path of whose children some ended, the youngest first: others may have been dead when they were searched. And some of those that
    /// serve the connections of a process of the path, the eldest first: a database's, one for each connection. A child that serves nothing is no worker of any tier. True if
    /// there are new ones.
    pub(super) fn add_children(&mut self) -> bool {
        let before = self.path.pids.len();
        for parent in std::mem::take(&mut self.parents.bereft) {
            let children = self.unread_children(parent);
            self.read_all(children.into_iter().rev().take(ADDED_MAX));
        }
        for parent in self.parents.lenders.clone() {
            let left = SERVING_MAX.saturating_sub(self.parents.children_of(parent));
            let children = if left > 0 { self.unread_children(parent) } else { Vec::new() };
            self.read_all(children.into_iter().take(left));
        }
        self.path.pids.len() > before
    }

    fn unread_children(&self, parent: u32) -> Vec<u32> {
        let is_followed = self.path.pids.contains(&parent);
        let children = if is_followed { self.shared.root.children(parent).unwrap_or_default() } else { Vec::new() };
        children.into_iter().filter(|pid| !self.path.pids.contains(pid)).collect()
    }

    fn read_all(&mut self, pids: impl Iterator<Item = u32>) {
        for pid in pids {
            if self.path.pids.len() < PIDS_MAX && self.path.pids.insert(pid) {
                self.add_scope(Scope::Host, Scope::Process(pid));
            }
        }
    }
}

#[cfg(test)]
mod live {
    use std::io::BufRead;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use chokepoint_model::observation::Request;
    use chokepoint_recording::Outcome;

    use super::super::super::options::ObserveOptions;
    use super::*;
    use crate::PathSoFar;
    use crate::clock::Clock;

    /// What the reader of identities says of a process.
    fn identity_of(pid: u32, root: &crate::root::Root) -> Vec<Entry> {
        let source = crate::source("process_identity").unwrap();
        let notes = crate::table::Notes::default();
        let context = crate::table::ReadContext::new(root, Scope::Process(pid), crate::table::Phase::First, &notes);
        let items = (source.read)(&context).into_iter();
        items.map(|(item, outcome)| Entry { at_us: 1, source: source.name.to_owned(), scope: Scope::Process(pid), item, outcome }).collect()
    }

    #[test]
    fn the_child_that_takes_the_place_of_one_that_ended_is_read_at_once() {
        let script = "sleep 60 & echo $!; sleep 60 & echo $!; wait $!; wait";
        let mut parent = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = std::io::BufReader::new(parent.stdout.take().unwrap()).lines();
        let mut next = || lines.next().unwrap().unwrap().parse::<u32>().unwrap();
        let (first, second) = (next(), next());
        let options = ObserveOptions::endless(Request::default(), Vec::new());
        let (mut sampler, _events) = Sampler::new(options, Clock(Instant::now()), PathSoFar::default()).unwrap();
        sampler.prepare().unwrap();
        let entries = identity_of(first, &sampler.shared.root);
        assert!(entries.iter().any(|entry| matches!(entry.outcome, Outcome::Ok(_))), "{entries:?}");
        sampler.parents.note(first, &entries);
        sampler.path.pids.extend([parent.id(), first]);
        sampler.add_children();
        assert!(!sampler.path.pids.contains(&second), "nothing ended");
        sampler.parents.lose(first);
        sampler.add_children();
        let found = sampler.path.pids.contains(&second);
        // Of a process whose connections others serve all children are read.
        sampler.path.pids.remove(&second);
        sampler.parents.lend([parent.id()].into());
        sampler.add_children();
        let is_read = sampler.path.pids.contains(&second);
        sampler.parents.lend(BTreeSet::new());
        // Of another's child nothing is read.
        sampler.path.pids.remove(&second);
        sampler.path.pids.remove(&parent.id());
        sampler.parents.note(first, &entries);
        sampler.parents.lose(first);
        sampler.add_children();
        let of_stranger = sampler.path.pids.contains(&second);
        for pid in [first, second] {
            let _ = Command::new("kill").arg(pid.to_string()).status();
        }
        parent.wait().unwrap();
        if crate::root::Root::default().children(std::process::id()).is_none() {
            eprintln!("skipped: this kernel lists no children");
            return;
        }
        assert_eq!((found, is_read, of_stranger), (true, true, false));
    }
}
