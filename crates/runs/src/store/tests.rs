//! Deterministic: stores in temporary directories.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::Duration;

use rusqlite::Connection;

use super::*;
use crate::document::DOCUMENT_BYTES_MAX;
use crate::run::{Better, Figure};

fn run(label: &str) -> NewRun {
    let map = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    NewRun {
        kind: "bench".to_owned(),
        state: State::Done,
        began: "2026-01-02T03:04:05Z".to_owned(),
        duration_s: 10.5,
        target: "http://127.0.0.1/".to_owned(),
        label: label.to_owned(),
        version: "0.2.0".to_owned(),
        headline: "1,234/s".to_owned(),
        figures: vec![Figure { name: "goodput".to_owned(), value: 1234.5, unit: "/s".to_owned(), better: Better::More }],
        surroundings: BTreeMap::from([("kernel".to_owned(), map("release", "6.1.0"))]),
        load: map("connections", "100"),
        document: "{\"schema\": \"chokepoint/bench/1\"}".to_owned(),
        fingerprint: Some("plan".to_owned()),
    }
}

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    (dir, store)
}

fn labels(store: &Store, filter: &Filter) -> Vec<String> {
    store.list(filter).unwrap().into_iter().map(|run| run.label).collect()
}

#[test]
fn runs_come_back_as_they_were_kept() {
    let (dir, mut store) = store();
    let id = store.add(&run("a")).unwrap();
    drop(store);
    let mut store = Store::open(dir.path()).unwrap();
    assert_eq!(store.get(id).unwrap(), Run { id, run: run("a") });
    let hostile = NewRun { headline: "\u{1b}[31m'); DROP TABLE run; --\0\n".to_owned(), ..run("b") };
    let second = store.add(&hostile).unwrap();
    assert_eq!(store.get(second).unwrap().run, hostile);
    let other =
        NewRun { kind: "diagnose".to_owned(), target: "http://other/".to_owned(), began: "2026-02-01T00:00:00Z".to_owned(), ..run("c") };
    store.add(&other).unwrap();
    assert_eq!(labels(&store, &Filter::default()), ["c", "b", "a"], "newest first");
    let filter = |change: fn(&mut Filter)| {
        let mut filter = Filter::default();
        change(&mut filter);
        filter
    };
    assert_eq!(labels(&store, &filter(|filter| filter.kind = Some("diagnose".to_owned()))), ["c"]);
    assert_eq!(labels(&store, &filter(|filter| filter.target = Some("http://other/".to_owned()))), ["c"]);
    assert_eq!(labels(&store, &filter(|filter| filter.target_part = Some("127".to_owned()))), ["b", "a"]);
    assert_eq!(labels(&store, &filter(|filter| filter.target_part = Some("%".to_owned()))), [""; 0], "no pattern");
    assert_eq!(labels(&store, &filter(|filter| filter.before = Some("2026-01-15T00:00:00Z".to_owned()))), ["b", "a"]);
    assert_eq!(labels(&store, &filter(|filter| filter.limit = Some(1))), ["c"]);
    assert_eq!(store.remove(&[id, second, 99]).unwrap(), 2);
    assert!(matches!(store.get(id), Err(RunsError::NoRun { id: 1 })));
    assert_eq!(store.add(&run("d")).unwrap(), 4, "numbers are not used again");
}

#[test]
fn a_run_that_was_cut_short_is_found_with_its_trials() {
    let (_dir, mut store) = store();
    let running = NewRun { state: State::Running, ..run("a") };
    let id = store.add(&running).unwrap();
    for (n, json) in [(1, "{\"n\": 1}"), (0, "{\"n\": 0}"), (1, "{\"n\": 11}")] {
        store.add_trial(id, n, json).unwrap();
    }
    assert_eq!(store.latest_unfinished("bench", "plan").unwrap(), Some(id));
    assert_eq!(store.latest_unfinished("bench", "other").unwrap(), None);
    assert_eq!(store.trials(id).unwrap(), ["{\"n\": 0}", "{\"n\": 11}"]);
    store.update(id, &run("done")).unwrap();
    assert_eq!(store.latest_unfinished("bench", "plan").unwrap(), None);
    assert_eq!((store.get(id).unwrap().run, store.trials(id).unwrap().len()), (run("done"), 2));
    store.remove(&[id]).unwrap();
    assert_eq!(store.trials(id).unwrap(), [""; 0], "trials go with their run");
    assert!(matches!(store.add_trial(id, 0, "{}"), Err(RunsError::NoRun { .. })));
    assert!(matches!(store.update(id, &run("a")), Err(RunsError::NoRun { .. })));
}

#[test]
fn several_connections_write_at_once() {
    let (dir, _store) = store();
    let write = |label: &'static str| {
        let dir = dir.path().to_owned();
        std::thread::spawn(move || {
            let mut store = Store::open(&dir).unwrap();
            for _ in 0..20 {
                store.add(&run(label)).unwrap();
            }
        })
    };
    let writers = [write("a"), write("b")];
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let all = labels(&Store::open(dir.path()).unwrap(), &Filter::default());
    assert_eq!((all.len(), all.iter().filter(|label| *label == "a").count()), (40, 20));
}

#[test]
fn the_oldest_complete_runs_go_first() {
    let (_dir, mut store) = store();
    store.runs_max = 3;
    let running = store.add(&NewRun { state: State::Running, ..run("running") }).unwrap();
    for label in ["a", "b", "c", "d"] {
        store.add(&NewRun { headline: "x".repeat(1_000), ..run(label) }).unwrap();
    }
    assert_eq!(labels(&store, &Filter::default()), ["d", "c", "running"]);
    store.bytes_max = 10_000;
    store.add(&NewRun { document: "0".to_owned(), headline: "x".repeat(9_000), ..run("e") }).unwrap();
    assert_eq!(labels(&store, &Filter::default()), ["e", "running"], "the bytes are bounded, too");
    // Text that does not compress (xorshift, Marsaglia 2003).
    let mut state = 1_u32;
    let noise: String = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        char::from(33 + (state % 90) as u8)
    })
    .take(2_000)
    .collect();
    store.add_trial(running, 0, &noise).unwrap();
    assert_eq!(labels(&store, &Filter::default()), ["running"], "trials count");
    let too_long = "0".repeat(DOCUMENT_BYTES_MAX + 1);
    assert!(matches!(store.add(&NewRun { document: too_long, ..run("f") }), Err(RunsError::TooLarge { .. })));
}

#[test]
fn only_this_user_may_read_the_file_and_links_are_refused() {
    let tree = tempfile::tempdir().unwrap();
    let dir = tree.path().join("state/chokepoint");
    assert!(Store::open_existing(&dir).unwrap().is_none() && !dir.exists(), "reading makes nothing");
    drop(Store::open(&dir).unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    let expected = if rustix::process::geteuid().is_root() { 0o755 } else { 0o700 };
    assert_eq!((mode(&dir), mode(&dir.join(FILE))), (expected, 0o600));
    fs::set_permissions(dir.join(FILE), fs::Permissions::from_mode(0o644)).unwrap();
    drop(Store::open(&dir).unwrap());
    assert_eq!(mode(&dir.join(FILE)), 0o600);
    fs::set_permissions(dir.join(FILE), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(Store::open(&dir), Err(RunsError::Unsafe { .. })), "somebody else may have written it");
    fs::rename(dir.join(FILE), tree.path().join("elsewhere")).unwrap();
    symlink(tree.path().join("elsewhere"), dir.join(FILE)).unwrap();
    assert!(matches!(Store::open(&dir), Err(RunsError::Unsafe { .. })), "a link");
    fs::remove_file(dir.join(FILE)).unwrap();
    fs::create_dir(dir.join(FILE)).unwrap();
    assert!(matches!(Store::open(&dir), Err(RunsError::Unsafe { .. })), "a directory");
    fs::remove_dir(dir.join(FILE)).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(Store::open(&dir), Err(RunsError::Unsafe { .. })), "a directory in which everybody writes");
    fs::write(tree.path().join("file"), "").unwrap();
    let Err(error) = Store::open(&tree.path().join("file")) else { panic!("a file is no directory") };
    assert!(matches!(error, RunsError::Io { .. }));
    assert!(std::error::Error::source(&error).is_none(), "the sentence has the system's error, and the chain would tell it again: {error}");
    symlink(tree.path().join("real"), tree.path().join("way")).unwrap();
    fs::create_dir(tree.path().join("real")).unwrap();
    fs::set_permissions(tree.path().join("real"), fs::Permissions::from_mode(0o700)).unwrap();
    assert!(Store::open(&tree.path().join("way")).is_ok(), "a link on the way that only this user can change");
}

#[test]
fn files_of_other_users_and_directories_of_other_users_are_refused() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root gives files away");
        return;
    }
    let (dir, store) = store();
    drop(store);
    std::os::unix::fs::chown(dir.path().join(FILE), Some(4001), None).unwrap();
    assert!(matches!(Store::open(dir.path()), Err(RunsError::Unsafe { .. })));
    std::os::unix::fs::chown(dir.path().join(FILE), Some(0), None).unwrap();
    assert!(Store::open(dir.path()).is_ok());
    std::os::unix::fs::chown(dir.path(), Some(4001), None).unwrap();
    assert!(matches!(Store::open(dir.path()), Err(RunsError::Unsafe { .. })));
}

#[test]
fn a_damaged_file_is_named_and_left_as_it_is() {
    let (dir, mut store) = store();
    for n in 0..50 {
        store.add(&run(&n.to_string())).unwrap();
    }
    drop(store);
    let path = dir.path().join(FILE);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, "no database, but long enough to be read as one".repeat(100)).unwrap();
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, RunsError::Damaged { .. }) && error.to_string().contains("runs.sqlite is damaged"), "{error}");
    // Damage in the middle: an error or fewer runs, never a panic or an invented run.
    for at in (100..whole.len()).step_by(997) {
        let mut bytes = whole.clone();
        let end = (at + 60).min(bytes.len());
        bytes[at..end].fill(0xa5);
        fs::write(&path, &bytes).unwrap();
        let Ok(store) = Store::open(dir.path()) else { continue };
        if let Ok(all) = store.list(&Filter::default()) {
            all.iter().for_each(|run| drop(store.get(run.id)));
        }
    }
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let cut = Store::open(dir.path()).and_then(|store| store.list(&Filter::default()).map(drop));
    assert!(matches!(cut, Err(RunsError::Damaged { .. })), "{cut:?}");
    fs::write(&path, "").unwrap();
    assert_eq!(labels(&Store::open(dir.path()).unwrap(), &Filter::default()), [""; 0], "an empty file is a new one");
}

#[test]
fn files_of_newer_versions_and_other_programs_are_refused() {
    let (dir, store) = store();
    store.database.connection.pragma_update(None, "user_version", 2).unwrap();
    drop(store);
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, RunsError::Newer { found: 2, known: 1, .. }), "{error}");
    let other = tempfile::tempdir().unwrap();
    let connection = Connection::open(other.path().join(FILE)).unwrap();
    connection.execute_batch("CREATE TABLE run (id INTEGER)").unwrap();
    drop(connection);
    fs::set_permissions(other.path().join(FILE), fs::Permissions::from_mode(0o600)).unwrap();
    let error = Store::open(other.path()).unwrap_err();
    assert!(error.to_string().contains("another program"), "{error}");
}

#[test]
fn a_full_file_keeps_what_it_has() {
    let (_dir, mut store) = store();
    let id = store.add(&run("first")).unwrap();
    let pages: i64 = store.database.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    store.database.connection.pragma_update_and_check(None, "max_page_count", pages + 1, |_| Ok(())).unwrap();
    let large = NewRun { headline: "x".repeat(100_000), ..run("large") };
    let error = store.add(&large).unwrap_err();
    assert!(matches!(error, RunsError::Full { .. }) && error.to_string().contains("the disk is full"), "{error}");
    assert!(matches!(store.update(id, &large), Err(RunsError::Full { .. })));
    assert_eq!(store.get(id).unwrap().run, run("first"), "nothing is lost");
}

#[test]
fn a_locked_file_is_waited_for_and_then_named() {
    let (dir, mut store) = store();
    let other = Store::open(dir.path()).unwrap();
    other.database.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.database.connection.busy_timeout(Duration::from_millis(10)).unwrap();
    assert!(matches!(store.add(&run("a")), Err(RunsError::Busy { .. })));
    other.database.connection.execute_batch("COMMIT").unwrap();
    store.add(&run("a")).unwrap();
}
