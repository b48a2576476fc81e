//! Processes of other users that look like the server: root executes nothing of theirs, and none of them blocks an undo.
//!
//! Live beside others: a real nginx and its look-alikes; what is executed is judged.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use chokepoint_model::change::{Activation, Change, ServerKind, ServerSetting};
use chokepoint_remedy::{Filter, plan};
use tempfile::TempDir;

use crate::servers::{self, Nginx, apply, store, temporary, until};

const NOBODY: u32 = 65_534;

/// A program of user nobody that leaves a marker file when it is executed.
struct Impostor {
    child: Child,
    home: TempDir,
}

impl Impostor {
    /// A copy of nginx whose command line names somebody else's main file. Executed with that command line, it writes the marker as the executing user.
    fn nginx(main: &Path, apart: bool) -> Self {
        let home = home_of_nobody();
        let at = |name: &str| home.path().join(name).display().to_string();
        fs::copy("/usr/sbin/nginx", at("nginx")).unwrap();
        fs::write(at("own.conf"), format!("pid {};\nevents {{}}\n", at("pid"))).unwrap();
        for name in ["nginx", "own.conf"] {
            chown(at(name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let script = format!(r#"exec -a "/usr/sbin/nginx -c {}" "$0" "$@""#, main.display());
        let mut command = if apart { Command::new("unshare") } else { Command::new("setpriv") };
        if apart {
            command.args(["-m", "setpriv"]);
        }
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", &script, &at("nginx")]);
        command.args(["-c", &at("own.conf"), "-p", &at(""), "-g", &format!("daemon off; error_log {};", at("marker"))]);
        let impostor = Self { child: spawn(&mut command), home };
        until("the impostor has its title", || impostor.title().starts_with("nginx: master process") && impostor.marker().exists());
        // A just forked worker still has its master's title.
        until("its worker has its own title", || {
            let workers = servers::children_of(impostor.child.id());
            let is_worker =
                |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|title| title.contains("worker process"));
            !workers.is_empty() && workers.iter().all(is_worker)
        });
        fs::remove_file(impostor.marker()).unwrap();
        impostor
    }

    /// The title of nginx, for another program.
    fn title(&self) -> String {
        fs::read_to_string(format!("/proc/{}/cmdline", self.child.id())).unwrap_or_default()
    }

    fn titled(main: &Path) -> Self {
        let script = format!(r#"exec -a "nginx: master process /usr/sbin/nginx -c {} -g" sleep 600"#, main.display());
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", &script]);
        let impostor = Self { child: spawn(&mut command), home: home_of_nobody() };
        until("the impostor has its title", || impostor.title().starts_with("nginx: master process"));
        impostor
    }

    fn marker(&self) -> PathBuf {
        self.home.path().join("marker")
    }

    /// A change that a deceived diagnosis would propose.
    fn change(&self, main: &Path) -> Change {
        let (pid, setting) = (self.child.id(), ServerSetting::NginxWorkerConnections);
        servers::change(ServerKind::Nginx, pid, servers::start_ticks(pid), main, setting, ("100", "200"), Activation::Reload)
    }

    fn assert_not_executed(&self) {
        assert!(!self.marker().exists(), "it was executed");
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        servers::kill(self.child.id());
        let _ = self.child.wait();
    }
}

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn home_of_nobody() -> TempDir {
    let home = temporary("nobody");
    chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    home
}

fn can_impersonate() -> bool {
    let can =
        servers::can_run("nginx") && Command::new("setpriv").arg("--version").output().is_ok() && Path::new("/usr/sbin/nginx").exists();
    if !can {
        println!("skipped: needs setpriv and /usr/sbin/nginx");
    }
    can
}

fn all(main: &Path) -> [Impostor; 3] {
    [Impostor::titled(main), Impostor::nginx(main, false), Impostor::nginx(main, true)]
}

#[test]
fn an_undo_finds_the_server_among_look_alikes() {
    let Some(mut nginx) = Nginx::start("beside") else { return };
    if !can_impersonate() {
        return;
    }
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::read_to_string(nginx.main()).unwrap();
    let impostors = all(&nginx.main());
    apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "100", "200")]).unwrap();
    // With another pid it must be searched.
    nginx.restart();
    let workers = nginx.workers();
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean() && report.restored.len() == 1, "{report:?}");
    assert_eq!(fs::read_to_string(nginx.main()).unwrap(), before);
    assert!(nginx.answers() && workers.iter().all(|old| !nginx.workers().contains(old)), "it was reloaded");
    impostors.iter().for_each(Impostor::assert_not_executed);
}

#[test]
fn an_undo_does_not_mistake_a_look_alike_for_a_server_that_has_ended() {
    let Some(mut nginx) = Nginx::start("alone") else { return };
    if !can_impersonate() {
        return;
    }
    for number in 0..3 {
        let guard = &mut store(nginx.dir()).lock().unwrap();
        nginx.restart();
        let before = fs::read_to_string(nginx.main()).unwrap();
        apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "100", "200")]).unwrap();
        nginx.stop();
        let impostor = match number {
            0 => Impostor::titled(&nginx.main()),
            1 => Impostor::nginx(&nginx.main(), false),
            _ => Impostor::nginx(&nginx.main(), true),
        };
        let report = guard.undo(&Filter::All);
        impostor.assert_not_executed();
        assert!(report.is_clean() && report.restored.len() == 1, "{number}: {report:?}");
        assert_eq!(fs::read_to_string(nginx.main()).unwrap(), before);
    }
}

#[test]
fn a_change_that_names_a_look_alike_is_refused_and_root_executes_nothing() {
    let Some(nginx) = Nginx::start("named") else { return };
    if !can_impersonate() {
        return;
    }
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::read_to_string(nginx.main()).unwrap();
    let whys = ["is not a process of nginx: it executes", "the server runs as user 65534", "another file system"];
    for (impostor, why) in all(&nginx.main()).iter().zip(whys) {
        let change = impostor.change(&nginx.main());
        let planned = plan(&change);
        let refused = apply(guard, &[change]).unwrap_err().to_string();
        impostor.assert_not_executed();
        assert!(refused.contains(why), "{refused}");
        assert!(planned.unwrap_err().to_string().contains(why));
    }
    assert_eq!((fs::read_to_string(nginx.main()).unwrap(), guard.pending().len()), (before, 0));
}

/// Root's own nginx, whose title and arguments name the file of another one: it is the server of the file that names what it listens on.
#[test]
fn a_file_belongs_to_the_server_that_listens_where_it_says() {
    let Some(nginx) = Nginx::start("listening") else { return };
    if !can_impersonate() {
        return;
    }
    let home = temporary("other");
    let at = |name: &str| home.path().join(name).display().to_string();
    let site = format!("http {{ access_log off; server {{ listen unix:{}; return 200 ok; }} }}", at("socket"));
    fs::write(at("own.conf"), format!("pid {};\nerror_log {};\nevents {{}}\n{site}\n", at("pid"), at("log"))).unwrap();
    let script = format!(r#"exec -a "/usr/sbin/nginx -c {}" /usr/sbin/nginx "$@""#, nginx.main().display());
    let mut command = Command::new("bash");
    command.args(["-c", &script, "nginx", "-c", &at("own.conf"), "-p", &at(""), "-g", "daemon off;"]);
    let mut other = spawn(&mut command);
    until("it has a worker", || Path::new(&at("socket")).exists() && !servers::children_of(other.id()).is_empty());
    let (pid, before) = (other.id(), fs::read_to_string(nginx.main()).unwrap());
    let setting = ServerSetting::NginxWorkerConnections;
    let values = ("100", "200");
    let change =
        servers::change(ServerKind::Nginx, pid, servers::start_ticks(pid), &nginx.main(), setting.clone(), values, Activation::Reload);
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let planned = plan(&change).map(|_| ()).map_err(|error| error.to_string());
    let applied = apply(guard, &[change]).map_err(|error| error.to_string());
    servers::kill(pid);
    let _ = other.wait();
    for said in [planned, applied.map(|_| ())] {
        let said = said.expect_err("it is not the server of this file");
        assert!(said.contains(&format!("process {pid} listens at none of the addresses of {}", nginx.main().display())), "{said}");
    }
    assert_eq!((fs::read_to_string(nginx.main()).unwrap(), guard.pending().len()), (before, 0));
    // The server that listens there.
    apply(guard, &[nginx.change(setting, "100", "200")]).unwrap();
    assert!(guard.undo(&Filter::All).is_clean() && nginx.answers());
}

/// A real nginx of user nobody that runs with root's file: root may read, test and edit that file, and does nothing of it for this server.
#[test]
fn root_neither_tests_nor_edits_nor_signals_a_server_of_another_user() {
    if !servers::can_run("nginx") || !can_impersonate() {
        return;
    }
    let (conf, home) = (temporary("conf"), home_of_nobody());
    fs::set_permissions(conf.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (main, log) = (conf.path().join("nginx.conf"), home.path().join("error.log"));
    let text = format!("pid {}/pid;\nerror_log {};\nevents {{ worker_connections 100; }}\n", home.path().display(), log.display());
    fs::write(&main, &text).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "nginx", "-g", "daemon off;", "-c"]).arg(&main);
    let mut child = spawn(&mut command);
    until("nginx has a worker", || log.exists() && !servers::children_of(child.id()).is_empty());
    fs::remove_file(&log).unwrap();
    let (state, ticks) = (tempfile::tempdir().unwrap(), servers::start_ticks(child.id()));
    let setting = ServerSetting::NginxWorkerConnections;
    let change = servers::change(ServerKind::Nginx, child.id(), ticks, &main, setting, ("100", "200"), Activation::Reload);
    let workers = servers::children_of(child.id());
    let planned = plan(&change).unwrap_err().to_string();
    let refused = apply(&mut store(state.path()).lock().unwrap(), &[change]).unwrap_err().to_string();
    let (now, same) = (fs::read_to_string(&main).unwrap(), servers::children_of(child.id()) == workers);
    servers::kill(child.id());
    let _ = child.wait();
    for said in [planned, refused] {
        assert!(said.contains("the server runs as user 65534") && said.contains("sudo -u '#65534'"), "{said}");
    }
    assert_eq!((now, same, log.exists()), (text, true, false), "neither edited, nor signalled, nor tested");
}

#[test]
fn nothing_is_executed_where_others_control_the_program_or_its_configuration() {
    let Some(nginx) = Nginx::start("theirs") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let before = fs::metadata(nginx.main()).unwrap().ino();
    let log = nginx.dir().join("logs/error.log");
    let change = || nginx.change(ServerSetting::NginxWorkerConnections, "100", "200");
    let theirs = |path: &Path| {
        chown(path, Some(NOBODY), None).unwrap();
        let _ = fs::remove_file(&log);
        let planned = plan(&change()).unwrap_err().to_string();
        let refused = apply(&mut *guard, &[change()]).unwrap_err().to_string();
        chown(path, Some(0), None).unwrap();
        assert!(
            refused.contains("can be changed by user 65534") && planned.contains("can be changed by user 65534"),
            "{refused}; {planned}"
        );
        assert!(!log.exists(), "nothing was executed");
    };
    let mut theirs = theirs;
    // An included file, its directory, a directory searched for a pattern, a link, and the main file.
    for path in [nginx.site(), nginx.dir().join("available"), nginx.dir().join("enabled"), nginx.main()] {
        theirs(&path);
    }
    // A program that the server loads. It is refused even if it is not a valid one.
    let module = nginx.dir().join("module.so");
    fs::write(&module, "x").unwrap();
    let text = fs::read_to_string(nginx.main()).unwrap();
    fs::write(nginx.main(), format!("load_module module.so;\n{text}")).unwrap();
    theirs(&module);
    assert_eq!(fs::metadata(nginx.main()).unwrap().ino(), before);
}

#[test]
fn root_does_not_run_a_program_that_another_user_can_write() {
    let Some(nginx) = Nginx::start_copy("program") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let copy = nginx.dir().join("bin/nginx");
    let change = || nginx.change(ServerSetting::NginxWorkerConnections, "100", "200");
    chown(&copy, Some(NOBODY), None).unwrap();
    let refused = apply(guard, &[change()]).unwrap_err().to_string();
    assert!(refused.contains(&format!("can be changed by user {NOBODY}")), "{refused}");
    chown(&copy, Some(0), None).unwrap();
    // An upgrade removes the file; the running program is still the same.
    fs::remove_file(&copy).unwrap();
    apply(guard, &[change()]).unwrap();
    assert!(guard.undo(&Filter::All).is_clean() && nginx.answers());
}

/// Whatever a process answers, root gets its own bytes back, and is told what still runs.
#[test]
fn an_undo_restores_the_file_even_if_the_server_refuses_the_configuration() {
    let Some(nginx) = Nginx::start("refusing") else { return };
    let guard = &mut store(nginx.dir()).lock().unwrap();
    let (before, site) = (fs::read_to_string(nginx.main()).unwrap(), fs::read_to_string(nginx.site()).unwrap());
    apply(guard, &[nginx.change(ServerSetting::NginxWorkerConnections, "100", "200")]).unwrap();
    fs::write(nginx.site(), format!("{site}\nno_such_directive;\n")).unwrap();
    let report = guard.undo(&Filter::All);
    let told: Vec<String> = report.failed.iter().map(|failed| failed.error.to_string()).collect();
    assert!(
        told.len() == 1 && told[0].contains("is restored, and the server still runs") && told[0].contains("no_such_directive"),
        "{told:?}"
    );
    assert_eq!(fs::read_to_string(nginx.main()).unwrap(), before);
    assert!(nginx.answers());
    fs::write(nginx.site(), site).unwrap();
    let workers = nginx.workers();
    let report = guard.undo(&Filter::All);
    assert!(report.is_clean() && report.restored.len() == 1, "{report:?}");
    assert!(nginx.answers() && workers.iter().all(|old| !nginx.workers().contains(old)), "it was reloaded");
}
