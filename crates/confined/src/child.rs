//! The parent's side: starts a child when the first file needs one, asks it within bounds, and tells what ended it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::frame::{self, Header};
use crate::rights::Held;
use crate::serve::ANSWERED;
use crate::{ARGUMENT, FORMATS, Reader};

/// The program that runs, even if its file was replaced or removed (proc_pid_exe(5)).
const OWN_PROGRAM: &str = "/proc/self/exe";
/// Most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
/// Time from the end of a connection to that of its process: the kernel closes descriptors first, and frees memory afterwards.
const ENDING: Duration = Duration::from_secs(2);

/// What a child may use before it is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Address space.
    pub memory_bytes: u64,
    /// CPU time of all its files together, in whole seconds.
    pub cpu: Duration,
    /// Time for one file. A busy host needs more than the CPU time.
    pub patience: Duration,
}

impl Default for Bounds {
    /// Several times what the largest allowed files take: readers have bounds of their own, and these are for the day on which one of them fails.
    fn default() -> Self {
        Self { memory_bytes: 2 << 30, cpu: Duration::from_secs(120), patience: Duration::from_secs(600) }
    }
}

impl Bounds {
    fn arguments(&self) -> [String; 2] {
        [self.memory_bytes.to_string(), self.cpu.as_secs().to_string()]
    }

    /// The bounds that the parent wrote into the arguments; the usual ones for those that are malformed.
    pub(crate) fn from_arguments(mut arguments: impl Iterator<Item = OsString>) -> Self {
        let mut next = || arguments.next().and_then(|argument| argument.to_str()?.parse::<u64>().ok());
        let (memory_bytes, cpu_s, usual) = (next(), next(), Self::default());
        Self { memory_bytes: memory_bytes.unwrap_or(usual.memory_bytes), cpu: cpu_s.map_or(usual.cpu, Duration::from_secs), ..usual }
    }
}

/// Why files were not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// What the reader says of them.
    #[error("{0}")]
    Refused(String),
    /// The child ended.
    #[error("its reader was ended: {0}")]
    Ended(String),
    /// The child could not be started or asked.
    #[error("its reader, a process without rights, cannot be used ({0})")]
    Unavailable(#[from] io::Error),
}

/// Reads files, one after the other, in one child if one is needed. It ends with this value.
#[derive(Debug, Default)]
pub struct Readers {
    bounds: Bounds,
    child: Option<Connection>,
}

impl Readers {
    /// Readers with other bounds than the usual ones.
    pub fn within(bounds: Bounds) -> Self {
        Self { bounds, child: None }
    }

    /// Reads files with a reader: in a child if this process has rights of root's or capabilities, and so could be led to use them; else here.
    ///
    /// # Errors
    /// The reader's own, or what ended the child. The next file gets a new one.
    pub fn read<R: Reader>(&mut self, question: R::Question, files: Vec<File>) -> Result<R::Answer, ReadError> {
        let place = FORMATS.get().and_then(|formats| formats.iter().position(|format| format.name == R::NAME));
        let Some(place) = place.filter(|_| has_rights()) else {
            return R::read(question, files).map_err(ReadError::Refused);
        };
        let question = serde_json::to_vec(&question).map_err(io::Error::from)?;
        let until = Instant::now() + self.bounds.patience;
        let child = self.child()?;
        let answered = child.ask(place as u32, &files, &question, until);
        let answer = answered.and_then(|(header, bytes)| match header.code {
            ANSWERED => Ok(Ok(serde_json::from_slice(&bytes)?)),
            _ => Ok(Err(String::from_utf8_lossy(&bytes).into_owned())),
        });
        match answer {
            Ok(answer) => answer.map_err(ReadError::Refused),
            Err(error) => Err(self.ended(&error)),
        }
    }

    /// What the child has given up. Starts one if there is none.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn held(&mut self) -> Result<Held, ReadError> {
        Ok(self.child()?.held.clone())
    }

    fn child(&mut self) -> Result<&mut Connection, ReadError> {
        let child = match self.child.take() {
            Some(child) => child,
            None => Connection::open(&self.bounds)?,
        };
        Ok(self.child.insert(child))
    }

    /// Ends a child that did not answer, and says why it did not.
    fn ended(&mut self, error: &io::Error) -> ReadError {
        let Bounds { memory_bytes, cpu, patience } = self.bounds;
        let is_late = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        let Some(mut child) = self.child.take() else { return ReadError::Ended(error.to_string()) };
        if is_late {
            return ReadError::Ended(format!("it did not answer within {} s", patience.as_secs_f64()));
        }
        let is_closed = matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset);
        if !is_closed {
            return ReadError::Ended(format!("it answered nothing that can be read ({error})"));
        }
        ReadError::Ended(match child.status() {
            Some(status) if status.signal() == Some(libc::SIGXCPU) => format!("it needed more than {} s of CPU time", cpu.as_secs()),
            Some(status) if status.signal().is_some() => {
                format!("{status}; it may have needed more than {} MiB of memory", memory_bytes >> 20)
            }
            Some(status) => status.to_string(),
            None => "it closed the connection".to_owned(),
        })
    }
}

/// True if this process may do what its caller or an ordinary user may not.
fn has_rights() -> bool {
    let is_capable = || rustix::thread::capabilities(None).map_or(true, |sets| !sets.permitted.is_empty());
    rustix::process::geteuid().is_root() || is_capable()
}

/// A child and the connection to it.
#[derive(Debug)]
struct Connection {
    process: Child,
    /// Nothing once it is closed.
    socket: Option<UnixStream>,
    held: Held,
}

impl Connection {
    /// Starts a child, and waits until it has given up its rights: no file reaches it before.
    fn open(bounds: &Bounds) -> Result<Self, ReadError> {
        let (near, far) = UnixStream::pair()?;
        let mut command = Command::new(OWN_PROGRAM);
        command.arg0("chokepoint").arg(ARGUMENT).args(bounds.arguments());
        command.current_dir("/").env_clear().stdin(OwnedFd::from(far)).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C is for the parent, which may still want an answer.
        command.process_group(0);
        let process = start(command)?;
        let mut child = Self { process, socket: Some(near), held: Held { user: false, files: false, calls: false } };
        let (_, held) = child.receive(Instant::now() + bounds.patience)?;
        child.held = serde_json::from_slice(&held).map_err(io::Error::from)?;
        Ok(child)
    }

    fn ask(&mut self, place: u32, files: &[File], question: &[u8], until: Instant) -> io::Result<(Header, Vec<u8>)> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        socket.set_write_timeout(Some(left(until)?))?;
        frame::send(socket, place, files, question)?;
        self.receive(until)
    }

    fn receive(&mut self, until: Instant) -> io::Result<(Header, Vec<u8>)> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        socket.set_read_timeout(Some(left(until)?))?;
        let (header, _) = frame::receive(socket)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if header.length > ANSWER_BYTES_MAX {
            return Err(io::Error::other(format!("{} bytes, of at most {ANSWER_BYTES_MAX}", header.length)));
        }
        let mut bytes = Vec::new();
        Within { socket, until }.take(header.length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == header.length { Ok((header, bytes)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// How a child ended that closed its connection; nothing if it goes on without one.
    fn status(&mut self) -> Option<ExitStatus> {
        self.socket = None;
        let until = Instant::now() + ENDING;
        loop {
            match self.process.try_wait() {
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(1)),
                ended => return ended.ok().flatten(),
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.socket = None;
        // It has nothing to put in order. Where it cannot be signalled, it ends because the connection is closed, or by its limit of CPU time.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The time that is left.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A connection that is read until a time.
struct Within<'a> {
    socket: &'a UnixStream,
    until: Instant,
}

impl Read for Within<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(left(self.until)?))?;
        self.socket.read(bytes)
    }
}

/// Starts a process on a thread that lasts as long as this process: the kernel ends a child with the thread that started it (PR_SET_PDEATHSIG(2const)).
fn start(command: Command) -> io::Result<Child> {
    type Order = (Command, mpsc::SyncSender<io::Result<Child>>);
    static STARTER: OnceLock<Option<mpsc::Sender<Order>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (orders, taken) = mpsc::channel::<Order>();
        let serve = move || taken.into_iter().for_each(|(mut command, reply)| drop(reply.send(command.spawn())));
        thread::Builder::new().name("readers".to_owned()).spawn(serve).ok().map(|_| orders)
    });
    let gone = || io::Error::other("the thread that starts it cannot run");
    let (reply, started) = mpsc::sync_channel(1);
    starter.as_ref().ok_or_else(gone)?.send((command, reply)).map_err(|_| gone())?;
    started.recv().map_err(|_| gone())?
}
