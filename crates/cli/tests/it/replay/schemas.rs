//! A walk over all schemas, and over what each verb says of every recording: no number stands for what was not read.
//!
//! Deterministic: recordings and documents.

use std::collections::BTreeMap;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_model::path;
use chokepoint_model::whereabouts::whereabouts;
use chokepoint_recording::read;
use chokepoint_sizing::answer::{self, Asked};
use chokepoint_sizing::objective::Objective;
use chokepoint_sizing::{capacity, reading};
use chokepoint_sources::assemble_recorded;
use serde_json::{Value, json};

use crate::harness::{all_recordings, fits, repository, wrong_figures};

/// Calls with the path and each description of a schema.
fn each_description(path: &str, schema: &Value, call: &mut dyn FnMut(&str, &str)) {
    match schema {
        Value::Object(fields) => {
            if let Some(text) = fields.get("description").and_then(Value::as_str) {
                call(path, text);
            }
            fields.iter().for_each(|(name, value)| each_description(&format!("{path}.{name}"), value, call));
        }
        Value::Array(items) => items.iter().for_each(|item| each_description(path, item, call)),
        _ => {}
    }
}

#[test]
fn no_schema_has_a_number_for_what_was_not_read() {
    let mut wrong = Vec::new();
    let mut described = 0;
    for entry in std::fs::read_dir(repository("docs/schema")).unwrap() {
        let file = entry.unwrap().path();
        let schema: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        each_description("", &schema, &mut |path, text| {
            described += 1;
            let words: Vec<&str> =
                text.split(|letter: char| !letter.is_alphanumeric() && letter != '-').filter(|word| !word.is_empty()).collect();
            let stands_for = |pair: &[&str]| ["0", "zero", "-1"].contains(&pair[0]) && ["if", "where", "when", "for"].contains(&pair[1]);
            // "Never below zero where" says what a number cannot be; a share below zero would be one that cannot be.
            if words.windows(2).any(stands_for) {
                wrong.push(format!("{}{path}: {text}", file.display()));
            }
        });
    }
    assert!(described > 500, "{described}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What `capacity`, `where` and `size` say of each recording.
#[test]
fn what_other_verbs_say_of_every_recording_is_possible() {
    let words = Catalogue::english();
    let mut wrong = Vec::new();
    for file in all_recordings() {
        let entries = read(&std::fs::read(repository(&file)).unwrap()).unwrap().entries;
        let obs = assemble_recorded(&entries).unwrap();
        let diagnosis = diagnose(&obs, &words);
        let watched_s = obs.window_us.map_or(0.0, |(begin, end)| end.saturating_sub(begin) as f64 / 1e6);
        let capacity = serde_json::to_string(&capacity::report(&diagnosis, watched_s, None, &words)).unwrap();
        let whereabouts = serde_json::to_string(&whereabouts(&obs, &path::discover(&obs), 1.0, &words)).unwrap();
        let mut documents = vec![("capacity-1.json", capacity), ("where-1.json", whereabouts)];
        if let Some(step) = reading::step(&obs, &diagnosis, &words) {
            let objective = Objective { p99_us: 200_000, given: true };
            let (url, memory, warnings) = (diagnosis.target.url.clone(), BTreeMap::new(), Vec::new());
            let asked = Asked { url, objective, connections_max: 1024, rate_rps: None, is_cut: false, memory, warnings };
            documents.push(("size-1.json", serde_json::to_string(&answer::report(&asked, &[step], &words)).unwrap()));
        }
        for (schema, text) in documents {
            wrong.extend(wrong_figures(&fits(&text, schema)).into_iter().map(|one| format!("{file} ({schema}): {one}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_walk_finds_what_it_looks_for() {
    let nothing = json!({"p50": 0, "p99": 0, "max": 0});
    let broken =
        json!({"tls_us": nothing, "share": 1.2, "path": [{"utilization": -0.1}], "ceiling_rps": {"value": 9, "low": 1, "high": 8}});
    assert_eq!(wrong_figures(&broken).len(), 4, "{:?}", wrong_figures(&broken));
    let fine =
        json!({"growth": {"share": 5.0}, "rtt_us": {"count": 3, "p50": 0, "max": 0}, "mean": 2, "low": 1, "high": 3, "tls_us": null});
    assert!(wrong_figures(&fine).is_empty());
}
