//! Names of sampled addresses: from symbol tables of program files and their debugging files, from the kernel, and from perf maps.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use chokepoint_foreign::{Files, Rights};

use crate::host;
use crate::naming::demangle::{demangle, shorten};
use crate::naming::inline::{Inlined, inlined};
use crate::naming::kallsyms::{Kallsyms, underscores};
use crate::naming::perf_map::{PerfMap, PerfMapBudget};
use crate::profile::{Frame, FrameKind};
use crate::unwinding::image::Image;
use crate::unwinding::sections::Sections;
use crate::unwinding::tables::{Bytes, MemoryLimit, mib};
use crate::unwinding::unwinder::ImageId;

/// A function without a size ends at most this far behind its start.
const SIZELESS_REACH: u64 = 4096;

/// Time limit for looking up inlined functions, for all files together.
const INLINE_TIME: Duration = Duration::from_millis(500);

/// Maximum number of files that a sentence names.
const NAMED_MAX: usize = 8;

/// An address as sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Raw {
    Kernel(u64),
    Image(ImageId, u64),
    /// In memory of a process without a file.
    Memory(u32, u64),
    /// Not an address: the collector's number of the peer that the thread waits for.
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
    /// Whether this symbol describes the address better: it begins nearer, has a size, is exported, or is the plainest of several names.
    fn beats(&self, other: &Self) -> bool {
        let rank = |candidate: &Self| (candidate.sized, candidate.start, candidate.global, std::cmp::Reverse(underscores(&candidate.name)));
        rank(self) > rank(other)
    }
}

/// What could not be read, in sentences.
#[derive(Debug, Default)]
pub(crate) struct Unnamed {
    pub(crate) notes: Vec<String>,
    /// What was left out for its size.
    pub(crate) left_out: Vec<String>,
}

/// Names all addresses: each gets its function, followed by the functions inlined into it. Inlined functions are looked up only in files for which `is_worth_inlining`
/// is true.
pub(crate) fn resolve(
    raws: impl Iterator<Item = Raw>,
    images: &[Image],
    limit: MemoryLimit,
    is_worth_inlining: impl Fn(ImageId) -> bool,
) -> (HashMap<Raw, Vec<Frame>>, Unnamed) {
    let (mut frames, mut unnamed) = (HashMap::new(), Unnamed::default());
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
        name_kernel(&kernel, &mut frames, &mut unnamed.notes);
    }
    let until = Instant::now() + INLINE_TIME;
    let (mut late, mut large, mut many) = (Vec::new(), Vec::new(), Vec::new());
    for (id, mut addresses) in files {
        let Some(image) = usize::try_from(id).ok().and_then(|index| images.get(index)) else { continue };
        addresses.sort_unstable();
        addresses.dedup();
        let named = name_image(image, &addresses, is_worth_inlining(id).then_some(until), limit);
        frames.extend(addresses.iter().zip(named.frames).map(|(address, frames)| (Raw::Image(id, *address), frames)));
        let name = host::file_name(&image.path);
        match named.inlined {
            Inlined::Late => late.push(name.to_owned()),
            Inlined::TooLarge(bytes) => large.push(format!("{name} ({})", mib(bytes))),
            Inlined::None | Inlined::Found(_) => {}
        }
        if named.symbols_left_out > 0 {
            many.push(format!("{name} ({})", mib(named.symbols_left_out)));
        }
    }
    unnamed.notes.extend(first(&late).map(|names| format!("inlined functions are not shown for {names}: time ran out")));
    let most = mib(limit.debug);
    unnamed.left_out.extend(
        first(&large).map(|names| {
            format!("debugging information left out, and with it inlined functions: {names}; at most {most} of a file are read")
        }),
    );
    unnamed.left_out.extend(first(&many).map(|names| format!("symbols left out: {names}")));
    let mut budget = PerfMapBudget::new();
    for (pid, addresses) in memory {
        for (address, found) in PerfMap::read(pid, &addresses, &mut budget).named(&mut budget) {
            let name = found.map_or_else(|| "[code without a file]".to_owned(), shorten);
            frames.insert(Raw::Memory(pid, address), vec![frame(name, "[jit]", FrameKind::Jit, found.is_some())]);
        }
    }
    unnamed.left_out.extend(budget.note());
    (frames, unnamed)
}

/// The first of these names; none if there are none.
fn first(names: &[String]) -> Option<String> {
    let shown = names.get(..names.len().min(NAMED_MAX))?.join(", ");
    let others = if names.len() > NAMED_MAX { " and others" } else { "" };
    (!names.is_empty()).then(|| format!("{shown}{others}"))
}

fn frame(name: String, module: &str, kind: FrameKind, named: bool) -> Frame {
    Frame { name, module: module.to_owned(), kind, named }
}

fn name_kernel(addresses: &[u64], frames: &mut HashMap<Raw, Vec<Frame>>, notes: &mut Vec<String>) {
    let kallsyms = Kallsyms::read(host::kallsyms(), addresses);
    if kallsyms.hidden {
        notes.push(
            "kernel functions have no names: /proc/kallsyms hides addresses from this user (needs CAP_SYSLOG, or kernel.kptr_restrict 0)"
                .to_owned(),
        );
    } else if kallsyms.is_empty {
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

/// The functions of a file.
struct NamedImage {
    /// At each address, followed by those inlined into it.
    frames: Vec<Vec<Frame>>,
    /// How the search for inlined functions ended.
    inlined: Inlined,
    /// Bytes of symbols that were left out.
    symbols_left_out: u64,
}

/// The functions at ascending addresses of a file. Inlined ones are looked up `until` there is no time; without it they are not looked up.
fn name_image(image: &Image, addresses: &[u64], until: Option<Instant>, limit: MemoryLimit) -> NamedImage {
    let mut best: Vec<Option<Candidate>> = vec![None; addresses.len()];
    let starts: Vec<Option<u64>> = addresses.iter().map(|address| image.function_start(*address)).collect();
    let (mut found_inlined, mut symbols_left_out) = (Inlined::None, 0);
    let mut take = |sections: &Sections<'_>| {
        symbols_left_out += collect(sections, addresses, &starts, &mut best);
        if found_inlined == Inlined::None {
            found_inlined = until.map_or(Inlined::None, |until| inlined(sections, addresses, until, limit.debug));
        }
    };
    let sections = image.sections();
    sections.iter().for_each(&mut take);
    // A stripped file's own table names only exported functions; its debugging file names all.
    let debug = sections.map(|sections| debug_files(image, &sections)).unwrap_or_default();
    let mut debug = open_debug_files(image, &debug).filter_map(|file| Image::bare(image.path.clone(), image.pid, Bytes::File(file)));
    if let Some(debug) = debug.next() {
        debug.sections().iter().for_each(&mut take);
    }
    let module = host::file_name(&image.path);
    let named = addresses.iter().zip(&starts).zip(best).map(|((address, start), candidate)| {
        if let Some(candidate) = candidate {
            return frame(demangle(&candidate.name), module, FrameKind::User, true);
        }
        if image.stubs.iter().any(|stubs| stubs.contains(address)) {
            return frame(format!("[calls out of {module}]"), module, FrameKind::User, true);
        }
        frame(format!("{module}+{:#x}", start.unwrap_or(*address)), module, FrameKind::User, false)
    });
    let inside = |index: usize| match &found_inlined {
        Inlined::Found(names) => names.get(index).map(Vec::as_slice).unwrap_or_default(),
        _ => &[],
    };
    let frames = named.enumerate().map(|(index, function)| {
        let inside = inside(index).iter().map(|name| frame(demangle(name), module, FrameKind::User, true));
        std::iter::once(function).chain(inside).collect()
    });
    let frames = frames.collect();
    NamedImage { frames, inlined: found_inlined, symbols_left_out }
}

/// Keeps the best function of a symbol table for each address. Returns the bytes of symbols that were left out.
fn collect(sections: &Sections<'_>, addresses: &[u64], starts: &[Option<u64>], best: &mut [Option<Candidate>]) -> u64 {
    let end = |start: u64, size: u64| start.saturating_add(if size > 0 { size } else { SIZELESS_REACH });
    let wanted =
        |start, size| addresses.get(addresses.partition_point(|address| *address < start)).is_some_and(|next| *next < end(start, size));
    sections.functions(&wanted, &mut |start, size, name, global| {
        let (sized, end) = (size > 0, end(start, size));
        let first = addresses.partition_point(|address| *address < start);
        for index in first..addresses.len() {
            if addresses[index] >= end {
                break;
            }
            // A function without a size ends at the latest where the unwind table's next function begins.
            if !sized && starts[index].is_some_and(|known| start < known) {
                continue;
            }
            let candidate = Candidate { start, sized, global, name: name.to_owned() };
            if best[index].as_ref().is_none_or(|old| candidate.beats(old)) {
                best[index] = Some(candidate);
            }
        }
    })
}

/// Opens the debugging files that exist, in order. They lie below the root of the process that maps the program, where only root and the process's user
/// can change the path, and are opened with the process's rights. If it has ended, only files below our own root are opened, which only root can change.
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
fn debug_files(image: &Image, sections: &Sections<'_>) -> Vec<String> {
    let mut inside = Vec::new();
    if let Some(id) = sections.build_id().filter(|id| (2..=64).contains(&id.len())) {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        inside.push(format!("/usr/lib/debug/.build-id/{}/{}.debug", &hex[..2], &hex[2..]));
    }
    if let Some(link) = sections.debug_link().filter(|link| !link.contains('/') && !link.is_empty() && link != "..")
        && let Some((directory, _)) = image.path.rsplit_once('/')
    {
        inside.extend([format!("{directory}/.debug/{link}"), format!("/usr/lib/debug{directory}/{link}")]);
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_programs_functions_are_named() {
        let image = Image::new("/x/self".to_owned(), std::process::id(), Bytes::File(File::open("/proc/self/exe").unwrap())).unwrap();
        let maps = crate::unwinding::mappings::Mappings::parse(&host::maps(std::process::id()).unwrap());
        let address = this_programs_functions_are_named as *const () as u64;
        let mapping = maps.find(address).unwrap();
        let inside = address.wrapping_sub(image.bias(mapping).unwrap());
        let names = name_image(&image, &[1, inside + 1], Some(Instant::now()), MemoryLimit::default()).frames;
        assert!(names[1][0].name.ends_with("this_programs_functions_are_named") && names[1][0].named, "{names:?}");
        assert_eq!((names[0][0].name.as_str(), names[0][0].named), ("self+0x1", false));
    }

    #[test]
    fn the_most_precise_of_several_symbols_is_used() {
        let candidate = |start, sized, global, name: &str| Candidate { start, sized, global, name: name.to_owned() };
        assert!(candidate(8, true, false, "inner").beats(&candidate(4, true, true, "outer")));
        assert!(candidate(4, true, false, "sized").beats(&candidate(8, false, true, "label")));
        assert!(candidate(4, true, true, "malloc").beats(&candidate(4, true, true, "__libc_malloc")));
        assert!(candidate(4, true, true, "global").beats(&candidate(4, true, false, "local")));
    }

    #[test]
    fn an_address_without_a_symbol_counts_as_unnamed() {
        let raws = [Raw::Kernel(1), Raw::Memory(u32::MAX, 5), Raw::Image(7, 1)];
        let (frames, _) = resolve(raws.into_iter(), &[], MemoryLimit::default(), |_| true);
        assert!(!frames[&Raw::Kernel(1)][0].named && !frames[&Raw::Memory(u32::MAX, 5)][0].named);
        assert!(!frames.contains_key(&Raw::Image(7, 1)));
    }
}
