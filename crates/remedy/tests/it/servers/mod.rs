//! The test's own nginx and php-fpm, each with its own directory and port.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chokepoint_model::change::{Activation, Change, ServerKind, ServerSetting};
use chokepoint_remedy::{ApplyError, Guard, Purpose, Store, boot_id};
use tempfile::TempDir;

const PHP_FPM: &str = "php-fpm8.2";
/// A site that needs no other server.
const RETURNS: &str = "return 200 ok;";

pub(crate) fn purpose() -> Purpose {
    Purpose { finding: "accept-queue-full".into(), remedy: "raise-accept-backlog".into(), owner: "lab:test".into() }
}

pub(crate) fn store(dir: &Path) -> Store {
    Store::open(&dir.join("state"), Path::new("/"), boot_id(Path::new("/")).unwrap()).unwrap()
}

pub(crate) fn apply(guard: &mut Guard, changes: &[Change]) -> Result<u64, ApplyError> {
    guard.apply(changes, &purpose(), &mut |_| {}).map(|applied| applied.id)
}

/// The accept queue's limit of the listener on a port, as ss(8) shows it.
pub(crate) fn limit_of(port: u16) -> Option<u64> {
    let output = Command::new("ss").args(["-Hltn", &format!("sport = :{port}")]).output().ok()?;
    String::from_utf8_lossy(&output.stdout).split_whitespace().nth(2)?.parse().ok()
}

/// Gives the queue of a process's listener another limit than configured, as an earlier `net.core.somaxconn` would have.
pub(crate) fn limit_queue(pid: u32, port: u16, limit: i32) {
    use rustix::net::{getsockname, listen, sockopt::socket_acceptconn};
    use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
    let process = pidfd_open(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), PidfdFlags::empty()).unwrap();
    let is_it = |socket: &std::os::fd::OwnedFd| {
        let address = getsockname(socket).ok().and_then(|address| std::net::SocketAddr::try_from(address).ok());
        socket_acceptconn(socket) == Ok(true) && address.is_some_and(|address| address.port() == port)
    };
    let sockets = (0..64).filter_map(|number| pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok());
    sockets.filter(is_it).for_each(|socket| listen(&socket, limit).unwrap());
    assert_eq!(limit_of(port), u64::try_from(limit).ok());
}

/// Connections towards a port of this host that are established, as ss(8) shows them.
pub(crate) fn established_to(port: u16) -> usize {
    let output = Command::new("ss").args(["-Htn", "state", "established", &format!("dport = :{port}")]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().count()
}

pub(crate) fn can_run(program: &str) -> bool {
    let runs = rustix::process::geteuid().is_root() && Command::new(program).arg("-v").output().is_ok_and(|output| output.status.success());
    if !runs {
        println!("skipped: needs root and {program}");
    }
    runs
}

pub(crate) fn temporary(name: &str) -> TempDir {
    tempfile::Builder::new().prefix(&format!("t-s5-{name}-")).tempdir().unwrap()
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn start_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
}

pub(crate) fn children_of(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

fn arguments(dir: &Path) -> Vec<String> {
    let text = |path: &str| dir.join(path).display().to_string();
    vec!["-c".into(), text("nginx.conf"), "-p".into(), text(""), "-g".into(), "daemon off;".into()]
}

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits until a tenth of a second has passed since the last of these processes was started.
pub(crate) fn age(pids: &[u32]) {
    let newest = pids.iter().map(|pid| start_ticks(*pid)).max().unwrap_or(0) as f64 / 100.0;
    let uptime = || fs::read_to_string("/proc/uptime").unwrap().split(' ').next().unwrap().parse::<f64>().unwrap();
    until("time passes", || uptime() > newest + 0.1);
}

pub(crate) fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

pub(crate) fn change(
    server: ServerKind,
    pid: u32,
    ticks: u64,
    file: &Path,
    setting: ServerSetting,
    values: (&str, &str),
    activation: Activation,
) -> Change {
    let file = file.to_str().unwrap().to_owned();
    Change::Server { server, pid, start_ticks: ticks, file, setting, from: values.0.into(), to: values.1.into(), activation }
}

/// True if a server answers at a port with status 200.
pub(crate) fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut answer = String::new();
    let asked = stream.write_all(b"GET / HTTP/1.0\r\n\r\n").and_then(|()| stream.read_to_string(&mut answer));
    asked.is_ok() && answer.starts_with("HTTP/1.1 200")
}

pub(crate) struct Nginx {
    dir: PathBuf,
    _owned: Option<TempDir>,
    pub(crate) port: u16,
    child: Child,
    ticks: u64,
}

impl Nginx {
    pub(crate) fn start(name: &str) -> Option<Self> {
        let owned = temporary(name);
        let mut nginx = Self::start_in(owned.path())?;
        nginx._owned = Some(owned);
        Some(nginx)
    }

    pub(crate) fn start_in(dir: &Path) -> Option<Self> {
        Self::launch(dir, &mut Command::new("nginx"), &[RETURNS])
    }

    /// Starts it with this text in the server block of each site.
    pub(crate) fn start_with(name: &str, inner: &[&str]) -> Option<Self> {
        let owned = temporary(name);
        let mut nginx = Self::launch(owned.path(), &mut Command::new("nginx"), inner)?;
        nginx._owned = Some(owned);
        Some(nginx)
    }

    /// Starts a copy of its program in its directory.
    pub(crate) fn start_copy(name: &str) -> Option<Self> {
        if !can_run("nginx") || !Path::new("/usr/sbin/nginx").exists() {
            return None;
        }
        let owned = temporary(name);
        let copy = owned.path().join("bin/nginx");
        fs::create_dir(owned.path().join("bin")).unwrap();
        fs::copy("/usr/sbin/nginx", &copy).unwrap();
        let mut nginx = Self::launch(owned.path(), &mut Command::new(&copy), &[RETURNS])?;
        nginx._owned = Some(owned);
        Some(nginx)
    }

    /// Starts it in a mount namespace with another file system over its directory.
    pub(crate) fn start_in_image(name: &str) -> Option<Self> {
        let owned = temporary(name);
        let script = r#"mkdir /tmp/$$ && cp -a "$1/." /tmp/$$ && mount -t tmpfs tmpfs "$1" && cp -a /tmp/$$/. "$1" && rm -r /tmp/$$ && shift && exec nginx "$@""#;
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh"]).arg(owned.path());
        let mut nginx = Self::launch(owned.path(), &mut command, &[RETURNS])?;
        nginx._owned = Some(owned);
        Some(nginx)
    }

    fn launch(dir: &Path, command: &mut Command, inner: &[&str]) -> Option<Self> {
        if !can_run("nginx") {
            return None;
        }
        let port = free_port();
        let text = |path: &str| dir.join(path).display().to_string();
        for sub in ["enabled", "available", "logs"] {
            fs::create_dir(dir.join(sub)).unwrap();
        }
        let main = format!(
            "user nobody nogroup;\npid {};\nerror_log {};\nworker_processes 2;\nevents {{ worker_connections 100; }}\nhttp {{\n    access_log off;\n    include enabled/*;\n}}\n",
            text("nginx.pid"),
            text("logs/error.log")
        );
        fs::write(dir.join("nginx.conf"), main).unwrap();
        for (number, inner) in inner.iter().enumerate() {
            let (name, backlog) = if number == 0 { ("site".to_owned(), " backlog=10") } else { (format!("site{number}"), "") };
            let site = format!("server {{\n    listen 127.0.0.1:{port}{backlog}; # small\n    server_name s{number};\n    {inner}\n}}\n");
            fs::write(dir.join("available").join(&name), site).unwrap();
            std::os::unix::fs::symlink(format!("../available/{name}"), dir.join("enabled").join(&name)).unwrap();
        }
        let child = spawn(command.args(arguments(dir)));
        let mut nginx = Self { dir: dir.to_owned(), _owned: None, port, ticks: 0, child };
        until("nginx answers", || nginx.is_up());
        nginx.ticks = start_ticks(nginx.child.id());
        Some(nginx)
    }

    /// Restarts it: the same server with another pid.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.child = spawn(Command::new("nginx").args(arguments(&self.dir)));
        until("nginx answers again", || self.is_up());
    }

    /// True where it answers and all workers run: the first answers while the master still starts the others.
    fn is_up(&self) -> bool {
        let main = fs::read_to_string(self.main()).unwrap();
        let workers = if main.contains("worker_processes 1;") { 1 } else { 2 };
        self.answers() && self.workers().len() == workers
    }

    /// Restarts it with one worker, of two.
    pub(crate) fn with_one_worker(mut self) -> Self {
        let main = fs::read_to_string(self.main()).unwrap();
        fs::write(self.main(), main.replace("worker_processes 2;", "worker_processes 1;")).unwrap();
        self.restart();
        self
    }

    /// Waits until a file written now is later than its workers, in ticks of the kernel's clock.
    pub(crate) fn age(&self) {
        age(&self.workers());
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn main(&self) -> PathBuf {
        self.dir.join("nginx.conf")
    }

    pub(crate) fn site(&self) -> PathBuf {
        self.dir.join("available/site")
    }

    pub(crate) fn change(&self, setting: ServerSetting, from: &str, to: &str) -> Change {
        change(ServerKind::Nginx, self.child.id(), self.ticks, &self.main(), setting, (from, to), Activation::Reload)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn workers(&self) -> Vec<u32> {
        children_of(self.child.id())
    }

    /// The soft limit of open files of its newest worker, the last in the list: old ones take a moment to end after a reload.
    pub(crate) fn files_limit(&self) -> Option<String> {
        let newest = self.workers().pop()?;
        let text = fs::read_to_string(format!("/proc/{newest}/limits")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace().next().map(str::to_owned)
    }

    pub(crate) fn answers(&self) -> bool {
        answers(self.port)
    }

    /// Reloads it and waits until new workers have replaced the old ones.
    pub(crate) fn reload(&self) {
        let old = self.workers();
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
        until("a reload replaces the workers", || {
            let workers = self.workers();
            !workers.is_empty() && workers.iter().all(|worker| !old.contains(worker))
        });
    }

    pub(crate) fn stop(&mut self) {
        kill(self.child.id());
        let _ = self.child.wait();
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) struct PhpFpm {
    owned: TempDir,
    pub(crate) port: u16,
    pid: u32,
    ticks: u64,
    child: Child,
    background: bool,
}

impl PhpFpm {
    /// Waits until a tenth of a second has passed since it wrote its pid file, after it had read its configuration: on a busy host long after its start.
    pub(crate) fn age(&self) {
        let written = fs::metadata(self.dir().join("fpm.pid")).unwrap().modified().unwrap();
        until("time passes", || written.elapsed().is_ok_and(|since| since > Duration::from_millis(100)));
    }

    pub(crate) fn start(name: &str, background: bool) -> Option<Self> {
        Self::start_with(name, background, "pm = static\npm.max_children = 2 ; few\n")
    }

    /// Starts it with this text in its pool.
    pub(crate) fn start_with(name: &str, background: bool, pool: &str) -> Option<Self> {
        if !can_run(PHP_FPM) {
            return None;
        }
        let (owned, port) = (temporary(name), free_port());
        let main = owned.path().join("fpm.conf");
        let text = format!(
            "[global]\npid = {0}/fpm.pid\nerror_log = {0}/fpm.log\n\n[www]\nuser = nobody\ngroup = nogroup\nlisten = 127.0.0.1:{port}\nlisten.backlog = 5\nping.path = /ping\n{pool}",
            owned.path().display()
        );
        fs::write(&main, text).unwrap();
        let mut command = Command::new(PHP_FPM);
        command.args([if background { "-D" } else { "-F" }, "-y"]).arg(&main);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if background {
            let _ = child.wait();
        }
        let mut fpm = Self { owned, port, pid: 0, ticks: 0, child, background };
        let workers = if pool.contains("ondemand") { 0 } else { 2 };
        until("php-fpm starts its workers", || fpm.master() != 0 && fpm.workers() == workers);
        fpm.pid = fpm.master();
        fpm.ticks = start_ticks(fpm.pid);
        Some(fpm)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.owned.path()
    }

    pub(crate) fn main(&self) -> PathBuf {
        self.dir().join("fpm.conf")
    }

    fn master(&self) -> u32 {
        let written = fs::read_to_string(self.dir().join("fpm.pid")).ok().and_then(|text| text.trim().parse().ok());
        written.unwrap_or(0)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn workers(&self) -> usize {
        self.worker_pids().len()
    }

    pub(crate) fn worker_pids(&self) -> Vec<u32> {
        children_of(self.master())
    }

    pub(crate) fn change(&self, setting: ServerSetting, from: &str, to: &str, activation: Activation) -> Change {
        change(ServerKind::PhpFpm, self.pid, self.ticks, &self.main(), setting, (from, to), activation)
    }
}

impl Drop for PhpFpm {
    fn drop(&mut self) {
        let master = self.master();
        kill(master);
        if !self.background {
            let _ = self.child.wait();
        }
        until("php-fpm ends", || !Path::new(&format!("/proc/{master}")).exists());
    }
}

/// A private file system of 128 KiB. Dropping it removes it.
pub(crate) struct Disk(TempDir);

impl Disk {
    pub(crate) fn mount(name: &str) -> Option<Self> {
        let dir = temporary(name);
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=128k,mode=0755", "tmpfs"]).arg(dir.path()).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            println!("skipped: a file system cannot be mounted here (needs CAP_SYS_ADMIN)");
            return None;
        }
        Some(Self(dir))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn fill(&self) {
        let filler = self.path().join("filler");
        for size in [4096, 1] {
            while fs::OpenOptions::new().create(true).append(true).open(&filler).and_then(|mut file| file.write_all(&vec![0; size])).is_ok()
            {
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}
