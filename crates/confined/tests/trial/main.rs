//! A program whose readers try what no reader may. `confined-trial WHERE NAME...` tries each and prints a line: "done: ..." or "refused: ...". WHERE is
//! "here" (in this process, which has all of its rights) or "confined" (in a child).

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::process::{Command, ExitCode};
use std::time::Duration;

use chokepoint_confined::{Bounds, Format, Reader, Readers, begin};
use rustix::fs::{CWD, Mode, OFlags, openat, statat, unlinkat};
use rustix::net::{AddressFamily, SocketType, socket};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

/// Bounds that are soon reached.
const BOUNDS: Bounds = Bounds { memory_bytes: 256 << 20, cpu: Duration::from_secs(1), patience: Duration::from_secs(8) };

/// Tries what its question names.
struct Attempt;

impl Reader for Attempt {
    const NAME: &'static str = "attempt";
    type Question = (String, u32);
    type Answer = String;

    fn read((name, pid): Self::Question, files: Vec<File>) -> Result<String, String> {
        attempt(&name, pid, files).map_err(|error| error.to_string())
    }
}

/// Carries out an attempt; `pid` is a process outside.
fn attempt(name: &str, pid: u32, files: Vec<File>) -> std::io::Result<String> {
    let open = |path: &str, flags| openat(CWD, path, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o600));
    let made = format!("/tmp/confined-trial-{pid}");
    match name {
        "read" => {
            let mut text = String::new();
            files.into_iter().next().ok_or(std::io::ErrorKind::NotFound)?.read_to_string(&mut text)?;
            return Ok(text);
        }
        "open" => drop(open("/etc/passwd", OFlags::RDONLY)?),
        "look" => drop(statat(CWD, "/etc/passwd", rustix::fs::AtFlags::empty())?),
        "create" => {
            drop(open(&made, OFlags::WRONLY | OFlags::CREATE)?);
            unlinkat(CWD, &made, rustix::fs::AtFlags::empty())?;
        }
        "write" => files.into_iter().next().ok_or(std::io::ErrorKind::NotFound)?.write_all(b"written")?,
        "tcp" => drop(socket(AddressFamily::INET, SocketType::STREAM, None)?),
        "udp" => drop(socket(AddressFamily::INET6, SocketType::DGRAM, None)?),
        "unix" => drop(socket(AddressFamily::UNIX, SocketType::STREAM, None)?),
        "start" => drop(Command::new("/bin/true").spawn()?.wait()),
        "execute" => return Err(std::os::unix::process::CommandExt::exec(Command::new("/bin/echo").arg("done: executed"))),
        "thread" => drop(std::thread::Builder::new().spawn(|| {})?.join()),
        "signal" => rustix::process::test_kill_process(rustix::process::Pid::from_raw(pid as i32).ok_or(std::io::ErrorKind::NotFound)?)?,
        "root" => rustix::thread::set_thread_res_uid(
            rustix::thread::Uid::from_raw(0),
            rustix::thread::Uid::from_raw(0),
            rustix::thread::Uid::from_raw(0),
        )?,
        "trace" | "memory-of-another" | "inherited" | "code" => return raw(name, pid),
        "memory" => exhaust(),
        "time" => spin(),
        "sleep" => std::thread::park(),
        "panic" => panic!("a reader's own fault"),
        _ => return Err(std::io::Error::other(format!("there is no attempt {name}"))),
    }
    Ok(name.to_owned())
}

/// Attempts that no safe function makes.
fn raw(name: &str, pid: u32) -> std::io::Result<String> {
    let (mut bytes, pid) = ([0_u8; 8], pid as libc::pid_t);
    let own = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the calls write at most 8 bytes into the array, which lives through them, and the others take numbers; a page of memory that was mapped is left to
    // the end of the process.
    let result = unsafe {
        match name {
            "trace" => libc::ptrace(libc::PTRACE_SEIZE, pid, 0_usize, 0_usize),
            // The first page of the stack's mapping is not known: an address that is not mapped gives EFAULT to those who may read.
            "memory-of-another" => match libc::process_vm_readv(pid, &raw const own, 1, &raw const own, 1, 0) {
                -1 if *libc::__errno_location() == libc::EFAULT => 0,
                result => result as libc::c_long,
            },
            "inherited" => libc::read(INHERITED, own.iov_base, own.iov_len) as libc::c_long,
            _ => {
                let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
                let page = libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
                if page == libc::MAP_FAILED { -1 } else { 0 }
            }
        }
    };
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(name.to_owned()) }
}

/// Attempts to reach another process.
const REACHING: [&str; 3] = ["signal", "trace", "memory-of-another"];
/// A descriptor that whoever starts this program leaves open.
const INHERITED: i32 = 77;

fn exhaust() {
    let mut all = Vec::new();
    loop {
        all.push(black_box(vec![1_u8; 1 << 20]));
    }
}

fn spin() {
    let mut sum = 0_u64;
    while black_box(true) {
        sum = black_box(sum.wrapping_add(1));
    }
}

/// Makes calls fail as on a kernel that does not have them, for this process and its children.
fn pretend_without(calls: &[libc::c_long]) {
    let rules = calls.iter().map(|number| (*number, Vec::new())).collect();
    let missing = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let architecture = TargetArch::try_from(std::env::consts::ARCH).expect("an architecture with seccomp");
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, missing, architecture).expect("a filter");
    let filter: BpfProgram = filter.try_into().expect("a program");
    apply_filter(&filter).expect("it can be installed");
}

fn main() -> ExitCode {
    const FORMATS: &[Format] = &[Format::of::<Attempt>()];
    if let Some(status) = begin(FORMATS) {
        return status;
    }
    let mut arguments = std::env::args().skip(1);
    let place = arguments.next().unwrap_or_default();
    match place.as_str() {
        "without-landlock" => pretend_without(&[libc::SYS_landlock_create_ruleset]),
        "without-seccomp" => pretend_without(&[libc::SYS_seccomp]),
        _ => {}
    }
    let mut readers = Readers::within(BOUNDS);
    for name in arguments {
        // A process of this user's, for those who try to reach one.
        let mut outside = REACHING.contains(&name.as_str()).then(|| Command::new("/bin/sleep").arg("60").spawn().expect("sleep(1)"));
        let file = rustix::fs::memfd_create("content", rustix::fs::MemfdFlags::CLOEXEC);
        let mut file = File::from(file.expect("a file in memory"));
        file.write_all(b"content").and_then(|()| std::io::Seek::rewind(&mut file)).expect("it is ours");
        let question = (name.clone(), outside.as_ref().map_or(std::process::id(), std::process::Child::id));
        let answer = match (place.as_str(), name.as_str()) {
            (_, "held") => readers.held().map(|held| format!("{held:?}")).map_err(|error| error.to_string()),
            ("here", _) => Attempt::read(question, vec![file]),
            _ => readers.read::<Attempt>(question, vec![file]).map_err(|error| error.to_string()),
        };
        match answer {
            Ok(answer) => println!("done: {answer}"),
            Err(why) => println!("refused: {why}"),
        }
        if let Some(outside) = &mut outside {
            outside.kill().and_then(|()| outside.wait()).expect("it is ours");
        }
    }
    ExitCode::SUCCESS
}
