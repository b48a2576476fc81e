//! When translations of addresses (destination NAT) are read: at once if no listener for the target is known, and in the first turns of the scout.

use std::net::SocketAddr;

use chokepoint_recording::Scope;

use super::super::messages::{ReadOrder, ReadResult, ReaderJob};
use super::super::options::ObserveError;
use super::{PATIENCE_US, Sampler};
use crate::source;
use crate::table::{Phase, ScopeKind};
use crate::text::conntrack::translations::NAME;

/// Turns of the scout in which translations are read although a listener for the target is known. Another edge, or another way of some clients, may show only
/// in traffic.
const TURNS: u32 = 3;

impl Sampler {
    /// If a load was asked for and no listener for the target is known, connects to it once. The tables on the way then show where the address is translated
    /// to. Does nothing if no such table can be read.
    pub(super) fn call_unanswered(&mut self) -> Result<(), ObserveError> {
        let can_tell = self.newest.has(NAME);
        let Some(ip) = self.request.addresses.first().filter(|_| self.request.loaded && !self.path.answered && can_tell) else {
            return Ok(());
        };
        let address = SocketAddr::new(*ip, self.request.port);
        if let Some(lane) = self.lanes.get_mut(&Scope::Netns(self.request.client_netns.0)) {
            lane.give(ReaderJob::Connect(address));
        }
        self.drain(PATIENCE_US);
        self.order_translations();
        self.drain(PATIENCE_US);
        self.find_paths()
    }

    /// Orders the translations of every namespace that has a lane.
    fn order_translations(&mut self) {
        let Some(source) = source(NAME) else { return };
        for (scope, lane) in self.lanes.iter_mut().filter(|(scope, lane)| ScopeKind::of(**scope) == ScopeKind::Netns && !lane.gone) {
            lane.fresh.push(ReadOrder { source, scope: *scope, phase: Phase::Running });
        }
    }

    /// The same in turns of the scout, while it can change the path and the bucket can pay.
    pub(super) fn order_translations_in_turn(&mut self) {
        let wanted = !self.path.answered || self.translations_turns < TURNS;
        if wanted && self.bucket.reserve(&mut self.translating) {
            self.translations_turns += 1;
            self.order_translations();
        }
    }

    /// Notes the cost of a read. The next one waits until that much is saved.
    pub(super) fn charge_translations(&mut self, read: &ReadResult) {
        match read.order.phase {
            _ if read.order.source.name != NAME => {}
            Phase::Running if self.costs.is_sampling() => self.bucket.settle(&mut self.translating, read.cost_us),
            _ => self.translating.raise_cost(read.cost_us),
        }
    }
}
