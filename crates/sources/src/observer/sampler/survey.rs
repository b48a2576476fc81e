//! The single search, before the sampling, for the listeners of every namespace and for the processes that hold them.

use chokepoint_recording::{Entry, Outcome, Scope};

use super::super::messages::{ReadOrder, ReaderJob, SamplerEvent};
use super::super::options::ObserveError;
use super::super::reader::Reader;
use super::super::scout::listener_inodes;
use super::lane::ReaderLane;
use super::{PATIENCE_US, Sampler};
use crate::netns::NetnsRef;
use crate::source;
use crate::table::{Cadence, Phase};
use crate::visibility::NAMESPACES;

/// Most namespaces to search for listeners.
const SURVEYED_MAX: usize = 1_024;
/// Longest wait for one of them.
const SURVEYED_MAX_US: u64 = 2_000_000;
/// Sources to read in each.
const SURVEY: [&str; 3] = ["netns", "addresses", "listeners"];

impl Sampler {
    /// Searches every namespace that has no lane for listeners. Gives the CPU time of the readers.
    pub(super) fn survey(&mut self) -> Result<u64, ObserveError> {
        let others: Vec<NetnsRef> =
            self.namespaces.found.iter().filter(|netns| !self.lanes.contains_key(&Scope::Netns(netns.id.0))).cloned().collect();
        if others.len() > SURVEYED_MAX {
            let total = others.len();
            self.bounds.insert(format!("only {SURVEYED_MAX} of {total} other network namespaces were searched for listeners"));
        }
        let (mut shut_out, mut cost_us) = (0, 0);
        for netns in others.into_iter().take(SURVEYED_MAX) {
            if self.shared.stop.is_set() {
                break;
            }
            let scope = Scope::Netns(netns.id.0);
            let reader = Reader::of_netns(self.shared.clone(), netns)?;
            let orders = SURVEY.iter().filter_map(|name| Some(ReadOrder { source: source(name)?, scope, phase: Phase::First }));
            if !reader.give(ReaderJob::Read(orders.collect(), None)) {
                continue;
            }
            // No other reader has work now, so the next reply is from this one.
            let until_us = self.shared.clock.now_us() + SURVEYED_MAX_US;
            while let Some(event) = self.next_event(until_us) {
                match event {
                    SamplerEvent::Reply(reply) if reply.reader == scope => {
                        cost_us += reply.cost_us;
                        shut_out += u32::from(reply.shut_out);
                        for read in reply.reads {
                            self.remember(read.order.source, &read.entries);
                        }
                        reader.end();
                        break;
                    }
                    other => self.hear(other),
                }
            }
        }
        if shut_out > 0 {
            let why = format!("this user may not search {shut_out} network namespaces for listeners");
            let outcome = Outcome::Absent(why, Some("CAP_SYS_ADMIN".to_owned()));
            let entry = Entry {
                at_us: self.shared.clock.now_us(),
                source: NAMESPACES.name.to_owned(),
                scope: Scope::Host,
                item: String::new(),
                outcome,
            };
            self.store.add(vec![entry], Cadence::Once, Phase::First);
        }
        Ok(cost_us)
    }

    pub(super) fn refresh_holders(&mut self) {
        self.newest.parse(&["listeners"]);
        let wanted = listener_inodes(self.newest.view());
        if let Some(lane) = self.lanes.get_mut(&Scope::Host) {
            lane.give(ReaderJob::Hold(wanted, usize::MAX));
        }
        let until_us = self.shared.clock.now_us() + PATIENCE_US;
        while self.lanes.get(&Scope::Host).is_some_and(ReaderLane::is_busy) {
            match self.next_event(until_us) {
                Some(SamplerEvent::Reply(reply)) => {
                    if let Some(lane) = self.lanes.get_mut(&reply.reader) {
                        lane.answered();
                    }
                    self.pids_by_socket = reply.pids_by_socket.unwrap_or_default();
                }
                Some(event) => self.hear(event),
                None => return,
            }
        }
    }
}
