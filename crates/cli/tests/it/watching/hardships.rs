//! What months bring to the verb `watch`: a disk that is full for a while, a status page that hangs, and a kill at any moment.
//!
//! Live: servers on loopback, nginx, a file system of the test's own.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use chokepoint_runs::History;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::watch::start;
use crate::harness::{Chokepoint, Nginx, Running, Server, fits, has_programs, is_root, signal, wait_until};

fn at_s(line: &str) -> u64 {
    fits(line, "sample-1.json")["at_s"].as_u64().unwrap()
}

#[test]
fn seconds_of_a_full_disk_are_written_when_there_is_room_again() {
    if !is_root() || !has_programs(&["unshare", "mount"]) {
        return println!("skipped: a file system needs root, unshare(1) and mount(8)");
    }
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let (disk, copy, full) = (chokepoint.path("disk"), chokepoint.path("copy"), chokepoint.path("full"));
    std::fs::create_dir_all(&disk).unwrap();
    std::fs::create_dir_all(&copy).unwrap();
    // Its own mounts end with it. It fills the disk when the history is there, and makes room when it is told to.
    let script = format!(
        "set -e; mount -t tmpfs -o size=512k,mode=0700 none {disk}; \"$@\" >{copy}/lines 2>{copy}/notes & watch=$!; \
         while [ ! -s {disk}/history.sqlite ] || ! [ -s {copy}/lines ]; do sleep 0.1; done; \
         cat /dev/zero >{disk}/filler 2>/dev/null || true; touch {full}; \
         while [ -e {full} ]; do sleep 0.1; done; rm {disk}/filler; \
         while ! grep -q 'written again' {copy}/notes; do sleep 0.1; done; kill -INT $watch; wait $watch || true; cp {disk}/history* {copy}"
    );
    let watched = chokepoint.command(&["watch", "--json", "--listen", "off", "-z", "5m", "--data-dir", &disk, &server.url()]);
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, "sh"]).arg(watched.get_program()).args(watched.get_args());
    let mut running = Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let child = &mut running.0;
    let read = |name: &str| std::fs::read_to_string(chokepoint.file("copy").join(name)).unwrap_or_default();
    wait_until("the disk is not full", || chokepoint.file("full").exists() || child.try_wait().unwrap().is_some());
    wait_until("a full disk is not told", || read("notes").contains("kept in memory only"));
    let lines = read("lines").lines().count();
    wait_until("it goes on meanwhile", || read("lines").lines().count() >= lines + 3);
    std::fs::remove_file(&full).unwrap();
    let status = child.wait().unwrap();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(status.success(), "{errors}");
    // Every second that was printed is in the history, those of the full disk too.
    let history = History::open_existing(copy.as_ref()).unwrap().unwrap();
    let kept: Vec<u64> = history
        .samples(1, 0, u64::MAX, u32::MAX)
        .unwrap()
        .iter()
        .map(|json| serde_json::from_str::<Value>(json).unwrap()["at_s"].as_u64().unwrap())
        .collect();
    for line in read("lines").lines() {
        assert!(kept.contains(&at_s(line)), "{} is not in {kept:?}", at_s(line));
    }
}

#[test]
fn a_status_page_that_hangs_holds_nothing_up() {
    let chokepoint = Chokepoint::new();
    let Some(nginx) = Nginx::start(&chokepoint.file("nginx")) else { return println!("skipped: it needs root and nginx") };
    let site =
        format!("server {{ listen 127.0.0.1:{}; location / {{ return 200 ok; }} location /status {{ stub_status; }} }}\n", nginx.port);
    std::fs::write(nginx.site(), site).unwrap();
    signal(&nginx.running.0, Signal::HUP);
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let (mut watch, lines) = start(&chokepoint, &["watch", "--json", "--data-dir", &chokepoint.path("data"), &url]);
    let next = || lines.recv_timeout(Duration::from_secs(60)).expect("a line each second");
    (0..3).for_each(|_| drop(next()));
    // Connections are still accepted by the kernel, and nobody answers.
    let workers = Command::new("pgrep").args(["-P", &nginx.running.0.id().to_string()]).output().unwrap();
    let workers: Vec<Pid> = String::from_utf8_lossy(&workers.stdout).lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect();
    assert!(!workers.is_empty());
    workers.iter().for_each(|pid| kill_process(*pid, Signal::STOP).unwrap());
    let seen: Vec<u64> = (0..8).map(|_| at_s(&next())).collect();
    workers.iter().for_each(|pid| kill_process(*pid, Signal::CONT).unwrap());
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    signal(&watch.0, Signal::INT);
    assert_eq!(watch.0.wait().unwrap().code(), Some(130));
}

#[test]
fn ten_kills_at_any_moment_lose_at_most_two_seconds() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let data = chokepoint.path("data");
    let args = ["watch", "--json", "--data-dir", &data, &server.url()];
    let mut seen = Vec::new();
    for n in 0..10_u64 {
        let (mut watch, lines) = start(&chokepoint, &args);
        seen.extend(lines.iter().take(2).map(|line| at_s(&line)));
        // The moments are spread over a second.
        std::thread::sleep(Duration::from_millis(n * 7_919 % 1_000));
        signal(&watch.0, Signal::KILL);
        watch.0.wait().unwrap();
        // What was printed before the kill counts too.
        seen.extend(lines.try_iter().filter(|line| line.ends_with('}')).map(|line| at_s(&line)));
        let history = History::open_existing(data.as_ref()).unwrap().unwrap();
        let kept = history.samples(1, 0, u64::MAX, u32::MAX).unwrap();
        let newest = serde_json::from_str::<Value>(kept.last().unwrap()).unwrap()["at_s"].as_u64().unwrap();
        let last = seen.last().copied().unwrap();
        assert!(
            newest + 2 >= last && kept.len() + 2 * (n as usize + 1) >= seen.len(),
            "kill {n}: {newest} of {last}, {} of {}",
            kept.len(),
            seen.len()
        );
    }
}

/// The CPU time of a process so far, seconds (proc_pid_stat(5), utime and stime in ticks of 10 ms).
fn cpu_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let numbers: Vec<f64> = stat.rsplit(')').next().unwrap().split_whitespace().filter_map(|field| field.parse().ok()).collect();
    (numbers[10] + numbers[11]) / 100.0
}

/// A core that does something all the time is a bug that a busy machine does not hide. A program built for release takes less than one percent.
#[test]
fn nobody_asks_and_it_takes_a_small_part_of_a_core() {
    const SECONDS: u64 = 12;
    const SHARE_MAX: f64 = 0.1;
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let (watch, lines) = start(&chokepoint, &["watch", "--json", "--data-dir", &chokepoint.path("data"), "--listen", "off", &server.url()]);
    // The first seconds search for the path and fill what is kept.
    let begun = lines.iter().map(|line| at_s(&line)).nth(4).unwrap();
    let before_s = cpu_s(watch.0.id());
    let ended = lines.iter().map(|line| at_s(&line)).find(|at_s| *at_s >= begun + SECONDS).unwrap();
    let (used_s, passed_s) = (cpu_s(watch.0.id()) - before_s, (ended - begun) as f64);
    assert!(used_s < SHARE_MAX * passed_s, "{used_s:.2} s of CPU time in {passed_s} s");
}
