//! Kernel parameters (sysctl(8)) as files under `/proc/sys`, read and written in the right network namespace.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chokepoint_model::observation::NetnsId;
use rustix::io::Errno;

use crate::error::ApplyError;
use crate::netns::{self, NetnsHandle, NoNetns};
use crate::record::Intent;
use crate::setting::{Found, Setting, Toward};

/// Longest value, bytes: one page, as in the kernel's handlers.
const VALUE_BYTES_MAX: usize = 4096;
const NEEDS_ADMIN: &str = "CAP_NET_ADMIN in the namespace's user namespace, or root";
const NEEDS_ENTER: &str = "CAP_SYS_ADMIN (run as root)";

/// One kernel parameter in one network namespace.
#[derive(Debug)]
pub(crate) struct Sysctl {
    key: String,
    path: PathBuf,
    place: NetnsHandle,
    on_host: bool,
}

impl Sysctl {
    /// Finds the namespace and the file's path. Opens nothing yet.
    pub(crate) fn open(key: &str, netns: NetnsId, root: &Path) -> Result<Self, ApplyError> {
        let below = key_path(key).map_err(|why| bad(key, why))?;
        let place = NetnsHandle::find(netns, root).map_err(|error| match error {
            NoNetns::Gone => ApplyError::NetnsGone { key: key.to_owned(), netns },
            NoNetns::Hidden => ApplyError::NoPermission {
                key: key.to_owned(),
                why: format!("the namespace {netns} is not among those that this user may inspect"),
                needs: NEEDS_ENTER,
            },
        })?;
        Ok(Self { key: key.to_owned(), path: root.join("proc/sys").join(below), place, on_host: netns::is_host(root) })
    }

    fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> Result<io::Result<T>, ApplyError> {
        self.place.run(work).map_err(|error| match error {
            Errno::PERM => ApplyError::NoPermission {
                key: self.key.clone(),
                why: "its network namespace may not be entered".to_owned(),
                needs: NEEDS_ENTER,
            },
            error => ApplyError::Io { key: self.key.clone(), source: error.into() },
        })
    }

    fn failed(&self, error: io::Error, value: Option<&str>) -> ApplyError {
        let key = self.key.clone();
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::NotFound, _) => ApplyError::Missing { key },
            (io::ErrorKind::PermissionDenied, _) => ApplyError::NoPermission { key, why: self.why_denied(), needs: NEEDS_ADMIN },
            (io::ErrorKind::ReadOnlyFilesystem, _) => ApplyError::NoPermission {
                key,
                why: "/proc/sys is mounted read-only (a container?)".to_owned(),
                needs: "the host's own /proc",
            },
            (_, Some(libc::EINVAL | libc::ERANGE | libc::EBUSY | libc::EOPNOTSUPP)) if value.is_some() => {
                ApplyError::Refused { key, value: value.unwrap_or_default().to_owned(), source: error }
            }
            _ => ApplyError::Io { key, source: error },
        }
    }

    /// A file without any write permission is read-only for everyone in this namespace: it belongs to another one.
    fn why_denied(&self) -> String {
        let mode = self.within(|| std::fs::metadata(&self.path).map(|meta| meta.mode()));
        match mode {
            Ok(Ok(mode)) if mode & 0o222 == 0 => {
                "it is read-only in this network namespace; set it in the host's (the first) namespace".to_owned()
            }
            _ => "the kernel refused".to_owned(),
        }
    }

    /// Writes a value without verifying it.
    fn write(&self, value: &str) -> Result<(), ApplyError> {
        self.check(value)?;
        let line = format!("{value}\n");
        let written = self.within(|| {
            let mut file = OpenOptions::new().write(true).truncate(true).open(&self.path)?;
            // The kernel takes each write(2) as a whole value.
            match file.write(line.as_bytes())? {
                written if written == line.len() => Ok(()),
                _ => Err(io::Error::new(io::ErrorKind::WriteZero, "only part of the value was accepted")),
            }
        })?;
        written.map_err(|error| self.failed(error, Some(value)))
    }
}

impl Setting for Sysctl {
    fn read(&self) -> Result<Found, ApplyError> {
        let read = self.within(|| {
            let mut bytes = Vec::new();
            OpenOptions::new().read(true).open(&self.path)?.take(VALUE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
            Ok((bytes, if self.on_host { netns::own_cookie() } else { None }))
        })?;
        let (bytes, place) = read.map_err(|error| self.failed(error, None))?;
        let text = std::str::from_utf8(&bytes).map_err(|_| bad(&self.key, "its value is not text"))?.trim_end_matches('\n');
        if bytes.len() > VALUE_BYTES_MAX || text.contains('\n') {
            return Err(bad(&self.key, "its value has more than one line and could not be restored"));
        }
        Ok(Found { value: text.trim_end().to_owned(), place })
    }

    fn check(&self, value: &str) -> Result<(), ApplyError> {
        check_value(value).map_err(|why| bad(&self.key, why))
    }

    fn put(&self, intent: &Intent, toward: Toward) -> Result<(), ApplyError> {
        self.write(match toward {
            Toward::New => intent.change.to(),
            Toward::Old => &intent.was,
        })
    }

    fn same(&self, one: &str, other: &str) -> bool {
        one.split_ascii_whitespace().eq(other.split_ascii_whitespace())
    }
}

fn bad(key: &str, why: &str) -> ApplyError {
    ApplyError::BadChange { key: key.to_owned(), why: why.to_owned() }
}

fn check_value(value: &str) -> Result<(), &'static str> {
    if value.len() >= VALUE_BYTES_MAX {
        return Err("the value is longer than a page");
    }
    if value.contains(|c: char| c.is_control() && c != '\t') {
        return Err("the value contains a line feed or another control character");
    }
    Ok(())
}

/// The path of a key below `/proc/sys`. The first separator in the key decides (sysctl(8)): after a dot, a slash stands for a dot within a name
/// ("net.ipv4.conf.eth0/1.rp_filter" is interface "eth0.1"); after a slash, a dot is a dot.
fn key_path(key: &str) -> Result<String, &'static str> {
    const KEY_BYTES_MAX: usize = 255;
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err("a key is 1 to 255 bytes long");
    }
    if key.starts_with(['/', '.']) {
        return Err("a key begins with a name");
    }
    if key.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err("the key contains a blank or a control character");
    }
    let swapped = |c| match c {
        '.' => '/',
        '/' => '.',
        c => c,
    };
    let path: String = match key.find(['.', '/']) {
        Some(at) if key[at..].starts_with('.') => key.chars().map(swapped).collect(),
        _ => key.to_owned(),
    };
    if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Err("a part of the key is empty or leads elsewhere");
    }
    Ok(path)
}

/// True where both keys name the same file.
pub(crate) fn same_key(one: &str, other: &str) -> bool {
    one == other || matches!((key_path(one), key_path(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_paths_by_the_rules_of_sysctl() {
        for (key, path) in [
            ("net.core.somaxconn", "net/core/somaxconn"),
            ("net/core/somaxconn", "net/core/somaxconn"),
            ("net.ipv4.conf.eth0/1.rp_filter", "net/ipv4/conf/eth0.1/rp_filter"),
            ("net/ipv4/conf/eth0.1/rp_filter", "net/ipv4/conf/eth0.1/rp_filter"),
            ("somaxconn", "somaxconn"),
        ] {
            assert_eq!(key_path(key), Ok(path.to_owned()), "{key}");
        }
        for key in [
            "",
            "/etc/passwd",
            "..",
            ".",
            "../x",
            "net/../../etc",
            "net..core",
            "net.core.",
            "net/./x",
            "net.//.x",
            "a b",
            "a\nb",
            "a\0b",
            "net.core.//",
            ".net",
            "net/",
            "a\u{85}b",
        ] {
            assert!(key_path(key).is_err(), "{key:?}");
        }
        assert!(key_path(&"a".repeat(256)).is_err());
        assert!(same_key("net.core.somaxconn", "net/core/somaxconn"));
        assert!(!same_key("net.core.somaxconn", "net.core.rmem_max"));
    }

    #[test]
    fn values_are_one_line() {
        assert!(check_value("32768\t60999").is_ok());
        for value in ["a\nb", "a\0b", "a\rb", &"9".repeat(4096)] {
            assert!(check_value(value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn a_tree_of_files_is_read_and_written_like_a_host() {
        let tree = tempfile::tempdir().unwrap();
        let dir = tree.path().join("proc/sys/net/ipv4");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("ip_local_port_range"), "32768\t60999\n").unwrap();
        let sysctl = Sysctl::open("net.ipv4.ip_local_port_range", NetnsId(7), tree.path()).unwrap();
        assert_eq!(sysctl.read().unwrap().value, "32768\t60999");
        assert!(sysctl.same("32768\t60999", " 32768  60999 "));
        assert!(!sysctl.same("3276860999", "32768 60999"));
        sysctl.write("1 2").unwrap();
        assert_eq!(std::fs::read_to_string(dir.join("ip_local_port_range")).unwrap(), "1 2\n");

        std::fs::write(dir.join("lines"), "a\nb\n").unwrap();
        let lines = Sysctl::open("net.ipv4.lines", NetnsId(7), tree.path()).unwrap();
        assert!(matches!(lines.read(), Err(ApplyError::BadChange { .. })));
        let missing = Sysctl::open("net.ipv4.missing", NetnsId(7), tree.path()).unwrap();
        assert!(matches!(missing.read(), Err(ApplyError::Missing { .. })));
        assert!(matches!(missing.write("1"), Err(ApplyError::Missing { .. })));
    }
}
