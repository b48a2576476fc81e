//! The quiet moment before a load. If the servers use their cores without requests, busy cores prove nothing later.

use chokepoint_recording::Scope;

use super::super::messages::ReadOrder;
use super::{PATIENCE_US, Sampler};
use crate::source;
use crate::table::Phase;

/// Least length of the moment. The kernel updates the time of a running thread at each clock tick, 100 to 1000 times a second, so the time of a thread that ran
/// throughout is exact to a tenth.
const QUIET_US: u64 = 100_000;

impl Sampler {
    /// Reads the CPU time of the path's processes and the counters of its namespaces a second time, before any load. Their first readings were taken before
    /// `since_us`.
    pub(super) fn watch_quiet(&mut self, since_us: u64) {
        let until_us = since_us.saturating_add(QUIET_US);
        while let Some(event) = self.next_event(until_us) {
            self.hear(event);
            if self.shared.clock.now_us() >= until_us {
                break;
            }
        }
        for lane in self.lanes.values_mut().filter(|lane| !lane.gone) {
            let again = |scope: &Scope| {
                let name = match scope {
                    Scope::Process(_) => "process_cpu",
                    Scope::Netns(_) => "netstat",
                    Scope::Host => return None,
                };
                Some(ReadOrder { source: source(name)?, scope: *scope, phase: Phase::Running })
            };
            let orders: Vec<ReadOrder> = lane.scopes.iter().filter_map(again).collect();
            lane.fresh.extend(orders);
        }
        self.drain(PATIENCE_US);
    }
}
