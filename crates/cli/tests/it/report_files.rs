//! `--html` and `--markdown`: the same bytes each time, and an error if a file cannot be written.
//!
//! Deterministic: recordings and command lines.

use crate::harness::{Chokepoint, repository};

fn recording() -> String {
    repository("tests/data/conntrack-table/conntrack-full.rec").to_str().unwrap().to_owned()
}

#[test]
fn a_replay_writes_the_same_files_each_time_and_prints_its_report() {
    let chokepoint = Chokepoint::new();
    let plain = chokepoint.run(&["diagnose", "--replay", &recording()]);
    let mut before: Option<[String; 2]> = None;
    for _ in 0..2 {
        let (html, markdown) = (chokepoint.file("report.html"), chokepoint.file("report.md"));
        let files = [html.to_str().unwrap(), markdown.to_str().unwrap()];
        let ran = chokepoint.run(&["diagnose", "--replay", &recording(), "--html", files[0], "--markdown", files[1]]);
        assert_eq!((ran.status, &ran.stdout), (plain.status, &plain.stdout), "{}", ran.stderr);
        let texts = files.map(|file| std::fs::read_to_string(file).unwrap());
        let finding = |text: &String| text.contains("conntrack-table-full") && text.contains("CHOKE POINT") && text.contains("sysctl -w");
        assert!(texts.iter().all(finding), "both have the finding, the choke point and the command");
        assert!(texts[0].starts_with("<!doctype html>") && texts[0].ends_with("</html>\n") && texts[1].starts_with("# "));
        assert!(before.replace(texts.clone()).is_none_or(|before| before == texts));
    }
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_after_the_report_is_printed() {
    let chokepoint = Chokepoint::new();
    let (nowhere, markdown) = (chokepoint.file("no/such/directory/report.html"), chokepoint.file("other.md"));
    let args = ["diagnose", "--replay", &recording(), "--html", nowhere.to_str().unwrap(), "--markdown", markdown.to_str().unwrap()];
    let ran = chokepoint.run(&args);
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("report.html") && ran.stdout.contains("FIXED"), "{}", ran.stderr);
    assert!(markdown.exists(), "the other file is still written");
}
