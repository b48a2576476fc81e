//! Typed facts of one observation, the base of stations, causes and remedies: tiers, listeners, cores, quotas, queues, pools, ports, edges, tables.
//!
//! A fact states what was read, without a verdict. Each is computed once per observation, when it is first needed. No fact depends on a station.

pub(crate) mod believed;
pub(crate) mod ceiling;
mod context;
pub(crate) mod cores;
pub mod harm;
pub(crate) mod limit;
mod listener;
pub mod owner;
pub mod path;
pub(crate) mod pool;
pub(crate) mod port_range;
pub mod profile;
pub(crate) mod queue;
pub(crate) mod quota;
pub(crate) mod setting;
pub mod spread;
pub(crate) mod suffered;
pub(crate) mod sum;
pub(crate) mod table;
pub mod traffic;
pub mod url;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::facts::path::Tier;
use crate::facts::pool::serving_pids;
use crate::ledger::{Account, Repeated, repeated};
use crate::observation::NetnsId;

pub(crate) use context::GOOD_MIN;
pub use context::{Context, Logged};
pub(crate) use cores::CoreGroup;
pub use owner::{CoreGroupId, TierId};
pub(crate) use quota::Quota;
use suffered::others::Others;

/// Facts computed so far.
#[derive(Default)]
pub(crate) struct Facts<'a> {
    core_groups: OnceCell<Vec<CoreGroup<'a>>>,
    quotas: OnceCell<Vec<Quota<'a>>>,
    account: OnceCell<Option<Account>>,
    others: OnceCell<BTreeMap<NetnsId, Others>>,
    workers: OnceCell<Vec<Vec<u32>>>,
    repeated: OnceCell<Vec<Repeated>>,
}

impl<'a> Context<'a> {
    /// The path's tiers, grouped by the cores that they may run on.
    pub(crate) fn core_groups(&self) -> &[CoreGroup<'a>] {
        self.facts.core_groups.get_or_init(|| cores::groups(self))
    }

    /// The CPU quotas that limit the path's tiers.
    pub(crate) fn quotas(&self) -> &[Quota<'a>] {
        self.facts.quotas.get_or_init(|| quota::limited(self))
    }

    /// The connections in a namespace that are not the path's.
    pub(crate) fn others(&self, id: NetnsId) -> Others {
        let all = self.facts.others.get_or_init(|| self.obs.netns.iter().map(|(id, view)| (*id, Others::of(self, *id, view))).collect());
        all.get(&id).copied().unwrap_or_default()
    }

    /// Which processes of a tier serve. None for a tier that is not of this path.
    pub(crate) fn workers(&self, tier: &Tier) -> &[u32] {
        let all = self.facts.workers.get_or_init(|| self.path.tiers.iter().map(|tier| serving_pids(self, tier)).collect());
        all.get(tier.id.0).map_or(&[], Vec::as_slice)
    }

    /// The calls that tiers make again because the ones before them failed.
    pub(crate) fn repeated(&self) -> &[Repeated] {
        self.facts.repeated.get_or_init(|| repeated(self))
    }

    /// Where requests were. `None` without samples.
    pub(crate) fn account(&self) -> Option<&Account> {
        self.facts.account.get_or_init(|| Account::of(self)).as_ref()
    }
}
