//! The sessions of a database that has a process for each, by the titles of these processes (`/proc/PID/cmdline`).

use std::collections::BTreeMap;

use chokepoint_model::observation::{Sessions, WaitKind};
use chokepoint_recording::Outcome;
use chokepoint_servers::{Session, SessionsDef};

use super::waits::Wait;
use crate::root::Root;

/// Sessions whose title is read: some 5 us each.
const SESSIONS_MAX: usize = 512;
/// A title; the rest of the line is what the program was started with, or nothing.
const TITLE_BYTES_MAX: usize = 512;

/// The sessions that this process has started, and how many of them wait for a lock, by command.
pub(super) fn read(root: &Root, pid: u32, def: &SessionsDef) -> (Sessions, BTreeMap<Wait, u32>) {
    let (mut told, mut waits) = (Sessions::default(), BTreeMap::new());
    for child in root.children(pid).into_iter().flatten().take(SESSIONS_MAX) {
        let Outcome::Ok(title) = root.read(&format!("proc/{child}/cmdline"), TITLE_BYTES_MAX, None) else { continue };
        let title = String::from_utf8_lossy(&title);
        // A title that is overwritten in place may be followed by zero bytes.
        let Some(session) = def.of_title(title.trim_end_matches('\0').trim_end()) else { continue };
        told.all += 1;
        match session {
            Session::Idle => told.idle += 1,
            Session::Open => told.open += 1,
            Session::Busy => {}
            Session::Waits(command) => {
                *waits.entry(Wait { kind: WaitKind::Transaction, object: command, other: 0 }).or_default() += 1;
            }
        }
    }
    (told, waits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sessions_of_a_database_are_counted_by_what_they_do() {
        let tree = tempfile::tempdir().unwrap();
        let write = |file: String, text: &str| {
            let path = tree.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/42/task/42/children".into(), "43 44 45 46 47 48 ");
        let titles = ["checkpointer", "a b [local] idle", "a b [local] idle in transaction", "a b ::1(5) UPDATE waiting"];
        for (pid, title) in (43..).zip(titles) {
            write(format!("proc/{pid}/cmdline"), &format!("postgres: {title}\0\0\0"));
        }
        write("proc/47/cmdline".into(), "postgres: a b ::1(6) UPDATE waiting");
        let def = chokepoint_servers::sessions_of("postgres").unwrap();
        let (told, waits) = read(&Root::new(tree.path()), 42, def);
        assert_eq!(told, Sessions { all: 4, idle: 1, open: 1 }, "the last one has ended");
        let waits: Vec<(String, u32)> = waits.into_iter().map(|(wait, number)| (wait.object, number)).collect();
        assert_eq!(waits, [("UPDATE".to_owned(), 2)]);
        assert!(chokepoint_servers::sessions_of("nginx").is_none());
    }
}
