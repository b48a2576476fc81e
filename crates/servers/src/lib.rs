//! Kinds of servers, a folder each and a line in [`SERVERS`]: how their processes are recognised, where their configuration begins, how they read it again and test it,
//! and which settings meet a demand.
//!
//! Pure: whoever calls brings what was read of a process. What a process says of itself (its title, its arguments) only proposes; who believes it says why.
#![forbid(unsafe_code)]

pub mod advice;
mod apache;
mod gunicorn;
mod haproxy;
mod mariadb;
mod master;
mod nginx;
mod php_fpm;
mod postgresql;
mod tomcat;
mod uwsgi;

use chokepoint_model::change::ServerKind;
use chokepoint_model::observation::Identity;

use advice::{ConfigLine, Demand, WorkerUnit};
pub use master::{ConfigurationPlace, Dialect, MasterDef, ReloadSignal, Started, absolute};

/// All that is known of a kind of server.
#[derive(Debug)]
pub struct ServerDef {
    /// Its name in reports for programs: "php-fpm".
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What serves requests.
    pub unit: WorkerUnit,
    /// The file that Debian has for these lines.
    pub file: &'static str,
    /// The documentation of the settings.
    pub source: &'static str,
    /// What is known of its master, where its configuration is read and edited.
    pub master: Option<&'static MasterDef>,
    recognise: fn(&Identity) -> bool,
    lines: fn(&Demand) -> Vec<ConfigLine>,
}

impl ServerDef {
    /// The lines that meet a demand.
    pub fn lines(&self, demand: &Demand) -> Vec<ConfigLine> {
        (self.lines)(demand)
    }
}

impl PartialEq for ServerDef {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// Every known server.
pub const SERVERS: &[&ServerDef] = &[
    &nginx::NGINX,
    &php_fpm::PHP_FPM,
    &gunicorn::GUNICORN,
    &uwsgi::UWSGI,
    &apache::APACHE,
    &haproxy::HAPROXY,
    &tomcat::TOMCAT,
    &postgresql::POSTGRESQL,
];

/// What a session of a database does, as the title of its process says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Session {
    /// It waits for its client, outside of a transaction.
    Idle,
    /// It waits for its client within a transaction, whose locks it keeps.
    Open,
    /// It works for its client.
    Busy,
    /// It waits for a lock that another transaction has: with this command, or an empty one if its name is not known.
    Waits(String),
}

/// Databases that serve each session by a process or by a thread of its own.
#[derive(Debug)]
pub struct SessionsDef {
    /// The names of the process that has the threads, or starts the other processes.
    programs: &'static [&'static str],
    /// What the title of a session's process tells. `None` for a server that serves sessions by threads.
    of_title: Option<fn(&str) -> Option<Session>>,
}

impl SessionsDef {
    /// The session of a process with this title.
    pub fn of_title(&self, title: &str) -> Option<Session> {
        self.of_title.and_then(|of_title| of_title(title))
    }

    /// True if threads of one process serve the sessions: one of them that another ends the wait of had waited for a lock that another session had.
    pub fn are_threads(&self) -> bool {
        self.of_title.is_none()
    }
}

/// What is known of the sessions of a process with this name.
pub fn sessions_of(comm: &str) -> Option<&'static SessionsDef> {
    [&postgresql::SESSIONS, &mariadb::SESSIONS].into_iter().find(|def| def.programs.contains(&comm))
}

/// The server that a process belongs to.
pub fn recognise(identity: &Identity) -> Option<&'static ServerDef> {
    SERVERS.iter().find(|def| (def.recognise)(identity)).copied()
}

/// The master of this kind.
pub fn master_of(kind: ServerKind) -> &'static MasterDef {
    // A test walks the kinds.
    masters().find(|def| def.kind == Some(kind)).unwrap_or(&nginx::MASTER)
}

/// The master whose configuration has this language.
pub fn master_with(dialect: Dialect) -> &'static MasterDef {
    // A test walks the languages.
    masters().find(|def| def.dialect == dialect).unwrap_or(&nginx::MASTER)
}

/// The kind of master whose program's file has this name. A process can choose its command line and its command name, but not the name of the file that it executes.
pub fn master_of_program(name: &str) -> Option<&'static MasterDef> {
    masters().find(|def| def.is_program(name))
}

/// The masters of all kinds whose configuration is read.
pub fn masters() -> impl Iterator<Item = &'static MasterDef> {
    SERVERS.iter().filter_map(|def| def.master)
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

    #[test]
    fn servers_are_recognised_by_program_and_class() {
        let of = |comm: &str, exe: &str, cmdline: &str| {
            let identity =
                Identity { comm: comm.to_owned(), exe: Some(exe.to_owned()), cmdline: cmdline.to_owned(), ..Identity::default() };
            recognise(&identity).map(|def| def.id)
        };
        assert_eq!(of("php-fpm8.2", "/usr/sbin/php-fpm8.2", "php-fpm: pool www"), Some("php-fpm"));
        assert_eq!(of("nginx", "/usr/sbin/nginx", "nginx: worker process"), Some("nginx"));
        assert_eq!(of("gunicorn", "/usr/bin/python3.11", "/usr/bin/python3 /usr/bin/gunicorn app:app"), Some("gunicorn"));
        assert_eq!(of("uwsgi-core", "/usr/bin/uwsgi-core", "uwsgi --ini x"), Some("uwsgi"));
        assert_eq!(of("java", "/usr/bin/java", "java -cp x org.apache.catalina.startup.Bootstrap start"), Some("tomcat"));
        assert_eq!(of("java", "/usr/bin/java", "java -jar app.jar"), None);
        assert_eq!(of("nginxer", "/usr/bin/nginxer", "nginxer"), None);
    }

    #[test]
    fn each_kind_that_can_be_edited_has_its_master() {
        for kind in [ServerKind::Nginx, ServerKind::PhpFpm] {
            assert_eq!(master_of(kind).kind, Some(kind));
        }
        for dialect in [Dialect::Nginx, Dialect::PhpFpm, Dialect::Haproxy, Dialect::Postgresql] {
            assert_eq!(master_with(dialect).dialect, dialect);
        }
    }

    #[test]
    fn a_program_is_known_by_its_files_name() {
        for (name, kind) in [
            ("nginx", Some(Dialect::Nginx)),
            ("nginx-debug", Some(Dialect::Nginx)),
            ("openresty", Some(Dialect::Nginx)),
            ("php-fpm8.2", Some(Dialect::PhpFpm)),
            ("haproxy", Some(Dialect::Haproxy)),
            ("postgres", Some(Dialect::Postgresql)),
            ("my-nginx", None),
            ("", None),
        ] {
            assert_eq!(master_of_program(name).map(|def| def.dialect), kind, "{name}");
        }
    }
}
