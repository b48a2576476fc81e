//! Program files: the parts of an ELF file needed to unwind (`.eh_frame`) and to name addresses (symbol tables).

use std::fs::File;
use std::io::Cursor;
use std::ops::Range;
use std::path::Path;

use chokepoint_foreign::{Files, open_link};
use object::elf::{FileHeader64, PF_X, PT_LOAD, SHT_NOBITS};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, SectionHeader};
use object::read::{ReadCache, ReadCacheOps};
use object::{Endianness, Object};

use crate::host;
use crate::unwinding::expressions;
use crate::unwinding::mappings::{Backing, Mapping};
use crate::unwinding::sections::SYMBOL_BYTES_MAX;
#[cfg(test)]
use crate::unwinding::sections::Sections;
use crate::unwinding::tables::{Allowance, Bounded, Bytes, HEADERS_MAX, Room, Section, SectionRange};

/// Page size to which offsets of segments are rounded down. Larger pages only make the range longer.
const PAGE: u64 = 4096;

/// A loaded segment of the file, in the file's own addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) address: u64,
}

#[derive(Debug)]
pub(crate) struct Image {
    /// The path as the process sees it, or "[vdso]".
    pub(crate) path: String,
    /// A process that has the file mapped; its mount namespace holds the debugging files.
    pub(crate) pid: u32,
    pub(crate) bytes: Bytes,
    pub(crate) segments: Vec<Segment>,
    pub(crate) eh_frame: Option<Section>,
    pub(crate) eh_frame_hdr: Option<Section>,
    /// Sections of stubs that call into other files.
    pub(crate) stubs: Vec<Range<u64>>,
    /// The entry point.
    pub(crate) entry: u64,
}

impl Image {
    /// Opens the file behind a mapping of a process, without its unwind tables; none if it cannot be read or is no program.
    pub(crate) fn open(pid: u32, mapping: &Mapping) -> Option<Self> {
        let (path, bytes) = open_bytes(pid, mapping)?;
        Self::bare(path, pid, bytes)
    }

    /// Reads the headers only.
    pub(crate) fn bare(path: String, pid: u32, bytes: Bytes) -> Option<Self> {
        Self::parse(path, pid, bytes, &Allowance::new(HEADERS_MAX)).map(|(image, _)| image)
    }

    /// Reads the headers, and the unwind tables if there is room for them.
    pub(crate) fn within(path: String, pid: u32, bytes: Bytes, room: &mut Room) -> Option<Self> {
        let allowance = room.headers();
        let parsed = Self::parse(path.clone(), pid, bytes, &allowance);
        room.spend_headers(&path, &allowance);
        let (mut image, tables) = parsed?;
        let places = tables.eh_frame.into_iter().chain(tables.eh_frame_hdr);
        let size = places.map(|place| place.size).fold(0, u64::saturating_add);
        if size > 0 && tables.are_in(&image.bytes) && room.take(&path, size) {
            image.eh_frame = tables.eh_frame.and_then(|place| place.read(&image.bytes)).filter(expressions::all_end);
            let header = tables.eh_frame_hdr.and_then(|place| place.read(&image.bytes));
            image.eh_frame_hdr = header.filter(|header| image.eh_frame.as_ref().is_some_and(|frames| is_sound(header, frames)));
        }
        Some(image)
    }

    /// Like [`Image::within`], with room for one file.
    #[cfg(test)]
    pub(crate) fn new(path: String, pid: u32, bytes: Bytes) -> Option<Self> {
        Self::within(path, pid, bytes, &mut Room::default())
    }

    fn parse(path: String, pid: u32, bytes: Bytes, allowance: &Allowance) -> Option<(Self, Tables)> {
        let headers = match &bytes {
            Bytes::File(file) => headers(file, allowance),
            Bytes::Memory(bytes) => headers(Cursor::new(bytes.as_slice()), allowance),
        };
        let Headers { segments, stubs, entry, tables } = headers?;
        Some((Self { path, pid, bytes, segments, eh_frame: None, eh_frame_hdr: None, stubs, entry }, tables))
    }

    /// The difference between addresses in a process and in the file, for one mapping.
    pub(crate) fn bias(&self, mapping: &Mapping) -> Option<u64> {
        let (first, behind) = (mapping.offset, mapping.offset.checked_add(mapping.end.checked_sub(mapping.start)?)?);
        let segment = self.segments.iter().find(|segment| {
            let begin = segment.offset & !(PAGE - 1);
            begin < behind && first < segment.offset.saturating_add(segment.length)
        })?;
        Some(mapping.start.wrapping_sub(mapping.offset).wrapping_add(segment.offset).wrapping_sub(segment.address))
    }

    /// Its sections; none if it is no 64-bit ELF file.
    #[cfg(test)]
    pub(crate) fn sections(&self) -> Option<Sections<'_>> {
        Sections::read(&self.bytes)
    }

    /// Where the function around an address of the file begins, according to `.eh_frame_hdr` (Linux Standard Base, "Exception Frames").
    pub(crate) fn function_start(&self, address: u64) -> Option<u64> {
        let header = self.eh_frame_hdr.as_ref()?;
        function_start(&header.bytes, header.range.start, address)
    }
}

/// Address of the function with this name, and whether it only selects another one at run time (IFUNC). `name` is the plain or the full demangled name.
fn find(bytes: impl ReadCacheOps, name: &str) -> Option<(u64, bool)> {
    use object::{ObjectSymbol, SymbolFlags, SymbolKind};
    let (cache, allowance) = (ReadCache::new(bytes), Allowance::new(SYMBOL_BYTES_MAX));
    let elf: ElfFile64<'_, Endianness, Bounded<'_, _>> = ElfFile64::parse(Bounded { cache: &cache, allowance: &allowance }).ok()?;
    let all = elf.symbols().chain(elf.dynamic_symbols()).filter(|symbol| !symbol.is_undefined() && symbol.kind() == SymbolKind::Text);
    let is_it = |mangled: &str| {
        mangled.split('@').next() == Some(name) || (name.contains("::") && crate::naming::demangle::demangle(mangled) == name)
    };
    let found = all.filter(|symbol| symbol.name().is_ok_and(is_it)).map(|symbol| {
        let is_ifunc = matches!(symbol.flags(), SymbolFlags::Elf { st_info, .. } if st_info.st_type() == object::elf::STT_GNU_IFUNC);
        (symbol.address(), is_ifunc)
    });
    // Of several versions of a function, the newer one selects at run time: prefer it.
    found.reduce(|first, other| if other.1 && !first.1 { other } else { first })
}

/// What the headers of a file contain.
struct Headers {
    segments: Vec<Segment>,
    stubs: Vec<Range<u64>>,
    entry: u64,
    tables: Tables,
}

/// Where the headers place the unwind tables.
#[derive(Debug, Default)]
struct Tables {
    eh_frame: Option<SectionRange>,
    eh_frame_hdr: Option<SectionRange>,
}

impl Tables {
    /// Whether the file is long enough to hold the tables. Tables of shorter files take no room.
    fn are_in(&self, bytes: &Bytes) -> bool {
        let length = match bytes {
            Bytes::File(file) => file.metadata().map_or(0, |meta| meta.len()),
            Bytes::Memory(bytes) => bytes.len() as u64,
        };
        let end = |place: SectionRange| place.offset.checked_add(place.size);
        self.eh_frame.into_iter().chain(self.eh_frame_hdr).all(|place| end(place).is_some_and(|end| end <= length))
    }
}

/// Reads the headers only: symbol tables may have any size.
fn headers(bytes: impl ReadCacheOps, allowance: &Allowance) -> Option<Headers> {
    let cache = ReadCache::new(bytes);
    let data = Bounded { cache: &cache, allowance };
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let loaded = header.program_headers(endian, data).ok()?.iter().filter(|segment| segment.p_type(endian) == PT_LOAD);
    let segments = loaded.filter(|segment| (segment.p_flags(endian) & PF_X).0 != 0).map(|segment| {
        let (offset, length) = segment.file_range(endian);
        Segment { offset, length, address: segment.p_vaddr(endian) }
    });
    let segments = segments.take(64).collect();
    let (mut stubs, mut tables) = (Vec::new(), Tables::default());
    let sections = header.sections(endian, data).ok()?;
    for section in sections.iter() {
        let (address, size) = (section.sh_addr(endian), section.sh_size(endian));
        let there = || (section.sh_type(endian) != SHT_NOBITS).then(|| SectionRange { offset: section.sh_offset(endian), size, address });
        match sections.section_name(endian, section).unwrap_or_default() {
            b".eh_frame" => tables.eh_frame = tables.eh_frame.or_else(there),
            b".eh_frame_hdr" => tables.eh_frame_hdr = tables.eh_frame_hdr.or_else(there),
            b".plt" | b".plt.sec" | b".plt.got" if stubs.len() < 3 => stubs.extend(address.checked_add(size).map(|end| address..end)),
            _ => {}
        }
    }
    Some(Headers { segments, stubs, entry: header.e_entry(endian), tables })
}

/// The bytes behind a mapping of a process, and their path as the process sees it; none if they cannot be read.
pub(crate) fn open_bytes(pid: u32, mapping: &Mapping) -> Option<(String, Bytes)> {
    Some(match &mapping.backing {
        Backing::Anonymous => return None,
        Backing::Vdso => ("[vdso]".to_owned(), Bytes::Memory(vdso()?)),
        Backing::File { path, inode, device } => (path.clone(), Bytes::File(open_mapped(pid, mapping, path, (*device, *inode))?)),
    })
}

/// Whether `.eh_frame_hdr` has the encoding that linkers write and refers only to addresses within `.eh_frame`. Without a sound one the unwinder builds its
/// own.
pub(crate) fn is_sound(header: &Section, frames: &Section) -> bool {
    let bytes = &header.bytes;
    let word = |at: usize| Some(i32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let frames_at = word(4).map(|offset| header.range.start.wrapping_add(4).wrapping_add_signed(i64::from(offset)));
    let Some(count) = word(8).and_then(|count| usize::try_from(count).ok()).filter(|count| *count <= bytes.len() / 8) else { return false };
    let leads_inside = |index: usize| {
        let target = word(16 + 8 * index).map(|offset| header.range.start.wrapping_add_signed(i64::from(offset)));
        target.is_some_and(|target| frames.range.contains(&target))
    };
    bytes.starts_with(&[1, 0x1b, 0x03, 0x3b]) && frames_at == Some(frames.range.start) && (0..count).all(leads_inside)
}

/// Opens the mapped file: through the mapping itself, which also finds deleted files but needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE; then by its path
/// in the process's mount namespace; then by its path in ours, if it is the same file.
fn open_mapped(pid: u32, mapping: &Mapping, path: &str, identity: ((u32, u32), u64)) -> Option<File> {
    let mapped = format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end);
    // Looked up under the lock of its mappings.
    let linked = host::delayed(pid, move || open_link(Path::new(&mapped)).ok());
    if linked.is_some() || path.ends_with(" (deleted)") {
        return linked;
    }
    let inside = Files::of_process(Path::new("/proc"), pid).and_then(|files| files.open(path)).ok();
    let outside = || Files::of_directory(Path::new("/")).and_then(|files| files.open(path)).ok();
    inside.or_else(|| outside().filter(|file| is_same(file, identity)))
}

fn is_same(file: &File, ((major, minor), inode): ((u32, u32), u64)) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|meta| meta.ino() == inode && (libc::major(meta.dev()), libc::minor(meta.dev())) == (major, minor))
}

/// The bytes of the vDSO (vdso(7)). All 64-bit processes share one.
fn vdso() -> Option<Vec<u8>> {
    let maps = crate::host::text("/proc/self/maps")?;
    let range = maps.lines().find(|line| line.ends_with("[vdso]"))?.split(' ').next()?;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    let length = end.checked_sub(start).filter(|length| *length <= 1 << 20)?;
    // SAFETY: the kernel keeps these pages mapped readable as long as the process lives and never writes to them.
    Some(unsafe { std::slice::from_raw_parts(start as *const u8, length) }.to_vec())
}

impl Image {
    /// The offset in the file of a function's first instruction, where a probe is placed, and whether the kernel must single-step that instruction. A single
    /// step costs more than emulating a push (arch/x86/kernel/uprobes.c).
    ///
    /// # Errors
    /// If there is no such function, or it only selects another one at run time (IFUNC), in words.
    pub(crate) fn function_offset(&self, name: &str) -> Result<(u64, bool), String> {
        let found = match &self.bytes {
            Bytes::File(file) => find(file, name),
            Bytes::Memory(bytes) => find(Cursor::new(bytes.as_slice()), name),
        };
        let file = self.path.rsplit('/').next().unwrap_or(&self.path);
        let (address, is_ifunc) = found.ok_or_else(|| format!("{file} has no function {name} in its symbol tables"))?;
        if is_ifunc {
            return Err(format!("{name} of {file} is chosen at run time among several (IFUNC): name the one that is used"));
        }
        let segment = self.segments.iter().find(|segment| address.checked_sub(segment.address).is_some_and(|into| into < segment.length));
        let segment = segment.ok_or_else(|| format!("{name} of {file} lies in no executable part of it"))?;
        let offset = segment.offset.checked_add(address - segment.address).ok_or_else(|| format!("{file} is damaged"))?;
        let first = self.code(address, 2).unwrap_or_default();
        let pushes = matches!(first.as_slice(), [0x50..=0x57, ..] | [0x41, 0x50..=0x57, ..]);
        Ok((offset, !(cfg!(target_arch = "x86_64") && pushes)))
    }

    /// Up to `length` bytes of code at an address; none if the file has no code there.
    pub(crate) fn code(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let segment =
            self.segments.iter().find(|segment| address.checked_sub(segment.address).is_some_and(|into| into < segment.length))?;
        let into = address - segment.address;
        let length = length.min(usize::try_from(segment.length - into).ok()?);
        let offset = segment.offset.checked_add(into)?;
        match &self.bytes {
            Bytes::File(file) => {
                let mut code = vec![0; length];
                std::os::unix::fs::FileExt::read_exact_at(file, &mut code, offset).ok()?;
                Some(code)
            }
            Bytes::Memory(bytes) => {
                let offset = usize::try_from(offset).ok()?;
                Some(bytes.get(offset..offset.checked_add(length)?)?.to_vec())
            }
        }
    }
}

/// Binary search in `.eh_frame_hdr`, in the one encoding that linkers write (signed four-byte offsets from the header).
fn function_start(header: &[u8], base: u64, address: u64) -> Option<u64> {
    let [1, _, 0x03, 0x3b] = *header.first_chunk::<4>()? else { return None };
    let word = |at: usize| Some(i32::from_le_bytes(header.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let entry = |index: usize| word(index.checked_mul(8)?.checked_add(12)?).map(|offset| base.wrapping_add_signed(i64::from(offset)));
    let count = usize::try_from(word(8)?).ok()?.min(header.len() / 8);
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if entry(middle)? <= address { low = middle + 1 } else { high = middle }
    }
    entry(low.checked_sub(1)?).filter(|start| *start <= address)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn own() -> Vec<u8> {
        fs::read("/proc/self/exe").unwrap()
    }

    #[test]
    fn this_program_has_unwind_tables_and_functions() {
        let image = Image::new("self".to_owned(), 0, Bytes::File(File::open("/proc/self/exe").unwrap())).unwrap();
        assert!(image.eh_frame.is_some() && !image.segments.is_empty());
        let mut functions = Vec::new();
        image.sections().unwrap().functions(&|_, _| true, &mut |address, size, _, _| functions.push((address, size)));
        assert!(functions.len() > 100);
        // Functions with both a table entry and a symbol begin at the same address in both.
        let same = functions.iter().filter(|(address, size)| *size > 8 && image.function_start(address + 4) == Some(*address)).count();
        assert!(same > functions.len() / 2, "{same} of {}", functions.len());
    }

    #[test]
    fn a_mapping_leads_to_the_files_addresses() {
        let maps = crate::unwinding::mappings::Mappings::parse(&crate::host::maps(std::process::id()).unwrap());
        let address = a_mapping_leads_to_the_files_addresses as *const () as u64;
        let mapping = maps.find(address).unwrap();
        let image = Image::open(std::process::id(), mapping).unwrap();
        let inside = address.wrapping_sub(image.bias(mapping).unwrap());
        let mut names = Vec::new();
        image.sections().unwrap().functions(&|_, _| true, &mut |start, size, name, _| {
            if (start..start + size.max(1)).contains(&inside) {
                names.push(name.to_owned());
            }
        });
        assert!(names.iter().any(|name| name.contains("a_mapping_leads")), "{names:?}");
    }

    #[test]
    fn the_vdso_is_read_as_a_program() {
        let Some(bytes) = vdso() else { return eprintln!("skipped: this process has no vDSO") };
        let image = Image::new("[vdso]".to_owned(), 0, Bytes::Memory(bytes)).unwrap();
        assert!(!image.segments.is_empty());
    }

    #[test]
    fn a_program_cut_at_any_length_is_read_without_panic() {
        let bytes = own();
        let step = (bytes.len() / 200).max(1);
        for length in (0..bytes.len()).step_by(step).chain(0..200) {
            if let Some(image) = Image::new("cut".to_owned(), 0, Bytes::Memory(bytes[..length.min(bytes.len())].to_vec())) {
                let all = |sections: Sections<'_>| {
                    (sections.functions(&|_, _| true, &mut |_, _, _, _| {}), sections.build_id(), sections.debug_link())
                };
                image.sections().map(all);
            }
        }
    }

    proptest! {
        #[test]
        fn arbitrary_tables_are_searched(table in proptest::collection::vec(any::<u8>(), 0..200), base: u64, address: u64) {
            let mut header = vec![1, 0x1b, 0x03, 0x3b];
            header.extend(table);
            if let Some(start) = function_start(&header, base, address) {
                prop_assert!(start <= address);
            }
        }

        #[test]
        fn headers_with_a_changed_byte_are_read_without_panic(at in 0usize..1024, byte: u8) {
            let mut bytes = own();
            bytes.truncate(1 << 20);
            if let Some(old) = bytes.get_mut(at) {
                *old = byte;
            }
            if let Some(image) = Image::new("odd".to_owned(), 0, Bytes::Memory(bytes)) {
                image.sections().map(|sections| sections.functions(&|_, _| true, &mut |_, _, _, _| {}));
                image.bias(&Mapping { start: 0, end: u64::MAX, offset: 0, backing: Backing::Anonymous });
            }
        }
    }
}
