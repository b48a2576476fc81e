//! An observation without an end beside processes, listeners and namespaces that come and go.
//!
//! Live beside others: servers of this test; nothing depends on how busy the machine is.

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chokepoint_model::observation::{Request, ServerView};
use chokepoint_model::path::discover;
use chokepoint_recording::Entry;
use chokepoint_sources::{ObserveOptions, Observer, Recent, netns};
use rustix::process::{Pid, Signal, kill_process};

/// A process that only holds a listener, as its standard input.
struct Holder(Child, u16);

impl Holder {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        Self(Command::new("sleep").arg("120").stdin(Stdio::from(OwnedFd::from(listener))).spawn().unwrap(), port)
    }

    fn request(&self) -> Request {
        let client_netns = netns::own().unwrap();
        Request { addresses: vec!["127.0.0.1".parse().unwrap()], port: self.1, client_netns, ..Request::default() }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Drains until this is true of what was read in the last seconds.
fn until(what: &str, observer: &Observer, recent: &mut Recent, is_true: impl Fn(&mut Recent) -> bool) {
    let begin = Instant::now();
    while !is_true(recent) {
        assert!(begin.elapsed() < Duration::from_secs(60), "it was never read: {what}, {} entries", recent.entries().len());
        std::thread::sleep(Duration::from_millis(100));
        recent.add(observer.drain());
    }
}

fn has_path(recent: &mut Recent, holder: &Holder) -> bool {
    let observation = recent.observation(&holder.request(), (0, u64::MAX), &[]);
    let has = discover(&observation).tiers.first().is_some_and(|tier| tier.pids == [holder.0.id()]);
    recent.take_back(observation);
    has
}

#[test]
fn requests_are_followed_newly_while_the_others_go_on() {
    let (first, second) = (Holder::new(), Holder::new());
    let observer = Observer::start(ObserveOptions::endless(first.request(), Vec::new())).unwrap();
    let mut recent = Recent::new(Duration::from_secs(3));
    until("the first path", &observer, &mut recent, |recent| has_path(recent, &first));
    assert!(!has_path(&mut recent, &second));
    let third = Holder::new();
    assert!(observer.follow(&[first.request(), third.request(), second.request()]));
    until("all paths", &observer, &mut recent, |recent| [&first, &second, &third].iter().all(|holder| has_path(recent, holder)));
    assert!(observer.path_found());
}

/// A server in the foreground whose configuration is a file of the test.
struct Configured {
    master: Child,
    directory: tempfile::TempDir,
    port: u16,
}

impl Configured {
    /// `text`: its configuration in this directory, at this port. Nothing if it is not installed.
    fn start(program: &str, args: &[&str], text: impl Fn(&str, u16) -> String) -> Option<Self> {
        if !Command::new(program).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            println!("skipped: {program} is not installed");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let (at, port) = (directory.path().to_str().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
        std::fs::write(directory.path().join("c.conf"), text(at, port)).unwrap();
        let args: Vec<String> = args.iter().map(|arg| arg.replace("DIR", at)).collect();
        let master = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { master, directory, port };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(60), "{program} does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    fn edit(&self, text: impl Fn(&str, u16) -> String) {
        std::fs::write(self.directory.path().join("c.conf"), text(self.directory.path().to_str().unwrap(), self.port)).unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.master.id()).unwrap()).unwrap(), signal).unwrap();
    }

    fn request(&self) -> Request {
        let client_netns = netns::own().unwrap();
        Request { addresses: vec!["127.0.0.1".parse().unwrap()], port: self.port, client_netns, ..Request::default() }
    }

    /// Seconds of an observation have the limit that is in force: the first one until the server was told to read its file again, and then the second one.
    fn counts_once_it_is_read(&self, limit: impl Fn(&ServerView) -> Option<u32>, limits: [u32; 2], edit: impl Fn(), reload: Signal) {
        // An old worker of nginx goes on for as long as this connection does.
        let stays = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let observer = Observer::start(ObserveOptions::endless(self.request(), Vec::new())).unwrap();
        let mut recent = Recent::new(Duration::from_secs(3));
        let in_force = |recent: &mut Recent| {
            let observation = recent.observation(&self.request(), (0, u64::MAX), &[]);
            let found = observation.servers.get(&self.master.id()).and_then(&limit);
            recent.take_back(observation);
            found
        };
        until("the first limit", &observer, &mut recent, |recent| in_force(recent) == Some(limits[0]));
        edit();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(4) {
            std::thread::sleep(Duration::from_millis(250));
            recent.add(observer.drain());
            assert_eq!(in_force(&mut recent), Some(limits[0]), "an edited file is not in force");
        }
        self.signal(reload);
        until("the new limit", &observer, &mut recent, |recent| in_force(recent) == Some(limits[1]));
        drop((stays, observer));
    }
}

impl Drop for Configured {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
        let _ = self.master.wait();
    }
}

#[test]
fn a_configuration_of_nginx_counts_once_it_is_read() {
    let text = |connections: u32| {
        move |at: &str, port: u16| {
            format!(
                "daemon off;\nworker_processes 2;\npid {at}/pid;\nerror_log {at}/e.log;\nevents {{ worker_connections {connections}; }}\n\
                 http {{ access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;\n\
                 server {{ listen 127.0.0.1:{port}; return 204; }} }}\n"
            )
        }
    };
    let Some(nginx) = Configured::start("nginx", &["-p", "DIR", "-c", "c.conf"], text(64)) else { return };
    let limit = |server: &ServerView| Some(server.nginx()?.worker_connections.value);
    nginx.counts_once_it_is_read(limit, [64, 128], || nginx.edit(text(128)), Signal::HUP);
}

#[test]
fn a_configuration_of_php_fpm_counts_once_it_is_read() {
    let user = if rustix::process::geteuid().is_root() { "user = root\ngroup = root\n" } else { "" };
    let text = |children: u32| {
        move |at: &str, port: u16| {
            format!(
                "[global]\nerror_log = {at}/e.log\npid = {at}/pid\ndaemonize = no\n[www]\n{user}listen = 127.0.0.1:{port}\npm = dynamic\n\
                 pm.max_children = {children}\npm.start_servers = 2\npm.min_spare_servers = 1\npm.max_spare_servers = 3\n"
            )
        }
    };
    let Some(php_fpm) = Configured::start("php-fpm8.2", &["-F", "-R", "-y", "DIR/c.conf"], text(4)) else { return };
    let limit = |server: &ServerView| Some(server.php_fpm()?.pools.first()?.max_children.value);
    php_fpm.counts_once_it_is_read(limit, [4, 9], || php_fpm.edit(text(9)), Signal::USR2);
}

/// What was measured last is stale after this time (docs/watch/README.md). On a machine that is slow or busy samples cost more, and are taken more rarely: at most
/// four seconds pass between two, so that each second is part of a window with samples.
const STALE_US: u64 = 5_000_000;

#[test]
fn samples_never_pause_for_long_beside_listeners_that_come_and_go() {
    let stays = Holder::new();
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    // Each lives for a moment; there are always some.
    let churn = std::thread::spawn(move || {
        let (mut alive, mut ports) = (Vec::new(), BTreeSet::new());
        while !ends.load(Ordering::Relaxed) {
            let holder = Holder::new();
            ports.insert(holder.1);
            alive.push(holder);
            if alive.len() > 4 {
                alive.remove(0);
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        ports.len()
    });
    let came = Holder::new();
    let also: Vec<Request> = (0..8).map(|_| Holder::new().request()).chain([came.request()]).collect();
    let observer = Observer::start(ObserveOptions::endless(stays.request(), also)).unwrap();
    let (begin, mut times_us) = (Instant::now(), BTreeSet::from([0]));
    let sampled = |entry: &&Entry| entry.source == "requests" && entry.item.is_empty();
    while begin.elapsed() < Duration::from_secs(14) {
        std::thread::sleep(Duration::from_millis(250));
        let asked = Instant::now();
        times_us.extend(observer.drain().iter().filter(sampled).map(|entry| entry.at_us));
        assert!(asked.elapsed() < Duration::from_secs(2), "the observer's owner waits for it: {:?}", asked.elapsed());
    }
    over.store(true, Ordering::Relaxed);
    assert!(churn.join().unwrap() > 20);
    times_us.insert(observer.elapsed_us());
    let pauses = times_us.iter().zip(times_us.iter().skip(1)).map(|(from_us, to_us)| (to_us - from_us, *from_us));
    let (longest_us, from_us) = pauses.max().expect("two times");
    assert!(longest_us <= STALE_US, "no sample for {longest_us} us from {from_us} us on, {} samples", times_us.len() - 2);
    let asked = Instant::now();
    drop(observer);
    assert!(asked.elapsed() < Duration::from_secs(1), "it does not end");
}
