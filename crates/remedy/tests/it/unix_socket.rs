//! The requests between a real nginx and a real php-fpm move to a unix socket and back while they go on; and what must hold for that.
//!
//! Live beside others: nginx and php-fpm of its own; no request may fail, however slow the machine is.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use chokepoint_model::change::{Activation, Change, ServerSetting};
use chokepoint_remedy::{Filter, Step, Store};

use crate::servers::{Nginx, PhpFpm, apply, limit_of, purpose, store, until};

/// A pool whose workers finish their requests at a reload, so that no request fails at all. Its own section ends before the end of the file.
const POOL: &str = "pm = static\npm.max_children = 2 ; few\nslowlog = /tmp/$pool.slow\n\n[global]\nprocess_control_timeout = 5s\n";

struct Stack {
    nginx: Nginx,
    fpm: PhpFpm,
}

impl Stack {
    fn start(name: &str) -> Option<Self> {
        let fpm = PhpFpm::start_with(name, true, POOL)?;
        let pass = format!(
            "location / {{\n        fastcgi_pass 127.0.0.1:{}; # the pool\n        fastcgi_param SCRIPT_NAME /ping;\n        fastcgi_param SCRIPT_FILENAME /ping;\n        fastcgi_param REQUEST_METHOD GET;\n    }}",
            fpm.port
        );
        let nginx = Nginx::start_with(name, &[&pass])?;
        Some(Self { nginx, fpm })
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.fpm.port)
    }

    fn path(&self) -> PathBuf {
        self.fpm.dir().join("www.sock")
    }

    /// The changes of the move, to a socket with this path.
    fn changes(&self, path: &Path) -> [Change; 3] {
        let socket = ServerSetting::socket(path.to_str().unwrap(), "nobody");
        let pool = || "www".to_owned();
        let to = format!("unix:{}", path.display());
        let pass = ServerSetting::NginxFastcgiAddress { address: self.address(), socket: to.clone() };
        [
            self.fpm.change(ServerSetting::PhpFpmSecondPool { pool: pool() }, "unset", &socket, Activation::Reload),
            self.nginx.change(pass, &self.address(), &to),
            self.fpm.change(ServerSetting::PhpFpmListen { pool: pool() }, &self.address(), &socket, Activation::Reload),
        ]
    }

    fn store(&self) -> Store {
        store(self.nginx.dir())
    }

    fn files(&self) -> [Vec<u8>; 2] {
        [fs::read(self.nginx.site()).unwrap(), fs::read(self.fpm.main()).unwrap()]
    }

    /// Everything is as it was at first.
    fn assert_back(&self, before: &[Vec<u8>; 2], told: &str) {
        assert_eq!(&self.files(), before, "{told}");
        assert!(!self.path().exists() && limit_of(self.fpm.port) == Some(5), "{told}");
        assert!(self.nginx.answers(), "{told}");
        assert_eq!(self.fpm.workers(), 2, "{told}");
    }

    /// Requests one after the other while `work` is done: how many were answered, and how many were not.
    fn asked_during<T>(&self, work: impl FnOnce() -> T) -> (u64, u64, T) {
        let (good, bad, ends) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let done = thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !ends.load(Ordering::Relaxed) {
                        let count = if self.nginx.answers() { &good } else { &bad };
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let done = catch_unwind(AssertUnwindSafe(work));
            ends.store(true, Ordering::Relaxed);
            done
        });
        let done = done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (good.into_inner(), bad.into_inner(), done)
    }
}

#[test]
fn requests_move_to_a_unix_socket_and_back_and_none_fails() {
    let Some(stack) = Stack::start("socket") else { return };
    let before = stack.files();
    let guard = &mut stack.store().lock().unwrap();
    let (good, bad, applied) = stack.asked_during(|| apply(guard, &stack.changes(&stack.path())));
    applied.unwrap();
    assert!(good > 0 && bad == 0, "{bad} failed, {good} did not");
    let meta = fs::metadata(stack.path()).unwrap();
    assert_eq!((meta.uid(), meta.permissions().mode() & 0o777), (65_534, 0o660), "nginx's workers alone may connect");
    assert_eq!(limit_of(stack.fpm.port), None, "nobody listens at the old address");
    let [site, pool] = stack.files().map(|text| String::from_utf8(text).unwrap());
    assert!(site.contains(&format!("fastcgi_pass unix:{}; # the pool\n", stack.path().display())), "{site}");
    let lines = format!("listen = {}\nlisten.backlog = 5\n", stack.path().display());
    assert!(pool.contains(&lines) && pool.contains("listen.owner = nobody\n") && !pool.contains("chokepoint_"), "{pool}");
    assert_eq!(stack.fpm.workers(), 2, "the second pool has ended");
    let (good, bad, report) = stack.asked_during(|| guard.undo(&Filter::All));
    assert!(report.is_clean() && report.restored.len() == 3, "{report:?}");
    assert!(good > 0 && bad == 0, "{bad} failed, {good} did not");
    stack.assert_back(&before, "undone");
}

#[test]
fn another_client_of_the_address_keeps_the_pool_there() {
    let Some(stack) = Stack::start("socket-other") else { return };
    let before = stack.files();
    let guard = &mut stack.store().lock().unwrap();
    let ends = AtomicBool::new(false);
    let (_, bad, applied) = thread::scope(|scope| {
        // One short connection after the other, of which hardly any is seen by who looks now and then.
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                drop(TcpStream::connect(stack.address()));
                thread::sleep(std::time::Duration::from_millis(300));
            }
        });
        let done = stack.asked_during(|| apply(guard, &stack.changes(&stack.path())));
        ends.store(true, Ordering::Relaxed);
        done
    });
    let why = applied.unwrap_err().to_string();
    assert!(why.contains("another program uses it, too"), "{why}");
    assert_eq!(bad, 0);
    stack.assert_back(&before, "taken back");
    assert!(guard.pending().is_empty());
}

#[test]
fn a_socket_that_nginx_cannot_reach_takes_no_requests() {
    let Some(stack) = Stack::start("socket-private") else { return };
    let before = stack.files();
    let guard = &mut stack.store().lock().unwrap();
    let private = stack.fpm.dir().join("private");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
    let (_, bad, applied) = stack.asked_during(|| apply(guard, &stack.changes(&private.join("www.sock"))));
    let why = applied.unwrap_err().to_string();
    assert!(why.contains("user 65534 of nginx cannot connect to"), "{why}");
    assert_eq!((bad, fs::read_dir(&private).unwrap().count()), (0, 0));
    stack.assert_back(&before, "taken back");

    fs::set_permissions(&private, fs::Permissions::from_mode(0o777)).unwrap();
    let open = apply(guard, &stack.changes(&private.join("www.sock"))).unwrap_err().to_string();
    fs::write(stack.path(), "mine").unwrap();
    let taken = apply(guard, &stack.changes(&stack.path())).unwrap_err().to_string();
    assert!(open.contains("can be changed by everybody") && taken.contains("exists already"), "{open}\n{taken}");
    assert_eq!((fs::read(stack.path()).unwrap(), stack.files()), (b"mine".to_vec(), before));
}

#[test]
fn a_move_that_was_broken_off_anywhere_is_undone() {
    let Some(stack) = Stack::start("socket-broken") else { return };
    let before = stack.files();
    for last in [Step::Journalled, Step::Written(0), Step::Written(1), Step::Written(2), Step::Applied] {
        let guard = &mut stack.store().lock().unwrap();
        let broken = catch_unwind(AssertUnwindSafe(|| {
            guard.apply(&stack.changes(&stack.path()), &purpose(), &mut |step| assert_ne!(step, last, "broken off on purpose"))
        }));
        assert!(broken.is_err(), "{last:?}");
        assert!(stack.nginx.answers(), "{last:?}");
        let (_, bad, report) = stack.asked_during(|| guard.undo(&Filter::All));
        assert!(report.is_clean(), "{last:?}: {report:?}");
        assert_eq!(bad, 0, "{last:?}");
        stack.assert_back(&before, &format!("{last:?}"));
    }
}

#[test]
fn requests_stay_at_the_socket_where_the_pool_cannot_go_back() {
    let Some(stack) = Stack::start("socket-conflict") else { return };
    let guard = &mut stack.store().lock().unwrap();
    apply(guard, &stack.changes(&stack.path())).unwrap();
    let text = fs::read_to_string(stack.fpm.main()).unwrap();
    let edited = text.replace("listen.owner = nobody", "listen.owner = root");
    assert_ne!(edited, text);
    fs::write(stack.fpm.main(), &edited).unwrap();
    let report = guard.undo(&Filter::All);
    assert_eq!((report.conflicts.len(), report.restored.len(), report.failed.len()), (1, 0, 2), "{report:?}");
    let told = report.failed[0].error.to_string();
    assert!(told.contains("is not taken back before php-fpm listen of [www], which is still in force"), "{told}");
    assert!(stack.nginx.answers());
    assert_eq!(fs::read_to_string(stack.fpm.main()).unwrap(), edited);
    // As the user decides.
    fs::write(stack.fpm.main(), text).unwrap();
    assert!(guard.undo(&Filter::All).is_clean() && stack.nginx.answers());
}

#[test]
fn the_socket_of_a_killed_server_is_removed() {
    let Some(stack) = Stack::start("socket-killed") else { return };
    let before = stack.files();
    let guard = &mut stack.store().lock().unwrap();
    apply(guard, &stack.changes(&stack.path())).unwrap();
    let master: u32 = fs::read_to_string(stack.fpm.dir().join("fpm.pid")).unwrap().trim().parse().unwrap();
    for pid in std::iter::once(master).chain(stack.fpm.worker_pids()) {
        let process = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
        until("it has ended", || fs::read(format!("/proc/{pid}/exe")).is_err() && fs::read_link(format!("/proc/{pid}/exe")).is_err());
    }
    assert!(stack.path().exists(), "nobody removed it");
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((stack.files(), stack.path().exists()), (before, false));
}
