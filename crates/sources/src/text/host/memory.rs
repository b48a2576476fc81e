//! Memory of the host, from `/proc/meminfo`.

use chokepoint_model::observation::{Memory, Observation};
use chokepoint_recording::Entry;

use crate::root::reading_of;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};

const NAME: &str = "memory";
const BYTES_MAX: usize = 64 << 10;

/// At both ends for the host: `/proc/meminfo` (proc_meminfo(5)).
pub(crate) const MEMORY: Source =
    Source { name: NAME, scope: ScopeKind::Host, cadence: Cadence::Ends, needs: None, read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    only_item(context.root.read("proc/meminfo", BYTES_MAX, None))
}

/// Parses "Name: N kB" by name. MemAvailable exists since Linux 3.14. Older kernels give an error: an estimate would be a guess.
pub(crate) fn parse(bytes: &[u8]) -> Result<Memory, ParseError> {
    const EXPECTED: &str = "a number of kB";
    let text = whole(NAME, bytes)?;
    let mut found = [None::<u64>; 4];
    for (place, line) in lines(NAME, &text) {
        let Some((name, value)) = line.split_once(':') else { return Err(place.expected("a name, a colon and a value", line)) };
        let Some(at) = ["MemTotal", "MemAvailable", "SwapTotal", "SwapFree"].iter().position(|wanted| *wanted == name) else { continue };
        let kilobytes: u64 = place.number(EXPECTED, value.trim().strip_suffix(" kB"))?;
        found[at] = Some(kilobytes.checked_mul(1024).ok_or_else(|| place.expected(EXPECTED, value))?);
    }
    let [Some(total), Some(available), Some(swap_total), Some(swap_free)] = found else {
        let place = TextLine::new(NAME, text.lines().count() + 1);
        return Err(place.expected("MemTotal, MemAvailable, SwapTotal and SwapFree", ""));
    };
    Ok(Memory { total, available, swap_total, swap_free })
}

fn put(observation: &mut Observation, entry: &Entry) {
    observation.memory.push(entry.at_us, reading_of(&entry.outcome, parse));
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "MemTotal:        8123456 kB\nMemFree:  1 kB\nMemAvailable:    4000000 kB\nSwapCached: 0 kB\nSwapTotal: 16 kB\nSwapFree: 4 kB\nHugePages_Total:       0\n";

    #[test]
    fn kilobytes_are_parsed_by_name() {
        let memory = parse(TEXT.as_bytes()).unwrap();
        assert_eq!(memory, Memory { total: 8_123_456 << 10, available: 4_000_000 << 10, swap_total: 16 << 10, swap_free: 4 << 10 });
    }

    #[test]
    fn a_missing_name_or_unit_is_an_error() {
        for name in ["MemTotal", "MemAvailable", "SwapTotal", "SwapFree"] {
            assert!(parse(TEXT.replace(name, "Other").as_bytes()).is_err(), "{name}");
        }
        assert!(parse(TEXT.replace("4 kB", "4").as_bytes()).is_err());
        assert!(parse(TEXT.replace("8123456", &u64::MAX.to_string()).as_bytes()).is_err());
    }
}
