//! The conntrack table of one namespace: its number of entries (`nf_conntrack_count`) and its counters for each CPU (`/proc/net/stat/nf_conntrack`).

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;

use chokepoint_model::observation::{ConntrackCpu, Counters, Observation};
use chokepoint_model::reading::Reading;
use chokepoint_recording::{Entry, Outcome};

use crate::root::{Root, WHY_MISSING, reading_of};
use crate::scope::{netns_view, put_netns};
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};

const COUNT: &str = "conntrack_count";
const CPUS: &str = "conntrack_cpus";
pub(crate) const COUNT_FILE: &str = "proc/sys/net/netfilter/nf_conntrack_count";
/// One number.
const COUNT_BYTES_MAX: usize = 64;
/// One row of about 160 bytes for each possible CPU, 8192 at most.
const CPUS_BYTES_MAX: usize = 2 << 20;

/// 20 times a second in each namespace: `nf_conntrack_count`, which counts this namespace's entries while `nf_conntrack_max` holds for all
/// of them (Documentation/networking/nf_conntrack-sysctl.rst). Expired entries count until they are collected.
pub(crate) const CONNTRACK_COUNT: Source = Source {
    name: COUNT,
    scope: ScopeKind::Netns,
    cadence: Cadence::Fast,
    needs: None,
    read: read_count,
    put: put_count,
    redact: Redact::None,
};

/// Once a second in each namespace: `/proc/net/stat/nf_conntrack`.
pub(crate) const CONNTRACK_CPUS: Source = Source {
    name: CPUS,
    scope: ScopeKind::Netns,
    cadence: Cadence::Slow,
    needs: None,
    read: read_cpus,
    put: put_cpus,
    redact: Redact::None,
};

fn read_count(context: &ReadContext<'_>) -> Items {
    if context.root.is_live()
        && let Some(bytes) = read_kept()
    {
        return only_item(Outcome::Ok(bytes));
    }
    only_item(explain_missing(context.root, context.root.read(COUNT_FILE, COUNT_BYTES_MAX, None)))
}

thread_local! {
    /// The open file of the thread's namespace, which the thread never leaves (netns::enter). It is read 20 times a second, and opening it costs ten times as
    /// much as reading it.
    static KEPT: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// Reads the kept open file and opens it first if needed; nothing if that fails, such as after conntrack came into use or went out of use.
fn read_kept() -> Option<Vec<u8>> {
    KEPT.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Root::default().open(COUNT_FILE).ok();
        }
        let mut bytes = vec![0; COUNT_BYTES_MAX];
        match kept.as_ref()?.read_at(&mut bytes, 0) {
            Ok(length) if length > 0 => {
                bytes.truncate(length);
                Some(bytes)
            }
            _ => {
                *kept = None;
                None
            }
        }
    })
}

fn read_cpus(context: &ReadContext<'_>) -> Items {
    only_item(explain_missing(context.root, context.root.read("proc/thread-self/net/stat/nf_conntrack", CPUS_BYTES_MAX, None)))
}

/// Explains a missing file: conntrack is not in use, or the kernel has no files for it in /proc/net.
pub(crate) fn explain_missing(root: &Root, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Absent(why, _) if why == WHY_MISSING => {
            let in_use = root.exists(COUNT_FILE);
            let why = if in_use { "the kernel has no CONFIG_NF_CONNTRACK_PROCFS" } else { "conntrack is not in use in this namespace" };
            Outcome::Absent(why.to_owned(), None)
        }
        other => other,
    }
}

/// Parses the one decimal number.
pub(crate) fn parse_count(bytes: &[u8]) -> Result<u64, ParseError> {
    let text = whole(COUNT, bytes)?;
    TextLine::new(COUNT, 1).number("a number of entries", Some(text.trim_end()))
}

/// Parses a header of names and one row of hexadecimal columns for each possible CPU. The columns depend on the kernel (Linux 5.9 replaced "searched" by
/// "clashres"), so they are identified by name. If a header repeats a name, its first column counts. "entries" is the value of the whole namespace in every
/// row.
pub(crate) fn parse_cpus(bytes: &[u8]) -> Result<Vec<ConntrackCpu>, ParseError> {
    let text = whole(CPUS, bytes)?;
    let mut lines = lines(CPUS, &text);
    let names: Vec<&str> = lines.next().map(|(_, line)| line.split_ascii_whitespace().collect()).unwrap_or_default();
    if !names.contains(&"entries") {
        return Err(TextLine::new(CPUS, 1).expected("a header that begins with \"entries\"", text.lines().next().unwrap_or("")));
    }
    let mut rows = Vec::new();
    for (place, line) in lines {
        let values: Vec<&str> = line.split_ascii_whitespace().collect();
        if values.len() != names.len() {
            return Err(place.expected("as many columns as the header has", line));
        }
        let mut counters = Vec::with_capacity(names.len());
        // In reverse order: the first column of a name counts.
        for (name, value) in names.iter().zip(values).rev() {
            counters.push(((*name).to_owned(), place.hexadecimal("hexadecimal columns", Some(value))?));
        }
        let mut counters: Counters<u64> = counters.into_iter().collect();
        if let Some(ConntrackCpu { counters: first }) = rows.first() {
            counters.share_names(first);
        }
        rows.push(ConntrackCpu { counters });
    }
    if rows.is_empty() {
        return Err(TextLine::new(CPUS, 2).expected("a row for each CPU", ""));
    }
    Ok(rows)
}

fn put_count(observation: &mut Observation, entry: &Entry) {
    put_netns(observation, entry, |netns| &mut netns.conntrack_count, parse_count);
}

fn put_cpus(observation: &mut Observation, entry: &Entry) {
    if let Some(netns) = netns_view(observation, entry) {
        let mut reading = reading_of(&entry.outcome, parse_cpus);
        if let (Reading::Ok(rows), Some([first, ..])) = (&mut reading, netns.conntrack_cpus.last().map(Vec::as_slice)) {
            rows.iter_mut().for_each(|row| row.counters.share_names(&first.counters));
        }
        netns.conntrack_cpus.push(entry.at_us, reading);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_identified_by_name_on_every_kernel() {
        let old = parse_cpus(include_bytes!("../../../tests/data/text/variants/nf_conntrack-stat-4.19")).unwrap();
        assert_eq!(old.len(), 2);
        assert_eq!((old[0].counters["searched"], old[0].counters["drop"], old[1].counters["early_drop"]), (0x1d, 0x2f, 0x5));
        let newer = parse_cpus(include_bytes!("../../../tests/data/text/variants/nf_conntrack-stat-5.10")).unwrap();
        assert_eq!((newer[0].counters["clashres"], newer[1].counters["drop"]), (3, 0xab));
        assert!(newer[0].counters.get("searched").is_none());
    }

    #[test]
    fn of_a_repeated_name_the_first_column_counts() {
        let rows = parse_cpus(b"entries drop drop\n01 02 03\n").unwrap();
        assert_eq!(rows[0].counters["drop"], 2);
    }

    #[test]
    fn a_row_that_does_not_fit_its_header_is_an_error() {
        for wrong in
            ["", "\n", "entries drop\n", "found drop\n1 2\n", "entries drop\n1\n", "entries drop\n1 2 3\n", "entries\nx\n", "entries\n1"]
        {
            assert!(parse_cpus(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        for wrong in ["", "\n", "1", "-1\n", "1 2\n", "99999999999999999999\n"] {
            assert!(parse_count(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        assert_eq!(parse_count(b"262144\n"), Ok(262_144));
    }

    #[test]
    fn a_missing_file_is_explained() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::new(tree.path());
        let missing = || Outcome::Absent(WHY_MISSING.to_owned(), None);
        assert_eq!(explain_missing(&root, missing()), Outcome::Absent("conntrack is not in use in this namespace".to_owned(), None));
        std::fs::create_dir_all(tree.path().join("proc/sys/net/netfilter")).unwrap();
        std::fs::write(tree.path().join(COUNT_FILE), "0\n").unwrap();
        assert_eq!(explain_missing(&root, missing()), Outcome::Absent("the kernel has no CONFIG_NF_CONNTRACK_PROCFS".to_owned(), None));
    }
}
