//! What a reading or a finding is about: tiers by id, or something outside the path.

use super::Context;
use crate::facts::path::Tier;
use crate::observation::NetnsId;

/// A tier by its index on the path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TierId(pub usize);

/// A group of cores with the same tiers, by its index among the path's groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreGroupId(pub usize);

/// What a reading or a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// These tiers, in the order of the path: several where they share cores or a quota.
    Tiers(Vec<TierId>),
    /// The client.
    Client,
    /// A namespace that translates addresses on the way and is not this host's own.
    Router,
    /// This host.
    Host,
}

impl From<TierId> for Owner {
    fn from(tier: TierId) -> Self {
        Owner::Tiers(vec![tier])
    }
}

impl From<&Tier> for Owner {
    fn from(tier: &Tier) -> Self {
        tier.id.into()
    }
}

impl From<&[&Tier]> for Owner {
    fn from(tiers: &[&Tier]) -> Self {
        Owner::Tiers(tiers.iter().map(|tier| tier.id).collect())
    }
}

impl Owner {
    /// True if it is about this tier, alone or with others.
    pub(crate) fn has(&self, tier: TierId) -> bool {
        self.tiers().contains(&tier)
    }

    /// The tiers, in the order of the path; empty for something outside the path.
    pub fn tiers(&self) -> &[TierId] {
        match self {
            Owner::Tiers(tiers) => tiers,
            Owner::Client | Owner::Router | Owner::Host => &[],
        }
    }

    /// True if both are about a common tier, or are the same thing outside the path.
    pub(crate) fn shares(&self, other: &Self) -> bool {
        self == other || self.tiers().iter().any(|tier| other.has(*tier))
    }

    /// True if this one includes everything that the other one is about.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self == other || (!other.tiers().is_empty() && other.tiers().iter().all(|tier| self.has(*tier)))
    }
}

impl<'a> Context<'a> {
    /// The only tier of an owner; nothing where it is several, or outside of the path.
    pub(crate) fn only_tier(&self, owner: &Owner) -> Option<&'a Tier> {
        let [tier] = owner.tiers() else { return None };
        self.path.tiers.get(tier.0)
    }

    /// Who is in a namespace: the tier that listens there, the router, the client, or else the host.
    pub(crate) fn owner_of(&self, id: NetnsId) -> Owner {
        let is_host = self.obs.netns.get(&id).is_some_and(|view| view.is_host);
        let translates = self.path.translated.iter().any(|hop| hop.netns == id);
        match self.path.tiers.iter().find(|tier| tier.netns == id) {
            Some(tier) => tier.into(),
            // Servers are published where the host translates: what is short there is no fault of a client that happens to run beside them.
            None if translates && is_host => Owner::Host,
            None if id == self.obs.request.client_netns => Owner::Client,
            None if translates => Owner::Router,
            None => Owner::Host,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Owner;
    use crate::facts::TierId;

    fn tiers(places: &[usize]) -> Owner {
        Owner::Tiers(places.iter().copied().map(TierId).collect())
    }

    #[test]
    fn what_is_shared_is_about_each_of_its_tiers_and_covers_them() {
        let (both, first, other) = (tiers(&[0, 1]), tiers(&[0]), tiers(&[2]));
        assert!(both.has(TierId(1)) && !first.has(TierId(1)));
        assert!(both.shares(&first) && first.shares(&both) && !both.shares(&other));
        assert!(both.covers(&first) && !first.covers(&both) && !both.covers(&other));
    }

    #[test]
    fn an_owner_outside_of_the_path_covers_itself_alone() {
        assert!(Owner::Client.shares(&Owner::Client) && !Owner::Client.shares(&Owner::Host));
        assert!(!tiers(&[0]).covers(&Owner::Client) && !Owner::Client.covers(&tiers(&[0])));
        assert!(Owner::Client.covers(&Owner::Client) && Owner::Client.tiers().is_empty());
    }
}
