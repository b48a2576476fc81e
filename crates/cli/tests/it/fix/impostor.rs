//! Processes of another user that look like the server: root executes nothing of theirs, and they do not block `undo` or `diagnose --fix`.
//!
//! Live beside others: a real nginx and its look-alikes in a separate network namespace; the tests check what is executed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use chokepoint_model::change::{Activation, Change, ServerKind, ServerSetting};

use crate::harness::{self, Chokepoint, NOBODY, Ran, Running, has_programs, ran, wait_until};

const NGINX: &str = "/usr/sbin/nginx";

/// A network namespace with the mounts of the host: a server that sees other files would be refused for that reason.
struct Netns(harness::Netns);

impl Netns {
    fn add() -> Option<Self> {
        has_programs(&["ip", "nsenter", "setpriv", "bash", "nginx"]).then(|| harness::Netns::add("impostor"))?.map(Self)
    }

    /// A program inside it.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.0.0)).arg("--").arg(program);
        command
    }

    /// The binary inside it.
    fn chokepoint(&self, chokepoint: &Chokepoint, args: &[&str]) -> Ran {
        let plain = chokepoint.command(args);
        let mut inside = self.command(plain.get_program());
        inside.args(plain.get_args()).stdin(Stdio::null());
        inside.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        ran(inside.output().unwrap())
    }
}

fn title(running: &Running) -> String {
    fs::read_to_string(format!("/proc/{}/cmdline", running.0.id())).unwrap_or_default()
}

fn workers(running: &Running) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", running.0.id())).unwrap_or_default();
    let is_worker = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|title| title.contains("worker process"));
    children.split_whitespace().filter_map(|child| child.parse().ok()).filter(is_worker).collect()
}

fn start_ticks(running: &Running) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", running.0.id())).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
}

/// nginx with a short accept queue, on port 80 of the namespace.
struct Nginx<'a> {
    netns: &'a Netns,
    main: PathBuf,
}

impl<'a> Nginx<'a> {
    fn new(netns: &'a Netns, chokepoint: &Chokepoint) -> Self {
        let dir = chokepoint.dir.path().display();
        let text = format!(
            "user nobody nogroup;\npid {dir}/nginx.pid;\nerror_log {dir}/error.log;\nworker_processes 1;\nworker_rlimit_nofile 8192;\n\
             events {{ worker_connections 4096; }}\nhttp {{\n    access_log off;\n    keepalive_timeout 0;\n    \
             server {{ listen 80 backlog=10; return 200 ok; }}\n}}\n"
        );
        let main = PathBuf::from(chokepoint.write("nginx.conf", text.as_bytes()));
        Self { netns, main }
    }

    fn start(&self) -> Running {
        let running = Running::start(self.netns.command(NGINX).args(["-g", "daemon off;", "-c"]).arg(&self.main)).unwrap();
        wait_until("nginx has no worker", || !workers(&running).is_empty());
        running
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.main).unwrap()
    }

    /// Applies a change, as `--fix` does.
    fn change(&self, running: &Running, chokepoint: &Chokepoint) {
        let change = Change::Server {
            server: ServerKind::Nginx,
            pid: running.0.id(),
            start_ticks: start_ticks(running),
            file: self.main.to_str().unwrap().to_owned(),
            setting: ServerSetting::NginxWorkerConnections,
            from: "4096".into(),
            to: "5000".into(),
            activation: Activation::Reload,
        };
        super::journal::applied_before(&chokepoint.file("state"), &change);
        assert!(self.text().contains("worker_connections 5000"));
    }
}

/// A process of nobody whose title says that it is the server. Its program creates the file `mark` when it is executed with the arguments in its title.
struct Impostor {
    running: Running,
    home: tempfile::TempDir,
}

impl Impostor {
    /// `program`: the name of its file.
    fn start(netns: &Netns, program: &str, main: &Path) -> Self {
        let home = tempfile::Builder::new().prefix("t-nobody-").tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let at = |name: &str| home.path().join(name).display().to_string();
        // nginx gives itself the title "nginx: master process", followed by its command line.
        assert!(Command::new("cp").args([NGINX, &at(program)]).status().unwrap().success());
        fs::write(at("own.conf"), format!("pid {};\nevents {{}}\n", at("pid"))).unwrap();
        for path in [at(""), at(program), at("own.conf")] {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let script = format!(r#"exec -a "{NGINX} -c {}" "$0" "$@""#, main.display());
        let mut command = netns.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", &script, &at(program)]);
        // nginx opens the file behind -e first, even if the configuration is refused.
        command.args(["-c", &at("own.conf"), "-p", &at(""), "-e", &at("mark"), "-g", "daemon off;"]);
        let impostor = Self { running: Running::start(&mut command).unwrap(), home };
        let title = format!("nginx: master process {NGINX} -c {}", main.display());
        wait_until("the look-alike has no title", || {
            self::title(&impostor.running).starts_with(&title) && impostor.mark().exists() && !workers(&impostor.running).is_empty()
        });
        fs::remove_file(impostor.mark()).unwrap();
        impostor
    }

    /// Two look-alikes: one of another program, and one of nginx itself.
    fn pair(netns: &Netns, main: &Path) -> [Self; 2] {
        ["impostor", "nginx"].map(|program| Self::start(netns, program, main))
    }

    fn mark(&self) -> PathBuf {
        self.home.path().join("mark")
    }

    fn assert_untouched(&self) {
        assert!(!self.mark().exists(), "its program was executed");
    }
}

/// Checks that the file `mark` appears when the program is executed as in a configuration test, with the rights of its user.
fn assert_marks(impostor: &Impostor, main: &Path) {
    let exe = format!("/proc/{}/exe", impostor.running.0.id());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &exe, "-t", "-c"]).arg(main).arg("-e").arg(impostor.mark());
    let output = command.output().unwrap();
    assert!(impostor.mark().exists(), "{output:?}");
    fs::remove_file(impostor.mark()).unwrap();
}

#[test]
fn undo_and_fix_execute_no_look_alike() {
    let Some(netns) = Netns::add() else { return };
    let chokepoint = Chokepoint::new();
    let nginx = Nginx::new(&netns, &chokepoint);
    let before = nginx.text();
    let undone = |impostors: &[Impostor]| {
        let undo = netns.chokepoint(&chokepoint, &["undo"]);
        impostors.iter().for_each(Impostor::assert_untouched);
        assert_eq!((undo.status, nginx.text()), (Some(0), before.clone()), "{}{}", undo.stdout, undo.stderr);
        assert_eq!(netns.chokepoint(&chokepoint, &["undo", "--list"]).stdout, "nothing is applied\n");
    };

    // The process number of the server differs from the one at the change, so undo searches for the server.
    let running = nginx.start();
    nginx.change(&running, &chokepoint);
    drop(running);
    let running = nginx.start();
    let old = workers(&running);
    let impostors = Impostor::pair(&netns, &nginx.main);
    impostors.iter().for_each(|impostor| assert_marks(impostor, &nginx.main));
    undone(&impostors);
    wait_until("it was not reloaded", || workers(&running).iter().any(|worker| !old.contains(worker)));

    // The server has ended, and only the look-alikes are left.
    nginx.change(&running, &chokepoint);
    drop(running);
    undone(&impostors);

    // A fix of the real server tests its configuration.
    let running = nginx.start();
    let fix = ["diagnose", "--fix", "--yes", "--no-profile", "-c", "1000", "-z", "2s", "--disable-keepalive", "http://127.0.0.1/"];
    let fix = netns.chokepoint(&chokepoint, &fix);
    impostors.iter().for_each(Impostor::assert_untouched);
    // Whether the change is kept depends on the load.
    let tested = format!("applying raise-accept-backlog: as user 0, group 0: {NGINX} -t -c {}", nginx.main.display());
    assert!(fix.stderr.contains(&tested), "{}{}", fix.stdout, fix.stderr);
    undone(&impostors);
    drop(running);
}
