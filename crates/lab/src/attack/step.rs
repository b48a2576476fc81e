//! One step of an attack: a program with its user, in the attack's host, and how it ended: status, output, time, CPU time and memory.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::document::{ATTACKER, AttackStep};
use crate::machine::spawn::{self, Placement};

const TIME_MAX: Duration = Duration::from_secs(30);
const MEMORY_MAX: u64 = 256 << 20;
/// Most bytes kept of an output.
const OUTPUT_BYTES_MAX: u64 = 8 << 20;
const POLL: Duration = Duration::from_millis(5);
/// How long a program may take to end after SIGTERM: docs promise a second, a busy machine gets more.
const TERM_WAIT: Duration = Duration::from_secs(10);
/// Programs of users are found here only: what root has in its own PATH other users may not reach.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Who runs a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Actor {
    Chokepoint,
    Root,
    Attacker,
}

/// How a step ended.
#[derive(Debug, Clone)]
pub struct StepResult {
    /// What was run.
    pub command: String,
    /// Exit status; `None` where a signal ended it.
    pub status: Option<i32>,
    /// How long it ran.
    pub seconds: f64,
    /// Its largest resident memory, bytes, as the kernel counts it (getrusage(2), ru_maxrss).
    pub memory_bytes: u64,
    /// The CPU time that it and the children that it waited for took, user and system.
    pub cpu_seconds: f64,
    /// What it wrote to both of its outputs.
    pub(super) output: String,
    /// Who ran it.
    pub(super) actor: Actor,
    /// False where it had to be killed.
    pub(super) ended: bool,
}

/// A step that runs.
pub(super) struct RunningStep {
    pid: libc::pid_t,
    command: String,
    actor: Actor,
    output: PathBuf,
    begin: Instant,
    ended: Option<(libc::c_int, libc::rusage)>,
}

/// The surroundings of a step.
pub(super) struct Ground<'g> {
    pub(super) chokepoint: &'g Path,
    pub(super) run: &'g Path,
    pub(super) netns: &'g Path,
    pub(super) pids: Vec<(String, u32)>,
}

impl Ground<'_> {
    /// Replaces the placeholders of a step's text.
    pub(super) fn expand(&self, text: &str) -> String {
        let text = text.replace("{run}", &self.run.display().to_string()).replace("{chokepoint}", &self.chokepoint.display().to_string());
        self.pids.iter().fold(text, |text, (name, pid)| text.replace(&format!("{{pid:{name}}}"), &pid.to_string()))
    }
}

impl AttackStep {
    pub(super) fn actor(&self) -> Actor {
        match (&self.chokepoint, &self.root) {
            (Some(_), _) => Actor::Chokepoint,
            (None, Some(_)) => Actor::Root,
            (None, None) => Actor::Attacker,
        }
    }

    pub(super) fn time_max(&self) -> Duration {
        self.time.map_or(TIME_MAX, |time| time.0)
    }

    pub(super) fn memory_max(&self) -> u64 {
        self.memory.map_or(MEMORY_MAX, |memory| memory.0)
    }

    /// Starts the step. Its output goes to a file that only root may read.
    pub(super) fn start(&self, n: usize, ground: &Ground<'_>) -> io::Result<RunningStep> {
        let words = [&self.chokepoint, &self.root, &self.attacker].into_iter().flatten().flatten();
        let words = words.map(|word| ground.expand(word)).collect::<Vec<_>>();
        let (program, arguments) = match self.actor() {
            Actor::Chokepoint => (ground.chokepoint.display().to_string(), &words[..]),
            _ => (words[0].clone(), &words[1..]),
        };
        let output = ground.run.join(format!("step-{n}.output"));
        let file = File::options().create_new(true).append(true).mode(0o600).open(&output)?;
        let mut command = Command::new(&program);
        command.args(arguments).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).current_dir(ground.run).env_clear();
        command.env("PATH", PATH).env("HOME", ground.run.join("home")).env("LANG", "C.UTF-8").env("PYTHONPATH", ground.run.join("lib"));
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONUNBUFFERED", "1");
        command.env("CHOKEPOINT_STATE_DIR", ground.run.join("state")).env("CHOKEPOINT_RUN_DIR", ground.run.join("labs"));
        command.envs(self.env.iter().map(|(name, value)| (name, ground.expand(value))));
        let user = (self.actor() == Actor::Attacker).then_some((ATTACKER, ATTACKER));
        spawn::place(&mut command, Placement { netns: Some(File::open(ground.netns)?), session: true, user, ..Placement::default() });
        let begin = Instant::now();
        let child = command.spawn()?;
        let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
        let shown = if self.actor() == Actor::Chokepoint { "chokepoint" } else { program.as_str() };
        let command = std::iter::once(shown).chain(arguments.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
        Ok(RunningStep { pid, command, actor: self.actor(), output, begin, ended: None })
    }
}

impl RunningStep {
    /// What it has written so far.
    pub(super) fn output(&self) -> String {
        let mut bytes = Vec::new();
        // An output that cannot be read contains nothing that is wanted, so the attack counts as broken.
        let _ = File::open(&self.output).and_then(|file| file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// True once it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        if self.ended.is_none() {
            let mut status = 0;
            // SAFETY: rusage consists of integers, for which all zero bits are a value.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: both pointers are to whole variables that outlive the call; the child is this process's own and was not waited for.
            let reaped = unsafe { libc::wait4(self.pid, &raw mut status, libc::WNOHANG, &raw mut usage) };
            if reaped == self.pid {
                self.ended = Some((status, usage));
            }
        }
        self.ended.is_some()
    }

    /// Waits until it ends, `met` is true, or the time is over. False where the time is over.
    pub(super) fn wait(&mut self, time_max: Duration, mut met: impl FnMut(&Self) -> bool) -> bool {
        let deadline = Instant::now() + time_max;
        loop {
            if self.has_ended() || met(self) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(POLL);
        }
    }

    /// Ends it where it still runs, kindly first where `kind`, and says how it ended.
    pub(super) fn finish(mut self, kind: bool) -> StepResult {
        let mut ended = self.has_ended();
        let seconds = self.begin.elapsed().as_secs_f64();
        if !ended && kind {
            self.signal(self.pid, libc::SIGTERM);
            ended = self.wait(TERM_WAIT, |_| false);
        }
        while !self.has_ended() {
            // Its whole group: it leads a session, and what it started is in it.
            self.signal(-self.pid, libc::SIGKILL);
            std::thread::sleep(POLL);
        }
        let (status, memory_kib) = self.ended.as_ref().map_or((0, 0), |(status, usage)| (*status, usage.ru_maxrss));
        let cpu_seconds = self.ended.as_ref().map_or(0.0, |(_, usage)| seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
        StepResult {
            status: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            seconds,
            memory_bytes: u64::try_from(memory_kib).unwrap_or(0) << 10,
            cpu_seconds,
            output: self.output(),
            actor: self.actor,
            command: std::mem::take(&mut self.command),
            ended,
        }
    }

    fn signal(&self, pid: libc::pid_t, signal: libc::c_int) {
        // SAFETY: kill(2) takes plain numbers. The process was not waited for, so the number is still its own, or its group's.
        unsafe { libc::kill(pid, signal) };
    }
}

fn seconds_of(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}
