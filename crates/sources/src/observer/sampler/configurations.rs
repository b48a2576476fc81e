//! Readings of configurations while an observation without an end goes on. Its budget pays for all of them, those of servers that are new included.

use chokepoint_model::observation::Observation;
use chokepoint_recording::{Entry, Scope};

use super::super::messages::{ReadOrder, ReadResult};
use super::{CONFIG, IDENTITY, Sampler};
use crate::assemble::place;
use crate::source;
use crate::table::Phase;

/// Processes whose configuration is read in one turn.
const AT_ONCE: usize = 8;

impl Sampler {
    /// True while configurations are read as the budget allows.
    pub(super) fn pays_for_configurations(&self) -> bool {
        self.endless && self.costs.is_sampling()
    }

    /// Orders those that are due, if the last ones were read and the bucket can pay.
    pub(super) fn order_configurations(&mut self, now_us: u64) {
        if self.configurations_ordered > 0 || !self.reloads.is_due(now_us) || !self.bucket.reserve(&mut self.configuring) {
            return;
        }
        let (Some(source), Some(host)) = (source(CONFIG), self.lanes.get_mut(&Scope::Host)) else { return };
        self.configuring.begin_turn();
        let due = self.reloads.take(now_us, AT_ONCE).into_iter().map(|(pid, phase)| (Scope::Process(pid), phase));
        let due: Vec<(Scope, Phase)> = due.filter(|(scope, _)| host.scopes.contains(scope)).collect();
        self.configurations_ordered = due.len();
        host.fresh.extend(due.into_iter().map(|(scope, phase)| ReadOrder { source, scope, phase }));
    }

    /// Charges the account for the configurations among these readings. The bucket has paid for those that are no first readings.
    pub(super) fn charge_configurations(&mut self, reads: &[ReadResult]) {
        let read: Vec<&ReadResult> = reads.iter().filter(|read| read.order.source.name == CONFIG).collect();
        if read.is_empty() || !self.pays_for_configurations() {
            return;
        }
        let of = |is_wanted: &dyn Fn(&ReadResult) -> bool| read.iter().filter(|read| is_wanted(read)).map(|read| read.cost_us).sum::<u64>();
        self.bucket.spend(of(&|read| read.order.phase == Phase::First));
        self.bucket.settle(&mut self.configuring, of(&|_| true));
        self.configurations_ordered = self.configurations_ordered.saturating_sub(read.len());
    }

    /// Notes which masters have a configuration, and who has started a process.
    pub(super) fn note_configuration(&mut self, order: ReadOrder, entries: &[Entry]) {
        let Scope::Process(pid) = order.scope else { return };
        match order.source.name {
            _ if !self.endless || entries.is_empty() => {}
            CONFIG => {
                self.reloads.configured(pid);
                if order.phase == Phase::Running {
                    self.status_pollers.forget(pid); // Its pages may be others now.
                }
            }
            IDENTITY => {
                let mut one = Observation::default();
                entries.iter().for_each(|entry| place(&mut one, entry));
                let identity = one.processes.get(&pid).and_then(|process| process.identity.last());
                if let Some(identity) = identity {
                    self.reloads.has_child(identity.parent, self.shared.clock.now_us());
                }
            }
            _ => {}
        }
    }
}
