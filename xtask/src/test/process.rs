//! Runs a program in its own process group, with a bound on its time and on its output, and prints a line of progress every half minute.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process_group};

/// The interval at which a program is checked for its end.
const POLL: Duration = Duration::from_millis(20);
/// The longest time without a line of progress.
const PROGRESS: Duration = Duration::from_secs(25);
/// The time a program gets to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// A program that writes more than this is killed, bytes.
const OUTPUT_BYTES_MAX: u64 = 256 << 20;
/// The part of an output that is read, bytes from its start and from its end: the results are at the end.
const READ_BYTES_MAX: u64 = 32 << 20;

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Exit {
    /// With this status.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// It was killed: it ran longer than this.
    TimedOut(Duration),
    /// It was killed: it wrote too much.
    Flooded,
    /// It could not be started, for this reason.
    NotStarted(String),
}

/// How a program ended and what it wrote: standard output and standard error in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessOutput {
    pub(crate) exit: Exit,
    pub(crate) text: String,
}

/// Runs one program at a time. Clones run programs side by side; they share the clock and end together at a signal.
#[derive(Debug, Clone)]
pub(crate) struct ProcessRunner {
    begin: Instant,
    progress_last: Instant,
    interrupted: Arc<AtomicBool>,
}

impl ProcessRunner {
    /// From now on a signal that ends this process first ends the program that it runs.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted)).context("cannot wait for signals")?;
        }
        Ok(Self { begin: Instant::now(), progress_last: Instant::now(), interrupted })
    }

    /// Runs `command` with its standard output (and its standard error too, if `with_stderr`) in the file `output`. `describe` turns what the program has
    /// written so far into a line of progress.
    ///
    /// # Errors
    /// If a signal asked this process to end, or if the file cannot be written or read.
    pub(crate) fn run(
        &mut self,
        command: &mut Command,
        output: &Path,
        with_stderr: bool,
        time_max: Duration,
        describe: &dyn Fn(&str) -> String,
    ) -> anyhow::Result<ProcessOutput> {
        let file =
            OpenOptions::new().append(true).create(true).open(output).with_context(|| format!("cannot write {}", output.display()))?;
        file.set_len(0).with_context(|| format!("cannot empty {}", output.display()))?;
        if with_stderr {
            command.stderr(file.try_clone().context("cannot share a file")?);
        }
        command.stdin(Stdio::null()).stdout(file.try_clone().context("cannot share a file")?).process_group(0);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Ok(ProcessOutput { exit: Exit::NotStarted(error.to_string()), text: String::new() }),
        };
        let exit = self.wait(&mut child, &file, time_max, &|| describe(&read(output).unwrap_or_default()))?;
        Ok(ProcessOutput { exit, text: read(output)? })
    }

    fn wait(&mut self, child: &mut Child, file: &File, time_max: Duration, describe: &dyn Fn() -> String) -> anyhow::Result<Exit> {
        let begin = Instant::now();
        loop {
            if let Some(status) = child.try_wait().context("cannot wait for a program")? {
                return Ok(status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or_default()), Exit::Code));
            }
            if self.interrupted.load(Ordering::Relaxed) {
                end(child, Signal::TERM)?;
                bail!("ended by a signal");
            }
            if begin.elapsed() >= time_max {
                end(child, Signal::KILL)?;
                return Ok(Exit::TimedOut(time_max));
            }
            if file.metadata().is_ok_and(|metadata| metadata.len() > OUTPUT_BYTES_MAX) {
                end(child, Signal::KILL)?;
                return Ok(Exit::Flooded);
            }
            if self.progress_last.elapsed() >= PROGRESS {
                self.print_progress(&describe());
            }
            std::thread::sleep(POLL);
        }
    }

    /// Prints a line with the time so far.
    pub(crate) fn print_progress(&mut self, line: &str) {
        let seconds = self.begin.elapsed().as_secs();
        println!("{:>3} min {:02} s  {line}", seconds / 60, seconds % 60);
        self.progress_last = Instant::now();
    }
}

/// Ends a program and everything that it started, and waits for it.
fn end(child: &mut Child, signal: Signal) -> anyhow::Result<()> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a program without a number")?;
    // Nobody has waited for the child yet, so its number is still its own. An error means that its group is gone already.
    let _ = kill_process_group(group, signal);
    let asked = Instant::now();
    while signal != Signal::KILL && asked.elapsed() < GRACE {
        if child.try_wait().context("cannot wait for a program")?.is_some() {
            return Ok(());
        }
        std::thread::sleep(POLL);
    }
    let _ = kill_process_group(group, Signal::KILL);
    child.wait().context("cannot wait for a program")?;
    Ok(())
}

/// The text of an output: all of it, or its start and its end.
fn read(path: &Path) -> anyhow::Result<String> {
    use std::io::{Seek, SeekFrom};
    let context = || format!("cannot read {}", path.display());
    let mut file = File::open(path).with_context(context)?;
    let length = file.metadata().with_context(context)?.len();
    let mut bytes = Vec::new();
    (&mut file).take(READ_BYTES_MAX).read_to_end(&mut bytes).with_context(context)?;
    if length > READ_BYTES_MAX {
        file.seek(SeekFrom::Start(length.saturating_sub(READ_BYTES_MAX).max(READ_BYTES_MAX))).with_context(context)?;
        bytes.push(b'\n');
        file.take(READ_BYTES_MAX).read_to_end(&mut bytes).with_context(context)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
