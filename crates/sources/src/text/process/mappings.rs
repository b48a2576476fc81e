//! How many mappings of memory one process has and may have, from `/proc/PID/maps` and `vm.max_map_count`.

use chokepoint_model::observation::{Mappings, Observation};
use chokepoint_recording::{Entry, Outcome};
use serde::{Deserialize, Serialize};

use super::stat::read_while_alive;
use crate::scope::put_process;
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::ParseError;
use crate::text::facts;

const NAME: &str = "process_mappings";
/// Room for 65,530 mappings, the usual limit, of 250 bytes each. Those of threads have 50.
const BYTES_MAX: usize = 16 << 20;
/// A file with a number.
const LIMIT_BYTES_MAX: usize = 64;
const NEEDS: &str = "CAP_SYS_PTRACE";
/// Fewest threads of a process that is counted: one that has a single thread starts none.
const THREADS_MIN: u32 = 2;

/// At most once a second for each process with several threads: the facts `limit`, `count` and `threads`. It is counted when the observation begins and ends, when it has more
/// threads than at any count before, and as long as it has nearly as many mappings as it may: the kernel takes about a microsecond for each.
pub(crate) const PROCESS_MAPPINGS: Source =
    Source { name: NAME, scope: ScopeKind::Process, cadence: Cadence::Slow, needs: Some(NEEDS), read, put, redact: Redact::None };

/// What the last count showed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Counted {
    threads: u32,
    is_near: bool,
}

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid() else { return Vec::new() };
    let key = format!("{NAME} {pid}");
    let before = context.notes.kept::<Counted>(&key);
    let mut threads = 0;
    let outcome = read_while_alive(context.root, NAME, pid, |_, stat| {
        threads = stat.threads;
        let is_due = context.phase == Phase::Last || threads > before.threads || before.is_near;
        if threads < THREADS_MIN || !is_due {
            return Ok(Outcome::Ok(Vec::new()));
        }
        let limit = match context.root.read("proc/sys/vm/max_map_count", LIMIT_BYTES_MAX, None) {
            Outcome::Ok(bytes) => bytes,
            lack => return Err(lack),
        };
        let maps = match context.root.read_process(pid, "maps", BYTES_MAX, Some(NEEDS)) {
            Outcome::Ok(bytes) => bytes,
            lack => return Err(lack),
        };
        let count = maps.iter().filter(|byte| **byte == b'\n').count();
        let mut text = Vec::new();
        facts::add(&mut text, "limit", &limit);
        facts::add(&mut text, "count", count.to_string().as_bytes());
        facts::add(&mut text, "threads", threads.to_string().as_bytes());
        Ok(Outcome::Ok(text))
    });
    let mut is_near = false;
    match &outcome {
        Outcome::Ok(bytes) if bytes.is_empty() => return Vec::new(),
        Outcome::Ok(bytes) => is_near = parse(bytes).is_ok_and(|counted| counted.is_near()),
        _ => {}
    }
    context.notes.keep(&key, &Counted { threads: threads.max(before.threads), is_near });
    only_item(outcome)
}

fn parse(bytes: &[u8]) -> Result<Mappings, ParseError> {
    const EXPECTED: &str = "a number";
    let facts = facts::read(NAME, bytes)?;
    Ok(Mappings {
        count: facts::number(NAME, &facts, "count", EXPECTED)?,
        limit: facts::number(NAME, &facts, "limit", EXPECTED)?,
        threads: facts::number(NAME, &facts, "threads", EXPECTED)?,
    })
}

fn put(observation: &mut Observation, entry: &Entry) {
    put_process(observation, entry, |process| &mut process.mappings, parse);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;
    use crate::table::Notes;
    use chokepoint_recording::Scope;

    #[test]
    fn mappings_are_parsed_by_name_and_what_is_missing_is_an_error() {
        let text = "limit 65530\\n\ncount 65529\nthreads 32000\n";
        let counted = parse(text.as_bytes()).unwrap();
        assert_eq!(counted, Mappings { count: 65_529, limit: 65_530, threads: 32_000 });
        assert!(counted.is_near() && !Mappings { count: 300, ..counted }.is_near());
        for wrong in
            ["", "limit 1\ncount 2\n", "limit x\ncount 2\nthreads 3\n", "limit 1\ncount -2\nthreads 3\n", "limit 1\ncount 2\nthreads 3"]
        {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_process_is_counted_again_only_if_it_has_more_threads() {
        let (root, notes, pid) = (Root::default(), Notes::default(), std::process::id());
        let count = |phase| read(&ReadContext::new(&root, Scope::Process(pid), phase, &notes)).len();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let held = std::thread::spawn(move || ends.recv().is_err());
        // Other tests of this process start and end threads meanwhile.
        let first = count(Phase::First);
        notes.keep(&format!("{NAME} {pid}"), &Counted { threads: u32::MAX, is_near: false });
        assert_eq!((first, count(Phase::Running), count(Phase::Last)), (1, 0, 1));
        drop(end);
        assert!(held.join().unwrap());
    }
}
