//! When the translations of addresses are read (destination NAT): at once where nobody is known to listen for the target, and in the first turns
//! of the scout.

use std::net::SocketAddr;

use chokepoint_recording::Scope;

use super::super::reader::{Job, Order, Read};
use super::{ObserveError, PATIENCE_US, Sampler, kind_of};
use crate::source;
use crate::table::{Phase, ScopeKind};
use crate::text::conntrack_translations::NAME;

/// In how many turns of the scout translations are read although the target is answered for: another edge, or another way for some clients,
/// may show only in traffic.
const TURNS: u32 = 3;

impl Sampler {
    /// Where load was asked for and nobody is known to listen for the target: makes one connection to it, as the load will make many, so that
    /// the tables on its way tell where it is translated to. Only where such a table can be read.
    pub(super) fn call_unanswered(&mut self) -> Result<(), ObserveError> {
        let can_tell = self.latest.keys().any(|(_, source)| *source == NAME);
        let Some(ip) = self.request.addresses.first().filter(|_| self.request.loaded && !self.path.answered && can_tell) else {
            return Ok(());
        };
        let address = SocketAddr::new(*ip, self.request.port);
        if let Some(lane) = self.lanes.get_mut(&Scope::Netns(self.request.client_netns.0)) {
            lane.give(Job::Connect(address));
        }
        self.drain(PATIENCE_US);
        self.order_translations();
        self.drain(PATIENCE_US);
        while self.look()? {
            self.drain(PATIENCE_US);
        }
        Ok(())
    }

    /// Has the translations read in every namespace that is read at all.
    fn order_translations(&mut self) {
        let Some(source) = source(NAME) else { return };
        for (scope, lane) in self.lanes.iter_mut().filter(|(scope, lane)| kind_of(**scope) == ScopeKind::Netns && !lane.gone) {
            lane.fresh.push(Order { source, scope: *scope, phase: Phase::Running });
        }
    }

    /// The same in turns of the scout, while it can bear on the path and the bucket pays for it.
    pub(super) fn order_translations_in_turn(&mut self) {
        let wanted = !self.path.answered || self.translations_turns < TURNS;
        if wanted && self.bucket.pays(&mut self.translating) {
            self.translations_turns += 1;
            self.order_translations();
        }
    }

    /// Takes note of what a read cost, so that the next one waits until that much was saved.
    pub(super) fn charge_translations(&mut self, read: &Read) {
        match read.order.phase {
            _ if read.order.source.name != NAME => {}
            Phase::Running if self.costs.is_sampling() => self.bucket.charge(&mut self.translating, read.cost_us),
            _ => self.translating.expect(read.cost_us),
        }
    }
}
