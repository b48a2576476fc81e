//! The executable mappings of a process: parsed from `/proc/PID/maps` (proc_pid_maps(5)), then updated by later records.

/// Maximum number of mappings of one process; `vm.max_map_count` is 65,530 by default.
const MAPPINGS_MAX: usize = 1 << 16;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Backing {
    /// A file: its device, its inode and the path that the process sees.
    File { device: (u32, u32), inode: u64, path: String },
    /// The vDSO.
    Vdso,
    /// Executable memory without a file, such as the output of a just-in-time compiler.
    Anonymous,
}

impl Backing {
    /// Paths that name no file count as anonymous (proc_pid_maps(5): pseudo-paths, shared memory, memfd).
    pub(crate) fn new(device: (u32, u32), inode: u64, path: &str) -> Self {
        let memory = ["/memfd:", "/dev/zero", "/SYSV", "//anon", "/dev/shm/"];
        if path == "[vdso]" {
            Self::Vdso
        } else if path.starts_with('/') && !memory.iter().any(|prefix| path.starts_with(prefix)) {
            Self::File { device, inode, path: path.to_owned() }
        } else {
            Self::Anonymous
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    pub(crate) backing: Backing,
}

/// Executable mappings in address order, without overlaps.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Mappings(Vec<Mapping>);

impl Mappings {
    /// Parses the text of `/proc/PID/maps`. Malformed lines are skipped.
    pub(crate) fn parse(text: &str) -> Self {
        let mut mappings = Self::default();
        // The kernel writes them in this order. In any other order each insertion would move those behind it.
        let mut all: Vec<Mapping> = text.lines().filter_map(line).collect();
        all.sort_by_key(|mapping| mapping.start);
        all.into_iter().for_each(|mapping| mappings.insert(mapping));
        mappings
    }

    /// Adds a mapping. It replaces the parts of others that it overlaps.
    pub(crate) fn insert(&mut self, new: Mapping) {
        if new.start >= new.end || self.0.len() >= MAPPINGS_MAX {
            return;
        }
        if self.0.last().is_none_or(|last| last.end <= new.start) {
            return self.0.push(new);
        }
        // Only overlapping ones are visited: a program may map tens of thousands of ranges in any order.
        let first = self.0.partition_point(|old| old.end <= new.start);
        let behind = first + self.0[first..].partition_point(|old| old.start < new.end);
        let touched = self.0.drain(first..behind).collect::<Vec<_>>();
        let before = touched.first().filter(|old| old.start < new.start).map(|old| Mapping { end: new.start, ..old.clone() });
        let after = touched.last().filter(|old| new.end < old.end).map(|old| {
            let offset = old.offset.wrapping_add(new.end - old.start);
            Mapping { start: new.end, offset, ..old.clone() }
        });
        self.0.splice(first..first, before.into_iter().chain([new]).chain(after));
    }

    /// The index of the mapping that contains an address.
    pub(crate) fn index(&self, address: u64) -> Option<usize> {
        let index = self.0.partition_point(|mapping| mapping.end <= address);
        self.0.get(index).filter(|mapping| mapping.start <= address).map(|_| index)
    }

    #[cfg(test)]
    pub(crate) fn find(&self, address: u64) -> Option<&Mapping> {
        self.0.get(self.index(address)?)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Mapping> {
        self.0.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// "7f12-7f34 r-xp 00001000 fe:01 1234   /usr/lib/x.so"
fn line(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    if !fields.next()?.contains('x') {
        return None;
    }
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let offset = hex(fields.next()?)?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let inode = fields.next()?.parse().ok()?;
    let path = fields.next().unwrap_or("").trim_start().replace("\\012", "\n");
    Some(Mapping { start: hex(start)?, end: hex(end)?, offset, backing: Backing::new(device, inode, &path) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
55d0c0a00000-55d0c0a2f000 r--p 00000000 fe:00 1573                       /usr/sbin/nginx
55d0c0a2f000-55d0c0aef000 r-xp 0002f000 fe:00 1573                       /usr/sbin/nginx
7f0000000000-7f0000001000 rwxs 00000000 00:01 7                          /dev/zero (deleted)
7f0000002000-7f0000003000 r-xp 00001000 00:2f 88                         /srv/a b (deleted)
7ffd1b3f4000-7ffd1b3f6000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    #[test]
    fn executable_mappings_are_found_by_address() {
        let maps = Mappings::parse(TEXT);
        assert_eq!(maps.iter().count(), 5);
        let nginx = maps.find(0x55d0_c0a2_f000).unwrap();
        assert_eq!(nginx.backing, Backing::File { device: (0xfe, 0), inode: 1573, path: "/usr/sbin/nginx".to_owned() });
        assert_eq!(nginx.offset, 0x2f000);
        assert!(maps.find(0x55d0_c0ae_f000).is_none() && maps.find(0).is_none() && maps.find(u64::MAX).is_none());
        assert_eq!(maps.find(0x7f00_0000_0500).unwrap().backing, Backing::Anonymous);
        assert!(matches!(&maps.find(0x7f00_0000_2500).unwrap().backing, Backing::File { path, .. } if path == "/srv/a b (deleted)"));
        assert_eq!(maps.find(0x7ffd_1b3f_4000).unwrap().backing, Backing::Vdso);
    }

    #[test]
    fn a_mapping_replaces_the_parts_of_others_that_it_overlaps() {
        let mapping = |start, end, offset| Mapping { start, end, offset, backing: Backing::Anonymous };
        let mut maps = Mappings::default();
        maps.insert(mapping(10, 20, 100));
        maps.insert(mapping(30, 40, 300));
        maps.insert(mapping(14, 16, 0));
        assert_eq!(maps.0, [mapping(10, 14, 100), mapping(14, 16, 0), mapping(16, 20, 106), mapping(30, 40, 300)]);
        maps.insert(mapping(12, 35, 7));
        assert_eq!(maps.0, [mapping(10, 12, 100), mapping(12, 35, 7), mapping(35, 40, 305)]);
        maps.insert(mapping(5, 5, 0));
        assert_eq!(maps.0.len(), 3);
    }

    #[test]
    fn text_cut_at_any_length_is_parsed() {
        for length in 0..TEXT.len() {
            assert!(Mappings::parse(&TEXT[..length]).iter().count() <= 5);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_mappings_stay_in_order(all in proptest::collection::vec((0u64..100, 0u64..100, any::<u64>()), 0..40)) {
            let mut maps = Mappings::default();
            for (start, end, offset) in all {
                maps.insert(Mapping { start, end, offset, backing: Backing::Anonymous });
            }
            let starts: Vec<_> = maps.iter().flat_map(|mapping| [mapping.start, mapping.end]).collect();
            prop_assert!(starts.is_sorted());
            prop_assert!((0..100).all(|address| maps.find(address).is_none_or(|found| found.start <= address && address < found.end)));
        }
    }
}
