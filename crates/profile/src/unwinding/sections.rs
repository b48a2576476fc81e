//! The sections of a program file, read in pieces: a symbol table may have a hundred megabytes, of which a few names are wanted.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::{Cursor, Read as _, SeekFrom};
use std::os::unix::fs::FileExt;

use object::Endianness;
use object::elf::{
    ELFCOMPRESS_ZLIB, FileHeader64, NT_GNU_BUILD_ID, SHF_ALLOC, SHF_COMPRESSED, SHF_EXECINSTR, SHN_UNDEF, SHT_DYNSYM, SHT_NOBITS, SHT_NOTE,
    SHT_PROGBITS, SHT_SYMTAB, STB_LOCAL, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE,
};
use object::endian::Endian as _;
use object::read::elf::{FileHeader, SectionHeader};
use object::read::{ReadCache, ReadCacheOps};

use crate::unwinding::tables::{Allowance, Bounded, Bytes, HEADERS_MAX};

/// Most bytes of a file's symbol tables that are looked through, in pieces: 5.6 million symbols, in less than a second.
pub(crate) const SYMBOL_BYTES_MAX: u64 = 128 << 20;
/// Most bytes of the names that are read of one file, and what each counts beside its text. Anybody may write a file in which every symbol has the wanted address.
const NAMES_BYTES_MAX: u64 = 16 << 20;
const NAME_COSTS: u64 = 64;
/// Bytes of a symbol (elf(5), `Elf64_Sym`).
const SYMBOL_BYTES: usize = 24;
/// Bytes of a symbol table that are held at a time.
const PIECE_BYTES: usize = SYMBOL_BYTES << 14;
/// Bytes of a name that are read at first, and the most.
const NAME_BYTES: [usize; 2] = [256, 64 << 10];
/// Most bytes of a section of notes, and of one with a file name.
const NOTE_BYTES_MAX: u64 = 64 << 10;
/// Bytes in front of compressed data (elf(5), `Elf64_Chdr`), and in front of a note (`Elf64_Nhdr`).
const COMPRESSION_BYTES: usize = 24;
const NOTE_BYTES: usize = 12;

/// Sections by their names.
pub(crate) trait NamedSections {
    /// Size of a section after decompression, bytes; none if there is no such section.
    fn section_size(&self, name: &str) -> Option<u64>;
    /// A section, decompressed; none if it is larger than `bytes_max` or uses an unsupported compression.
    fn section(&self, name: &str, bytes_max: u64) -> Option<Vec<u8>>;
}

/// Where a section lies.
#[derive(Debug)]
struct Place {
    name: Vec<u8>,
    kind: u32,
    flags: u64,
    offset: u64,
    size: u64,
    /// The section that it refers to: for symbols, the one with their names.
    link: usize,
}

/// The sections of a 64-bit ELF file.
#[derive(Debug)]
pub(crate) struct Sections<'a> {
    bytes: &'a Bytes,
    endian: Endianness,
    all: Vec<Place>,
    names_left: Cell<u64>,
}

impl<'a> Sections<'a> {
    /// Reads where the sections lie; none if it is no 64-bit ELF file, or claims to have too many.
    pub(crate) fn read(bytes: &'a Bytes) -> Option<Self> {
        let (endian, all) = match bytes {
            Bytes::File(file) => places(file),
            Bytes::Memory(bytes) => places(Cursor::new(bytes.as_slice())),
        }?;
        Some(Self { bytes, endian, all, names_left: Cell::new(NAMES_BYTES_MAX) })
    }

    /// Calls `found` with address, size, name and whether it is global, for each function whose address and size are `wanted`. Only their names are read: they
    /// lie elsewhere in the file. Returns the bytes of symbols and names that were left out, for there were too many.
    pub(crate) fn functions(&self, wanted: &dyn Fn(u64, u64) -> bool, found: &mut dyn FnMut(u64, u64, &str, bool)) -> u64 {
        let is_code = |place: &Place| place.kind == SHT_PROGBITS.0 && place.flags & SHF_ALLOC.0 != 0 && place.flags & SHF_EXECINSTR.0 != 0;
        let code: HashSet<usize> = (0..self.all.len()).filter(|index| is_code(&self.all[*index])).collect();
        let (mut left, mut left_out) = (SYMBOL_BYTES_MAX, 0);
        for table in [SHT_SYMTAB.0, SHT_DYNSYM.0] {
            let Some(symbols) = self.all.iter().find(|place| place.kind == table) else { continue };
            let Some(names) = self.all.get(symbols.link) else { continue };
            let size = symbols.size.min(self.length().saturating_sub(symbols.offset));
            left_out += size.saturating_sub(left);
            let end = symbols.offset + size.min(left);
            left -= size.min(left);
            let mut piece = Vec::new();
            let mut at = symbols.offset;
            while at < end {
                let length = usize::try_from(end - at).unwrap_or(usize::MAX).min(PIECE_BYTES);
                piece.resize(length, 0);
                if self.read_exact(&mut piece, at).is_none() {
                    break;
                }
                for symbol in piece.chunks_exact(SYMBOL_BYTES) {
                    left_out += self.function(symbol, names, &code, wanted, found);
                }
                at += length as u64;
            }
        }
        left_out
    }

    /// One symbol. Returns the bytes that were left out.
    fn function(
        &self,
        symbol: &[u8],
        names: &Place,
        code: &HashSet<usize>,
        wanted: &dyn Fn(u64, u64) -> bool,
        found: &mut dyn FnMut(u64, u64, &str, bool),
    ) -> u64 {
        let Some((info, section)) = symbol.get(4).copied().zip(self.half(symbol, 6)) else { return 0 };
        let Some(((name, address), size)) = self.word(symbol, 0).zip(self.long(symbol, 8)).zip(self.long(symbol, 16)) else { return 0 };
        let kind = info & 0xf;
        // Hand-written assembly has labels without a type.
        let is_function = kind == STT_FUNC.0 || kind == STT_GNU_IFUNC.0 || (kind == STT_NOTYPE.0 && code.contains(&usize::from(section)));
        if !is_function || section == SHN_UNDEF.0 || !wanted(address, size) {
            return 0;
        }
        if self.names_left.get() < NAME_COSTS {
            return SYMBOL_BYTES as u64;
        }
        let name = self.string(names, u64::from(name));
        self.names_left.set(self.names_left.get().saturating_sub(NAME_COSTS + name.as_ref().map_or(0, |name| name.len() as u64)));
        if let Some(name) = name.filter(|name| !name.is_empty() && !name.starts_with('$')) {
            found(address, size, &name, info >> 4 != STB_LOCAL.0);
        }
        0
    }

    /// The build id, as bytes.
    pub(crate) fn build_id(&self) -> Option<Vec<u8>> {
        let notes = self.all.iter().filter(|place| place.kind == SHT_NOTE.0 && place.size <= NOTE_BYTES_MAX);
        notes.filter_map(|place| self.bytes_of(place)).find_map(|bytes| self.build_id_in(&bytes))
    }

    fn build_id_in(&self, notes: &[u8]) -> Option<Vec<u8>> {
        let mut at = 0_usize;
        loop {
            let size = |offset: usize| usize::try_from(self.word(notes, at.checked_add(offset)?)?).ok();
            let (name, value, kind) = (size(0)?, size(4)?, self.word(notes, at.checked_add(8)?)?);
            let name_at = at.checked_add(NOTE_BYTES)?;
            let value_at = name_at.checked_add(name.checked_next_multiple_of(4)?)?;
            let bytes = notes.get(value_at..value_at.checked_add(value)?)?;
            if kind == NT_GNU_BUILD_ID.0 && notes.get(name_at..name_at.checked_add(name)?)? == b"GNU\0" {
                return Some(bytes.to_vec());
            }
            at = value_at.checked_add(value.checked_next_multiple_of(4)?)?;
        }
    }

    /// Name of the file with debugging information.
    pub(crate) fn debug_link(&self) -> Option<String> {
        let bytes = self.bytes_of(self.named(".gnu_debuglink").filter(|place| place.size <= NOTE_BYTES_MAX)?)?;
        Some(String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next()?).into_owned())
    }

    fn named(&self, name: &str) -> Option<&Place> {
        self.all.iter().find(|place| place.name == name.as_bytes())
    }

    /// Of a compressed section its kind of compression and its size after it.
    fn compression(&self, place: &Place) -> Option<(u32, u64)> {
        let mut header = [0; COMPRESSION_BYTES];
        (place.size >= header.len() as u64).then_some(())?;
        self.read_exact(&mut header, place.offset)?;
        self.word(&header, 0).zip(self.long(&header, 8))
    }

    /// The bytes of a section as they are in the file; none if the file has not so many.
    fn bytes_of(&self, place: &Place) -> Option<Vec<u8>> {
        let is_there = place.kind != SHT_NOBITS.0 && place.offset.checked_add(place.size)? <= self.length();
        let mut bytes = vec![0; usize::try_from(place.size).ok().filter(|_| is_there)?];
        self.read_exact(&mut bytes, place.offset)?;
        Some(bytes)
    }

    /// A text that ends with a zero, at an offset in a section.
    fn string(&self, place: &Place, offset: u64) -> Option<String> {
        let left = usize::try_from(place.size.checked_sub(offset)?).unwrap_or(usize::MAX);
        let at = place.offset.checked_add(offset)?;
        let in_file = usize::try_from(self.length().checked_sub(at)?).unwrap_or(usize::MAX);
        NAME_BYTES.iter().find_map(|most| {
            let mut bytes = vec![0; left.min(in_file).min(*most)];
            self.read_exact(&mut bytes, at)?;
            bytes.truncate(bytes.iter().position(|byte| *byte == 0)?);
            String::from_utf8(bytes).ok()
        })
    }

    fn length(&self) -> u64 {
        match self.bytes {
            // By lseek(2): a reader without rights may not ask for metadata.
            Bytes::File(file) => std::io::Seek::seek(&mut &*file, SeekFrom::End(0)).unwrap_or(0),
            Bytes::Memory(bytes) => bytes.len() as u64,
        }
    }

    fn read_exact(&self, into: &mut [u8], at: u64) -> Option<()> {
        match self.bytes {
            Bytes::File(file) => file.read_exact_at(into, at).ok(),
            Bytes::Memory(bytes) => {
                let at = usize::try_from(at).ok()?;
                into.copy_from_slice(bytes.get(at..at.checked_add(into.len())?)?);
                Some(())
            }
        }
    }

    fn half(&self, bytes: &[u8], at: usize) -> Option<u16> {
        Some(self.endian.read_u16(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
    }

    fn word(&self, bytes: &[u8], at: usize) -> Option<u32> {
        Some(self.endian.read_u32(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    fn long(&self, bytes: &[u8], at: usize) -> Option<u64> {
        Some(self.endian.read_u64(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
    }
}

impl NamedSections for Sections<'_> {
    fn section_size(&self, name: &str) -> Option<u64> {
        let place = self.named(name)?;
        let is_packed = place.flags & SHF_COMPRESSED.0 != 0;
        if is_packed { self.compression(place).map(|(_, size)| size) } else { Some(place.size) }
    }

    fn section(&self, name: &str, bytes_max: u64) -> Option<Vec<u8>> {
        let place = self.named(name).filter(|place| place.size <= bytes_max)?;
        if place.flags & SHF_COMPRESSED.0 == 0 {
            return self.bytes_of(place);
        }
        let (_, size) = self.compression(place).filter(|(kind, size)| *kind == ELFCOMPRESS_ZLIB.0 && *size <= bytes_max)?;
        let packed = self.bytes_of(place)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
        flate2::read::ZlibDecoder::new(packed.get(COMPRESSION_BYTES..)?).take(size).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

fn places(bytes: impl ReadCacheOps) -> Option<(Endianness, Vec<Place>)> {
    let (cache, allowance) = (ReadCache::new(bytes), Allowance::new(HEADERS_MAX));
    let data = Bounded { cache: &cache, allowance: &allowance };
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let place = |section: &object::elf::SectionHeader64<Endianness>| Place {
        name: sections.section_name(endian, section).unwrap_or_default().to_vec(),
        kind: section.sh_type(endian).0,
        flags: section.sh_flags(endian).0,
        offset: section.sh_offset(endian),
        size: section.sh_size(endian),
        link: usize::try_from(section.sh_link(endian)).unwrap_or(usize::MAX),
    };
    Some((endian, sections.iter().map(place).collect()))
}
