//! Takes down what tests left up: each test that fails or is killed would fail the next ones, in this run or in a later one.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use rustix::process::{Pid, test_kill_process};
use tempfile::TempDir;

/// The directories of tests are called so, followed by the number of the test's process and a dash.
const PREFIX: &str = "chokepoint-test-";

/// See [`one_lab`].
static ONE_LAB: Mutex<()> = Mutex::new(());
static CLEARED: Once = Once::new();

/// Held by a test while its lab is up: labs have the same addresses, share settings of the whole machine, and use cores that others measure.
pub(crate) fn one_lab() -> MutexGuard<'static, ()> {
    let alone = ONE_LAB.lock().unwrap_or_else(PoisonError::into_inner);
    CLEARED.call_once(clear_of_ended);
    alone
}

/// A directory for a test.
pub(super) fn directory() -> TempDir {
    tempfile::Builder::new().prefix(&format!("{PREFIX}{}-", std::process::id())).tempdir().unwrap()
}

/// Takes down the labs, and takes back the changes, whose records are in a test's directory.
pub(super) fn clear(dir: &Path) {
    for (record, args) in [("run", ["lab", "down"].as_slice()), ("state", &["undo"])] {
        if dir.join(record).exists() {
            let mut command = Command::new(env!("CARGO_BIN_EXE_chokepoint"));
            command.args(args).env("CHOKEPOINT_STATE_DIR", dir.join("state")).env("CHOKEPOINT_RUN_DIR", dir.join("run"));
            let _ = command.stdin(Stdio::null()).status();
        }
    }
}

/// Clears the directories of test processes that were killed.
fn clear_of_ended() {
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok());
        // A record of another user would make root do what that user wrote there.
        let is_own = entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == rustix::process::geteuid().as_raw());
        if is_own && pid.and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid).is_err()) {
            clear(&entry.path());
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
