//! What users can ask to count, and how this kernel can count it: by tracepoint, uprobe, kprobe or a counter of the processor.

use std::collections::HashSet;
use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use perf_event_open_sys::bindings as b;

use crate::host;
use crate::tracefs::{NoTracefs, Tracefs, is_name};
use crate::unwinding::image::Image;
use crate::unwinding::mappings::{Backing, Mappings};
use crate::unwinding::tables::Bytes;

/// What to count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum What {
    /// One of [`DEFAULT`], by whichever way the kernel has.
    Known(&'static str),
    /// "sched:sched_switch": a tracepoint; "libc:malloc": a function of a library or program. The kernel's list of tracepoints decides.
    Pair(String, String),
    /// A function of the kernel.
    Kernel(String),
    /// A counter of the processor or the kernel that needs no probe ([`counters`]).
    Counter(&'static str),
}

/// What is counted by default.
pub const DEFAULT: &[&str] = &["malloc", "tcp_recvmsg", "sendfile", "connect", "accept"];

/// A generic counter of perf_event_open(2).
struct GenericCounter {
    name: &'static str,
    kind: u32,
    config: u64,
    hardware: bool,
}

const fn cache(id: u32, operation: u32, result: u32) -> u64 {
    id as u64 | (operation as u64) << 8 | (result as u64) << 16
}

const fn hardware(name: &'static str, config: u32) -> GenericCounter {
    GenericCounter { name, kind: b::PERF_TYPE_HARDWARE, config: config as u64, hardware: true }
}

const fn software(name: &'static str, config: u32) -> GenericCounter {
    GenericCounter { name, kind: b::PERF_TYPE_SOFTWARE, config: config as u64, hardware: false }
}

const fn data_tlb(name: &'static str, result: u32) -> GenericCounter {
    let config = cache(b::PERF_COUNT_HW_CACHE_DTLB, b::PERF_COUNT_HW_CACHE_OP_READ, result);
    GenericCounter { name, kind: b::PERF_TYPE_HW_CACHE, config, hardware: true }
}

const COUNTERS: &[GenericCounter] = &[
    hardware("cycles", b::PERF_COUNT_HW_CPU_CYCLES),
    hardware("instructions", b::PERF_COUNT_HW_INSTRUCTIONS),
    data_tlb("dTLB-loads", b::PERF_COUNT_HW_CACHE_RESULT_ACCESS),
    data_tlb("dTLB-load-misses", b::PERF_COUNT_HW_CACHE_RESULT_MISS),
    hardware("cache-misses", b::PERF_COUNT_HW_CACHE_MISSES),
    software("context-switches", b::PERF_COUNT_SW_CONTEXT_SWITCHES),
    software("page-faults", b::PERF_COUNT_SW_PAGE_FAULTS),
];

/// Names of the counters that need no probe.
pub fn counters() -> impl Iterator<Item = &'static str> {
    COUNTERS.iter().map(|generic| generic.name)
}

/// Why a word names nothing that can be counted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" cannot be counted: write CATEGORY:TRACEPOINT (sched:sched_switch), LIBRARY:FUNCTION (libc:malloc), a kernel FUNCTION (tcp_v4_connect), or one of {list}", list = counters().collect::<Vec<_>>().join(", "))]
pub struct WhatError(String);

impl std::str::FromStr for What {
    type Err = WhatError;

    fn from_str(text: &str) -> Result<Self, WhatError> {
        let wrong = || WhatError(text.chars().take(80).collect());
        let printable = |part: &str| !part.is_empty() && part.len() <= 4096 && !part.chars().any(|letter| letter.is_control());
        // The library ends at the first colon: C++ functions contain colons too.
        if let Some((first, second)) = text.split_once(':') {
            let sound = printable(first) && printable(second);
            return if sound { Ok(Self::Pair(first.to_owned(), second.to_owned())) } else { Err(wrong()) };
        }
        if let Some(known) = DEFAULT.iter().find(|known| **known == text) {
            return Ok(Self::Known(known));
        }
        if let Some(generic) = COUNTERS.iter().find(|generic| generic.name == text) {
            return Ok(Self::Counter(generic.name));
        }
        if is_name(text) { Ok(Self::Kernel(text.to_owned())) } else { Err(wrong()) }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(name) | Self::Counter(name) => f.write_str(name),
            Self::Pair(first, second) => write!(f, "{first}:{second}"),
            Self::Kernel(name) => f.write_str(name),
        }
    }
}

/// A tracepoint with a condition that counts one of the default set.
struct TracepointWithFilter {
    category: &'static str,
    name: &'static str,
    filter: Option<&'static str>,
}

const fn syscall_entry(name: &'static str) -> TracepointWithFilter {
    TracepointWithFilter { category: "syscalls", name, filter: None }
}

/// The tracepoints whose sum counts one of the default set. Those that a kernel or architecture lacks are left out. `IPPROTO_TCP` is 6.
fn tracepoints_for(known: &str) -> &'static [TracepointWithFilter] {
    const RECEIVED: &[TracepointWithFilter] =
        &[TracepointWithFilter { category: "sock", name: "sock_recv_length", filter: Some("protocol == 6") }];
    const SENDFILE: &[TracepointWithFilter] = &[syscall_entry("sys_enter_sendfile64"), syscall_entry("sys_enter_sendfile")];
    const CONNECT: &[TracepointWithFilter] = &[syscall_entry("sys_enter_connect")];
    const ACCEPT: &[TracepointWithFilter] = &[syscall_entry("sys_enter_accept4"), syscall_entry("sys_enter_accept")];
    match known {
        "tcp_recvmsg" => RECEIVED,
        "sendfile" => SENDFILE,
        "connect" => CONNECT,
        "accept" => ACCEPT,
        _ => &[],
    }
}

/// The place of a probe.
#[derive(Debug, Clone)]
pub(crate) enum Probe {
    /// The beginning of a function of the kernel.
    Kernel(CString),
    /// An offset in this very file. The kernel writes a breakpoint there into the memory of all processes that map it, so it gets no path: a path may lead to another file in
    /// the mount namespace of the process that maps the first.
    File(Arc<File>, u64),
}

impl Probe {
    /// The name and the offset that perf_event_open(2) takes.
    pub(crate) fn name_and_offset(&self) -> io::Result<(CString, u64)> {
        match self {
            Self::Kernel(function) => Ok((function.clone(), 0)),
            Self::File(file, offset) => {
                let name = format!("{}/self/fd/{}", host::PROC, file.as_raw_fd());
                Ok((CString::new(name).map_err(io::Error::other)?, *offset))
            }
        }
    }
}

/// An event of perf_event_open(2) to count.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) kind: u32,
    pub(crate) config: u64,
    /// Of a probe: where it is placed.
    pub(crate) probe: Option<Probe>,
    /// Of a probe in a program: whether the kernel single-steps its instruction.
    pub(crate) is_single_stepped: bool,
    /// A condition on the data of a tracepoint.
    pub(crate) filter: Option<CString>,
    /// The processes in which it can happen; none for all.
    pub(crate) pids: Option<HashSet<u32>>,
}

/// How something is counted.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) how: String,
    pub(crate) mechanism: Mechanism,
    pub(crate) events: Vec<Event>,
}

/// The mechanism of an event, which decides its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mechanism {
    Tracepoint,
    Uprobe,
    Kprobe,
    Counter,
}

/// What this kernel lacks for counting and sampling, in sentences.
pub fn lacking() -> Vec<String> {
    let mut lacking = Kernel::read().lacking();
    lacking.extend(crate::drops::lacking());
    lacking
}

/// What this kernel offers for counting, looked up once.
pub(crate) struct Kernel {
    pub(crate) tracefs: Result<Tracefs, NoTracefs>,
    uprobe: Option<u32>,
    kprobe: Option<u32>,
    pub(crate) pmu: bool,
}

impl Kernel {
    pub(crate) fn read() -> Self {
        let pmu_type = |name: &str| host::text(&format!("/sys/bus/event_source/devices/{name}/type"))?.trim().parse().ok();
        Self { tracefs: Tracefs::open(), uprobe: pmu_type("uprobe"), kprobe: pmu_type("kprobe"), pmu: host::has_pmu() }
    }

    /// What this kernel lacks, in sentences.
    pub(crate) fn lacking(&self) -> Vec<String> {
        let mut lacking = Vec::new();
        if !self.pmu {
            lacking.push("this machine has no PMU, so cycles, instructions and cache misses are not counted".to_owned());
        }
        if self.kprobe.is_none() {
            lacking.push(
                "this kernel has no kprobes (CONFIG_KPROBES), so its functions are counted only if it has a tracepoint for them".to_owned(),
            );
        }
        if self.uprobe.is_none() {
            lacking.push("this kernel has no uprobes (CONFIG_UPROBE_EVENTS), so functions of programs are not counted".to_owned());
        }
        if let Err(none) = &self.tracefs {
            lacking.push(none.to_string());
        }
        lacking
    }

    /// How to count something in these processes, or why it cannot be counted here.
    pub(crate) fn resolve(&self, what: &What, pids: &[u32]) -> Result<Source, String> {
        match what {
            What::Known("malloc") => self.uprobe(None, "malloc", pids),
            What::Known(name) => self.known(name),
            What::Kernel(name) => self.kernel_function(name),
            What::Counter(name) => self.counter(name),
            What::Pair(first, second) => match &self.tracefs {
                Ok(tracefs) => match tracefs.id(first, second) {
                    Some(id) => Ok(tracepoint(id, None, format!("tracepoint {first}:{second}"))),
                    None => self.uprobe(Some(first), second, pids).map_err(|why| format!("this kernel has no such tracepoint, and {why}")),
                },
                Err(none) => self.uprobe(Some(first), second, pids).map_err(|why| format!("{none}; and {why}")),
            },
        }
    }

    /// One of the default set: by kprobe if it is a kernel function, else by tracepoints in the same place.
    fn known(&self, name: &str) -> Result<Source, String> {
        if name == "tcp_recvmsg" && self.kprobe.is_some() {
            return self.kernel_function(name);
        }
        let tracefs = self.tracefs.as_ref().map_err(ToString::to_string)?;
        let found = tracepoints_for(name).iter().filter_map(|way| Some((way, tracefs.id(way.category, way.name)?)));
        let mut source = Source { how: String::new(), mechanism: Mechanism::Tracepoint, events: Vec::new() };
        for (way, id) in found {
            let described =
                format!("{}:{}{}", way.category, way.name, way.filter.map_or_else(String::new, |filter| format!(" if {filter}")));
            source.how = if source.how.is_empty() { format!("tracepoint {described}") } else { format!("{} + {described}", source.how) };
            source.events.extend(tracepoint(id, way.filter, String::new()).events);
        }
        if source.events.is_empty() {
            let wanted: Vec<String> = tracepoints_for(name).iter().map(|way| format!("{}:{}", way.category, way.name)).collect();
            return Err(format!("this kernel has neither kprobes nor the tracepoint {}", wanted.join(" or ")));
        }
        Ok(source)
    }

    fn kernel_function(&self, name: &str) -> Result<Source, String> {
        let Some(kind) = self.kprobe else {
            let instead = tracepoints_for(name)
                .first()
                .map_or_else(String::new, |way| format!("; {}:{} counts nearly the same", way.category, way.name));
            return Err(format!(
                "counting kernel functions needs kprobes, which this kernel lacks (CONFIG_KPROBES); tracepoints and LIBRARY:FUNCTION work{instead}"
            ));
        };
        let function = CString::new(name).map_err(|_| "the name contains a NUL byte".to_owned())?;
        let event = Event { kind, config: 0, probe: Some(Probe::Kernel(function)), is_single_stepped: false, filter: None, pids: None };
        Ok(Source { how: format!("kprobe {name}"), mechanism: Mechanism::Kprobe, events: vec![event] })
    }

    fn counter(&self, name: &str) -> Result<Source, String> {
        let generic = COUNTERS.iter().find(|generic| generic.name == name).ok_or("there is no such counter")?;
        if generic.hardware && !self.pmu {
            return Err("this machine has no PMU (virtual machines often have none)".to_owned());
        }
        let event = Event { kind: generic.kind, config: generic.config, probe: None, is_single_stepped: false, filter: None, pids: None };
        let how = if generic.hardware { "counter of the processor" } else { "counter of the kernel" };
        Ok(Source { how: how.to_owned(), mechanism: Mechanism::Counter, events: vec![event] })
    }

    /// Probes a function in each mapped file that matches `library`; without a library, in the allocator of each process.
    fn uprobe(&self, library: Option<&str>, function: &str, pids: &[u32]) -> Result<Source, String> {
        let kind = self.uprobe.ok_or("counting functions of programs needs uprobes, which this kernel lacks (CONFIG_UPROBE_EVENTS)")?;
        let mut files: Vec<ProbedFile> = Vec::new();
        let (mut seen, mut without) = (false, None);
        for pid in pids {
            let mappings = Mappings::parse(&host::maps(*pid).unwrap_or_default());
            for mapping in candidates(&mappings, library) {
                let Backing::File { path, .. } = &mapping.backing else { continue };
                seen = true;
                if let Some(file) = files.iter_mut().find(|file| file.backing == mapping.backing) {
                    file.pids.insert(*pid);
                    if library.is_none() {
                        break;
                    }
                    continue;
                }
                let found = Image::open(*pid, mapping).ok_or_else(|| format!("{path} cannot be read")).and_then(|image| {
                    let place = image.function_offset(function)?;
                    let Bytes::File(file) = image.bytes else { return Err(format!("{path} is no file")) };
                    Ok((Arc::new(file), place))
                });
                match found {
                    Ok((file, (offset, is_single_stepped))) => {
                        files.push(ProbedFile {
                            backing: mapping.backing.clone(),
                            file,
                            offset,
                            is_single_stepped,
                            pids: HashSet::from([*pid]),
                        });
                        if library.is_none() {
                            break;
                        }
                    }
                    Err(why) => without = Some(why),
                }
            }
        }
        if files.is_empty() {
            let library = library.unwrap_or("a library");
            return Err(match without {
                Some(why) => why,
                None if seen => format!("{library} has no function {function}"),
                None => format!("none of these processes uses {library}"),
            });
        }
        let described: Vec<String> = files.iter().take(3).map(ProbedFile::described).collect();
        let more = files.len().saturating_sub(described.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let event = |ProbedFile { file, offset, is_single_stepped, pids, .. }: ProbedFile| {
            let (probe, pids) = (Some(Probe::File(file, offset)), Some(pids));
            Event { kind, config: 0, probe, is_single_stepped, filter: None, pids }
        };
        let how = format!("uprobe {}{more}", described.join(", "));
        Ok(Source { how, mechanism: Mechanism::Uprobe, events: files.into_iter().map(event).collect() })
    }
}

/// A file that contains the function.
struct ProbedFile {
    backing: Backing,
    file: Arc<File>,
    offset: u64,
    is_single_stepped: bool,
    pids: HashSet<u32>,
}

impl ProbedFile {
    fn described(&self) -> String {
        let Backing::File { path, .. } = &self.backing else { return String::new() };
        format!("{}+{:#x}", host::file_name(path), self.offset)
    }
}

fn tracepoint(id: u64, filter: Option<&str>, how: String) -> Source {
    let filter = filter.and_then(|filter| CString::new(filter).ok());
    let event = Event { kind: b::PERF_TYPE_TRACEPOINT, config: id, probe: None, is_single_stepped: false, filter, pids: None };
    Source { how, mechanism: Mechanism::Tracepoint, events: vec![event] }
}

/// Mappings of the library. Without one: of possible allocators, in the dynamic linker's search order.
fn candidates<'a>(mappings: &'a Mappings, library: Option<&str>) -> Vec<&'a crate::unwinding::mappings::Mapping> {
    let files: Vec<_> = mappings.iter().filter(|mapping| matches!(mapping.backing, Backing::File { .. })).collect();
    let path = |mapping: &crate::unwinding::mappings::Mapping| match &mapping.backing {
        Backing::File { path, .. } => path.clone(),
        _ => String::new(),
    };
    if let Some(library) = library {
        return files.into_iter().filter(|mapping| is_library(&path(mapping), library)).collect();
    }
    let allocators = ["libjemalloc", "libtcmalloc", "libtcmalloc_minimal", "libmimalloc", "libc", "ld-musl"];
    let chosen = allocators.iter().flat_map(|name| files.iter().filter(|mapping| is_library(&path(mapping), name)).copied());
    chosen.chain(files.first().copied()).collect()
}

/// "libc" matches /lib/libc.so.6, libc-2.31.so and libc.musl-x86_64.so.1, but not libcrypto.so.3. A whole path matches only that file.
fn is_library(path: &str, library: &str) -> bool {
    let bare = path.trim_end_matches(" (deleted)");
    if library.contains('/') {
        return bare == library;
    }
    let name = host::file_name(path);
    name == library || name.strip_prefix(library).is_some_and(|rest| rest.starts_with(['.', '-']))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_parsed_as_what_they_name() {
        let what = |text: &str| text.parse::<What>();
        assert_eq!(what("malloc"), Ok(What::Known("malloc")));
        assert_eq!(what("sched:sched_switch"), Ok(What::Pair("sched".to_owned(), "sched_switch".to_owned())));
        assert_eq!(what("/lib/x.so:a::b"), Ok(What::Pair("/lib/x.so".to_owned(), "a::b".to_owned())));
        assert_eq!(what("tcp_v4_connect"), Ok(What::Kernel("tcp_v4_connect".to_owned())));
        assert_eq!(what("cycles"), Ok(What::Counter("cycles")));
        for wrong in ["", ":", "a:", ":b", "../x", "a b", "x\u{7}:y"] {
            assert!(what(wrong).is_err(), "{wrong}");
        }
        for name in DEFAULT {
            assert_eq!(what(name), Ok(What::Known(name)));
            assert!(*name == "malloc" || !tracepoints_for(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn libraries_match_by_short_name() {
        for path in ["/lib/libc.so.6", "/lib/libc-2.31.so", "/lib/libc.musl-x86_64.so.1", "/x/libc.so.6 (deleted)"] {
            assert!(is_library(path, "libc"), "{path}");
        }
        assert!(!is_library("/lib/libcrypto.so.3", "libc") && !is_library("/lib/libc.so.6", "/usr/lib/libc.so.6"));
        assert!(is_library("/usr/sbin/nginx", "nginx") && is_library("/usr/sbin/php-fpm8.2", "php-fpm8.2"));
    }

    #[test]
    fn a_loaded_allocator_comes_before_the_c_library() {
        let text =
            "1000-2000 r-xp 0 08:01 1 /bin/app\n3000-4000 r-xp 0 08:01 2 /lib/libc.so.6\n5000-6000 r-xp 0 08:01 3 /lib/libjemalloc.so.2\n";
        let mappings = Mappings::parse(text);
        let starts: Vec<u64> = candidates(&mappings, None).iter().map(|mapping| mapping.start).collect();
        assert_eq!(starts, [0x5000, 0x3000, 0x1000]);
        assert_eq!(candidates(&mappings, Some("app")).len(), 1);
    }

    #[test]
    fn an_error_names_what_the_kernel_lacks() {
        let kernel = Kernel { tracefs: Err(Tracefs::absent()), uprobe: None, kprobe: None, pmu: false };
        let why = |text: &str| kernel.resolve(&text.parse().unwrap(), &[std::process::id()]).unwrap_err();
        assert!(why("tcp_v4_connect").contains("CONFIG_KPROBES"), "{}", why("tcp_v4_connect"));
        assert!(why("cycles").contains("no PMU"));
        assert!(why("libc:malloc").contains("CONFIG_UPROBE_EVENTS") && why("libc:malloc").contains("tracefs"));
        assert!(why("accept").contains("tracefs"));
        assert!(kernel.resolve(&What::Counter("page-faults"), &[]).is_ok());
    }

    #[test]
    fn an_error_names_missing_functions_and_libraries() {
        let kernel = Kernel { tracefs: Err(Tracefs::absent()), uprobe: Some(8), kprobe: None, pmu: false };
        let why = |text: &str| kernel.resolve(&text.parse().unwrap(), &[std::process::id()]).unwrap_err();
        assert!(why("libnothing:malloc").contains("uses libnothing"), "{}", why("libnothing:malloc"));
        if kernel.resolve(&"libc:malloc".parse().unwrap(), &[std::process::id()]).is_ok() {
            assert!(why("libc:no_such_function").contains("no function no_such_function"), "{}", why("libc:no_such_function"));
        }
    }

    proptest! {
        #[test]
        fn arbitrary_words_are_parsed(text: String) {
            let _ = text.parse::<What>();
        }
    }
}
