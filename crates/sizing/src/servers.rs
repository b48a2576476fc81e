//! Known servers: how their workers are called, in which file, and what else has to grow with them. A file for each, from the server's own documentation.

mod apache;
mod gunicorn;
mod haproxy;
mod nginx;
mod php_fpm;
mod tomcat;
mod uwsgi;

use chokepoint_model::harm::NOISE_SHARE;
use chokepoint_model::observation::Identity;
use serde::{Deserialize, Serialize};

/// A known server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum ServerKind {
    Nginx,
    PhpFpm,
    Gunicorn,
    Uwsgi,
    Apache,
    Haproxy,
    Tomcat,
}

/// What serves requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerUnit {
    /// Processes, each with one request at a time.
    Processes,
    /// Threads of a process, each with one request at a time.
    Threads,
    /// Event loops, each with many requests.
    Loops,
}

/// What a tier has to be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Workers, for processes and threads.
    pub workers: u32,
    /// Cores that it may run on.
    pub cores: u32,
    /// Requests in service and in the queue.
    pub in_flight: u32,
    /// Requests that may wait and still meet the objective.
    pub queue: u32,
    /// Connections that fit into its accept queue now.
    pub queue_now: Option<u32>,
    /// Workers of the tier behind it.
    pub behind: Option<u32>,
    /// True if each of its processes has several threads that serve.
    pub is_threaded: bool,
    /// True if each of its processes has more threads than any that serves alone; they may be helpers.
    pub has_threads: bool,
    /// Its processes.
    pub processes: u32,
    /// Event loops in force, if known.
    pub loops_now: Option<u32>,
    /// Connections of each in force, if known.
    pub connections_now: Option<u32>,
    /// Descriptors of each in force, if known.
    pub files_now: Option<u64>,
}

impl Demand {
    /// Threads of each process, where they serve.
    fn threads(&self) -> Option<u32> {
        self.is_threaded.then(|| self.workers.div_ceil(self.processes.max(1)))
    }

    /// The queue that is needed, if it is longer than the present one, or than this default if that is unknown. Its length follows from a rate, which is not known
    /// better than two equal runs differ.
    fn longer_queue(&self, default: u32) -> Option<u32> {
        let now = f64::from(self.queue_now.unwrap_or(default));
        (f64::from(self.queue) > (1.0 + NOISE_SHARE) * now).then_some(self.queue)
    }
}

/// A line of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigLine {
    /// The line.
    pub text: String,
    /// Id of the message that says what it is for.
    pub why: &'static str,
}

impl ConfigLine {
    fn new(text: impl Into<String>, why: &'static str) -> Self {
        Self { text: text.into(), why }
    }
}

/// All that is known of a kind of server.
#[derive(Debug)]
pub struct ServerDef {
    /// Its kind.
    pub kind: ServerKind,
    /// Its name.
    pub name: &'static str,
    /// What serves requests.
    pub unit: WorkerUnit,
    /// The file that Debian has for these lines.
    pub file: &'static str,
    /// The documentation of the settings.
    pub source: &'static str,
    recognise: fn(&Identity) -> bool,
    lines: fn(&Demand) -> Vec<ConfigLine>,
}

impl ServerDef {
    /// The lines that meet a demand.
    pub fn lines(&self, demand: &Demand) -> Vec<ConfigLine> {
        (self.lines)(demand)
    }
}

/// Every known server.
pub const SERVERS: &[ServerDef] =
    &[nginx::NGINX, php_fpm::PHP_FPM, gunicorn::GUNICORN, uwsgi::UWSGI, apache::APACHE, haproxy::HAPROXY, tomcat::TOMCAT];

impl ServerKind {
    /// Its line of the table.
    pub fn def(self) -> &'static ServerDef {
        SERVERS.iter().find(|def| def.kind == self).unwrap_or(&nginx::NGINX)
    }
}

/// The server that a process belongs to.
pub fn recognise(identity: &Identity) -> Option<ServerKind> {
    SERVERS.iter().find(|def| (def.recognise)(identity)).map(|def| def.kind)
}

/// True if the name of the process or of its executable is this one, perhaps with a version ("php-fpm8.2") or a title behind ("nginx: worker process").
fn is_program(identity: &Identity, program: &str) -> bool {
    let exe = identity.exe.as_deref().and_then(|exe| exe.rsplit('/').next()).unwrap_or_default();
    let is_it = |name: &str| {
        let rest = name.strip_prefix(program);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(|next: char| next.is_ascii_digit() || next == ':' || next == '-'))
    };
    is_it(&identity.comm) || is_it(exe)
}

/// True if a word of the command line is this program or class, perhaps with a directory.
fn runs(identity: &Identity, name: &str) -> bool {
    identity.cmdline.split_ascii_whitespace().any(|word| word.rsplit('/').next() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND: Demand = Demand {
        workers: 60,
        cores: 2,
        in_flight: 260,
        queue: 200,
        queue_now: Some(128),
        behind: Some(60),
        is_threaded: false,
        has_threads: false,
        processes: 1,
        loops_now: None,
        connections_now: None,
        files_now: None,
    };

    fn texts(kind: ServerKind, demand: Demand) -> Vec<String> {
        kind.def().lines(&demand).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn every_kind_has_its_lines() {
        use ServerKind::*;
        assert_eq!(texts(PhpFpm, DEMAND), ["pm = static", "pm.max_children = 60", "listen.backlog = 200"]);
        assert_eq!(texts(Gunicorn, DEMAND), ["workers = 60", "backlog = 200"]);
        assert_eq!(texts(Uwsgi, DEMAND), ["processes = 60", "listen = 200"]);
        assert_eq!(texts(Apache, DEMAND), ["ServerLimit 60", "MaxRequestWorkers 60", "ListenBacklog 200"]);
        assert_eq!(texts(Tomcat, DEMAND), ["<Connector ... maxThreads=\"60\""]);
        assert_eq!(texts(Haproxy, DEMAND), ["global: maxconn 260", "server ... maxconn 60"]);
        let nginx =
            ["worker_processes auto;", "worker_rlimit_nofile 576;", "events { worker_connections 512; }", "listen ... backlog=200;"];
        assert_eq!(texts(Nginx, DEMAND), nginx);
    }

    #[test]
    fn nginx_is_told_only_what_has_to_change() {
        let in_force = Demand { loops_now: Some(2), connections_now: Some(4096), files_now: Some(1024), queue_now: Some(511), ..DEMAND };
        assert_eq!(texts(ServerKind::Nginx, in_force), [""; 0], "4,096 are more than are needed");
        let one = texts(ServerKind::Nginx, Demand { loops_now: Some(1), ..in_force });
        assert_eq!(one, ["worker_processes auto;"]);
        let more = texts(ServerKind::Nginx, Demand { in_flight: 9_000, ..in_force });
        assert_eq!(more, ["worker_rlimit_nofile 9064;", "events { worker_connections 9000; }"]);
    }

    #[test]
    fn threads_of_apache_come_in_whole_processes() {
        let demand = Demand { is_threaded: true, queue: 10, ..DEMAND };
        assert_eq!(texts(ServerKind::Apache, demand), ["ThreadsPerChild 25", "ServerLimit 3", "MaxRequestWorkers 75"]);
    }

    #[test]
    fn a_server_with_threads_gets_its_setting_for_threads() {
        let demand = Demand { is_threaded: true, processes: 2, workers: 7, queue: 10, ..DEMAND };
        assert_eq!(texts(ServerKind::Gunicorn, demand), ["threads = 4"]);
        assert_eq!(texts(ServerKind::Uwsgi, demand), ["threads = 4"]);
    }

    #[test]
    fn a_queue_that_is_long_enough_stays() {
        let short = Demand { queue: 100, queue_now: None, ..DEMAND };
        assert_eq!(texts(ServerKind::PhpFpm, short).len(), 2);
        assert_eq!(texts(ServerKind::Uwsgi, Demand { queue: 111, ..short }).len(), 2);
        let many = Demand { in_flight: 10_000, queue: 9_940, ..DEMAND };
        assert_eq!(texts(ServerKind::Tomcat, many).len(), 3);
        assert!(texts(ServerKind::Nginx, many)[2].contains("worker_connections 10000"));
    }

    #[test]
    fn servers_are_recognised_by_program_and_class() {
        let of = |comm: &str, exe: &str, cmdline: &str| {
            recognise(&Identity { comm: comm.to_owned(), exe: Some(exe.to_owned()), cmdline: cmdline.to_owned(), ..Identity::default() })
        };
        assert_eq!(of("php-fpm8.2", "/usr/sbin/php-fpm8.2", "php-fpm: pool www"), Some(ServerKind::PhpFpm));
        assert_eq!(of("nginx", "/usr/sbin/nginx", "nginx: worker process"), Some(ServerKind::Nginx));
        assert_eq!(of("gunicorn", "/usr/bin/python3.11", "/usr/bin/python3 /usr/bin/gunicorn app:app"), Some(ServerKind::Gunicorn));
        assert_eq!(of("uwsgi-core", "/usr/bin/uwsgi-core", "uwsgi --ini x"), Some(ServerKind::Uwsgi));
        assert_eq!(of("java", "/usr/bin/java", "java -cp x org.apache.catalina.startup.Bootstrap start"), Some(ServerKind::Tomcat));
        assert_eq!(of("java", "/usr/bin/java", "java -jar app.jar"), None);
        assert_eq!(of("nginxer", "/usr/bin/nginxer", "nginxer"), None);
    }
}
