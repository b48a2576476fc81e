//! Kept runs: the list, one run, comparisons, exports and removal, from stores that the tests fill.
//!
//! Deterministic: stores in temporary directories; tests with a server are in its module `live`.

use std::collections::BTreeMap;

use chokepoint_runs::{Better, FILE, Figure, NewRun, State, Store};

use crate::harness::{Chokepoint, fits};

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn run(goodput: f64, kernel: &str) -> NewRun {
    let figure = |name: &str, value, unit: &str, better| Figure { name: name.to_owned(), value, unit: unit.to_owned(), better };
    NewRun {
        kind: "bench".to_owned(),
        state: State::Done,
        began: "2026-01-02T03:04:05Z".to_owned(),
        duration_s: 10.0,
        target: "http://127.0.0.1/".to_owned(),
        label: String::new(),
        version: "0.2.0".to_owned(),
        headline: "It was measured.".to_owned(),
        figures: vec![figure("goodput", goodput, "/s", Better::More), figure("p99", 2_500.0, "us", Better::Less)],
        surroundings: BTreeMap::from([
            ("kernel".to_owned(), map(&[("release", kernel)])),
            ("nginx".to_owned(), map(&[("version", "1.22.1")])),
        ]),
        load: map(&[("connections", "100")]),
        document: "{\"schema\":\"chokepoint/bench/1\"}".to_owned(),
        fingerprint: None,
    }
}

/// A program with these runs, the first with number 1.
fn kept(runs: &[NewRun]) -> Chokepoint {
    let chokepoint = Chokepoint::new();
    let mut store = Store::open(&chokepoint.file("state")).unwrap();
    runs.iter().for_each(|run| assert!(store.add(run).unwrap() > 0));
    chokepoint
}

fn out(chokepoint: &Chokepoint, args: &[&str]) -> String {
    let ran = chokepoint.run(&[&["runs"], args].concat());
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
    ran.stdout
}

fn refused(chokepoint: &Chokepoint, args: &[&str], status: i32, reason: &str) {
    let ran = chokepoint.run(&[&["runs"], args].concat());
    assert_eq!(ran.status, Some(status), "{args:?}: {}", ran.stderr);
    assert!(ran.stderr.contains(reason) && ran.stdout.is_empty(), "{args:?}: {}", ran.stderr);
}

#[test]
fn without_a_kept_run_nothing_is_listed_and_nothing_is_made() {
    let chokepoint = Chokepoint::new();
    assert_eq!(out(&chokepoint, &["list"]), "No run is kept.\n");
    assert_eq!(out(&chokepoint, &["list", "--kind", "bench"]), "No run is kept that fits.\n");
    assert_eq!(out(&chokepoint, &["rm", "--all"]), "0 runs were removed.\n");
    fits(&out(&chokepoint, &["list", "--json"]), "runs-1.json");
    for args in [&["show", "last"][..], &["compare", "last"], &["export", "1"], &["rm", "1"]] {
        refused(&chokepoint, args, 1, "there is no run");
    }
    assert!(!chokepoint.file("state").exists());
}

#[test]
fn runs_are_listed_newest_first_and_shown() {
    let labelled = NewRun { label: "before".to_owned(), kind: "diagnose".to_owned(), ..run(50.0, "6.1") };
    let chokepoint = kept(&[run(100.0, "6.1"), labelled, NewRun { state: State::Interrupted, ..run(70.0, "6.1") }]);
    let list = out(&chokepoint, &["list"]);
    let order = ["goodput 70/s", "interrupted: It was measured.", "before", "goodput 100/s"].map(|part| list.find(part));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{list}");
    assert_eq!(out(&chokepoint, &["list", "--kind", "diagnose"]).lines().count(), 3);
    assert_eq!(out(&chokepoint, &["list", "-n", "1", "--target", "127.0"]).lines().count(), 3);
    let json = fits(&out(&chokepoint, &["list", "--json"]), "runs-1.json");
    assert_eq!((json["runs"][0]["id"].as_i64(), json["runs"].as_array().unwrap().len()), (Some(3), 3));
    let shown = out(&chokepoint, &["show", "2"]);
    for part in ["Run 2: diagnose of http://127.0.0.1/", "Label: before", "p99", "2.5 ms", "connections", "release", "1.22.1"] {
        assert!(shown.replace('\u{a0}', " ").contains(part), "{part}: {shown}");
    }
    let mut flagged = run(10.0, "6.1");
    let flags = [("connections", "100"), ("timeout", "2 s"), ("method", "GET"), ("threads", "4"), ("connections are kept", "true")];
    flagged.load = map(&flags);
    let shown = out(&kept(&[flagged]), &["show", "last"]).replace('\u{a0}', " ");
    assert!(shown.contains("threads") && shown.contains("100"), "what was asked for: {shown}");
    assert!(!["timeout", "GET", "connections are kept"].iter().any(|part| shown.contains(part)), "what is so without any flag: {shown}");
    assert_eq!(out(&chokepoint, &["show", "last", "--document"]), "{\"schema\":\"chokepoint/bench/1\"}\n");
    let json = fits(&out(&chokepoint, &["show", "previous", "--json"]), "runs-1.json");
    assert_eq!(json["run"]["id"], 1, "the run before with the same kind and target");
}

#[test]
fn the_last_run_is_compared_with_the_latest_that_was_faster() {
    let other = NewRun { target: "http://other/".to_owned(), ..run(900.0, "6.1") };
    let mut slow = run(100.0, "6.2");
    slow.surroundings.get_mut("nginx").unwrap().clear();
    let chokepoint = kept(&[run(200.0, "6.1"), run(105.0, "6.1"), other, slow]);
    let text = out(&chokepoint, &["compare", "last"]).replace('\u{a0}', " ");
    let parts = [
        "Run 4 compared with run 1",
        "Run 1 is the latest earlier run of the same kind, target and load whose goodput was higher by more than 10 %.",
        "-50 %",
        "Differences",
        "6.1 → 6.2",
        "Only run 1 read these",
        "nginx: version",
        "Two single runs at different times are no proof",
        "chokepoint experiment",
    ];
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("The loads differ"), "{text}");
    let json = fits(&out(&chokepoint, &["compare", "2", "--json"]), "runs-1.json");
    assert_eq!((&json["comparison"]["chosen"], &json["comparison"]["earlier"]["id"]), (&"faster".into(), &1.into()));
    assert_eq!(json["comparison"]["differences"], serde_json::json!([]));
    refused(&chokepoint, &["compare", "1"], 1, "no run before run 1");
    refused(&chokepoint, &["compare", "nine"], 1, "runs list");
    refused(&chokepoint, &["compare", "1", "99"], 1, "there is no run 99");
}

#[test]
fn runs_with_other_loads_are_flagged_and_equal_ones_have_no_difference() {
    let more = NewRun { load: map(&[("connections", "200")]), ..run(100.0, "6.1") };
    let chokepoint = kept(&[run(100.0, "6.1"), run(100.0, "6.1"), more]);
    let same = out(&chokepoint, &["compare", "1", "2"]);
    assert!(
        same.contains("Both runs were named") && same.contains("Nothing that both runs read differs: 4 values are the same."),
        "{same}"
    );
    let text = out(&chokepoint, &["compare", "last"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("The loads differ") && text.contains("100 → 200") && text.contains("Run 2 is the one before"), "{text}");
}

#[test]
fn a_run_is_exported_to_stdout_and_to_a_file() {
    let chokepoint = kept(&[NewRun { label: "a \"b\"".to_owned(), ..run(100.0, "6.1") }]);
    let markdown = out(&chokepoint, &["export", "1"]);
    assert!(markdown.starts_with("# Run 1: bench of") && markdown.contains("| release | 6.1 |"), "{markdown}");
    let json = fits(&out(&chokepoint, &["export", "1", "--json"]), "runs-1.json");
    assert_eq!(json["run"]["document"]["schema"], "chokepoint/bench/1");
    let csv = chokepoint.path("run.csv");
    assert_eq!(out(&chokepoint, &["export", "last", "--csv", "-o", &csv]), "");
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(csv.starts_with("group,name,value,unit\n") && csv.contains("\"run\",\"label\",\"a \"\"b\"\"\",\n"), "{csv}");
    assert!(csv.contains("\"figures\",\"goodput\",100,\"/s\"\n"), "{csv}");
}

#[test]
fn runs_are_removed_by_number_and_age_and_only_with_leave() {
    let young = NewRun { began: "9998-01-01T00:00:00Z".to_owned(), ..run(1.0, "6.1") };
    let chokepoint = kept(&[run(1.0, "6.1"), run(2.0, "6.1"), young]);
    refused(&chokepoint, &["rm", "1"], 2, "--yes");
    refused(&chokepoint, &["rm", "--older-than", "soon", "--yes"], 2, "30d");
    refused(&chokepoint, &["rm", "1", "99", "--yes"], 1, "there is no run 99");
    refused(&chokepoint, &["rm"], 2, "RUN");
    assert_eq!(out(&chokepoint, &["rm", "1", "1", "--yes"]), "One run was removed.\n");
    let json = fits(&out(&chokepoint, &["rm", "--older-than", "0d", "--yes", "--json"]), "runs-1.json");
    assert_eq!(json["removed"], serde_json::json!([2]));
    assert_eq!(out(&chokepoint, &["rm", "--all", "--yes"]), "One run was removed.\n");
}

#[test]
fn hostile_texts_are_spelled_out() {
    let evil = "\u{1b}]0;x\u{7}\n\u{202e}";
    let mut hostile =
        NewRun { label: evil.to_owned(), headline: evil.to_owned(), target: evil.to_owned(), kind: evil.to_owned(), ..run(1.0, evil) };
    hostile.surroundings.insert(evil.to_owned(), map(&[(evil, evil)]));
    hostile.load = map(&[(evil, evil)]);
    hostile.figures[1].name = evil.to_owned();
    let chokepoint = kept(&[NewRun { kind: evil.to_owned(), target: evil.to_owned(), ..run(2.0, "6.1") }, hostile]);
    for args in [
        &["list"][..],
        &["list", "--json"],
        &["show", "2"],
        &["show", "2", "--json"],
        &["compare", "last"],
        &["export", "2"],
        &["export", "2", "--csv"],
    ] {
        let text = out(&chokepoint, args);
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}') && !text.contains('\u{202e}'), "{args:?}: {text:?}");
    }
}

#[test]
fn a_store_that_cannot_be_used_is_named() {
    let chokepoint = kept(&[run(1.0, "6.1")]);
    let file = chokepoint.file("state").join(FILE);
    std::fs::write(&file, "no database, but long enough to be taken for one".repeat(100)).unwrap();
    refused(&chokepoint, &["list"], 1, "runs.sqlite is damaged");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
    refused(&chokepoint, &["list"], 1, "is not a regular file");
}

mod live {
    //! Runs that the verbs keep themselves.

    use super::*;
    use crate::harness::Server;

    #[test]
    fn bench_and_diagnose_keep_their_runs_without_secrets() {
        let chokepoint = Chokepoint::new();
        let server = Server::start("200 OK");
        let url = format!("http://{}/?token=SECRETVALUE", server.address);
        let flags = ["-c", "2", "-z", "200ms", "-H", "X-Key: HEADERVALUE"];
        for (verb, more) in [("bench", &["--label", "first"][..]), ("bench", &["--no-keep"]), ("diagnose", &["--redact", "none"])] {
            let ran = chokepoint.run(&[&[verb], &flags[..], more, &[url.as_str()]].concat());
            assert!(!ran.stderr.contains("not kept"), "{verb}: {}", ran.stderr);
        }
        let json = fits(&out(&chokepoint, &["list", "--json"]), "runs-1.json");
        let kinds: Vec<&str> = json["runs"].as_array().unwrap().iter().map(|run| run["kind"].as_str().unwrap()).collect();
        assert_eq!((kinds.as_slice(), &json["runs"][1]["label"]), (&["diagnose", "bench"][..], &"first".into()));
        for id in ["1", "2"] {
            let exported = out(&chokepoint, &["export", id, "--json"]);
            assert!(!exported.contains("SECRETVALUE") && !exported.contains("HEADERVALUE"), "{exported}");
            let run = &fits(&exported, "runs-1.json")["run"];
            assert_eq!((&run["load"]["connections"], &run["load"]["headers"]), (&"2".into(), &"X-Key".into()));
            assert!(run["surroundings"]["kernel"]["release"].is_string() && run["figures"][0]["name"] == "goodput", "{run:#}");
        }
    }

    #[test]
    fn a_store_that_cannot_be_written_is_a_note_and_no_failure() {
        let chokepoint = Chokepoint::new();
        let server = Server::start("200 OK");
        chokepoint.write("state", b"a file");
        let ran = chokepoint.run(&["bench", "-c", "1", "-z", "200ms", &format!("http://{}/", server.address)]);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("note: this run is not kept: "), "{}", ran.stderr);
    }
}
