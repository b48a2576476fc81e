//! Checks of cgroups: the kernel accepts the quota, parents exist, and only leaves have processes (version 2).

use std::collections::BTreeSet;

use super::check::Check;
use crate::scenario::locate::Path;
use crate::scenario::names;

const CGROUPS_MAX: usize = 20;
/// Periods that the kernel accepts, one millisecond to one second (Documentation/scheduler/sched-bwc.rst).
const PERIOD_US: std::ops::RangeInclusive<u128> = 1_000..=1_000_000;
/// Smallest quota that the kernel accepts, microseconds.
const QUOTA_US_MIN: f64 = 1_000.0;
/// More cores than any machine has.
const CORES_MAX: f64 = 4_096.0;

impl Check<'_> {
    pub(super) fn cgroups(&mut self) {
        let (root, scenario) = (Path::root(), self.scenario);
        if scenario.cgroups.len() > CGROUPS_MAX {
            self.problem(root.key("cgroup"), format!("at most {CGROUPS_MAX} cgroups are allowed"));
        }
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for (index, cgroup) in scenario.cgroups.iter().enumerate() {
            let path = root.key("cgroup").index(index);
            self.result(path.key("name"), names::check_name(&cgroup.name));
            let period_us = cgroup.period.map_or(100_000, |period| period.0.as_micros());
            if !PERIOD_US.contains(&period_us) {
                self.problem(path.key("period"), "allowed are 1 ms to 1 s");
            } else if !(cgroup.cores * period_us as f64 >= QUOTA_US_MIN && cgroup.cores <= CORES_MAX) {
                self.problem(path.key("cores"), format!("allowed are at least one millisecond per period, and at most {CORES_MAX} cores"));
            }
            if let Some(parent) = cgroup.within.as_deref().filter(|parent| !seen.contains(parent)) {
                self.problem(path.key("within"), format!("the file defines no cgroup \"{parent}\" before this one"));
            }
            if !seen.insert(&cgroup.name) {
                self.problem(path.key("name"), format!("there is a cgroup \"{}\" already", cgroup.name));
            }
        }
        for (index, server) in scenario.servers.iter().enumerate() {
            let Some(name) = &server.cgroup else { continue };
            let path = root.key("server").index(index).key("cgroup");
            if !seen.contains(name.as_str()) {
                self.problem(path, format!("there is no cgroup \"{name}\""));
            } else if scenario.cgroups.iter().any(|cgroup| cgroup.within.as_ref() == Some(name)) {
                self.problem(
                    path,
                    format!("cgroup \"{name}\" contains another cgroup, so in cgroup v2 it cannot have processes of its own"),
                );
            }
        }
    }
}
