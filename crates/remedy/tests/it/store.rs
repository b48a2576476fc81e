//! Applying and undoing on a tree of files: works on any machine, without privileges.
//!
//! Deterministic: its own files and settings; it waits for nothing.

use chokepoint_remedy::{ApplyError, Filter, PendingState, RemedyError, Step};

use crate::support::{Host, MAX, PORTS, SOMAXCONN, change, purpose};

#[test]
fn a_change_is_applied_listed_and_taken_back() {
    let host = Host::new();
    assert_eq!(host.store().pending().unwrap(), []);
    assert!(!host.state_dir().exists(), "asking creates nothing");

    let mut guard = host.store().lock().unwrap();
    let mut steps = Vec::new();
    let applied = guard.apply(&[change(MAX, "200", "1048576")], &purpose("diagnose"), &mut |step| steps.push(step)).unwrap();
    assert_eq!(steps, [Step::Read, Step::Journalled, Step::Written(0), Step::Verified(0), Step::Applied]);
    assert_eq!((applied.id, applied.changes[0].was.as_str(), host.get(MAX).as_str()), (1, "200", "1048576"));
    drop(guard);

    let pending = host.store().pending().unwrap();
    assert_eq!((pending.len(), pending[0].id, pending[0].state), (1, 1, PendingState::Applied));
    assert_eq!((&pending[0].purpose, pending[0].pid), (&purpose("diagnose"), std::process::id()));

    let mut guard = host.store().lock().unwrap();
    let report = guard.undo(&Filter::All);
    assert_eq!((report.restored.len(), report.restored[0].value.as_str(), report.is_clean()), (1, "200", true));
    assert_eq!(host.get(MAX), "200");
    assert!(guard.undo(&Filter::All).is_empty(), "twice changes nothing");
    assert_eq!(guard.pending(), []);
    assert_eq!(host.store().pending().unwrap(), []);
    let second = guard.apply(&[change(MAX, "200", "300")], &purpose("diagnose"), &mut |_| {}).unwrap();
    assert_eq!(second.id, 2, "a number is never given twice");
}

#[test]
fn values_are_compared_by_their_words() {
    let host = Host::new();
    let mut guard = host.store().lock().unwrap();
    guard.apply(&[change(PORTS, "32768 60999", "10000\t65535")], &purpose("diagnose"), &mut |_| {}).unwrap();
    host.set(PORTS, "10000 65535");
    assert_eq!(guard.undo(&Filter::All).restored.len(), 1);
    assert_eq!(host.get(PORTS), "32768\t60999");
}

#[test]
fn a_stale_or_invalid_change_is_refused_and_nothing_is_written() {
    let host = Host::new();
    let mut guard = host.store().lock().unwrap();
    let mut refused = |changes: &[_]| guard.apply(changes, &purpose("diagnose"), &mut |_| {}).unwrap_err();
    match refused(&[change(MAX, "100", "300")]) {
        ApplyError::Changed { key, proposed_from, found } => assert_eq!((&*key, &*proposed_from, &*found), (MAX, "100", "200")),
        other => panic!("{other:?}"),
    }
    assert!(matches!(refused(&[]), ApplyError::BadChange { .. }));
    assert!(matches!(refused(&[change("../../etc/passwd", "", "x")]), ApplyError::BadChange { .. }));
    assert!(matches!(refused(&[change("/etc/passwd", "", "x")]), ApplyError::BadChange { .. }));
    assert!(matches!(refused(&[change(MAX, "200", "1\n2")]), ApplyError::BadChange { .. }));
    assert!(matches!(refused(&[change(MAX, "200", "1\0")]), ApplyError::BadChange { .. }));
    assert!(matches!(refused(&[change("net.core.none", "1", "2")]), ApplyError::Missing { .. }));
    let twice = [change(MAX, "200", "300"), change("net/netfilter/nf_conntrack_max", "300", "400")];
    assert!(matches!(refused(&twice), ApplyError::BadChange { .. }));
    // The second is stale: the first is not applied either.
    assert!(matches!(refused(&[change(MAX, "200", "300"), change(SOMAXCONN, "1", "2")]), ApplyError::Changed { .. }));
    assert_eq!((host.get(MAX).as_str(), host.get(SOMAXCONN).as_str()), ("200", "128"));
    assert_eq!(guard.pending(), []);
}

#[test]
fn a_set_is_applied_completely_or_not_at_all() {
    let host = Host::new();
    let mut guard = host.store().lock().unwrap();
    // Another writer reverts the second change between write and check: it is not in force.
    let changes = [change(MAX, "200", "300"), change(SOMAXCONN, "128", "4096")];
    let error = guard
        .apply(&changes, &purpose("diagnose"), &mut |step| {
            if step == Step::Written(1) {
                host.set(SOMAXCONN, "1000");
            }
        })
        .unwrap_err();
    match error {
        ApplyError::NotInForce { key, wanted, found } => assert_eq!((&*key, &*wanted, &*found), (SOMAXCONN, "4096", "1000")),
        other => panic!("{other:?}"),
    }
    assert_eq!((host.get(MAX).as_str(), host.get(SOMAXCONN).as_str()), ("200", "128"));
    assert_eq!((guard.pending(), host.store().pending().unwrap()), (vec![], vec![]));

    // The second setting vanishes: the first change is taken back, the second stays in the journal.
    let error = guard
        .apply(&changes, &purpose("diagnose"), &mut |step| {
            if step == Step::Verified(0) {
                std::fs::remove_file(host.file(SOMAXCONN)).unwrap();
            }
        })
        .unwrap_err();
    match error {
        ApplyError::LeftBehind { cause, left, .. } => {
            assert!(matches!(*cause, ApplyError::Missing { .. }));
            assert_eq!(left, [SOMAXCONN]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(host.get(MAX), "200");
    let pending = guard.pending();
    assert_eq!((pending[0].state, pending[0].changes.len()), (PendingState::Unfinished, 1));
    let report = guard.undo(&Filter::All);
    assert_eq!((report.gone.len(), report.restored.len()), (1, 0), "{report:?}");
}

#[test]
fn a_setting_changed_by_someone_else_is_left_alone_and_reported_until_settled() {
    let host = Host::new();
    let mut guard = host.store().lock().unwrap();
    guard.apply(&[change(MAX, "200", "300"), change(SOMAXCONN, "128", "4096")], &purpose("diagnose"), &mut |_| {}).unwrap();
    host.set(MAX, "999");
    let report = guard.undo(&Filter::All);
    assert_eq!((report.restored.len(), report.is_clean()), (1, false));
    let conflict = &report.conflicts[0];
    assert_eq!((&*conflict.key, &*conflict.ours, &*conflict.was, &*conflict.found), (MAX, "300", "200", "999"));
    assert_eq!((host.get(MAX).as_str(), host.get(SOMAXCONN).as_str()), ("999", "128"));
    for _ in 0..2 {
        assert_eq!(guard.undo(&Filter::All).conflicts, report.conflicts, "it is told each time");
        assert_eq!(host.store().conflicts().unwrap(), report.conflicts);
        assert_eq!((guard.pending().len(), host.get(MAX).as_str()), (1, "999"));
    }
    // Another change of the same setting is independent.
    let over = guard.apply(&[change(MAX, "999", "2000")], &purpose("diagnose"), &mut |_| {}).unwrap().id;
    assert_eq!((guard.undo(&Filter::Id(over)).is_clean(), host.get(MAX).as_str()), (true, "999"));
    guard.apply(&[change(MAX, "999", "2000")], &purpose("diagnose"), &mut |_| {}).unwrap();
    let both = guard.undo(&Filter::All);
    assert_eq!((both.restored.len(), both.conflicts.len(), host.get(MAX).as_str()), (1, 1, "999"));
    // The old or the new value settles it.
    host.set(MAX, "300");
    assert_eq!(host.store().conflicts().unwrap(), []);
    assert_eq!((guard.undo(&Filter::All).is_clean(), host.get(MAX).as_str()), (true, "200"));
    assert_eq!((guard.pending(), guard.undo(&Filter::All).is_empty()), (vec![], true));
}

#[test]
fn a_forgotten_change_stays() {
    let host = Host::new();
    let mut guard = host.store().lock().unwrap();
    let changes = [change(MAX, "200", "300"), change(SOMAXCONN, "128", "4096")];
    let id = guard.apply(&changes, &purpose("diagnose"), &mut |_| {}).unwrap().id;
    host.set(MAX, "999");
    assert_eq!(guard.undo(&Filter::All).conflicts.len(), 1);
    assert_eq!(guard.forget(77).unwrap(), []);
    let forgotten = guard.forget(id).unwrap();
    assert_eq!(forgotten.iter().map(|one| (one.change.key(), one.was.as_str())).collect::<Vec<_>>(), [(MAX.to_owned(), "200")]);
    assert_eq!((host.get(MAX).as_str(), guard.pending(), guard.forget(id).unwrap().len()), ("999", vec![], 0));
    drop(guard);
    let mut guard = host.store().lock().unwrap();
    assert!(guard.undo(&Filter::All).is_empty(), "the journal knows");
    assert_eq!(guard.apply(&[change(MAX, "999", "1000")], &purpose("diagnose"), &mut |_| {}).unwrap().id, id + 1);
}

#[test]
fn a_value_set_by_someone_else_while_a_set_failed_stays_pending() {
    let host = Host::new();
    let mut guard = host.store().lock().unwrap();
    let changes = [change(MAX, "200", "300"), change(SOMAXCONN, "128", "4096")];
    let error = guard.apply(&changes, &purpose("diagnose"), &mut |step| match step {
        Step::Verified(0) => host.set(MAX, "999"),
        Step::Written(1) => host.set(SOMAXCONN, "1"),
        _ => {}
    });
    assert!(matches!(&error, Err(ApplyError::LeftBehind { left, .. }) if left == &[MAX]), "{error:?}");
    assert_eq!((host.get(MAX).as_str(), host.get(SOMAXCONN).as_str(), guard.pending().len()), ("999", "128", 1));
    // An interrupted set does not block others if its setting has someone else's value.
    guard.apply(&[change(MAX, "999", "1000")], &purpose("diagnose"), &mut |_| {}).unwrap();
    let report = guard.undo(&Filter::All);
    assert_eq!((report.restored.len(), report.conflicts.len(), host.get(MAX).as_str()), (1, 1, "999"));
}

#[test]
fn changes_of_one_setting_are_taken_back_newest_first() {
    let host = Host::new();
    let mut guard = host.store().lock().unwrap();
    for (from, to) in [("200", "300"), ("300", "400"), ("400", "500")] {
        guard.apply(&[change(MAX, from, to)], &purpose("diagnose"), &mut |_| {}).unwrap();
    }
    drop(guard);
    let mut guard = host.store().lock().unwrap();
    let report = guard.undo(&Filter::All);
    assert_eq!(report.restored.iter().map(|restored| &*restored.value).collect::<Vec<_>>(), ["400", "300", "200"]);
    assert_eq!(host.get(MAX), "200");
}

#[test]
fn a_later_change_takes_over_the_old_value() {
    let host = Host::new();
    let mut guard = host.store().lock().unwrap();
    for (from, to) in [("200", "300"), ("300", "400"), ("400", "500")] {
        guard.apply(&[change(MAX, from, to)], &purpose("diagnose"), &mut |_| {}).unwrap();
    }
    let report = guard.undo(&Filter::Id(2));
    assert_eq!((report.folded.len(), report.is_clean(), host.get(MAX).as_str()), (1, true, "500"));
    let report = guard.undo(&Filter::Id(1));
    assert_eq!((report.folded.len(), host.get(MAX).as_str()), (1, "500"));
    drop(guard);
    let mut guard = host.store().lock().unwrap();
    assert_eq!(guard.pending()[0].changes[0].was, "200", "the journal holds what was folded");
    assert_eq!((guard.undo(&Filter::Id(3)).restored.len(), host.get(MAX).as_str()), (1, "200"));

    // If someone else set the value in between, the two changes are independent.
    guard.apply(&[change(MAX, "200", "300")], &purpose("diagnose"), &mut |_| {}).unwrap();
    host.set(MAX, "350");
    guard.apply(&[change(MAX, "350", "400")], &purpose("diagnose"), &mut |_| {}).unwrap();
    let report = guard.undo(&Filter::All);
    assert_eq!((report.restored.len(), report.conflicts.len(), host.get(MAX).as_str()), (1, 1, "350"));
}

#[test]
fn the_changes_of_one_owner_are_taken_back_alone() {
    let host = Host::new();
    let mut guard = host.store().lock().unwrap();
    guard.apply(&[change(MAX, "200", "300")], &purpose("lab:a"), &mut |_| {}).unwrap();
    guard.apply(&[change(SOMAXCONN, "128", "4096")], &purpose("diagnose"), &mut |_| {}).unwrap();
    assert_eq!(guard.undo(&Filter::Owner("lab:a".into())).restored.len(), 1);
    assert!(guard.undo(&Filter::Owner("lab:b".into())).is_empty());
    assert!(guard.undo(&Filter::Id(99)).is_empty());
    assert_eq!((host.get(MAX).as_str(), host.get(SOMAXCONN).as_str()), ("200", "4096"));
    assert_eq!(guard.pending()[0].purpose.owner, "diagnose");
}

#[test]
fn a_reboot_ends_changes_that_are_not_persistent() {
    let host = Host::new();
    host.store().lock().unwrap().apply(&[change(MAX, "200", "300")], &purpose("diagnose"), &mut |_| {}).unwrap();
    // After the boot something else has set the same value.
    let rebooted = host.store_in_boot("boot-2");
    assert_eq!(rebooted.pending().unwrap()[0].state, PendingState::Rebooted);
    assert!(!rebooted.pending().unwrap()[0].alive, "no process outlives a reboot");
    let mut guard = rebooted.lock().unwrap();
    guard.apply(&[change(MAX, "300", "400")], &purpose("diagnose"), &mut |_| {}).unwrap();
    let report = guard.undo(&Filter::All);
    assert_eq!((report.restored.len(), report.gone.len(), report.is_clean()), (1, 1, true));
    assert!(report.gone[0].why.contains("reboot"));
    assert_eq!(host.get(MAX), "300", "what holds in this boot is not ours");
}

#[test]
fn one_process_at_a_time_changes_the_host() {
    let host = Host::new();
    let guard = host.store().lock().unwrap();
    match host.store().lock() {
        Err(RemedyError::LockHeld { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
        other => panic!("{other:?}"),
    }
    assert_eq!(host.store().pending().unwrap(), [], "looking needs no lock");
    drop(guard);
    host.store().lock().unwrap();
}

#[test]
fn a_damaged_journal_is_reported_and_set_aside() {
    let host = Host::new();
    let mut guard = host.store().lock().unwrap();
    guard.apply(&[change(MAX, "200", "300")], &purpose("diagnose"), &mut |_| {}).unwrap();
    guard.apply(&[change(SOMAXCONN, "128", "4096")], &purpose("diagnose"), &mut |_| {}).unwrap();
    drop(guard);
    let path = host.state_dir().join("journal");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("4096", "4097", 1)).unwrap();

    assert!(matches!(host.store().pending(), Err(RemedyError::Corrupt { line: 4, .. })));
    let mut guard = host.store().lock().unwrap();
    let refused = guard.apply(&[change(PORTS, "32768 60999", "1 2")], &purpose("diagnose"), &mut |_| {});
    assert!(matches!(refused, Err(ApplyError::Journal(RemedyError::Corrupt { .. }))));
    let report = guard.undo(&Filter::All);
    assert_eq!((report.restored.len(), report.corrupt_lines.as_slice(), report.is_clean()), (1, &[4][..], false));
    assert_eq!((host.get(MAX).as_str(), host.get(SOMAXCONN).as_str()), ("200", "4096"));
    let aside = report.set_aside.unwrap();
    assert!(std::fs::read_to_string(aside).unwrap().contains("somaxconn"), "what it said is kept for a person to read");
    assert!(guard.undo(&Filter::All).is_clean());
    guard.apply(&[change(PORTS, "32768 60999", "1 2")], &purpose("diagnose"), &mut |_| {}).unwrap();
}

#[test]
fn an_interrupted_change_of_the_same_setting_is_settled_first() {
    let host = Host::new();
    let mut guard = host.store().lock().unwrap();
    guard.apply(&[change(MAX, "200", "300")], &purpose("diagnose"), &mut |_| {}).unwrap();
    drop(guard);
    let path = host.state_dir().join("journal");
    let text = std::fs::read_to_string(&path).unwrap();
    let cut = text.trim_end().rfind('\n').unwrap() + 1;
    std::fs::write(&path, &text[..cut + 5]).unwrap();

    let mut guard = host.store().lock().unwrap();
    assert_eq!(guard.pending()[0].state, PendingState::Unfinished);
    let refused = guard.apply(&[change(MAX, "300", "400")], &purpose("diagnose"), &mut |_| {});
    assert!(matches!(refused, Err(ApplyError::Unfinished { id: 1, .. })));
    guard.apply(&[change(SOMAXCONN, "128", "256")], &purpose("diagnose"), &mut |_| {}).unwrap();
    assert_eq!(guard.undo(&Filter::All).restored.len(), 2);
    assert_eq!((host.get(MAX).as_str(), host.get(SOMAXCONN).as_str()), ("200", "128"));
}

#[test]
fn a_state_directory_that_is_a_file_is_an_error() {
    let host = Host::new();
    std::fs::write(host.state_dir(), "").unwrap();
    let error = chokepoint_remedy::Store::open(&host.state_dir(), &host.dir, "b".into()).unwrap_err();
    assert!(error.to_string().contains("state"), "{error}");
}
