//! Another user's process that looks like the server, beside `undo` and `diagnose --fix`: root executes nothing of it, and it stands in nobody's way.
//!
//! Live beside others: a real nginx and its look-alikes in a network namespace of their own; what is executed is judged.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use chokepoint_model::change::{Activation, Change, ServerKind, ServerSetting};
use chokepoint_remedy::{Purpose, Store, boot_id};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Chokepoint, Ran, is_root, ran};

const NGINX: &str = "/usr/sbin/nginx";
/// User and group "nobody".
const NOBODY: u32 = 65534;
/// Nothing takes as long on any machine.
const FOREVER: Duration = Duration::from_secs(120);

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < FOREVER, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A network namespace of the test's own, whose mounts are the host's: a server that sees other files would be refused for that. Gone when dropped.
struct Netns(String);

impl Netns {
    fn add() -> Option<Self> {
        if !is_root() {
            return None;
        }
        let there = |name: &str| ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].iter().any(|dir| Path::new(dir).join(name).exists());
        let missing = ["ip", "nsenter", "setpriv", "bash"].into_iter().find(|name| !there(name));
        if let Some(missing) = missing.or_else(|| (!Path::new(NGINX).exists()).then_some(NGINX)) {
            println!("skipped: {missing} is not installed");
            return None;
        }
        let netns = Self(format!("t-impostor-{}", std::process::id()));
        let added = Command::new("ip").args(["netns", "add", &netns.0]).output();
        if !added.is_ok_and(|output| output.status.success()) {
            println!("skipped: no network namespace can be made here");
            return None;
        }
        assert!(netns.command("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
        Some(netns)
    }

    /// A program inside it.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.0)).arg("--").arg(program);
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

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// A process and, when dropped, its end.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn title(&self) -> String {
        fs::read_to_string(format!("/proc/{}/cmdline", self.pid())).unwrap_or_default()
    }

    fn workers(&self) -> Vec<u32> {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid())).unwrap_or_default();
        let is_worker = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|title| title.contains("worker process"));
        children.split_whitespace().filter_map(|child| child.parse().ok()).filter(is_worker).collect()
    }

    fn start_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap(), Signal::TERM);
        let _ = self.0.wait();
    }
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
        let running = Running::start(self.netns.command(NGINX).args(["-g", "daemon off;", "-c"]).arg(&self.main));
        until("nginx has a worker", || !running.workers().is_empty());
        running
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.main).unwrap()
    }

    /// Applies a change to it, as `--fix` does.
    fn change(&self, running: &Running, chokepoint: &Chokepoint) {
        let change = Change::Server {
            server: ServerKind::Nginx,
            pid: running.pid(),
            start_ticks: running.start_ticks(),
            file: self.main.to_str().unwrap().to_owned(),
            setting: ServerSetting::NginxWorkerConnections,
            from: "4096".into(),
            to: "5000".into(),
            activation: Activation::Reload,
        };
        let purpose =
            Purpose { finding: "worker-connections-full".into(), remedy: "raise-worker-connections".into(), owner: "diagnose".into() };
        let root = Path::new("/");
        let store = Store::open(&chokepoint.file("state"), root, boot_id(root).unwrap()).unwrap();
        store.lock().unwrap().apply(&[change], &purpose, &mut |_| {}).unwrap();
        assert!(self.text().contains("worker_connections 5000"));
    }
}

/// A program of nobody's that says it is the server. Executed with what its command line says, it writes the mark.
struct Impostor {
    running: Running,
    home: tempfile::TempDir,
}

impl Impostor {
    /// By the file name `program`.
    fn start(netns: &Netns, program: &str, main: &Path) -> Self {
        let home = tempfile::Builder::new().prefix("t-nobody-").tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let at = |name: &str| home.path().join(name).display().to_string();
        // nginx gives itself the title "nginx: master process", followed by what it was started with.
        assert!(Command::new("cp").args([NGINX, &at(program)]).status().unwrap().success());
        fs::write(at("own.conf"), format!("pid {};\nevents {{}}\n", at("pid"))).unwrap();
        for path in [at(""), at(program), at("own.conf")] {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let script = format!(r#"exec -a "{NGINX} -c {}" "$0" "$@""#, main.display());
        let mut command = netns.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", &script, &at(program)]);
        // The file behind -e is opened before all else, whoever executes it and whatever becomes of the configuration.
        command.args(["-c", &at("own.conf"), "-p", &at(""), "-e", &at("mark"), "-g", "daemon off;"]);
        let impostor = Self { running: Running::start(&mut command), home };
        let title = format!("nginx: master process {NGINX} -c {}", main.display());
        until("the look-alike has its title", || {
            impostor.running.title().starts_with(&title) && impostor.mark().exists() && !impostor.running.workers().is_empty()
        });
        fs::remove_file(impostor.mark()).unwrap();
        impostor
    }

    /// One of another program, and one of nginx's own.
    fn pair(netns: &Netns, main: &Path) -> [Self; 2] {
        ["impostor", "nginx"].map(|program| Self::start(netns, program, main))
    }

    fn mark(&self) -> PathBuf {
        self.home.path().join("mark")
    }

    fn assert_untouched(&self) {
        assert!(!self.mark().exists(), "it was executed, or was sent a signal");
    }
}

/// That the mark is there once somebody executes it, as a trial would: with its own user's rights, for root's do no less.
fn assert_marks(impostor: &Impostor, main: &Path) {
    let exe = format!("/proc/{}/exe", impostor.running.pid());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &exe, "-t", "-c"]).arg(main).arg("-e").arg(impostor.mark());
    let output = command.output().unwrap();
    assert!(impostor.mark().exists(), "{output:?}");
    fs::remove_file(impostor.mark()).unwrap();
}

#[test]
fn an_undo_and_a_fix_execute_no_look_alike() {
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

    // The server has another number than when it was changed, so that it is searched for.
    let running = nginx.start();
    nginx.change(&running, &chokepoint);
    drop(running);
    let running = nginx.start();
    let old = running.workers();
    let impostors = Impostor::pair(&netns, &nginx.main);
    impostors.iter().for_each(|impostor| assert_marks(impostor, &nginx.main));
    undone(&impostors);
    until("it was not reloaded", || running.workers().iter().any(|worker| !old.contains(worker)));

    // The server is no more, and they are all that is left.
    nginx.change(&running, &chokepoint);
    drop(running);
    undone(&impostors);

    // A fix of the server beside them, which tests its configuration.
    let running = nginx.start();
    let fix = ["diagnose", "--fix", "--yes", "--no-profile", "-c", "1000", "-z", "2s", "http://127.0.0.1/"];
    let fix = netns.chokepoint(&chokepoint, &fix);
    impostors.iter().for_each(Impostor::assert_untouched);
    // Whether it stays is the load's to say.
    let tested = format!("applying raise-accept-backlog: as user 0, group 0: {NGINX} -t -c {}", nginx.main.display());
    assert!(fix.stderr.contains(&tested), "{}{}", fix.stdout, fix.stderr);
    undone(&impostors);
    drop(running);
}
