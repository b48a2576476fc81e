//! The load generators: how each is told to do the same thing, and what it cost.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::servers::Server;

/// How often the memory of a running generator is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A load generator on this machine.
pub(crate) struct Tool {
    pub(crate) name: String,
    kind: Kind,
    program: std::path::PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bare,
    Chokepoint,
    Wrk,
    Ab,
    Oha,
}

/// What a generator is to do.
pub(crate) struct Job<'a> {
    pub(crate) server: &'a Server,
    pub(crate) connections: u32,
    pub(crate) seconds: u32,
    pub(crate) keep_alive: bool,
}

/// What a run cost.
pub(crate) struct Ran {
    /// User and system time, seconds.
    pub(crate) cpu_s: f64,
    /// Largest resident set, bytes.
    pub(crate) rss_bytes: u64,
}

impl Tool {
    /// Those that there are, the bare client first.
    pub(crate) fn found(chokepoint: &Path, other: Option<&Path>) -> Vec<Tool> {
        let tool = |name: &str, kind, program: &Path| Tool { name: name.to_owned(), kind, program: program.to_owned() };
        let own = std::env::current_exe().ok();
        let mut all: Vec<Tool> = own.iter().map(|own| tool("bare epoll client", Kind::Bare, own)).collect();
        all.push(tool("chokepoint", Kind::Chokepoint, chokepoint));
        all.extend(other.map(|other| tool("chokepoint (other)", Kind::Chokepoint, other)));
        let path = std::env::var_os("PATH").unwrap_or_default();
        for (name, kind) in [("wrk", Kind::Wrk), ("ab", Kind::Ab), ("oha", Kind::Oha)] {
            let there = std::env::split_paths(&path).map(|directory| directory.join(name)).find(|program| program.is_file());
            all.extend(there.map(|program| tool(name, kind, &program)));
        }
        all
    }

    fn arguments(&self, job: &Job<'_>) -> Vec<String> {
        let url = format!("http://{}/", job.server.address);
        let (connections, seconds) = (job.connections.to_string(), job.seconds.to_string());
        let time = format!("{seconds}s");
        let close = !job.keep_alive;
        let words: Vec<&str> = match self.kind {
            Kind::Bare => {
                [&["bare-client", &job.server.address, &connections, &seconds][..], if close { &["--close"] } else { &[] }].concat()
            }
            Kind::Chokepoint => {
                [&["bench", "--json", "-c", &connections, "-z", &time][..], if close { &["--disable-keepalive"] } else { &[] }, &[&url]]
                    .concat()
            }
            Kind::Wrk => {
                [&["-t", "1", "-c", &connections, "-d", &time][..], if close { &["-H", "Connection: close"] } else { &[] }, &[&url]]
                    .concat()
            }
            Kind::Ab => {
                [&["-q", "-c", &connections, "-t", &seconds, "-n", "5000000"][..], if close { &[] } else { &["-k"] }, &[&url]].concat()
            }
            Kind::Oha => {
                [&["--no-tui", "-c", &connections, "-z", &time][..], if close { &["--disable-keepalive"] } else { &[] }, &[&url]].concat()
            }
        };
        words.into_iter().map(str::to_owned).collect()
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, job: &Job<'_>) -> Result<Ran> {
        let before = children_cpu_s();
        let mut command = Command::new(&self.program);
        command.args(self.arguments(job)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("{} cannot be run", self.program.display()))?;
        let mut rss_bytes = 0;
        let status = loop {
            rss_bytes = peak_rss_bytes(child.id()).unwrap_or(rss_bytes);
            match child.try_wait()? {
                Some(status) => break status,
                None => std::thread::sleep(LOOK_EVERY),
            }
        };
        ensure!(status.success(), "{} {:?} ended with {status}", self.program.display(), self.arguments(job));
        Ok(Ran { cpu_s: children_cpu_s() - before, rss_bytes })
    }
}

/// CPU time of all children that were waited for, seconds: getrusage(2).
fn children_cpu_s() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills in a rusage at the address given, and one of zeros is one as well.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Largest resident set of a process: VmHWM of /proc/PID/status (proc_pid_status(5)), which does not hold its parent's as ru_maxrss does.
fn peak_rss_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}
