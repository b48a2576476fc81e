//! Typed facts of one observation, on which stations, causes and remedies build: tiers, listeners, cores, quotas, queues, pools, ports, edges, tables.
//!
//! A fact says what was read and holds no verdict. Each is worked out once an observation, when it is first asked for. No fact knows a station.

pub(crate) mod ceiling;
mod context;
pub(crate) mod cores;
mod id;
pub(crate) mod limit;
mod listener;
pub(crate) mod owner;
pub mod path;
pub(crate) mod pool;
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

use crate::ledger::Account;

pub(crate) use context::GOOD_MIN;
pub use context::{Context, Logged};
pub(crate) use cores::CoreGroup;
pub use id::{CoreGroupId, TierId};
pub(crate) use listener::is_end_of;
pub(crate) use quota::Quota;

/// What was worked out so far.
#[derive(Default)]
pub(crate) struct Facts<'a> {
    core_groups: OnceCell<Vec<CoreGroup<'a>>>,
    quotas: OnceCell<Vec<Quota<'a>>>,
    account: OnceCell<Option<Account>>,
}

impl<'a> Context<'a> {
    /// The path's tiers by the cores on which they may run.
    pub(crate) fn core_groups(&self) -> &[CoreGroup<'a>] {
        self.facts.core_groups.get_or_init(|| cores::groups(self))
    }

    /// The CPU quotas that hold the path's tiers.
    pub(crate) fn quotas(&self) -> &[Quota<'a>] {
        self.facts.quotas.get_or_init(|| quota::limited(self))
    }

    /// Where requests stood; nothing where no sample was taken.
    pub(crate) fn account(&self) -> Option<&Account> {
        self.facts.account.get_or_init(|| Account::of(self)).as_ref()
    }
}
