//! From addresses to functions: symbol tables of program files and of their separate debugging files, the kernel's, perf maps; demangled.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use chokepoint_foreign::{Files, Rights, steers};

use crate::host;
use crate::image::{Bytes, Elf, Image};
use crate::inline::{Inlined, inlined};
use crate::jit::{Bounds, PerfMap};
use crate::kernel::{Kallsyms, underscores};
use crate::profile::{Frame, FrameKind};
use crate::unwind::ImageId;

/// Letters of a name at most; those of templates may be of any length.
const NAME_MAX: usize = 512;
/// How far behind a symbol without a size its function may reach.
const SIZELESS_REACH: u64 = 4096;

/// Time for functions that were put into others, of all files together.
const INLINE_TIME: Duration = Duration::from_millis(500);

/// An address as sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Raw {
    Kernel(u64),
    Image(ImageId, u64),
    /// In memory of a process without a file.
    Memory(u32, u64),
    /// No address: what a thread waits for there, by the collector's number.
    Peer(u32),
}

/// The best symbol for an address so far.
#[derive(Debug, Clone)]
struct Candidate {
    start: u64,
    sized: bool,
    global: bool,
    name: String,
}

impl Candidate {
    /// True where it tells more than another: it begins nearer, has a size, is exported, is the plain one of several names.
    fn beats(&self, other: &Self) -> bool {
        let rank = |candidate: &Self| (candidate.sized, candidate.start, candidate.global, std::cmp::Reverse(underscores(&candidate.name)));
        rank(self) > rank(other)
    }
}

/// Names all addresses: the function that each lies in, and those that a compiler put there, the outermost first; the latter in files alone that are
/// `worth` it. The second part says what could not be read, in sentences.
pub(crate) fn resolve(
    raws: impl Iterator<Item = Raw>,
    images: &[Image],
    worth: impl Fn(ImageId) -> bool,
) -> (HashMap<Raw, Vec<Frame>>, Vec<String>) {
    let mut frames = HashMap::new();
    let mut notes = Vec::new();
    let (mut kernel, mut files, mut memory) = (Vec::new(), BTreeMap::<ImageId, Vec<u64>>::new(), BTreeMap::<u32, Vec<u64>>::new());
    for raw in raws {
        match raw {
            Raw::Kernel(address) => kernel.push(address),
            Raw::Image(id, address) => files.entry(id).or_default().push(address),
            Raw::Memory(pid, address) => memory.entry(pid).or_default().push(address),
            Raw::Peer(_) => {}
        }
    }
    if !kernel.is_empty() {
        name_kernel(&kernel, &mut frames, &mut notes);
    }
    let (until, mut left_out) = (Instant::now() + INLINE_TIME, Vec::new());
    for (id, mut addresses) in files {
        let Some(image) = usize::try_from(id).ok().and_then(|index| images.get(index)) else { continue };
        addresses.sort_unstable();
        addresses.dedup();
        let (names, whole) = name_image(image, &addresses, worth(id).then_some(until));
        frames.extend(addresses.iter().zip(names).map(|(address, frames)| (Raw::Image(id, *address), frames)));
        if !whole {
            left_out.push(module_of(image).to_owned());
        }
    }
    if !left_out.is_empty() {
        left_out.truncate(8);
        notes.push(format!(
            "inlined functions are not told apart in {}: too much debugging information, or too little time",
            left_out.join(", ")
        ));
    }
    let mut bounds = Bounds::new();
    for (pid, addresses) in memory {
        for (address, found) in PerfMap::read(pid, &addresses, &mut bounds).named(&mut bounds) {
            let name = found.map_or_else(|| "[code without a file]".to_owned(), shorten);
            frames.insert(Raw::Memory(pid, address), vec![frame(name, "[jit]", FrameKind::Jit, found.is_some())]);
        }
    }
    notes.extend(bounds.note());
    (frames, notes)
}

fn frame(name: String, module: &str, kind: FrameKind, named: bool) -> Frame {
    Frame { name, module: module.to_owned(), kind, named }
}

fn name_kernel(addresses: &[u64], frames: &mut HashMap<Raw, Vec<Frame>>, notes: &mut Vec<String>) {
    let text = host::text("/proc/kallsyms").unwrap_or_default();
    let kallsyms = Kallsyms::parse(&text);
    if kallsyms.hidden {
        notes.push(
            "kernel functions have no names: /proc/kallsyms hides addresses from this user (CAP_SYSLOG, or kernel.kptr_restrict 0)"
                .to_owned(),
        );
    } else if text.is_empty() {
        notes.push("kernel functions have no names: /proc/kallsyms cannot be read".to_owned());
    }
    for address in addresses {
        let found = kallsyms.find(*address);
        let named = match found {
            Some((name, module)) => frame(shorten(name), module, FrameKind::Kernel, true),
            None => frame("[kernel]".to_owned(), "kernel", FrameKind::Kernel, false),
        };
        frames.insert(Raw::Kernel(*address), vec![named]);
    }
}

/// The name of a file without directories.
fn module_of(image: &Image) -> &str {
    let path = image.path.trim_end_matches(" (deleted)");
    path.rsplit('/').next().unwrap_or(path)
}

/// The functions at addresses of a file, which are in ascending order; and false where it may have inlined ones that there was no time `until` then to
/// look up. Without a time they are not looked for.
fn name_image(image: &Image, addresses: &[u64], until: Option<Instant>) -> (Vec<Vec<Frame>>, bool) {
    let mut best: Vec<Option<Candidate>> = vec![None; addresses.len()];
    let starts: Vec<Option<u64>> = addresses.iter().map(|address| image.function_start(*address)).collect();
    let mut put = Inlined::None;
    let inlined = |elf: &dyn Elf| until.map_or(Inlined::None, |until| inlined(elf, addresses, until));
    let debug = image.with_elf(|elf| {
        collect(elf, addresses, &starts, &mut best);
        put = inlined(elf);
        debug_files(image, elf)
    });
    // The file's own table names exported functions alone where it was stripped; its debugging file names all.
    for file in open_debug_files(image, &debug.unwrap_or_default()) {
        let Some(found) = Image::bare(image.path.clone(), image.pid, Bytes::File(file)) else { continue };
        found.with_elf(|elf| {
            collect(elf, addresses, &starts, &mut best);
            if put == Inlined::None {
                put = inlined(elf);
            }
        });
        break;
    }
    let module = module_of(image);
    let named = addresses.iter().zip(&starts).zip(best).map(|((address, start), candidate)| {
        if let Some(candidate) = candidate {
            return frame(demangle(&candidate.name), module, FrameKind::User, true);
        }
        if image.stubs.iter().any(|stubs| stubs.contains(address)) {
            return frame(format!("[calls out of {module}]"), module, FrameKind::User, true);
        }
        frame(format!("{module}+{:#x}", start.unwrap_or(*address)), module, FrameKind::User, false)
    });
    let whole = !matches!(put, Inlined::LeftOut(_));
    let mut put = if let Inlined::Found(names) = put { names } else { Vec::new() }.into_iter();
    let frames = named.map(|function| {
        let inside = put.next().unwrap_or_default().into_iter().map(|name| frame(demangle(&name), module, FrameKind::User, true));
        std::iter::once(function).chain(inside).collect()
    });
    (frames.collect(), whole)
}

/// Goes through the functions of a table and keeps the best for each address.
fn collect(elf: &dyn Elf, addresses: &[u64], starts: &[Option<u64>], best: &mut [Option<Candidate>]) {
    let end = |start: u64, size: u64| start.saturating_add(if size > 0 { size } else { SIZELESS_REACH });
    let wanted =
        |start, size| addresses.get(addresses.partition_point(|address| *address < start)).is_some_and(|next| *next < end(start, size));
    elf.functions(&wanted, &mut |start, size, name, global| {
        let (sized, end) = (size > 0, end(start, size));
        let first = addresses.partition_point(|address| *address < start);
        for index in first..addresses.len() {
            if addresses[index] >= end {
                break;
            }
            // A function without a size ends at the latest where the unwind table knows the next one to begin.
            if !sized && starts[index].is_some_and(|known| start < known) {
                continue;
            }
            let candidate = Candidate { start, sized, global, name: name.to_owned() };
            if best[index].as_ref().is_none_or(|old| candidate.beats(old)) {
                best[index] = Some(candidate);
            }
        }
    });
}

/// Opens the debugging files that are there, the first first. They lie below the root of the process that has the program mapped, where nobody but root
/// and its user can change anything on the way, and are read with its rights. Once it is gone those below our own root are left, where only root can.
fn open_debug_files<'a>(image: &Image, paths: &'a [String]) -> impl Iterator<Item = File> + 'a {
    let proc = Path::new("/proc");
    let of_process = Rights::of_process(proc, image.pid).and_then(|rights| Ok((Files::of_process(proc, image.pid)?, rights)));
    let found = of_process.or_else(|_| Ok::<_, io::Error>((Files::of_directory(Path::new("/"))?, Rights::new(0, 0, Vec::new())))).ok();
    paths.iter().filter_map(move |path| {
        let (files, rights) = found.as_ref()?;
        rights.run(|| files.open_trusted(path, rights.uid())).ok()?.ok()
    })
}

/// Where the debugging file of a program may lie, as its process sees it (gdb manual, "Separate Debug Files").
fn debug_files(image: &Image, elf: &dyn Elf) -> Vec<String> {
    let mut inside = Vec::new();
    if let Some(id) = elf.build_id().filter(|id| (2..=64).contains(&id.len())) {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        inside.push(format!("/usr/lib/debug/.build-id/{}/{}.debug", &hex[..2], &hex[2..]));
    }
    if let Some(link) = elf.debug_link().filter(|link| !link.contains('/') && !link.is_empty() && link != "..")
        && let Some((directory, _)) = image.path.rsplit_once('/')
    {
        inside.extend([format!("{directory}/.debug/{link}"), format!("/usr/lib/debug{directory}/{link}")]);
    }
    inside
}

/// The name as its programmer wrote it.
pub(crate) fn demangle(name: &str) -> String {
    // Versions of exported functions: "memcpy@@GLIBC_2.14".
    let name = name.split('@').next().filter(|bare| !bare.is_empty()).unwrap_or(name);
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return shorten(&format!("{rust:#}"));
    }
    if name.starts_with("_Z") && name.len() <= 8 * NAME_MAX {
        let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
        if let Some(text) = cpp_demangle::Symbol::new(name).ok().and_then(|symbol| symbol.demangle_with_options(&options).ok()) {
            return shorten(&text);
        }
    }
    shorten(name)
}

/// A name of bounded length without what would break a line or a folded stack.
fn shorten(name: &str) -> String {
    name.chars().take(NAME_MAX).map(|letter| if steers(letter) || letter == ';' { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_written_as_in_the_source() {
        assert_eq!(demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"), "core::fmt::Write::write_fmt");
        assert_eq!(demangle("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
        assert_eq!(demangle("_ZN2v88internal4Heap14CollectGarbageEv"), "v8::internal::Heap::CollectGarbage");
        assert_eq!(demangle("memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(demangle("plain"), "plain");
        assert_eq!(demangle("_Z"), "_Z");
        assert_eq!(shorten("a;b\nc"), "a b c");
    }

    #[test]
    fn this_programs_functions_are_named() {
        let image = Image::new("/x/self".to_owned(), std::process::id(), Bytes::File(File::open("/proc/self/exe").unwrap())).unwrap();
        let maps = crate::maps::Mappings::parse(&host::maps(std::process::id()).unwrap());
        let address = this_programs_functions_are_named as *const () as u64;
        let mapping = maps.find(address).unwrap();
        let inside = address.wrapping_sub(image.bias(mapping).unwrap());
        let (names, _) = name_image(&image, &[1, inside + 1], Some(Instant::now()));
        assert!(names[1][0].name.ends_with("this_programs_functions_are_named") && names[1][0].named, "{names:?}");
        assert_eq!((names[0][0].name.as_str(), names[0][0].named), ("self+0x1", false));
    }

    #[test]
    fn of_several_symbols_the_one_that_tells_most_counts() {
        let candidate = |start, sized, global, name: &str| Candidate { start, sized, global, name: name.to_owned() };
        assert!(candidate(8, true, false, "inner").beats(&candidate(4, true, true, "outer")));
        assert!(candidate(4, true, false, "sized").beats(&candidate(8, false, true, "label")));
        assert!(candidate(4, true, true, "malloc").beats(&candidate(4, true, true, "__libc_malloc")));
        assert!(candidate(4, true, true, "global").beats(&candidate(4, true, false, "local")));
    }

    #[test]
    fn what_is_not_there_has_an_honest_name() {
        let raws = [Raw::Kernel(1), Raw::Memory(u32::MAX, 5), Raw::Image(7, 1)];
        let (frames, _) = resolve(raws.into_iter(), &[], |_| true);
        assert!(!frames[&Raw::Kernel(1)][0].named && !frames[&Raw::Memory(u32::MAX, 5)][0].named);
        assert!(!frames.contains_key(&Raw::Image(7, 1)));
    }

    proptest! {
        #[test]
        fn any_name_is_demangled(name in "(_Z|_R|_ZN)?[A-Z0-9a-zSN_.$@]{0,80}") {
            prop_assert!(demangle(&name).chars().count() <= NAME_MAX);
        }
    }
}
