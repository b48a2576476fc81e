//! Both servers as they run: their configuration and their logs through every kind of rotation. Skipped where they are
//! not installed.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use chokepoint_model::observation::{AccessLog, Observation};
use chokepoint_recording::{Entry, Scope};
use rustix::process::{Pid, Signal, kill_process};

use super::super::config::SERVER_CONFIG;
use super::super::follow::SERVER_LOG;
use crate::netns::enter::spawn_inside;
use crate::netns::resolve;
use crate::root::Root;
use crate::table::{Notes, Phase, ReadContext, Source};

/// A running server with its files; ended with this.
struct Running {
    directory: tempfile::TempDir,
    child: Child,
    notes: Arc<Notes>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        sleep(Duration::from_millis(20));
    }
}

impl Running {
    /// Starts a program with a configuration in which `DIR` is its directory; nothing where it is not installed.
    fn start(program: &str, config: &str, args: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().display().to_string();
        std::fs::write(directory.path().join("c.conf"), config.replace("DIR", &at)).unwrap();
        let args: Vec<String> = args.iter().map(|arg| arg.replace("DIR", &at)).collect();
        let Ok(child) = Command::new(program).args(args).stderr(Stdio::null()).spawn() else {
            eprintln!("skipped: {program} is not installed");
            return None;
        };
        Some(Self { directory, child, notes: Arc::default() })
    }

    /// One worker that logs its answers' status and query, listening at `s`; `inside` is the rest of its server.
    fn nginx(listen: &str, inside: &str) -> Option<Self> {
        // Workers of another user could not open the logs of this test's directory again.
        let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
        let config = format!(
            "{user}pid DIR/pid;\nerror_log DIR/e.log;\nworker_processes 1;\nevents {{ worker_connections 8; accept_mutex off; }}\nhttp {{\n\
            log_format f '$status $args';\naccess_log DIR/a.log f;\nserver {{\nlisten unix:DIR/s;\n{listen}\n{inside}\nlocation / {{ return 200 ok; }}\n}}\n}}\n"
        );
        let nginx = Self::start("nginx", &config, &["-p", "DIR", "-c", "c.conf", "-g", "daemon off;"])?;
        until("nginx starts", || nginx.at("s").exists() && nginx.at("pid").exists());
        Some(nginx)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    /// Answers a request and waits until its line is in the log.
    fn answer(&self, log: &str) {
        let lines = |path: &Path| std::fs::read_to_string(path).unwrap_or_default().lines().count();
        let before = lines(&self.at(log));
        let mut stream = UnixStream::connect(self.at("s")).unwrap();
        stream.write_all(b"GET /?x HTTP/1.0\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        until("the line is written", || lines(&self.at(log)) > before);
    }

    fn reopen_logs(&self) {
        kill_process(Pid::from_child(&self.child), Signal::USR1).unwrap();
        until("the logs are opened again", || self.at("a.log").exists());
        // The worker follows its master: the first line in the new file shows it.
        until("the worker writes to the new log", || {
            let mut stream = UnixStream::connect(self.at("s")).unwrap();
            stream.write_all(b"GET /?probe HTTP/1.0\r\n\r\n").unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
            std::fs::read_to_string(self.at("a.log")).is_ok_and(|text| text.contains("probe"))
        });
    }

    /// Reads in a thread that is inside the server's namespace, as the sampler does.
    fn read(&self, source: &'static Source, phase: Phase, observation: &mut Observation) {
        let (root, scope) = (Root::default(), Scope::Process(self.child.id()));
        let netns = resolve(&root, &self.child.id().to_string()).unwrap();
        let notes = Arc::clone(&self.notes);
        let thread = spawn_inside(netns, root, move |inside| {
            let (root, inside) = (Root::default(), inside.unwrap());
            (source.read)(&ReadContext { scope, ..inside.context(&root, &notes, phase) })
        });
        for (item, outcome) in thread.unwrap().join().unwrap() {
            (source.put)(observation, &Entry { at_us: 1, source: source.name.to_owned(), scope, item, outcome });
        }
    }
}

fn access_log(nginx: &Running, observation: &Observation) -> (u64, bool, BTreeMap<u16, u64>) {
    let logs = &observation.servers[&nginx.child.id()].access_logs;
    let log: &AccessLog = logs[&nginx.at("a.log").display().to_string()].last().unwrap();
    (log.lines, log.rotated, log.status.clone())
}

#[test]
fn a_running_nginx_is_found_by_its_command_line_and_its_program() {
    let Some(nginx) = Running::nginx("", "") else { return };
    let mut observation = Observation::default();
    nginx.read(&SERVER_CONFIG, Phase::First, &mut observation);
    nginx.read(&SERVER_LOG, Phase::First, &mut observation);
    std::fs::write(nginx.at("a.log"), "200 \n503 \n").unwrap();
    nginx.read(&SERVER_LOG, Phase::Last, &mut observation);
    let server = &observation.servers[&nginx.child.id()];
    let found = server.nginx().unwrap_or_else(|| panic!("{:?}", server.config.state()));
    assert_eq!((found.file.as_str(), found.listens.len()), (nginx.at("c.conf").to_str().unwrap(), 1));
    assert_eq!(access_log(&nginx, &observation), (2, false, [(200, 1), (503, 1)].into()));
}

#[test]
fn a_log_that_logrotate_moves_away_is_counted_to_its_end() {
    let Some(nginx) = Running::nginx("", "") else { return };
    let mut observation = Observation::default();
    nginx.answer("a.log");
    nginx.read(&SERVER_LOG, Phase::First, &mut observation);
    nginx.answer("a.log");
    std::fs::rename(nginx.at("a.log"), nginx.at("a.log.1")).unwrap();
    // Between the two nginx writes on into the old file.
    nginx.answer("a.log.1");
    nginx.reopen_logs();
    nginx.answer("a.log");
    let text = |name: &str| std::fs::read_to_string(nginx.at(name)).unwrap();
    let expected = text("a.log.1").lines().count() - 1 + text("a.log").lines().count();
    nginx.read(&SERVER_LOG, Phase::Last, &mut observation);
    let (lines, rotated, status) = access_log(&nginx, &observation);
    assert_eq!((lines, rotated, status), (expected as u64, false, [(200, expected as u64)].into()));
}

#[test]
fn a_log_that_logrotate_copies_and_cuts_is_told() {
    let Some(nginx) = Running::nginx("", "") else { return };
    let mut observation = Observation::default();
    (0..3).for_each(|_| nginx.answer("a.log"));
    nginx.read(&SERVER_LOG, Phase::First, &mut observation);
    nginx.answer("a.log");
    std::fs::copy(nginx.at("a.log"), nginx.at("a.log.1")).unwrap();
    std::fs::OpenOptions::new().write(true).open(nginx.at("a.log")).unwrap().set_len(0).unwrap();
    (0..2).for_each(|_| nginx.answer("a.log"));
    nginx.read(&SERVER_LOG, Phase::Last, &mut observation);
    assert_eq!(access_log(&nginx, &observation), (2, true, [(200, 2)].into()), "what is there is counted, and that some is lost is told");
}
