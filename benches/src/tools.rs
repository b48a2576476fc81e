//! The load generators: the command line of each, and what its run cost.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::servers::Server;

/// How often the memory of a running generator is read.
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

/// What a generator has to do.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) server: &'a Server,
    pub(crate) connections: u32,
    pub(crate) seconds: u32,
    pub(crate) keep_alive: bool,
    /// TLS; nothing for plain HTTP.
    pub(crate) tls: Option<Sessions>,
}

/// What becomes of TLS sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sessions {
    /// Each connection has a full handshake.
    Full,
    /// A connection resumes an earlier session, if the generator can.
    Resumed,
}

/// The cost of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ran {
    /// User and system time, seconds (wait4(2)).
    pub(crate) cpu_s: f64,
    /// Largest resident set, bytes.
    pub(crate) rss_bytes: u64,
}

impl Tool {
    /// The available generators, the bare client first.
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

    /// Whether this is the bare client.
    pub(crate) fn is_bare(&self) -> bool {
        self.kind == Kind::Bare
    }

    /// Whether this is the generator that the others are held against over TLS, which the bare client does not speak.
    pub(crate) fn is_tls_reference(&self) -> bool {
        self.kind == Kind::Wrk
    }

    /// Whether this is a build of chokepoint.
    pub(crate) fn is_own(&self) -> bool {
        self.kind == Kind::Chokepoint
    }

    fn arguments(&self, job: &Job<'_>) -> Vec<String> {
        let url = match (job.tls, &job.server.secure) {
            (Some(_), Some(secure)) => format!("https://{secure}/"),
            _ => format!("http://{}/", job.server.address),
        };
        let trust: &[&str] = match job.tls {
            None => &[],
            Some(Sessions::Resumed) => &["--insecure"],
            Some(Sessions::Full) => &["--insecure", "--tls-no-resumption"],
        };
        let (connections, seconds) = (job.connections.to_string(), job.seconds.to_string());
        let time = format!("{seconds}s");
        let close = !job.keep_alive;
        let words: Vec<&str> = match self.kind {
            Kind::Bare => {
                [&["bare-client", &job.server.address, &connections, &seconds][..], if close { &["--close"] } else { &[] }].concat()
            }
            Kind::Chokepoint => {
                let close: &[&str] = if close { &["--disable-keepalive"] } else { &[] };
                [&["bench", "--json", "-c", &connections, "-z", &time][..], trust, close, &[&url]].concat()
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

    /// Starts it; its output is discarded.
    pub(crate) fn start(&self, job: &Job<'_>) -> Result<Running> {
        let arguments = self.arguments(job);
        let mut command = Command::new(&self.program);
        command.args(&arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().with_context(|| format!("{} cannot be run", self.program.display()))?;
        Ok(Running { child, what: format!("{} {arguments:?}", self.program.display()), rss_bytes: 0, ran: None })
    }
}

/// A running generator.
pub(crate) struct Running {
    child: Child,
    what: String,
    rss_bytes: u64,
    ran: Option<Ran>,
}

impl Running {
    /// Waits until it has ended, and reads its memory meanwhile.
    pub(crate) fn wait(mut self) -> Result<Ran> {
        loop {
            if let Some(ran) = self.look()? {
                return Ok(ran);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until both have ended.
    pub(crate) fn wait_both(mut self, mut other: Running) -> Result<(Ran, Ran)> {
        loop {
            if let (Some(one), Some(other)) = (self.look()?, other.look()?) {
                return Ok((one, other));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Its cost, once it has ended.
    fn look(&mut self) -> Result<Option<Ran>> {
        if self.ran.is_some() {
            return Ok(self.ran);
        }
        self.rss_bytes = peak_rss_bytes(self.child.id()).unwrap_or(self.rss_bytes);
        let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
        // SAFETY: the kernel fills in both if the child has ended; zeros are a valid rusage. The child was not waited for before, nor again: `ran` is set.
        let (ended, usage) = unsafe {
            let ended = libc::wait4(self.child.id() as libc::pid_t, &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
            (ended, usage.assume_init())
        };
        if ended == 0 {
            return Ok(None);
        }
        ensure!(ended > 0, "{}: {}", self.what, std::io::Error::last_os_error());
        ensure!(status == 0, "{} ended with {}", self.what, ExitStatus::from_raw(status));
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        // Includes the very end, unless this process was larger when it started the child: then its size is reported (getrusage(2)).
        let (whole, own) = (usage.ru_maxrss as u64 * 1024, peak_rss_bytes(std::process::id()));
        let rss_bytes = if own.is_some_and(|own| whole > own) { whole } else { self.rss_bytes };
        self.ran = Some(Ran { cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime), rss_bytes });
        Ok(self.ran)
    }
}

/// Largest resident set of a process so far: VmHWM of /proc/PID/status (proc_pid_status(5)), which excludes its parent's, unlike ru_maxrss.
fn peak_rss_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}
