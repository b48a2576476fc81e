//! Names of functions that a just-in-time compiler made: the perf map of a process ("/tmp/perf-PID.map", tools/perf/Documentation/jit-interface.txt).

use std::io::Read;
use std::path::Path;

use chokepoint_foreign::{Files, Rights};

use crate::host;

/// Bytes of a map at most.
const MAP_BYTES_MAX: u64 = 64 << 20;

/// The functions of one process.
#[derive(Debug, Default)]
pub(crate) struct PerfMap {
    /// Start, behind the end, name, in the order of their starts; later lines win.
    functions: Vec<(u64, u64, String)>,
}

impl PerfMap {
    /// Reads the map of a process where it sees `/tmp`, or where we do, which is all that is left once it is gone. As perf does, a map is believed
    /// that its process's user, root or who runs this program wrote; it is read with the rights of the process.
    pub(crate) fn read(pid: u32) -> Self {
        let inside = host::pid_inside(pid).unwrap_or(pid);
        let proc = Path::new("/proc");
        let maps = [(Files::of_process(proc, pid), inside), (Files::of_directory(Path::new("/")), pid)];
        let own = Rights::of_process(proc, std::process::id());
        let Ok(rights) = Rights::of_process(proc, pid).or(own) else { return Self::default() };
        let found = maps.into_iter().find_map(|(files, pid)| {
            let (files, path) = (files.ok()?, format!("/tmp/perf-{pid}.map"));
            rights.run(|| read(&files, &path, rights.uid())).ok()?
        });
        found.map_or_else(Self::default, |bytes| Self::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// "START SIZE name" line by line, numbers in hexadecimal; others are left out.
    pub(crate) fn parse(text: &str) -> Self {
        let mut functions: Vec<_> = text.lines().filter_map(line).collect();
        functions.sort_by_key(|(start, ..)| *start);
        // A compiler that moved a function writes it again: of those at one address the last counts.
        functions.reverse();
        functions.dedup_by_key(|(start, ..)| *start);
        functions.reverse();
        Self { functions }
    }

    /// The function at an address.
    pub(crate) fn find(&self, address: u64) -> Option<&str> {
        let behind = self.functions.partition_point(|(start, ..)| *start <= address);
        let (_, end, name) = self.functions.get(behind.checked_sub(1)?)?;
        (address < *end).then_some(name.as_str())
    }
}

fn read(files: &Files, path: &str, uid: u32) -> Option<Vec<u8>> {
    let file = files.open_owned(path, uid).ok()?;
    let mut bytes = Vec::new();
    file.take(MAP_BYTES_MAX).read_to_end(&mut bytes).ok().map(|_| bytes)
}

fn line(line: &str) -> Option<(u64, u64, String)> {
    let mut fields = line.splitn(3, ' ');
    let hex = |field: &str| u64::from_str_radix(field.trim_start_matches("0x"), 16).ok();
    let (start, size) = (hex(fields.next()?)?, hex(fields.next()?)?);
    let name = fields.next()?.trim();
    (!name.is_empty()).then(|| (start, start.saturating_add(size), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn functions_of_a_map() {
        let map = PerfMap::parse("1000 20 LazyCompile:*f /a b.js:1\n0x1040 10 g\nx y z\n1040 8 g2\n2000 5\n");
        assert_eq!(map.find(0x1000), Some("LazyCompile:*f /a b.js:1"));
        assert_eq!(map.find(0x101f), Some("LazyCompile:*f /a b.js:1"));
        assert_eq!(map.find(0x1020), None);
        assert_eq!(map.find(0x1047), Some("g2"));
        assert_eq!(map.find(0x1048), None);
        assert_eq!(map.find(0), None);
    }

    #[test]
    fn a_process_without_a_map_has_none() {
        assert!(PerfMap::read(u32::MAX).functions.is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "[0-9a-fx \n\\PC]{0,80}", address: u64) {
            PerfMap::parse(&text).find(address);
        }
    }
}
