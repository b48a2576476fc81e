//! The output formats of `chokepoint bench`, each read back by an independent reader.
//!
//! Live beside others: the tests check files and counts of a load, not its speed.

use std::io::Write;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Chokepoint, OK, Ran, Server, free_address, repository};

/// Loads a server for a short time with these flags; a file `$NAME` is in the directory of the run.
fn bench(chokepoint: &Chokepoint, args: &[&str]) -> Ran {
    let server = Server::serving(|stream| stream.write_all(OK).is_ok());
    let args: Vec<String> = args.iter().map(|arg| arg.strip_prefix('$').map_or((*arg).to_owned(), |name| chokepoint.path(name))).collect();
    let mut all = vec!["bench", "-n", "3000", "-c", "4"];
    all.extend(args.iter().map(String::as_str));
    let url = server.url();
    all.push(&url);
    chokepoint.run(&all)
}

fn read(chokepoint: &Chokepoint, name: &str) -> String {
    std::fs::read_to_string(chokepoint.file(name)).unwrap()
}

/// Decodes the histogram of the JSON report (RFC 4648 base64, HDR V2 deflated).
fn histogram(report: &Value) -> hdrhistogram::Histogram<u64> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut word, mut bits) = (Vec::new(), 0u32, 0);
    for byte in report["histogram"].as_str().unwrap().bytes().filter(|byte| *byte != b'=') {
        word = word << 6 | alphabet.iter().position(|letter| *letter == byte).unwrap() as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    hdrhistogram::serialization::Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
}

#[test]
fn the_hgrm_file_has_the_distribution_of_the_histogram() {
    let chokepoint = Chokepoint::new();
    let ran = bench(&chokepoint, &["--json", "--hgrm", "$out.hgrm"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let histogram = histogram(&serde_json::from_str(&ran.stdout).unwrap());
    let text = read(&chokepoint, "out.hgrm");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(names, ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]);
    let rows: Vec<Vec<f64>> = lines
        .clone()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_whitespace().map(|cell| cell.parse().unwrap()).collect())
        .collect();
    assert!(rows.len() > 20, "{text}");
    for row in &rows {
        let [value_ms, quantile, count] = row[..3] else { panic!("{row:?}") };
        let value_us = (value_ms * 1e3).round() as u64;
        assert_eq!(histogram.count_between(0, value_us), count as u64, "{row:?} of\n{text}");
        assert!(count >= quantile * 3000.0 - 1e-6, "{row:?}");
        if let Some(inverse) = row.get(3) {
            assert!((inverse - 1.0 / (1.0 - quantile)).abs() <= 0.005 * inverse, "{row:?}");
        }
    }
    assert!(rows.windows(2).all(|pair| pair[0][0] <= pair[1][0] && pair[0][1] <= pair[1][1]), "{text}");
    let last = rows.last().unwrap();
    assert_eq!((last.len(), last[1], last[2]), (3, 1.0, 3000.0), "the last row covers all requests");
    let foot: Vec<&str> = lines.filter(|line| line.starts_with('#')).collect();
    let number = |line: &str, name: &str| -> f64 {
        let rest = line.split_once(name).unwrap().1.trim_start_matches([' ', '=']);
        rest[..rest.find([',', ']']).unwrap()].trim().parse().unwrap()
    };
    assert_eq!((number(foot[1], "Max"), number(foot[1], "Total count")), (last[0], 3000.0), "{foot:?}");
    assert!((number(foot[0], "Mean") * 1e3 - histogram.mean()).abs() <= 1.0, "{foot:?}");
    assert!((number(foot[0], "StdDeviation") * 1e3 - histogram.stdev()).abs() <= 1.0, "{foot:?}");
    assert_eq!((number(foot[2], "Buckets"), number(foot[2], "SubBuckets")), (f64::from(histogram.buckets()), 2048.0), "{foot:?}");
}

#[test]
fn the_time_series_adds_up_and_is_the_same_as_csv_and_as_json() {
    let chokepoint = Chokepoint::new();
    let ran = bench(&chokepoint, &["--json", "--csv", "$out.csv", "--warm-up", "200ms"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let text = read(&chokepoint, "out.csv");
    let (header, body) = text.split_once('\n').unwrap();
    let documented = std::fs::read_to_string(repository("docs/bench.md")).unwrap();
    assert!(documented.contains(header), "docs/bench.md describes other columns than {header}");
    let rows: Vec<Vec<&str>> = body.lines().map(|line| line.split(',').collect()).collect();
    let slices = report["timeline"]["slices"].as_array().unwrap();
    // 10 ms, or more if the machine stalled for over a minute.
    let interval_ms = report["timeline"]["interval_ms"].as_u64().unwrap();
    assert!(rows.len() == slices.len() && (interval_ms / 10).is_power_of_two(), "{interval_ms}: {text}");
    let length_s = interval_ms as f64 / 1e3;
    let mut sums = [0u64; 4];
    for (place, (row, slice)) in rows.iter().zip(slices).enumerate() {
        assert_eq!((row.len(), row[0], row[1]), (9, &*format!("{:.2}", place as f64 * length_s), &*format!("{length_s:.2}")), "{row:?}");
        for (column, name) in ["started", "good", "wrong", "failed", "in_flight"].iter().enumerate() {
            assert_eq!(row[2 + column], slice[name].to_string(), "{row:?}");
        }
        for (sum, cell) in sums.iter_mut().zip(&row[2..]) {
            *sum += cell.parse::<u64>().unwrap();
        }
        let ended = row[3] != "0" || row[4] != "0" || row[5] != "0";
        assert_eq!((row[7].is_empty(), row[8].is_empty()), (!ended, !ended), "{row:?}");
        if ended {
            let (mean, max): (f64, f64) = (row[7].parse().unwrap(), row[8].parse().unwrap());
            assert!(mean <= max && Some(max) == slice["latency_us_max"].as_f64(), "{row:?}");
        }
    }
    assert_eq!(sums, [3000, 3000, 0, 0], "every request counted once, none of the warm-up");
    assert_eq!(rows.last().unwrap()[6], "0", "nothing is in flight at the end");
    let largest = slices.iter().filter_map(|slice| slice["latency_us_max"].as_u64()).max();
    assert_eq!(largest, report["load"]["latency_us"]["max"].as_u64());
}

#[test]
fn the_junit_report_has_a_test_case_for_each_condition() {
    let chokepoint = Chokepoint::new();
    let ran = bench(&chokepoint, &["--junit", "$out.xml", "--fail-if", "p99>1m || max>=1us || errors>0.1%"]);
    assert_eq!((ran.status, ran.stdout.contains("Failed")), (Some(99), true), "{}", ran.stdout);
    let parse = "import json, sys, xml.etree.ElementTree as e\n\
        root = e.parse(sys.argv[1]).getroot()\n\
        suite = root.find('testsuite')\n\
        cases = [[c.get('name'), [f.get('message') for f in c.findall('failure')]] for c in suite.findall('testcase')]\n\
        print(json.dumps({'root': root.tag, 'counts': [suite.get('tests'), suite.get('failures')], 'cases': cases}))";
    let Ok(python) = Command::new("python3").args(["-c", parse]).arg(chokepoint.file("out.xml")).output() else {
        println!("skipped: python3, whose XML parser reads the report back, is not installed");
        return;
    };
    let parsed: Value = serde_json::from_slice(&python.stdout).unwrap_or_else(|error| panic!("{error}: {python:?}"));
    assert_eq!((&parsed["root"], &parsed["counts"]), (&Value::from("testsuites"), &serde_json::json!(["4", "1"])), "{parsed:#}");
    let cases = parsed["cases"].as_array().unwrap();
    let names: Vec<&str> = cases.iter().map(|case| case[0].as_str().unwrap()).collect();
    assert_eq!(names, ["requests are answered as expected", "not p99>1m", "not max>=1us", "not errors>0.1%"]);
    let failures: Vec<usize> = cases.iter().map(|case| case[1].as_array().unwrap().len()).collect();
    assert_eq!(failures, [0, 0, 1, 0], "{parsed:#}");
    assert!(cases[2][1][0].as_str().unwrap().starts_with("max>=1us: "), "{parsed:#}");
    // Without any answer the first case fails.
    let nobody = format!("http://{}/", free_address());
    let ran = chokepoint.run(&["bench", "--yes", "-z", "200ms", "--junit", "-", &nobody]);
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("tests=\"1\" failures=\"1\"") && ran.stdout.contains("<failure message=\"Every connection was refused"),
        "{}",
        ran.stdout
    );
}

#[test]
fn the_markdown_report_has_a_table_of_times() {
    let chokepoint = Chokepoint::new();
    let ran = bench(&chokepoint, &["--markdown", "-", "--fail-if", "errors>0.1%"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    assert!(ran.stdout.starts_with("**") && ran.stdout.contains("requests/s answered as expected"), "{}", ran.stdout);
    assert!(ran.stdout.contains("✅ errors\\>0.1%"), "{}", ran.stdout);
    let table: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with('|')).collect();
    assert!(table.len() >= 4 && table[1].starts_with("|---|--:|"), "{}", ran.stdout);
    assert!(table.iter().all(|row| row.matches('|').count() == 9), "{}", ran.stdout);
    assert!(table.iter().any(|row| row.starts_with("| first byte |")), "{}", ran.stdout);
}

#[test]
fn only_one_format_may_go_to_stdout() {
    let chokepoint = Chokepoint::new();
    for args in [["--json", "--csv=-"], ["--markdown=-", "--hgrm=-"]] {
        let ran = bench(&chokepoint, &args);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains("cannot both be printed"), "{}", ran.stderr);
    }
    let ran = bench(&chokepoint, &["--csv=-", "--hgrm", "$out.hgrm"]);
    assert!(ran.stdout.starts_with("start_s,") && read(&chokepoint, "out.hgrm").contains("#[Mean"), "{}", ran.stdout);
    let ran = bench(&chokepoint, &["--csv", "$no/such/directory"]);
    // This is refused before any load, so there is no report.
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("no/such/directory"), "{} {}", ran.stdout, ran.stderr);
}
