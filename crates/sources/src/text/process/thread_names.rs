//! Names of a process's threads: runtimes say by them which of their threads collect garbage.

use chokepoint_foreign::printable;
use chokepoint_model::observation::{Observation, ThreadName};
use chokepoint_recording::{Entry, Outcome};

use super::cpu::THREADS_MAX;
use super::stat::read_while_alive;
use crate::root::Root;
use crate::scope::put_process;
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};

const NAME: &str = "process_thread_names";
/// The kernel keeps 15 bytes (prctl(2), PR_SET_NAME).
const COMM_BYTES_MAX: usize = 64;

/// At the beginning and at the end for each process of 2 to 256 threads: "THREAD NAME" for each (`/proc/PID/task/TID/comm`, proc_pid_comm(5)). Some 3 us each.
pub(crate) const PROCESS_THREAD_NAMES: Source =
    Source { name: NAME, scope: ScopeKind::Process, cadence: Cadence::Slow, needs: None, read, put, redact: Redact::Text };

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid().filter(|_| context.phase != Phase::Running) else { return Vec::new() };
    only_item(read_while_alive(context.root, NAME, pid, |_, stat| {
        Ok(Outcome::Ok(if (2..=THREADS_MAX).contains(&stat.threads) { names(context.root, pid) } else { Vec::new() }))
    }))
}

/// Threads that end during the read are left out.
fn names(root: &Root, pid: u32) -> Vec<u8> {
    let tasks = format!("proc/{pid}/task");
    let Ok((threads, false)) = root.names(&tasks, THREADS_MAX as usize, None) else { return Vec::new() };
    let mut text = String::new();
    for thread in threads.iter().filter_map(|name| name.to_str()) {
        if let Outcome::Ok(name) = root.read(&format!("{tasks}/{thread}/comm"), COMM_BYTES_MAX, None) {
            text.push_str(&format!("{thread} {}\n", printable(String::from_utf8_lossy(&name).trim_end())));
        }
    }
    text.into_bytes()
}

fn parse(bytes: &[u8]) -> Result<Vec<ThreadName>, ParseError> {
    const EXPECTED: &str = "a thread's id and its name";
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let text = whole(NAME, bytes)?;
    let one = |(place, line): (TextLine, &str)| {
        let (id, name) = line.split_once(' ').ok_or_else(|| place.expected(EXPECTED, line))?;
        Ok(ThreadName { id: place.number(EXPECTED, Some(id))?, name: name.to_owned() })
    };
    lines(NAME, &text).map(one).collect()
}

fn put(observation: &mut Observation, entry: &Entry) {
    put_process(observation, entry, |process| &mut process.thread_names, parse);
}

#[cfg(test)]
mod tests {
    use chokepoint_recording::Scope;

    use super::*;
    use crate::table::Notes;

    fn read_of(threads: u32, phase: Phase) -> Items {
        let tree = tempfile::tempdir().unwrap();
        let stat = format!(
            "7 (a b) S 1 1 1 0 -1 4194560 0 0 0 0 1 5 0 0 20 0 {threads} 0 77 0 0 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 1 0 0\n"
        );
        for (file, text) in [("stat", stat.as_str()), ("task/7/comm", "java\n"), ("task/9/comm", "GC Thread#0\x1b\n")] {
            let path = tree.path().join("proc/7").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let (root, notes) = (Root::new(tree.path()), Notes::default());
        read(&ReadContext::new(&root, Scope::Process(7), phase, &notes))
    }

    #[test]
    fn names_are_read_at_both_ends_and_cannot_write_to_a_terminal() {
        for phase in [Phase::First, Phase::Last] {
            let items = read_of(2, phase);
            let [(_, Outcome::Ok(bytes))] = items.as_slice() else { panic!("{items:?}") };
            let mut names = parse(bytes).unwrap();
            names.sort_by_key(|thread| thread.id);
            assert_eq!(names.iter().map(|thread| thread.id).collect::<Vec<_>>(), [7, 9]);
            assert!(names[1].name.starts_with("GC Thread#0") && !names[1].name.contains('\x1b'), "{names:?}");
        }
        assert!(read_of(2, Phase::Running).is_empty());
        // A single thread has the name of its process, and of too many none is read.
        for threads in [1, THREADS_MAX + 1] {
            assert!(matches!(read_of(threads, Phase::First).as_slice(), [(_, Outcome::Ok(bytes))] if bytes.is_empty()));
        }
    }

    #[test]
    fn a_damaged_text_is_an_error() {
        for damaged in ["7\n", "x java\n", "99999999999 java\n"] {
            assert!(parse(damaged.as_bytes()).is_err(), "{damaged:?}");
        }
        assert_eq!(parse(b"").unwrap(), Vec::new());
    }
}
