//! The number of open file descriptors of one process, from the size of `/proc/PID/fd`: a single system call instead of one for each link.

use std::os::unix::fs::MetadataExt;

use chokepoint_model::observation::Observation;
use chokepoint_recording::{Entry, Outcome};

use super::stat::read_alive;
use crate::root::{Root, outcome_of};
use crate::scope::put_process;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, whole};

const NAME: &str = "process_fd_count";
/// Before Linux 6.2 the directory has no size (fs/proc/fd.c, `proc_fd_getattr`).
const WHY_UNKNOWN: &str = "this kernel does not report the number of descriptors directly";

/// Four times a second for each process: the number of its open descriptors.
pub(crate) const PROCESS_FD_COUNT: Source =
    Source { name: NAME, scope: ScopeKind::Process, cadence: Cadence::Often, needs: None, read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid() else { return Vec::new() };
    only_item(read_size(context.root, pid))
}

fn read_size(root: &Root, pid: u32) -> Outcome {
    match root.metadata(&format!("proc/{pid}/fd")) {
        // A zombie has no descriptors either.
        Ok(directory) if directory.size() == 0 => match read_alive(root, NAME, pid) {
            Ok(_) => Outcome::Absent(WHY_UNKNOWN.to_owned(), None),
            Err(lack) => lack,
        },
        Ok(directory) => Outcome::Ok(format!("{}\n", directory.size()).into_bytes()),
        Err(error) => root.of_process(pid, outcome_of(&error, None)),
    }
}

fn parse(bytes: &[u8]) -> Result<u32, ParseError> {
    let text = whole(NAME, bytes)?;
    TextLine::new(NAME, 1).number("a number of descriptors", Some(text.trim()))
}

fn put(observation: &mut Observation, entry: &Entry) {
    put_process(observation, entry, |process| &mut process.fd_count, parse);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_the_number_of_links() {
        let pid = std::process::id();
        let count = match read_size(&Root::default(), pid) {
            Outcome::Ok(bytes) => parse(&bytes).unwrap(),
            lack => return println!("skipped: {lack:?}"),
        };
        // Other tests of this process open and close files meanwhile.
        let files: Vec<std::fs::File> = (0..200).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        let Outcome::Ok(bytes) = read_size(&Root::default(), pid) else { panic!("it was read before") };
        assert!(parse(&bytes).unwrap() >= count.max(100) + 100, "{count} and {} more", files.len());
    }

    #[test]
    fn a_malformed_number_is_an_error() {
        assert_eq!(parse(b"269\n"), Ok(269));
        for wrong in ["", "269", "x\n", "-1\n", "4294967296\n", "1 2\n"] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_ended_process_is_reported() {
        let Outcome::Absent(why, None) = read_size(&Root::default(), u32::MAX) else { panic!("no such process") };
        assert_eq!(why, crate::root::WHY_ENDED);
    }
}
