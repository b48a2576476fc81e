//! Damaged input from other programs: maps, program files with their tables and debugging information, stored profiles. The profiler reads each within the
//! bounds of `docs/fuzzing.md`.

use chokepoint_hostile::{Allocator, Chance, Corpus, run, run_each, run_made};
use object::{Object, ObjectSection};

use crate::analysis::{difference, parts, report};
use crate::naming::demangle::demangle;
use crate::naming::kallsyms::Kallsyms;
use crate::naming::names::{self, Raw};
use crate::naming::perf_map::PerfMap;
use crate::output::{firefox, flame, folded, pprof, svg, text};
use crate::profile::Profile;
use crate::sampling::record;
use crate::unwinding::image::Image;
use crate::unwinding::mappings::{Backing, Mapping, Mappings};
use crate::unwinding::sections::{NamedSections as _, Sections};
use crate::unwinding::tables::{Bytes, MemoryLimit};
use crate::unwinding::unwinder::{Space, Unwinder};
use crate::{tracefs, waits_text};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const MAPS: &str = "\
55d0c0a00000-55d0c0a2f000 r--p 00000000 fe:00 1573                       /usr/sbin/nginx
55d0c0a2f000-55d0c0aef000 r-xp 0002f000 fe:00 1573                       /usr/sbin/nginx
7f0000000000-7f0000001000 rwxs 00000000 00:01 7                          /dev/zero (deleted)
7f0000002000-7f0000003000 r-xp 00001000 00:2f 88                         /srv/a b (deleted)
7ffd1b3f4000-7ffd1b3f6000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";
const PERF_MAP: &str =
    "1000 20 LazyCompile:*f /a b.js:1\n0x1040 10 g\n1040 8 g2\n7f00a0000000 1f0 Stub:CEntry_Return1\nffffffffffffff00 fff end\n";
const KALLSYMS: &str =
    "ffffffff81000000 T _stext\nffffffff81000100 t do_one\nffffffffc0000000 t nf_conntrack_in\t[nf_conntrack]\n0000000000000000 A zero\n";
const FORMAT: &str = "name: kfree_skb\nID: 1\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:void * skbaddr;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:enum skb_drop_reason reason;\toffset:28;\tsize:4;\tsigned:0;\n\n\
    print fmt: \"%s\", __print_symbolic(REC->reason, { 2, \"NOT_SPECIFIED\" }, { 3, \"NO_SOCKET\" })\n";
const FOLDED: &[&str] = &[
    include_str!("../tests/data/port-search.folded"),
    "nginx;main;malloc 30\nnginx;main;write;ksys_write_[k];sock_write_iter_[k];tcp_sendmsg_[k] 70\nphp-fpm;main;run_[j] 4\n",
];
/// Names as compilers write them.
const NAMES: &[&str] = &[
    "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
    "_RNvNtCs1234_7mycrate3foo3bar",
    "_ZN2v88internal4Heap14CollectGarbageEv",
    "_ZNSt6vectorIiSaIiEE9push_backERKi",
    "_ZNKSt8functionIFvT_DpT0_EEclIJRKS0_EEEvv",
    "_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE",
    "memcpy@@GLIBC_2.14",
];
/// Program files made from `tests/data/programs/small.c`.
const PROGRAMS: &[&[u8]] = &[
    include_bytes!("../tests/data/programs/dwarf5.elf"),
    include_bytes!("../tests/data/programs/dwarf4-packed.elf"),
    include_bytes!("../tests/data/programs/split.elf"),
    include_bytes!("../tests/data/programs/stripped.elf"),
];

/// Mappings inserted one by one, as while a profile is taken.
fn inserted_one_by_one<'a>(all: impl Iterator<Item = &'a Mapping>) -> Mappings {
    let mut inserted_one_by_one = Mappings::default();
    all.for_each(|mapping| inserted_one_by_one.insert(mapping.clone()));
    inserted_one_by_one
}

#[test]
fn text_of_other_programs_is_read_within_bounds() {
    let read_map = |input: &[u8]| {
        let map = PerfMap::parse(input, &[0, 0x1000, 0x1047, u64::MAX]);
        let named: Vec<_> = [0, 0x1000, 0x1047, u64::MAX].iter().filter_map(|address| map.find(*address)).collect();
        assert!(named.iter().all(|name| !name.is_empty()));
    };
    run("perf map", &Corpus::text(&[PERF_MAP]), read_map);
    // As many as a process may have, in descending order.
    let descending: String =
        (0..30_000_u64).rev().map(|page| format!("{:x}-{:x} rwxp 00000000 00:00 0 \n", page * 8192, page * 8192 + 4096)).collect();
    let read_maps = |input: &[u8]| {
        let maps = Mappings::parse(&String::from_utf8_lossy(input));
        assert!(inserted_one_by_one(maps.iter().rev()) == maps);
        let starts: Vec<u64> = maps.iter().flat_map(|mapping| [mapping.start, mapping.end]).collect();
        assert!(starts.is_sorted());
        assert!([0, 0x55d0_c0a2_f000, u64::MAX].iter().all(|address| maps.find(*address).is_none_or(|found| found.start <= *address)));
    };
    run_each("maps that descend", &[descending.into_bytes()], read_maps);
    run("maps", &Corpus::text(&[MAPS]), read_maps);
    // Many, in any order, overlapping.
    let many = |chance: &mut Chance| {
        let count = if chance.once_in(10_000) { 20_000 } else { chance.below(50) };
        let span = if chance.once_in(2) { 1 << 30 } else { 1 << 8 };
        let line = |chance: &mut Chance| {
            let start = chance.below(span);
            format!("{start:x}-{:x} r-xp {:x} 00:00 0 \n", start + chance.below(64), chance.below(span)).into_bytes()
        };
        (0..count).flat_map(|_| line(chance)).collect()
    };
    run_made("maps in any order", many, |input| {
        let text = String::from_utf8_lossy(input);
        let maps = Mappings::parse(&text);
        assert!(maps.iter().zip(maps.iter().skip(1)).all(|(one, next)| one.start < one.end && one.end <= next.start));
        assert!(inserted_one_by_one(maps.iter().rev()) == maps);
    });
    run("kallsyms", &Corpus::text(&[KALLSYMS]), |input| {
        let kallsyms = Kallsyms::read(input, &[0xffff_ffff_8100_0000, u64::MAX, 0]);
        let _ = (kallsyms.find(0xffff_ffff_8100_0000), kallsyms.find(u64::MAX), kallsyms.find(0));
    });
    run("tracepoint format", &Corpus::text(&[FORMAT]), |input| {
        let format = tracefs::Format::parse(&String::from_utf8_lossy(input));
        for name in ["reason", "skbaddr", "common_type"] {
            let _ = (format.number(name, input), format.bytes(name, &[7; 40]).map(<[u8]>::len));
        }
    });
    run("name", &Corpus::text(NAMES), |input| drop(demangle(&String::from_utf8_lossy(input))));
    run("samples", &Corpus::bytes(vec![vec![9, 0, 0, 0, 2, 0, 40, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]]), |input| {
        let _ = record::parse(input, &mut Vec::new());
    });
}

/// Shows a profile in one of the possible ways.
fn show(profile: &Profile, way: usize) {
    let layout = text::Layout { width: 100, unicode: true, tree_share_min: 0.01 };
    let before = || profile.only(|sample, _| sample.weight % 2 == 0);
    match way % 10 {
        0 => drop(text::render(profile, &report::report(profile), &layout)),
        1 => drop((waits_text::render(profile, &layout), profile.quality())),
        2 => drop((parts::parts(profile, 8), parts::functions(profile, 8))),
        3 => drop(folded::write(profile)),
        4 => drop(svg::picture(profile, "t")),
        5 => drop(serde_json::to_string(&flame::of(profile))),
        6 => drop(pprof::file(profile)),
        7 => drop(firefox::file(profile, "p")),
        8 => drop((difference::layers(profile, &before()), difference::functions(profile, &before()))),
        _ => drop(difference::join(profile, &before())),
    }
}

/// A sparse program file with one section that claims this size.
fn sparse(path: &std::path::Path, name: &str, kind: u32, size: u64) {
    let names = [b"\0", name.as_bytes(), b"\0.shstrtab\0"].concat();
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    // The layouts of elf(5): the header, one program header, three section headers, the names; the section lies behind the first page.
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend(words(&[pair(0x003e_0003, 1), 0x1000, 64, 120, pair(0, 0x0038_0040), 0x0002_0003_0040_0001]));
    file.extend(words(&[pair(1, 5), 0, 0, 0, 0x1000, 0x1000, 0x1000]));
    file.extend(words(&[0; 8]));
    file.extend(words(&[pair(1, kind), 2, 0x1000, 0x1000, size, pair(2, 0), 8, 24]));
    let strings = u64::try_from(names.len()).expect("it is short");
    file.extend(words(&[pair(u32::try_from(name.len() + 2).expect("it is short"), 3), 0, 0, 312, strings, 0, 1, 0]));
    file.extend(names);
    std::fs::write(path, file).expect("a file below the temporary directory");
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("it is there");
    file.set_len(0x1000 + size).expect("a file system that knows sparse files");
}

/// Peak of the bytes held for the address space of a process that maps these files, and the note about it.
fn held_bytes_for(paths: &[std::path::PathBuf]) -> (u64, Option<String>) {
    held_bytes_within(MemoryLimit::default(), paths)
}

/// The same within a limit.
fn held_bytes_within(limit: MemoryLimit, paths: &[std::path::PathBuf]) -> (u64, Option<String>) {
    let (mut mappings, mut note) = (Mappings::default(), None);
    for (start, path) in (0..).map(|number| 0x10_0000 + number * 0x1000).zip(paths) {
        let path = path.to_str().expect("a plain name").to_owned();
        mappings.insert(Mapping { start, end: start + 0x1000, offset: 0, backing: Backing::File { device: (0, 0), inode: 0, path } });
    }
    let held = chokepoint_hostile::peak(|| {
        let mut unwinder = Unwinder::within(limit);
        unwinder.space(std::process::id(), &mappings);
        let (images, told) = unwinder.finish();
        assert!(!images.is_empty(), "the files are programs");
        note = told;
    });
    (held, note)
}

#[test]
fn files_that_claim_large_tables_take_bounded_memory() {
    const PROGBITS: u32 = 1;
    let directory = tempfile::tempdir().expect("a directory for temporary files");
    let path = |name: &str| directory.path().join(name);
    // Many paths of one file are one file.
    let links: Vec<_> = (0..8).map(|number| path(&format!("link{number}"))).collect();
    sparse(&links[0], ".eh_frame", PROGBITS, 24 << 20);
    links[1..].iter().for_each(|link| std::fs::hard_link(&links[0], link).expect("a second name"));
    let (held, note) = held_bytes_for(&links[..1]);
    assert!(held >= 24 << 20 && note.is_none(), "one has its table: {held} bytes, {note:?}");
    let (held, _) = held_bytes_for(&links);
    assert!(held < 26 << 20, "{held} bytes for eight names of one file");
    // Of many files, those beyond the limit have no tables, and the note says so.
    let many: Vec<_> = (0..8).map(|number| path(&format!("file{number}"))).collect();
    many.iter().for_each(|path| sparse(path, ".eh_frame", PROGBITS, 20 << 20));
    let (held, note) = held_bytes_for(&many);
    assert!(held < 66 << 20, "{held} bytes for eight files");
    assert!(note.as_deref().is_some_and(|note| note.contains("file7") || note.contains("and others")), "{note:?}");
    // A file above the limit leaves the room to others.
    sparse(&links[0], ".eh_frame", PROGBITS, 1 << 30);
    let (held, note) = held_bytes_for(&[links[0].clone(), many[0].clone()]);
    assert!(held > 20 << 20 && held < 26 << 20, "{held} bytes");
    assert!(note.as_deref().is_some_and(|note| note.contains("link0") && !note.contains("file0")), "{note:?}");
}

#[test]
fn files_that_claim_large_symbol_tables_take_bounded_memory() {
    const SYMTAB: u32 = 2;
    let directory = tempfile::tempdir().expect("a directory for temporary files");
    let path = directory.path().join("symbols");
    sparse(&path, ".symtab", SYMTAB, 48 << 30);
    let (held, _) = held_bytes_for(std::slice::from_ref(&path));
    assert!(held < 1 << 20, "{held} bytes to map it");
    let file = std::fs::File::open(&path).expect("it is there");
    let images = [Image::bare("symbols".to_owned(), 0, Bytes::File(file)).expect("a program")];
    let held = chokepoint_hostile::peak(|| {
        names::resolve([Raw::Image(0, 0x1000)].into_iter(), &images, MemoryLimit::default(), |_| true);
    });
    assert!(held < chokepoint_hostile::MEMORY_MAX, "{held} bytes to name an address in it");
}

#[test]
fn a_function_of_a_large_symbol_table_is_named_and_what_is_left_out_is_said() {
    const SYMTAB: u32 = 2;
    let directory = tempfile::tempdir().expect("a directory for temporary files");
    // Its last symbol is a global function at 0x1000 with the name of the section, which is the only text of the file.
    let named = |name: &str, size: u64| {
        let path = directory.path().join(name);
        sparse(&path, ".symtab", SYMTAB, size);
        let symbol = [[1, 0, 0, 0, 0x12, 0, 1, 0], 0x1000_u64.to_le_bytes(), 16_u64.to_le_bytes()].concat();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).expect("it is there");
        std::os::unix::fs::FileExt::write_all_at(&file, &symbol, 0x1000 + size - 24).expect("it can be written");
        let images = [Image::bare(name.to_owned(), 0, Bytes::File(file)).expect("a program")];
        let mut told = None;
        let held = chokepoint_hostile::peak(|| {
            told = Some(names::resolve([Raw::Image(0, 0x1004)].into_iter(), &images, MemoryLimit::default(), |_| true));
        });
        let (frames, unnamed) = told.expect("it was resolved");
        (frames[&Raw::Image(0, 0x1004)][0].name.clone(), held, unnamed.left_out)
    };
    let (name, held, left_out) = named("large", 24 * (2 << 20));
    assert_eq!((name.as_str(), left_out.as_slice()), (".symtab", [].as_slice()));
    assert!(held < 4 << 20, "{held} bytes to name one of two million functions");
    let (name, held, left_out) = named("larger", 24 * (8 << 20));
    assert_eq!((name.as_str(), left_out.as_slice()), ("larger+0x1004", ["symbols left out: larger (64 MiB)".to_owned()].as_slice()));
    assert!(held < 4 << 20, "{held} bytes");
}

#[test]
fn a_smaller_limit_holds_for_tables_and_debugging_information_and_what_is_left_out_is_said() {
    const PROGBITS: u32 = 1;
    let directory = tempfile::tempdir().expect("a directory for temporary files");
    let paths: Vec<_> = (0..4).map(|number| directory.path().join(format!("compiler{number}"))).collect();
    // A file without a search table takes as much again for the one that is made for it.
    paths.iter().for_each(|path| sparse(path, ".eh_frame", PROGBITS, 3 << 19));
    let limit = MemoryLimit::within(8 << 20);
    let (held, note) = held_bytes_within(limit, &paths);
    assert!(held > 3 << 19 && held < 5 << 20, "{held} bytes for four files");
    let note = note.expect("three are left out");
    assert!(note.contains("compiler3") && note.contains(", 4.5 MiB of unwind tables are left out") && note.contains("4 MiB"), "{note}");
    sparse(&paths[0], ".debug_info", PROGBITS, 3 << 20);
    let file = std::fs::File::open(&paths[0]).expect("it is there");
    let images = [Image::bare("compiler".to_owned(), 0, Bytes::File(file)).expect("a program")];
    let held = chokepoint_hostile::peak(|| {
        let (_, unnamed) = names::resolve([Raw::Image(0, 0x1000)].into_iter(), &images, limit, |_| true);
        let told = unnamed.left_out.join(" ");
        assert!(told.contains("compiler (3 MiB); at most 2 MiB"), "{told}");
    });
    assert!(held < 1 << 20, "{held} bytes");
}

/// The memory kept for a map depends on what it names, not on its length.
#[test]
fn a_long_perf_map_takes_bounded_memory() {
    let text = b"1 1 a\n".repeat(1 << 18);
    let held = chokepoint_hostile::peak(|| {
        PerfMap::parse(&text, &[0, 1, 0x1000]);
    });
    assert!(held < text.len() as u64, "{held} bytes for a map of {}", text.len());
}

#[test]
fn stored_profiles_are_shown_within_bounds() {
    let small = folded::read(FOLDED[1]).expect("it is folded");
    let stored = serde_json::to_string(&small).expect("it can be written");
    run("stored profile", &Corpus { parts: false, ..Corpus::text(&[&stored]) }, |input| {
        if let Ok(profile) = Profile::from_json(&String::from_utf8_lossy(input)) {
            show(&profile, input.len());
        }
    });
    // A million samples of one deep stack in a short line, shown in each way.
    let deep = |way: usize| format!("{}{} 1048576\n", "a;".repeat(2000), "b".repeat(1 + way)).into_bytes();
    let deep: Vec<Vec<u8>> = (0..10).map(deep).collect();
    run_each("deep stacks", &deep, |input| show(&folded::read(&String::from_utf8_lossy(input)).expect("it is folded"), input.len()));
    run("folded stacks", &Corpus::text(FOLDED), |input| {
        if let Ok(profile) = folded::read(&String::from_utf8_lossy(input)) {
            show(&profile, input.len());
        }
    });
}

/// The parts of a program file that are read: its headers, the table of its sections, and each section.
fn regions(program: &[u8]) -> Vec<std::ops::Range<usize>> {
    let elf = object::File::parse(program).expect("a program");
    let table = usize::try_from(u64::from_le_bytes(program[40..48].try_into().expect("eight bytes"))).expect("it lies in the file");
    let sections = elf.sections().filter_map(|section| section.file_range());
    let sections = sections.filter_map(|(start, length)| Some(usize::try_from(start).ok()?..usize::try_from(start + length).ok()?));
    [0..64, 64..600, table..program.len()].into_iter().chain(sections.filter(|region| !region.is_empty())).collect()
}

/// A program file, damaged in one part or as a whole.
fn damaged(programs: &[(&[u8], Vec<std::ops::Range<usize>>)], chance: &mut Chance) -> Vec<u8> {
    let Some((program, regions)) = chance.of(programs) else { return Vec::new() };
    if chance.once_in(4) {
        return Corpus::bytes(vec![program.to_vec()]).damaged(chance);
    }
    let mut program = program.to_vec();
    for _ in 0..1 + chance.below(3) {
        let Some(region) = chance.of(regions).cloned() else { continue };
        let new = Corpus::bytes(vec![program[region.clone()].to_vec()]).damaged(chance);
        // Bytes behind the damaged part keep their position.
        program[region].iter_mut().zip(new).for_each(|(old, new)| *old = new);
    }
    program
}

/// Reads everything that is ever read of a program file.
fn read_program(input: &[u8]) {
    let Some(image) = Image::new("/usr/bin/odd".to_owned(), 0, Bytes::Memory(input.to_vec())) else { return };
    let mapping = Mapping { start: 0x10000, end: 0x20000, offset: 0, backing: Backing::Anonymous };
    let addresses: Vec<u64> = [0, 1, 0x1000, 0x1013, 0x1080, 0x10f0, 0x40_1010, 0x40_1090, u64::MAX].to_vec();
    let _ = (image.bias(&mapping), image.function_offset("outer"), image.code(0x1000, 64));
    assert!(addresses.iter().all(|address| image.function_start(*address).is_none_or(|start| start <= *address)));
    let section = |sections: Sections<'_>| {
        (sections.build_id(), sections.debug_link(), sections.section(".debug_info", 1 << 20).map(|bytes| bytes.len()))
    };
    let _ = (image.sections().map(section), image.function_offset("small::mangled"));
    let space = Space::of_one(&image, 0x10000, &mapping);
    for address in [0x11000_u64, 0x11013, 0x11080, 0x110f0] {
        let mut places = Vec::new();
        Unwinder::default().walk(&space, [0, 0, 0x7010, 0x7000, address, address], &[0x11; 512], |_| None, &mut places);
    }
    let images = [image];
    names::resolve(addresses.into_iter().map(|address| Raw::Image(0, address)), &images, MemoryLimit::default(), |_| true);
}

#[test]
fn program_files_are_read_within_bounds() {
    let programs: Vec<_> = PROGRAMS.iter().map(|program| (*program, regions(program))).collect();
    let image = Image::new("small".to_owned(), 0, Bytes::Memory(PROGRAMS[0].to_vec())).expect("a program");
    let (frames, _) = names::resolve((0x1000..0x1120).map(|address| Raw::Image(0, address)), &[image], MemoryLimit::default(), |_| true);
    let named = |name: &str| frames.values().flatten().any(|frame| frame.name == name);
    assert!(named("outer") && named("inner") && named("innermost"), "functions and what was put into them are found: {frames:?}");
    for program in PROGRAMS {
        read_program(program);
    }
    run_made("program file", |chance| damaged(&programs, chance), read_program);
}
