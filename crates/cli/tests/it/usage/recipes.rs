//! The recipes of docs/json.md: each is run by a shell, and prints what the page says.
//!
//! Deterministic: a recording and jq.

use std::process::Command;

use crate::harness::{Chokepoint, has_programs, ran, repository};

/// The recipes of the page, each with the lines that it prints.
fn recipes(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(first) = line.strip_prefix("    ") else { continue };
        let mut block = vec![first];
        while let Some(next) = lines.next_if(|line| line.starts_with("    ")) {
            block.push(next.trim_start());
        }
        blocks.push(block);
    }
    let pairs = blocks.windows(2).filter(|pair| pair[0][0].starts_with("jq "));
    pairs.map(|pair| (pair[0][0], pair[1].clone())).collect()
}

#[test]
fn every_recipe_prints_what_the_page_says() {
    if !has_programs(&["jq"]) {
        return;
    }
    let chokepoint = Chokepoint::new();
    let recording = repository("tests/data/conntrack-table/conntrack-full.rec");
    let fail_if = ["--fail-if", "choked || p99>250ms"];
    let report = chokepoint.run(&[&["diagnose", "--replay", recording.to_str().unwrap(), "--json"], &fail_if[..]].concat());
    chokepoint.write("report.json", report.stdout.as_bytes());
    let experiment = std::fs::read(repository("crates/cli/tests/data/experiment/pair.json")).unwrap();
    chokepoint.write("experiment.json", &experiment);
    let page = std::fs::read_to_string(repository("docs/json.md")).unwrap();
    let recipes = recipes(&page);
    assert_eq!(recipes.len(), 7, "{recipes:?}");
    for (recipe, expected) in recipes {
        let found = ran(Command::new("sh").args(["-c", recipe]).current_dir(chokepoint.dir.path()).output().unwrap());
        assert_eq!((found.status, found.stderr.as_str()), (Some(0), ""), "{recipe}");
        assert_eq!(found.stdout.lines().collect::<Vec<_>>(), expected, "{recipe}");
    }
}

/// A document of a later version has fields that no schema of this one describes.
#[test]
fn every_schema_accepts_fields_of_a_later_version() {
    for entry in std::fs::read_dir(repository("docs/schema")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap().replace(char::is_whitespace, "");
        assert!(!text.contains("\"additionalProperties\":false"), "{} refuses fields that a later version adds", path.display());
    }
}
