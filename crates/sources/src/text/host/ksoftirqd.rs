//! CPU use of each core's `ksoftirqd/N`, the kernel thread for packet work that soft interrupts could not finish.

use chokepoint_model::observation::{CpuUse, Observation};
use chokepoint_recording::{Entry, Outcome};

use super::cpu;
use crate::root::{Root, reading_of};
use crate::scope::unplaced;
use crate::table::{Cadence, Items, Notes, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine};
use crate::text::process::cpu::{parse_of, read_process};
use crate::text::process::stat::{self, Stat};

const NAME: &str = "ksoftirqd";
const COMM: &str = "ksoftirqd/";

/// Once a second for the host: item "N", the core, with the text of `process_cpu`. A container's pid namespace has no kernel threads; then core 0 is absent.
pub(crate) const KSOFTIRQD: Source =
    Source { name: NAME, scope: ScopeKind::Host, cadence: Cadence::Slow, needs: None, read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    let pids = match pids(context.root, context.notes) {
        Ok(pids) => pids,
        Err(lack) => return only_item(lack),
    };
    if pids.is_empty() {
        return only_item(Outcome::Absent("this pid namespace has no kernel threads".to_owned(), None));
    }
    pids.into_iter().map(|(core, pid)| (core.to_string(), read_process(context.root, NAME, pid))).collect()
}

/// The core and the pid of each thread, searched once and then kept. The threads live as long as the kernel, even those of offline cores.
fn pids(root: &Root, notes: &Notes) -> Result<Vec<(u32, u32)>, Outcome> {
    if let Some(noted) = notes.get(NAME) {
        return Ok(from_note(&noted));
    }
    let found = find(root)?;
    notes.set(NAME, found.iter().flat_map(|(core, pid)| format!("{core} {pid}\n").into_bytes()).collect());
    Ok(found)
}

fn from_note(note: &[u8]) -> Vec<(u32, u32)> {
    let line = |line: &str| {
        let (core, pid) = line.split_once(' ')?;
        Some((core.parse().ok()?, pid.parse().ok()?))
    };
    String::from_utf8_lossy(note).lines().filter_map(line).collect()
}

/// Searches the processes by ascending pid until every online core has its thread. Kernel threads come first, so this is short.
fn find(root: &Root) -> Result<Vec<(u32, u32)>, Outcome> {
    let cores = match root.read("proc/stat", cpu::BYTES_MAX, None) {
        Outcome::Ok(bytes) => cpu::parse(&bytes).map(|times| times.cores.len()).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let mut found = Vec::new();
    for pid in root.pids()? {
        let Outcome::Ok(bytes) = root.read(&format!("proc/{pid}/stat"), stat::BYTES_MAX, None) else { continue };
        let Ok(stat) = stat::parse(TextLine::new(NAME, 1), &bytes) else { continue };
        found.extend(core_of(&stat).map(|core| (core, pid)));
        if found.len() >= cores {
            break;
        }
    }
    Ok(found)
}

/// The core of a kernel thread with this name. Any program can use the name.
fn core_of(stat: &Stat) -> Option<u32> {
    stat.comm.strip_prefix(COMM).filter(|_| stat.is_kernel_thread)?.parse().ok()
}

pub(crate) fn parse(bytes: &[u8]) -> Result<CpuUse, ParseError> {
    parse_of(NAME, bytes)
}

fn put(observation: &mut Observation, entry: &Entry) {
    let core = if entry.item.is_empty() { Ok(0) } else { entry.item.parse() };
    match core {
        Ok(core) => observation.ksoftirqd.entry(core).or_default().push(entry.at_us, reading_of(&entry.outcome, parse)),
        Err(_) => unplaced(observation, entry, "its item should be a core's number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(processes: &[(u32, &str, u64)]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc")).unwrap();
        std::fs::write(tree.path().join("proc/stat"), "cpu0 1 1 1 1\ncpu1 1 1 1 1\n").unwrap();
        for (pid, comm, flags) in processes {
            let directory = tree.path().join(format!("proc/{pid}"));
            std::fs::create_dir(&directory).unwrap();
            let line = format!("{pid} ({comm}) S 2 0 0 0 -1 {flags} 0 0 0 0 0 7 0 0 20 0 1 0 5 0 0 18446744073709551615 0\n");
            std::fs::write(directory.join("stat"), line).unwrap();
            std::fs::write(directory.join("schedstat"), "70000000 5 9\n").unwrap();
        }
        tree
    }

    #[test]
    fn only_kernel_threads_count() {
        let tree = tree(&[
            (9, "ksoftirqd/1", 2_129_984),
            (14, "ksoftirqd/0", 69_238_848),
            (300, "ksoftirqd/0", 4_194_560),
            (15, "rcu_preempt", 2_129_984),
        ]);
        assert_eq!(find(&Root::new(tree.path())), Ok(vec![(1, 9), (0, 14)]));
    }

    #[test]
    fn pids_are_searched_once() {
        let tree = tree(&[(14, "ksoftirqd/0", 2_129_984)]);
        let (root, notes) = (Root::new(tree.path()), Notes::default());
        assert_eq!(pids(&root, &notes), Ok(vec![(0, 14)]));
        std::fs::remove_dir_all(tree.path().join("proc/14")).unwrap();
        assert_eq!(pids(&root, &notes), Ok(vec![(0, 14)]));
        assert_eq!(from_note(b"0 14\nx\n3 \n1 22\n"), [(0, 14), (1, 22)]);
    }

    #[test]
    fn a_pid_namespace_without_kernel_threads_is_absent_and_not_idle() {
        let tree = tree(&[(300, "ksoftirqd/0", 4_194_560)]);
        let (root, notes) = (Root::new(tree.path()), Notes::default());
        let context = ReadContext::new(&root, chokepoint_recording::Scope::Host, crate::table::Phase::First, &notes);
        assert_eq!(read(&context), [(String::new(), Outcome::Absent("this pid namespace has no kernel threads".to_owned(), None))]);
    }
}
