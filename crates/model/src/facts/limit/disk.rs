//! How much a tier's cgroups may do with a disk, and how much they do: beyond it each read and write waits its turn in the kernel (block/blk-throttle.c).

use std::collections::BTreeSet;

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::observation::{CgroupId, CgroupIo, IoKind};

/// The limit of a cgroup and a disk to which a tier is closest.
#[derive(Debug, Clone)]
pub(crate) struct DiskLimit<'a> {
    pub(crate) id: &'a CgroupId,
    pub(crate) group: &'a CgroupIo,
    /// Major and minor number of the disk: "254:0".
    pub(crate) disk: &'a str,
    pub(crate) kind: IoKind,
    /// The most in a second: bytes or operations.
    pub(crate) limit: u64,
    /// What was done in a second of the window.
    pub(crate) rate: f64,
}

impl<'a> DiskLimit<'a> {
    /// `None` if no cgroup of the tier has a limit, or if what was done was not read twice.
    pub(crate) fn of(ctx: &Context<'a>, tier: &Tier) -> Option<Self> {
        let paths = tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid)?.cgroups.last());
        let groups: BTreeSet<CgroupId> = paths.flat_map(CgroupId::of_io).collect();
        groups.iter().flat_map(|group| Self::of_group(ctx, group)).max_by(|a, b| a.share().total_cmp(&b.share()))
    }

    fn of_group(ctx: &Context<'a>, group: &CgroupId) -> Vec<Self> {
        let Some((id, series)) = ctx.obs.cgroup_io.get_key_value(group) else { return Vec::new() };
        let Some((first, last, elapsed_us)) = ctx.inside(series) else { return Vec::new() };
        let limits = last.limits.iter().filter(|(key, limit)| first.limits.get(key) == Some(limit));
        let limit = |(key, limit): (&'a (String, IoKind), &u64)| {
            // A disk that it never used has no counts yet.
            let done = |io: &CgroupIo| io.done.get(key).copied().unwrap_or(0);
            let rate = done(last).saturating_sub(done(first)) as f64 * 1e6 / elapsed_us.max(1) as f64;
            Self { id, group: last, disk: &key.0, kind: key.1, limit: *limit, rate }
        };
        limits.map(limit).collect()
    }

    pub(crate) fn share(&self) -> f64 {
        self.rate / self.limit.max(1) as f64
    }
}
