//! User stacks: from registers and the copied stack to return addresses, using the unwind tables of the mapped files.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};

use crate::profile::StackEnd;
use crate::sampling::event::Registers;
use crate::unwinding::image::{Image, open_bytes};
use crate::unwinding::mappings::{Backing, Mapping, Mappings};
use crate::unwinding::tables::{Bytes, MemoryLimit, Room, Section};

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{CacheAarch64 as Cache, UnwinderAarch64 as Native};
#[cfg(not(target_arch = "aarch64"))]
use framehop::x86_64::{CacheX86_64 as Cache, UnwinderX86_64 as Native};

/// Maximum number of frames of one stack.
const FRAMES_MAX: usize = 512;
/// Maximum number of cached address spaces. When it is reached, the cache starts empty again.
const SPACES_MAX: usize = 4096;
/// Maximum number of words read from a stack beyond what a sample carries.
const LATE_READS_MAX: usize = 64;
/// Maximum distance of a stack word from the stack pointer; the default limit of a stack's size is 8 MiB.
const STACK_SPAN_MAX: u64 = 8 << 20;
/// Maximum bytes of a function's code that are searched for a call.
const CODE_BYTES_MAX: usize = 64 << 10;
/// Maximum number of open files. Further files are not read.
const IMAGES_MAX: usize = 8192;

/// The index of a program file in `Images`.
pub(crate) type ImageId = u32;

/// Maximum number of distinct mappings whose files are looked up.
const KNOWN_MAX: usize = 1 << 16;

/// Identifies a file, which may have many paths: device and inode, size and time of the last change, since it may be rewritten in place.
type Identity = (u64, u64, u64, i64, i64);

/// All program files, each opened once.
#[derive(Debug, Default)]
pub(crate) struct Images {
    known: HashMap<Backing, Option<ImageId>>,
    files: HashMap<Identity, Option<ImageId>>,
    all: Vec<Image>,
    room: Room,
}

impl Images {
    /// The file behind a mapping; none if it cannot be read.
    fn get(&mut self, pid: u32, mapping: &Mapping) -> Option<ImageId> {
        if let Some(known) = self.known.get(&mapping.backing) {
            return *known;
        }
        if self.known.len() >= KNOWN_MAX {
            return None;
        }
        let id = self.open(pid, mapping);
        self.known.insert(mapping.backing.clone(), id);
        id
    }

    fn open(&mut self, pid: u32, mapping: &Mapping) -> Option<ImageId> {
        let (path, bytes) = open_bytes(pid, mapping)?;
        let identity = identity(&bytes);
        if let Some(known) = identity.and_then(|identity| self.files.get(&identity)) {
            return *known;
        }
        let image = if self.all.len() < IMAGES_MAX { Image::within(path, pid, bytes, &mut self.room) } else { None };
        let id = image.and_then(|image| {
            self.all.push(image);
            ImageId::try_from(self.all.len() - 1).ok()
        });
        self.files.extend(identity.map(|identity| (identity, id)));
        id
    }

    /// The unwinder's module of a file. Without a search table the unwinder builds one for each module, which takes room too.
    fn module(&mut self, id: ImageId, mapping: &Mapping, bias: u64) -> Option<Module<Arc<[u8]>>> {
        let image = self.all.get(usize::try_from(id).ok()?)?;
        let made = image.eh_frame.as_ref().filter(|_| image.eh_frame_hdr.is_none()).map_or(0, |frames| frames.bytes.len());
        let fits = made == 0 || self.room.take(&image.path, u64::try_from(made).ok()?);
        Some(if fits { module(image, mapping, bias) } else { Module::new(String::new(), mapping.start..mapping.end, bias, no_sections()) })
    }

    pub(crate) fn at(&self, id: ImageId) -> Option<&Image> {
        self.all.get(usize::try_from(id).ok()?)
    }
}

fn identity(bytes: &Bytes) -> Option<Identity> {
    let Bytes::File(file) = bytes else { return None };
    let meta = file.metadata().ok()?;
    Some((meta.dev(), meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
}

/// Where an address of a process lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum CodeLocation {
    /// In a program file, as one of the file's own addresses.
    Image(ImageId, u64),
    /// In executable memory without a readable file.
    Memory(u64),
}

/// An address space, shared by processes with the same mappings.
pub(crate) struct Space {
    mappings: Mappings,
    /// For each mapping in order, its file and the difference to the file's addresses.
    images: Vec<Option<(ImageId, u64)>>,
    native: Native<Arc<[u8]>>,
}

impl Space {
    fn new(mappings: &Mappings, pid: u32, images: &mut Images) -> Self {
        let mut space = Self { mappings: mappings.clone(), images: Vec::new(), native: Native::new() };
        for mapping in mappings.iter() {
            let image = images.get(pid, mapping);
            let placed = image.and_then(|id| Some((id, images.at(id)?.bias(mapping)?)));
            if let Some(module) = placed.and_then(|(id, bias)| images.module(id, mapping, bias)) {
                space.native.add_module(module);
            }
            space.images.push(placed);
        }
        space
    }

    /// An address space of one file, loaded `bias` above its own addresses.
    #[cfg(test)]
    pub(crate) fn of_one(image: &Image, bias: u64, mapping: &Mapping) -> Self {
        let mut space = Self { mappings: Mappings::default(), images: vec![Some((0, bias))], native: Native::new() };
        space.mappings.insert(mapping.clone());
        space.native.add_module(module(image, mapping, bias));
        space
    }

    /// Where an address lies; none if nothing executable is mapped there.
    fn place(&self, address: u64) -> Option<CodeLocation> {
        let index = self.mappings.index(address)?;
        Some(match self.images.get(index).copied().flatten() {
            Some((id, bias)) => CodeLocation::Image(id, address.wrapping_sub(bias)),
            None => CodeLocation::Memory(address),
        })
    }
}

fn module(image: &Image, mapping: &Mapping, bias: u64) -> Module<Arc<[u8]>> {
    let range = |section: &Option<Section>| section.as_ref().map(|section| section.range.clone());
    let bytes = |section: &Option<Section>| section.as_ref().map(|section| Arc::clone(&section.bytes));
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        eh_frame_svma: range(&image.eh_frame),
        eh_frame: bytes(&image.eh_frame),
        eh_frame_hdr_svma: range(&image.eh_frame_hdr),
        eh_frame_hdr: bytes(&image.eh_frame_hdr),
        ..no_sections()
    };
    Module::new(String::new(), mapping.start..mapping.end, bias, sections)
}

fn no_sections() -> ExplicitModuleSectionInfo<Arc<[u8]>> {
    ExplicitModuleSectionInfo { base_svma: 0, ..ExplicitModuleSectionInfo::default() }
}

/// Unwinds stacks; caches what it learns about code and address spaces.
#[derive(Default)]
pub(crate) struct Unwinder {
    pub(crate) images: Images,
    spaces: HashMap<Mappings, Rc<Space>>,
    cache: Cache,
}

impl Unwinder {
    /// Holds no more unwind tables than this.
    pub(crate) fn within(limit: MemoryLimit) -> Self {
        Self { images: Images { room: Room::within(limit), ..Images::default() }, ..Self::default() }
    }

    /// The files without their unwind tables, and a note if some had none.
    pub(crate) fn finish(self) -> (Vec<Image>, Option<String>) {
        let Images { mut all, room, .. } = self.images;
        all.iter_mut().for_each(|image| image.eh_frame = None);
        (all, room.note())
    }

    /// The address space with these mappings.
    pub(crate) fn space(&mut self, pid: u32, mappings: &Mappings) -> Rc<Space> {
        if let Some(space) = self.spaces.get(mappings) {
            return Rc::clone(space);
        }
        if self.spaces.len() >= SPACES_MAX {
            self.spaces.clear();
        }
        let space = Rc::new(Space::new(mappings, pid, &mut self.images));
        self.spaces.insert(mappings.clone(), Rc::clone(&space));
        space
    }

    /// Walks a stack: fills `places`, innermost first, and returns how the walk ended. A return address is looked up one byte earlier, within the call
    /// instruction. If a walk leaves executable memory, the stack is broken.
    ///
    /// A copied stack ends at a page that was not present (such as a large buffer that nobody has written to) or where the copy is full. Words beyond it
    /// come from `late`, which reads the process's current memory. They count only if the code of the function found there calls the last copied one.
    pub(crate) fn walk(
        &mut self,
        space: &Space,
        registers: Registers,
        stack: &[u8],
        mut late: impl FnMut(u64) -> Option<u64>,
        places: &mut Vec<CodeLocation>,
    ) -> StackEnd {
        let (address, pointer, registers) = native_registers(registers, space);
        let late_reads = std::cell::Cell::new(0_usize);
        let mut read = |address: u64| {
            let offset = address.checked_sub(pointer).ok_or(())?;
            let copied = usize::try_from(offset).ok().and_then(|offset| stack.get(offset..offset.checked_add(8)?)?.try_into().ok());
            if let Some(word) = copied {
                return Ok(u64::from_ne_bytes(word));
            }
            late_reads.set(late_reads.get() + 1);
            if late_reads.get() > LATE_READS_MAX || offset > STACK_SPAN_MAX { Err(()) } else { late(address).ok_or(()) }
        };
        let mut frames = space.native.iter_frames(address, registers, &mut self.cache, &mut read);
        let mut copied_frames = None;
        let end = loop {
            if places.len() >= FRAMES_MAX {
                break StackEnd::Deep;
            }
            let next = frames.next();
            if late_reads.get() > 0 && copied_frames.is_none() {
                copied_frames = Some(places.len());
            }
            match next {
                Ok(Some(frame)) => match space.place(frame.address_for_lookup()) {
                    Some(place) => places.push(place),
                    None => break StackEnd::Broken,
                },
                Ok(None) => break StackEnd::Whole,
                Err(_) => break StackEnd::Broken,
            }
        };
        let end = if end == StackEnd::Broken && self.is_entry(places.last()) { StackEnd::Whole } else { end };
        match copied_frames {
            None => end,
            Some(copied)
                if end == StackEnd::Whole && self.calls(places.get(copied), copied.checked_sub(1).and_then(|at| places.get(at))) =>
            {
                StackEnd::Completed
            }
            Some(copied) => {
                places.truncate(copied);
                StackEnd::Deep
            }
        }
    }

    /// Whether this is the entry function of a program. Not every loader's unwind table marks it as the outermost one.
    fn is_entry(&self, place: Option<&CodeLocation>) -> bool {
        let Some(CodeLocation::Image(id, address)) = place else { return false };
        self.images.at(*id).is_some_and(|image| image.entry != 0 && image.function_start(*address) == Some(image.entry))
    }

    /// Whether the function at `caller` contains a call of the function at `callee`. The caller may have moved on to another call by the time its frame is
    /// read, so any call of that function counts.
    fn calls(&self, caller: Option<&CodeLocation>, callee: Option<&CodeLocation>) -> bool {
        let (Some(CodeLocation::Image(id, inside)), Some(CodeLocation::Image(callee_id, callee))) = (caller, callee) else { return false };
        let Some(image) = self.images.at(*id).filter(|_| id == callee_id) else { return false };
        let Some((begin, callee)) = image.function_start(*inside).zip(image.function_start(*callee)) else { return false };
        let code = image.code(begin, CODE_BYTES_MAX).unwrap_or_default();
        let within = |address: u64| image.function_start(address) == Some(begin);
        (0_u64..)
            .zip(0..code.len())
            .any(|(into, at)| call_target(&code[at..], begin.wrapping_add(into)) == Some(callee) && within(begin.wrapping_add(into)))
    }
}

/// The target of a direct call at the start of `code`, which lies at `address`: E8 with a 32-bit distance (Intel SDM, "CALL").
#[cfg(target_arch = "x86_64")]
fn call_target(code: &[u8], address: u64) -> Option<u64> {
    let [0xe8, distance @ ..] = code.first_chunk::<5>()? else { return None };
    Some(address.wrapping_add(5).wrapping_add_signed(i64::from(i32::from_le_bytes(*distance))))
}

/// The target of a direct call at the start of `code`, which lies at `address`: BL with a 26-bit distance in words (Arm ARM, "BL").
#[cfg(not(target_arch = "x86_64"))]
fn call_target(code: &[u8], address: u64) -> Option<u64> {
    let word = u32::from_le_bytes(*code.first_chunk::<4>()?);
    let distance = (word << 6).cast_signed() >> 4;
    (word >> 26 == 0b10_0101 && address.is_multiple_of(4)).then(|| address.wrapping_add_signed(i64::from(distance)))
}

/// Where a sample ran. `None` outside of all executable mappings.
pub(crate) fn leaf(space: &Space, registers: Registers) -> Option<CodeLocation> {
    space.place(native_registers(registers, space).0)
}

#[cfg(not(target_arch = "aarch64"))]
fn native_registers([_, _, bp, sp, ip, _]: Registers, _: &Space) -> (u64, u64, framehop::x86_64::UnwindRegsX86_64) {
    (ip, sp, framehop::x86_64::UnwindRegsX86_64::new(ip, sp, bp))
}

/// Removes the signature that addresses may carry in their upper bits (pointer authentication).
#[cfg(target_arch = "aarch64")]
fn native_registers([_, _, fp, lr, sp, pc]: Registers, space: &Space) -> (u64, u64, framehop::aarch64::UnwindRegsAarch64) {
    let mask = framehop::aarch64::PtrAuthMask::from_max_known_address(space.native.max_known_code_address());
    (pc, sp, framehop::aarch64::UnwindRegsAarch64::new_with_ptr_auth_mask(mask, lr, sp, fp))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::unwinding::image::is_sound;

    /// An address space of one file at 0x10000 with these unwind tables.
    fn space_with_tables(eh_frame: &[u8], header: Option<&[u8]>) -> Space {
        let section = |at: u64, bytes: &[u8]| Section { range: at..at + u64::try_from(bytes.len()).unwrap(), bytes: bytes.into() };
        let image = Image {
            path: "odd".to_owned(),
            pid: 0,
            bytes: Bytes::Memory(Vec::new()),
            segments: Vec::new(),
            eh_frame_hdr: header.map(|header| section(0x700, header)).filter(|header| is_sound(header, &section(0x800, eh_frame))),
            eh_frame: Some(section(0x800, eh_frame)),
            stubs: Vec::new(),
            entry: 0,
        };
        Space::of_one(&image, 0x10000, &Mapping { start: 0x10000, end: 0x20000, offset: 0, backing: Backing::Anonymous })
    }

    fn walk(space: &Space, registers: [u64; 4], stack: &[u8]) -> (Vec<CodeLocation>, StackEnd) {
        let mut places = Vec::new();
        let [a, b, c, d] = registers;
        let end = Unwinder::default().walk(space, [0, 0, a, b, c, d], stack, |_| None, &mut places);
        (places, end)
    }

    fn own_tables() -> (Vec<u8>, Vec<u8>) {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let image = Image::new("self".to_owned(), 0, Bytes::File(file)).unwrap();
        let bytes = |section: Option<Section>| section.unwrap().bytes[..16_384].to_vec();
        (bytes(image.eh_frame.clone()), bytes(image.eh_frame_hdr.clone()))
    }

    #[test]
    fn without_mappings_a_stack_is_broken() {
        let space = Space { mappings: Mappings::default(), images: Vec::new(), native: Native::new() };
        assert_eq!(walk(&space, [0, 0x7000, 0x1234, 0], &[0; 64]), (Vec::new(), StackEnd::Broken));
    }

    #[test]
    fn a_walk_that_leaves_the_mappings_is_broken_and_keeps_its_frames() {
        let space = space_with_tables(&[], None);
        // A chain of frame pointers: the saved one, then a return address that lies nowhere.
        let stack: Vec<u8> = [0x7020_u64, 0x9999_9999, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let registers = if cfg!(target_arch = "aarch64") { [0x7000, 0, 0x7000, 0x10010] } else { [0x7000, 0x7000, 0x10010, 0] };
        let (places, end) = walk(&space, registers, &stack);
        assert_eq!((places.first(), end), (Some(&CodeLocation::Image(0, 0x10)), StackEnd::Broken));
        // The same with an empty copy: the words beyond it are unknown, and no frame is invented.
        let (places, end) = walk(&space, registers, &[]);
        assert_eq!((places.as_slice(), end), ([CodeLocation::Image(0, 0x10)].as_slice(), StackEnd::Deep));
    }

    /// A program with functions at 0x10 and 0x40; the first calls the second.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_late_frame_counts_only_if_its_code_calls_the_copied_one() {
        let mut code = vec![0x90; 0x100];
        code[0x20..0x25].copy_from_slice(&[0xe8, 0x1b, 0, 0, 0]);
        let header: Vec<u8> = [0x3b03_1b01_u32, 0, 2, 0x10, 0, 0x40, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
        let image = Image {
            path: "calls".to_owned(),
            pid: 0,
            bytes: Bytes::Memory(code),
            segments: vec![crate::unwinding::image::Segment { offset: 0, length: 0x100, address: 0 }],
            eh_frame: None,
            eh_frame_hdr: Some(Section { range: 0..28, bytes: header.into() }),
            stubs: Vec::new(),
            entry: 0x10,
        };
        let mut unwinder = Unwinder::default();
        unwinder.images.all.push(image);
        let (first, second) = (CodeLocation::Image(0, 0x24), CodeLocation::Image(0, 0x48));
        assert!(unwinder.calls(Some(&first), Some(&second)));
        assert!(!unwinder.calls(Some(&second), Some(&first)) && !unwinder.calls(Some(&first), Some(&first)));
        assert!(!unwinder.calls(None, None) && !unwinder.calls(Some(&CodeLocation::Memory(5)), Some(&second)));
        assert!(unwinder.is_entry(Some(&first)) && !unwinder.is_entry(Some(&second)));
    }

    proptest! {
        #[test]
        fn arbitrary_tables_are_walked_without_panic(
            tables in proptest::collection::vec(any::<u8>(), 0..600),
            header in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..100)),
            registers: [u64; 4],
            address in 0x10000u64..0x20000,
            stack in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let space = space_with_tables(&tables, header.as_deref());
            for registers in [registers, [address, 0x7000, address, address]] {
                let (places, _) = walk(&space, registers, &stack);
                prop_assert!(places.len() <= FRAMES_MAX);
            }
        }

        #[test]
        fn real_tables_cut_or_changed_are_walked_without_panic(
            cut in 0usize..16_000,
            changes in proptest::collection::vec((0usize..16_000, any::<u8>()), 0..20),
            address in 0x10000u64..0x20000,
            bp: u64,
        ) {
            let (mut tables, mut header) = own_tables();
            for (at, byte) in changes {
                if let Some(old) = tables.get_mut(at) { *old = byte; }
                if let Some(old) = header.get_mut(at % 64) { *old = byte; }
            }
            tables.truncate(cut);
            for header in [Some(header.as_slice()), None] {
                walk(&space_with_tables(&tables, header), [bp, 0x7000, address, address], &[1; 128]);
            }
        }
    }
}
