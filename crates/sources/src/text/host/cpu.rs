//! CPU times of every online core, from `/proc/stat`.

use chokepoint_model::observation::{CoreTimes, CpuTimes, Observation};
use chokepoint_recording::{Entry, Outcome};

use crate::root::reading_of;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};

const NAME: &str = "cpu";
/// Most bytes of `/proc/stat`. With thousands of interrupt vectors its line of interrupts is long.
pub(crate) const BYTES_MAX: usize = 4 << 20;

/// Once a second for the host: the lines "cpuN ..." of `/proc/stat` (proc_stat(5)).
pub(crate) const CPU: Source =
    Source { name: NAME, scope: ScopeKind::Host, cadence: Cadence::Slow, needs: None, read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    only_item(match context.root.read("proc/stat", BYTES_MAX, None) {
        // The rest (interrupts by number) is most of the file and is not used.
        Outcome::Ok(bytes) => {
            Outcome::Ok(bytes.split_inclusive(|&byte| byte == b'\n').filter(|line| line.starts_with(b"cpu")).flatten().copied().collect())
        }
        lack => lack,
    })
}

/// The cores in `/proc/stat`, in the kernel's list format.
pub(crate) fn online(bytes: &[u8]) -> String {
    let cores = parse(bytes).map(|times| times.cores).unwrap_or_default();
    cores.iter().map(|(core, _)| core.to_string()).collect::<Vec<_>>().join(",")
}

/// Parses the lines "cpuN user nice system idle [iowait irq softirq steal [guest guest_nice]]" and skips all others. Columns that an older kernel does not
/// print are zero. Guest times are ignored: user and nice include them.
pub(crate) fn parse(bytes: &[u8]) -> Result<CpuTimes, ParseError> {
    let text = whole(NAME, bytes)?;
    let mut cores: Vec<(u32, CoreTimes)> = Vec::new();
    for (place, line) in lines(NAME, &text) {
        let mut tokens = line.split_ascii_whitespace();
        let Some(core) = tokens.next().and_then(|name| name.strip_prefix("cpu")).filter(|core| !core.is_empty()) else { continue };
        let core = place.number("cpu and a core's number", Some(core))?;
        if cores.iter().any(|(seen, _)| *seen == core) {
            return Err(place.expected("each core once", line));
        }
        cores.push((core, core_times(place, tokens)?));
    }
    if cores.is_empty() {
        return Err(TextLine::new(NAME, text.lines().count()).expected("a line cpuN", &text));
    }
    Ok(CpuTimes { cores })
}

fn core_times<'a>(place: TextLine, mut tokens: impl Iterator<Item = &'a str>) -> Result<CoreTimes, ParseError> {
    // A huge number must not overflow the sums of the model.
    const TICKS_MAX: u64 = u64::MAX >> 4;
    const EXPECTED: &str = "user, nice, system and idle ticks and more";
    let mut columns = [0u64; 8];
    for (at, column) in columns.iter_mut().enumerate() {
        match tokens.next() {
            None if at >= 4 => break,
            token => {
                *column = place.number(EXPECTED, token)?;
                if *column > TICKS_MAX {
                    return Err(place.expected(EXPECTED, token.unwrap_or("")));
                }
            }
        }
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = columns;
    Ok(CoreTimes { user, nice, system, idle, iowait, irq, softirq, steal })
}

fn put(observation: &mut Observation, entry: &Entry) {
    observation.cpu.push(entry.at_us, reading_of(&entry.outcome, parse));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offline_cores_are_missing_and_guest_time_counts_once() {
        let times = parse(include_bytes!("../../../tests/data/text/variants/stat-4.19-offline-core")).unwrap();
        assert_eq!(times.cores.iter().map(|(core, _)| *core).collect::<Vec<_>>(), [0, 2, 3]);
        let (_, core) = times.cores[1];
        assert_eq!(core, CoreTimes { user: 1000, nice: 20, system: 300, idle: 9000, iowait: 5, irq: 0, softirq: 40, steal: 7 });
        assert_eq!(core.busy(), 1367);
    }

    #[test]
    fn old_kernels_print_fewer_columns() {
        let times = parse(b"cpu  8 8 8 8\ncpu0 1 2 3 4\n").unwrap();
        assert_eq!(times.cores, [(0, CoreTimes { user: 1, nice: 2, system: 3, idle: 4, ..CoreTimes::default() })]);
        assert_eq!(parse(b"cpu0 1 2 3 4 5 6 7\n").unwrap().cores[0].1.softirq, 7);
    }

    #[test]
    fn another_file_is_an_error() {
        for wrong in [
            "",
            "\n",
            "cpu  1 2 3 4\n",
            "cpu0 1 2 3\n",
            "cpu0 1 2 3 4",
            "cpux 1 2 3 4\n",
            "cpu0 1 2 -3 4\n",
            "cpu0 1 1 1 1\ncpu0 1 1 1 1\n",
        ] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        assert!(parse(format!("cpu0 1 2 3 {}\n", u64::MAX).as_bytes()).is_err());
    }
}
