//! What the lab uses of the machine: namespaces, cgroups, settings, cores, processes and programs.

pub(crate) mod cgroup;
pub(crate) mod cores;
pub(crate) mod netns;
pub(crate) mod process;
pub(crate) mod spawn;
pub(crate) mod sysctl;
