//! Network namespaces: the list of them, which one a user means, and how a thread enters one.

pub(crate) mod enter;
pub(crate) mod identity;
pub(crate) mod maker;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chokepoint_model::observation::NetnsId;
use chokepoint_model::reading::Lack;
use chokepoint_recording::Outcome;

use crate::root::{Root, lacked, link_of_path, metadata_of_path, open_path};

/// Most names under `/run/netns` to look at.
const NAMES_MAX: usize = 65_536;
/// Files of nsfs have no content. Their stand-ins in a tree are not read either.
const NAMED_DIRECTORY: &str = "run/netns";

/// A network namespace and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetnsRef {
    /// Inode number of its nsfs file.
    pub id: NetnsId,
    /// Name under `/run/netns`, or "host" for the namespace of process 1.
    pub name: Option<String>,
    /// True for the namespace of process 1.
    pub is_host: bool,
    /// A path that setns(2) can open: `/run/netns/NAME` or `/proc/PID/ns/net`.
    pub path: PathBuf,
}

/// The namespaces of a host, as far as this user may see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespaces {
    /// The host's namespace first, then the named ones by name, then the others by number.
    pub found: Vec<NetnsRef>,
    /// Processes whose namespace may not be read by this user.
    pub unreadable: u32,
}

impl Namespaces {
    /// The one with this number.
    pub fn get(&self, id: NetnsId) -> Option<&NetnsRef> {
        self.found.iter().find(|netns| netns.id == id)
    }

    /// Why the list may be incomplete, if it may.
    pub fn lack(&self) -> Option<Lack> {
        (self.unreadable > 0).then(|| {
            let why = match self.unreadable {
                1 => "this user may not read the network namespace of one process".to_owned(),
                count => format!("this user may not read the network namespaces of {count} processes"),
            };
            Lack { why, needs: lacked("CAP_SYS_PTRACE") }
        })
    }
}

/// Why a namespace could not be found or entered.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// `/proc` could not be read.
    #[error("the processes cannot be listed: {0}")]
    Processes(String),
    /// No name and no process fits.
    #[error("there is no network namespace named \"{wanted}\" and no such process{}", known_text(.known))]
    Unknown {
        /// The user's word.
        wanted: String,
        /// Known names.
        known: Vec<String>,
    },
    /// The process does not exist or is not accessible.
    #[error("the network namespace of process {pid} cannot be read: {why}")]
    Process {
        /// The process.
        pid: u32,
        /// The reason.
        why: String,
    },
    /// The path cannot be opened.
    #[error("{}: {error}", .path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The path is not a network namespace.
    #[error("{} is not a network namespace", .0.display())]
    NotNetns(PathBuf),
    /// The path leads to another namespace than before: the old one is gone.
    #[error("the network namespace {wanted} no longer exists (its path now leads to {found})")]
    Gone {
        /// The old one.
        wanted: NetnsId,
        /// The new one.
        found: NetnsId,
    },
    /// setns(2) failed.
    #[error("the network namespace {id} cannot be entered: {error}")]
    Enter {
        /// The namespace.
        id: NetnsId,
        /// The reason.
        error: io::Error,
    },
    /// A socket or thread could not be created.
    #[error("in the network namespace {id}: {error}")]
    Prepare {
        /// The namespace.
        id: NetnsId,
        /// The reason.
        error: io::Error,
    },
}

impl NetnsError {
    /// The capability that would help.
    pub fn needs(&self) -> Option<&'static str> {
        let error = match self {
            NetnsError::Enter { error, .. } | NetnsError::Open { error, .. } => error,
            NetnsError::Process { .. } => return Some("CAP_SYS_PTRACE"),
            _ => return None,
        };
        (error.kind() == io::ErrorKind::PermissionDenied).then_some("CAP_SYS_ADMIN")
    }
}

fn known_text(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!(" (names: {})", known.join(", ")) }
}

/// The namespace of the calling thread.
pub fn own() -> Result<NetnsId, NetnsError> {
    let path = PathBuf::from("/proc/thread-self/ns/net");
    let link = link_of_path(&path).map_err(|error| NetnsError::Open { path: path.clone(), error })?;
    link.to_str().and_then(id_of_link).ok_or(NetnsError::NotNetns(path))
}

/// The number in "net:[4026531840]" (namespaces(7)).
pub(crate) fn id_of_link(link: &str) -> Option<NetnsId> {
    link.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok().map(NetnsId)
}

/// Every network namespace that a process is in or that has a name.
pub fn list(root: &Root) -> Result<Namespaces, NetnsError> {
    let pids = root.pids().map_err(|outcome| NetnsError::Processes(why(&outcome)))?;
    let mut found: BTreeMap<NetnsId, NetnsRef> = BTreeMap::new();
    let mut unreadable = 0;
    let host = host_of(root);
    for pid in pids {
        match link_of(root, pid) {
            Ok(id) => {
                let path = root.path(&format!("proc/{pid}/ns/net"));
                let is_host = host == Some(id);
                let name = is_host.then(|| "host".to_owned());
                // Processes come in ascending order: the lowest pid stands for its namespace.
                found.entry(id).or_insert(NetnsRef { id, name, is_host, path });
            }
            Err(Outcome::Absent(_, Some(_))) => unreadable += 1,
            Err(_) => {} // The process ended.
        }
    }
    for (id, name, path) in named(root) {
        let netns = found.entry(id).or_insert_with(|| NetnsRef { id, name: None, is_host: false, path: path.clone() });
        if !netns.is_host {
            // A name outlives every process, so it is the better path. The first of several names counts.
            netns.name = Some(name);
            netns.path = path;
        }
    }
    if let Ok(id) = own()
        && root.is_live()
    {
        let path = PathBuf::from("/proc/self/ns/net");
        found.entry(id).or_insert(NetnsRef { id, name: None, is_host: false, path });
    }
    let mut found: Vec<NetnsRef> = found.into_values().collect();
    found.sort_by(|a, b| (!a.is_host, a.name.is_none(), &a.name, a.id).cmp(&(!b.is_host, b.name.is_none(), &b.name, b.id)));
    Ok(Namespaces { found, unreadable })
}

/// The namespace of process 1. If a security policy hides it even from root: that of the kernel's threads, whose parent is process 2 wherever they are visible.
fn host_of(root: &Root) -> Option<NetnsId> {
    let is_kernel = || matches!(root.read("proc/2/comm", 64, None), Outcome::Ok(comm) if comm == b"kthreadd\n");
    link_of(root, 1).ok().or_else(|| is_kernel().then(|| link_of(root, 2).ok()).flatten())
}

pub(crate) fn link_of(root: &Root, pid: u32) -> Result<NetnsId, Outcome> {
    match root.link_process(pid, "ns/net", Some("CAP_SYS_PTRACE")) {
        Outcome::Ok(link) => {
            let link = String::from_utf8_lossy(&link);
            id_of_link(&link).ok_or_else(|| Outcome::Failed(format!("\"{link}\" names no network namespace"), None))
        }
        lack => Err(lack),
    }
}

/// The named namespaces in descending order of name: the caller lets later entries override earlier ones.
fn named(root: &Root) -> Vec<(NetnsId, String, PathBuf)> {
    let (mut names, _) = root.names(NAMED_DIRECTORY, NAMES_MAX, None).unwrap_or_default();
    names.sort_by(|a, b| b.cmp(a));
    let path = |name: &std::ffi::OsString| root.path(NAMED_DIRECTORY).join(name);
    names
        .iter()
        .filter_map(|name| {
            let path = path(name);
            // A crash can leave a name behind as an empty file of the ordinary file system.
            is_netns(root, &path).ok().filter(|is| *is)?;
            Some((NetnsId(metadata_of_path(&path).ok()?.ino()), name.to_string_lossy().into_owned(), path))
        })
        .collect()
}

/// True for a path on nsfs. In a tree of files, which has no nsfs: for a file.
fn is_netns(root: &Root, path: &Path) -> io::Result<bool> {
    /// `NSFS_MAGIC` (linux/magic.h).
    const NSFS_MAGIC: u64 = 0x6e73_6673;
    if !root.is_live() {
        return Ok(metadata_of_path(path)?.is_file());
    }
    Ok(rustix::fs::statfs(path)?.f_type as u64 == NSFS_MAGIC)
}

/// The namespace behind a path: a bound nsfs file or a link such as `/proc/PID/ns/net`.
fn id_of_path(root: &Root, path: &Path) -> Result<NetnsId, NetnsError> {
    let file = open_path(path).map_err(|error| NetnsError::Open { path: path.to_path_buf(), error })?;
    id_of_file(root, path, &file)
}

fn id_of_file(root: &Root, path: &Path, file: &std::fs::File) -> Result<NetnsId, NetnsError> {
    /// `NS_GET_NSTYPE`: `_IO(0xb7, 0x3)` (ioctl_nsfs(2)).
    const NS_GET_NSTYPE: u32 = 0xb703;
    let open_error = |error| NetnsError::Open { path: path.to_path_buf(), error };
    if !is_netns(root, path).map_err(open_error)? {
        return Err(NetnsError::NotNetns(path.to_path_buf()));
    }
    if root.is_live() {
        // SAFETY: this request takes no argument and gives the type as its result.
        let kind = unsafe { libc::ioctl(file.as_raw_fd(), NS_GET_NSTYPE as _) };
        if kind != libc::CLONE_NEWNET {
            return Err(NetnsError::NotNetns(path.to_path_buf()));
        }
    }
    Ok(NetnsId(file.metadata().map_err(open_error)?.ino()))
}

/// The namespace that a user means: a path if it contains a slash, else a name under `/run/netns` (or "host"), else a process id.
pub fn resolve(root: &Root, wanted: &str) -> Result<NetnsRef, NetnsError> {
    let namespaces = list(root)?;
    if wanted.contains('/') {
        return of_path(&namespaces, root, Path::new(wanted));
    }
    if let Some(netns) = namespaces.found.iter().find(|netns| netns.name.as_deref() == Some(wanted)) {
        return Ok(netns.clone());
    }
    let by_name = root.path(NAMED_DIRECTORY).join(wanted);
    if !wanted.is_empty() && wanted != "." && wanted != ".." && metadata_of_path(&by_name).is_ok() {
        return of_path(&namespaces, root, &by_name); // A second name of one namespace.
    }
    match wanted.parse::<u32>() {
        Ok(pid) => of_process(root, pid).map(|found| namespaces.get(found.id).cloned().unwrap_or(found)),
        Err(_) => Err(NetnsError::Unknown {
            wanted: wanted.to_owned(),
            known: namespaces.found.iter().filter_map(|netns| netns.name.clone()).collect(),
        }),
    }
}

/// The namespace of a process, without its name.
pub(crate) fn of_process(root: &Root, pid: u32) -> Result<NetnsRef, NetnsError> {
    let id = link_of(root, pid).map_err(|outcome| NetnsError::Process { pid, why: why(&outcome) })?;
    Ok(NetnsRef { id, name: None, is_host: false, path: root.path(&format!("proc/{pid}/ns/net")) })
}

fn of_path(namespaces: &Namespaces, root: &Root, path: &Path) -> Result<NetnsRef, NetnsError> {
    let id = id_of_path(root, path)?;
    Ok(namespaces.get(id).cloned().unwrap_or(NetnsRef { id, name: None, is_host: false, path: path.to_path_buf() }))
}

fn why(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ok(_) => String::new(),
        Outcome::Absent(why, _) | Outcome::Failed(why, _) => why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree() -> (tempfile::TempDir, Root) {
        let tree = tempfile::tempdir().unwrap();
        for (pid, link) in [(1, "net:[100]"), (20, "net:[100]"), (30, "net:[200]"), (31, "net:[200]"), (40, "mnt:[7]")] {
            let directory = tree.path().join(format!("proc/{pid}/ns"));
            std::fs::create_dir_all(&directory).unwrap();
            symlink(link, directory.join("net")).unwrap();
        }
        std::fs::create_dir_all(tree.path().join("proc/50")).unwrap(); // It ended.
        std::fs::create_dir_all(tree.path().join("run/netns")).unwrap();
        std::fs::write(tree.path().join("run/netns/blue"), b"").unwrap();
        let root = Root::new(tree.path());
        (tree, root)
    }

    #[test]
    fn the_hosts_first_then_names_then_numbers() {
        let (_tree, root) = tree();
        let namespaces = list(&root).unwrap();
        let names: Vec<_> = namespaces.found.iter().map(|netns| netns.name.as_deref()).collect();
        assert_eq!(names, [Some("host"), Some("blue"), None]);
        assert_eq!((namespaces.found[0].id, namespaces.found[2].id), (NetnsId(100), NetnsId(200)));
        assert!(namespaces.found[0].is_host && !namespaces.found[2].is_host);
        assert_eq!(namespaces.found[2].path, root.path("proc/30/ns/net"));
        assert_eq!(namespaces.lack(), None);
    }

    #[test]
    fn if_process_one_is_hidden_the_kernels_threads_stand_for_it() {
        let (tree, root) = tree();
        std::fs::remove_file(tree.path().join("proc/1/ns/net")).unwrap();
        assert!(!list(&root).unwrap().found[0].is_host);
        std::fs::create_dir_all(tree.path().join("proc/2/ns")).unwrap();
        symlink("net:[200]", tree.path().join("proc/2/ns/net")).unwrap();
        std::fs::write(tree.path().join("proc/2/comm"), b"bash\n").unwrap();
        assert!(!list(&root).unwrap().found[0].is_host, "in a container process 2 is any process");
        std::fs::write(tree.path().join("proc/2/comm"), b"kthreadd\n").unwrap();
        let namespaces = list(&root).unwrap();
        assert_eq!((namespaces.found[0].id, namespaces.found[0].name.as_deref()), (NetnsId(200), Some("host")));
    }

    #[test]
    fn a_user_may_name_it_in_four_ways() {
        let (tree, root) = tree();
        assert_eq!(resolve(&root, "host").unwrap().id, NetnsId(100));
        assert_eq!(resolve(&root, "blue").unwrap().name.as_deref(), Some("blue"));
        assert_eq!(resolve(&root, "31").unwrap().id, NetnsId(200));
        let path = tree.path().join("run/netns/blue");
        assert_eq!(resolve(&root, path.to_str().unwrap()).unwrap().name.as_deref(), Some("blue"));
    }

    #[test]
    fn errors_list_the_known_names() {
        let (_tree, root) = tree();
        let text = resolve(&root, "green").unwrap_err().to_string();
        assert!(text.contains("\"green\"") && text.contains("host, blue"), "{text}");
        assert!(resolve(&root, "99").unwrap_err().to_string().contains("process 99"));
        assert!(resolve(&root, "40").unwrap_err().to_string().contains("names no network namespace"));
        assert!(resolve(&root, "").is_err() && resolve(&root, "..").is_err());
        assert!(resolve(&root, "/no/such/path").unwrap_err().to_string().contains("/no/such/path"));
        assert!(resolve(&Root::default(), "/dev/null").unwrap_err().to_string().contains("not a network namespace"));
    }

    #[test]
    fn the_running_host() {
        let root = Root::default();
        let namespaces = list(&root).unwrap();
        let own = own().unwrap();
        assert!(namespaces.get(own).is_some());
        assert_eq!(resolve(&root, &std::process::id().to_string()).unwrap().id, own);
        assert_eq!(resolve(&root, "/proc/self/ns/net").unwrap().id, own);
    }
}
