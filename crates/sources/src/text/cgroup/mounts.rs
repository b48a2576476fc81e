//! The mount of a cgroup hierarchy, from `/proc/PID/mountinfo`.

use chokepoint_model::observation::{CgroupId, CgroupVersion};
use chokepoint_recording::Outcome;

use crate::root::Root;

/// The mounts of a host with some thousand containers take a few megabytes.
const BYTES_MAX: usize = 4 << 20;

/// One mount of a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    /// The cgroup at the mount's root, as seen from this cgroup namespace.
    root: String,
    /// The mount point.
    point: String,
    /// Version 1: its options, including the controllers; `None` for version 2.
    controllers: Option<Vec<String>>,
}

impl Mount {
    /// True if it has this controller for cgroups of this version.
    fn has(&self, version: CgroupVersion, controller: &str) -> bool {
        match (&self.controllers, version) {
            (Some(controllers), CgroupVersion::V1) => controllers.iter().any(|name| name == controller),
            (None, CgroupVersion::V2) => true,
            _ => false,
        }
    }

    /// The directory of a cgroup on it; nothing if the cgroup is not below its root.
    fn dir(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(self.root.trim_end_matches('/'))?;
        let is_below = (rest.is_empty() || rest.starts_with('/')) && !rest.split('/').any(|name| name == "..");
        is_below.then(|| format!("{}{}", self.point.trim_end_matches('/'), rest.trim_end_matches('/')))
    }
}

/// All mounts of cgroup hierarchies that this process, process 1 and the given process see, each with a prefix for its path. The own mounts come first: they
/// need no path through another process's root.
pub(crate) struct Mounts(Vec<(String, Mount)>);

impl Mounts {
    /// Reads the mounts. Inaccessible views are left out: another one may suffice.
    pub(crate) fn read(root: &Root, pid: u32) -> Self {
        let views = [
            ("proc/self/mountinfo".to_owned(), String::new()),
            ("proc/1/mountinfo".to_owned(), "/proc/1/root".to_owned()),
            (format!("proc/{pid}/mountinfo"), format!("/proc/{pid}/root")),
        ];
        let of = |(file, before): &(String, String)| match root.read(file, BYTES_MAX, None) {
            Outcome::Ok(bytes) => parse(&String::from_utf8_lossy(&bytes)).into_iter().map(|mount| (before.clone(), mount)).collect(),
            _ => Vec::new(),
        };
        Self(views.iter().flat_map(of).collect())
    }

    /// The directory with a controller's files of a cgroup. Uses the first view with a fitting mount, and of its mounts the one that shows the most ancestors.
    pub(crate) fn dir(&self, id: &CgroupId, controller: &str) -> Option<String> {
        let fitting = self.0.iter().filter(|(_, mount)| mount.has(id.version, controller));
        let shown: Vec<(&str, &Mount, String)> =
            fitting.filter_map(|(before, mount)| Some((before.as_str(), mount, mount.dir(&id.path)?))).collect();
        let (first, ..) = shown.first()?;
        let own = shown.iter().filter(|(before, ..)| before == first);
        own.min_by_key(|(_, mount, _)| mount.root.len()).map(|(before, _, dir)| format!("{before}{dir}"))
    }
}

/// Reads "id parent major:minor root point options [tags...] - type source options" (proc_pid_mountinfo(5)); lines of other kinds are no
/// cgroups.
fn parse(text: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let (own, kind) = line.split_once(" - ")?;
        let (mut own, mut kind) = (own.split(' ').skip(3), kind.split(' '));
        let (root, point) = (unescape(own.next()?), unescape(own.next()?));
        let (kind, options) = (kind.next()?, kind.nth(1).unwrap_or_default());
        let controllers = match kind {
            "cgroup" => Some(options.split(',').map(str::to_owned).collect()),
            "cgroup2" => None,
            _ => return None,
        };
        Some(Mount { root, point, controllers })
    };
    text.lines().filter_map(mount).collect()
}

/// Blank, tab, newline and backslash are written as three octal digits.
fn unescape(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HYBRID: &str = "24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
        31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 master:2 - cgroup cgroup rw,cpu,cpuacct\n\
        32 24 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";

    fn mounts(text: &str) -> Mounts {
        Mounts(parse(text).into_iter().map(|mount| (String::new(), mount)).collect())
    }

    fn dir(text: &str, id: &str, controller: &str) -> Option<String> {
        mounts(text).dir(&CgroupId::parse(id).unwrap(), controller)
    }

    #[test]
    fn a_controller_is_found_at_the_mount_of_its_hierarchy() {
        assert_eq!(dir(HYBRID, "v1:/a/b", "cpu").as_deref(), Some("/sys/fs/cgroup/cpu,cpuacct/a/b"));
        assert_eq!(dir(HYBRID, "v1:/", "cpuacct").as_deref(), Some("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(dir(HYBRID, "v2:/a b", "cpu").as_deref(), Some("/sys/fs/cgroup/unified/a b"));
        assert_eq!(dir(HYBRID, "v1:/a", "memory"), None);
        assert_eq!(dir("", "v2:/a", "cpu"), None);
    }

    #[test]
    fn a_container_sees_only_its_own_part() {
        let bound = "31 24 0:27 /docker/ab /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
        assert_eq!(dir(bound, "v1:/docker/ab", "cpu").as_deref(), Some("/sys/fs/cgroup/cpu"));
        assert_eq!(dir(bound, "v1:/docker/ab/x", "cpu").as_deref(), Some("/sys/fs/cgroup/cpu/x"));
        assert_eq!((dir(bound, "v1:/docker/abc", "cpu"), dir(bound, "v1:/docker", "cpu")), (None, None));
        // A cgroup outside of the namespace's root is not on its mount.
        assert_eq!(dir("30 24 0:26 / /c rw - cgroup2 cgroup2 rw\n", "v2:/../other", "cpu"), None);
        assert_eq!(dir("30 24 0:26 /.. /c rw - cgroup2 cgroup2 rw\n", "v2:/../other", "cpu").as_deref(), Some("/c/other"));
    }

    #[test]
    fn of_two_mounts_the_one_with_more_levels_is_used() {
        let two = "1 0 0:1 /a /x rw - cgroup2 c rw\n2 0 0:1 / /my\\040cgroups rw - cgroup2 c rw\n";
        assert_eq!(dir(two, "v2:/a/b", "cpu").as_deref(), Some("/my cgroups/a/b"));
    }

    #[test]
    fn mounts_of_another_process_are_used_if_the_reader_has_none() {
        let tree = tempfile::tempdir().unwrap();
        for (pid, text) in [("self", "24 1 8:1 / / rw - ext4 /dev/vda rw\n"), ("1", "bad\n"), ("42", HYBRID)] {
            std::fs::create_dir_all(tree.path().join("proc").join(pid)).unwrap();
            std::fs::write(tree.path().join("proc").join(pid).join("mountinfo"), text).unwrap();
        }
        let mounts = Mounts::read(&Root::new(tree.path()), 42);
        let id = CgroupId::parse("v1:/a").unwrap();
        assert_eq!(mounts.dir(&id, "cpu").as_deref(), Some("/proc/42/root/sys/fs/cgroup/cpu,cpuacct/a"));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_harm(text in "[ -~\n]{0,300}", path in "/[a-z./]{0,20}") {
            let _ = mounts(&text).dir(&CgroupId { version: CgroupVersion::V2, path: path.clone() }, "cpu");
            let hostile = format!("1 2 3 / /p {text} - cgroup2 x rw\n");
            let found = mounts(&hostile).dir(&CgroupId { version: CgroupVersion::V2, path }, "cpu");
            prop_assert!(found.is_none_or(|dir| !dir.split('/').any(|name| name == "..")));
        }
    }
}
