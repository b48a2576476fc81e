//! Both servers running: their configuration, their logs through every kind of rotation, and their status pages. Skipped if they are not installed.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use chokepoint_model::observation::{AccessLog, NginxStatus, Observation, PhpFpmStatus, ServerStatus};
use chokepoint_recording::{Entry, Scope};
use rustix::process::{Pid, Signal, kill_process};

use super::super::config::SERVER_CONFIG;
use super::super::follow::SERVER_LOG;
use super::super::status::SERVER_STATUS;
use crate::netns::enter::spawn_inside;
use crate::netns::of_process;
use crate::root::Root;
use crate::table::{Notes, Phase, ReadContext, Source};

/// A running server with its files. It ends with this value.
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

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Running {
    /// Starts a program with a configuration in which `DIR` is its directory; nothing if it is not installed.
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

    /// One worker that logs status and query of its responses, listening at `s`. `inside` is the rest of its server block.
    fn nginx(listen: &str, inside: &str) -> Option<Self> {
        // Workers of another user could not reopen the logs in this test's directory.
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
        // The worker reopens after its master. A line in the new file proves it.
        until("the worker writes to the new log", || {
            let mut stream = UnixStream::connect(self.at("s")).unwrap();
            stream.write_all(b"GET /?probe HTTP/1.0\r\n\r\n").unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
            std::fs::read_to_string(self.at("a.log")).is_ok_and(|text| text.contains("probe"))
        });
    }

    /// Reads in a thread inside the server's namespace, like the sampler.
    fn read(&self, source: &'static Source, phase: Phase, observation: &mut Observation) {
        let (root, scope) = (Root::default(), Scope::Process(self.child.id()));
        let netns = of_process(&root, self.child.id()).unwrap();
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
    (log.lines, log.extent.rotated, log.status.clone())
}

#[test]
fn a_running_nginx_is_found_by_command_line_and_program() {
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
fn a_log_moved_by_logrotate_is_counted_to_its_end() {
    let Some(nginx) = Running::nginx("", "") else { return };
    let mut observation = Observation::default();
    nginx.answer("a.log");
    nginx.read(&SERVER_LOG, Phase::First, &mut observation);
    nginx.answer("a.log");
    std::fs::rename(nginx.at("a.log"), nginx.at("a.log.1")).unwrap();
    // Until it reopens its logs, nginx writes to the old file.
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
fn a_log_truncated_by_logrotate_is_reported() {
    let Some(nginx) = Running::nginx("", "") else { return };
    let mut observation = Observation::default();
    (0..3).for_each(|_| nginx.answer("a.log"));
    nginx.read(&SERVER_LOG, Phase::First, &mut observation);
    nginx.answer("a.log");
    std::fs::copy(nginx.at("a.log"), nginx.at("a.log.1")).unwrap();
    std::fs::OpenOptions::new().write(true).open(nginx.at("a.log")).unwrap().set_len(0).unwrap();
    (0..2).for_each(|_| nginx.answer("a.log"));
    nginx.read(&SERVER_LOG, Phase::Last, &mut observation);
    assert_eq!(access_log(&nginx, &observation), (2, true, [(200, 2)].into()), "the remaining lines count, and the loss is reported");
}

fn nginx_status(nginx: &Running, observation: &Observation) -> NginxStatus {
    let page = observation.servers[&nginx.child.id()].nginx_status().unwrap();
    match page.last() {
        Some(ServerStatus::Nginx(counts)) => counts.clone(),
        other => panic!("{other:?} {:?}", page.state()),
    }
}

#[test]
fn the_status_page_of_nginx_counts_drops_and_logs_do_not_count_our_requests() {
    let port = free_port();
    let listen = format!("listen 127.0.0.1:{port};");
    let Some(nginx) = Running::nginx(&listen, "location = /status { stub_status; }") else { return };
    let mut observation = Observation::default();
    nginx.read(&SERVER_LOG, Phase::First, &mut observation);
    nginx.read(&SERVER_STATUS, Phase::First, &mut observation);
    let before = nginx_status(&nginx, &observation);
    assert_eq!(before.accepts, before.handled);
    // Incomplete requests occupy every connection of the worker. It accepts and closes further ones.
    let mut stuck = Vec::new();
    until("connections are dropped", || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let _ = stream.write_all(b"GET / HTTP/1.0\r\n");
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let closed = !matches!(stream.read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock);
        stuck.push(stream);
        closed
    });
    nginx.read(&SERVER_STATUS, Phase::Running, &mut observation);
    let page = observation.servers[&nginx.child.id()].nginx_status().unwrap();
    assert_eq!(page.points().len(), 1, "there was no connection for us either: absent, and not zero");
    drop(stuck);
    until("it answers again", || {
        nginx.read(&SERVER_STATUS, Phase::Running, &mut observation);
        observation.servers[&nginx.child.id()].nginx_status().unwrap().points().len() > 1
    });
    let after = nginx_status(&nginx, &observation);
    assert!(after.accepts > after.handled, "{after:?}");
    nginx.answer("a.log");
    nginx.read(&SERVER_LOG, Phase::Last, &mut observation);
    let text = std::fs::read_to_string(nginx.at("a.log")).unwrap();
    let (all, ours) = (text.lines().count() as u64, text.matches("chokepoint-status").count() as u64);
    assert_eq!((access_log(&nginx, &observation).0, ours >= 2), (all - ours, true), "{text}");
}

#[test]
fn a_refused_page_is_requested_once() {
    let Some(nginx) = Running::nginx("", "location = /status { stub_status; deny all; }") else { return };
    let mut observation = Observation::default();
    for phase in [Phase::First, Phase::Running, Phase::Last] {
        nginx.read(&SERVER_STATUS, phase, &mut observation);
    }
    let page = observation.servers[&nginx.child.id()].nginx_status().unwrap();
    assert!(matches!(page.state(), chokepoint_model::series::SeriesState::Absent(lack) if lack.why.contains("status 403")), "{page:?}");
    let log = std::fs::read_to_string(nginx.at("e.log")).unwrap();
    assert_eq!(log.matches("access forbidden").count(), 1, "{log}");
}

/// Why a page was not read.
fn why_unread(nginx: &Running, observation: &Observation) -> String {
    match observation.servers[&nginx.child.id()].nginx_status().map(|page| page.state()) {
        Some(chokepoint_model::series::SeriesState::Absent(lack)) => lack.why.clone(),
        other => panic!("{other:?}"),
    }
}

/// A file that its server has not read is enough to name any address. Whoever listens there hears nothing of us.
#[test]
fn nobody_but_the_server_itself_is_asked() {
    let Some(nginx) = Running::nginx("", "") else { return };
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    other.set_nonblocking(true).unwrap();
    let port = other.local_addr().unwrap().port();
    let unix = std::os::unix::net::UnixListener::bind(nginx.at("other")).unwrap();
    unix.set_nonblocking(true).unwrap();
    let text = std::fs::read_to_string(nginx.at("c.conf")).unwrap();
    let at = |listen: String| {
        let page = format!("server {{ listen {listen}; location = /status {{ stub_status; access_log off; }} }}\n}}\n");
        std::fs::write(nginx.at("c.conf"), text.trim_end().strip_suffix('}').unwrap().to_owned() + &page).unwrap();
        let mut observation = Observation::default();
        nginx.read(&SERVER_STATUS, Phase::First, &mut observation);
        nginx.read(&SERVER_STATUS, Phase::Running, &mut observation);
        why_unread(&nginx, &observation)
    };
    for (listen, why) in [
        (format!("127.0.0.1:{port}"), "another process listens there"),
        (port.to_string(), "another process listens there"),
        ("192.0.2.9:80".to_owned(), "does not listen there itself"),
        (format!("unix:{}", nginx.at("other").display()), "another process listens there"),
    ] {
        let told = at(listen.clone());
        assert!(told.contains(why), "{listen}: {told}");
    }
    assert!(other.accept().is_err() && unix.accept().is_err(), "nobody connected");
}

/// The path of the server's own socket may lead to somebody else's by now.
#[test]
fn a_socket_that_took_the_place_of_the_servers_own_is_not_asked() {
    let Some(nginx) = Running::nginx("", "location = /status { stub_status; }") else { return };
    let mut observation = Observation::default();
    nginx.read(&SERVER_STATUS, Phase::First, &mut observation);
    assert_eq!(nginx_status(&nginx, &observation).accepts, 1);
    std::fs::rename(nginx.at("s"), nginx.at("moved")).unwrap();
    let other = std::os::unix::net::UnixListener::bind(nginx.at("s")).unwrap();
    other.set_nonblocking(true).unwrap();
    let mut observation = Observation::default();
    nginx.read(&SERVER_STATUS, Phase::Running, &mut observation);
    let told = why_unread(&nginx, &observation);
    assert!(told.contains("another process listens there") && other.accept().is_err(), "{told}");
}

/// A pool of two workers.
fn php_fpm(listen: &str, more: &str) -> Option<Running> {
    let user = if rustix::process::geteuid().is_root() { "user = root\ngroup = root\n" } else { "" };
    let config = format!(
        "[global]\nerror_log = DIR/fpm.log\npid = DIR/pid\ndaemonize = no\n[www]\n{user}listen = {listen}\npm = static\npm.max_children = 2\n\
        pm.status_path = /fpm-status\naccess.log = DIR/a.log\naccess.format = \"%s %r\"\n{more}\n"
    );
    let php_fpm = Running::start("php-fpm8.2", &config, &["-F", "-R", "-y", "DIR/c.conf"])?;
    until("php-fpm starts", || {
        php_fpm.at("pid").exists() && std::fs::read_to_string(php_fpm.at("fpm.log")).is_ok_and(|log| log.contains("ready"))
    });
    Some(php_fpm)
}

fn pool_status(php_fpm: &Running, observation: &Observation) -> (Vec<PhpFpmStatus>, String) {
    let (page, _) = observation.servers[&php_fpm.child.id()].pool_status("www").unwrap();
    let counts = page.values().filter_map(|status| match status {
        ServerStatus::PhpFpm(counts) => Some(counts.clone()),
        _ => None,
    });
    (counts.collect(), format!("{:?}", page.state()))
}

#[test]
fn a_pool_that_serves_its_own_page_is_polled_only_while_a_worker_is_free() {
    let port = free_port();
    let Some(php_fpm) = php_fpm(&format!("127.0.0.1:{port}"), "") else { return };
    let mut observation = Observation::default();
    php_fpm.read(&SERVER_STATUS, Phase::First, &mut observation);
    let (counts, state) = pool_status(&php_fpm, &observation);
    assert_eq!(counts.len(), 1, "{state}");
    assert_eq!(
        (counts[0].pool.as_str(), counts[0].active, counts[0].idle, counts[0].total),
        ("www", 0, 2, 2),
        "without the one that answers"
    );
    // Two connections without a request occupy the workers, and the third waits in the queue.
    let held: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    let why = |observation: &Observation| {
        let series = observation.servers[&php_fpm.child.id()].pool_status("www").unwrap().0;
        format!("{series:?}")
    };
    until("connections wait", || {
        php_fpm.read(&SERVER_STATUS, Phase::Running, &mut observation);
        why(&observation).contains("connections wait for the pool's workers")
    });
    drop(held);
    until("it answers again", || {
        php_fpm.read(&SERVER_STATUS, Phase::Last, &mut observation);
        pool_status(&php_fpm, &observation).0.len() > 1
    });
}

#[test]
fn a_page_behind_its_own_listener_is_served_while_all_workers_are_busy() {
    let Some(php_fpm) = php_fpm("DIR/f.sock", "pm.status_listen = DIR/status.sock") else { return };
    let mut observation = Observation::default();
    php_fpm.read(&SERVER_LOG, Phase::First, &mut observation);
    php_fpm.read(&SERVER_STATUS, Phase::First, &mut observation);
    assert_eq!(pool_status(&php_fpm, &observation).0[0].active, 0);
    let held: Vec<UnixStream> = (0..3).map(|_| UnixStream::connect(php_fpm.at("f.sock")).unwrap()).collect();
    for stream in &held {
        // An incomplete request: the worker reads its beginning and waits for the rest.
        (&*stream).write_all(&[1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
    }
    until("both workers are active", || {
        php_fpm.read(&SERVER_STATUS, Phase::Running, &mut observation);
        pool_status(&php_fpm, &observation).0.last().is_some_and(|counts| counts.active == 2)
    });
    let last = pool_status(&php_fpm, &observation).0.pop().unwrap();
    assert_eq!((last.idle, last.total, last.listen_queue), (0, 2, 0), "the queue of a unix socket is not reported");
    drop(held);
    php_fpm.read(&SERVER_LOG, Phase::Last, &mut observation);
    let logs = &observation.servers[&php_fpm.child.id()].access_logs;
    assert!(
        logs.values().all(|log| log.last().is_none_or(|log| log.lines == 0)),
        "requests for the page are no work of the application: {logs:?}"
    );
}
