//! Functions of program files: a reader of their symbol tables and debugging information, which anybody may have written.

use std::fs::File;
use std::ops::Range;
use std::time::{Duration, Instant};

use chokepoint_confined::Reader;
use serde::{Deserialize, Serialize};

use crate::naming::demangle::demangle;
use crate::naming::inline::{Inlined, inlined};
use crate::naming::kallsyms::underscores;
use crate::profile::{Frame, FrameKind};
use crate::unwinding::sections::Sections;
use crate::unwinding::tables::Bytes;

/// A function without a size ends at most this far behind its start.
const SIZELESS_REACH: u64 = 4096;

/// What is asked of a program file, and of its debugging file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FunctionQuestion {
    /// The path as its process sees it.
    pub(crate) path: String,
    /// In ascending order.
    pub(crate) addresses: Vec<u64>,
    /// For each address, where its function begins according to the unwind table.
    pub(crate) starts: Vec<Option<u64>>,
    /// Sections of stubs that call into other files.
    pub(crate) stubs: Vec<Range<u64>>,
    /// Time to look up inlined functions; without it they are not looked up.
    pub(crate) inline_time: Option<Duration>,
    /// Most bytes of debugging information.
    pub(crate) debug_bytes_max: u64,
}

/// What the files answer.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct NamedFunctions {
    /// At each address its function, followed by those inlined into it.
    pub(crate) frames: Vec<Vec<Frame>>,
    /// How the search for inlined functions ended.
    pub(crate) inlined: Inlined,
    /// Bytes of symbols that were left out.
    pub(crate) symbols_left_out: u64,
    /// Files that are programs.
    pub(crate) programs: usize,
    /// Where the debugging file may lie, as the process sees it.
    pub(crate) debug_files: Vec<String>,
}

/// Reads a program file and, where a second one is given, its debugging file: a stripped file's own table names only exported functions.
pub(crate) struct FunctionReader;

impl Reader for FunctionReader {
    const NAME: &'static str = "functions";
    type Question = FunctionQuestion;
    type Answer = NamedFunctions;

    fn read(question: FunctionQuestion, files: Vec<File>) -> Result<NamedFunctions, String> {
        Ok(functions(&question, &files.into_iter().map(Bytes::File).collect::<Vec<_>>()))
    }
}

/// The functions at the addresses of a program.
pub(crate) fn functions(question: &FunctionQuestion, files: &[Bytes]) -> NamedFunctions {
    let FunctionQuestion { path, addresses, starts, stubs, inline_time, debug_bytes_max } = question;
    let until = inline_time.map(|time| Instant::now() + time);
    let mut best: Vec<Option<Candidate>> = vec![None; addresses.len()];
    let mut answer = NamedFunctions::default();
    let mut build_id = None;
    for (index, bytes) in files.iter().enumerate() {
        let Some(sections) = Sections::read(bytes) else { continue };
        // Its debugging file bears the same (gdb manual, "Separate Debug Files").
        let own_id = sections.build_id();
        if index > 0 && build_id.is_some() && own_id != build_id {
            continue;
        }
        build_id = build_id.or(own_id);
        answer.programs += 1;
        answer.symbols_left_out += collect(&sections, addresses, starts, &mut best);
        if answer.inlined == Inlined::None {
            answer.inlined = until.map_or(Inlined::None, |until| inlined(&sections, addresses, until, *debug_bytes_max));
        }
        if index == 0 {
            answer.debug_files = debug_files(path, &sections);
        }
    }
    let module = crate::host::file_name(path);
    let named = addresses.iter().zip(starts).zip(best).map(|((address, start), candidate)| {
        if let Some(candidate) = candidate {
            return frame(demangle(&candidate.name), module, true);
        }
        if stubs.iter().any(|stubs| stubs.contains(address)) {
            return frame(format!("[calls out of {module}]"), module, true);
        }
        frame(format!("{module}+{:#x}", start.unwrap_or(*address)), module, false)
    });
    let inside = |index: usize| match &answer.inlined {
        Inlined::Found(names) => names.get(index).map(Vec::as_slice).unwrap_or_default(),
        _ => &[],
    };
    let frames = named.enumerate().map(|(index, function)| {
        let inside = inside(index).iter().map(|name| frame(demangle(name), module, true));
        std::iter::once(function).chain(inside).collect()
    });
    answer.frames = frames.collect();
    // Their names are in the frames.
    if matches!(answer.inlined, Inlined::Found(_)) {
        answer.inlined = Inlined::Found(Vec::new());
    }
    answer
}

fn frame(name: String, module: &str, named: bool) -> Frame {
    Frame { name, module: module.to_owned(), kind: FrameKind::User, named }
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

/// Where the debugging file of a program may lie, as its process sees it (gdb manual, "Separate Debug Files").
fn debug_files(path: &str, sections: &Sections<'_>) -> Vec<String> {
    let mut inside = Vec::new();
    if let Some(id) = sections.build_id().filter(|id| (2..=64).contains(&id.len())) {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        inside.push(format!("/usr/lib/debug/.build-id/{}/{}.debug", &hex[..2], &hex[2..]));
    }
    if let Some(link) = sections.debug_link().filter(|link| !link.contains('/') && !link.is_empty() && link != "..")
        && let Some((directory, _)) = path.rsplit_once('/')
    {
        inside.extend([format!("{directory}/.debug/{link}"), format!("/usr/lib/debug{directory}/{link}")]);
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_precise_of_several_symbols_is_used() {
        let candidate = |start, sized, global, name: &str| Candidate { start, sized, global, name: name.to_owned() };
        assert!(candidate(8, true, false, "inner").beats(&candidate(4, true, true, "outer")));
        assert!(candidate(4, true, false, "sized").beats(&candidate(8, false, true, "label")));
        assert!(candidate(4, true, true, "malloc").beats(&candidate(4, true, true, "__libc_malloc")));
        assert!(candidate(4, true, true, "global").beats(&candidate(4, true, false, "local")));
    }

    /// A name from the debugging file of another build would be wrong.
    #[test]
    fn a_debugging_file_of_another_build_names_nothing() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let id = Sections::read(&Bytes::Memory(own.clone())).and_then(|sections| sections.build_id()).unwrap();
        let at = own.windows(id.len()).position(|bytes| bytes == id).unwrap();
        let mut other = own.clone();
        other[at] ^= 1;
        let question = FunctionQuestion {
            path: "/x/self".to_owned(),
            addresses: vec![1],
            starts: vec![None],
            stubs: Vec::new(),
            inline_time: None,
            debug_bytes_max: u64::MAX,
        };
        let programs = |debug: Vec<u8>| functions(&question, &[Bytes::Memory(own.clone()), Bytes::Memory(debug)]).programs;
        assert_eq!((programs(own.clone()), programs(other)), (2, 1));
    }
}
