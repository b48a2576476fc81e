//! HAProxy, whose master does not listen and whose workers look like it: its limits are changed, put in force by its master and restored.
//!
//! Live beside others: HAProxy of its own; its files and settings are judged.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use chokepoint_model::change::{Activation, Change, ServerKind, ServerSetting};
use chokepoint_remedy::{ApplyError, Filter, plan};
use tempfile::TempDir;

use crate::servers::{age, answers, apply, can_run, change, children_of, free_port, kill, start_ticks, store, temporary, until};

/// The user whom another one's server runs as: nobody.
const NOBODY: u32 = 65_534;

/// A HAProxy that answers by itself, with its global settings in one file and its proxies in a directory of others.
struct Haproxy {
    dir: TempDir,
    port: u16,
    child: Child,
    ticks: u64,
}

impl Haproxy {
    /// Starts it with these options, as this user if one is named.
    fn start(name: &str, options: &[&str], user: Option<u32>) -> Option<Self> {
        if !can_run("haproxy") {
            return None;
        }
        let (dir, port) = (temporary(name), free_port());
        fs::create_dir(dir.path().join("conf.d")).unwrap();
        fs::write(dir.path().join("main.cfg"), "global\n    maxconn 200 # all\n    nbthread 1\ndefaults\n    mode http\n    timeout connect 1s\n    timeout client 1s\n    timeout server 1s\n").unwrap();
        let site = format!(
            "frontend www\n    bind 127.0.0.1:{port}\n    http-request return status 200\n    default_backend app\nbackend app\n    server a  127.0.0.1:1 maxconn 2 weight 10 # few\n"
        );
        fs::write(dir.path().join("conf.d/site.cfg"), site).unwrap();
        let mut command = Command::new("haproxy");
        command.args(options).arg("-f").arg(dir.path().join("main.cfg")).arg("-f").arg(dir.path().join("conf.d"));
        if let Some(user) = user {
            for path in [dir.path().to_owned(), dir.path().join("main.cfg"), dir.path().join("conf.d"), dir.path().join("conf.d/site.cfg")]
            {
                std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
            }
            command.uid(user).gid(user);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut haproxy = Self { dir, port, child, ticks: 0 };
        until("HAProxy answers", || answers(port));
        haproxy.ticks = start_ticks(haproxy.pid());
        Some(haproxy)
    }

    /// Ends it and starts it again with these files.
    fn restart(&mut self, options: &[&str], files: &[&str]) {
        self.stop();
        let mut command = Command::new("haproxy");
        command.args(options).args(files.iter().flat_map(|file| ["-f".into(), self.dir.path().join(file).into_os_string()]));
        self.child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("HAProxy answers again", || answers(self.port));
        self.ticks = start_ticks(self.pid());
    }

    fn stop(&mut self) {
        let workers = self.workers();
        kill(self.pid());
        let _ = self.child.wait();
        until("its workers end", || workers.iter().all(|worker| !Path::new(&format!("/proc/{worker}")).exists()));
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn workers(&self) -> Vec<u32> {
        children_of(self.pid())
    }

    fn main(&self) -> PathBuf {
        self.dir.path().join("main.cfg")
    }

    fn site(&self) -> PathBuf {
        self.dir.path().join("conf.d/site.cfg")
    }

    fn change_of(&self, pid: u32, setting: ServerSetting, from: &str, to: &str) -> Change {
        change(ServerKind::Haproxy, pid, start_ticks(pid), &self.main(), setting, (from, to), Activation::Reload)
    }

    fn change(&self, setting: ServerSetting, from: &str, to: &str) -> Change {
        assert_eq!(start_ticks(self.pid()), self.ticks, "its master stays the same process");
        self.change_of(self.pid(), setting, from, to)
    }
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        self.stop();
    }
}

fn limit(section: &str, line: &str, name: &str) -> ServerSetting {
    ServerSetting::Limit { server: ServerKind::Haproxy, section: section.to_owned(), line: line.to_owned(), limit: name.to_owned() }
}

fn of_server() -> ServerSetting {
    limit("backend app", "server a", "maxconn")
}

#[test]
fn limits_in_several_files_are_raised_by_new_workers_and_restored_to_the_byte() {
    let Some(haproxy) = Haproxy::start("haproxy", &["-Ws"], None) else { return };
    let guard = &mut store(haproxy.dir.path()).lock().unwrap();
    let before = [haproxy.main(), haproxy.site()].map(|path| fs::read_to_string(path).unwrap());
    let first = haproxy.workers();
    let change = haproxy.change(of_server(), "2", "50");
    let planned = plan(&change).unwrap().unwrap();
    let (main, conf) = (haproxy.main(), haproxy.dir.path().join("conf.d"));
    assert_eq!(planned.test[1..], ["-c", "-f", main.to_str().unwrap(), "-f", conf.to_str().unwrap()]);
    assert_eq!((planned.activating.to_string(), planned.user), (format!("kill -USR2 {}", haproxy.pid()), (0, 0)));
    apply(guard, &[change]).unwrap();
    assert_eq!(fs::read_to_string(haproxy.site()).unwrap(), before[1].replace("maxconn 2 ", "maxconn 50 "));
    let second = haproxy.workers();
    assert!(second.iter().any(|worker| !first.contains(worker)) && answers(haproxy.port), "{first:?} {second:?}");
    apply(guard, &[haproxy.change(limit("global", "", "maxconn"), "200", "400")]).unwrap();
    apply(guard, &[haproxy.change(limit("frontend www", "", "maxconn"), "200", "300")]).unwrap_err();
    assert_eq!(fs::read_to_string(haproxy.main()).unwrap(), before[0].replace("maxconn 200 ", "maxconn 400 "));
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean() && report.restored.len() == 2, "{report:?}");
    assert_eq!([haproxy.main(), haproxy.site()].map(|path| fs::read_to_string(path).unwrap()), before);
    assert!(haproxy.workers().iter().any(|worker| !second.contains(worker)) && answers(haproxy.port));
}

#[test]
fn the_files_of_a_directory_are_edited_where_the_limit_stands() {
    let Some(mut haproxy) = Haproxy::start("haproxy-directory", &["-W"], None) else { return };
    // The same files, given as a directory.
    fs::rename(haproxy.main(), haproxy.dir.path().join("conf.d/0-main.cfg")).unwrap();
    haproxy.restart(&["-W"], &["conf.d"]);
    let guard = &mut store(haproxy.dir.path()).lock().unwrap();
    let before = fs::read_to_string(haproxy.site()).unwrap();
    let main = haproxy.dir.path().join("conf.d/*.cfg");
    let change = change(ServerKind::Haproxy, haproxy.pid(), haproxy.ticks, &main, of_server(), ("2", "50"), Activation::Reload);
    apply(guard, &[change]).unwrap();
    assert_eq!(fs::read_to_string(haproxy.site()).unwrap(), before.replace("maxconn 2 ", "maxconn 50 "));
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean() && report.restored.len() == 1, "{report:?}");
    assert_eq!(fs::read_to_string(haproxy.site()).unwrap(), before);
    assert!(answers(haproxy.port));
}

#[test]
fn what_someone_else_edited_meanwhile_stays_and_what_was_not_read_needs_consent() {
    let Some(haproxy) = Haproxy::start("haproxy-others", &["-W"], None) else { return };
    let guard = &mut store(haproxy.dir.path()).lock().unwrap();
    apply(guard, &[haproxy.change(of_server(), "2", "50")]).unwrap();
    let edited = format!("# mine\n{}", fs::read_to_string(haproxy.site()).unwrap());
    age(&haproxy.workers());
    fs::write(haproxy.site(), &edited).unwrap();
    let refused = apply(guard, &[haproxy.change(limit("global", "", "maxconn"), "200", "400")]);
    assert!(
        matches!(&refused, Err(ApplyError::Unread { files, .. }) if files.iter().any(|file| file.ends_with("site.cfg"))),
        "{refused:?}"
    );
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean() && report.restored.len() == 1, "{report:?}");
    assert_eq!(fs::read_to_string(haproxy.site()).unwrap(), edited.replace("maxconn 50 ", "maxconn 2 "));
    assert!(answers(haproxy.port) && guard.pending().is_empty());
}

/// HAProxy's own test accepts it; the new worker does not start, and the old one serves on.
#[test]
fn a_limit_that_no_worker_can_start_with_is_taken_back() {
    let Some(haproxy) = Haproxy::start("haproxy-limit", &["-W"], None) else { return };
    let guard = &mut store(haproxy.dir.path()).lock().unwrap();
    let before = fs::read_to_string(haproxy.main()).unwrap();
    let failed = apply(guard, &[haproxy.change(limit("global", "", "maxconn"), "200", "2000000000")]);
    assert!(failed.is_err(), "{failed:?}");
    drop(guard.undo(&Filter::All));
    assert_eq!(fs::read_to_string(haproxy.main()).unwrap(), before);
    assert!(answers(haproxy.port) && guard.pending().is_empty());
}

#[test]
fn only_the_own_master_is_told_to_read_its_files_again() {
    let why = |guard: &mut chokepoint_remedy::Guard, change: Change| apply(guard, &[change]).unwrap_err().to_string();
    let Some(haproxy) = Haproxy::start("haproxy-who", &["-W"], None) else { return };
    let guard = &mut store(haproxy.dir.path()).lock().unwrap();
    let before = fs::read_to_string(haproxy.site()).unwrap();
    let worker = haproxy.workers()[0];
    let told = why(guard, haproxy.change_of(worker, of_server(), "2", "50"));
    assert!(told.contains(&format!("process {worker} is a worker of haproxy, and not its master")), "{told}");
    let other = haproxy.dir.path().join("other.cfg");
    fs::copy(haproxy.site(), &other).unwrap();
    let elsewhere = change(ServerKind::Haproxy, haproxy.pid(), haproxy.ticks, &other, of_server(), ("2", "50"), Activation::Reload);
    let told = why(guard, elsewhere);
    assert!(told.contains("main.cfg instead of"), "{told}");
    assert_eq!(fs::read_to_string(haproxy.site()).unwrap(), before);
    let Some(alone) = Haproxy::start("haproxy-alone", &["-db"], None) else { return };
    let told = why(guard, alone.change(of_server(), "2", "50"));
    assert!(told.contains("runs without a master process"), "{told}");
    let Some(others) = Haproxy::start("haproxy-user", &["-W"], Some(NOBODY)) else { return };
    let before = fs::read_to_string(others.site()).unwrap();
    let told = why(guard, others.change(of_server(), "2", "50"));
    assert!(told.contains(&format!("runs as user {NOBODY}")), "{told}");
    assert_eq!(fs::read_to_string(others.site()).unwrap(), before);
}
