//! Readings of one cgroup: its CPU limit, its CPU use, and how often it was throttled.

use std::collections::BTreeMap;
use std::fmt;

/// Most levels of a hierarchy that are read, including the cgroup itself.
const LEVELS_MAX: usize = 64;

/// Version of the cgroup hierarchy (cgroups(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CgroupVersion {
    /// The hierarchy with the controller `cpu`.
    V1,
    /// The unified hierarchy.
    V2,
}

/// A cgroup by its path in the reader's cgroup namespace. Written "v1:/docker/ab" or "v2:/system.slice/nginx.service".
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CgroupId {
    /// Version of its hierarchy.
    pub version: CgroupVersion,
    /// Path from the root of the hierarchy, which is "/".
    pub path: String,
}

impl CgroupVersion {
    /// The file with a cgroup's share of CPU time, and the share that each has unless somebody changes it (Documentation/admin-guide/cgroup-v2.rst, "cpu.weight"; version 1:
    /// kernel/sched/sched.h, NICE_0_LOAD).
    pub fn usual_share(self) -> (&'static str, u64) {
        match self {
            Self::V1 => ("cpu.shares", 1024),
            Self::V2 => ("cpu.weight", 100),
        }
    }
}

impl CgroupId {
    /// The cgroup that limits the CPU of a process, from its paths by controller (`/proc/PID/cgroup`).
    pub fn of_cpu(paths: &BTreeMap<String, String>) -> Option<Self> {
        Self::of_controller(paths, "cpu")
    }

    /// The cgroup that limits how many processes and threads there are beside a process, from its paths by controller.
    pub fn of_tasks(paths: &BTreeMap<String, String>) -> Option<Self> {
        Self::of_controller(paths, "pids")
    }

    /// The cgroups that limit what a process does with disks, from its paths by controller: version 1's own, whose limits do not include those below it, and version 2's with all above it.
    pub fn of_io(paths: &BTreeMap<String, String>) -> Vec<Self> {
        let own = Self::of_controller(paths, "blkio");
        own.map_or_else(Vec::new, |own| if own.version == CgroupVersion::V1 { vec![own] } else { own.levels() })
    }

    /// The cgroup to which a controller of version 1 applies, or else that of version 2. If version 1 has the controller, version 2 cannot have it: each is in one hierarchy only.
    fn of_controller(paths: &BTreeMap<String, String>, controller: &str) -> Option<Self> {
        let (version, path) = match (paths.get(controller), paths.get("")) {
            (Some(path), _) => (CgroupVersion::V1, path),
            (None, Some(path)) => (CgroupVersion::V2, path),
            (None, None) => return None,
        };
        path.starts_with('/').then(|| Self { version, path: path.clone() })
    }

    /// The cgroups with which a process can be frozen, from its paths by controller: version 1's, which has a controller for it, and version 2's, which needs none. The root cannot be frozen.
    pub fn freezable(paths: &BTreeMap<String, String>) -> Vec<Self> {
        let of = |version, controller: &str| {
            let path = paths.get(controller).filter(|path| path.starts_with('/') && path.as_str() != "/")?;
            Some(Self { version, path: path.clone() })
        };
        [of(CgroupVersion::V1, "freezer"), of(CgroupVersion::V2, "")].into_iter().flatten().collect()
    }

    /// Parses the written form of a [`CgroupId`]. `None` if the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let (version, path) = text.split_once(':')?;
        let version = match version {
            "v1" => CgroupVersion::V1,
            "v2" => CgroupVersion::V2,
            _ => return None,
        };
        path.starts_with('/').then(|| Self { version, path: path.to_owned() })
    }

    /// The cgroup and its ancestors up to the root; the limit of each applies. At most 64: the outermost are left out.
    pub fn levels(&self) -> Vec<Self> {
        let at = |path: &str| Self { version: self.version, path: path.to_owned() };
        let mut path = self.path.trim_end_matches('/');
        let mut levels = Vec::new();
        while !path.is_empty() && levels.len() < LEVELS_MAX {
            levels.push(at(path));
            path = path.rfind('/').map_or("", |end| path[..end].trim_end_matches('/'));
        }
        if levels.len() < LEVELS_MAX {
            levels.push(at("/"));
        }
        levels
    }

    /// True if the other cgroup is this one or below it.
    pub fn holds(&self, other: &Self) -> bool {
        let rest = other.path.strip_prefix(self.path.trim_end_matches('/'));
        self.version == other.version && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for CgroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = match self.version {
            CgroupVersion::V1 => "v1",
            CgroupVersion::V2 => "v2",
        };
        write!(f, "{version}:{}", self.path)
    }
}

/// CPU bandwidth of one cgroup (Documentation/scheduler/sched-bwc.rst; version 2: Documentation/admin-guide/cgroup-v2.rst). Counters start when the cgroup is
/// created and include all cgroups below it, except the throttling counters, which are its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CgroupCpu {
    /// Directory of its files, as the reader sees it.
    pub dir: String,
    /// CPU time in each period, microseconds (`cpu.cfs_quota_us`, `cpu.max`); `None` is unlimited.
    pub quota_us: Option<u64>,
    /// Length of a period, microseconds; zero if there is no limit.
    pub period_us: u64,
    /// Periods in which a process ran or was runnable (nr_periods).
    pub periods: Option<u64>,
    /// Periods that ended with the cgroup throttled (nr_throttled).
    pub throttled_periods: Option<u64>,
    /// Time throttled, summed over the throttled cores, nanoseconds (`throttled_time`, `throttled_usec`).
    pub throttled_ns: Option<u64>,
    /// CPU time used by its processes, nanoseconds (`cpuacct.usage`, `usage_usec`).
    pub used_ns: Option<u64>,
    /// True if the limit's file is writable by its mode and its mount.
    pub writable: Option<bool>,
    /// Its share of CPU time beside its siblings (`cpu.shares`, `cpu.weight`; zero in a group of `cpu.idle`). `None` where it has none (the root; version 2 without the controller), and
    /// in recordings of older versions.
    pub share: Option<u64>,
}

/// Whether a cgroup is frozen, by itself or with one above it: none of its processes runs (Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst; version 2:
/// Documentation/admin-guide/cgroup-v2.rst, "cgroup.freeze").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Freezer {
    /// Directory of its files, as the reader sees it.
    pub dir: String,
    /// True if it is frozen, or about to be.
    pub is_frozen: bool,
}

/// Processes and threads of one cgroup and of all below it (Documentation/admin-guide/cgroup-v1/pids.rst; version 2: Documentation/admin-guide/cgroup-v2.rst, "PID").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CgroupTasks {
    /// Directory of its files, as the reader sees it.
    pub dir: String,
    /// The most that may exist (`pids.max`); `None` is unlimited.
    pub limit: Option<u64>,
    /// How many exist (`pids.current`).
    pub current: u64,
    /// How often fork(2) or clone(2) failed for this limit since the cgroup was created (`max` of `pids.events`). `None` if this kernel does not count it.
    pub refused: Option<u64>,
}

/// What is counted and limited of the work of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoKind {
    /// Bytes read.
    ReadBytes,
    /// Bytes written.
    WrittenBytes,
    /// Read operations.
    Reads,
    /// Write operations.
    Writes,
}

impl IoKind {
    /// All.
    pub const ALL: [Self; 4] = [Self::ReadBytes, Self::WrittenBytes, Self::Reads, Self::Writes];

    /// True for bytes, false for operations.
    pub fn is_bytes(self) -> bool {
        matches!(self, Self::ReadBytes | Self::WrittenBytes)
    }

    /// Its word in sentences.
    pub fn word(self) -> &'static str {
        match self {
            Self::ReadBytes => "read-bytes",
            Self::WrittenBytes => "written-bytes",
            Self::Reads => "reads",
            Self::Writes => "writes",
        }
    }

    /// The file of version 1 with its limits (Documentation/admin-guide/cgroup-v1/blkio-controller.rst).
    pub fn file_v1(self) -> &'static str {
        match self {
            Self::ReadBytes => "blkio.throttle.read_bps_device",
            Self::WrittenBytes => "blkio.throttle.write_bps_device",
            Self::Reads => "blkio.throttle.read_iops_device",
            Self::Writes => "blkio.throttle.write_iops_device",
        }
    }

    /// The file of version 1 with what was done.
    pub fn counters_v1(self) -> &'static str {
        if self.is_bytes() { "blkio.throttle.io_service_bytes" } else { "blkio.throttle.io_serviced" }
    }

    /// The key of version 2 in `io.max`, and that in `io.stat` (Documentation/admin-guide/cgroup-v2.rst, "IO Interface Files").
    pub fn keys_v2(self) -> (&'static str, &'static str) {
        match self {
            Self::ReadBytes => ("rbps", "rbytes"),
            Self::WrittenBytes => ("wbps", "wbytes"),
            Self::Reads => ("riops", "rios"),
            Self::Writes => ("wiops", "wios"),
        }
    }
}

/// What one cgroup may do a second with each disk, and what it has done. The counters of version 2 include all cgroups below it, as its limits do; those of version 1 are its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CgroupIo {
    /// Directory of its files, as the reader sees it.
    pub dir: String,
    /// Limits a second, by disk ("254:0", its major and minor number) and kind.
    pub limits: BTreeMap<(String, IoKind), u64>,
    /// What was done since the cgroup was created.
    pub done: BTreeMap<(String, IoKind), u64>,
}

impl CgroupCpu {
    /// The limit in cores. `None` if there is none.
    pub fn limit_cores(&self) -> Option<f64> {
        self.quota_us.filter(|_| self.period_us > 0).map(|quota| quota as f64 / self.period_us as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> CgroupId {
        CgroupId::parse(text).unwrap()
    }

    #[test]
    fn the_controller_tells_the_hierarchy() {
        let paths = |all: &[(&str, &str)]| all.iter().map(|(name, path)| ((*name).to_owned(), (*path).to_owned())).collect();
        assert_eq!(CgroupId::of_cpu(&paths(&[("cpu", "/a"), ("", "/b")])), Some(id("v1:/a")), "hybrid");
        assert_eq!(CgroupId::of_cpu(&paths(&[("name=systemd", "/a"), ("", "/b")])), Some(id("v2:/b")));
        assert_eq!(CgroupId::of_cpu(&paths(&[("memory", "/a")])), None);
        assert_eq!(CgroupId::of_cpu(&paths(&[])), None);
    }

    #[test]
    fn levels_go_up_to_the_root() {
        let levels = |text: &str| id(text).levels().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(levels("v2:/a/b:c"), ["v2:/a/b:c", "v2:/a", "v2:/"]);
        assert_eq!(levels("v1:/"), ["v1:/"]);
        assert_eq!(levels("v1:/a//b/"), ["v1:/a//b", "v1:/a", "v1:/"]);
        assert_eq!(id(&format!("v1:{}", "/x".repeat(1_000))).levels().len(), LEVELS_MAX);
    }

    #[test]
    fn a_cgroup_holds_what_is_below_it_by_whole_names() {
        assert!(id("v1:/a").holds(&id("v1:/a")) && id("v1:/a").holds(&id("v1:/a/b")) && id("v1:/").holds(&id("v1:/a")));
        assert!(!id("v1:/a").holds(&id("v1:/ab")) && !id("v1:/a").holds(&id("v2:/a")) && !id("v1:/a/b").holds(&id("v1:/a")));
    }

    #[test]
    fn what_is_no_cgroup_is_none() {
        for wrong in ["", "v1", "v1:", "v1:a", "v3:/a", ":/a", "/a"] {
            assert_eq!(CgroupId::parse(wrong), None, "{wrong:?}");
        }
        assert_eq!(id("v1:/a:b").to_string(), "v1:/a:b");
    }

    #[test]
    fn a_limit_needs_a_period() {
        let cpu = |quota_us, period_us| CgroupCpu { quota_us, period_us, ..CgroupCpu::default() };
        assert_eq!(cpu(Some(50_000), 100_000).limit_cores(), Some(0.5));
        assert_eq!((cpu(None, 100_000).limit_cores(), cpu(Some(1), 0).limit_cores()), (None, None));
    }
}
