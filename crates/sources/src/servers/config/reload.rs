//! Whether a server has read its configuration again. Its master stays and its workers do not: an edited file is in force only once the workers are others.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use chokepoint_recording::Outcome;
use chokepoint_servers::{Dialect, master_with};
use serde::{Deserialize, Serialize};

use super::super::master::{stat_of, words};
use crate::root::Root;
use crate::table::Notes;

/// What was known of a master when its configuration was last read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastReading {
    dialect: Dialect,
    /// The start of the master's stack; nothing without the right to trace it.
    stack: Option<u64>,
    /// Its workers of then that still take requests.
    workers: BTreeSet<u32>,
    /// Fingerprint of the text.
    text: u64,
}

impl LastReading {
    /// Of the text that `read` gives. The workers come first: those of a reload in between would pass for workers that have the text.
    pub(super) fn of(root: &Root, pid: u32, dialect: Dialect, read: impl FnOnce() -> Outcome) -> (Self, Outcome) {
        let (stack, workers) = (stack(root, pid), workers(root, pid, dialect));
        let outcome = read();
        let mut hasher = DefaultHasher::new();
        if let Outcome::Ok(text) = &outcome {
            text.hash(&mut hasher);
        }
        (Self { dialect, stack, workers, text: hasher.finish() }, outcome)
    }

    /// The one that is noted for this master.
    pub(super) fn noted(notes: &Notes, pid: u32) -> Option<Self> {
        serde_json::from_slice(&notes.get(&key(pid))?).ok()
    }

    pub(super) fn note(&self, notes: &Notes, pid: u32) {
        if let Ok(json) = serde_json::to_vec(self) {
            notes.set(&key(pid), json);
        }
    }

    pub(super) fn says_the_same_as(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// True if the server has read its files since. php-fpm ends all its workers and executes its program again, with a stack elsewhere (fpm_process_ctl.c,
    /// fpm_pctl_exec); its pools begin and end workers at any time. nginx starts new workers, then has all others end (ngx_process_cycle.c); it also replaces one that
    /// died. Of workers that died one after the other nobody can tell.
    pub(super) fn is_over(&mut self, root: &Root, pid: u32) -> bool {
        if master_with(self.dialect).executes_itself
            && let (Some(before), Some(now)) = (self.stack, stack(root, pid))
        {
            return before != now;
        }
        let now = workers(root, pid, self.dialect);
        self.workers.retain(|worker| now.contains(worker));
        self.workers.is_empty() && !now.is_empty()
    }
}

fn key(pid: u32) -> String {
    format!("{} {pid}", super::NAME)
}

fn stack(root: &Root, pid: u32) -> Option<u64> {
    stat_of(root, pid)?.start_stack.filter(|address| *address != 0)
}

/// The workers that take requests, by their titles: a server names what a process does, and that a worker ends.
fn workers(root: &Root, pid: u32, dialect: Dialect) -> BTreeSet<u32> {
    let def = master_with(dialect);
    let takes = |child: &u32| def.is_worker(&words(root, *child, def).join(" "));
    children(root, pid).into_iter().filter(takes).collect()
}

/// The children of a process, which its main thread has started. A kernel without CONFIG_PROC_CHILDREN lists none: then all processes are asked for their parents.
fn children(root: &Root, pid: u32) -> Vec<u32> {
    let is_child = |other: &u32| stat_of(root, *other).is_some_and(|stat| stat.parent == pid && !stat.is_ended());
    root.children(pid).unwrap_or_else(|| root.pids().unwrap_or_default().into_iter().filter(is_child).collect())
}
