//! What a tier calls by connections that are too short to show who holds them: the user of the socket says a part of it.

use std::collections::{BTreeMap, BTreeSet};

use super::{CalledListeners, Edge, ListenerRef, ReachedListener, Tier, Walk, is_own, users};
use crate::observation::{NetnsId, NetnsView, Socket};

/// Connections of a user that must be seen before they are attributed to a tier of the same user.
const SEEN_MIN: usize = 5;

impl<'a> Walk<'a> {
    /// The listeners that connections of the tier's user lead to, if many were seen and no other process owns one of them. For tiers whose connections are too
    /// short to be attributed by process. Several servers often run as one user: where the tier's configuration says to whom it passes requests, only those
    /// are its own; where none does, nothing is known while another server of that user is at work. Root's connections may be anybody's and are not used.
    pub(super) fn called_by_user(&self, index: usize) -> (CalledListeners, Edge) {
        let tier = &self.path.tiers[index];
        let named = self.decides(tier).then(|| self.reach.configured(&tier.pids, tier.netns));
        let edge = if named.is_some() { Edge::Seen } else { Edge::Supposed };
        let mut called = CalledListeners::default();
        let Some(view) = self.obs.netns.get(&tier.netns) else { return (called, edge) };
        let counts = self.counted_by_user(tier, view);
        let reached: BTreeSet<u64> = counts.values().map(|(_, reached)| reached.listener.1.inode).collect();
        if named.is_none() && self.works_beside(tier, view, &reached) {
            return (called, edge);
        }
        let is_named = |(netns, listener): ListenerRef<'_>| {
            named.as_ref().is_none_or(|named| named.iter().any(|(other, one)| *other == netns && one.inode == listener.inode))
        };
        let many = counts.into_values().filter(|(count, _)| count.is_some_and(|count| count >= SEEN_MIN));
        let own = many.filter(|(_, reached)| !is_own(tier, reached.listener) && is_named(reached.listener));
        own.for_each(|(_, reached)| called.add(&reached));
        (called, edge)
    }

    /// True if the configuration of a tier's server was read, and names the address of each server that it passes requests to.
    fn decides(&self, tier: &Tier) -> bool {
        let mut configs = tier.pids.iter().filter_map(|pid| self.obs.servers.get(pid)?.nginx()).peekable();
        configs.peek().is_some() && configs.flat_map(|nginx| &nginx.passes).all(|pass| !pass.servers.is_empty())
    }

    /// The users of a tier's processes without root.
    fn users(&self, tier: &Tier) -> BTreeSet<u32> {
        users(self.obs, &tier.pids).into_iter().filter(|uid| *uid != 0).collect()
    }

    /// By listener: how often connections of the tier's users to it were seen; nothing if another process owns one.
    fn counted_by_user(&self, tier: &Tier, view: &'a NetnsView) -> BTreeMap<(NetnsId, u64), (Option<usize>, ReachedListener<'a>)> {
        let users = self.users(tier);
        let others = self.held_by(|pid| !tier.pids.contains(pid));
        let strangers = self.strangers(tier, view);
        let word = self.word_of(tier);
        let mut counts: BTreeMap<(NetnsId, u64), (Option<usize>, ReachedListener<'a>)> = BTreeMap::new();
        let none = BTreeMap::new();
        for socket in held_of(view, &users).filter(|socket| !strangers.contains(&socket.inode)) {
            let peers = self.peers(tier.netns, &socket.address, &none).into_iter();
            for reached in peers.filter(|reached| self.shows(socket, &word, reached)) {
                let seen = counts.entry((reached.listener.0, reached.listener.1.inode)).or_insert((Some(0), reached));
                seen.0 = seen.0.filter(|_| !others.contains(&socket.inode)).map(|count| count + 1);
            }
        }
        counts
    }

    /// True if another server of the tier's users has connections: it may have made those that lead to the listeners `reached`. Those behind them are no such
    /// servers.
    fn works_beside(&self, tier: &Tier, view: &NetnsView, reached: &BTreeSet<u64>) -> bool {
        let users = self.users(tier);
        let is_other = |(netns, listener): &ListenerRef<'_>| {
            *netns == tier.netns && !reached.contains(&listener.inode) && !is_own(tier, (*netns, *listener))
        };
        held_of(view, &users).any(|socket| {
            let accepting = self.reach.accepting(tier.netns, &socket.address);
            accepting.max_by_key(|(_, listener)| listener.is_bound_to_one()).is_some_and(|nearest| is_other(&nearest))
        })
    }

    /// The sockets that no process of the tier can hold: they were there when the files of each were looked at, and it did not have them.
    fn strangers(&self, tier: &Tier, view: &NetnsView) -> BTreeSet<u64> {
        let mut lives: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (at_us, sockets) in view.sockets.points() {
            for socket in sockets.iter().filter(|socket| socket.inode != 0) {
                lives.entry(socket.inode).or_insert((*at_us, *at_us)).1 = *at_us;
            }
        }
        let held = self.held_by(|pid| tier.pids.contains(pid));
        let looks: Vec<Vec<u64>> = tier
            .pids
            .iter()
            .filter_map(|pid| self.obs.processes.get(pid))
            .map(|process| process.files.points().iter().map(|(at_us, _)| *at_us).collect())
            .collect();
        let met = |(from_us, to_us): (u64, u64)| looks.iter().all(|times| times.iter().any(|at_us| (from_us..=to_us).contains(at_us)));
        let is_strange = |(inode, life): &(u64, (u64, u64))| !held.contains(inode) && life.1 > life.0 && met(*life);
        lives.into_iter().filter(is_strange).map(|(inode, _)| inode).collect()
    }
}

/// The TCP sockets of a namespace that processes of these users hold.
fn held_of<'v>(view: &'v NetnsView, users: &BTreeSet<u32>) -> impl Iterator<Item = &'v Socket> {
    let sockets = view.sockets.values().flatten();
    sockets.filter(|socket| socket.inode != 0 && socket.uid.is_some_and(|uid| users.contains(&uid)))
}
