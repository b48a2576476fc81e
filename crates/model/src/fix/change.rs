//! Change intents: what a remedy would change, without saying how it is done. `remedy` carries them out.

use serde::{Deserialize, Serialize};

use crate::observation::NetnsId;

/// Name of the network namespace of process 1.
pub const HOST_NETNS: &str = "host";

/// One change to one setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Change {
    /// A kernel parameter (sysctl(8)).
    Sysctl {
        /// Dotted name, "net.netfilter.nf_conntrack_max".
        key: String,
        /// The namespace in which it is set. Host-only keys name the host's namespace.
        netns: NetnsId,
        /// That namespace's name in the report ("host" for the namespace of process 1).
        netns_name: String,
        /// The value found when the change was proposed.
        from: String,
        /// The value to set.
        to: String,
    },
    /// A limit of a cgroup (cgroups(7)). It takes effect as soon as it is written. It ends with the cgroup, and the cgroup's manager may overwrite it.
    Cgroup {
        /// Its directory: "/sys/fs/cgroup/cpu/docker/ab", "/sys/fs/cgroup/system.slice/nginx.service".
        dir: String,
        /// The file in it: "cpu.cfs_quota_us", "cpu.max".
        file: String,
        /// The value found when the change was proposed.
        from: String,
        /// The value to set.
        to: String,
    },
    /// The cores on which a process and its descendants may run (sched_setaffinity(2)): all threads have the same. It ends with the processes.
    Affinity {
        /// The process.
        pid: u32,
        /// When it started, in clock ticks since boot. With the pid it identifies the process (`/proc/PID/stat`, field 22).
        start_ticks: u64,
        /// Its name in the report: "nginx (process 4711)".
        process: String,
        /// The cores found when the change was proposed, as the kernel lists them: "0-3,6".
        from: String,
        /// The cores to set, in the same form.
        to: String,
    },
    /// One setting in the configuration of a running server.
    Server {
        /// Its program.
        server: ServerKind,
        /// Its master process.
        pid: u32,
        /// When the master started, in clock ticks since boot. With the pid it identifies the process (`/proc/PID/stat`, field 22).
        start_ticks: u64,
        /// Its main configuration file, as seen from the server's own root directory.
        file: String,
        /// The setting.
        setting: ServerSetting,
        /// The value found when the change was proposed ([`ServerSetting::UNSET`] if the file does not set it and it has no default).
        from: String,
        /// The value to set.
        to: String,
        /// What makes the change take effect.
        activation: Activation,
    },
}

/// A server whose configuration can be edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerKind {
    /// nginx.
    Nginx,
    /// php-fpm.
    PhpFpm,
    /// HAProxy.
    Haproxy,
}

/// A setting of a server's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "name")]
pub enum ServerSetting {
    /// `backlog=` of the `listen` directives of one address.
    NginxListenBacklog {
        /// "0.0.0.0:80", "[::]:80", "unix:/run/x.sock".
        address: String,
    },
    /// `worker_connections`.
    NginxWorkerConnections,
    /// `worker_rlimit_nofile`.
    NginxWorkerRlimitNofile,
    /// Reuse of connections to a FastCGI server: `keepalive` and `keepalive_requests` of an upstream, and `fastcgi_keep_conn on` at the places that pass
    /// requests to it. Its value is [`ServerSetting::reuse`].
    NginxFastcgiReuse {
        /// The target of the pass: the name of an `upstream`, which is edited in place, or an address ("127.0.0.1:9000", "[::1]:9000", "unix:/run/php.sock"),
        /// which gets an upstream of its own.
        pass: String,
    },
    /// The level of each `error_log` with the same target, in configuration order: "debug", "debug_http debug_event, warn".
    NginxErrorLogLevels {
        /// The target as written: "/var/log/nginx/error.log".
        to: String,
    },
    /// `ssl_session_cache` of the http block: "shared:TLS:10m".
    NginxTlsSessionCache,
    /// `pm.max_children`.
    PhpFpmMaxChildren {
        /// Name of the pool.
        pool: String,
    },
    /// `listen.backlog`.
    PhpFpmBacklog {
        /// Name of the pool.
        pool: String,
    },
    /// A second pool with the settings of this one, which listens on a unix socket. Its value is [`ServerSetting::socket`], or unset. It serves while the
    /// requests move from one address to the other.
    PhpFpmSecondPool {
        /// Name of the pool with the settings.
        pool: String,
    },
    /// Where a pool listens: an address, or [`ServerSetting::socket`]. A second pool on the same socket ends with the change.
    PhpFpmListen {
        /// Name of the pool.
        pool: String,
    },
    /// Where the requests go that nginx passes to a FastCGI server: each `fastcgi_pass` to it, and each `server` of an upstream. Its value is one of the two.
    NginxFastcgiAddress {
        /// The server's address: "127.0.0.1:9000".
        address: String,
        /// Its unix socket: "unix:/run/php/www.sock".
        socket: String,
    },
    /// A limit that a section of the configuration states, for itself or for one line of it ([`crate::observation::StatedLimit`]). Its value is a number.
    Limit {
        /// The server.
        server: ServerKind,
        /// The section, as it begins: "global", "frontend www", "backend app".
        section: String,
        /// How the line begins that has the limit among its words: "server a", "bind :80". Empty if the limit has a line of its own.
        line: String,
        /// Its name: "maxconn".
        limit: String,
    },
    /// A piece of text in its configuration, which is there exactly once, and another one in its place. Its value is the one of the two that is there. No
    /// finding changes it, only a user's plan.
    Text {
        /// The server.
        server: ServerKind,
        /// The piece.
        find: String,
        /// What takes its place.
        with: String,
    },
}

/// When a change takes effect, the least intrusive first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// Immediately.
    Live,
    /// After a reload of the server's configuration.
    Reload,
    /// After a restart of the server.
    Restart,
}

impl ServerKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::PhpFpm => "php-fpm",
            Self::Haproxy => "haproxy",
        }
    }
}

impl ServerSetting {
    /// Stands for the value of a setting that no file sets and that has no default.
    pub const UNSET: &'static str = "unset";

    /// The value of [`ServerSetting::NginxFastcgiReuse`]: the idle connections that each worker keeps, and the requests after which a connection is closed.
    pub fn reuse(connections: u32, requests: u32) -> String {
        format!("keepalive={connections} requests={requests}")
    }

    /// The value of [`ServerSetting::PhpFpmListen`] for a unix socket: its path, and the user that may connect.
    pub fn socket(path: &str, owner: &str) -> String {
        format!("unix:{path} owner={owner}")
    }

    /// The server that has this setting.
    pub fn server(&self) -> ServerKind {
        match self {
            Self::NginxListenBacklog { .. }
            | Self::NginxWorkerConnections
            | Self::NginxWorkerRlimitNofile
            | Self::NginxFastcgiReuse { .. }
            | Self::NginxFastcgiAddress { .. }
            | Self::NginxErrorLogLevels { .. }
            | Self::NginxTlsSessionCache => ServerKind::Nginx,
            Self::PhpFpmMaxChildren { .. } | Self::PhpFpmBacklog { .. } | Self::PhpFpmSecondPool { .. } | Self::PhpFpmListen { .. } => {
                ServerKind::PhpFpm
            }
            Self::Limit { server, .. } | Self::Text { server, .. } => *server,
        }
    }

    /// Its name for people: "backlog of listen 0.0.0.0:80".
    pub fn told(&self) -> String {
        match self {
            Self::NginxListenBacklog { address } => format!("backlog of listen {address}"),
            Self::NginxWorkerConnections => "worker_connections".to_owned(),
            Self::NginxWorkerRlimitNofile => "worker_rlimit_nofile".to_owned(),
            Self::NginxFastcgiReuse { pass } => format!("reuse of connections to {pass}"),
            Self::NginxErrorLogLevels { to } => format!("level of error_log {to}"),
            Self::NginxTlsSessionCache => "ssl_session_cache in http".to_owned(),
            Self::PhpFpmMaxChildren { pool } => format!("pm.max_children of [{pool}]"),
            Self::PhpFpmBacklog { pool } => format!("listen.backlog of [{pool}]"),
            Self::PhpFpmSecondPool { pool } => format!("second pool of [{pool}]"),
            Self::PhpFpmListen { pool } => format!("listen of [{pool}]"),
            Self::NginxFastcgiAddress { address, .. } => format!("address of the server at {address}"),
            Self::Limit { section, line, limit, .. } if line.is_empty() => format!("{limit} in {section}"),
            Self::Limit { section, line, limit, .. } => format!("{limit} of {line} in {section}"),
            Self::Text { find, .. } => format!("\"{find}\""),
        }
    }

    /// The line of the configuration that sets it.
    pub fn line(&self, value: &str) -> String {
        match self {
            Self::NginxListenBacklog { address } => format!("listen {address} ... backlog={value};"),
            Self::NginxWorkerConnections => format!("worker_connections {value};   # in events"),
            Self::NginxWorkerRlimitNofile => format!("worker_rlimit_nofile {value};"),
            Self::NginxFastcgiReuse { pass } => {
                // "keepalive=8 requests=5"
                let directives = value.replacen("keepalive=", "keepalive ", 1).replacen(" requests=", "; keepalive_requests ", 1);
                format!("{directives};   # in the upstream for {pass}, and fastcgi_keep_conn on; where requests are passed to it")
            }
            // "error, warn": one value per directive.
            Self::NginxErrorLogLevels { to } => {
                value.split(", ").map(|levels| format!("error_log {to} {levels};")).collect::<Vec<_>>().join(" ")
            }
            Self::NginxTlsSessionCache => format!("ssl_session_cache {value};   # in http"),
            Self::PhpFpmMaxChildren { pool } => format!("pm.max_children = {value}   ; in [{pool}]"),
            Self::PhpFpmBacklog { pool } => format!("listen.backlog = {value}   ; in [{pool}]"),
            Self::PhpFpmSecondPool { pool } => {
                format!("{}   ; in a pool of its own with the other settings of [{pool}]", listen_lines(value))
            }
            Self::PhpFpmListen { pool } => format!("{}   ; in [{pool}]", listen_lines(value)),
            Self::NginxFastcgiAddress { address, socket } => {
                let other = if value == socket { address } else { socket };
                format!("fastcgi_pass {value};   # in place of {other} (in an upstream: server {value};)")
            }
            Self::Limit { section, line, limit, .. } if line.is_empty() => format!("{limit} {value}   # in {section}"),
            Self::Limit { section, line, limit, .. } => format!("{line} ... {limit} {value}   # in {section}"),
            Self::Text { find, with, .. } => format!("\"{value}\" in place of \"{}\"", if value == find { with } else { find }),
        }
    }
}

impl Change {
    /// What `--fix` does, for people: the command for a sysctl or a cgroup, the line in its file for a server's setting. The steps by hand are the remedy's.
    pub fn command(&self) -> String {
        match self {
            Self::Sysctl { key, netns_name, to, .. } => {
                let command = format!("sysctl -w {key}={}", quoted(to));
                if netns_name == HOST_NETNS { command } else { format!("{command}   # in network namespace {}", quoted(netns_name)) }
            }
            Self::Cgroup { dir, file, to, .. } => written(dir, file, to),
            Self::Affinity { pid, to, .. } => pinned(*pid, to),
            Self::Server { file, setting, to, .. } => format!("{file}: {}", setting.line(to)),
        }
    }

    /// When it takes effect.
    pub fn activation(&self) -> Activation {
        match self {
            Self::Sysctl { .. } | Self::Cgroup { .. } | Self::Affinity { .. } => Activation::Live,
            Self::Server { activation, .. } => *activation,
        }
    }

    /// The setting's name for people, without its place: "net.core.somaxconn", "nginx worker_connections".
    pub fn key(&self) -> String {
        match self {
            Self::Sysctl { key, .. } => key.clone(),
            Self::Cgroup { file, .. } => file.clone(),
            Self::Affinity { .. } => "cores".to_owned(),
            Self::Server { server, setting, .. } => format!("{} {}", server.name(), setting.told()),
        }
    }

    /// Where the setting is, for people: a network namespace, a cgroup directory, a process or a file.
    pub fn place(&self) -> &str {
        match self {
            Self::Sysctl { netns_name, .. } => netns_name,
            Self::Cgroup { dir, .. } => dir,
            Self::Affinity { process, .. } => process,
            Self::Server { file, .. } => file,
        }
    }

    /// The value found when the change was proposed.
    pub fn from(&self) -> &str {
        match self {
            Self::Sysctl { from, .. } | Self::Cgroup { from, .. } | Self::Affinity { from, .. } | Self::Server { from, .. } => from,
        }
    }

    /// The value that it sets.
    pub fn to(&self) -> &str {
        match self {
            Self::Sysctl { to, .. } | Self::Cgroup { to, .. } | Self::Affinity { to, .. } | Self::Server { to, .. } => to,
        }
    }

    /// The same change, proposed with another old value.
    pub fn with_from(&self, value: String) -> Self {
        let mut change = self.clone();
        match &mut change {
            Self::Sysctl { from, .. } | Self::Cgroup { from, .. } | Self::Affinity { from, .. } | Self::Server { from, .. } => {
                *from = value
            }
        }
        change
    }

    /// True if both change the same setting in the same place, so that one overrides the other. A server is identified by its main file, because its master's
    /// pid may change when it reloads.
    pub fn is_same_setting(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sysctl { key, netns, .. }, Self::Sysctl { key: other_key, netns: other_netns, .. }) => {
                netns == other_netns && key == other_key
            }
            (Self::Cgroup { dir, file, .. }, Self::Cgroup { dir: other_dir, file: other_file, .. }) => {
                dir == other_dir && file == other_file
            }
            (Self::Affinity { pid, start_ticks, .. }, Self::Affinity { pid: other_pid, start_ticks: other_start, .. }) => {
                (pid, start_ticks) == (other_pid, other_start)
            }
            (Self::Server { file, setting, .. }, Self::Server { file: other_file, setting: other_setting, .. }) => {
                file == other_file && setting == other_setting
            }
            _ => false,
        }
    }
}

/// The lines of a pool that listens there: the words of [`ServerSetting::socket`], or an address.
fn listen_lines(value: &str) -> String {
    let address = |text: &str| format!("listen = {}", text.trim_start_matches("unix:"));
    match value.split_once(" owner=") {
        Some((path, owner)) => format!("{}, listen.owner = {owner}, listen.mode = 0660", address(path)),
        None => address(value),
    }
}

/// A list of cores in short form, as the kernel writes it: "0", "0-3", "0,2".
pub fn core_list(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for cpu in sorted {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let part = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

/// The cores of such a list; `None` if it is none.
pub fn listed_cores(text: &str) -> Option<Vec<u32>> {
    /// The kernel's own bound (CONFIG_NR_CPUS).
    const CORES_MAX: u32 = 8192;
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last && last < CORES_MAX).then_some(first..=last)
    };
    let parts: Option<Vec<_>> = text.split(',').map(part).collect();
    Some(parts?.into_iter().flatten().collect())
}

/// The command that writes a value to a file of a cgroup.
pub(in crate::fix) fn written(dir: &str, file: &str, value: &str) -> String {
    format!("echo {} > {}", quoted(value), quoted(&format!("{dir}/{file}")))
}

/// The command that gives a process cores (taskset(1)).
pub(in crate::fix) fn pinned(pid: u32, cores: &str) -> String {
    format!("taskset -acp {} {pid}   # and its descendants", quoted(cores))
}

/// A value quoted as one word of a shell command.
pub fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    if !value.is_empty() && value.chars().all(plain) { value.to_owned() } else { format!("'{}'", value.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sysctl_is_told_with_its_namespace() {
        let change = |netns_name: &str| Change::Sysctl {
            key: "net.ipv4.ip_local_port_range".to_owned(),
            netns: NetnsId(7),
            netns_name: netns_name.to_owned(),
            from: "20000 20050".to_owned(),
            to: "10000 65535".to_owned(),
        };
        assert_eq!(change("host").command(), "sysctl -w net.ipv4.ip_local_port_range='10000 65535'");
        assert!(change("web").command().ends_with("   # in network namespace web"));
    }

    #[test]
    fn cores_are_listed_as_the_kernel_lists_them() {
        for (cores, list) in [(vec![0], "0"), (vec![3, 1, 2, 0, 6], "0-3,6"), (vec![0, 2, 2], "0,2")] {
            assert_eq!(core_list(&cores), list);
            assert_eq!(core_list(&listed_cores(list).unwrap()), list);
        }
        for wrong in ["", "a", "1-", "3-1", "0,,1", "0-99999999", "-1", "0 1"] {
            assert_eq!(listed_cores(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_affinity_is_told_by_its_process() {
        let change = Change::Affinity {
            pid: 7,
            start_ticks: 9,
            process: "nginx (process 7)".to_owned(),
            from: "0-1".to_owned(),
            to: "1".to_owned(),
        };
        assert_eq!(change.command(), "taskset -acp 1 7   # and its descendants");
        assert_eq!((change.key().as_str(), change.place(), change.activation()), ("cores", "nginx (process 7)", Activation::Live));
        assert!(change.is_same_setting(&change.with_from("0".to_owned())));
        assert_eq!(serde_json::from_str::<Change>(&serde_json::to_string(&change).unwrap()).unwrap(), change);
    }

    #[test]
    fn a_cgroup_is_told_by_its_file() {
        let change = |dir: &str| Change::Cgroup {
            dir: dir.to_owned(),
            file: "cpu.max".to_owned(),
            from: "50000 100000".to_owned(),
            to: "100000 100000".to_owned(),
        };
        let raised = change("/sys/fs/cgroup/a b");
        assert_eq!(raised.command(), "echo '100000 100000' > '/sys/fs/cgroup/a b/cpu.max'");
        assert_eq!((raised.key().as_str(), raised.place(), raised.activation()), ("cpu.max", "/sys/fs/cgroup/a b", Activation::Live));
        assert!(raised.is_same_setting(&change("/sys/fs/cgroup/a b").with_from("max 100000".to_owned())));
        assert!(!raised.is_same_setting(&change("/sys/fs/cgroup/b")));
        let json = serde_json::to_string(&raised).unwrap();
        assert_eq!(serde_json::from_str::<Change>(&json).unwrap(), raised);
    }

    #[test]
    fn a_server_is_told_by_its_line() {
        let setting = ServerSetting::PhpFpmMaxChildren { pool: "www".to_owned() };
        let change = |pid, setting: &ServerSetting, activation| Change::Server {
            server: setting.server(),
            pid,
            start_ticks: 1,
            file: "/etc/x.conf".to_owned(),
            setting: setting.clone(),
            from: "5".to_owned(),
            to: "20".to_owned(),
            activation,
        };
        let raised = change(7, &setting, Activation::Reload);
        assert_eq!(raised.command(), "/etc/x.conf: pm.max_children = 20   ; in [www]");
        assert_eq!(raised.key(), "php-fpm pm.max_children of [www]");
        assert!(raised.is_same_setting(&change(8, &setting, Activation::Reload)), "a reload may change the pid");
        assert!(!raised.is_same_setting(&change(7, &ServerSetting::PhpFpmBacklog { pool: "www".to_owned() }, Activation::Live)));
        let json = serde_json::to_string(&raised).unwrap();
        assert_eq!(serde_json::from_str::<Change>(&json).unwrap(), raised);
        let levels = ServerSetting::NginxErrorLogLevels { to: "/e.log".to_owned() };
        assert_eq!(levels.line("error, warn"), "error_log /e.log error; error_log /e.log warn;");
        let listen = ServerSetting::PhpFpmListen { pool: "www".to_owned() };
        let socket = ServerSetting::socket("/run/x.sock", "web");
        let lines = "listen = /run/x.sock, listen.owner = web, listen.mode = 0660   ; in [www]";
        assert_eq!((listen.line(&socket).as_str(), listen.line("9000").as_str()), (lines, "listen = 9000   ; in [www]"));
        assert_eq!(ServerSetting::NginxTlsSessionCache.line("shared:a:1m"), "ssl_session_cache shared:a:1m;   # in http");
    }
}
