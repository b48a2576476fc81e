//! Steps that edit a server's configuration and reload it: recorded, and carried out in the lab of the recording. The server shows what is in force.
//!
//! Live: servers, namespaces and the clock; nothing is measured.

use std::process::Command;

use super::recorded::Recorded;
use super::{Lab, Shell, there_and_back, titled};
use crate::harness::{Chokepoint, has_programs, wait_until};

/// Recordings whose remedies edit servers: recording, remedy.
pub(super) const EDITS: &[(&str, &str)] = &[
    ("left-out/files-few", "raise-nofile"),
    ("left-out/worker-connections-few", "raise-worker-connections"),
    ("left-out/pool-exhausted", "raise-max-children"),
    ("left-out/accept-queue-short", "raise-accept-backlog"),
    ("improvements/work/debug-log", "log-errors-alone"),
    ("improvements/tls/tls-not-resumed", "store-tls-sessions"),
    ("data/server-limit/master-maxconn", "raise-server-limit"),
    ("data/upstream-connect/unix-socket", "move-to-unix-socket"),
    ("data/ephemeral-ports/time-wait-accepting", "reuse-upstream-connections-short"),
    ("data/ephemeral-ports/time-wait-accepting", "reuse-upstream-connections-medium"),
    ("data/ephemeral-ports/time-wait-accepting", "reuse-upstream-connections-long"),
    ("misses/accept-queue/random-20261121-0", "listen-again"),
    ("misses/accept-queue/random-22360679-14", "reload-configuration"),
];

/// Carries out the recorded steps for each remedy of [`EDITS`] of this recording, and the undo.
fn all_there_and_back(lab: &Lab<'_>, recording: &str, in_force: &dyn Fn() -> Option<String>) {
    let recorded = Recorded::of(recording);
    let remedies: Vec<&str> = EDITS.iter().filter(|(of, _)| *of == recording).map(|(_, remedy)| *remedy).collect();
    assert!(!remedies.is_empty(), "{recording}");
    for id in remedies {
        there_and_back(lab, &recorded.remedy_in(lab, lab.name, id), in_force);
    }
}

/// What a shell in the lab's namespace prints, in one line; nothing if the command fails.
fn printed(lab: &Lab<'_>, command: &str) -> Option<String> {
    let output = Command::new("ip").args(["netns", "exec", &lab.netns(), "sh", "-c", command]).output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().replace('\n', " "))
}

/// The limit of open files of nginx's workers; nothing while those of two configurations run.
fn open_files(lab: &Lab<'_>) -> Option<String> {
    let limits = titled(lab, "nginx: worker process").into_iter().map(|pid| {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next().map(str::to_owned))
    });
    let limits: Vec<String> = limits.collect::<Option<_>>()?;
    limits.iter().all(|limit| *limit == limits[0]).then(|| limits[0].clone())
}

#[test]
fn the_steps_for_open_files_change_the_limit_of_the_workers() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "files-few") else { return };
    all_there_and_back(&lab, "left-out/files-few", &|| open_files(&lab));
}

#[test]
fn the_steps_for_a_short_queue_change_its_limit() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "accept-queue-short") else { return };
    all_there_and_back(&lab, "left-out/accept-queue-short", &|| lab.queue(":80"));
}

/// The dump of nginx is what it reads at a reload; its workers are new afterwards.
#[test]
fn the_steps_for_connections_edit_nginx_and_reload_it() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "worker-connections-few") else { return };
    let read = || {
        let workers = titled(&lab, "nginx: worker process");
        let text = std::fs::read_to_string(lab.run().join("nginx.conf")).unwrap();
        let line = text.lines().find(|line| line.contains("worker_connections")).map(str::to_owned);
        (workers, line)
    };
    let (first, _) = read();
    all_there_and_back(&lab, "left-out/worker-connections-few", &|| read().1);
    wait_until("the workers are others", || read().0.iter().all(|pid| !first.contains(pid)));
}

#[test]
fn the_steps_for_a_pool_edit_it_and_reload_php_fpm() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "pool-exhausted") else { return };
    all_there_and_back(&lab, "left-out/pool-exhausted", &|| {
        // While php-fpm executes itself anew, its master has no title, and the workers of both configurations come and go.
        let text = std::fs::read_to_string(lab.run().join("php-fpm.conf")).unwrap();
        let written = text.lines().find_map(|line| line.strip_prefix("pm.max_children = ")).map(str::to_owned);
        let workers = titled(&lab, "php-fpm: pool").len().to_string();
        written.filter(|written| *written == workers && !titled(&lab, "php-fpm: master").is_empty())
    });
}

/// What is in force is the number of connections that HAProxy has to its server while more requests wait: those, and the one that checks it.
#[test]
fn the_steps_for_a_limit_of_haproxy_edit_it_and_tell_its_master() {
    let chokepoint = Chokepoint::new();
    if !has_programs(&["haproxy", "curl", "ss"]) {
        return;
    }
    let Some(lab) = Lab::up(&chokepoint, "proxy-master-connections-few") else { return };
    let in_force = || {
        let many = "for n in $(seq 24); do curl -sf -o /dev/null --http1.0 http://10.79.3.2/ & done; wait";
        let most = format!(
            "({many}) & for n in $(seq 20); do ss -Htn state established dport = :8081 | wc -l; sleep 0.01; done | sort -n | tail -1; wait"
        );
        printed(&lab, &most).and_then(|most| most.parse::<u32>().ok()).map(|most| if most > 12 { "many" } else { "few" }.to_owned())
    };
    assert_eq!(in_force().as_deref(), Some("few"));
    all_there_and_back(&lab, "data/server-limit/master-maxconn", &in_force);
}

#[test]
fn the_steps_for_a_debug_log_end_it() {
    let chokepoint = Chokepoint::new();
    if !has_programs(&["curl"]) {
        return;
    }
    let Some(lab) = Lab::up(&chokepoint, "debug-log") else { return };
    let log = lab.run().join("nginx-error.log");
    let lines = || std::fs::read_to_string(&log).unwrap().matches(" [debug] ").count();
    let in_force = || {
        let before = lines();
        printed(&lab, "curl -sf -o /dev/null http://10.78.0.2/")?;
        Some(if lines() > before + 10 { "debug" } else { "errors" }.to_owned())
    };
    assert_eq!(in_force().as_deref(), Some("debug"));
    all_there_and_back(&lab, "improvements/work/debug-log", &in_force);
}

#[test]
fn the_steps_for_tls_sessions_let_clients_resume_them() {
    let chokepoint = Chokepoint::new();
    if !has_programs(&["openssl"]) {
        return;
    }
    let Some(lab) = Lab::up(&chokepoint, "tls-not-resumed") else { return };
    let in_force = || {
        let command = "openssl s_client -connect 10.78.0.2:443 -tls1_2 -reconnect < /dev/null 2> /dev/null";
        Some(if printed(&lab, command)?.contains("Reused, TLSv1.2") { "resumed" } else { "new" }.to_owned())
    };
    assert_eq!(in_force().as_deref(), Some("new"));
    all_there_and_back(&lab, "improvements/tls/tls-not-resumed", &in_force);
}

/// The pool answers at one address or the other, and never at both for long.
#[test]
fn the_steps_that_move_a_pool_to_a_unix_socket_leave_no_request_without_a_listener() {
    let chokepoint = Chokepoint::new();
    if !has_programs(&["curl", "ss"]) {
        return;
    }
    let Some(lab) = Lab::up(&chokepoint, "unix-socket") else { return };
    let in_force = || {
        printed(&lab, "curl -sf -o /dev/null http://10.78.0.2/")?;
        let listening = printed(&lab, "ss -Hlntx | grep -cE ':9000|www-9000.sock'")?;
        let kind = if lab.queue(":9000").is_some() { "tcp" } else { "unix" };
        (listening == "1").then(|| kind.to_owned())
    };
    assert_eq!(in_force().as_deref(), Some("tcp"));
    all_there_and_back(&lab, "data/upstream-connect/unix-socket", &in_force);
}

/// A connection that stays open after its request is one that nginx keeps.
#[test]
fn the_steps_for_connections_to_php_fpm_keep_them() {
    let chokepoint = Chokepoint::new();
    if !has_programs(&["curl", "ss"]) {
        return;
    }
    let Some(lab) = Lab::up(&chokepoint, "time-wait-accepting") else { return };
    let in_force = || {
        printed(&lab, "curl -sf -o /dev/null http://10.78.0.2/")?;
        let open = printed(&lab, "ss -Htn state established dport = :9000")?;
        let kept = if open.is_empty() { "closed" } else { "kept" };
        Some(format!("{kept} {}", lab.sysctl("net.ipv4.tcp_tw_reuse")))
    };
    assert_eq!(in_force().as_deref(), Some("closed 0"));
    all_there_and_back(&lab, "data/ephemeral-ports/time-wait-accepting", &|| in_force().filter(|now| now == "closed 0" || now == "kept 1"));
}

/// The undo restores the file. The limit that was in force with it came from a sysctl that has since changed.
#[test]
fn the_steps_that_make_nginx_listen_again_apply_the_backlog() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "not-in-force") else { return };
    let recorded = Recorded::of("misses/accept-queue/random-20261121-0");
    let remedy = recorded.remedy_in(&lab, "random-20261121-0", "listen-again");
    let files = lab.files();
    assert_eq!(lab.queue(":80").as_deref(), Some("10"));
    Shell::of_host().carry_out(&remedy, "runtime");
    wait_until("the backlog is in force", || lab.queue(":80").as_deref() == Some("4097"));
    Shell::of_host().carry_out(&remedy, "undo");
    wait_until("the former backlog is in force", || lab.queue(":80").as_deref() == Some("4096"));
    assert_eq!(lab.files(), files);
}

/// Somebody changed the file and did not reload: the steps reload, and nothing is edited that could be taken back.
#[test]
fn the_steps_that_reload_a_changed_file_put_it_in_force() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "not-in-force") else { return };
    let recorded = Recorded::of("misses/accept-queue/random-20261121-0");
    let master = recorded.master("nginx.conf");
    let remedy = recorded.changed_since_read(master).remedy_in(&lab, "random-20261121-0", "reload-configuration");
    assert_eq!(remedy["undo"].as_array().unwrap().len(), 0, "{remedy:#}");
    edited(&lab, "nginx.conf", "backlog=4096", "backlog=4000");
    Shell::of_host().carry_out(&remedy, "runtime");
    wait_until("the file is in force", || lab.queue(":80").as_deref() == Some("4000"));
}

#[test]
fn the_steps_that_reload_a_changed_pool_put_it_in_force() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "pool-exhausted") else { return };
    let remedy = Recorded::of("misses/accept-queue/random-22360679-14").remedy_in(&lab, "random-22360679-14", "reload-configuration");
    assert_eq!(remedy["undo"].as_array().unwrap().len(), 0, "{remedy:#}");
    edited(&lab, "php-fpm.conf", "pm.max_children = ", "pm.max_children = 1");
    let before = titled(&lab, "php-fpm: pool").len();
    Shell::of_host().carry_out(&remedy, "runtime");
    wait_until("the file is in force", || titled(&lab, "php-fpm: pool").len() == before + 10);
}

/// Replaces this text in a file of the lab.
pub(super) fn edited(lab: &Lab<'_>, file: &str, from: &str, to: &str) {
    let path = lab.run().join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
}
