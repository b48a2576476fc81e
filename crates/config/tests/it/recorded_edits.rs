//! The printed edit of a file is the same from the file itself and from its recording.
//!
//! Deterministic: configuration files.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "the crate reads no file; this test reads its corpus")]

use std::fs;
use std::path::{Path, PathBuf};

use chokepoint_config::server_setting::DumpedFiles;
use chokepoint_config::{dump, haproxy, nginx, php_fpm, text};
use chokepoint_model::change::{ServerKind, ServerSetting};
use chokepoint_model::observation::{ConfigurationFiles, FileEdit};
use proptest::prelude::*;

/// What is asked of an edit: the setting and its new value.
type Wanted = (ServerSetting, String);

fn files(server: ServerKind, file: &str) -> DumpedFiles {
    let mut all = String::new();
    dump::add(&mut all, "/etc/server.conf", file);
    DumpedFiles { server, dump: all, prefix: None, real_paths: Vec::new() }
}

/// The same as a recording keeps them.
fn recorded(files: &DumpedFiles) -> Option<DumpedFiles> {
    let hidden = match files.server {
        ServerKind::Nginx => nginx::hide(&files.dump).ok()?,
        ServerKind::PhpFpm => php_fpm::hide(&files.dump, None).ok()?,
        ServerKind::Haproxy => haproxy::hide(&files.dump).ok()?,
    };
    Some(DumpedFiles { dump: hidden.text, ..files.clone() })
}

/// The word behind each of these names, without what ends it.
fn behind<'t>(file: &'t str, name: &'t str) -> impl Iterator<Item = &'t str> {
    file.split(name).skip(1).filter_map(|rest| rest.split([' ', '\t', ';', '\n', '\r', ']']).find(|word| !word.is_empty()))
}

fn settings(server: ServerKind, file: &str) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    match server {
        ServerKind::Nginx => {
            wanted.push((ServerSetting::NginxWorkerConnections, "4321".to_owned()));
            wanted.push((ServerSetting::NginxWorkerRlimitNofile, "8765".to_owned()));
            wanted.push((ServerSetting::NginxTlsSessionCache, "shared:chokepoint:10m".to_owned()));
            for listen in behind(file, "listen") {
                let address = if listen.contains(':') { listen.to_owned() } else { format!("0.0.0.0:{listen}") };
                wanted.push((ServerSetting::NginxListenBacklog { address }, "4097".to_owned()));
            }
            for pass in behind(file, "fastcgi_pass") {
                wanted.push((ServerSetting::NginxFastcgiReuse { pass: pass.to_owned() }, ServerSetting::reuse(8, 20)));
                let (address, socket) = (pass.to_owned(), "unix:/run/x.sock".to_owned());
                wanted.push((ServerSetting::NginxFastcgiAddress { address, socket: socket.clone() }, socket));
            }
            for to in behind(file, "error_log") {
                wanted.extend(
                    ["error", "error, error"].map(|levels| (ServerSetting::NginxErrorLogLevels { to: to.to_owned() }, levels.to_owned())),
                );
            }
        }
        ServerKind::PhpFpm => {
            for pool in behind(file, "[").map(str::to_owned) {
                wanted.push((ServerSetting::PhpFpmMaxChildren { pool: pool.clone() }, "43".to_owned()));
                wanted.push((ServerSetting::PhpFpmBacklog { pool: pool.clone() }, "4096".to_owned()));
                let socket = ServerSetting::socket("/run/x.sock", "www-data");
                wanted.push((ServerSetting::PhpFpmSecondPool { pool: pool.clone() }, socket.clone()));
                wanted.push((ServerSetting::PhpFpmListen { pool }, socket));
            }
        }
        ServerKind::Haproxy => {
            for (section, line, limit) in HAPROXY_LIMITS {
                let (section, line, limit) = (section.to_string(), line.to_string(), limit.to_string());
                wanted.push((ServerSetting::Limit { server, section, line, limit }, "43".to_owned()));
            }
        }
    }
    wanted
}

/// The edits of the file itself, each compared with that of its recording.
fn edits(server: ServerKind, file: &str) -> Vec<Result<Vec<FileEdit>, String>> {
    let itself = files(server, file);
    let Some(recorded) = recorded(&itself) else { return Vec::new() };
    let compared = settings(server, file).into_iter().map(|(setting, to)| {
        let (live, replayed) = (itself.edited(&[], &[(&setting, &to)]), recorded.edited(&[], &[(&setting, &to)]));
        assert_eq!(live, replayed, "{setting:?} in\n{file}\nrecorded as\n{}", recorded.dump);
        live
    });
    compared.collect()
}

fn corpus(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let files = fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("a file").path());
    files.filter(|path| path.is_file()).collect()
}

#[test]
fn the_corpus_gives_the_same_edits_from_its_recordings() {
    let mut made = 0;
    for (server, folder) in [
        (ServerKind::Nginx, "nginx/good"),
        (ServerKind::Nginx, "nginx/debian"),
        (ServerKind::PhpFpm, "php-fpm/good"),
        (ServerKind::PhpFpm, "php-fpm/stock"),
    ] {
        for path in corpus(folder) {
            let file = text::decode(&fs::read(&path).expect("a file"));
            made += edits(server, &file).iter().filter(|edit| edit.as_ref().is_ok_and(|edit| !edit.is_empty())).count();
        }
    }
    assert!(made > 30, "{made} edits");
}

#[test]
fn a_line_with_a_few_words_behind_its_setting_is_edited_and_any_other_hidden_line_is_not() {
    let is_edited = |line: &str| {
        let file = format!("events {{\n{line}\n}}\n");
        let edit = &edits(ServerKind::Nginx, &file)[0];
        let shown = edit.as_ref().map(|edit| String::from_utf8_lossy(&edit[0].diff).into_owned());
        assert!(shown.as_ref().is_ok_and(|diff| diff.contains(&format!("-{line}\n"))) || shown.is_err(), "{shown:?}");
        shown.is_ok()
    };
    assert!(is_edited("  worker_connections 64;"));
    assert!(is_edited("\tworker_connections 64; # raised by hand in 2024"));
    assert!(!is_edited("worker_connections 64; # token=8f4e2c1ab09d"));
    assert!(!is_edited("worker_connections 64; use epoll;"));
    let stock = "[www]\nlisten = 9000\n; the queue\n;listen.backlog = 511\npm.max_children=5 ; small\n";
    let diffs: Vec<String> = edits(ServerKind::PhpFpm, stock)
        .into_iter()
        .map(|edit| String::from_utf8_lossy(&edit.expect("an edit")[0].diff).into_owned())
        .collect();
    assert!(diffs[0].ends_with("@@ -5 +5 @@\n-pm.max_children=5 ; small\n+pm.max_children=43 ; small\n"), "{diffs:?}");
    assert!(diffs[1].ends_with("@@ -4,0 +5 @@\n+listen.backlog = 4096\n"), "below the sample: {diffs:?}");
}

#[test]
fn a_line_of_haproxy_is_edited_if_a_recording_shows_all_of_it() {
    let is_edited = |line: &str| edits(ServerKind::Haproxy, &format!("backend app\n{line}\n"))[4].is_ok();
    for line in [
        "\tserver a  10.0.0.1:80 check maxconn 2",
        " server a 10.0.0.1:80 maxconn 2 weight 10 inter 2s # two, by hand",
        " server a app.example.org:80 ",
    ] {
        assert!(is_edited(line), "{line}");
    }
    for line in [
        " server a 10.0.0.1:80 cookie S3cret maxconn 2",
        " server a 10.0.0.1:80 maxconn 2 # token=8f4e2c1ab09d",
        " server a 10.0.0.1:80 maxconn 2 #",
    ] {
        assert!(!is_edited(line), "{line}");
    }
}

const NGINX_LINES: &[&str] = &[
    "worker_rlimit_nofile 64;",
    "error_log /e.log debug;",
    "events { worker_connections 64; }",
    "events {\n  worker_connections 64;\n}",
    "http {\n  server { listen 80 backlog=5; location / { fastcgi_pass 127.0.0.1:9000; } }\n}",
    "http {\n\tssl_session_cache none;\n\tupstream php { server 127.0.0.1:9000; keepalive 4; }\n\tserver {\n\t\tlisten 443 ssl;\n\t\tlocation / {\n\t\t\tfastcgi_pass php;\n\t\t\tfastcgi_param A b;\n\t\t}\n\t}\n}",
];
const PHP_FPM_LINES: &[&str] = &[
    "[www]",
    "listen = 9000",
    "listen.backlog=5",
    "  pm.max_children = 5",
    ";pm.max_children = 7",
    "; listen.backlog = 9",
    "pm = static",
    "env[A] = b",
    "user = x",
];
const HAPROXY_LIMITS: &[(&str, &str, &str)] = &[
    ("global", "", "maxconn"),
    ("frontend www", "", "maxconn"),
    ("frontend www", "", "rate-limit sessions"),
    ("frontend www", "bind :80", "maxconn"),
    ("backend app", "server a", "maxconn"),
    ("backend app", "server b", "maxconn"),
];
const HAPROXY_LINES: &[&str] = &[
    "global\n\tmaxconn 4000",
    "defaults\n  mode http\n  maxconn   900",
    "frontend www\n  bind :80  maxconn 5\n  rate-limit sessions 30",
    "frontend www\n  bind :80 ssl crt /x.pem",
    "backend app\n\tserver a\t127.0.0.1:81 check inter 2s maxconn 5\n server b 127.0.0.1:82 cookie b",
    "backend app\n default-server maxconn 7",
    "backend app\n server \"a\" 127.0.0.1:81 maxconn '5'",
];
const ENDS: &[&str] = &["", "", "\r", " ", " # a few words", "\t#\u{f7df}", " # key=x", "#"];

/// Each line of these texts with one of the ends.
fn with_ends(lines: &[&str], picks: &[(usize, Vec<usize>)], mark: &str) -> String {
    let mut file = String::new();
    for (pick, ends) in picks {
        for (number, line) in lines[pick % lines.len()].split('\n').enumerate() {
            file.push_str(&format!("{line}{}\n", ENDS[ends[number % ends.len()] % ENDS.len()].replace('#', mark)));
        }
    }
    file
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_file_gives_the_same_edits_from_its_recording(picks in proptest::collection::vec((any::<usize>(), proptest::collection::vec(any::<usize>(), 1..6)), 1..6)) {
        edits(ServerKind::Nginx, &with_ends(NGINX_LINES, &picks, "#"));
        edits(ServerKind::PhpFpm, &format!("[www]\n{}", with_ends(PHP_FPM_LINES, &picks, ";")));
        edits(ServerKind::Haproxy, &with_ends(HAPROXY_LINES, &picks, "#"));
    }
}
