//! CPU use of one process and its threads, from `/proc/PID/stat` and the threads' `schedstat`.

use std::collections::BTreeSet;

use chokepoint_model::observation::{CpuUse, Observation, ThreadTimes};
use chokepoint_recording::{Entry, Outcome};

use super::stat::{self, Stat, read_while_alive};
use crate::root::Root;
use crate::scope::put_process;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine};
use crate::text::facts;

const NAME: &str = "process_cpu";
/// Most threads of a process whose times are read: a pool of 200 (Tomcat's default) and those of its runtime. Each costs some 4 us (222 threads of a Java server took 0.85 to
/// 1.25 ms without optimisation), so that a reading of as many takes an eighth of what the budget pays in a second (`observer/bucket.rs`), which spaces more of them out.
pub(super) const THREADS_MAX: u32 = 256;
/// Three decimal numbers.
const SCHEDSTAT_BYTES_MAX: usize = 256;

/// Once a second for each process: `stat` (the whole process, in clock ticks), `page_bytes`, and `schedstat` of its only thread (nanoseconds on a CPU,
/// nanoseconds runnable but waiting, slices; Documentation/scheduler/sched-stats.rst). A process with 2 to 256 threads has `thread` for each instead: the
/// thread's id and its schedstat.
pub(crate) const PROCESS_CPU: Source =
    Source { name: NAME, scope: ScopeKind::Process, cadence: Cadence::Slow, needs: None, read, put, redact: Redact::Text };

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid() else { return Vec::new() };
    only_item(read_process(context.root, NAME, pid))
}

/// Reads a process or kernel thread, for [`parse_of`].
pub(crate) fn read_process(root: &Root, of: &'static str, pid: u32) -> Outcome {
    read_while_alive(root, of, pid, |line, stat| {
        let mut text = Vec::new();
        facts::add(&mut text, "stat", line);
        // A recording may be replayed on a machine with another page size.
        facts::add(&mut text, "page_bytes", rustix::param::page_size().to_string().as_bytes());
        add_schedstats(root, pid, stat, &mut text);
        Ok(Outcome::Ok(text))
    })
}

/// Adds the threads' lines; none if there are too many threads, or the kernel has no CONFIG_SCHED_INFO.
fn add_schedstats(root: &Root, pid: u32, stat: &Stat, text: &mut Vec<u8>) {
    let mut add = |fact: &str, before: &str, file: &str| {
        // The time of a thread that just ended is lost: at most its last second.
        if let Outcome::Ok(bytes) = root.read(file, SCHEDSTAT_BYTES_MAX, None) {
            facts::add(text, fact, &[before.as_bytes(), &bytes].concat());
        }
    };
    if stat.threads == 1 {
        return add("schedstat", "", &format!("proc/{pid}/schedstat"));
    }
    if stat.threads > THREADS_MAX {
        return;
    }
    let tasks = format!("proc/{pid}/task");
    if let Ok((names, false)) = root.names(&tasks, THREADS_MAX as usize, None) {
        for thread in names.iter().filter_map(|name| name.to_str()) {
            add("thread", &format!("{thread} "), &format!("{tasks}/{thread}/schedstat"));
        }
    }
}

/// Parses the text of [`read_process`] for the source `of`. The schedstat times are sums over the living threads, so they drop when a thread ends; the clock
/// ticks never drop. The times are `None` if the kernel has none or does not count (all zero in a process that used CPU time).
pub(crate) fn parse_of(of: &'static str, bytes: &[u8]) -> Result<CpuUse, ParseError> {
    let facts = facts::read(of, bytes)?;
    let line = facts::need(of, &facts, "stat", "the line \"stat\"")?;
    let stat = stat::parse(TextLine::new(of, line.line), &line.value)?;
    let page_bytes: u64 = facts::number(of, &facts, "page_bytes", "bytes a page")?;
    let mut threads: Vec<ThreadTimes> = Vec::new();
    for fact in facts.iter().filter(|fact| ["schedstat", "thread"].contains(&fact.name)) {
        const EXPECTED: &str = "three numbers of nanoseconds and slices";
        let (place, text) = (TextLine::new(of, fact.line), fact.text());
        let mut tokens = text.split_ascii_whitespace();
        let id: u32 = if fact.name == "thread" { place.number("a thread's id", tokens.next())? } else { stat.pid };
        let run_ns: u64 = place.number(EXPECTED, tokens.next())?;
        let delay_ns: u64 = place.number(EXPECTED, tokens.next())?;
        let _slices: u64 = place.number(EXPECTED, tokens.next())?;
        threads.push(ThreadTimes { id, run_ns, delay_ns });
    }
    let sum = |(run, delay): (u64, u64), one: &ThreadTimes| (run.saturating_add(one.run_ns), delay.saturating_add(one.delay_ns));
    let times = (!threads.is_empty()).then(|| threads.iter().fold((0, 0), sum));
    // Recordings of the first versions have several threads without their ids.
    let all_apart = threads.iter().map(|thread| thread.id).collect::<BTreeSet<u32>>().len() == stat.threads as usize;
    let is_counted = |&(run, _): &(u64, u64)| run > 0 || stat.user_ticks.saturating_add(stat.system_ticks) == 0;
    let times = times.filter(is_counted);
    Ok(CpuUse {
        state: stat.state,
        user_ticks: stat.user_ticks,
        system_ticks: stat.system_ticks,
        reaped_ticks: Some(stat.reaped_ticks),
        run_ns: times.map(|(run, _)| run),
        run_delay_ns: times.map(|(_, delay)| delay),
        thread_times: if times.is_some() && all_apart { threads } else { Vec::new() },
        threads: stat.threads,
        resident_bytes: stat.resident_pages.saturating_mul(page_bytes),
    })
}

fn parse(bytes: &[u8]) -> Result<CpuUse, ParseError> {
    parse_of(NAME, bytes)
}

fn put(observation: &mut Observation, entry: &Entry) {
    put_process(observation, entry, |process| &mut process.cpu, parse);
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "stat 42 (php-fpm8.2) S 1 41 41 0 -1 4194560 500 0 0 0 250 125 0 0 20 0 2 0 98765 70000000 1500 18446744073709551615 1\\n\n";

    fn parse_with(more: &str) -> Result<CpuUse, ParseError> {
        parse(format!("{STAT}page_bytes 4096\n{more}").as_bytes())
    }

    #[test]
    fn times_of_threads_are_summed() {
        let cpu = parse_with("schedstat 3000 200 7\\n\nschedstat 500 50 1\\n\n").unwrap();
        assert_eq!((cpu.run_ns, cpu.run_delay_ns), (Some(3500), Some(250)));
        assert!(cpu.thread_times.is_empty(), "the ids are unknown");
        assert_eq!((cpu.user_ticks, cpu.system_ticks, cpu.threads, cpu.resident_bytes, cpu.state), (250, 125, 2, 1500 * 4096, 'S'));
    }

    #[test]
    fn without_schedstats_the_times_are_not_zero_but_unknown() {
        assert_eq!(parse_with("").unwrap().run_ns, None);
        let cpu = parse_with("schedstat 0 0 0\\n\n").unwrap();
        assert_eq!((cpu.run_ns, cpu.run_delay_ns), (None, None));
        let idle = format!("{STAT}page_bytes 4096\nschedstat 0 0 0\n").replace("250 125", "0 0");
        assert_eq!(parse(idle.as_bytes()).unwrap().run_ns, Some(0));
    }

    #[test]
    fn an_incomplete_text_is_an_error() {
        assert!(parse(STAT.as_bytes()).is_err());
        assert!(parse(b"page_bytes 4096\n").is_err());
        assert!(parse_with("schedstat 1 2\n").is_err());
        assert!(parse_with("thread 1 2 3\n").is_err() && parse_with("thread x 1 2 3\n").is_err());
        assert!(parse_with("schedstat 1 2 x\n").is_err());
        assert_eq!(parse_with(&format!("schedstat {0} {0} 1\nschedstat {0} {0} 1\n", u64::MAX)).unwrap().run_ns, Some(u64::MAX));
    }

    #[test]
    fn both_threads_of_a_process_are_read() {
        let tree = tempfile::tempdir().unwrap();
        for thread in [42, 43] {
            let directory = tree.path().join(format!("proc/42/task/{thread}"));
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("schedstat"), format!("{thread} 1 1\n")).unwrap();
        }
        let cpu = with_threads(&tree, 2);
        let apart: Vec<(u32, u64)> = cpu.thread_times.iter().map(|thread| (thread.id, thread.run_ns)).collect();
        assert_eq!((cpu.run_ns, apart), (Some(85), vec![(42, 42), (43, 43)]));
    }

    /// What is read of process 42 of this tree, which says that it has so many threads.
    fn with_threads(tree: &tempfile::TempDir, threads: u32) -> CpuUse {
        let line = STAT.strip_prefix("stat ").unwrap().replace("\\n", "").replace("20 0 2", &format!("20 0 {threads}"));
        std::fs::write(tree.path().join("proc/42/stat"), line).unwrap();
        let Outcome::Ok(bytes) = read_process(&Root::new(tree.path()), NAME, 42) else { panic!("not read") };
        parse(&bytes).unwrap()
    }

    #[test]
    fn a_pool_of_two_hundred_threads_is_read_and_what_has_too_many_is_unknown() {
        let tree = tempfile::tempdir().unwrap();
        for thread in 42..42 + 220 {
            let directory = tree.path().join(format!("proc/42/task/{thread}"));
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("schedstat"), "10 1 1\n").unwrap();
        }
        let cpu = with_threads(&tree, 220);
        assert_eq!((cpu.run_ns, cpu.thread_times.len()), (Some(2_200), 220));
        assert_eq!(with_threads(&tree, THREADS_MAX + 1).run_ns, None, "too many threads");
    }
}
