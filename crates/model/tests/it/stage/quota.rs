//! Cgroups with a quota around the stage's servers.

use std::collections::BTreeMap;

use chokepoint_model::observation::{CgroupCpu, CgroupId, CpuUse, Observation};
use chokepoint_model::reading::Reading;

use super::cpu;
use super::pool::pool;

/// php-fpm's processes on the stage: a master and five workers.
pub(crate) const PHP: std::ops::RangeInclusive<u32> = 50..=55;

/// Per-second figures of a cgroup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Did {
    /// Its limit in cores; none if it is unlimited.
    pub(crate) limit: Option<f64>,
    /// Used cores.
    pub(crate) used: f64,
    /// Share of the periods (100 ms) in which it was throttled.
    pub(crate) throttled: f64,
}

/// A cgroup, named "v1:/path", with constant figures.
pub(crate) fn cgroup(obs: &mut Observation, id: &str, did: Did) {
    cgroup_from(obs, id, did, 0);
}

/// The same, throttled only from this second on.
pub(crate) fn cgroup_from(obs: &mut Observation, id: &str, did: Did, from_s: u64) {
    let id = CgroupId::parse(id).unwrap();
    let dir = format!("/sys/fs/cgroup{}", id.path);
    let series = obs.cgroups.entry(id).or_default();
    *series = Default::default();
    for second in 0..=11_u64 {
        let stopped = (second.saturating_sub(from_s) as f64 * 10.0 * did.throttled).round() as u64;
        let cpu = CgroupCpu {
            dir: dir.clone(),
            quota_us: did.limit.map(|limit| (limit * 1e5).round() as u64),
            period_us: 100_000,
            periods: Some(second * 10),
            throttled_periods: Some(stopped),
            // Each throttling takes 70 of the 100 ms.
            throttled_ns: Some(stopped * 70_000_000),
            used_ns: Some((second as f64 * did.used * 1e9) as u64),
            writable: Some(true),
            share: None,
        };
        series.push(second * 1_000_000, Reading::Ok(cpu));
    }
}

/// Moves processes into a cgroup. Each used this many cores and waited for this many.
pub(crate) fn inside(obs: &mut Observation, id: &str, pids: impl IntoIterator<Item = u32>, used: f64, waiting: f64) {
    let id = CgroupId::parse(id).unwrap();
    let controller = if id.to_string().starts_with("v1") { "cpu" } else { "" };
    for pid in pids {
        let process = obs.processes.get_mut(&pid).unwrap();
        process.cgroups = Default::default();
        process.cgroups.push(0, Reading::Ok(BTreeMap::from([(controller.to_owned(), id.path.clone())])));
        process.cpu = Default::default();
        for second in 0..=11_u64 {
            let ns = |cores: f64| Some((second as f64 * cores * 1e9) as u64);
            let user_ticks = (second as f64 * used * 100.0).round() as u64;
            let cpu = CpuUse { user_ticks, run_ns: ns(used), run_delay_ns: ns(waiting), ..CpuUse::default() };
            process.cpu.push(second * 1_000_000, Reading::Ok(cpu));
        }
    }
}

/// php-fpm computes in a cgroup that may use 0.3 cores and is throttled in nine of ten periods. Its core is 60 % idle.
pub(crate) fn throttled(id: &str) -> Observation {
    let mut obs = pool(5, 5, 60);
    cpu(&mut obs, 0.4);
    cgroup(&mut obs, id, Did { limit: Some(0.3), used: 0.3, throttled: 0.9 });
    inside(&mut obs, id, PHP, 0.05, 0.6);
    obs
}
