//! The quiet moment before a load. If the servers use their cores without requests, busy cores prove nothing later.

use std::time::Duration;

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
        loop {
            let left_us = until_us.saturating_sub(self.shared.clock.now_us());
            match self.inbox.recv_timeout(Duration::from_micros(left_us)) {
                Ok(event) if left_us > 0 => self.hear(event),
                Ok(event) => {
                    self.hear(event);
                    break;
                }
                Err(_) => break,
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
