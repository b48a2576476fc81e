//! The state file of a lab: everything that it has created or is about to create. It is written and synced before each step, so that cleaning up
//! needs nothing else.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::machine::process;
use crate::scenario::names;

const SCHEMA: u32 = 1;
/// Most bytes of a state file, which holds the scenario's text, escaped, and little more.
const STATE_BYTES_MAX: u64 = 16 << 20;
/// How long to wait for another process that builds or removes the same lab.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The directory for files that do not outlive a boot: `$CHOKEPOINT_RUN_DIR`, else `/run/chokepoint`.
pub fn run_root() -> PathBuf {
    std::env::var_os("CHOKEPOINT_RUN_DIR").filter(|dir| !dir.is_empty()).map_or_else(|| PathBuf::from("/run/chokepoint"), PathBuf::from)
}

/// What a lab created or was about to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) schema: u32,
    pub(crate) name: String,
    /// After a reboot only the lab's files are left.
    pub(crate) boot_id: String,
    pub(crate) creator: ProcessState,
    /// True where the lab stays when its creator ends.
    pub(crate) outlive: bool,
    /// True once everything is up.
    pub(crate) complete: bool,
    /// True where the lab could not be removed completely.
    #[serde(default)]
    pub(crate) unclean: bool,
    /// Origin and text of the scenario.
    pub(crate) origin: String,
    pub(crate) scenario: String,
    pub(crate) namespaces: Vec<NamespaceState>,
    pub(crate) host_sysctls: Vec<HostSysctlState>,
    /// Parents first.
    #[serde(default)]
    pub(crate) cgroups: Vec<CgroupState>,
    pub(crate) servers: Vec<ServerState>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessState {
    pub(crate) pid: u32,
    pub(crate) start_ticks: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NamespaceState {
    pub(crate) host: String,
    pub(crate) netns: String,
    /// True from just before its creation until its removal.
    pub(crate) begun: bool,
    /// Its inode, known after its creation.
    pub(crate) inode: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostSysctlState {
    pub(crate) key: String,
    pub(crate) ours: String,
    /// True from just before it is set until it is restored.
    pub(crate) begun: bool,
    /// The value found before.
    pub(crate) original: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CgroupState {
    pub(crate) name: String,
    /// Its directories, the one with the quota first. Version 1 may have another for CPU accounting.
    pub(crate) dirs: Vec<PathBuf>,
    /// True from just before its creation until its removal.
    pub(crate) begun: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerState {
    pub(crate) name: String,
    pub(crate) process: ProcessState,
}

/// Identifies the current boot (random(4), `/proc/sys/kernel/random/boot_id`).
pub(crate) fn boot_id() -> String {
    chokepoint_foreign::read_kernel("/proc/sys/kernel/random/boot_id", 1 << 10).map_or_else(|_| String::new(), |id| id.trim().to_owned())
}

/// This process.
pub(crate) fn own_process() -> ProcessState {
    let pid = std::process::id();
    ProcessState { pid, start_ticks: process::read(pid).map_or(0, |process| process.start_ticks) }
}

/// The locked directory of one lab: no other process can build or remove it.
pub(crate) struct LabDir {
    path: PathBuf,
    handle: File,
}

/// The directory of all labs.
pub(crate) fn labs_path(run_root: &Path) -> PathBuf {
    run_root.join("lab")
}

/// Opens a directory and locks it (flock(2)). Starts again if another process replaced it during the wait.
fn lock_directory(path: &Path, deadline: Instant) -> io::Result<Option<File>> {
    loop {
        let handle = File::open(path)?;
        match handle.try_lock() {
            Ok(()) => {
                let same = |meta: &fs::Metadata| handle.metadata().is_ok_and(|own| own.ino() == meta.ino() && own.dev() == meta.dev());
                match fs::metadata(path) {
                    Ok(meta) if same(&meta) => return Ok(Some(handle)),
                    Ok(_) => continue,
                    Err(error) => return Err(error),
                }
            }
            Err(fs::TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Mode of a directory that everyone may pass through, since servers' workers are not root. Whoever could open it could hold its lock for ever (flock(2)).
const PASSED_MODE: u32 = 0o711;
/// Mode of a directory that servers' workers may list.
const LISTED_MODE: u32 = 0o755;

/// Creates a directory. Leaves an existing one as it is.
fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    match fs::DirBuilder::new().mode(mode).create(path) {
        Ok(()) => fs::set_permissions(path, fs::Permissions::from_mode(mode)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Creates a directory that is locked, or takes from other users the right to open an existing one.
fn make_locked_directory(path: &Path) -> io::Result<()> {
    make_directory(path, PASSED_MODE)?;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o044 != 0 { fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o711)) } else { Ok(()) }
}

/// Locks the directory of all labs. Creates it if it is missing.
pub(crate) fn lock_labs(run_root: &Path) -> Result<File, LabError> {
    let path = labs_path(run_root);
    let deadline = Instant::now() + LOCK_WAIT;
    if let Some(parent) = run_root.parent() {
        fs::create_dir_all(parent).map_err(LabError::io("cannot make", parent))?;
    }
    loop {
        make_directory(run_root, LISTED_MODE).map_err(LabError::io("cannot make", run_root))?;
        make_locked_directory(&path).map_err(LabError::io("cannot make", &path))?;
        match lock_directory(&path, deadline) {
            Ok(Some(lock)) => return Ok(lock),
            Ok(None) => return Err(LabError::Busy("(all)".to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound && Instant::now() < deadline => {}
            Err(error) => return Err(LabError::io("cannot lock", &path)(error)),
        }
    }
}

/// Names of the labs that have a directory.
pub(crate) fn lab_names(run_root: &Path) -> Result<Vec<String>, LabError> {
    let path = labs_path(run_root);
    let entries = match fs::read_dir(&path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(LabError::io("cannot list", &path)(error)),
    };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| names::check_name(name).is_ok()).collect();
    names.sort();
    Ok(names)
}

/// Reads the state of a lab without locking it; `None` where there is none (yet).
pub(crate) fn read(run_root: &Path, name: &str) -> Result<Option<State>, LabError> {
    let path = labs_path(run_root).join(name).join("state.json");
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LabError::io("cannot read", &path)(error)),
    };
    let mut bytes = Vec::new();
    file.take(STATE_BYTES_MAX).read_to_end(&mut bytes).map_err(LabError::io("cannot read", &path))?;
    let wrong = |why: String| LabError::State { path: path.clone(), why };
    let state: State = serde_json::from_slice(&bytes).map_err(|error| wrong(format!("it is damaged ({error})")))?;
    if state.schema != SCHEMA {
        return Err(wrong(format!("it has schema {}, and this chokepoint knows {SCHEMA}", state.schema)));
    }
    if state.name != name {
        return Err(wrong(format!("it is of lab \"{}\"", state.name)));
    }
    Ok(Some(state))
}

impl LabDir {
    /// Creates the directory of a new lab. The caller holds the lock of all labs and has checked that the name is free.
    pub(crate) fn create(run_root: &Path, name: &str) -> Result<LabDir, LabError> {
        let path = labs_path(run_root).join(name);
        make_locked_directory(&path).map_err(LabError::io("cannot make", &path))?;
        LabDir::lock(run_root, name)?.ok_or_else(|| LabError::Busy(name.to_owned()))
    }

    /// Locks the directory of a lab; `None` where there is none.
    pub(crate) fn lock(run_root: &Path, name: &str) -> Result<Option<LabDir>, LabError> {
        let path = labs_path(run_root).join(name);
        match lock_directory(&path, Instant::now() + LOCK_WAIT) {
            Ok(Some(handle)) => Ok(Some(LabDir { path, handle })),
            Ok(None) => Err(LabError::Busy(name.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LabError::io("cannot lock", &path)(error)),
        }
    }

    /// The directory for files, configurations and logs of the servers.
    pub(crate) fn run_path(&self) -> PathBuf {
        self.path.join("run")
    }

    /// Creates the run directory.
    pub(crate) fn make_run_path(&self) -> Result<(), LabError> {
        make_directory(&self.run_path(), LISTED_MODE).map_err(LabError::io("cannot make", &self.run_path()))
    }

    /// Replaces the state file: writes and syncs a new file, renames it, and syncs the directory.
    pub(crate) fn save(&self, state: &State) -> Result<(), LabError> {
        let (new_path, path) = (self.path.join("state.json.new"), self.path.join("state.json"));
        let bytes = serde_json::to_vec_pretty(state).map_err(|error| LabError::State { path: path.clone(), why: error.to_string() })?;
        let write = || {
            let mut file = File::create(&new_path)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&new_path, &path)?;
            self.handle.sync_all()
        };
        write().map_err(LabError::io("cannot write", &path))
    }

    /// Removes the run directory and everything in it.
    pub(crate) fn remove_run_path(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.run_path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes the lab's directory, and the directory of all labs if it is empty.
    pub(crate) fn remove(self, run_root: &Path) -> Result<(), LabError> {
        let _labs = lock_labs(run_root)?;
        // The state goes last: as long as anything else is left, it is needed to clean up.
        self.remove_run_path().map_err(LabError::io("cannot remove", &self.path))?;
        fs::remove_dir_all(&self.path).map_err(LabError::io("cannot remove", &self.path))?;
        // It stays where it holds other labs.
        let _ = fs::remove_dir(labs_path(run_root));
        Ok(())
    }
}

/// The directory on the way to `path` that other users cannot pass through.
pub(crate) fn closed_to_others(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|dir| fs::metadata(dir).is_ok_and(|meta| meta.permissions().mode() & 0o001 == 0)).map(Path::to_owned)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn state(name: &str) -> State {
        State {
            schema: SCHEMA,
            name: name.to_owned(),
            boot_id: boot_id(),
            creator: own_process(),
            outlive: false,
            complete: false,
            unclean: false,
            origin: "test".to_owned(),
            scenario: "schema = 1\n".to_owned(),
            namespaces: Vec::new(),
            host_sysctls: Vec::new(),
            cgroups: Vec::new(),
            servers: Vec::new(),
        }
    }

    #[test]
    fn a_saved_state_is_read_back() {
        let root = tempfile::tempdir().unwrap();
        let dir = {
            let _labs = lock_labs(root.path()).unwrap();
            LabDir::create(root.path(), "one").unwrap()
        };
        assert_eq!(read(root.path(), "one").unwrap(), None);
        let mut wanted = state("one");
        dir.save(&wanted).unwrap();
        wanted.namespaces.push(NamespaceState { host: "h".into(), netns: "cp-one-h".into(), begun: true, inode: Some(7) });
        dir.save(&wanted).unwrap();
        assert_eq!(read(root.path(), "one").unwrap(), Some(wanted));
        assert_eq!(lab_names(root.path()).unwrap(), ["one"]);
        dir.remove(root.path()).unwrap();
        assert!(lab_names(root.path()).unwrap().is_empty() && !labs_path(root.path()).exists());
        assert!(LabDir::lock(root.path(), "one").unwrap().is_none());
    }

    #[test]
    fn a_damaged_state_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let dir = {
            let _labs = lock_labs(root.path()).unwrap();
            LabDir::create(root.path(), "one").unwrap()
        };
        dir.save(&state("one")).unwrap();
        let path = labs_path(root.path()).join("one/state.json");
        let whole = fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(7) {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(read(root.path(), "one"), Err(LabError::State { .. })), "{length}");
        }
        dir.save(&State { schema: 2, ..state("one") }).unwrap();
        assert!(read(root.path(), "one").unwrap_err().to_string().contains("schema 2"));
        dir.save(&state("other")).unwrap();
        assert!(read(root.path(), "one").unwrap_err().to_string().contains("\"other\""));
    }

    #[test]
    fn a_lock_on_a_removed_directory_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("d");
        fs::create_dir(&path).unwrap();
        let held = lock_directory(&path, Instant::now()).unwrap().unwrap();
        assert!(lock_directory(&path, Instant::now()).unwrap().is_none());
        fs::remove_dir(&path).unwrap();
        drop(held);
        assert_eq!(lock_directory(&path, Instant::now()).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn closed_directories_are_found() {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(closed_to_others(&root.path().join("x/y")), Some(root.path().to_owned()));
        assert_eq!(closed_to_others(Path::new("/")), None);
    }

    proptest! {
        #[test]
        fn random_bytes_are_not_a_state(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(serde_json::from_slice::<State>(&bytes).is_err());
        }
    }
}
