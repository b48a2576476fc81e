//! The memory that a process has to itself, from `/proc/PID/smaps_rollup` (Linux 4.14).

use chokepoint_model::observation::{Observation, ProcessMemory};
use chokepoint_recording::{Entry, Outcome};

use super::stat::read_while_alive;
use crate::scope::put_process;
use crate::table::{Cadence, Items, Phase, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};

const NAME: &str = "process_memory";
const BYTES_MAX: usize = 16 << 10;
/// Bytes of the kB of procfs.
const KIB: u64 = 1024;

/// Most memory of a process that is read: the kernel walks all its pages, which takes about a millisecond for each 100 MB, while the process cannot map others.
const WALKED_MAX: u64 = 2 << 30;
const WHY_LARGE: &str = "it has so much memory that counting its pages would hold it up";
const NEEDS: &str = "CAP_SYS_PTRACE";

/// At the end for each process: `/proc/PID/smaps_rollup` (proc_pid_smaps(5)), unless it has much memory. It takes the right to trace the process (ptrace(2),
/// PTRACE_MODE_READ).
pub(crate) const PROCESS_MEMORY: Source =
    Source { name: NAME, scope: ScopeKind::Process, cadence: Cadence::Ends, needs: Some(NEEDS), read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    let Some(pid) = context.pid().filter(|_| context.phase == Phase::Last) else { return Vec::new() };
    only_item(read_while_alive(context.root, NAME, pid, |_, stat| {
        let is_large = stat.resident_pages.saturating_mul(rustix::param::page_size() as u64) > WALKED_MAX;
        Ok(match is_large {
            true => Outcome::Absent(WHY_LARGE.to_owned(), None),
            false => context.root.read_process(pid, "smaps_rollup", BYTES_MAX, Some(NEEDS)),
        })
    }))
}

fn put(observation: &mut Observation, entry: &Entry) {
    put_process(observation, entry, |process| &mut process.memory, parse);
}

/// Parses the lines "Name:   NUMBER kB". The first line is the range of addresses.
fn parse(bytes: &[u8]) -> Result<ProcessMemory, ParseError> {
    const EXPECTED: &str = "a name, a number and kB";
    let text = whole(NAME, bytes)?;
    let [mut clean, mut dirty] = [None; 2];
    for (place, line) in lines(NAME, &text) {
        let mut words = line.split_ascii_whitespace();
        let field = match words.next() {
            Some("Private_Clean:") => &mut clean,
            Some("Private_Dirty:") => &mut dirty,
            _ => continue,
        };
        let number: u64 = place.number(EXPECTED, words.next())?;
        if words.next() != Some("kB") {
            return Err(place.expected(EXPECTED, line));
        }
        *field = Some(number.saturating_mul(KIB));
    }
    match (clean, dirty) {
        (Some(clean), Some(dirty)) => Ok(ProcessMemory { private_bytes: u64::saturating_add(clean, dirty) }),
        _ => Err(TextLine::new(NAME, text.lines().count() + 1).expected("Private_Clean and Private_Dirty", "")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REAL: &str = "\
5592e2ac2000-7ffd8d5f6000 ---p 00000000 00:00 0                          [rollup]
Rss:               11512 kB
Pss:                3207 kB
Pss_Dirty:          1532 kB
Pss_Anon:           1276 kB
Pss_File:           1675 kB
Pss_Shmem:           256 kB
Shared_Clean:       6360 kB
Shared_Dirty:       3780 kB
Private_Clean:       276 kB
Private_Dirty:      1096 kB
Referenced:        11512 kB
Anonymous:          4620 kB
Swap:                  0 kB
SwapPss:               0 kB
Locked:                0 kB
";

    #[test]
    fn private_is_clean_and_dirty() {
        assert_eq!(parse(REAL.as_bytes()), Ok(ProcessMemory { private_bytes: (276 + 1096) << 10 }));
    }

    #[test]
    fn damaged_input_is_refused_or_bounded() {
        for end in 0..REAL.len() {
            // All that is needed stands before "Referenced".
            let cut = parse(&REAL.as_bytes()[..end]);
            assert!(cut.is_err() || end > REAL.find("1096").unwrap(), "{end}: {cut:?}");
        }
        let with = |from: &str, to: &str| parse(REAL.replace(from, to).as_bytes());
        for wrong in
            [with("276 kB", "276 MB"), with("1096", "-1"), with("1096", "x"), with("Private_Dirty:", "Private:"), with("276 kB", "")]
        {
            assert!(wrong.is_err(), "{wrong:?}");
        }
        assert_eq!(with("1096", "18446744073709551615").map(|memory| memory.private_bytes), Ok(u64::MAX));
        assert!(with("1096", "18446744073709551616").is_err());
        assert!(parse(b"").is_err() && parse(b"\xff\xfe\n").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes);
        }
    }
}
