//! Runs one program at a time, in a process group of its own, for a bounded time and with a bounded output, and tells every half minute what it does.

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

/// How often it is looked whether the program has ended.
const POLL: Duration = Duration::from_millis(20);
/// How often what is done is told.
const PROGRESS: Duration = Duration::from_secs(30);
/// How long a program may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);
/// A program that writes more than this is ended, bytes.
const OUTPUT_BYTES_MAX: u64 = 256 << 20;
/// What is read of an output, bytes from its start and from its end: the results are at its end.
const READ_BYTES_MAX: u64 = 32 << 20;

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Exit {
    /// By itself, with this status.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// It was ended: it took longer than it may.
    TimedOut(Duration),
    /// It was ended: it wrote more than it may.
    Flooded,
    /// It could not be started, for this reason.
    NotStarted(String),
}

/// How a program ended and what it wrote, standard output and standard error as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) exit: Exit,
    pub(crate) text: String,
}

/// What runs programs, one at a time.
#[derive(Debug)]
pub(crate) struct Processes {
    begin: Instant,
    told: Instant,
    interrupted: Arc<AtomicBool>,
}

impl Processes {
    /// From now on a signal that ends this process ends the program that it runs first.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted)).context("cannot wait for signals")?;
        }
        Ok(Self { begin: Instant::now(), told: Instant::now(), interrupted })
    }

    /// Runs `command` with its standard output (and its standard error too, where `both`) in the file `output`. `doing` says what it has done so far,
    /// from what it has written.
    ///
    /// # Errors
    /// Where a signal asked to end, or the file cannot be written or read.
    pub(crate) fn run(
        &mut self,
        command: &mut Command,
        output: &Path,
        both: bool,
        bound: Duration,
        doing: &dyn Fn(&str) -> String,
    ) -> anyhow::Result<Ran> {
        let file =
            OpenOptions::new().append(true).create(true).open(output).with_context(|| format!("cannot write {}", output.display()))?;
        file.set_len(0).with_context(|| format!("cannot empty {}", output.display()))?;
        if both {
            command.stderr(file.try_clone().context("cannot share a file")?);
        }
        command.stdin(Stdio::null()).stdout(file.try_clone().context("cannot share a file")?).process_group(0);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Ok(Ran { exit: Exit::NotStarted(error.to_string()), text: String::new() }),
        };
        let exit = self.wait(&mut child, &file, bound, &|| doing(&read(output).unwrap_or_default()))?;
        Ok(Ran { exit, text: read(output)? })
    }

    fn wait(&mut self, child: &mut Child, file: &File, bound: Duration, doing: &dyn Fn() -> String) -> anyhow::Result<Exit> {
        let begin = Instant::now();
        loop {
            if let Some(status) = child.try_wait().context("cannot wait for a program")? {
                return Ok(status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or_default()), Exit::Code));
            }
            if self.interrupted.load(Ordering::Relaxed) {
                end(child, Signal::TERM)?;
                bail!("ended by a signal");
            }
            if begin.elapsed() >= bound {
                end(child, Signal::KILL)?;
                return Ok(Exit::TimedOut(bound));
            }
            if file.metadata().is_ok_and(|metadata| metadata.len() > OUTPUT_BYTES_MAX) {
                end(child, Signal::KILL)?;
                return Ok(Exit::Flooded);
            }
            if self.told.elapsed() >= PROGRESS {
                self.tell(&doing());
            }
            std::thread::sleep(POLL);
        }
    }

    /// Prints a line with the minutes so far.
    pub(crate) fn tell(&mut self, line: &str) {
        let seconds = self.begin.elapsed().as_secs();
        println!("{:>3} min {:02} s  {line}", seconds / 60, seconds % 60);
        self.told = Instant::now();
    }
}

/// Ends a program with all that it started, and waits for it.
fn end(child: &mut Child, signal: Signal) -> anyhow::Result<()> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a program without a number")?;
    // The child is not waited for yet, so that its number is still its own. Its group may be gone already: then there is nothing to end.
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
