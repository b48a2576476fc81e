//! What is kept of watched servers, what goes, and what survives.

use std::fs;

use super::*;

const RETENTION: [Retention; 2] = [Retention { span_s: 1, samples_max: 100 }, Retention { span_s: 60, samples_max: 50 }];

fn second(at_s: u64) -> KeptSample {
    KeptSample { span_s: 1, at_s, json: format!("{{\"at\":{at_s}}}") }
}

fn all(history: &History, span_s: u32) -> Vec<String> {
    history.samples(span_s, 0, u64::MAX, u32::MAX).unwrap()
}

#[test]
fn a_second_is_written_without_waiting_for_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(dir.path(), &RETENTION).unwrap();
    // Without a write-ahead log each commit waits for the disk.
    let number = |name: &str| history.database.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    let mode: String = history.database.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!((mode.as_str(), number("synchronous")), ("wal", 1));
}

#[test]
fn a_history_is_opened_and_read_while_another_program_writes() {
    let dir = tempfile::tempdir().unwrap();
    let mut writes = History::open(dir.path(), &RETENTION).unwrap();
    writes.add(&[second(7)]).unwrap();
    // Until the end of the test: whoever waits for it fails.
    writes.database.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let reads = History::open(dir.path(), &RETENTION).unwrap();
    assert_eq!(all(&reads, 1), ["{\"at\":7}"]);
    assert_eq!(History::open_existing(dir.path()).unwrap().unwrap().incidents(5).unwrap(), []);
}

#[test]
fn the_oldest_samples_of_each_length_go_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::open(dir.path(), &RETENTION).unwrap();
    for at_s in 0..1_000 {
        let minute = (at_s % 60 == 59).then(|| KeptSample { span_s: 60, ..second(at_s - 59) });
        history.add(&[second(at_s)].into_iter().chain(minute).collect::<Vec<_>>()).unwrap();
    }
    let kept = all(&history, 1);
    assert!((100..100 + PRUNED_EVERY as usize + 2).contains(&kept.len()), "{}", kept.len());
    assert_eq!(kept.last().unwrap(), "{\"at\":999}");
    assert_eq!(all(&history, 60).len(), 16);
    assert_eq!(history.samples(1, 990, 995, u32::MAX).unwrap().len(), 5);
    assert_eq!(history.samples(1, 990, 1_000, 2).unwrap(), ["{\"at\":998}", "{\"at\":999}"], "the newest, the oldest of them first");
}

#[test]
fn samples_are_given_one_by_one_from_where_the_newest_begin() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::open(dir.path(), &RETENTION).unwrap();
    let same = |json: &str| KeptSample { json: json.to_owned(), ..second(8) };
    history.add(&[second(7), same("a"), same("b"), same("c"), second(9)]).unwrap();
    let mut from = history.begin_of_samples(1, 0, u64::MAX, 4).unwrap();
    let mut given = Vec::new();
    // Two at a time, as for a client that takes no more.
    for _ in 0..3 {
        let (begin, mut left) = (from, 2);
        let give = |next, sample| {
            from = next;
            given.push(sample);
            left -= 1;
            left > 0
        };
        history.visit_samples(1, begin, u64::MAX, give).unwrap();
    }
    assert_eq!(given, ["a", "b", "c", "{\"at\":9}"]);
    let begin = history.begin_of_samples(1, 8, 9, u32::MAX).unwrap();
    let mut count = 0;
    history
        .visit_samples(1, begin, 9, |_, _| {
            count += 1;
            true
        })
        .unwrap();
    assert_eq!(count, 3, "fewer than wanted, and none of others");
}

#[test]
fn a_clock_that_jumps_removes_nothing_new() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::open(dir.path(), &RETENTION).unwrap();
    for at_s in (1_000_000..1_000_200).chain(500..700) {
        history.add(&[second(at_s)]).unwrap();
    }
    assert_eq!(history.samples(1, 600, 700, u32::MAX).unwrap().len(), 100, "those written last stay, although their clock is behind");
}

#[test]
fn the_file_stays_below_its_bound() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::open(dir.path(), &[]).unwrap();
    history.samples_bytes_max = 1 << 20;
    let mut state = 1u64;
    for at_s in 0..2_000 {
        // Text that does not compress.
        let noise: String = (0..300)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                format!("{:x}", state >> 33)
            })
            .collect();
        history.add(&[KeptSample { json: noise, ..second(at_s) }]).unwrap();
    }
    let length = fs::metadata(history.path()).unwrap().len();
    assert!(length < 3 << 20, "{length}");
    assert!(!history.samples(1, 1_999, 2_000, 1).unwrap().is_empty());
}

#[test]
fn incidents_have_numbers_documents_and_recordings() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::open(dir.path(), &RETENTION).unwrap();
    history.incidents_max = 3;
    let ids: Vec<i64> = (0..5).map(|at_s| history.add_incident(at_s, "{\"state\":\"began\"}").unwrap()).collect();
    history.update_incident(5, "{\"state\":\"ended\"}", Some(b"recorded")).unwrap();
    history.update_incident(5, "{\"state\":\"over\"}", None).unwrap();
    assert_eq!(ids, [1, 2, 3, 4, 5]);
    let kept = History::open_existing(dir.path()).unwrap().unwrap();
    assert_eq!(kept.incidents(10).unwrap().iter().map(|incident| incident.id).collect::<Vec<_>>(), [5, 4, 3]);
    let newest = Incident { id: 5, at_s: 4, json: "{\"state\":\"over\"}".to_owned(), is_recorded: true };
    assert_eq!(
        (kept.incident(5).unwrap(), kept.recording(5).unwrap(), kept.recording(4).unwrap()),
        (newest, Some(b"recorded".to_vec()), None)
    );
    assert!(matches!(kept.incident(1), Err(RunsError::NoIncident { id: 1 })));
    assert!(matches!(kept.recording(9), Err(RunsError::NoIncident { id: 9 })));
    assert!(matches!(history.update_incident(1, "{}", None), Err(RunsError::NoIncident { id: 1 })));
    let too_long = vec![0; RECORDING_BYTES_MAX + 1];
    assert!(matches!(history.update_incident(5, "{}", Some(&too_long)), Err(RunsError::TooLarge { .. })));
}

#[test]
fn a_reader_sees_what_was_committed_while_another_process_writes() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = History::open(dir.path(), &RETENTION).unwrap();
    let reader = History::open_existing(dir.path()).unwrap().unwrap();
    for at_s in 0..10 {
        writer.add(&[second(at_s)]).unwrap();
        assert_eq!(all(&reader, 1).len() as u64, at_s + 1);
    }
    assert!(History::open_existing(&dir.path().join("none")).unwrap().is_none());
}

#[test]
fn a_full_disk_is_an_error_and_what_was_kept_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::open(dir.path(), &[]).unwrap();
    history.add(&[second(1)]).unwrap();
    let pages: i64 = history.database.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    history.database.connection.pragma_update_and_check(None, "max_page_count", pages + 1, |_| Ok(())).unwrap();
    let failed = (2..1_000).find_map(|at_s| history.add(&[second(at_s)]).err());
    assert!(matches!(failed, Some(RunsError::Full { .. })), "{failed:?}");
    assert_eq!(all(&history, 1)[0], "{\"at\":1}");
    history.database.connection.pragma_update_and_check(None, "max_page_count", pages + 1_000, |_| Ok(())).unwrap();
    history.add(&[second(5_000)]).unwrap();
}

#[test]
fn damage_is_told_and_never_followed() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::open(dir.path(), &RETENTION).unwrap();
    history.add(&[second(1)]).unwrap();
    history.add_incident(1, "{}").unwrap();
    history.database.connection.execute_batch("UPDATE sample SET document = x'00'; UPDATE incident SET document = x'789c'").unwrap();
    assert!(matches!(history.samples(1, 0, 9, 9), Err(RunsError::Damaged { .. })));
    assert!(matches!(history.incidents(9), Err(RunsError::Damaged { .. })));
    drop(history);
    fs::write(dir.path().join(FILE), "no database, but long enough to be looked at as one").unwrap();
    assert!(matches!(History::open(dir.path(), &RETENTION), Err(RunsError::Damaged { .. })));
}

#[test]
fn the_profiles_of_an_incident_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::open(dir.path(), &RETENTION).unwrap();
    let id = history.add_incident(5, "{}").unwrap();
    assert_eq!(history.profiles(id).unwrap(), None);
    let profiles = KeptProfiles { before: None, during: "nginx;main 3\n".to_owned() };
    history.keep_profiles(id, &profiles).unwrap();
    assert_eq!(history.profiles(id).unwrap(), Some(profiles.clone()));
    let both = KeptProfiles { before: Some("nginx;main 5\n".to_owned()), ..profiles };
    history.keep_profiles(id, &both).unwrap();
    assert_eq!(history.profiles(id).unwrap(), Some(both.clone()));
    assert!(matches!(history.profiles(99), Err(RunsError::NoIncident { id: 99 })));
    assert!(matches!(history.keep_profiles(99, &both), Err(RunsError::NoIncident { id: 99 })));
}

#[test]
fn a_damaged_history_is_moved_aside_and_a_new_one_begun() {
    let dir = tempfile::tempdir().unwrap();
    let path = History::open(dir.path(), &RETENTION).unwrap().path().to_owned();
    for number in 1..12 {
        let damage = format!("no database {number}, whatever its name says. {}", "x".repeat(5_000));
        fs::write(&path, &damage).unwrap();
        assert!(matches!(History::open(dir.path(), &RETENTION), Err(RunsError::Damaged { .. })), "{number}");
        let (history, aside) = History::begin_anew(dir.path(), &RETENTION).unwrap();
        assert_eq!(history.samples(1, 0, u64::MAX, 9).unwrap(), Vec::<String>::new());
        assert!(aside.to_str().unwrap().ends_with(&format!("history.sqlite.damaged-{}", number.min(9))), "{}", aside.display());
        assert_eq!(fs::read_to_string(aside).unwrap(), damage, "what was there is kept");
    }
}
