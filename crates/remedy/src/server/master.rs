//! The master process of a server and its workers. It is found by pid, or by its main file after a reload has given it another pid.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chokepoint_config::glob;
use chokepoint_foreign::{FileId, Identity};
use chokepoint_model::change::ServerKind;
use chokepoint_model::observation::NetnsId;
use chokepoint_servers::{ConfigurationPlace, MasterDef, Started, master_of, master_of_program};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

use super::known_master::{KnownMaster, path_of};
use crate::process::{processes, stat};

/// Where procfs is mounted.
const PROC: &str = "/proc";

/// How much newer than the workers a file must be to be unread, seconds: start times are in ticks of 10 ms, rounded down.
const FILE_SLACK_S: f64 = 0.02;
/// Most bytes read of the list of a process's children: as many as there may be processes (kernel.pid_max), of seven digits.
const CHILDREN_BYTES_MAX: usize = 32 << 20;
/// Most bytes read of a command line: the longest single argument that execve(2) takes is 128 KiB (MAX_ARG_STRLEN), and a server's has some hundreds.
const TITLE_BYTES_MAX: usize = 128 << 10;

/// A running master.
#[derive(Debug, Clone)]
pub(super) struct Master {
    /// Its kind.
    pub(super) kind: ServerKind,
    /// What is known of it.
    pub(super) def: &'static MasterDef,
    /// Its identity.
    pub(super) identity: Identity,
    /// What its title says behind "master process": its arguments, or php-fpm's main file. The process sets it itself, so it is read only after the process is identified.
    pub(super) title: String,
    /// Where its configuration begins, where its command line says so and no title ([`MasterDef::is_apart`]).
    place: Option<ConfigurationPlace>,
}

/// A worker of a master.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub(super) pid: u32,
    /// Clock ticks since boot.
    pub(super) start_ticks: u64,
    /// Its command line: "nginx: worker process", "php-fpm: pool www".
    pub(super) title: String,
}

impl Worker {
    /// A pidfd of the process. The error is a clause.
    pub(super) fn hold(&self) -> Result<OwnedFd, String> {
        let held = open(self.pid)?;
        let is_same = stat(self.pid).is_some_and(|(_, start_ticks)| start_ticks == self.start_ticks);
        if is_same { Ok(held) } else { Err(format!("process {} has been replaced by another one", self.pid)) }
    }
}

/// A pidfd of the process with this pid. The error is a clause.
fn open(pid: u32) -> Result<OwnedFd, String> {
    let known = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("it has no such process")?;
    pidfd_open(known, PidfdFlags::empty()).map_err(|error| format!("process {pid} cannot be opened (pidfd_open(2): {error})"))
}

impl Master {
    /// The process with this pid and start time, whoever's it is, else the own user's with this main file, which matches `known` where that is given. Nothing
    /// where there is none. The error is a clause.
    ///
    /// The process must execute a server's program in the own mount and user namespaces: a command line proves nothing.
    pub(super) fn find(
        kind: ServerKind,
        pid: u32,
        start_ticks: u64,
        main: &str,
        known: Option<&KnownMaster>,
    ) -> Result<Option<Self>, String> {
        if let Ok(identity) = Identity::of(Path::new(PROC), pid)
            && identity.start_ticks == start_ticks
        {
            match (Self::of(kind, identity), known) {
                (Ok(master), _) => {
                    let other = master.main().filter(|own| own != main);
                    return other.map_or(Ok(Some(master)), |own| Err(format!("process {pid} runs with {own} instead of {main}")));
                }
                (Err(why), None) => return Err(why),
                // The server that was changed executes another program by now: it is no more.
                (Err(_), Some(_)) => {}
            }
        }
        let is_candidate = |master: &Self| master.of_another_user().is_none() && known.is_none_or(|known| known.matches(&master.identity));
        let masters = processes().filter(|pid| executes(*pid, kind)).filter_map(|pid| {
            let identity = Identity::of(Path::new(PROC), pid).ok()?;
            Self::of(kind, identity).ok()
        });
        let mut found: Vec<Self> =
            masters.filter(|master| is_candidate(master) && master.is_elsewhere().is_none() && master.runs_with(main)).collect();
        // A just forked worker still has its master's title.
        let pids: Vec<u32> = found.iter().map(Self::pid).collect();
        found.retain(|master| stat(master.pid()).is_none_or(|(parent, _)| !pids.contains(&parent)));
        match found.len() {
            0 | 1 => Ok(found.pop()),
            count => Err(format!("{count} {} run with {main}, so it is not known which of them is meant", kind.name())),
        }
    }

    /// A process as a master. The error says why it is none.
    fn of(kind: ServerKind, identity: Identity) -> Result<Self, String> {
        let pid = identity.pid;
        let executable = path_of(&identity);
        let def = master_of(kind);
        if program_kind(&executable) != Some(kind) {
            return Err(format!("process {pid} is not a process of {}: it executes {executable}", kind.name()));
        }
        if def.is_apart {
            return Self::apart(kind, def, identity);
        }
        let line = command_line(pid).unwrap_or_default();
        match def.of_master(&line) {
            Some(title) => Ok(Self { kind, def, identity, title: title.to_owned(), place: None }),
            None => Err(format!("process {pid} is not a master process of {}", kind.name())),
        }
    }

    /// A process as a master whose workers alone listen and look like it. The error says why it is none.
    fn apart(kind: ServerKind, def: &'static MasterDef, identity: Identity) -> Result<Self, String> {
        let pid = identity.pid;
        let is_worker = stat(pid).is_some_and(|(parent, _)| executes(parent, kind));
        if is_worker {
            return Err(format!("process {pid} is a worker of {}, and not its master", kind.name()));
        }
        let words = def.words(&arguments(pid).unwrap_or_default());
        let exists = |path: &str| path.strip_suffix("/.").map_or_else(|| Path::new(path).exists(), |path| Path::new(path).is_dir());
        let started = Started { words: &words, exe: &path_of(&identity), built_in: &[], exists: &exists };
        // It keeps the directory in which it was started.
        let started_in = fs::read_link(format!("{PROC}/{pid}/cwd")).map_err(|error| format!("the directory of process {pid}: {error}"))?;
        let place = def.locate(&started, &started_in.to_string_lossy());
        let master = Self { kind, def, identity, title: String::new(), place: Some(place) };
        if master.workers().is_empty() {
            return Err(format!(
                "process {pid} has no workers: {} runs without a master process, so that it must be restarted",
                kind.name()
            ));
        }
        Ok(master)
    }

    pub(super) fn pid(&self) -> u32 {
        self.identity.pid
    }

    /// Files and patterns that it was given behind its main file.
    pub(super) fn also(&self) -> &[String] {
        self.place.as_ref().map_or(&[], |place| &place.also)
    }

    /// Its workers, where only these listen.
    pub(super) fn listening_workers(&self) -> Vec<Worker> {
        if self.def.is_apart { self.workers() } else { Vec::new() }
    }

    /// A clause where the server sees other files or users than this program.
    pub(super) fn is_elsewhere(&self) -> Option<&'static str> {
        let Ok(own) = Identity::of(Path::new(PROC), std::process::id()) else { return Some("chokepoint's own namespaces cannot be read") };
        let root = |pid: u32| fs::metadata(format!("{PROC}/{pid}/root")).ok().map(|meta| FileId::of(&meta));
        if self.identity.namespaces.user != own.namespaces.user {
            return Some("the server is in another user namespace than chokepoint");
        }
        if self.identity.namespaces.mount != own.namespaces.mount || root(self.pid()).is_none() || root(self.pid()) != root(own.pid) {
            return Some("the server has another file system than chokepoint");
        }
        None
    }

    /// A clause where the server is another user's. Root makes changes for its own servers, everybody else for theirs: what a process of another user says of
    /// itself is no reason to edit a file, to execute its program, or to signal it.
    pub(super) fn of_another_user(&self) -> Option<String> {
        let (own, uid) = (rustix::process::geteuid().as_raw(), self.identity.uid());
        let is_own = self.identity.uids.iter().all(|uid| *uid == own);
        (!is_own).then(|| {
            format!(
                "the server runs as user {uid}, and user {own} changes only its own servers: run chokepoint as that user (sudo -u '#{uid}')"
            )
        })
    }

    /// True while the process is the inspected one.
    pub(super) fn is_same(&self) -> bool {
        Identity::of(Path::new(PROC), self.pid()).is_ok_and(|now| {
            let (then, now) = (&self.identity, &now);
            (then.start_ticks, then.executable, then.uids, then.namespaces) == (now.start_ticks, now.executable, now.uids, now.namespaces)
        })
    }

    /// A pidfd of the process, which never refers to a later process with the same pid.
    pub(super) fn hold(&self) -> Result<OwnedFd, String> {
        let held = open(self.pid())?;
        if self.is_same() { Ok(held) } else { Err(format!("process {} has been replaced by another one", self.pid())) }
    }

    /// Its main file, if its title names it.
    fn main(&self) -> Option<String> {
        if let Some(place) = &self.place {
            return Some(place.main.clone());
        }
        let named = self.def.main_in_title(&self.title)?;
        if !self.def.main_is_of_start {
            return Some(named);
        }
        // It keeps the directory in which it was started.
        let started_in = || fs::read_link(format!("{PROC}/{}/cwd", self.pid())).ok();
        let whole = if Path::new(&named).is_absolute() { PathBuf::from(named) } else { started_in()?.join(named) };
        whole.components().collect::<PathBuf>().into_os_string().into_string().ok()
    }

    /// True where it runs with this main file, and the path names the same file for both.
    fn runs_with(&self, main: &str) -> bool {
        self.main().is_none_or(|own| own == main) && self.sees_our(Path::new(place_of(main)))
    }

    /// True where a path is the same file for the master and for this process.
    fn sees_our(&self, path: &Path) -> bool {
        let identity = |path: &Path| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
        let Ok(below) = path.strip_prefix("/") else { return false };
        let theirs = identity(&Path::new(PROC).join(self.pid().to_string()).join("root").join(below));
        theirs.is_some() && theirs == identity(path)
    }

    /// Its network namespace.
    pub(super) fn netns(&self) -> NetnsId {
        NetnsId(self.identity.namespaces.network)
    }

    fn children(&self) -> Vec<u32> {
        let own = self.pid();
        let children = chokepoint_foreign::read_kernel(format!("{PROC}/{own}/task/{own}/children"), CHILDREN_BYTES_MAX);
        match children {
            Ok(list) => list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
            Err(_) => processes().filter(|pid| stat(*pid).is_some_and(|(parent, _)| parent == own)).collect(),
        }
    }

    /// True while workers finish their last requests, where their titles say so.
    pub(super) fn has_leaving_workers(&self) -> bool {
        self.children().into_iter().any(|pid| command_line(pid).is_some_and(|title| self.def.is_leaving(&title)))
    }

    /// Its workers that take requests.
    pub(super) fn workers(&self) -> Vec<Worker> {
        let own = self.pid();
        let worker = |pid: u32| {
            let (title, (parent, start_ticks)) = (command_line(pid)?, stat(pid)?);
            let is_worker = if self.def.is_apart { executes(pid, self.kind) } else { self.def.is_worker(&title) };
            (is_worker && parent == own).then_some(Worker { pid, start_ticks, title })
        };
        self.children().into_iter().filter_map(worker).collect()
    }

    /// True where a file is newer than all workers, which have not read it.
    pub(super) fn is_older_than(&self, path: &Path) -> bool {
        let Some(newest) = self.workers().iter().map(|worker| worker.start_ticks).max() else { return false };
        fs::metadata(path).is_ok_and(|meta| is_newer_than(changed_s(&meta), since_1970_s(newest)))
    }
}

/// The main file, or the directory whose files a server was given in its place as a pattern.
pub(super) fn place_of(main: &str) -> &str {
    main.rsplit_once('/').filter(|(_, name)| glob::is_pattern(name)).map_or(main, |(directory, _)| directory)
}

/// The latest change of a file, its mode or its name, seconds since 1970. The modification time can be set back, the status change time cannot.
pub(super) fn changed_s(meta: &fs::Metadata) -> f64 {
    let seconds = |whole: i64, rest: i64| whole as f64 + rest as f64 / 1e9;
    seconds(meta.mtime(), meta.mtime_nsec()).max(seconds(meta.ctime(), meta.ctime_nsec()))
}

/// True where a change came after a reading at this time, both in seconds since 1970.
pub(super) fn is_newer_than(changed_s: f64, read_s: f64) -> bool {
    changed_s > read_s + FILE_SLACK_S
}

/// A process's start, seconds since 1970.
pub(super) fn since_1970_s(start_ticks: u64) -> f64 {
    let now_s = |clock| {
        let now = clock_gettime(clock);
        now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
    };
    now_s(ClockId::Realtime) - now_s(ClockId::Boottime) + start_ticks as f64 / ticks_per_second() as f64
}

/// The kind of server whose program a file is.
fn program_kind(path: &str) -> Option<ServerKind> {
    master_of_program(path.rsplit('/').next().unwrap_or_default()).and_then(|def| def.kind)
}

/// A quick check before the full identification.
fn executes(pid: u32, kind: ServerKind) -> bool {
    let path = fs::read_link(format!("{PROC}/{pid}/exe")).unwrap_or_default();
    program_kind(path.to_string_lossy().trim_end_matches(" (deleted)")) == Some(kind)
}

fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second().max(1)
}

/// Clock ticks since boot.
pub(super) fn now_ticks() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let (seconds, nanoseconds) = (u64::try_from(now.tv_sec).unwrap_or(0), u64::try_from(now.tv_nsec).unwrap_or(0));
    seconds * ticks_per_second() + nanoseconds * ticks_per_second() / 1_000_000_000
}

/// Arguments joined by blanks; nothing for kernel threads and processes that ended.
fn command_line(pid: u32) -> Option<String> {
    Some(arguments(pid)?.replace('\0', " ").trim().to_owned())
}

/// Arguments, each with a zero behind it.
fn arguments(pid: u32) -> Option<String> {
    let bytes = chokepoint_foreign::command_line(Path::new(PROC), pid, TITLE_BYTES_MAX).ok()?;
    // A longer one is no server's.
    let bytes = Some(bytes).filter(|bytes| (1..TITLE_BYTES_MAX).contains(&bytes.len()))?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Identity {
        Identity::of(Path::new(PROC), std::process::id()).unwrap()
    }

    #[test]
    fn a_relative_main_file_is_taken_from_the_masters_directory() {
        let main = |kind, title: &str| Master { kind, def: master_of(kind), identity: own(), title: title.to_owned(), place: None }.main();
        assert_eq!(main(ServerKind::PhpFpm, "(/etc/php/8.2/fpm/php-fpm.conf)").as_deref(), Some("/etc/php/8.2/fpm/php-fpm.conf"));
        let here = std::env::current_dir().unwrap();
        assert_eq!(main(ServerKind::PhpFpm, "(./srv/fpm.conf)").map(PathBuf::from), Some(here.join("srv/fpm.conf")));
        assert_eq!(main(ServerKind::Nginx, "nginx -c n.conf"), None, "from its prefix, which is not known");
        assert_eq!(main(ServerKind::Nginx, "nginx -c /etc/n.conf").as_deref(), Some("/etc/n.conf"));
    }

    #[test]
    fn a_process_is_identified_by_its_executable() {
        let why = Master::of(ServerKind::Nginx, own()).unwrap_err();
        assert!(why.contains("is not a process of nginx: it executes /"), "{why}");
        for (path, kind) in [
            ("/usr/sbin/nginx", Some(ServerKind::Nginx)),
            ("/usr/sbin/nginx-debug", Some(ServerKind::Nginx)),
            ("/usr/sbin/php-fpm8.2", Some(ServerKind::PhpFpm)),
            ("/nginx/sh", None),
            ("/bin/my-nginx", None),
        ] {
            assert_eq!(program_kind(path), kind, "{path}");
        }
        let master =
            Master { kind: ServerKind::Nginx, def: master_of(ServerKind::Nginx), identity: own(), title: String::new(), place: None };
        assert!(master.is_same() && master.is_elsewhere().is_none() && master.hold().is_ok());
        let later = Master { identity: Identity { start_ticks: 1, ..own() }, ..master };
        assert!(!later.is_same() && later.hold().is_err());
    }

    #[test]
    fn a_modification_time_that_was_set_back_does_not_hide_an_edit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_modified(std::time::UNIX_EPOCH).unwrap();
        let meta = file.as_file().metadata().unwrap();
        let (_, own) = stat(std::process::id()).unwrap();
        assert!(own <= now_ticks());
        assert_eq!(meta.mtime(), 0);
        assert!(changed_s(&meta) > since_1970_s(own));
    }
}
