//! How many processes and threads the whole host has and may have, from `/proc/loadavg`, `kernel.threads-max` and `kernel.pid_max`.

use chokepoint_model::observation::{Observation, TaskLimits};
use chokepoint_recording::{Entry, Outcome};

use crate::root::{Root, reading_of};
use crate::scope::is_of_host;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine};
use crate::text::facts;

const NAME: &str = "task_limits";
/// Each of these files has a line.
const BYTES_MAX: usize = 4 << 10;
/// `status` has some sixty lines.
const STATUS_BYTES_MAX: usize = 16 << 10;
/// The inode of the first pid namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";
const WHY_OTHER: &str = "/proc shows the processes of another pid namespace";

/// Once a second for the host: the facts `loadavg`, `threads_max`, `pid_max`, `namespace` and `low`, the number of processes whose ids are not given again. `pid_max` is that of
/// this program's pid namespace since Linux 6.14 (kernel/pid.c, `register_pidns_sysctls`), and the host's before.
pub(crate) const TASK_LIMITS: Source =
    Source { name: NAME, scope: ScopeKind::Host, cadence: Cadence::Slow, needs: None, read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    only_item(read_files(context.root).map_or_else(|lack| lack, Outcome::Ok))
}

fn read_files(root: &Root) -> Result<Vec<u8>, Outcome> {
    let of = |outcome: Outcome| match outcome {
        Outcome::Ok(bytes) => Ok(bytes),
        lack => Err(lack),
    };
    let status = of(root.read("proc/self/status", STATUS_BYTES_MAX, None))?;
    // The ids of this program from the namespace of /proc to its own: one if these are the same.
    let ids = String::from_utf8_lossy(&status).lines().find_map(|line| Some(line.strip_prefix("NSpid:")?.split_ascii_whitespace().count()));
    if ids.is_some_and(|ids| ids != 1) {
        return Err(Outcome::Absent(WHY_OTHER.to_owned(), None));
    }
    let low = root.pids()?.into_iter().filter(|pid| u64::from(*pid) < TaskLimits::RESERVED_PIDS).count();
    let mut text = Vec::new();
    facts::add(&mut text, "loadavg", &of(root.read("proc/loadavg", BYTES_MAX, None))?);
    facts::add(&mut text, "threads_max", &of(root.read("proc/sys/kernel/threads-max", BYTES_MAX, None))?);
    facts::add(&mut text, "pid_max", &of(root.read("proc/sys/kernel/pid_max", BYTES_MAX, None))?);
    facts::add(&mut text, "namespace", &of(root.link("proc/self/ns/pid", None))?);
    facts::add(&mut text, "low", low.to_string().as_bytes());
    Ok(text)
}

/// Parses the facts. The fourth word of `loadavg` is "RUNNABLE/ALL", where ALL counts the processes and threads of the whole host, in any namespace (fs/proc/loadavg.c,
/// `nr_threads`).
fn parse(bytes: &[u8]) -> Result<TaskLimits, ParseError> {
    let facts = facts::read(NAME, bytes)?;
    let need = |name: &'static str| facts::need(NAME, &facts, name, "a number");
    let number = |name: &'static str| facts::number(NAME, &facts, name, "a number");
    let loadavg = need("loadavg")?;
    let text = loadavg.text();
    let all = text.split_ascii_whitespace().nth(3).and_then(|word| Some(word.split_once('/')?.1));
    Ok(TaskLimits {
        tasks: TextLine::new(NAME, loadavg.line).number("five words, the fourth of two numbers", all)?,
        threads_max: number("threads_max")?,
        pid_max: number("pid_max")?,
        low_pids: number("low")?,
        is_first: need("namespace")?.text() == FIRST_NAMESPACE,
    })
}

fn put(observation: &mut Observation, entry: &Entry) {
    if is_of_host(observation, entry) {
        observation.task_limits.push(entry.at_us, reading_of(&entry.outcome, parse));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "loadavg 5.31 2.90 2.78 6/183 7352\\n\nthreads_max 192730\\n\npid_max 32768\\n\nnamespace pid:[4026531836]\nlow 37\n";

    #[test]
    fn tasks_and_limits_are_parsed_by_name() {
        let limits = TaskLimits { tasks: 183, threads_max: 192_730, pid_max: 32_768, low_pids: 37, is_first: true };
        assert_eq!(parse(TEXT.as_bytes()), Ok(limits));
        assert_eq!(parse(TEXT.replace("1836", "1837").as_bytes()), Ok(TaskLimits { is_first: false, ..limits }));
        for (from, to) in
            [("6/183", "6"), ("183", "-3"), ("192730", ""), ("32768", "x"), ("low 37\n", ""), ("namespace pid:[4026531836]\n", "")]
        {
            assert!(parse(TEXT.replace(from, to).as_bytes()).is_err(), "{from}");
        }
    }

    #[test]
    fn the_running_host_has_fewer_tasks_than_it_may() {
        match read_files(&Root::default()) {
            Ok(bytes) => {
                let limits = parse(&bytes).unwrap();
                assert!(limits.tasks > 1 && limits.tasks <= limits.threads_max + 1, "{limits:?}");
            }
            Err(lack) => println!("skipped: {lack:?}"),
        }
    }
}
