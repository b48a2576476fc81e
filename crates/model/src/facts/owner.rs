//! Whom a reading or a finding is about: tiers by their ids, or who is none of the path's tiers.

use super::{Context, TierId};
use crate::facts::path::Tier;

/// Whom a reading or a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// These tiers: several where they share cores or a quota.
    Tiers(Vec<TierId>),
    /// The client, the host, a router: none of the path's tiers, by its name in the report.
    Outside(String),
}

impl Owner {
    /// True for what is about this tier, alone or among others.
    pub(crate) fn has(&self, tier: TierId) -> bool {
        self.tiers().contains(&tier)
    }

    /// The tiers, in the order of the path; none for who is outside of it.
    pub(crate) fn tiers(&self) -> &[TierId] {
        match self {
            Owner::Tiers(tiers) => tiers,
            Owner::Outside(_) => &[],
        }
    }

    /// True where both are about one tier, among others or not, or are the same outside of the path.
    pub(crate) fn shares(&self, other: &Self) -> bool {
        self == other || self.tiers().iter().any(|tier| other.has(*tier))
    }

    /// True where whatever the other one is about is among what this one is about.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self == other || (!other.tiers().is_empty() && other.tiers().iter().all(|tier| self.has(*tier)))
    }
}

/// The names of tiers that share something, as the report tells them.
pub(crate) fn joined(tiers: &[&Tier]) -> String {
    tiers.iter().map(|tier| tier.name.as_str()).collect::<Vec<_>>().join("+")
}

impl Context<'_> {
    /// Whom a name of the report stands for: a tier, those that share cores or a quota, or who is outside of the path. Names are never taken apart: they
    /// are looked up where they were made.
    pub(crate) fn owner(&self, name: &str) -> Owner {
        if let Some(tier) = self.path.tiers.iter().find(|tier| tier.name == name) {
            return Owner::Tiers(vec![tier.id]);
        }
        let groups = self.core_groups().iter().map(|group| &group.tiers);
        let mut together = groups.chain(self.quotas().iter().map(|quota| &quota.tiers));
        match together.find(|tiers| joined(tiers) == name) {
            Some(tiers) => Owner::Tiers(tiers.iter().map(|tier| tier.id).collect()),
            None => Owner::Outside(name.to_owned()),
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
    fn who_is_outside_is_the_same_by_name_alone_and_no_tier() {
        let outside = |name: &str| Owner::Outside(name.to_owned());
        assert!(outside("client").shares(&outside("client")) && !outside("client").shares(&outside("host")));
        assert!(!tiers(&[0]).covers(&outside("client")) && !outside("client").covers(&tiers(&[0])));
        assert!(outside("client").covers(&outside("client")) && outside("client").tiers().is_empty());
    }
}
