//! The printed steps of remedies, carried out by a shell against real servers, and taken back by the printed undo.
//!
//! Live: real servers, namespaces and load.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Chokepoint, has_programs, is_root, repository, wait_until};

/// Diagnoses that a shortage of cores would make wrong run one after the other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// Measurements until a fault is found: a busy host hides one.
const ATTEMPTS_MAX: u32 = 4;

/// A scenario that is up; it goes down when this is dropped.
struct Lab<'a> {
    chokepoint: &'a Chokepoint,
    name: &'static str,
    _alone: MutexGuard<'static, ()>,
}

impl<'a> Lab<'a> {
    fn up(chokepoint: &'a Chokepoint, name: &'static str) -> Option<Self> {
        if !is_root() || !has_programs(&["nginx", "nft", "ip", "patch", "pgrep", "php-fpm8.2"]) {
            return None;
        }
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let up = chokepoint.run(&["lab", "up", name]);
        assert_eq!(up.status, Some(0), "{}{}", up.stdout, up.stderr);
        Some(Self { chokepoint, name, _alone: alone })
    }

    fn netns(&self) -> String {
        format!("cp-{}-server", self.name)
    }

    /// The remedy of a diagnosis under load.
    fn remedy(&self, url: &str, id: &str) -> Value {
        let mut last = Value::Null;
        for _ in 0..ATTEMPTS_MAX {
            let report = self.diagnose(url);
            let mut remedies = report["findings"].as_array().unwrap().iter().flat_map(|finding| finding["remedies"].as_array().unwrap());
            if let Some(found) = remedies.find(|remedy| remedy["id"] == id) {
                return found.clone();
            }
            last = report["summary"].clone();
        }
        panic!("no {id}: {last}");
    }

    fn diagnose(&self, url: &str) -> Value {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("cp-{}-client", self.name), env!("CARGO_BIN_EXE_chokepoint")]);
        command.args(["diagnose", "--json", "--yes", "-c", "200", "-z", "4s", "--disable-keepalive", "-t", "2s"]);
        command.args(["--server-netns", &self.netns(), url]);
        let output = command.env("CHOKEPOINT_STATE_DIR", self.chokepoint.file("state")).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// The text of the files of its servers.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let run = self.chokepoint.file("run").join("lab").join(self.name).join("run");
        let entries = std::fs::read_dir(&run).unwrap_or_else(|error| panic!("{}: {error}", run.display()));
        let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "conf"));
        paths.map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
    }

    fn sysctl(&self, key: &str) -> String {
        let output = Command::new("ip").args(["netns", "exec", &self.netns(), "sysctl", "-n", key]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().replace('\t', " ")
    }

    /// The limit of the accept queue of the listener whose address ends so.
    fn queue(&self, end: &str) -> Option<String> {
        let output = Command::new("ip").args(["netns", "exec", &self.netns(), "ss", "-Hlntx"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find(|line| line.split_whitespace().nth(4).is_some_and(|address| address.ends_with(end)))?;
        line.split_whitespace().nth(3).map(str::to_owned)
    }
}

impl Drop for Lab<'_> {
    fn drop(&mut self) {
        let down = self.chokepoint.run(&["lab", "down"]);
        assert!(thread::panicking() || down.status == Some(0), "{}{}", down.stdout, down.stderr);
    }
}

/// Carries out the steps of a remedy, each by a shell of its own.
fn carry_out(remedy: &Value, which: &str) {
    let steps = remedy[which].as_array().unwrap();
    assert!(steps.iter().any(|step| step["command"].is_string()), "{which} has no command: {remedy:#}");
    assert!(steps.iter().all(|step| step["lines"].is_null()), "{which} has lines to edit by hand: {remedy:#}");
    for command in steps.iter().filter_map(|step| step["command"].as_str()) {
        let output = Command::new("sh").args(["-c", command]).output().unwrap();
        let told = format!("{command}\n{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{told}");
    }
}

/// Every file beside those of the servers: patch(1) must leave none.
fn left_beside(files: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<PathBuf> {
    let folders = files.keys().filter_map(|file| file.parent());
    let beside = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    beside.filter(|path| path.extension().is_some_and(|end| end == "orig" || end == "rej")).collect()
}

/// Carries out the steps and then the undo. `in_force` is what the kernel or the server shows of the setting.
fn there_and_back(lab: &Lab<'_>, remedy: &Value, in_force: &dyn Fn() -> Option<String>) {
    let (files, before) = (lab.files(), in_force());
    carry_out(remedy, "runtime");
    wait_until("the steps change what is in force", || in_force().is_some_and(|now| Some(&now) != before.as_ref()));
    carry_out(remedy, "undo");
    wait_until("the undo restores what was in force", || in_force() == before);
    assert_eq!((lab.files(), left_beside(&files)), (files, Vec::<PathBuf>::new()), "the files are the same again");
}

/// Number of processes in the lab's namespace with this title.
fn titled(lab: &Lab<'_>, title: &str) -> Option<String> {
    thread::sleep(Duration::from_millis(100));
    let output = Command::new("ip").args(["netns", "pids", &lab.netns()]).output().unwrap();
    let pids = String::from_utf8(output.stdout).unwrap();
    let is_titled =
        |pid: &&str| std::fs::read(Path::new("/proc").join(pid).join("cmdline")).is_ok_and(|line| line.starts_with(title.as_bytes()));
    Some(pids.lines().filter(is_titled).count().to_string())
}

#[test]
fn the_steps_for_an_accept_queue_set_the_sysctl_and_the_backlog() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "accept-queue-short") else { return };
    let remedy = lab.remedy("http://10.78.0.2/index.html", "raise-accept-backlog");
    assert!(remedy["risk"].as_str().unwrap().contains("a reload stops nothing"), "{remedy:#}");
    there_and_back(&lab, &remedy, &|| lab.queue(":80"));
}

#[test]
fn the_steps_for_the_queue_of_php_fpm_restart_it() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "accept-queue-unix") else { return };
    let remedy = lab.remedy("http://10.78.0.2/", "raise-accept-backlog");
    assert!(remedy["risk"].as_str().unwrap().contains("must be restarted"), "{remedy:#}");
    there_and_back(&lab, &remedy, &|| lab.queue("/php.sock"));
}

/// The recorded fault is the host's, so its steps that keep it run over empty directories of a mount namespace of their own.
#[test]
fn the_steps_that_keep_a_conntrack_sysctl_load_its_module_and_the_undo_removes_both() {
    if !is_root() || !has_programs(&["unshare"]) {
        return;
    }
    let chokepoint = Chokepoint::new();
    let recording = repository("tests/data/conntrack-table/conntrack-full.rec");
    let ran = chokepoint.run(&["diagnose", "--json", "--replay", recording.to_str().unwrap()]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let remedy = &report["findings"][0]["remedies"][0];
    assert_eq!(remedy["id"], "raise-conntrack-max");
    let commands = |which: &str| {
        let steps = remedy[which].as_array().unwrap().iter();
        steps.map(|step| step["command"].as_str().unwrap()).filter(|command| !command.starts_with("sysctl")).collect::<Vec<_>>().join("\n")
    };
    let (directories, look) = ("/etc/sysctl.d /etc/modules-load.d", "cat /etc/modules-load.d/* /etc/sysctl.d/* > \"$1\"");
    let count = format!("find {directories} -type f | wc -l >> \"$1\"");
    let over = format!("for directory in {directories}; do mkdir -p $directory; mount -t tmpfs tmpfs $directory; done");
    let script = format!("set -e\n{over}\n{}\n{look}\n{}\n{count}\n", commands("persistent"), commands("undo"));
    let seen = chokepoint.file("seen");
    let output = Command::new("unshare").args(["-m", "sh", "-c", &script, "sh"]).arg(&seen).output().unwrap();
    assert!(output.status.success(), "{script}\n{output:?}");
    let seen = std::fs::read_to_string(seen).unwrap();
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!((lines[0], lines[lines.len() - 1]), ("nf_conntrack", "0"), "{seen}");
    assert!(lines.contains(&"net.netfilter.nf_conntrack_max = 4194304"), "{seen}");
}

/// A recording of the scenario that is up: a second load would only meet the ports that the first one left in TIME_WAIT.
#[test]
fn the_steps_for_outgoing_ports_set_the_range() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "ports-exhausted") else { return };
    let recording = repository("tests/left-out/ports-exhausted.rec");
    let ran = chokepoint.run(&["diagnose", "--json", "--replay", recording.to_str().unwrap()]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let mut remedies = report["findings"].as_array().unwrap().iter().flat_map(|finding| finding["remedies"].as_array().unwrap());
    let remedy = remedies.find(|remedy| remedy["id"] == "widen-port-range").unwrap();
    there_and_back(&lab, remedy, &|| Some(lab.sysctl("net.ipv4.ip_local_port_range")));
}

#[test]
fn the_steps_for_connections_edit_nginx_and_reload_it() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "worker-connections-few") else { return };
    let remedy = lab.remedy("http://10.78.0.2/", "raise-worker-connections");
    let main = lab.files().into_keys().find(|file| file.ends_with("nginx.conf")).unwrap();
    // The workers are new after each reload, and have read the file as it is.
    let in_force = || std::fs::read_to_string(&main).unwrap().lines().find(|line| line.contains("worker_connections")).map(str::to_owned);
    there_and_back(&lab, &remedy, &in_force);
}

#[test]
fn the_steps_for_a_pool_edit_it_and_reload_php_fpm() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "pool-exhausted") else { return };
    let remedy = lab.remedy("http://10.78.0.2/", "raise-max-children");
    there_and_back(&lab, &remedy, &|| titled(&lab, "php-fpm: pool"));
}
