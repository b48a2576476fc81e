//! Remedies that change what a control group may have: CPU time, processes and threads, and a part of a disk.

pub(super) mod allow_more_of_the_disk;
pub(super) mod allow_more_tasks;
pub(super) mod keep_cpu_quota;
pub(super) mod raise_cpu_quota;
