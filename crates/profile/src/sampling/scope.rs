//! What is observed: the whole machine, processes and the processes they start, or a cgroup.

use std::collections::HashSet;
use std::fmt;

use crate::error::Error;
use crate::host;

/// What is sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything that runs.
    System,
    /// These processes and their descendants, including future ones.
    Processes(Vec<u32>),
    /// The processes in this cgroup or below it. The path is that of the hierarchy, with or without a slash in front, or starts with /sys/fs/cgroup.
    Cgroup(String),
}

impl Scope {
    /// The processes of the scope with all their descendants; empty unless it is [`Scope::Processes`]. A process or cgroup that does not exist is an error.
    pub(crate) fn processes(&self) -> Result<HashSet<u32>, Error> {
        if let Self::Cgroup(path) = self
            && !host::is_cgroup(path)
        {
            return Err(Error::NoCgroup(path.clone()));
        }
        let Self::Processes(roots) = self else { return Ok(HashSet::new()) };
        let parents = host::parents();
        if let Some(missing) = roots.iter().find(|pid| !parents.contains_key(pid)) {
            return Err(Error::NoProcess(missing.to_string()));
        }
        let mut wanted: HashSet<u32> = roots.iter().copied().collect();
        loop {
            let below: Vec<u32> =
                parents.iter().filter(|(pid, parent)| wanted.contains(parent) && !wanted.contains(pid)).map(|(pid, _)| *pid).collect();
            if below.is_empty() {
                return Ok(wanted);
            }
            wanted.extend(below);
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("all processes"),
            Self::Processes(pids) => {
                let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
                write!(f, "process {} and its children", pids.join(", "))
            }
            Self::Cgroup(path) => write!(f, "cgroup {path}"),
        }
    }
}
