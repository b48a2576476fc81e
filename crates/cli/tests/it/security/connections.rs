//! Nothing but the host under test is ever connected to: each verb, with the configurations of all recordings, and with one that names whatever it can.
//!
//! Live beside others: real servers in a network namespace of the test; the kernel tells each address that is connected to (seccomp), speed does not matter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use chokepoint_recording::Outcome;

use crate::harness::{Chokepoint, Netns, Running, all_recordings, has_programs, ran, repository, wait_until};

/// The user of whoever has the hostile configuration, and holds the addresses that configurations name.
const OTHER_USER: u32 = 65_531;
/// Exit status of `connections.py` where the kernel cannot tell.
const UNTOLD: i32 = 77;
/// Runs at a time.
const AT_ONCE: usize = 4;

/// The lines that a configuration of nginx gets for each address that it names: a status page there.
const NGINX_PARTS: &str = "
    server { listen ADDRESS; location = /chosen { stub_status; } }
";
/// A configuration that names other hosts, other programs and names in every way that it can.
const HOSTILE: &str = "
error_log syslog:server=10.9.9.7:514;
events { worker_connections 64; }
http {
    access_log syslog:server=10.9.9.7:514 combined;
    resolver 10.9.9.53;
    upstream named { server backend.chokepoint.test:8080; server 10.9.9.8:8080; server unix:HELD/trap.sock; }
    server {
        listen 80;
        location = /status { stub_status; }
        location /named/ { proxy_pass http://named; }
        location /name/ { proxy_pass http://other.chokepoint.test:8080; }
        location /fpm/ { fastcgi_pass 10.9.9.8:8080; }
        location /socket/ { fastcgi_pass unix:HELD/trap.sock; }
        location / { proxy_pass http://10.9.9.8:8080/chosen/; }
    }
    server { listen 10.9.9.9:80; listen unix:HELD/trap.sock; location = /chosen { stub_status; } }
}
";
/// What the hostile configuration names, for who holds it. Datagrams: port 53.
const HOSTILE_NAMES: [&str; 5] = ["10.9.9.7:514", "10.9.9.53:53", "10.9.9.8:8080", "10.9.9.9:80", "10.9.9.9:8080"];

/// The verbs that observe or load a server, and their arguments. `URL` and `AT` stand for a server's, `DIR` for the directory of the test.
const VERBS: &[&str] = &[
    "diagnose --no-profile -z 1s URL",
    "diagnose -c 2 -z 1s --bisect URL",
    "diagnose -c 4 -z 1s --no-profile --fix --yes URL",
    "undo",
    "watch --json --listen off --data-dir DIR/data -z 3s",
    "watch --json --listen off --data-dir DIR/data-of-one -z 3s URL",
    "incidents list --data-dir DIR/data",
    "where -z 2s URL",
    "bench -n 50 URL",
    "size --budget 30s --max-connections 4 URL",
    "capacity -z 1s URL",
    "profile -z 1s",
    "profile --off-cpu -z 1s",
    "tcp AT",
    "tcp --live -z 1s",
    "streams -i any -z 1s",
    "runs list",
    "experiment --preset sysctl --print-plan net.ipv4.tcp_tw_reuse=0,1",
    "explain accept-queue-full",
    "lab list",
    "help",
];

/// A configuration that a real server has on its disk: what it runs with is another, shorter one.
struct Site {
    is_nginx: bool,
    text: String,
    /// Where it comes from, for failures.
    of: String,
}

/// The addresses that a configuration names.
fn names(text: &str) -> BTreeSet<String> {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || ";={".contains(c)).filter(|word| !word.is_empty()).collect();
    let is_listen = |at: usize| at > 0 && words[at - 1] == "listen";
    let name = |(at, word): (usize, &&str)| {
        let word = word.trim_start_matches("http://").trim_start_matches("https://");
        let path = word.strip_prefix("unix:").or_else(|| Some(word).filter(|word| is_listen(at) && word.starts_with('/')));
        match (path, word.parse::<SocketAddr>(), word.parse::<u16>()) {
            (Some(path), ..) => Some(path.to_owned()),
            (_, Ok(address), _) => Some(address.to_string()),
            (.., Ok(port)) if is_listen(at) => Some(format!("127.0.0.1:{port}")),
            _ => None,
        }
    };
    words.iter().enumerate().filter_map(name).collect()
}

/// The configurations of all recordings, one for each set of addresses that they name.
fn recorded() -> Vec<Site> {
    let mut sites: BTreeMap<(bool, Vec<String>), Site> = BTreeMap::new();
    for file in all_recordings() {
        let recording = chokepoint_recording::read(&fs::read(repository(&file)).unwrap()).unwrap();
        for entry in recording.entries.iter().filter(|entry| entry.source == "server_config") {
            let Outcome::Ok(bytes) = &entry.outcome else { continue };
            let dump = String::from_utf8_lossy(bytes);
            // Nothing that HAProxy's configuration names is ever asked.
            if dump.contains("server haproxy\n") {
                continue;
            }
            // The main file stands first; a file that is missing here would make the whole unread.
            let main = dump.split("# configuration file ").nth(1).and_then(|rest| rest.split_once(":\n")).unwrap().1;
            let text: String = main.lines().filter(|line| !line.contains("include")).map(|line| format!("{line}\n")).collect();
            let is_nginx = dump.contains("server nginx\n");
            let tell = |name: &String| if name.starts_with('/') { "a socket".to_owned() } else { name.clone() };
            let named = names(&text).iter().map(tell).collect();
            sites.entry((is_nginx, named)).or_insert(Site { is_nginx, text, of: file.clone() });
        }
    }
    sites.into_values().collect()
}

impl Site {
    /// The configuration with status pages at each address that it names, and these. Unix sockets go into this directory.
    fn tempting(&self, dir: &Path) -> (String, BTreeSet<String>) {
        let mut text = self.text.clone();
        for (n, path) in names(&text).iter().filter(|name| name.starts_with('/')).enumerate() {
            text = text.replace(path.as_str(), dir.join(format!("named-{n}.sock")).to_str().unwrap());
        }
        let named = names(&text);
        for (n, name) in named.iter().enumerate() {
            let address = if name.starts_with('/') && self.is_nginx { format!("unix:{name}") } else { name.clone() };
            if self.is_nginx {
                let end = text.rfind('}').unwrap();
                text.insert_str(end, &NGINX_PARTS.replace("ADDRESS", &address));
            } else {
                let pool = format!("[more{n}]\nuser = nobody\nlisten = 127.99.0.{n}:9000\npm = static\npm.max_children = 1\n");
                text.push_str(&format!("{pool}pm.status_path = /chosen\npm.status_listen = {address}\n"));
            }
        }
        (text, named)
    }
}

/// The network namespace, in which every address is the host's own, so that nothing is refused because it is not.
struct Scene {
    netns: Netns,
    chokepoint: Chokepoint,
    running: Vec<Running>,
}

impl Scene {
    fn new() -> Option<Self> {
        let php = fpm().map_or("php-fpm8.2".to_owned(), |path| path.file_name().unwrap().to_str().unwrap().to_owned());
        if !has_programs(&["ip", "nsenter", "setpriv", "python3", "nginx", &php]) {
            return None;
        }
        let netns = Netns::add("connections")?;
        for family in ["-4", "-6"] {
            let all = if family == "-4" { "0.0.0.0/0" } else { "::/0" };
            let done = Command::new("ip").args([family, "-n", &netns.0, "route", "add", "local", all, "dev", "lo"]).status().unwrap();
            assert!(done.success(), "{all}");
        }
        let open = ["--", "sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start"];
        assert!(Command::new("nsenter").arg(format!("--net=/run/netns/{}", netns.0)).args(open).status().unwrap().success());
        let scene = Self { netns, chokepoint: Chokepoint::new(), running: Vec::new() };
        fs::create_dir(scene.held()).unwrap();
        fs::set_permissions(scene.held(), fs::Permissions::from_mode(0o777)).unwrap();
        Some(scene)
    }

    fn dir(&self) -> &Path {
        self.chokepoint.dir.path()
    }

    /// The directory of unix sockets.
    fn held(&self) -> PathBuf {
        self.dir().join("held")
    }

    /// A program in the namespace, with the mounts of the host.
    fn inside(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.netns.0)).arg("--").arg(program);
        command
    }

    /// Starts server `n` of a user at 127.1.n.1 with a configuration of its own, and then puts another into its file. Returns the target.
    fn serve(&mut self, n: usize, user: u32, is_nginx: bool, text: &str) -> String {
        let dir = self.dir().join(format!("server-{n}"));
        fs::create_dir(&dir).unwrap();
        chown(&dir, Some(user), Some(user)).unwrap();
        let file = dir.join(if is_nginx { "nginx.conf" } else { "php-fpm.conf" });
        let path = |name: &str| dir.join(name).display().to_string();
        let (at, begin) = if is_nginx {
            let at = format!("127.1.{n}.1:80");
            let logs = format!("daemon off; user nobody nogroup; worker_processes 1; pid {}; error_log {};", path("pid"), path("errors"));
            let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
            let temporary: String = kinds.map(|kind| format!("{kind}_temp_path {}; ", path(kind))).concat();
            let site = format!("http {{ access_log off; {temporary}server {{ listen {at}; return 200 ok; }} }}");
            (at, format!("{logs}\nevents {{ worker_connections 64; }}\n{site}\n"))
        } else {
            let at = format!("127.1.{n}.1:9000");
            let pool = format!("[www]\nuser = nobody\ngroup = nogroup\nlisten = {at}\npm = static\npm.max_children = 1\n");
            (at, format!("[global]\nerror_log = {}\ndaemonize = no\n{pool}", path("errors")))
        };
        fs::write(&file, begin).unwrap();
        let mut command = self.inside("setpriv");
        command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]);
        command
            .arg(if is_nginx { PathBuf::from("/usr/sbin/nginx") } else { fpm().unwrap() })
            .args([if is_nginx { "-c" } else { "--fpm-config" }, file.to_str().unwrap()]);
        let running = Running::start(&mut command).unwrap();
        let workers = format!("/proc/{0}/task/{0}/children", running.0.id());
        wait_until("a server does not start", || fs::read_to_string(&workers).is_ok_and(|workers| !workers.trim().is_empty()));
        self.running.push(running);
        fs::write(&file, text).unwrap();
        chown(&file, Some(user), Some(user)).unwrap();
        at
    }

    /// Another user's program at all of these places. Its output tells who asks there.
    fn hold(&mut self, places: &BTreeSet<String>) -> PathBuf {
        let told = self.dir().join("asked");
        let mut command = self.inside("/usr/bin/python3");
        command.arg(repository("crates/cli/tests/data/connections.py")).arg("hold").arg(OTHER_USER.to_string()).args(places);
        let out = fs::File::create(&told).unwrap();
        let child = command.stdin(Stdio::null()).stderr(out.try_clone().unwrap()).stdout(out).spawn().unwrap();
        self.running.push(Running(child));
        wait_until("nobody holds the places", || {
            let said = fs::read_to_string(&told).unwrap();
            assert!(!said.contains("Error"), "{said}");
            said.contains("ready")
        });
        told
    }

    /// Runs a verb; a sentence for each address but the target's that it connects to. Nothing where the kernel cannot tell.
    fn connections(&self, n: usize, verb: &str, at: &str) -> Option<Vec<String>> {
        let url = if at.ends_with(":80") { format!("http://{at}/") } else { format!("fcgi://{at}/index.php") };
        let words = verb.replace("DIR", self.dir().to_str().unwrap()).replace("URL", &url).replace("AT", at);
        let plain = self.chokepoint.command(&words.split(' ').collect::<Vec<_>>());
        let out = self.dir().join(format!("connections-{n}"));
        let mut command = self.inside("/usr/bin/python3");
        command.arg(repository("crates/cli/tests/data/connections.py")).arg(&out).arg(plain.get_program()).args(plain.get_args());
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
        let ran = ran(command.output().unwrap());
        if ran.status == Some(UNTOLD) {
            println!("skipped: {}", ran.stdout);
            return None;
        }
        assert!(matches!(ran.status, Some(0 | 1)), "{words}: {:?} {} {}", ran.status, ran.stdout, ran.stderr);
        let told = fs::read_to_string(&out).unwrap();
        let target = format!("tcp {at}: ");
        // Connecting a datagram socket to port 9 asks for a route and sends nothing: whoever holds port 9 hears what is sent.
        let is_route = |line: &&str| line.starts_with("udp ") && line.contains(":9: ") && line.ends_with(" connects");
        let is_of_target = |line: &&str| line.starts_with(&target) || line.starts_with(&format!("udp {at}: "));
        let others = told.lines().filter(|line| !is_of_target(line) && !is_route(line)).collect::<BTreeSet<_>>();
        let is_seen = told.lines().any(|line| line.starts_with(&target)) || !verb.contains("-c ");
        assert!(is_seen, "{words}: its own connections were not seen: {} {}", ran.stdout, ran.stderr);
        Some(others.into_iter().map(|line| format!("{words}: {line}")).collect())
    }
}

/// The program of php-fpm.
fn fpm() -> Option<PathBuf> {
    let programs = fs::read_dir("/usr/sbin").ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    programs.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("php-fpm"))).min()
}

/// The verbs of the program, as its help lists them.
fn verbs(chokepoint: &Chokepoint) -> Vec<String> {
    let help = chokepoint.run(&["help"]).stdout;
    let is_verb = |line: &&str| line.starts_with("  ") && line.as_bytes().get(2).is_some_and(u8::is_ascii_lowercase);
    let lines = help.split("Options:").next().unwrap().lines().filter(is_verb);
    lines.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn each_verb_is_tried() {
    let verbs = verbs(&Chokepoint::new());
    assert!(verbs.len() > 10, "{verbs:?}");
    for verb in verbs {
        assert!(VERBS.iter().any(|words| words.split(' ').next() == Some(&verb)), "{verb}: add it to VERBS");
    }
}

#[test]
fn nothing_but_the_target_is_connected_to() {
    let sites = recorded();
    assert!(sites.iter().any(|site| !site.is_nginx) && sites.len() >= 15, "{}", sites.len());
    let Some(mut scene) = Scene::new() else { return };
    let (mut places, mut targets) = (BTreeSet::from(["0.0.0.0:9".to_owned()]), Vec::new());
    for (n, site) in sites.iter().enumerate() {
        let (text, named) = site.tempting(&scene.held());
        // Root's own configuration says what its servers call, so `--bisect` would load that.
        let at = scene.serve(n, 0, site.is_nginx, &text);
        targets.push((site.of.as_str(), at, "diagnose --no-profile -c 2 -z 1s URL"));
        places.extend(named);
    }
    let held = scene.held().to_str().unwrap().to_owned();
    let hostile = scene.serve(sites.len(), OTHER_USER, true, &HOSTILE.replace("HELD", &held));
    places.extend(HOSTILE_NAMES.map(str::to_owned).into_iter().chain([format!("{held}/trap.sock")]));
    let heard = scene.hold(&places);
    let runs: Vec<_> = targets.into_iter().chain(VERBS.iter().map(|words| ("hostile", hostile.clone(), *words))).collect();

    let next = AtomicUsize::new(0);
    let in_turn = || {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < runs.len()));
        let run = |n: usize| {
            let (of, at, words) = &runs[n];
            Some((*of, scene.connections(n, words, at)?))
        };
        numbers.map(run).collect::<Option<Vec<_>>>()
    };
    let told: Option<Vec<_>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(in_turn)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let Some(told) = told else { return };
    let others = told.into_iter().flatten().flat_map(|(of, others)| others.into_iter().map(move |other| format!("{of}: {other}")));
    let wrong: Vec<String> = others.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let heard = fs::read_to_string(heard).unwrap();
    assert!(!heard.contains("asked at"), "{heard}");
}
