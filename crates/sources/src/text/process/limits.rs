//! The resource limits in force for one process, from `/proc/PID/limits`.

use chokepoint_model::observation::{Limits, Observation};
use chokepoint_recording::Entry;

use super::stat::read_while_alive;
use crate::scope::put_process;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};

const NAME: &str = "process_limits";
const BYTES_MAX: usize = 16 << 10;

/// At both ends for each process: `/proc/PID/limits` (proc_pid_limits(5)); prlimit(1) can change them while the process runs.
pub(crate) const PROCESS_LIMITS: Source =
    Source { name: NAME, scope: ScopeKind::Process, cadence: Cadence::Ends, needs: None, read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid() else { return Vec::new() };
    only_item(read_while_alive(context.root, NAME, pid, |_, _| Ok(context.root.read_process(pid, "limits", BYTES_MAX, None))))
}

/// Parses the lines "Max open files  SOFT  HARD  files", which must be there, and "Max processes  SOFT  HARD  processes". A limit is a number or "unlimited".
pub(crate) fn parse(bytes: &[u8]) -> Result<Limits, ParseError> {
    const EXPECTED: &str = "Max open files, two limits and their unit";
    let text = whole(NAME, bytes)?;
    let (mut files, mut tasks) = (None, (None, None));
    for (place, line) in lines(NAME, &text) {
        if let Some(limits) = limits_of(place, line, "Max open files ", "files")? {
            files = Some(limits);
        }
        if let Some(limits) = limits_of(place, line, "Max processes ", "processes")? {
            tasks = limits;
        }
    }
    let (open_files_soft, open_files_hard) = files.ok_or_else(|| TextLine::new(NAME, text.lines().count() + 1).expected(EXPECTED, ""))?;
    Ok(Limits { open_files_soft, open_files_hard, tasks_soft: tasks.0, tasks_hard: tasks.1 })
}

type SoftAndHard = (Option<u64>, Option<u64>);

/// Both limits of a line with this name; nothing for another line.
fn limits_of(place: TextLine, line: &str, name: &str, unit: &str) -> Result<Option<SoftAndHard>, ParseError> {
    const EXPECTED: &str = "a name, two limits and their unit";
    let Some(rest) = line.strip_prefix(name) else { return Ok(None) };
    let [soft, hard, found] = rest.split_ascii_whitespace().collect::<Vec<_>>()[..] else {
        return Err(place.expected(EXPECTED, line));
    };
    let limit = |token| if token == "unlimited" { Ok(None) } else { place.number(EXPECTED, Some(token)).map(Some) };
    let limits = (limit(soft)?, limit(hard)?);
    if found == unit { Ok(Some(limits)) } else { Err(place.expected(EXPECTED, line)) }
}

fn put(observation: &mut Observation, entry: &Entry) {
    put_process(observation, entry, |process| &mut process.limits, parse);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed_by_name() {
        let head = "Limit                     Soft Limit           Hard Limit           Units     \n";
        let limits = |line: &str| parse(format!("{head}{line}\n").as_bytes());
        let line = "Max open files            1024                 524288               files     ";
        assert_eq!(limits(line), Ok(Limits { open_files_soft: Some(1024), open_files_hard: Some(524_288), ..Limits::default() }));
        let both = format!("Max processes             63448                unlimited            processes \n{line}");
        assert_eq!((limits(&both).unwrap().tasks_soft, limits(&both).unwrap().tasks_hard), (Some(63_448), None));
        let none = line.replace("524288   ", "unlimited");
        assert_eq!(limits(&none), Ok(Limits { open_files_soft: Some(1024), open_files_hard: None, ..Limits::default() }));
        for wrong in
            [line.replace("1024", "x"), line.replace("524288", ""), line.replace("files     ", ""), format!("{line}\nMax processes 1 1 p")]
        {
            assert!(limits(&wrong).is_err(), "{wrong:?}");
        }
    }
}
