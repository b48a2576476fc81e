//! The memory that a process has to itself, from `/proc/PID/smaps_rollup` (Linux 4.14).

use chokepoint_model::reading::Reading;

use crate::root::{Root, reading_of};
use crate::text::error::{ParseError, TextLine, lines, whole};

const NAME: &str = "process_memory";
const BYTES_MAX: usize = 16 << 10;
/// Bytes of the kB of procfs.
const KIB: u64 = 1024;

/// Memory of a process, bytes (proc_pid_smaps(5)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Pages that no other process has mapped (Private_Clean and Private_Dirty): what another process like it would need.
    pub private: u64,
    /// Its share of all its pages: each shared page is divided among the processes that have mapped it.
    pub proportional: u64,
}

/// Reads the memory of a process. It takes the right to trace the process (ptrace(2), PTRACE_MODE_READ).
pub fn read_process_memory(root: &Root, pid: u32) -> Reading<ProcessMemory> {
    reading_of(&root.read_process(pid, "smaps_rollup", BYTES_MAX, Some("CAP_SYS_PTRACE")), parse)
}

/// Parses the lines "Name:   NUMBER kB". The first line is the range of addresses.
fn parse(bytes: &[u8]) -> Result<ProcessMemory, ParseError> {
    const EXPECTED: &str = "a name, a number and kB";
    let text = whole(NAME, bytes)?;
    let [mut clean, mut dirty, mut proportional] = [None; 3];
    for (place, line) in lines(NAME, &text) {
        let mut words = line.split_ascii_whitespace();
        let field = match words.next() {
            Some("Private_Clean:") => &mut clean,
            Some("Private_Dirty:") => &mut dirty,
            Some("Pss:") => &mut proportional,
            _ => continue,
        };
        let number: u64 = place.number(EXPECTED, words.next())?;
        if words.next() != Some("kB") {
            return Err(place.expected(EXPECTED, line));
        }
        *field = Some(number.saturating_mul(KIB));
    }
    match (clean, dirty, proportional) {
        (Some(clean), Some(dirty), Some(proportional)) => Ok(ProcessMemory { private: u64::saturating_add(clean, dirty), proportional }),
        _ => Err(TextLine::new(NAME, text.lines().count() + 1).expected("Private_Clean, Private_Dirty and Pss", "")),
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
        assert_eq!(parse(REAL.as_bytes()), Ok(ProcessMemory { private: (276 + 1096) << 10, proportional: 3207 << 10 }));
    }

    #[test]
    fn damaged_input_is_refused_or_bounded() {
        for end in 0..REAL.len() {
            // All that is needed stands before "Referenced".
            let cut = parse(&REAL.as_bytes()[..end]);
            assert!(cut.is_err() || end > REAL.find("1096").unwrap(), "{end}: {cut:?}");
        }
        let with = |from: &str, to: &str| parse(REAL.replace(from, to).as_bytes());
        for wrong in [with("276 kB", "276 MB"), with("1096", "-1"), with("3207", "x"), with("Pss:", "Pssx:"), with("276 kB", "")] {
            assert!(wrong.is_err(), "{wrong:?}");
        }
        assert_eq!(with("1096", "18446744073709551615").map(|memory| memory.private), Ok(u64::MAX));
        assert!(with("1096", "18446744073709551616").is_err());
        assert!(parse(b"").is_err() && parse(b"\xff\xfe\n").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn this_process_has_memory_and_no_process_has_none() {
        let root = Root::default();
        let own = read_process_memory(&root, std::process::id());
        // A kernel without CONFIG_PROC_PAGE_MONITOR has no such file.
        assert!(own.lack().is_some() || own.ok().is_some_and(|memory| memory.private > 0 && memory.proportional > 0), "{own:?}");
        assert!(read_process_memory(&root, u32::MAX - 1).ok().is_none());
    }
}
