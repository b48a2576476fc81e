//! Limits of a cgroup (cgroups(7)) as files in its directory.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::error::ApplyError;
use crate::netns;
use crate::record::Intent;
use crate::setting::{Found, Setting, Toward};

/// The quota of version 1, one number; -1 for none (Documentation/scheduler/sched-bwc.rst).
const QUOTA: &str = "cpu.cfs_quota_us";
/// The quota of version 2, a number or "max", and the period (Documentation/admin-guide/cgroup-v2.rst).
const MAX: &str = "cpu.max";
/// The kernel refuses a quota below a millisecond (min_cfs_quota_period, kernel/sched/core.c).
const QUOTA_US_MIN: u64 = 1_000;
/// Longest value that is read, bytes; two numbers are shorter.
const VALUE_BYTES_MAX: usize = 256;
const NEEDS: &str = "root, and a writable cgroup file system";

/// One limit of one cgroup.
#[derive(Debug)]
pub(crate) struct Cgroup {
    key: String,
    file: String,
    dir: PathBuf,
}

impl Cgroup {
    /// Checks that the directory is a cgroup and the file a quota. Opens nothing yet.
    pub(crate) fn open(dir: &str, file: &str, root: &Path) -> Result<Self, ApplyError> {
        let key = format!("{file} of {dir}");
        let bad = |why: &str| ApplyError::BadChange { key: key.clone(), why: why.to_owned() };
        if ![QUOTA, MAX].contains(&file) {
            return Err(bad("it is not a CPU limit"));
        }
        let mut parts = Path::new(dir).components();
        let is_plain = parts.next() == Some(Component::RootDir) && parts.all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || dir.contains(char::is_control) {
            return Err(bad("its path does not begin at the root"));
        }
        let dir = root.join(dir.trim_start_matches('/'));
        if netns::is_host(root) && dir.exists() && !is_cgroup(&dir) {
            return Err(bad("its directory is not a cgroup"));
        }
        Ok(Self { file: file.to_owned(), dir, key })
    }

    fn failed(&self, error: io::Error, value: Option<&str>) -> ApplyError {
        let key = self.key.clone();
        let denied = |key, why: &str| ApplyError::NoPermission { key, why: why.to_owned(), needs: NEEDS };
        match (error.kind(), error.raw_os_error(), value) {
            // Removing a cgroup while its file is open gives ENODEV.
            (io::ErrorKind::NotFound, ..) | (_, Some(libc::ENODEV), _) => ApplyError::Missing { key },
            (io::ErrorKind::PermissionDenied, ..) => denied(key, "the kernel refused"),
            (io::ErrorKind::ReadOnlyFilesystem, ..) => denied(key, "it is mounted read-only (a container?)"),
            // Version 1: more than the parent's quota, or less than a child's.
            (_, Some(libc::EINVAL | libc::ERANGE | libc::EBUSY), Some(value)) => {
                ApplyError::Refused { key, value: value.to_owned(), source: error }
            }
            _ => ApplyError::Io { key, source: error },
        }
    }

    fn write(&self, value: &str) -> io::Result<()> {
        let line = format!("{value}\n");
        let mut file = OpenOptions::new().write(true).truncate(true).open(self.dir.join(&self.file))?;
        match file.write(line.as_bytes())? {
            written if written == line.len() => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::WriteZero, "only part of the value was accepted")),
        }
    }
}

/// True where a directory is in a cgroup file system.
fn is_cgroup(dir: &Path) -> bool {
    /// `f_type` of both versions (statfs(2)).
    const MAGIC: [u64; 2] = [0x0027_e0eb, 0x6367_7270];
    rustix::fs::statfs(dir).is_ok_and(|stat| MAGIC.contains(&(stat.f_type as u64)))
}

impl Setting for Cgroup {
    /// The place is the directory's inode, which a 64-bit kernel never reuses within one boot.
    fn read(&self) -> Result<Found, ApplyError> {
        let read = || {
            let place = std::fs::metadata(&self.dir)?.ino();
            let mut text = String::new();
            OpenOptions::new().read(true).open(self.dir.join(&self.file))?.take(VALUE_BYTES_MAX as u64).read_to_string(&mut text)?;
            Ok(Found { value: text.trim_end().to_owned(), place: Some(place) })
        };
        read().map_err(|error| self.failed(error, None))
    }

    fn put(&self, intent: &Intent, toward: Toward) -> Result<(), ApplyError> {
        let value = match toward {
            Toward::New => intent.change.to(),
            Toward::Old => &intent.was,
        };
        self.check(value)?;
        self.write(value).map_err(|error| self.failed(error, Some(value)))
    }

    fn check(&self, value: &str) -> Result<(), ApplyError> {
        let is_time = |word: &str| word.parse::<u64>().is_ok_and(|us| us >= QUOTA_US_MIN);
        let words: Vec<&str> = value.split(' ').collect();
        let is_value = match (self.file.as_str(), &words[..]) {
            (QUOTA, [quota]) => *quota == "-1" || is_time(quota),
            (MAX, [quota, period]) => (*quota == "max" || is_time(quota)) && is_time(period),
            _ => false,
        };
        if is_value {
            Ok(())
        } else {
            Err(ApplyError::BadChange { key: self.key.clone(), why: format!("\"{value}\" is not such a limit") })
        }
    }

    fn same(&self, one: &str, other: &str) -> bool {
        one.split_ascii_whitespace().eq(other.split_ascii_whitespace())
    }

    fn replaced(&self) -> &'static str {
        "its cgroup no longer exists; another one has its name"
    }
}
