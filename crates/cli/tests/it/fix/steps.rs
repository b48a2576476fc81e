//! The printed steps of remedies, carried out by a shell against real servers, and taken back by the printed undo.
//!
//! Live: real servers, namespaces and load.

mod kernel;
mod owner;
mod programs;
mod recorded;
mod servers;
mod table;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::MutexGuard;
use std::thread;

use serde_json::Value;

use crate::harness::{Chokepoint, has_programs, is_root, one_lab, wait_until};

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
        let alone = one_lab();
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
        let _ = std::fs::remove_file(self.chokepoint.file("run.rec"));
        command.args(["--record", &self.chokepoint.path("run.rec"), "--server-netns", &self.netns(), url]);
        let output = command.env("CHOKEPOINT_STATE_DIR", self.chokepoint.file("state")).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// The directory of its servers.
    fn run(&self) -> PathBuf {
        self.chokepoint.file("run").join("lab").join(self.name).join("run")
    }

    /// The text of the files of its servers.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let run = self.run();
        let entries = std::fs::read_dir(&run).unwrap_or_else(|error| panic!("{}: {error}", run.display()));
        let paths =
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "conf" || end == "cfg"));
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

/// A shell that takes what a person pastes.
struct Shell {
    /// The words before `sh -c COMMAND`.
    before: Vec<String>,
    /// A directory whose programs come first.
    programs: Option<PathBuf>,
}

impl Shell {
    /// A shell of the host.
    fn of_host() -> Self {
        Self { before: Vec::new(), programs: None }
    }

    fn run(&self, command: &str) {
        let words = self.before.iter().map(String::as_str).chain(["sh", "-c", command]).collect::<Vec<_>>();
        let mut shell = Command::new(words[0]);
        shell.args(&words[1..]);
        if let Some(programs) = &self.programs {
            shell.env("PATH", format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default()));
        }
        // What they keep is not for this host.
        let state = tempfile::tempdir().unwrap();
        shell.env("CHOKEPOINT_STATE_DIR", state.path().join("state"));
        let output = shell.output().unwrap();
        let told = format!("{words:?}\n{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{told}");
    }

    /// Carries out the steps of a remedy, each by itself.
    fn carry_out(&self, remedy: &Value, which: &str) {
        commands(remedy, which).iter().for_each(|command| self.run(command));
    }
}

/// The commands of a remedy's steps, none of which is left to be done by hand.
fn commands(remedy: &Value, which: &str) -> Vec<String> {
    let steps = remedy[which].as_array().unwrap();
    assert!(!steps.is_empty() && steps.iter().all(|step| step["command"].is_string() && step["lines"].is_null()), "{which}: {remedy:#}");
    steps.iter().filter_map(|step| step["command"].as_str()).map(str::to_owned).collect()
}

/// Every file beside those of the servers: patch(1) must leave none.
fn left_beside(files: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<PathBuf> {
    let folders = files.keys().filter_map(|file| file.parent());
    let beside = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    beside.filter(|path| path.extension().is_some_and(|end| end == "orig" || end == "rej")).collect()
}

/// Carries out the steps and then the undo. `in_force` is what the kernel or the server shows of the setting.
fn there_and_back(lab: &Lab<'_>, remedy: &Value, in_force: &dyn Fn() -> Option<String>) {
    there_and_back_in(&Shell::of_host(), lab, remedy, in_force);
}

/// The same in this shell.
fn there_and_back_in(shell: &Shell, lab: &Lab<'_>, remedy: &Value, in_force: &dyn Fn() -> Option<String>) {
    wait_until("the lab shows what is in force", || in_force().is_some());
    let (files, before) = (lab.files(), in_force());
    shell.carry_out(remedy, "runtime");
    wait_until("the steps change what is in force", || in_force().is_some_and(|now| Some(&now) != before.as_ref()));
    shell.carry_out(remedy, "undo");
    wait_until("the undo restores what was in force", || in_force() == before);
    assert_eq!((lab.files(), left_beside(&files)), (files, Vec::<PathBuf>::new()), "the files are the same again");
}

/// The processes in the lab's namespace of the server whose command line begins so.
fn titled(lab: &Lab<'_>, title: &str) -> Vec<u32> {
    whose(lab, "cmdline", |line| line.starts_with(title.as_bytes()))
}

/// The processes in the lab's namespace with this name.
fn named(lab: &Lab<'_>, name: &str) -> Vec<u32> {
    whose(lab, "comm", |comm| comm.trim_ascii_end() == name.as_bytes())
}

fn whose(lab: &Lab<'_>, file: &str, is_it: impl Fn(&[u8]) -> bool) -> Vec<u32> {
    let output = Command::new("ip").args(["netns", "pids", &lab.netns()]).output().unwrap();
    let pids = String::from_utf8(output.stdout).unwrap();
    let is_its = |pid: &u32| std::fs::read(format!("/proc/{pid}/{file}")).is_ok_and(|text| is_it(&text));
    pids.lines().filter_map(|pid| pid.parse().ok()).filter(is_its).collect()
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

/// Blanks that a terminal would change, line ends of another system, a comment, and bytes that are no UTF-8.
#[test]
fn the_steps_for_a_file_with_tabs_and_other_line_ends_edit_it() {
    let chokepoint = Chokepoint::new();
    let Some(lab) = Lab::up(&chokepoint, "worker-connections-few") else { return };
    let file = lab.run().join("nginx.conf");
    let text = std::fs::read_to_string(&file).unwrap().replace("    ", "\t").replace('\n', "\r\n");
    let line = "worker_connections 60;";
    let mut bytes = text.into_bytes();
    let at = bytes.windows(line.len()).position(|part| part == line.as_bytes()).unwrap() + line.len();
    bytes.splice(at..at, *b"\t# gro\xdf genug");
    std::fs::write(&file, &bytes).unwrap();
    Shell::of_host().run(&format!("kill -HUP $(cat {})", lab.run().join("nginx.pid").display()));
    let remedy = lab.remedy("http://10.78.0.2/", "raise-worker-connections");
    let replayed = recorded::Recorded::at(&chokepoint.file("run.rec")).remedy("raise-worker-connections");
    assert_eq!(replayed, remedy, "a replay prints the same");
    let all = commands(&remedy, "runtime").into_iter().chain(commands(&remedy, "undo"));
    all.for_each(|command| assert!(command.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')), "{command:?}"));
    let in_force = || {
        let bytes = std::fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.lines().find(|line| line.contains("worker_connections")).map(str::to_owned)
    };
    there_and_back(&lab, &remedy, &in_force);
}
