//! Cgroups of a lab: made below this process's own, with their limit of CPU time, in whichever version of cgroups has the controller.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::LabError;
use crate::names;
use crate::scenario::{Cgroup, Server};
use crate::state::CgroupState;
use crate::up::Builder;

/// Length of a period where the scenario gives none: the kernel's own (Documentation/scheduler/sched-bwc.rst).
const PERIOD: Duration = Duration::from_millis(100);
/// Mounts and cgroups of this process; both are short even on hosts with thousands of mounts.
const BYTES_MAX: u64 = 4 << 20;
/// How long a cgroup whose processes have just ended may take to be empty.
const EMPTY_WAIT: Duration = Duration::from_secs(2);
const EMPTY_POLL: Duration = Duration::from_millis(10);

/// Where cgroups with a limit of CPU time can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hierarchy {
    /// Version 1: this process's cgroup in the hierarchy of `cpu`, and in that of `cpuacct` where it is another one.
    V1(Vec<PathBuf>),
    /// Version 2: the root of its mount, for a cgroup that has processes cannot give controllers to others.
    V2(PathBuf),
}

/// Finds where cgroups can be made on this machine, or says why they cannot.
pub(crate) fn find() -> Result<Hierarchy, String> {
    let read = |path: &str| {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes));
        read.map(|_| String::from_utf8_lossy(&bytes).into_owned()).map_err(|error| format!("{path}: {error}"))
    };
    let found = find_in(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?)?;
    let dirs = match &found {
        Hierarchy::V1(dirs) => dirs.as_slice(),
        Hierarchy::V2(root) => {
            let given = fs::read_to_string(root.join("cgroup.subtree_control")).unwrap_or_default();
            if !given.split_ascii_whitespace().any(|controller| controller == "cpu") {
                return Err(format!("{} does not give the controller cpu to the cgroups in it (cgroup.subtree_control)", root.display()));
            }
            std::slice::from_ref(root)
        }
    };
    for dir in dirs {
        rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).map_err(|error| format!("{}: {error}", dir.display()))?;
    }
    Ok(found)
}

fn find_in(mounts: &str, own: &str) -> Result<Hierarchy, String> {
    // 31 24 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu
    let mount = |kind: &str, controller: Option<&str>| {
        let fits = |line: &&str| {
            let Some((_, about)) = line.split_once(" - ") else { return false };
            let mut words = about.split(' ');
            let is_kind = words.next() == Some(kind);
            is_kind && controller.is_none_or(|wanted| words.nth(1).is_some_and(|options| options.split(',').any(|name| name == wanted)))
        };
        let fields: Vec<&str> = mounts.lines().find(fits)?.split(' ').collect();
        Some(((*fields.get(3)?).to_owned(), PathBuf::from(fields.get(4)?.replace("\\040", " "))))
    };
    let own_in = |controller: &str| {
        let paths = own.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        let mut named = paths.filter(|(names, _)| names.split(',').any(|name| name == controller));
        named.next().map(|(_, path)| path)
    };
    let dir_of = |controller: &str| {
        let (root, point) = mount("cgroup", Some(controller))?;
        let below = own_in(controller)?.strip_prefix(root.trim_end_matches('/'))?;
        Some(point.join(below.trim_start_matches('/')))
    };
    match (dir_of("cpu"), dir_of("cpuacct"), mount("cgroup2", None)) {
        (Some(cpu), Some(account), _) if account != cpu => Ok(Hierarchy::V1(vec![cpu, account])),
        (Some(cpu), ..) => Ok(Hierarchy::V1(vec![cpu])),
        (None, _, Some((_, root))) if own_in("cpu").is_none() => Ok(Hierarchy::V2(root)),
        _ => Err("no hierarchy of cgroups with the controller cpu is mounted".to_owned()),
    }
}

impl Hierarchy {
    /// The directories in which a cgroup stands.
    fn roots(&self) -> Vec<PathBuf> {
        match self {
            Hierarchy::V1(dirs) => dirs.clone(),
            Hierarchy::V2(root) => vec![root.clone()],
        }
    }

    /// Sets a cgroup's limit, and lets it have the controller where that must be given by the one around it.
    fn limit(&self, cgroup: &Cgroup, dir: &Path) -> io::Result<()> {
        let period_us = cgroup.period.map_or(PERIOD, |period| period.0).as_micros();
        let quota_us = (cgroup.cores * period_us as f64).round() as u64;
        match self {
            Hierarchy::V1(_) => {
                write(&dir.join("cpu.cfs_period_us"), &period_us.to_string())?;
                write(&dir.join("cpu.cfs_quota_us"), &quota_us.to_string())
            }
            Hierarchy::V2(_) => {
                if let Some(around) = dir.parent().filter(|_| cgroup.within.is_some()) {
                    write(&around.join("cgroup.subtree_control"), "+cpu")?;
                }
                write(&dir.join("cpu.max"), &format!("{quota_us} {period_us}"))
            }
        }
    }
}

/// The kernel takes a value from one write.
fn write(path: &Path, value: &str) -> io::Result<()> {
    let wrong = |error: io::Error| io::Error::new(error.kind(), format!("{} to {value}: {error}", path.display()));
    io::Write::write_all(&mut OpenOptions::new().write(true).open(path).map_err(wrong)?, value.as_bytes()).map_err(wrong)
}

impl Builder<'_, '_> {
    /// Makes the cgroups, those around others first.
    pub(crate) fn cgroups(&mut self) -> Result<(), LabError> {
        let scenario = self.scenario;
        if scenario.cgroups.is_empty() {
            return Ok(());
        }
        let hierarchy = find().map_err(|why| LabError::Scenario(format!("no cgroup can be made: {why}")))?;
        for cgroup in &scenario.cgroups {
            let around = cgroup.within.as_ref().and_then(|name| self.state.cgroups.iter().find(|made| made.name == *name));
            let roots = around.map_or_else(|| hierarchy.roots(), |around| around.dirs.clone());
            let dirs: Vec<PathBuf> = roots.iter().map(|root| root.join(names::cgroup_name(&scenario.name, &cgroup.name))).collect();
            if let Some(taken) = dirs.iter().find(|dir| dir.exists()) {
                return Err(LabError::io("cannot make", taken)(ErrorKind::AlreadyExists.into()));
            }
            let made = CgroupState { name: cgroup.name.clone(), dirs: dirs.clone(), begun: true };
            self.step(&format!("cgroup {}: {} cores", cgroup.name, cgroup.cores), |state| state.cgroups.push(made))?;
            for dir in &dirs {
                fs::create_dir(dir).map_err(LabError::io("cannot make", dir))?;
            }
            if let Some(dir) = dirs.first() {
                hierarchy.limit(cgroup, dir).map_err(LabError::io("cannot limit", dir))?;
            }
        }
        Ok(())
    }

    /// The files through which a server enters its cgroup, open.
    pub(crate) fn cgroup_files(&self, server: &Server) -> Result<Vec<File>, LabError> {
        let made = self.state.cgroups.iter().filter(|made| Some(&made.name) == server.cgroup.as_ref());
        let files = made.flat_map(|made| &made.dirs).map(|dir| dir.join("cgroup.procs"));
        files.map(|path| OpenOptions::new().write(true).open(&path).map_err(LabError::io("cannot open", &path))).collect()
    }
}

/// Removes the cgroups, the inner ones first; what was done and what could not be.
pub(crate) fn remove(cgroups: &mut [CgroupState]) -> (Vec<String>, Vec<String>) {
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    for cgroup in cgroups.iter_mut().rev().filter(|cgroup| cgroup.begun) {
        let failed: Vec<String> =
            cgroup.dirs.iter().filter_map(|dir| remove_empty(dir).err().map(|error| format!("{}: {error}", dir.display()))).collect();
        cgroup.begun = !failed.is_empty();
        match failed.is_empty() {
            true => done.push(format!("cgroup {} removed", cgroup.name)),
            false => problems.extend(failed.iter().map(|why| format!("cgroup {} cannot be removed: {why}", cgroup.name))),
        }
    }
    (done, problems)
}

/// Removes a cgroup; one that is not there is removed. A process that has just ended may keep it for a moment.
fn remove_empty(dir: &Path) -> io::Result<()> {
    let deadline = Instant::now() + EMPTY_WAIT;
    loop {
        match fs::remove_dir(dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline => std::thread::sleep(EMPTY_POLL),
            removed => return removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "31 24 0:27 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu\n\
        32 24 0:28 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n33 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn cgroups_are_made_where_the_controller_is() {
        let v1 = |dirs: &[&str]| Ok(Hierarchy::V1(dirs.iter().map(PathBuf::from).collect()));
        assert_eq!(find_in(V1, "2:cpuacct:/\n1:cpu:/\n0::/\n"), v1(&["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct"]));
        assert_eq!(find_in(V1, "2:cpuacct:/a\n1:cpu:/b\n"), v1(&["/sys/fs/cgroup/cpu/b", "/sys/fs/cgroup/cpuacct/a"]));
        let joined = "31 24 0:27 /docker/x /c rw - cgroup cgroup rw,cpu,cpuacct\n";
        assert_eq!(find_in(joined, "4:cpu,cpuacct:/docker/x\n"), v1(&["/c"]));
        let unified = "29 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(find_in(unified, "0::/user.slice\n"), Ok(Hierarchy::V2("/sys/fs/cgroup".into())));
        // The controller is in version 1, and that is not mounted.
        assert!(find_in(unified, "1:cpu:/\n0::/\n").is_err());
        assert!(find_in("", "").is_err());
    }

    #[test]
    fn what_is_gone_is_removed_and_what_is_held_is_told() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("a");
        fs::create_dir(&dir).unwrap();
        let state =
            |dirs: &[&Path]| vec![CgroupState { name: "a".into(), dirs: dirs.iter().map(|dir| dir.to_path_buf()).collect(), begun: true }];
        let mut made = state(&[&dir, &root.path().join("none")]);
        assert_eq!(remove(&mut made), (vec!["cgroup a removed".to_owned()], Vec::new()));
        assert!(!made[0].begun && !dir.exists());
        fs::create_dir_all(dir.join("within")).unwrap();
        let mut held = state(&[&dir]);
        assert_eq!(remove(&mut held).1.len(), 1);
        assert!(held[0].begun);
    }
}
