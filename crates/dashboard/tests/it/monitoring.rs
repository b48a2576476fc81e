//! The alert rules and the dashboard of packaging/monitoring: they name only metrics and labels that are served, and Prometheus's own tool (promtool) takes them, their
//! tests, and the metrics.
//!
//! Deterministic: a made-up board; promtool opens no connection.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use chokepoint_dashboard::{Board, Format, Seen, render};
use chokepoint_model::observation::NginxStatus;
use chokepoint_model::report::{LedgerLossKind, LedgerPlaceKind};
use chokepoint_recorder::{Durations, Logged, Loss, Mean, Queue, Sample, Standing, TargetSample};
use chokepoint_statistics::histogram::Histogram;
use serde_json::{Value, json};

/// Labels that Prometheus adds.
const ADDED: [&str; 2] = ["instance", "job"];

/// The metrics of a server of which everything is known, so that each family has a member.
fn metrics(format: Format) -> String {
    let mut histogram = Histogram::default();
    [900, 3_000, 70_000_000].into_iter().for_each(|us| histogram.add(us));
    let logged = Logged {
        status: BTreeMap::from([(200, 2), (502, 1)]),
        bytes: 10,
        unread: 1,
        urls: BTreeMap::new(),
        durations_us: BTreeMap::from([("request".to_owned(), Durations(histogram.counts()))]),
        upstreams: BTreeMap::new(),
    };
    let tier = "nginx".to_owned();
    let place = Some("accept-queue".to_owned());
    let target = TargetSample {
        target: "http://127.0.0.1/".to_owned(),
        under_way: Mean::of(Some(4.0), 1.0),
        rate: Mean::of(Some(8.0), 1.0),
        places: vec![Standing { tier: tier.clone(), place: LedgerPlaceKind::AcceptQueue, request_seconds: 3.0 }],
        losses: vec![Loss { tier: Some(tier), place, kind: LedgerLossKind::Dropped, count: 2.0 }],
        queues: vec![Queue { listener: "0.0.0.0:80".to_owned(), most: 3, limit: 511 }],
        logged: Some(logged),
        ..TargetSample::default()
    };
    let nginx = BTreeMap::from([("http://127.0.0.1/".to_owned(), NginxStatus::default())]);
    let board = Arc::new(Board::default());
    let ages = BTreeMap::from([(target.target.clone(), Duration::ZERO)]);
    let sample = Sample { at_s: 1, span_s: 1, targets: vec![target], host: None };
    board.see(Seen { sample, nginx, age: Some(Duration::ZERO), ages, ..Seen::default() });
    render(&board, format)
}

/// The names that are served, each with its labels.
fn served() -> BTreeMap<String, BTreeSet<String>> {
    let text = metrics(Format::Text);
    let sample = |line: &str| {
        let (series, _) = line.rsplit_once(' ')?;
        let (name, rest) = series.split_once('{').unwrap_or((series, "}"));
        let labels = rest.rsplit_once('}')?.0.split("\",").filter_map(|label| label.split_once('=')).map(|(label, _)| label.to_owned());
        Some((name.to_owned(), labels.collect()))
    };
    text.lines().filter(|line| !line.starts_with('#')).map(|line| sample(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/monitoring")).join(name)
}

/// A query of the dashboard, and what names its series.
struct Query {
    expression: String,
    legend: String,
}

fn dashboard() -> Value {
    serde_json::from_slice(&std::fs::read(file("grafana.json")).unwrap()).unwrap()
}

fn queries(dashboard: &Value) -> Vec<Query> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let panels = dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let panels = panels.map(|target| Query { expression: text(&target["expr"]), legend: text(&target["legendFormat"]) });
    let annotations = dashboard["annotations"]["list"].as_array().unwrap().iter();
    let annotations = annotations.map(|known| Query { expression: text(&known["expr"]), legend: text(&known["titleFormat"]) });
    // label_values(SERIES, LABEL) is Grafana's own; the label is what the legend would name.
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter().filter_map(|variable| {
        let (expression, label) =
            variable["query"]["query"].as_str()?.strip_prefix("label_values(")?.strip_suffix(')')?.rsplit_once(", ")?;
        Some(Query { expression: expression.to_owned(), legend: format!("{{{{{label}}}}}") })
    });
    panels.chain(annotations).chain(variables).collect()
}

/// The metrics' names in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("chokepoint_") || word.starts_with("nginx_")).collect()
}

/// What stands between each pair of these.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    text.split(open).skip(1).filter_map(|rest| Some(rest.split_once(close)?.0.trim())).collect()
}

#[test]
fn rules_and_dashboard_name_only_what_is_served() {
    let served = served();
    let dashboard = dashboard();
    let queries = queries(&dashboard);
    assert!(queries.len() >= 12, "{}", queries.len());
    for query in &queries {
        let names = names(&query.expression);
        let labels: BTreeSet<&str> = names.iter().filter_map(|name| served.get(*name)).flatten().map(String::as_str).chain(ADDED).collect();
        assert!(!names.is_empty() && names.iter().all(|name| served.contains_key(*name)), "{}", query.expression);
        let selected = between(&query.expression, "{", "}").into_iter().flat_map(|selector| selector.split(','));
        let selected = selected.map(|matcher| matcher.split(['=', '!']).next().unwrap_or_default());
        let grouped = between(&query.expression, "by (", ")").into_iter().flat_map(|labels| labels.split(", "));
        for label in selected.chain(grouped).chain(between(&query.legend, "{{", "}}")) {
            assert!(labels.contains(label), "no label {label:?}: {} {}", query.expression, query.legend);
        }
    }
    let rules = std::fs::read_to_string(file("alerts.yml")).unwrap();
    let named = names(&rules);
    assert!(named.len() >= 6 && named.iter().all(|name| served.contains_key(*name)), "{named:?}");
    let tested = std::fs::read_to_string(file("alerts-test.yml")).unwrap();
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tested.contains(&format!("alertname: {alert}\n")), "{alert} is not tested");
    }
}

/// Runs Prometheus's tool; its output fails the test if it refuses. False without it, and a note that the test is skipped.
fn promtool(args: &[&str], input: &str) -> bool {
    let mut command = Command::new("promtool");
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut running) = command.spawn() else {
        println!("skipped: promtool (package prometheus) is not installed");
        return false;
    };
    // It may end before it has read all.
    let _ = running.stdin.take().unwrap().write_all(input.as_bytes());
    let output = running.wait_with_output().unwrap();
    let told = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "promtool {args:?}: {}\n{input}", String::from_utf8_lossy(&told));
    true
}

#[test]
fn promtool_takes_the_metrics() {
    promtool(&["check", "metrics"], &metrics(Format::Text));
}

#[test]
fn promtool_takes_the_alert_rules_and_each_fires_when_it_should() {
    let (rules, tests) = (file("alerts.yml"), file("alerts-test.yml"));
    let _ = promtool(&["check", "rules", rules.to_str().unwrap()], "") && promtool(&["test", "rules", tests.to_str().unwrap()], "");
}

#[test]
fn promtool_takes_the_expressions_of_the_dashboard() {
    let dashboard = dashboard();
    let rule = |(number, query): (usize, Query)| {
        let expression = query.expression.replace("$__rate_interval", "1m").replace("$instance", ".*").replace("$target", ".*");
        assert!(!expression.contains('$'), "an unknown variable: {expression}");
        json!({ "record": format!("query:{number}"), "expr": expression })
    };
    let rules: Vec<Value> = queries(&dashboard).into_iter().enumerate().map(rule).collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rules.yml");
    // JSON is YAML.
    std::fs::write(&path, json!({ "groups": [{ "name": "dashboard", "rules": rules }] }).to_string()).unwrap();
    promtool(&["check", "rules", path.to_str().unwrap()], "");
}
