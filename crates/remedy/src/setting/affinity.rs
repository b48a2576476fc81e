//! The cores on which a process and its descendants may run (sched_setaffinity(2)). New processes and threads inherit them.

use std::collections::BTreeSet;

use chokepoint_model::change::{core_list, listed_cores};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::ApplyError;
use crate::process;
use crate::record::Intent;
use crate::setting::{Found, Setting, Toward};

/// Passes over the threads of a family: one that starts meanwhile inherits the cores of its parent, which a further pass has set by then.
const PASSES: usize = 3;

/// The cores of one process and its descendants.
#[derive(Debug)]
pub(crate) struct Affinity {
    pid: u32,
    start_ticks: u64,
    key: String,
}

impl Affinity {
    /// Reads nothing yet.
    pub(crate) fn open(pid: u32, start_ticks: u64, process: &str) -> Self {
        Self { pid, start_ticks, key: format!("cores of {process}") }
    }

    /// The cores of each thread, without those that ended meanwhile.
    fn cores(&self) -> Result<BTreeSet<Vec<u32>>, ApplyError> {
        if process::start_ticks(self.pid) != Some(self.start_ticks) {
            return Err(ApplyError::Ended { key: self.key.clone(), pid: self.pid });
        }
        let mut all = BTreeSet::new();
        for thread in self.threads() {
            match sched_getaffinity(Some(thread)) {
                Ok(set) => drop(all.insert((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).map(|core| core as u32).collect())),
                Err(Errno::SRCH) => {}
                Err(error) => return Err(ApplyError::Io { key: self.key.clone(), source: error.into() }),
            }
        }
        Ok(all)
    }

    fn threads(&self) -> impl Iterator<Item = Pid> {
        let threads = process::family(self.pid).into_iter().flat_map(process::threads);
        threads.filter_map(|thread| Pid::from_raw(i32::try_from(thread).ok()?))
    }

    fn set(&self, value: &str, cores: &CpuSet) -> Result<(), ApplyError> {
        for thread in self.threads() {
            match sched_setaffinity(Some(thread), cores) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(Errno::PERM) => {
                    return Err(ApplyError::NoPermission {
                        key: self.key.clone(),
                        why: "the kernel refused".to_owned(),
                        needs: "CAP_SYS_NICE (run as root)",
                    });
                }
                Err(error) => {
                    return Err(ApplyError::Refused { key: self.key.clone(), value: value.to_owned(), source: error.into() });
                }
            }
        }
        Ok(())
    }
}

impl Setting for Affinity {
    /// Threads with different cores have several lists, which no change sets.
    fn read(&self) -> Result<Found, ApplyError> {
        let lists: Vec<String> = self.cores()?.iter().map(|cores| core_list(cores)).collect();
        Ok(Found { value: lists.join(" and "), place: None })
    }

    fn put(&self, intent: &Intent, toward: Toward) -> Result<(), ApplyError> {
        let value = match toward {
            Toward::New => intent.change.to(),
            Toward::Old => &intent.was,
        };
        self.check(value)?;
        let mut cores = CpuSet::new();
        listed_cores(value).into_iter().flatten().for_each(|core| cores.set(core as usize));
        for _ in 0..PASSES {
            self.set(value, &cores)?;
            if self.read()?.value == value {
                break;
            }
        }
        Ok(())
    }

    fn check(&self, value: &str) -> Result<(), ApplyError> {
        let cores = listed_cores(value).filter(|cores| cores.iter().all(|core| (*core as usize) < CpuSet::MAX_CPU));
        if cores.is_some_and(|cores| !cores.is_empty()) {
            return Ok(());
        }
        Err(ApplyError::BadChange { key: self.key.clone(), why: format!("\"{value}\" is not one list of cores") })
    }

    fn same(&self, one: &str, other: &str) -> bool {
        match (listed_cores(one), listed_cores(other)) {
            (Some(one), Some(other)) => core_list(&one) == core_list(&other),
            _ => one == other,
        }
    }
}
