//! Who traces a process (a debugger, strace), and how its threads stand then: a tracer stops a thread at each of its system calls.

use chokepoint_foreign::printable;
use chokepoint_model::observation::{Observation, ThreadState, Tracing};
use chokepoint_recording::{Entry, Outcome};

use super::stat::{self, read_while_alive};
use crate::root::Root;
use crate::scope::put_process;
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};

const NAME: &str = "process_tracing";
const STATUS_BYTES_MAX: usize = 64 << 10;
const COMM_BYTES_MAX: usize = 64;
/// Most threads whose states are read, some 5 us each, and most threads to list.
const THREADS_MAX: usize = 64;
const LISTED_MAX: usize = 1_024;

/// At the beginning for each process, and four times a second while somebody traces it: "TRACER NAME", where TRACER is 0 for nobody (`TracerPid` of `status`, proc_pid_status(5)) and NAME is left out if it cannot be
/// read, and of a traced process "THREAD STATE" for each of up to 64 threads.
pub(crate) const PROCESS_TRACING: Source =
    Source { name: NAME, scope: ScopeKind::Process, cadence: Cadence::Often, needs: None, read, put, redact: Redact::Text };

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid() else { return Vec::new() };
    let traced = format!("{NAME} {pid}");
    // One that is traced later costs nothing: it is seen by the next observation.
    if context.phase != Phase::First && context.notes.get(&traced).is_none() {
        return Vec::new();
    }
    let outcome = read_while_alive(context.root, NAME, pid, |_, _| Ok(Outcome::Ok(look(context.root, pid)?)));
    if matches!(&outcome, Outcome::Ok(text) if !text.starts_with(b"0")) {
        context.notes.set(&traced, Vec::new());
    }
    only_item(outcome)
}

fn look(root: &Root, pid: u32) -> Result<Vec<u8>, Outcome> {
    let status = match root.read_process(pid, "status", STATUS_BYTES_MAX, None) {
        Outcome::Ok(bytes) => bytes,
        lack => return Err(lack),
    };
    let tracer = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"TracerPid:"));
    let tracer = String::from_utf8_lossy(tracer.unwrap_or_default().trim_ascii()).into_owned();
    if tracer == "0" {
        return Ok(b"0\n".to_vec());
    }
    let name = match root.read(&format!("proc/{tracer}/comm"), COMM_BYTES_MAX, None) {
        Outcome::Ok(name) => printable(String::from_utf8_lossy(&name).trim_end()).into_owned(),
        _ => String::new(),
    };
    let mut text = format!("{tracer} {name}\n");
    for (thread, state) in states(root, pid) {
        text.push_str(&format!("{thread} {state}\n"));
    }
    Ok(text.into_bytes())
}

/// The states of threads, in the order of their ids. Threads that end during the read are left out.
fn states(root: &Root, pid: u32) -> Vec<(u32, char)> {
    let names = root.names(&format!("proc/{pid}/task"), LISTED_MAX, None).map_or_else(|_| Vec::new(), |(names, _)| names);
    let mut threads: Vec<u32> = names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect();
    threads.sort_unstable();
    let state_of = |thread: &u32| {
        let Outcome::Ok(bytes) = root.read(&format!("proc/{pid}/task/{thread}/stat"), stat::BYTES_MAX, None) else { return None };
        Some((*thread, stat::parse(TextLine::new(NAME, 1), &bytes).ok()?.state))
    };
    threads.iter().step_by(threads.len().div_ceil(THREADS_MAX).max(1)).filter_map(state_of).collect()
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Tracing, ParseError> {
    const EXPECTED: &str = "TRACER NAME, then THREAD STATE";
    let text = whole(NAME, bytes)?;
    let mut all = lines(NAME, &text);
    let (place, first) = all.next().ok_or_else(|| TextLine::new(NAME, 1).expected(EXPECTED, &text))?;
    let (tracer, name) = first.split_once(' ').unwrap_or((first, ""));
    let tracer: u32 = place.number(EXPECTED, Some(tracer))?;
    let threads = all.map(|(place, line)| {
        let wrong = || place.expected(EXPECTED, line);
        let (id, state) = line.split_once(' ').ok_or_else(wrong)?;
        let mut letters = state.chars();
        let (Some(state), None) = (letters.next(), letters.next()) else { return Err(wrong()) };
        Ok(ThreadState { id: place.number(EXPECTED, Some(id))?, state })
    });
    Ok(Tracing {
        tracer: (tracer != 0).then_some(tracer),
        name: (!name.is_empty()).then(|| name.to_owned()),
        threads: threads.collect::<Result<_, _>>()?,
    })
}

fn put(observation: &mut Observation, entry: &Entry) {
    put_process(observation, entry, |process| &mut process.tracing, parse);
}

#[cfg(test)]
mod tests {
    use chokepoint_recording::Scope;

    use super::*;
    use crate::table::Notes;

    fn tree(tracer: u32) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        let stat = |pid: u32, state: char| {
            format!(
                "{pid} (a b) {state} 1 1 1 0 -1 4194560 0 0 0 0 1 5 0 0 20 0 2 0 77 0 0 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 1 0 0\n"
            )
        };
        let files = [
            ("proc/7/stat", stat(7, 'S')),
            ("proc/7/status", format!("Name:\ta b\nTracerPid:\t{tracer}\nUid:\t0\t0\t0\t0\n")),
            ("proc/7/task/7/stat", stat(7, 'S')),
            ("proc/7/task/8/stat", stat(8, 't')),
            ("proc/9/comm", "strace\n".to_owned()),
        ];
        for (file, text) in files {
            let path = tree.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        tree
    }

    fn look(tree: &tempfile::TempDir, notes: &Notes, phase: Phase) -> Option<Tracing> {
        let root = Root::new(tree.path());
        let items = read(&ReadContext::new(&root, Scope::Process(7), phase, notes));
        let Outcome::Ok(bytes) = items.into_iter().next()?.1 else { panic!("it lives") };
        Some(parse(&bytes).unwrap())
    }

    #[test]
    fn a_tracer_is_followed_and_nobody_costs_one_look() {
        let (free, notes) = (tree(0), Notes::default());
        assert_eq!(look(&free, &notes, Phase::First), Some(Tracing::default()));
        assert_eq!(look(&free, &notes, Phase::Running), None);
        let (traced, notes) = (tree(9), Notes::default());
        let threads = vec![ThreadState { id: 7, state: 'S' }, ThreadState { id: 8, state: 't' }];
        let expected = Tracing { tracer: Some(9), name: Some("strace".to_owned()), threads };
        assert_eq!(look(&traced, &notes, Phase::First), Some(expected.clone()));
        assert_eq!(look(&traced, &notes, Phase::Running), Some(expected));
        // One outside of this container has no number here, and no name.
        assert_eq!(look(&tree(33), &Notes::default(), Phase::First).map(|tracing| (tracing.tracer, tracing.name)), Some((Some(33), None)));
    }

    #[test]
    fn malformed_text_is_an_error() {
        for wrong in ["", "\n", "x\n", "9 gdb\n7\n", "9 gdb\n7 St\n", "9 gdb\n7 \n", "9 gdb\n4294967296 S\n"] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
