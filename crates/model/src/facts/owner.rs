//! What a reading or a finding is about: tiers by id, or something outside the path.

use super::{Context, TierId};
use crate::facts::path::Tier;

/// What a reading or a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// These tiers: more than one if they share cores or a quota.
    Tiers(Vec<TierId>),
    /// The client, the host or a router, by its name in the report.
    Outside(String),
}

impl Owner {
    /// True if it is about this tier, alone or with others.
    pub(crate) fn has(&self, tier: TierId) -> bool {
        self.tiers().contains(&tier)
    }

    /// The tiers, in the order of the path; empty for something outside the path.
    pub(crate) fn tiers(&self) -> &[TierId] {
        match self {
            Owner::Tiers(tiers) => tiers,
            Owner::Outside(_) => &[],
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

/// The joined names of tiers that share something, as in the report.
pub(crate) fn joined(tiers: &[&Tier]) -> String {
    tiers.iter().map(|tier| tier.name.as_str()).collect::<Vec<_>>().join("+")
}

impl Context<'_> {
    /// The owner behind a name of the report: a tier, tiers that share cores or a quota, or something outside the path. Joined names are never split; they are
    /// compared with the names of the known groups.
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
