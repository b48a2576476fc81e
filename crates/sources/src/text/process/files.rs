//! Open file descriptors of one process and which of them are sockets, from the links in `/proc/PID/fd`.

use std::fmt::Write;
use std::mem::MaybeUninit;

use chokepoint_model::observation::{Observation, OpenFiles};
use chokepoint_recording::{Entry, Outcome};
use rustix::fs::{RawDir, readlinkat_raw};
use rustix::io::Errno;

use super::stat::read_while_alive;
use crate::root::{Root, outcome_of};
use crate::scope::put_process;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine};
use crate::text::facts;

const NAME: &str = "process_files";
/// The directory belongs to the process's user (CAP_DAC_READ_SEARCH opens it). Its links need the right to trace the process (proc_pid_fd(5)).
const NEEDS: &str = "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";
/// Most descriptors whose links are read: about 1 us each. All descriptors are counted.
const LINKS_MAX: usize = 65_536;
/// Most descriptors to count: far above the default of `fs.nr_open` (1,048,576).
const COUNT_MAX: u32 = 1 << 24;
/// Buffer for names of one system call.
const NAMES_BYTES: usize = 32 << 10;
/// Buffer for a link's target: enough for "socket:[18446744073709551615]". Longer targets are no sockets.
pub(crate) const TARGET_BYTES: usize = 64;
/// A usual line "socket INODE".
const LINE_BYTES: usize = 16;

/// At both ends for each process: `count`, the number of open descriptors; `sockets`, how many of the first 65,536 are sockets; and `socket` for each
/// socket's inode.
pub(crate) const PROCESS_FILES: Source =
    Source { name: NAME, scope: ScopeKind::Process, cadence: Cadence::Ends, needs: Some(NEEDS), read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid() else { return Vec::new() };
    only_item(read_while_alive(context.root, NAME, pid, |_, _| read_files(context.root, pid)))
}

/// Reads the facts of a process.
pub(crate) fn read_files(root: &Root, pid: u32) -> Result<Outcome, Outcome> {
    let lack = |error: std::io::Error| outcome_of(&error, Some(NEEDS));
    // Links are read relative to the directory: paths from the root would double the cost for a server with thousands of connections.
    let directory = root.open(&format!("proc/{pid}/fd")).map_err(lack)?;
    let mut names = [MaybeUninit::uninit(); NAMES_BYTES];
    let mut names = RawDir::new(&directory, &mut names);
    let mut count = 0u32;
    let mut links = 0;
    let mut sockets = Vec::new();
    while let Some(entry) = names.next() {
        let entry = entry.map_err(|error| lack(error.into()))?;
        let name = entry.file_name();
        if name.to_bytes().starts_with(b".") {
            continue; // The directory itself and its parent.
        }
        if count == COUNT_MAX {
            return Err(Outcome::Failed(format!("more than {COUNT_MAX} descriptors"), None));
        }
        count += 1;
        if links == LINKS_MAX {
            continue;
        }
        links += 1;
        match readlinkat_raw(&directory, name, &mut [MaybeUninit::uninit(); TARGET_BYTES]) {
            Ok((target, _)) => sockets.extend(std::str::from_utf8(target).ok().and_then(socket_inode)),
            // Closed since the directory was read.
            Err(Errno::NOENT) => count -= 1,
            Err(error) => return Err(lack(error.into())),
        }
    }
    let mut text = format!("count {count}\nsockets {}\n", sockets.len());
    text.reserve(sockets.len() * LINE_BYTES);
    for inode in sockets {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "socket {inode}");
    }
    Ok(Outcome::Ok(text.into_bytes()))
}

/// The inode in "socket:[123]" (proc_pid_fd(5)).
pub(crate) fn socket_inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Parses the facts. There must be as many inodes as `sockets` says.
pub(crate) fn parse(bytes: &[u8]) -> Result<OpenFiles, ParseError> {
    const EXPECTED: &str = "count, sockets and as many lines \"socket\"";
    let facts = facts::read(NAME, bytes)?;
    let number = |name: &str| facts::number::<u32>(NAME, &facts, name, EXPECTED);
    let mut sockets = Vec::new();
    for fact in facts.iter().filter(|fact| fact.name == "socket") {
        sockets.push(TextLine::new(NAME, fact.line).number(EXPECTED, Some(&fact.text()))?);
    }
    let (count, wanted) = (number("count")?, number("sockets")?);
    if sockets.len() != wanted as usize || wanted > count {
        return Err(TextLine::new(NAME, facts.len()).expected(EXPECTED, &format!("{} of {wanted} sockets", sockets.len())));
    }
    Ok(OpenFiles { count, sockets })
}

fn put(observation: &mut Observation, entry: &Entry) {
    put_process(observation, entry, |process| &mut process.files, parse);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_distinguished_from_other_files() {
        let tree = tempfile::tempdir().unwrap();
        let directory = tree.path().join("proc/42/fd");
        std::fs::create_dir_all(&directory).unwrap();
        for (number, target) in ["/dev/null", "socket:[123]", "pipe:[9]", "socket:[x]", "/tmp/socket:[5]"].iter().enumerate() {
            std::os::unix::fs::symlink(target, directory.join(number.to_string())).unwrap();
        }
        let Ok(Outcome::Ok(bytes)) = read_files(&Root::new(tree.path()), 42) else { panic!("not read") };
        assert_eq!(parse(&bytes), Ok(OpenFiles { count: 5, sockets: vec![123] }));
    }

    #[test]
    fn the_own_socket_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let link = std::fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&listener))).unwrap();
        let inode = socket_inode(&link.to_string_lossy()).unwrap();
        let Ok(Outcome::Ok(bytes)) = read_files(&Root::default(), std::process::id()) else { panic!("not read") };
        assert!(parse(&bytes).unwrap().sockets.contains(&inode));
    }

    #[test]
    fn missing_inodes_are_an_error() {
        assert_eq!(parse(b"count 0\nsockets 0\n"), Ok(OpenFiles::default()));
        for wrong in [
            "",
            "count 1\n",
            "count 2\nsockets 1\n",
            "count 0\nsockets 1\nsocket 5\n",
            "count 1\nsockets 1\nsocket x\n",
            "count -1\nsockets 0\n",
        ] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
