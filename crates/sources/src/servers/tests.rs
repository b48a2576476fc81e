//! Both sources on trees with a master, its configuration and its logs: complete, missing and damaged.

mod live;
mod reload;
mod rights;
mod tail;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use chokepoint_model::observation::{ListenerAddress, LogEvent, Observation, ServerConfig};
use chokepoint_model::series::SeriesState;
use chokepoint_recording::{Entry, Outcome, Scope};
use proptest::prelude::*;

use super::config::{SERVER_CONFIG, parsed};
use super::follow::SERVER_LOG;
use crate::root::Root;
use crate::table::{Notes, Phase, ReadContext, Source};

const MAIN: &str = "/etc/nginx/nginx.conf";
const NGINX: &str = "worker_processes 3;\nevents { worker_connections 64; }\nhttp {\n  include conf.d/*.conf;\n}\n";
const SITE: &str = "log_format timed '$status $request_time $upstream_response_time';\n\
    upstream php { server 127.0.0.1:9000; server unix:/run/php.sock; keepalive 8; keepalive_requests 20; }\n\
    limit_req_zone $binary_remote_addr zone=z:1m rate=30r/m;\n\
    server {\n  listen 80 backlog=10;\n  listen [::]:80;\n  access_log /var/log/nginx/a.log timed;\n  error_log /var/log/nginx/e.log;\n\
    location / { fastcgi_pass php; fastcgi_keep_conn on; limit_req zone=z burst=5; }\n\
    location /app/ { proxy_pass http://10.0.0.7:8080/; }\n}\n";

struct Host {
    tree: tempfile::TempDir,
    notes: Notes,
}

impl Host {
    fn new(comm: &str, cmdline: &str) -> Self {
        let host = Self { tree: tempfile::tempdir().unwrap(), notes: Notes::default() };
        let process = host.tree.path().join("proc/42");
        std::fs::create_dir_all(process.join("root")).unwrap();
        std::fs::create_dir_all(process.join("fd")).unwrap();
        std::fs::write(process.join("comm"), format!("{comm}\n")).unwrap();
        std::fs::write(process.join("stat"), format!("42 ({comm}) S 1 1 1")).unwrap();
        host.run_by(rustix::process::geteuid().as_raw());
        std::fs::write(process.join("cmdline"), cmdline).unwrap();
        host
    }

    /// Sets the user of the master.
    fn run_by(&self, uid: u32) {
        let status = format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t{uid}\t{uid}\t{uid}\t{uid}\nGroups:\t\nCapEff:\t0\n");
        std::fs::write(self.tree.path().join("proc/42/status"), status).unwrap();
    }

    fn nginx() -> Self {
        let host = Self::new("nginx", "nginx: master process /usr/sbin/nginx -c /etc/nginx/nginx.conf\0\0");
        host.write(MAIN, NGINX);
        host.write("/etc/nginx/conf.d/site.conf", SITE);
        host
    }

    fn root(&self) -> Root {
        Root::new(self.tree.path())
    }

    fn at(&self, path: &str) -> PathBuf {
        self.tree.path().join("proc/42/root").join(path.trim_start_matches('/'))
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        std::fs::write(self.at(path), text).unwrap();
    }

    fn append(&self, path: &str, text: &str) {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(self.at(path)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn read(&self, source: &Source, phase: Phase) -> Vec<Entry> {
        let root = self.root();
        let scope = Scope::Process(42);
        let context = ReadContext::new(&root, scope, phase, &self.notes);
        let entry = |(item, outcome)| Entry { at_us: 5, source: source.name.to_owned(), scope, item, outcome };
        (source.read)(&context).into_iter().map(entry).collect()
    }

    fn config(&self) -> Observation {
        let mut observation = Observation::default();
        self.read(&SERVER_CONFIG, Phase::First).iter().for_each(|entry| (SERVER_CONFIG.put)(&mut observation, entry));
        observation
    }

    fn follow(&self, meanwhile: impl FnOnce()) -> Observation {
        assert_eq!(self.read(&SERVER_LOG, Phase::First), []);
        meanwhile();
        let mut observation = Observation::default();
        self.read(&SERVER_LOG, Phase::Last).iter().for_each(|entry| (SERVER_LOG.put)(&mut observation, entry));
        observation
    }
}

fn why(observation: &Observation) -> String {
    match observation.servers[&42].config.state() {
        SeriesState::Absent(lack) | SeriesState::Failed(lack, _) => lack.why.clone(),
        state => format!("{state:?}"),
    }
}

#[test]
fn nginx_is_read_with_its_includes() {
    let observation = Host::nginx().config();
    let nginx = observation.servers[&42].nginx().unwrap();
    assert_eq!((nginx.worker_processes.value, nginx.worker_processes.origin.line), (3, 1));
    assert_eq!((nginx.worker_connections.value, nginx.files.len()), (64, 2));
    let ports: Vec<String> = nginx.listens.iter().map(|listen| format!("{} {:?}", listen.address, listen.backlog)).collect();
    assert_eq!(ports, ["0.0.0.0:80 Some(10)", "[::]:80 None"]);
    assert_eq!((nginx.listens[0].origin.file.as_str(), nginx.listens[0].origin.line), ("/etc/nginx/conf.d/site.conf", 5));
    let fastcgi = nginx.passes.iter().find(|pass| pass.kind == "fastcgi").unwrap();
    assert_eq!((fastcgi.upstream.as_deref(), fastcgi.keepalive, fastcgi.reuses), (Some("php"), Some(8), true));
    assert_eq!(fastcgi.servers, [ListenerAddress::Tcp("127.0.0.1".parse().unwrap(), 9000), ListenerAddress::Unix("/run/php.sock".into())]);
    let proxy = nginx.passes.iter().find(|pass| pass.kind == "proxy").unwrap();
    assert_eq!((proxy.reuses, proxy.servers[0].to_string().as_str()), (false, "10.0.0.7:8080"));
    let limit = &nginx.limits[0];
    assert_eq!((limit.kind.as_str(), limit.rate_per_s, limit.burst, limit.status), ("limit_req", Some(0.5), 5, 503));
    assert_eq!(nginx.limits.len(), 1);
}

#[test]
fn a_configuration_without_end_is_given_up_at_the_first_bound() {
    // Each file includes all others, then many include the same.
    let host = Host::nginx();
    host.write("/etc/nginx/nginx.conf", "include /etc/nginx/many/*.conf;");
    for number in 0..1_200 {
        host.write(&format!("/etc/nginx/many/{number}.conf"), "map $uri $a { include /etc/nginx/many/*.conf; }");
    }
    let refused = |bound: &str| {
        let entries = host.read(&SERVER_CONFIG, Phase::First);
        let Outcome::Ok(text) = &entries[0].outcome else { panic!("{entries:?}") };
        let lines = String::from_utf8_lossy(text).lines().filter(|line| line.starts_with("unreadable ")).count();
        assert_eq!(lines, 1, "nothing is read, and nothing said, after the first bound");
        assert!(why(&host.config()).contains(bound), "{}", why(&host.config()));
    };
    refused("include each other in a cycle");
    host.write("/etc/nginx/nginx.conf", "include /etc/nginx/sites/*.conf;");
    for number in 0..900 {
        host.write(&format!("/etc/nginx/sites/{number}.conf"), "include /etc/nginx/common/*.conf;");
    }
    (0..12).for_each(|number| host.write(&format!("/etc/nginx/common/{number}.conf"), "tcp_nodelay on;"));
    refused("more than 10000 files are included");
}

#[test]
fn php_fpm_is_read_with_its_pools() {
    let host = Host::new("php-fpm8.2", "php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)\0");
    host.write("/etc/php/8.2/fpm/php-fpm.conf", "[global]\nprocess_control_timeout = 10s\ninclude=/etc/php/8.2/fpm/pool.d/*.conf\n");
    let pool = "[www]\nlisten = 127.0.0.1:9000\nlisten.backlog = 511\npm = dynamic\npm.max_children = 5\npm.start_servers = 2\n\
        pm.min_spare_servers = 1\npm.max_spare_servers = 3\npm.max_requests = 500\n";
    host.write("/etc/php/8.2/fpm/pool.d/www.conf", pool);
    host.write("/etc/php/8.2/fpm/pool.d/b.conf", "[b]\nlisten = 9001\npm = ondemand\npm.max_children = 7\n");
    let observation = host.config();
    let php = observation.servers[&42].php_fpm().unwrap();
    assert_eq!((php.process_control_timeout_s.value, php.pools.len()), (10, 2));
    let www = php.pools.iter().find(|pool| pool.name == "www").unwrap();
    assert_eq!((www.pm.value.as_str(), www.max_children.value, www.backlog.value, www.max_requests.value), ("dynamic", 5, 511, 500));
    assert_eq!(www.max_children.origin.line, 5);
    assert_eq!(php.pools.iter().find(|pool| pool.name == "b").unwrap().listen.to_string(), "[::]:9001");
}

#[test]
fn other_processes_have_no_configuration() {
    for (comm, cmdline) in
        [("nginx", "nginx: worker process"), ("php-fpm8.2", "php-fpm: pool www"), ("java", "java\0-jar\0"), ("nginx", "")]
    {
        let host = Host::new(comm, cmdline);
        let read = host.read(&SERVER_CONFIG, Phase::First);
        // Without a command line it may be a master, but its main file is missing.
        assert_eq!(read.is_empty(), !cmdline.is_empty(), "{comm} {cmdline}");
        assert!(host.read(&SERVER_LOG, Phase::Last).is_empty());
    }
}

#[test]
fn errors_name_their_place() {
    let host = Host::nginx();
    host.write("/etc/nginx/conf.d/site.conf", "server {\n  listen 80;\n");
    assert!(why(&host.config()).contains("/etc/nginx/conf.d/site.conf:"), "{}", why(&host.config()));
    host.write("/etc/nginx/conf.d/site.conf", "include /etc/nginx/nginx.conf;\n");
    assert!(why(&host.config()).contains("/etc/nginx/nginx.conf:4 -> /etc/nginx/conf.d/site.conf:1"), "{}", why(&host.config()));
    host.write("/etc/nginx/conf.d/site.conf", "\ninclude /none.conf;\n");
    assert!(why(&host.config()).contains("/etc/nginx/conf.d/site.conf:2: /none.conf"), "{}", why(&host.config()));
    host.write("/etc/nginx/conf.d/site.conf", &"#".repeat(2 << 20));
    assert!(why(&host.config()).contains("longer than 1048576 bytes"), "{}", why(&host.config()));
    std::fs::remove_file(host.at(MAIN)).unwrap();
    assert!(why(&host.config()).contains("/etc/nginx/nginx.conf: the main file could not be read"), "{}", why(&host.config()));
}

fn log_lines(host: &Host) {
    host.append("/var/log/nginx/a.log", "200 0.010 0.009\n200 0.020 0.001, 0.018\nnot a line\n502 0.000 -\n200 0.0");
    let crit = "2026/11/20 07:17:47 [crit] 1#1: *5 connect() to 127.0.0.1:9000 failed (99: Cannot assign requested address) while connecting to upstream\n";
    host.append("/var/log/nginx/e.log", &crit.repeat(3));
}

#[test]
fn only_new_lines_are_counted() {
    let host = Host::nginx();
    host.write("/var/log/nginx/a.log", "500 9.000 9.000\n");
    let observation = host.follow(|| log_lines(&host));
    let log = observation.servers[&42].access_logs["/var/log/nginx/a.log"].last().unwrap().clone();
    assert_eq!((log.lines, log.misfits, log.has_status), (4, 1, true));
    assert_eq!(log.status, [(200, 2), (502, 1)].into());
    assert_eq!((log.request_time_us.unwrap().max, log.upstream_time_us.unwrap().max), (20_000, 18_000));
    let server = &observation.servers[&42];
    let failed = |errno| LogEvent::ConnectFailed(Some(errno));
    assert_eq!((server.errors(&failed(99)), server.errors(&failed(11))), (3, 0));
    assert!(server.error_sample(&failed(99)).unwrap().1.contains("Cannot assign"));
}

#[test]
fn a_connection_closed_before_its_response_is_a_separate_kind() {
    let host = Host::nginx();
    let line =
        |text: &str| format!("2026/11/20 07:17:47 [error] 1#1: *5 {text}, client: 10.0.0.1, server: , request: \"GET / HTTP/1.1\"\n");
    let texts = [
        "upstream prematurely closed connection while reading response header from upstream",
        "upstream prematurely closed connection while reading upstream",
        "recv() failed (104: Connection reset by peer) while reading response header from upstream",
        "writev() failed (32: Broken pipe) while sending request to upstream",
        "recv() failed (104: Connection reset by peer) while reading upstream",
        "recv() failed (104: Connection reset by peer) while reading client request line",
    ];
    host.write("/var/log/nginx/e.log", "");
    let observation = host.follow(|| host.append("/var/log/nginx/e.log", &texts.map(line).concat()));
    let server = &observation.servers[&42];
    let events =
        [LogEvent::UpstreamClosed, LogEvent::UpstreamClosedWithinAnswer, LogEvent::UpstreamReset, LogEvent::TransferFailed(Some(104))];
    let counts = events.map(|event| server.errors(&event));
    assert_eq!(counts, [1, 1, 2, 2]);
}

const ACCESS: &str = "/var/log/nginx/a.log";

fn access_log(observation: &Observation) -> (bool, BTreeMap<u16, u64>) {
    let log = observation.servers[&42].access_logs[ACCESS].last().unwrap();
    assert_eq!((log.misfits, log.extent.skipped_bytes), (0, 0));
    (log.extent.rotated, log.status.clone())
}

/// Follows a log with an old line and a new line, which is then renamed to `to`.
fn renamed(to: &str, also: impl FnOnce(&Host)) -> (bool, BTreeMap<u16, u64>) {
    let host = Host::nginx();
    host.write(ACCESS, "200 0.001 -\n");
    std::fs::create_dir_all(host.at("/var/log/old")).unwrap();
    let observation = host.follow(|| {
        host.append(ACCESS, "200 0.002 -\n");
        std::fs::rename(host.at(ACCESS), host.at(to)).unwrap();
        also(&host);
    });
    access_log(&observation)
}

#[test]
fn a_renamed_log_is_counted_to_its_end_without_repeats() {
    let anew = |host: &Host| host.write(ACCESS, "404 0.001 -\n");
    let both = BTreeMap::from([(200, 1), (404, 1)]);
    let open = |host: &Host| {
        std::os::unix::fs::symlink(host.at("/var/log/old/a"), host.tree.path().join("proc/42/fd/7")).unwrap();
        anew(host);
    };
    assert_eq!(renamed("/var/log/old/a", open), (false, both.clone()), "the old file is open still");
    assert_eq!(renamed("/var/log/nginx/a.log.1", anew), (false, both), "the old file lies beside it");
    assert_eq!(renamed("/var/log/old/a", anew), (true, [(404, 1)].into()), "the old file is not found");
    assert_eq!(renamed("/var/log/nginx/a.log.1", |_| {}), (false, [(200, 1)].into()), "the new file is not there yet");
}

#[test]
fn a_truncated_log_is_reported_even_if_it_grew_past_its_old_size() {
    let line = |n: u32, status: u32| format!("{status} 0.{n:03} -\n");
    let lines = |status, count| -> String { (0..count).map(|n| line(n, status)).collect() };
    let counts = |before: u32, after: &str| {
        let host = Host::nginx();
        host.write(ACCESS, &lines(200, before));
        access_log(&host.follow(|| host.write(ACCESS, after)))
    };
    assert_eq!(counts(9, &lines(404, 1)), (true, [(404, 1)].into()));
    assert_eq!(counts(9, &lines(404, 9)), (true, [(404, 9)].into()), "to the same size");
    assert_eq!(counts(200, &lines(404, 300)), (true, [(404, 300)].into()), "and further");
    assert_eq!(counts(0, &lines(404, 3)), (false, [(404, 3)].into()), "it was empty");
    assert_eq!(counts(9, &(lines(200, 9) + &lines(404, 2))), (false, [(404, 2)].into()), "it goes on");
}

#[test]
fn only_the_end_of_a_very_long_log_is_read() {
    let host = Host::nginx();
    host.write("/var/log/nginx/a.log", "");
    let observation = host.follow(|| {
        let block = "200 0.001 -\n".repeat(100_000);
        (0..40).for_each(|_| host.append("/var/log/nginx/a.log", &block));
        host.append("/var/log/nginx/a.log", "503 0.001 -\n");
    });
    let log = observation.servers[&42].access_logs["/var/log/nginx/a.log"].last().unwrap();
    assert!(log.extent.skipped_bytes > 10 << 20 && log.misfits == 0, "{:?} {}", log.extent, log.misfits);
    let lines = log.gained().unwrap();
    assert!((3_999_000.0..=4_001_000.0).contains(&lines), "as many as came, from those at its end: {lines}");
    assert_eq!(log.status[&503], 1, "its end is in it");
}

#[test]
fn logs_without_status_and_logs_that_are_no_files_are_handled() {
    let host = Host::nginx();
    host.write(
        "/etc/nginx/conf.d/site.conf",
        "log_format bare '$request_time';\nserver { access_log /a.log bare; error_log /dev/none; }\n",
    );
    let observation = host.follow(|| host.write("/a.log", "0.001\n"));
    let log = observation.servers[&42].access_logs["/a.log"].last().unwrap();
    assert_eq!((log.lines, log.has_status, log.status.len()), (1, false, 0));
    assert!(matches!(observation.servers[&42].error_logs["/dev/none"].state(), SeriesState::Absent(_)));
}

#[test]
fn the_tree_of_the_captured_host_has_no_master() {
    let root = Root::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/text/tree-6.18"));
    let notes = Notes::default();
    let context = ReadContext::new(&root, Scope::Process(4242), Phase::First, &notes);
    assert_eq!((SERVER_CONFIG.read)(&context), []);
}

#[test]
fn a_text_cut_anywhere_never_panics() {
    let entries = Host::nginx().read(&SERVER_CONFIG, Phase::First);
    let Outcome::Ok(bytes) = &entries[0].outcome else { panic!("{entries:?}") };
    for end in 0..bytes.len() {
        let _ = parsed(&String::from_utf8_lossy(&bytes[..end]));
    }
    let cut = Entry { outcome: Outcome::Ok(bytes[..bytes.len() - 9].to_vec()), ..entries[0].clone() };
    let mut observation = Observation::default();
    (SERVER_CONFIG.put)(&mut observation, &cut);
    assert!(matches!(observation.servers[&42].config.state(), SeriesState::Failed(..)), "a block that does not end");
    let elsewhere = Entry { scope: Scope::Host, ..entries[0].clone() };
    (SERVER_CONFIG.put)(&mut observation, &elsewhere);
    assert_eq!(observation.unplaced.len(), 1);
    assert!(!matches!(observation.servers[&42].config.last(), Some(ServerConfig::PhpFpm(_))));
}

proptest! {
    #[test]
    fn random_texts_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), lines in "(server nginx\n|server php-fpm\n|changed 1 /x\n|# configuration file /x:\n|http \\{|\\[www\\]\n|pm=static\n|;|\\}){0,9}") {
        for text in [bytes, lines.into_bytes()] {
            for source in [&SERVER_CONFIG, &SERVER_LOG] {
                for item in ["", "access /a", "error /a"] {
                    let entry = Entry { at_us: 1, source: source.name.into(), scope: Scope::Process(1), item: item.into(), outcome: Outcome::Ok(text.clone()) };
                    (source.put)(&mut Observation::default(), &entry);
                }
            }
        }
    }
}
