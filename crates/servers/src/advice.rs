//! Which settings meet a demand: how the workers of a server are called, in which file, and what else has to grow with them. Each kind has its lines from the server's own
//! documentation.

use chokepoint_model::harm::NOISE_SHARE;
use serde::{Deserialize, Serialize};

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
    pub(crate) fn threads(&self) -> Option<u32> {
        self.is_threaded.then(|| self.workers.div_ceil(self.processes.max(1)))
    }

    /// The queue that is needed, if it is longer than the present one, or than this default if that is unknown. Its length follows from a rate, which is not known
    /// better than two equal runs differ.
    pub(crate) fn longer_queue(&self, default: u32) -> Option<u32> {
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
    pub(crate) fn new(text: impl Into<String>, why: &'static str) -> Self {
        Self { text: text.into(), why }
    }
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

    fn texts(id: &str, demand: Demand) -> Vec<String> {
        let def = crate::SERVERS.iter().find(|def| def.id == id).unwrap();
        def.lines(&demand).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn every_kind_has_its_lines() {
        assert_eq!(texts("php-fpm", DEMAND), ["pm = static", "pm.max_children = 60", "listen.backlog = 200"]);
        assert_eq!(texts("gunicorn", DEMAND), ["workers = 60", "backlog = 200"]);
        assert_eq!(texts("uwsgi", DEMAND), ["processes = 60", "listen = 200"]);
        assert_eq!(texts("apache", DEMAND), ["ServerLimit 60", "MaxRequestWorkers 60", "ListenBacklog 200"]);
        assert_eq!(texts("tomcat", DEMAND), ["<Connector ... maxThreads=\"60\""]);
        assert_eq!(texts("haproxy", DEMAND), ["global: maxconn 260", "server ... maxconn 60"]);
        let nginx =
            ["worker_processes auto;", "worker_rlimit_nofile 576;", "events { worker_connections 512; }", "listen ... backlog=200;"];
        assert_eq!(texts("nginx", DEMAND), nginx);
    }

    #[test]
    fn nginx_is_told_only_what_has_to_change() {
        let in_force = Demand { loops_now: Some(2), connections_now: Some(4096), files_now: Some(1024), queue_now: Some(511), ..DEMAND };
        assert_eq!(texts("nginx", in_force), [""; 0], "4,096 are more than are needed");
        let one = texts("nginx", Demand { loops_now: Some(1), ..in_force });
        assert_eq!(one, ["worker_processes auto;"]);
        let more = texts("nginx", Demand { in_flight: 9_000, ..in_force });
        assert_eq!(more, ["worker_rlimit_nofile 9064;", "events { worker_connections 9000; }"]);
    }

    #[test]
    fn threads_of_apache_come_in_whole_processes() {
        let demand = Demand { is_threaded: true, queue: 10, ..DEMAND };
        assert_eq!(texts("apache", demand), ["ThreadsPerChild 25", "ServerLimit 3", "MaxRequestWorkers 75"]);
    }

    #[test]
    fn a_server_with_threads_gets_its_setting_for_threads() {
        let demand = Demand { is_threaded: true, processes: 2, workers: 7, queue: 10, ..DEMAND };
        assert_eq!(texts("gunicorn", demand), ["threads = 4"]);
        assert_eq!(texts("uwsgi", demand), ["threads = 4"]);
    }

    #[test]
    fn a_queue_that_is_long_enough_stays() {
        let short = Demand { queue: 100, queue_now: None, ..DEMAND };
        assert_eq!(texts("php-fpm", short).len(), 2);
        assert_eq!(texts("uwsgi", Demand { queue: 111, ..short }).len(), 2);
        let many = Demand { in_flight: 10_000, queue: 9_940, ..DEMAND };
        assert_eq!(texts("tomcat", many).len(), 3);
        assert!(texts("nginx", many)[2].contains("worker_connections 10000"));
    }
}
