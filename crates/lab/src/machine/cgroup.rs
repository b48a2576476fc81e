//! Cgroups with a CPU quota, created in the version of cgroups that has the controller `cpu`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::scenario::document::Cgroup;

/// Default period, as the kernel's (Documentation/scheduler/sched-bwc.rst).
const PERIOD: Duration = Duration::from_millis(100);
/// Most bytes read of this process's mounts and cgroups. Both are short even on hosts with thousands of mounts.
const BYTES_MAX: u64 = 4 << 20;
/// How long to wait until a cgroup whose processes have just ended is empty.
const EMPTY_WAIT: Duration = Duration::from_secs(2);
const EMPTY_POLL: Duration = Duration::from_millis(10);

/// Where cgroups with a CPU quota can be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hierarchy {
    /// Version 1: this process's cgroup in the hierarchy of `cpu`, and in that of `cpuacct` where they differ.
    V1(Vec<PathBuf>),
    /// Version 2: the root of the mount. A cgroup with processes cannot delegate controllers.
    V2(PathBuf),
}

/// Finds where cgroups can be created on this machine. The error says why they cannot.
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
            let given = chokepoint_foreign::read_kernel(root.join("cgroup.subtree_control"), 1 << 12).unwrap_or_default();
            if !given.split_ascii_whitespace().any(|controller| controller == "cpu") {
                return Err(format!("{} does not enable the cpu controller for its cgroups (cgroup.subtree_control)", root.display()));
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
        _ => Err("no cgroup hierarchy with the cpu controller is mounted".to_owned()),
    }
}

impl Hierarchy {
    /// The directories in which to create a cgroup.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        match self {
            Hierarchy::V1(dirs) => dirs.clone(),
            Hierarchy::V2(root) => vec![root.clone()],
        }
    }

    /// Sets a cgroup's quota. In version 2 its parent must first delegate the controller.
    pub(crate) fn limit(&self, cgroup: &Cgroup, dir: &Path) -> io::Result<()> {
        let period_us = cgroup.period.map_or(PERIOD, |period| period.0).as_micros();
        let quota_us = (cgroup.cores * period_us as f64).round() as u64;
        match self {
            Hierarchy::V1(_) => {
                write(&dir.join("cpu.cfs_period_us"), &period_us.to_string())?;
                write(&dir.join("cpu.cfs_quota_us"), &quota_us.to_string())
            }
            Hierarchy::V2(_) => {
                if let Some(parent) = dir.parent().filter(|_| cgroup.within.is_some()) {
                    write(&parent.join("cgroup.subtree_control"), "+cpu")?;
                }
                write(&dir.join("cpu.max"), &format!("{quota_us} {period_us}"))
            }
        }
    }
}

/// Writes a value in one system call, as the kernel demands.
fn write(path: &Path, value: &str) -> io::Result<()> {
    let wrong = |error: io::Error| io::Error::new(error.kind(), format!("{} to {value}: {error}", path.display()));
    io::Write::write_all(&mut OpenOptions::new().write(true).open(path).map_err(wrong)?, value.as_bytes()).map_err(wrong)
}

/// Removes a cgroup's directory. A missing one is no error. A process that has just ended may keep it busy for a moment.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
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
    fn cgroups_are_created_where_the_controller_is() {
        let v1 = |dirs: &[&str]| Ok(Hierarchy::V1(dirs.iter().map(PathBuf::from).collect()));
        assert_eq!(find_in(V1, "2:cpuacct:/\n1:cpu:/\n0::/\n"), v1(&["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct"]));
        assert_eq!(find_in(V1, "2:cpuacct:/a\n1:cpu:/b\n"), v1(&["/sys/fs/cgroup/cpu/b", "/sys/fs/cgroup/cpuacct/a"]));
        let joined = "31 24 0:27 /docker/x /c rw - cgroup cgroup rw,cpu,cpuacct\n";
        assert_eq!(find_in(joined, "4:cpu,cpuacct:/docker/x\n"), v1(&["/c"]));
        let unified = "29 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(find_in(unified, "0::/user.slice\n"), Ok(Hierarchy::V2("/sys/fs/cgroup".into())));
        // Version 1 has the controller and is not mounted.
        assert!(find_in(unified, "1:cpu:/\n0::/\n").is_err());
        assert!(find_in("", "").is_err());
    }
}
