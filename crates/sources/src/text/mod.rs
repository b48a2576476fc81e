//! What the kernel tells as text: files under /proc and /sys, the kernel log and the files of a process; a thin reader and a pure parser
//! each.

mod cgroup_cpu;
mod cgroup_mounts;
mod conntrack;
mod conntrack_entries;
mod conntrack_states;
pub(crate) mod conntrack_translations;
mod cpu;
mod error;
mod facts;
mod kernel;
pub(crate) mod kernel_log;
mod ksoftirqd;
mod memory;
mod netstat;
mod process_cgroups;
mod process_cpu;
mod process_fd_count;
mod process_files;
pub(crate) mod process_identity;
mod process_limits;
mod process_stat;
mod process_syscall;
pub(crate) mod sockstat;
mod softnet;
mod sysctls;
#[cfg(test)]
mod tests;

use chokepoint_model::observation::{Observation, ProcessView};
use chokepoint_recording::{Entry, Outcome, Scope};

use crate::table::Source;

/// All text sources, in the order in which a report names them: the host, then a namespace, then a process.
pub(crate) const ALL: &[&Source] = &[
    &kernel::KERNEL,
    &cpu::CPU,
    &memory::MEMORY,
    &softnet::SOFTNET,
    &ksoftirqd::KSOFTIRQD,
    &kernel_log::KERNEL_LOG,
    &cgroup_cpu::CGROUP_CPU,
    &sysctls::SYSCTLS,
    &netstat::NETSTAT,
    &sockstat::SOCKSTAT,
    &conntrack::CONNTRACK_COUNT,
    &conntrack::CONNTRACK_CPUS,
    &conntrack_states::CONNTRACK_STATES,
    &conntrack_translations::CONNTRACK_TRANSLATIONS,
    &process_identity::PROCESS_IDENTITY,
    &process_cpu::PROCESS_CPU,
    &process_files::PROCESS_FILES,
    &process_fd_count::PROCESS_FD_COUNT,
    &process_syscall::PROCESS_SYSCALL,
    &process_limits::PROCESS_LIMITS,
    &process_cgroups::PROCESS_CGROUPS,
];

/// A reader's answer where it reads one thing only.
fn one(outcome: Outcome) -> Vec<(String, Outcome)> {
    vec![(String::new(), outcome)]
}

/// The view that an entry of scope Process belongs to; an entry of another scope is told as unplaced.
fn process_of<'o>(observation: &'o mut Observation, entry: &Entry) -> Option<&'o mut ProcessView> {
    if let Scope::Process(pid) = entry.scope {
        return Some(observation.processes.entry(pid).or_default());
    }
    unplaced(observation, entry, "it should hold for a process");
    None
}

/// Tells in the observation that an entry has no place.
fn unplaced(observation: &mut Observation, entry: &Entry, why: &str) {
    observation.unplaced.push(format!("{} {:?} \"{}\": {why}", entry.source, entry.scope, entry.item));
}
