//! Names of sampled addresses: from symbol tables of program files and their debugging files, from the kernel, and from perf maps.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use chokepoint_confined::{ReadError, Readers};
use chokepoint_foreign::{Files, Rights};

use crate::host;
use crate::naming::demangle::shorten;
use crate::naming::functions::{FunctionQuestion, FunctionReader, NamedFunctions, functions};
use crate::naming::inline::Inlined;
use crate::naming::kallsyms::Kallsyms;
use crate::naming::perf_map::{self, PerfMapBudget};
use crate::profile::{Frame, FrameKind};
use crate::unwinding::image::Image;
use crate::unwinding::tables::{Bytes, MemoryLimit, mib};
use crate::unwinding::unwinder::ImageId;

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
    // One child for all files.
    let mut readers = Readers::default();
    let (mut late, mut large, mut many) = (Vec::new(), Vec::new(), Vec::new());
    for (id, mut addresses) in files {
        let Some(image) = usize::try_from(id).ok().and_then(|index| images.get(index)) else { continue };
        addresses.sort_unstable();
        addresses.dedup();
        let named = name_image(image, &addresses, is_worth_inlining(id).then_some(until), limit, &mut readers);
        let name = host::file_name(&image.path);
        let named = named.unwrap_or_else(|error| {
            unnamed.notes.push(format!("functions of {name} have no names: {error}"));
            NamedFunctions { frames: nameless(image, &addresses), ..NamedFunctions::default() }
        });
        frames.extend(addresses.iter().zip(named.frames).map(|(address, frames)| (Raw::Image(id, *address), frames)));
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
        let names = perf_map::names(pid, &addresses, &mut budget, &mut readers).unwrap_or_else(|error| {
            unnamed.notes.push(format!("compiled code of process {pid} has no names: {error}"));
            Vec::new()
        });
        let names: HashMap<u64, String> = names.into_iter().collect();
        for address in addresses {
            let found = names.get(&address);
            let name = found.map_or_else(|| "[code without a file]".to_owned(), |name| shorten(name));
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

/// The functions at ascending addresses of a file. Inlined ones are looked up `until` there is no time; without it they are not looked up.
///
/// # Errors
/// The file's reader was ended.
fn name_image(
    image: &Image,
    addresses: &[u64],
    until: Option<Instant>,
    limit: MemoryLimit,
    readers: &mut Readers,
) -> Result<NamedFunctions, ReadError> {
    let question = FunctionQuestion {
        path: image.path.clone(),
        addresses: addresses.to_vec(),
        starts: addresses.iter().map(|address| image.function_start(*address)).collect(),
        stubs: image.stubs.clone(),
        inline_time: until.map(|until| until.saturating_duration_since(Instant::now())),
        debug_bytes_max: limit.debug,
    };
    let Bytes::File(file) = &image.bytes else {
        // What is in memory comes from the kernel.
        return Ok(functions(&question, std::slice::from_ref(&image.bytes)));
    };
    let mut read = |files: Vec<File>| {
        let named = readers.read::<FunctionReader>(question.clone(), files)?;
        let is_whole = named.frames.len() == addresses.len() && named.frames.iter().all(|frames| !frames.is_empty());
        if is_whole { Ok(named) } else { Err(ReadError::Ended("it named other addresses than those asked for".to_owned())) }
    };
    let named = read(vec![file.try_clone()?])?;
    for debug in open_debug_files(image, file, &named.debug_files) {
        let both = read(vec![file.try_clone()?, debug])?;
        if both.programs > named.programs {
            return Ok(both);
        }
    }
    Ok(named)
}

/// The same without names, where the file could not be read.
fn nameless(image: &Image, addresses: &[u64]) -> Vec<Vec<Frame>> {
    let module = host::file_name(&image.path);
    addresses.iter().map(|address| vec![frame(format!("{module}+{address:#x}"), module, FrameKind::User, false)]).collect()
}

/// Opens the debugging files that exist, in order: below the root of the process that maps the program, with the process's rights, then below our own root. Names count for all
/// processes that map the program, so only root and the owner of the program, who could have named its functions otherwise, may be able to change a file or its path.
fn open_debug_files(image: &Image, program: &File, paths: &[String]) -> Vec<File> {
    let proc = Path::new("/proc");
    let of_process = Rights::of_process(proc, image.pid).and_then(|rights| Ok((Files::of_process(proc, image.pid)?, rights)));
    let of_root = Files::of_directory(Path::new("/")).map(|files| (files, Rights::new(0, 0, Vec::new())));
    let Ok(owner) = program.metadata().map(|meta| meta.uid()) else { return Vec::new() };
    let roots = [of_process, of_root].into_iter().flatten();
    roots
        .flat_map(|(files, rights)| {
            rights.run(|| paths.iter().filter_map(|path| files.open_trusted(path, owner).ok()).collect()).unwrap_or_else(|_| Vec::new())
        })
        .collect()
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
        let names =
            name_image(&image, &[1, inside + 1], Some(Instant::now()), MemoryLimit::default(), &mut Readers::default()).unwrap().frames;
        assert!(names[1][0].name.ends_with("this_programs_functions_are_named") && names[1][0].named, "{names:?}");
        assert_eq!((names[0][0].name.as_str(), names[0][0].named), ("self+0x1", false));
    }

    #[test]
    fn an_address_without_a_symbol_counts_as_unnamed() {
        let raws = [Raw::Kernel(1), Raw::Memory(u32::MAX, 5), Raw::Image(7, 1)];
        let (frames, _) = resolve(raws.into_iter(), &[], MemoryLimit::default(), |_| true);
        assert!(!frames[&Raw::Kernel(1)][0].named && !frames[&Raw::Memory(u32::MAX, 5)][0].named);
        assert!(!frames.contains_key(&Raw::Image(7, 1)));
    }

    /// Needs root, to make files of two users.
    #[test]
    fn a_debugging_file_counts_only_if_it_belongs_to_root_or_the_programs_owner() {
        if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
            return println!("skipped: needs root");
        }
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let (program, debug) = (path("program"), path("program.debug"));
        for file in [&program, &debug] {
            std::fs::copy("/proc/self/exe", file).unwrap();
        }
        let opened = |program_owner: u32, debug_owner: u32| {
            std::os::unix::fs::chown(&program, Some(program_owner), None).unwrap();
            std::os::unix::fs::chown(&debug, Some(debug_owner), None).unwrap();
            let file = File::open(&program).unwrap();
            let image = Image::bare(program.clone(), std::process::id(), Bytes::File(file.try_clone().unwrap())).unwrap();
            !open_debug_files(&image, &file, std::slice::from_ref(&debug)).is_empty()
        };
        assert!(opened(0, 0) && opened(1234, 1234) && opened(1234, 0));
        assert!(!opened(0, 1234) && !opened(1234, 1235));
    }
}
