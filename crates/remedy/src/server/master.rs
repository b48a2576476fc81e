//! The master process of a server: found by pid, or by its main file where a reload gave it another pid, with its workers.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use chokepoint_model::change::ServerKind;
use chokepoint_model::observation::NetnsId;
use rustix::time::{ClockId, clock_gettime};

/// Process entries that are looked at: the kernel's bound on pids (pid_max, proc_sys_kernel(5)).
const PROCESSES_MAX: usize = 1 << 22;
/// How much newer than its workers a file must be for them not to have read it, seconds: file times lag by a tick of the kernel's clock.
const FILE_SLACK_S: f64 = 1.0;

/// A running master.
#[derive(Debug, Clone)]
pub(super) struct Master {
    pub(super) kind: ServerKind,
    pub(super) pid: u32,
    /// Its arguments, or php-fpm's main file.
    title: String,
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

impl Master {
    /// The process with this pid and start time, else the one that runs with this main file. Nothing where there is none; the error is a clause.
    pub(super) fn find(kind: ServerKind, pid: u32, start_ticks: u64, main: &str) -> Result<Option<Self>, String> {
        if stat(pid).is_some_and(|(_, start)| start == start_ticks)
            && let Some(master) = Self::of(kind, pid)
        {
            let other = master.main().filter(|own| own != main);
            return other.map_or(Ok(Some(master)), |own| Err(format!("process {pid} runs with {own} and not with {main}")));
        }
        let mut found: Vec<Self> = processes().filter_map(|pid| Self::of(kind, pid)).filter(|master| master.runs_with(main)).collect();
        match found.len() {
            0 | 1 => Ok(found.pop()),
            count => Err(format!("{count} {} run with {main}: which of them is meant is not known", kind.name())),
        }
    }

    fn of(kind: ServerKind, pid: u32) -> Option<Self> {
        let line = command_line(pid)?;
        let marker = match kind {
            ServerKind::Nginx => "nginx: master process",
            ServerKind::PhpFpm => "php-fpm: master process",
        };
        Some(Self { kind, pid, title: line.strip_prefix(marker)?.trim().to_owned() })
    }

    /// Its main file, where its title tells.
    fn main(&self) -> Option<String> {
        match self.kind {
            // "php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)"
            ServerKind::PhpFpm => self.title.strip_prefix('(')?.strip_suffix(')').map(str::to_owned),
            ServerKind::Nginx => self.argument("-c").filter(|file| file.starts_with('/')),
        }
    }

    /// The argument behind an option of nginx, up to the next option.
    pub(super) fn argument(&self, option: &str) -> Option<String> {
        let padded = format!(" {} ", self.title);
        let rest = padded.split_once(&format!(" {option} "))?.1;
        let ends = ["-c", "-p", "-g", "-e", "-q", "-t", "-s"].iter().filter_map(|next| rest.find(&format!(" {next} ")));
        let value = &rest[..ends.min().unwrap_or(rest.len())];
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// A name for a file is worth something only where it names the same file here and there.
    fn runs_with(&self, main: &str) -> bool {
        self.main().is_none_or(|own| own == main) && self.sees_our(Path::new(main))
    }

    /// True where a path is the same file for the master and for us: it is in no image of its own.
    pub(super) fn sees_our(&self, path: &Path) -> bool {
        let identity = |path: &Path| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
        let Ok(below) = path.strip_prefix("/") else { return false };
        let theirs = identity(&Path::new("/proc").join(self.pid.to_string()).join("root").join(below));
        theirs.is_some() && theirs == identity(path)
    }

    /// Its network namespace.
    pub(super) fn netns(&self) -> Option<NetnsId> {
        fs::metadata(format!("/proc/{}/ns/net", self.pid)).ok().map(|meta| NetnsId(meta.ino()))
    }

    /// Its workers: for nginx those that take connections, without its cache's helpers and those that are shutting down.
    pub(super) fn workers(&self) -> Vec<Worker> {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid));
        let pids: Vec<u32> = match children {
            Ok(list) => list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
            Err(_) => processes().filter(|pid| stat(*pid).is_some_and(|(parent, _)| parent == self.pid)).collect(),
        };
        let worker = |pid: u32| {
            let (title, (parent, start_ticks)) = (command_line(pid)?, stat(pid)?);
            let is_worker = match self.kind {
                ServerKind::Nginx => title == "nginx: worker process",
                ServerKind::PhpFpm => title.starts_with("php-fpm: pool "),
            };
            (is_worker && parent == self.pid).then_some(Worker { pid, start_ticks, title })
        };
        pids.into_iter().filter_map(worker).collect()
    }

    /// True where a file is newer than all workers: they did not read it.
    pub(super) fn is_older_than(&self, path: &Path) -> bool {
        let Some(newest) = self.workers().iter().map(|worker| worker.start_ticks).max() else { return false };
        let Ok(meta) = fs::metadata(path) else { return false };
        let modified_s = meta.mtime() as f64 + meta.mtime_nsec() as f64 / 1e9;
        let since_boot_s = |clock| {
            let now = clock_gettime(clock);
            now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
        };
        let booted_s = since_boot_s(ClockId::Realtime) - since_boot_s(ClockId::Boottime);
        modified_s > booted_s + newest as f64 / ticks_per_second() as f64 + FILE_SLACK_S
    }
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

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().take(PROCESSES_MAX).flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Parent and start time (proc_pid_stat(5), fields 4 and 22).
pub(super) fn stat(pid: u32) -> Option<(u32, u64)> {
    parse_stat(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
}

fn parse_stat(text: &str) -> Option<(u32, u64)> {
    // The command's name may hold anything, brackets and blanks too.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    Some((parent, fields.nth(17)?.parse().ok()?))
}

/// Arguments joined by blanks; nothing for kernel threads and processes that ended.
fn command_line(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok().filter(|bytes| !bytes.is_empty())?;
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn master(kind: ServerKind, title: &str) -> Master {
        Master { kind, pid: 1, title: title.to_owned() }
    }

    #[test]
    fn titles_tell_the_main_file() {
        let fpm = master(ServerKind::PhpFpm, "(/etc/php/8.2/fpm/php-fpm.conf)");
        assert_eq!(fpm.main().as_deref(), Some("/etc/php/8.2/fpm/php-fpm.conf"));
        let nginx = master(ServerKind::Nginx, "/usr/sbin/nginx -c /etc/x y.conf -g daemon on; master_process on; -p /srv/");
        assert_eq!(nginx.main().as_deref(), Some("/etc/x y.conf"));
        assert_eq!(nginx.argument("-g").as_deref(), Some("daemon on; master_process on;"));
        assert_eq!(nginx.argument("-p").as_deref(), Some("/srv/"));
        assert_eq!(master(ServerKind::Nginx, "nginx").main(), None);
        assert_eq!(master(ServerKind::PhpFpm, "(").main(), None);
    }

    #[test]
    fn a_stat_line_is_read_whatever_the_name_holds() {
        let text = "7 (a) b) S 3 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 1 2";
        assert_eq!(parse_stat(text), Some((3, 4242)));
        for at in 0..text.len() {
            let _ = parse_stat(&text[..at]);
        }
        let (_, own) = stat(std::process::id()).unwrap();
        assert!(own <= now_ticks());
    }
}
