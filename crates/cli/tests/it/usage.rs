//! Mistyped command lines, missing targets and broken files: a clear message, the right exit status, and no change to the host.
//!
//! Deterministic: recordings and command lines; tests with a server are in its module `live`.

mod recipes;
mod runs;

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
        (&["diagnose", "--load", "--fcgi-param", "=b", "fcgi://127.0.0.1/x.php"], "not the name of a FastCGI parameter"),
        (&["diagnose", "http://127.0.0.1:99999/"], "not a"),
        (&["diagnose", "-z", "soon", "http://127.0.0.1/"], "not a time"),
        (&["diagnose", "--expect", "ok", "http://127.0.0.1/"], "not a status"),
        (&["diagnose", "--slo", "fast", "http://127.0.0.1/"], "p99<1s"),
        (&["diagnose", "-c", "0", "http://127.0.0.1/"], "at least 1"),
        (&["diagnose", "-q", "-5", "http://127.0.0.1/"], "-5"),
        (&["diagnose", "--load", "-H", "no colon", "http://127.0.0.1/"], "Name: value"),
        (&["diagnose", "--load", "-H", "X: a\r\nInjected: b", "http://127.0.0.1/"], "control character"),
        (&["diagnose", "--load", "--guard", "errors", "http://127.0.0.1/"], "errors"),
        (&["diagnose", "--load", "-k", "http://127.0.0.1/"], "https"),
        (&["diagnose", "--load", "--cacert", "/no/such.pem", "https://127.0.0.1/"], "/no/such.pem"),
        (&["diagnose", "--resolve", "a.example:443", "https://a.example/"], "HOST:PORT:ADDRESS"),
        (&["diagnose", "--connect-to", "a.example:443:b", "https://a.example/"], "HOST1:PORT1:HOST2:PORT2"),
        (&["diagnose", "--fix", "--load", "http://127.0.0.1/"], "--yes"),
        (&["diagnose", "--fix", "http://127.0.0.1/"], "--fix needs one: add -c"),
        (&["diagnose", "--replay", "x", "--fix"], "--fix"),
        (&["wher", "http://127.0.0.1/"], "where"),
        (&["where"], "URL"),
        (&["where", "http://"], "no host"),
        (&["where", "--interval", "10ms", "http://127.0.0.1/"], "at least 1s"),
        (&["where", "--window", "1h", "http://127.0.0.1/"], "at most 60s"),
        (&["where", "-z", "soon", "http://127.0.0.1/"], "not a time"),
        (&["size"], "URL"),
        (&["size", "--slo", "fast", "http://127.0.0.1/"], "p99<1s"),
        (&["size", "--budget", "5s", "http://127.0.0.1/"], "at least 30s"),
        (&["size", "--slo", "p99<5s", "http://127.0.0.1/"], "raise -t"),
        (&["size", "--max-connections", "1", "http://127.0.0.1/"], "2..=100000"),
        (&["capacity", "--growth", "5%", "http://127.0.0.1/"], "5%/week"),
        (&["capacity", "-z", "soon", "http://127.0.0.1/"], "not a time"),
        (&["lab", "run"], "SCENARIO"),
        (&["lab", "run", "conntrack-full", "--duration", "1s"], "at least 3s"),
        (&["bench", "-t4", "-c1", "-d10s", "http://127.0.0.1/"], "-z 10s"),
        (&["diagnose", "-t4", "-c1", "-d10s", "http://127.0.0.1/"], "-z 10s"),
        (&["bench", "--latency", "http://127.0.0.1/"], "percentiles"),
        (&["bench", "-u", "a:b", "http://127.0.0.1/"], "Authorization"),
        (&["bench", "--resolve", "x", "http://127.0.0.1/"], "HOST:PORT:ADDRESS"),
        (&["bench", "--connect-to", "x", "http://127.0.0.1/"], "HOST1:PORT1"),
        (&["bench", "-k", "http://127.0.0.1/"], "https"),
        (&["diagnose", "--load", "--fail-if", "chocked", "http://127.0.0.1/"], "client-limited"),
        (&["diagnose", "--fail-if", "p99>1s", "http://127.0.0.1/"], "needs a load"),
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
        (&["diagnose", "--load", "-z", "1s", "http://127.0.0.1:1/"], &["127.0.0.1:1", "listens", "TCP listeners here"]),
        (&["diagnose", "--load", "-z", "1s", "http+unix:/no/such.sock"], &["unix:/no/such.sock", "listens"]),
        (&["diagnose", "--client-netns", "nowhere", "http://127.0.0.1/"], &["nowhere"]),
        (&["diagnose", "--load", "-m", "POST", "-D", "/no/such/body", "http://127.0.0.1/"], &["/no/such/body"]),
        (&["where", "--server-netns", "nowhere", "http://127.0.0.1/"], &["nowhere"]),
        (&["explain", "conntrack-full"], &["conntrack-full", "did you mean conntrack-table-full"]),
        (&["lab", "run", &broken], &["broken.toml:2"]),
        (&["lab", "run", &unknown], &["colour"]),
        (&["lab", "run", "conntrak-full"], &["conntrack-full", "conntrack-60", "lab list"]),
        (&["lab", "up", "nope"], &["The nearest names are ", "lab list"]),
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

/// The help of every verb, also of those below `lab`.
const VERBS: [&[&str]; 22] = [
    &["diagnose"],
    &["undo"],
    &["explain"],
    &["where"],
    &["bench"],
    &["experiment"],
    &["profile"],
    &["tcp"],
    &["streams"],
    &["size"],
    &["capacity"],
    &["lab"],
    &["lab", "list"],
    &["lab", "up"],
    &["lab", "down"],
    &["lab", "run"],
    &["runs"],
    &["runs", "list"],
    &["runs", "show"],
    &["runs", "compare"],
    &["runs", "export"],
    &["runs", "rm"],
];

fn help(verb: &[&str], flag: &str) -> String {
    let ran = harness::ran(Chokepoint::new().command(&[verb, &[flag]].concat()).env("COLUMNS", "80").output().unwrap());
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{verb:?}");
    ran.stdout
}

#[test]
fn every_help_says_the_exit_statuses_and_the_short_one_fits_a_screen() {
    for verb in VERBS {
        for flag in ["-h", "--help"] {
            assert!(help(verb, flag).contains("Exit status"), "{verb:?} {flag}");
        }
        let short = help(verb, "-h");
        assert!(short.lines().count() <= 40 && short.lines().all(|line| line.len() <= 80), "{verb:?}:\n{short}");
    }
    assert!(help(&[], "-h").lines().count() <= 40);
}

#[test]
fn the_help_begins_with_what_the_verb_does_and_has_its_flags_under_headings() {
    let verbs: [(&[&str], &str, &[&str]); 11] = [
        (&["diagnose"], "Find what limits a server", &["Target", "Load", "Fix", "Output"]),
        (&["bench"], "Load a server", &["Target", "Load", "Output"]),
        (&["where"], "Show live", &["Target", "Display", "Output"]),
        (&["profile"], "Profile where CPU time goes", &["Target", "Sampling", "Counting", "Output"]),
        (&["tcp"], "Show the kernel's state", &["Target", "One connection", "All connections", "Output"]),
        (&["size"], "Measure how much a server gives", &["Target", "Search", "Load", "Output"]),
        (&["capacity"], "Show what today's traffic leaves", &["Target", "Watch", "Output"]),
        (&["streams"], "Analyse TCP streams", &["Target", "Capture", "Output"]),
        (&["explain"], "Explain a station", &["Target", "Output"]),
        (&["lab", "run"], "Build", &["Target", "Run", "Output"]),
        (&["undo"], "Take back the changes", &["Options"]),
    ];
    for (verb, begin, headings) in verbs {
        for flag in ["-h", "--help"] {
            let text = help(verb, flag);
            assert!(text.starts_with(begin), "{verb:?} {flag}: {text}");
            let is_heading =
                |line: &&str| line.ends_with(':') && line.starts_with(|first: char| first.is_uppercase()) && *line != "Examples:";
            let found: Vec<&str> = text.lines().filter(is_heading).map(|line| line.trim_end_matches(':')).collect();
            assert_eq!(found, headings, "{verb:?} {flag}: {text}");
        }
    }
    let text = help(&[], "--help");
    let order =
        ["\nFind and fix:", "\n  diagnose ", "\n  undo ", "\n  explain ", "\nTools:", "\n  where ", "\n  lab "].map(|part| text.find(part));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?} {text}");
}

#[test]
fn a_recording_fails_a_job_by_its_verdict_and_its_figures() {
    let chokepoint = Chokepoint::new();
    let recording = repository("tests/data/conntrack-table/conntrack-full.rec");
    let run = |condition: &str| chokepoint.run(&["diagnose", "--replay", recording.to_str().unwrap(), "--fail-if", condition]);
    // The fix stayed, so the state after it counts.
    let ran = run("choked || errors>50%");
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    let ran = run("choked || goodput<1000000 || p50>0us");
    assert_eq!(ran.status, Some(99), "{}", ran.stderr);
    assert!(ran.stderr.lines().count() == 2 && ran.stderr.starts_with("failed: goodput<1000000: "), "{}", ran.stderr);
}

#[test]
fn colours_and_ascii_are_as_asked() {
    let chokepoint = Chokepoint::new();
    let recording = repository("tests/data/conntrack-table/conntrack-full.rec");
    let run = |flags: &[&str]| chokepoint.run(&[&["diagnose", "--replay", recording.to_str().unwrap()], flags].concat()).stdout;
    assert!(!run(&[]).contains('\x1b') && !run(&["--color", "never"]).contains('\x1b'));
    assert!(run(&["--color", "always"]).contains("\x1b["));
    assert!(!run(&[]).is_ascii() && run(&["--ascii"]).is_ascii());
}

#[test]
fn a_missing_capture_is_named_once() {
    let ran = Chokepoint::new().run(&["streams", "/no/such.pcap"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""));
    assert_eq!(ran.stderr.matches("/no/such.pcap").count(), 1, "{}", ran.stderr);
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
    use super::harness::{Chokepoint, Server, free_address};

    #[test]
    fn where_nobody_listens_the_listeners_are_named() {
        let (chokepoint, server, nobody) = (Chokepoint::new(), Server::start("200 OK"), free_address());
        let url = server.url();
        let port = url.trim_end_matches('/').rsplit(':').next().unwrap();
        for args in [&["bench", "-n", "1"] as &[&str], &["diagnose", "-c", "1", "-z", "1s"], &["diagnose", "-z", "1s"]] {
            let ran = chokepoint.run(&[args, &[&format!("http://{nobody}/")]].concat());
            assert!(matches!(ran.status, Some(1 | 2)), "{args:?}: {}", ran.stderr);
            assert!(ran.stderr.contains("TCP listeners") && ran.stderr.contains("port "), "{args:?}: {}", ran.stderr);
            // Beyond eight listeners the rest is only counted.
            assert!(ran.stderr.contains(&format!("port {port}")) || ran.stderr.contains(" more"), "{args:?}: {}", ran.stderr);
        }
    }

    #[test]
    fn a_name_is_loaded_where_the_flags_say() {
        let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
        let url = server.url();
        let port = url.trim_end_matches('/').rsplit(':').next().unwrap();
        let named = format!("http://no-such-host.invalid:{port}/");
        let resolve = format!("no-such-host.invalid:{port}:127.0.0.1");
        let connect_to = format!("no-such-host.invalid:80:127.0.0.1:{port}");
        for args in [["--resolve", &resolve, &named], ["--connect-to", &connect_to, "http://no-such-host.invalid/"]] {
            let ran = chokepoint.run(&[&["bench", "-n", "5", "-c", "1"], &args[..]].concat());
            assert_eq!(ran.status, Some(0), "{args:?}: {}", ran.stderr);
        }
    }

    #[test]
    fn a_body_with_get_is_told() {
        let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
        let ran = chokepoint.run(&["bench", "-n", "2", "-c", "1", "-d", "text", &server.url()]);
        assert!(ran.stderr.contains("-m POST") && ran.stderr.contains("-z"), "{}", ran.stderr);
        let ran = chokepoint.run(&["diagnose", "-z", "1s", "-d", "text", &server.url()]);
        assert!(ran.stderr.contains("-d has no effect without a load"), "{}", ran.stderr);
    }

    #[test]
    fn a_method_that_may_change_something_is_sent_only_with_leave() {
        let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
        let ran = chokepoint.run(&["diagnose", "-c", "1", "-z", "1s", "-m", "POST", "-d", "x", &server.url()]);
        assert_eq!(ran.status, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("POST") && ran.stderr.contains("--yes"), "{}", ran.stderr);
    }
}
