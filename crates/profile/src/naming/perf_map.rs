//! Names of just-in-time compiled functions, from the perf map of a process ("/tmp/perf-PID.map", tools/perf/Documentation/jit-interface.txt).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use chokepoint_confined::{ReadError, Reader, Readers};
use chokepoint_foreign::{Files, Rights};
use serde::{Deserialize, Serialize};

use crate::host;

/// Maximum bytes read from one map. A runtime with tens of thousands of functions writes a few megabytes.
const MAP_BYTES_MAX: u64 = 16 << 20;
/// Maximum bytes read from the maps of all processes together. Any running process may have one; this much takes about a second.
const ALL_BYTES_MAX: u64 = 64 << 20;
/// Maximum bytes kept of a line. Names this long are cut anyway.
const LINE_BYTES_MAX: usize = 4096;
/// Maximum bytes of names given to addresses. A function has one name but may have as many addresses as there are samples.
const NAME_BYTES_MAX: usize = 32 << 20;

/// What may still be read and kept of the maps of all processes together.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct PerfMapBudget {
    bytes: u64,
    names: usize,
    /// Processes whose map was not read completely, or whose names were not all kept.
    cut: usize,
}

impl PerfMapBudget {
    pub(crate) fn new() -> Self {
        Self { bytes: ALL_BYTES_MAX, names: NAME_BYTES_MAX, cut: 0 }
    }

    /// This, but no more than there was before.
    fn within(self, before: Self) -> Self {
        Self { bytes: self.bytes.min(before.bytes), names: self.names.min(before.names), cut: self.cut.clamp(before.cut, before.cut + 2) }
    }

    /// What was left out, in a sentence.
    pub(crate) fn note(&self) -> Option<String> {
        (self.cut > 0).then(|| {
            format!(
                "compiled code of {} processes may have no names: at most {} MiB of a perf map are read, and {} MiB of all maps together",
                self.cut,
                MAP_BYTES_MAX >> 20,
                ALL_BYTES_MAX >> 20
            )
        })
    }
}

/// The names at these addresses of a process, from the map in the `/tmp` that the process sees, or from ours if the process has ended. Like perf, it trusts
/// maps written by the process's user, root or the user who runs this program. It opens them with the rights of the process.
///
/// # Errors
/// The map's reader was ended.
pub(crate) fn names(
    pid: u32,
    addresses: &[u64],
    budget: &mut PerfMapBudget,
    readers: &mut Readers,
) -> Result<Vec<(u64, String)>, ReadError> {
    let inside = host::pid_inside(pid).unwrap_or(pid);
    let proc = Path::new("/proc");
    let maps = [(Files::of_process(proc, pid), inside), (Files::of_directory(Path::new("/")), pid)];
    let own = Rights::of_process(proc, std::process::id());
    let Ok(rights) = Rights::of_process(proc, pid).or(own) else { return Ok(Vec::new()) };
    for (files, pid) in maps {
        let (Ok(files), path) = (files, format!("/tmp/perf-{pid}.map")) else { continue };
        let Ok(Ok(file)) = rights.run(|| files.open_owned(&path, rights.uid())) else { continue };
        match readers.read::<PerfMapReader>((addresses.to_vec(), *budget), vec![file]) {
            Ok((names, after)) => {
                *budget = after.within(*budget);
                return Ok(names);
            }
            // It cannot be read to its end.
            Err(ReadError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Vec::new())
}

/// Reads a map, which anybody may have written. It is asked for addresses, within a budget.
pub(crate) struct PerfMapReader;

impl Reader for PerfMapReader {
    const NAME: &'static str = "perf map";
    type Question = (Vec<u64>, PerfMapBudget);
    type Answer = (Vec<(u64, String)>, PerfMapBudget);

    fn read((addresses, mut budget): Self::Question, files: Vec<File>) -> Result<Self::Answer, String> {
        let mut map = PerfMap::new(&addresses);
        for file in files {
            map.take(file, &mut budget).map_err(|error| error.to_string())?;
        }
        let names = map.named(&mut budget).filter_map(|(address, name)| Some((address, name?.to_owned()))).collect();
        Ok((names, budget))
    }
}

/// The functions of one process that contain given addresses.
#[derive(Debug)]
pub(crate) struct PerfMap {
    /// In ascending order.
    addresses: Vec<u64>,
    /// For each address, the last function that begins at or before it but behind the previous address. Of several at one start, the last in the file counts.
    functions: Vec<Option<Function>>,
}

#[derive(Debug, Clone)]
struct Function {
    start: u64,
    end: u64,
    name: String,
}

impl PerfMap {
    fn new(addresses: &[u64]) -> Self {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        addresses.dedup();
        let functions = vec![None; addresses.len()];
        Self { addresses, functions }
    }

    #[cfg(test)]
    pub(crate) fn parse(text: &[u8], addresses: &[u64]) -> Self {
        let mut map = Self::new(addresses);
        map.lines(text).expect("memory can be read");
        map
    }

    fn take(&mut self, file: File, bounds: &mut PerfMapBudget) -> io::Result<()> {
        let most = MAP_BYTES_MAX.min(bounds.bytes);
        let mut file = file.take(most);
        let read = self.lines(BufReader::with_capacity(64 << 10, &mut file));
        bounds.bytes -= most - file.limit();
        // One more byte shows whether the map was read completely.
        let is_cut = file.limit() == 0 && file.into_inner().read(&mut [0])? > 0;
        bounds.cut += usize::from(is_cut);
        read
    }

    /// Parses lines of "START SIZE name", with hexadecimal numbers. Others are skipped, and so are functions that contain none of the addresses.
    fn lines(&mut self, mut text: impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = text.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(());
            }
            let is_whole = line.ends_with(b"\n");
            self.line(&String::from_utf8_lossy(&line));
            if !is_whole {
                text.skip_until(b'\n')?;
            }
        }
    }

    fn line(&mut self, line: &str) {
        let Some((start, end, name)) = fields(line) else { return };
        let first = self.addresses.partition_point(|address| *address < start);
        let Some(known) = self.functions.get_mut(first) else { return };
        // A compiler that moves a function writes it again. Of those at one address the last counts.
        if known.as_ref().is_some_and(|known| known.start > start) {
            return;
        }
        let known = known.get_or_insert_with(|| Function { start, end, name: String::new() });
        (known.start, known.end) = (start, end);
        known.name.clear();
        known.name.push_str(name);
    }

    #[cfg(test)]
    pub(crate) fn find(&self, address: u64) -> Option<&str> {
        let behind = self.addresses.partition_point(|known| *known <= address);
        let function = self.functions[..behind].iter().rev().find_map(Option::as_ref)?;
        (function.start <= address && address < function.end).then_some(function.name.as_str())
    }

    /// Each address with its name, in ascending order, as long as there is room for names.
    pub(crate) fn named<'a>(&'a self, bounds: &'a mut PerfMapBudget) -> impl Iterator<Item = (u64, Option<&'a str>)> {
        let (mut last, mut is_cut) = (None, false);
        self.addresses.iter().zip(&self.functions).map(move |(address, function)| {
            last = function.as_ref().or(last);
            let name = last.filter(|function| *address < function.end).map(|function| function.name.as_str());
            let kept = name.filter(|name| name.len() <= bounds.names);
            bounds.names -= kept.map_or(0, str::len);
            if name.is_some() && kept.is_none() && !is_cut {
                (is_cut, bounds.cut) = (true, bounds.cut + 1);
            }
            (*address, kept)
        })
    }
}

fn fields(line: &str) -> Option<(u64, u64, &str)> {
    let mut fields = line.splitn(3, ' ');
    let hex = |field: &str| u64::from_str_radix(field.trim_start_matches("0x"), 16).ok();
    let (start, size) = (hex(fields.next()?)?, hex(fields.next()?)?);
    let name = fields.next()?.trim();
    (!name.is_empty()).then_some((start, start.saturating_add(size), name))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    const TEXT: &[u8] = b"1000 20 LazyCompile:*f /a b.js:1\n0x1040 10 g\nx y z\n1040 8 g2\n2000 5\n";

    #[test]
    fn addresses_get_the_names_of_a_map() {
        let map = PerfMap::parse(TEXT, &[0x1048, 0x1000, 0x101f, 0x1020, 0x1047, 0]);
        assert_eq!(map.find(0x1000), Some("LazyCompile:*f /a b.js:1"));
        assert_eq!(map.find(0x101f), Some("LazyCompile:*f /a b.js:1"));
        assert_eq!(map.find(0x1020), None);
        assert_eq!(map.find(0x1047), Some("g2"));
        assert_eq!(map.find(0x1048), None);
        assert_eq!(map.find(0), None);
        let mut bounds = PerfMapBudget::new();
        let named: Vec<_> = map.named(&mut bounds).collect();
        assert!(named.len() == 6 && named.iter().all(|(address, name)| map.find(*address) == *name), "{named:?}");
        assert_eq!(bounds.note(), None);
    }

    #[test]
    fn a_process_without_a_map_has_no_names() {
        assert_eq!(names(u32::MAX, &[1], &mut PerfMapBudget::new(), &mut Readers::default()).unwrap(), []);
    }

    #[test]
    fn all_maps_together_are_bounded_and_a_note_says_so() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"10 5 near\n").unwrap();
        file.set_len(MAP_BYTES_MAX + 1).unwrap();
        let mut bounds = PerfMapBudget::new();
        let maps = ALL_BYTES_MAX / MAP_BYTES_MAX + 1;
        for number in 0..maps {
            std::io::Seek::rewind(&mut file).unwrap();
            let mut map = PerfMap::new(&[0x12]);
            map.take(file.try_clone().unwrap(), &mut bounds).unwrap();
            assert_eq!(map.find(0x12), (number + 1 < maps).then_some("near"), "map {number}");
        }
        assert_eq!(bounds.bytes, 0);
        let note = bounds.note().unwrap();
        assert!(note.contains(&format!("of {maps} processes")), "{note}");
    }

    #[test]
    fn a_long_name_at_many_addresses_is_bounded_and_a_note_says_so() {
        let text = format!("1 ffffffff {}", "a".repeat(2000));
        let addresses: Vec<u64> = (1..=100).collect();
        let map = PerfMap::parse(text.as_bytes(), &addresses);
        let mut bounds = PerfMapBudget { names: 5000, ..PerfMapBudget::new() };
        let kept = map.named(&mut bounds).filter(|(_, name)| name.is_some()).count();
        assert_eq!((kept, bounds.cut), (2, 1));
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_parsed(text in "[0-9a-fx \n\\PC]{0,80}", address: u64) {
            PerfMap::parse(text.as_bytes(), &[address]).find(address);
        }

        #[test]
        fn each_address_has_the_nearest_function_of_the_last_line_for_it(
            lines in proptest::collection::vec((0u64..20, 0u64..8), 0..20),
            addresses in proptest::collection::vec(0u64..30, 1..12),
        ) {
            let text: String = lines.iter().enumerate().map(|(at, (start, size))| format!("{start:x} {size:x} f{at}\n")).collect();
            let map = PerfMap::parse(text.as_bytes(), &addresses);
            for address in addresses {
                let nearest = lines.iter().enumerate().filter(|(_, (start, _))| *start <= address).max_by_key(|(at, (start, _))| (*start, *at));
                let expected = nearest.filter(|(_, (start, size))| address < start + size).map(|(at, _)| format!("f{at}"));
                prop_assert_eq!(map.find(address), expected.as_deref());
            }
        }
    }
}
