//! Mistyped command lines, missing targets and broken files: a clear message, the right exit status, and no change to the host.
//!
//! Deterministic: recordings and command lines; tests with a server are in its module `live`.

mod recipes;

use crate::harness::{self, Chokepoint, repository};

#[test]
fn an_invalid_command_line_is_refused_with_the_reason() {
    let chokepoint = Chokepoint::new();
    let cases: &[(&[&str], &str)] = &[
        (&["diagnos"], "diagnose"),
        (&["diagnose"], "URL"),
        (&["diagnose", "http://"], "no host"),
        (&["diagnose", "http:///index.html"], "no host"),
        (&["diagnose", "ftp://127.0.0.1/"], "not supported"),
        (&["diagnose", "http+unix:app.sock:/"], "whole path"),
        (&["diagnose", "fcgi+unix:/run/php.sock"], "names no script"),
        (&["diagnose", "fcgi://127.0.0.1:9000/"], "names no script"),
        (&["diagnose", "--load", "--fcgi-param", "A=b", "http://127.0.0.1/"], "fcgi URL"),
        (&["diagnose", "--load", "--fcgi-param", "A", "fcgi://127.0.0.1/x.php"], "NAME=VALUE"),
        (&["diagnose", "--load", "--fcgi-param", "=b", "fcgi://127.0.0.1/x.php"], "no name of a FastCGI parameter"),
        (&["diagnose", "http://127.0.0.1:99999/"], "not a"),
        (&["diagnose", "-z", "soon", "http://127.0.0.1/"], "not a time"),
        (&["diagnose", "--expect", "ok", "http://127.0.0.1/"], "not a status"),
        (&["diagnose", "--slo", "fast", "http://127.0.0.1/"], "p99<1s"),
        (&["diagnose", "-c", "0", "http://127.0.0.1/"], "at least 1"),
        (&["diagnose", "-q", "-5", "http://127.0.0.1/"], "-5"),
        (&["diagnose", "--load", "-H", "no colon", "http://127.0.0.1/"], "Name: value"),
        (&["diagnose", "--load", "-H", "X: a\r\nInjected: b", "http://127.0.0.1/"], "control character"),
        (&["diagnose", "--load", "--guard", "errors", "http://127.0.0.1/"], "errors"),
        (&["diagnose", "--load", "https://127.0.0.1/"], "https"),
        (&["diagnose", "--fix", "--load", "http://127.0.0.1/"], "--yes"),
        (&["diagnose", "--replay", "x", "--fix"], "--fix"),
        (&["wher", "http://127.0.0.1/"], "where"),
        (&["where"], "URL"),
        (&["where", "http://"], "no host"),
        (&["where", "--interval", "10ms", "http://127.0.0.1/"], "at least 1s"),
        (&["where", "--window", "1h", "http://127.0.0.1/"], "at most 60s"),
        (&["where", "-z", "soon", "http://127.0.0.1/"], "not a time"),
        (&["lab", "run"], "SCENARIO"),
    ];
    for (args, reason) in cases {
        let ran = chokepoint.run(args);
        assert_eq!(ran.status, Some(2), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(reason), "{args:?} said: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{args:?}: stdout carries results alone");
    }
}

#[test]
fn a_failure_says_why_and_ends_with_status_1() {
    let chokepoint = Chokepoint::new();
    let whole = std::fs::read(repository("tests/data/conntrack-table/conntrack-full.rec")).unwrap();
    let half = chokepoint.write("half.rec", &whole[..whole.len() / 2]);
    let other = chokepoint.write("other.rec", b"\x7fELF\x02\x01\x01");
    let newer = chokepoint.write("newer.rec", b"chokepoint-recording 999\n\x1f\x8b");
    let broken = chokepoint.write("broken.toml", b"schema = 1\nname = \"x\n");
    let unknown = chokepoint.write("unknown.toml", b"schema = 1\nname = \"x\"\ntitle = \"t\"\ncolour = \"red\"\n");
    let cases: &[(&[&str], &[&str])] = &[
        (&["diagnose", "--replay", "/no/such/file"], &["/no/such/file", "No such file"]),
        (&["diagnose", "--replay", &half], &["half.rec", "cut"]),
        (&["diagnose", "--replay", &other], &["other.rec", "not a"]),
        (&["diagnose", "--replay", &newer], &["newer.rec", "999"]),
        (&["diagnose", "--load", "http://no-such-host.invalid/"], &["no-such-host.invalid", "resolved"]),
        (&["diagnose", "--load", "-z", "1s", "http://127.0.0.1:1/"], &["127.0.0.1:1", "listens", "--yes"]),
        (&["diagnose", "--load", "-z", "1s", "http+unix:/no/such.sock"], &["unix:/no/such.sock", "listens", "--yes"]),
        (&["diagnose", "--client-netns", "nowhere", "http://127.0.0.1/"], &["nowhere"]),
        (&["diagnose", "--load", "-m", "POST", "-D", "/no/such/body", "http://127.0.0.1/"], &["/no/such/body"]),
        (&["where", "--server-netns", "nowhere", "http://127.0.0.1/"], &["nowhere"]),
        (&["explain", "conntrack-full"], &["conntrack-full", "did you mean conntrack-table-full"]),
        (&["lab", "run", &broken], &["broken.toml:2"]),
        (&["lab", "run", &unknown], &["colour"]),
        (&["lab", "run", "conntrak-full"], &["conntrack-full"]),
        (&["lab", "up", "/no/such/scenario.toml"], &["/no/such/scenario.toml"]),
    ];
    for (args, reasons) in cases {
        let ran = chokepoint.run(args);
        assert!(matches!(ran.status, Some(1 | 2)), "{args:?}: {:?} {}", ran.status, ran.stderr);
        for reason in *reasons {
            assert!(ran.stderr.contains(reason), "{args:?} said: {}", ran.stderr);
        }
    }
    assert!(!chokepoint.file("state").exists(), "nothing was changed, so there is no journal");
}

#[test]
fn help_names_the_verbs_and_every_verb_has_help() {
    let chokepoint = Chokepoint::new();
    let help = chokepoint.run(&["--help"]);
    assert_eq!(help.status, Some(0));
    for verb in ["diagnose", "where", "undo", "lab", "explain"] {
        assert!(help.stdout.contains(verb));
        assert_eq!(chokepoint.run(&[verb, "--help"]).status, Some(0));
    }
    let none = chokepoint.run(&[]);
    assert_eq!(none.status, Some(2));
    assert!(none.stderr.contains("Usage"), "{}", none.stderr);
}

#[test]
fn explain_prints_every_page_as_text_and_as_json() {
    let chokepoint = Chokepoint::new();
    let list = chokepoint.run(&["explain", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list.stdout).unwrap();
    let pages = list["pages"].as_array().unwrap();
    assert!(pages.len() >= 7);
    for page in pages {
        let id = page["id"].as_str().unwrap();
        let text = chokepoint.run(&["explain", id]);
        assert_eq!(text.status, Some(0));
        for heading in ["What it limits", "How it shows", "How sure", "Remedies and their risk", "Sources"] {
            assert!(text.stdout.contains(heading), "{id} lacks {heading}");
        }
        let json: serde_json::Value = serde_json::from_str(&chokepoint.run(&["explain", id, "--json"]).stdout).unwrap();
        assert_eq!(json["id"], id);
    }
}

#[test]
fn undo_without_anything_applied_says_so() {
    let chokepoint = Chokepoint::new();
    for args in [&["undo"] as &[&str], &["undo", "--list"]] {
        let ran = chokepoint.run(args);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(0), "nothing is applied\n"));
    }
}

#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    use std::process::Stdio;
    let chokepoint = Chokepoint::new();
    let mut child = chokepoint.command(&["explain"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ran = harness::ran(child.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
}

mod live {
    use super::harness::{Chokepoint, Server};

    #[test]
    fn a_method_that_may_change_something_is_sent_only_with_leave() {
        let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
        let ran = chokepoint.run(&["diagnose", "-c", "1", "-z", "1s", "-m", "POST", "-d", "x", &server.url()]);
        assert_eq!(ran.status, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("POST") && ran.stderr.contains("--yes"), "{}", ran.stderr);
    }
}
