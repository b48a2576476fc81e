//! Packet processing of each core, from `/proc/net/softnet_stat`: drops at a full netdev backlog, and exhausted time slices.

use chokepoint_model::observation::{Observation, SoftnetRow};
use chokepoint_recording::Entry;

use crate::root::reading_of;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};

const NAME: &str = "softnet";
/// 8192 cores (the kernel's maximum) with 15 columns take 1.1 MiB.
const BYTES_MAX: usize = 2 << 20;

/// Once a second for the host: every namespace shows the same counters (net/core/net-procfs.c).
pub(crate) const SOFTNET: Source =
    Source { name: NAME, scope: ScopeKind::Host, cadence: Cadence::Slow, needs: None, read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    only_item(context.root.read("proc/thread-self/net/softnet_stat", BYTES_MAX, None))
}

/// Column of the backlog's length, since Linux 5.7.
const BACKLOG: usize = 11;
/// Column of the core's number, since Linux 5.7. Before, the rows of offline cores are missing.
const CORE: usize = 12;

/// Parses one row for each core, hexadecimal columns without a header: 9 to 11 before Linux 5.7, 13 since, 15 since 6.4.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<SoftnetRow>, ParseError> {
    let text = whole(NAME, bytes)?;
    let mut rows: Vec<SoftnetRow> = Vec::new();
    for (index, (place, line)) in lines(NAME, &text).enumerate() {
        let columns = columns(place, line)?;
        let cpu = columns.get(CORE).copied().unwrap_or(index as u64);
        let cpu = u32::try_from(cpu).map_err(|_| place.expected("a core's number in column 13", line))?;
        let backlog = (columns.len() > CORE).then(|| columns[BACKLOG]);
        rows.push(SoftnetRow { cpu, processed: columns[0], dropped: columns[1], time_squeeze: columns[2], backlog });
    }
    Ok(rows)
}

fn columns(place: TextLine, line: &str) -> Result<Vec<u64>, ParseError> {
    let columns: Vec<u64> =
        line.split_ascii_whitespace().map(|token| place.hexadecimal("hexadecimal columns", Some(token))).collect::<Result<_, _>>()?;
    if columns.len() < 9 { Err(place.expected("at least nine columns", line)) } else { Ok(columns) }
}

fn put(observation: &mut Observation, entry: &Entry) {
    observation.softnet.push(entry.at_us, reading_of(&entry.outcome, parse));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_linux_5_7_rows_are_numbered_by_position() {
        let rows = parse(include_bytes!("../../../tests/data/text/variants/softnet-4.19-11-columns")).unwrap();
        assert_eq!(rows.iter().map(|row| row.cpu).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(rows[2], SoftnetRow { cpu: 2, processed: 0x00a1_b2c3, dropped: 0x1f, time_squeeze: 0x2a, backlog: None });
    }

    #[test]
    fn since_linux_5_7_a_column_names_the_core() {
        let rows = parse(include_bytes!("../../../tests/data/text/variants/softnet-5.10-offline-core")).unwrap();
        assert_eq!(rows.iter().map(|row| row.cpu).collect::<Vec<_>>(), [0, 2, 10]);
        assert_eq!(rows[2].backlog, Some(0x12));
        assert_eq!(rows[2].dropped, 3);
    }

    #[test]
    fn another_file_is_an_error() {
        for wrong in ["", "\n", "00000000\n", "0 0 0 0 0 0 0 0 g\n", "0 0 0 0 0 0 0 0 0", "0 0 0 0 0 0 0 0 0 0 0 0 fffffffff\n"] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
