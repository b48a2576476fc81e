//! Takes records in time order, keeps the mappings and names of processes, unwinds each sample at once, and counts equal stacks.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use indexmap::IndexSet;

use crate::host::{self, thread_cpu_s};
use crate::layers::layer::Layer;
use crate::naming::names::{Raw, Unnamed, resolve};
use crate::profile::{Frame, Sample, Stack, StackEnd, Thread};
use crate::sampling::interned::{self, Interned};
use crate::sampling::owners::Owners;
use crate::sampling::record::{self, Record};
use crate::sampling::scope::Scope;
use crate::unwinding::image::Image;
use crate::unwinding::mappings::{Backing, Mapping, Mappings};
use crate::unwinding::tables::MemoryLimit;
use crate::unwinding::unwinder::{CodeLocation, ImageId, Space, Unwinder, leaf};
use crate::waiting::peers;
use crate::waiting::waits::Wait;

/// Maximum number of samples: an hour at 99 Hz on eleven busy cores. Samples beyond it are counted as lost.
const SAMPLES_MAX: usize = 1 << 22;
/// Maximum number of distinct stacks. Samples with further stacks are counted as lost.
const STACKS_MAX: usize = 1 << 20;
/// Maximum number of functions of all distinct stacks, from which on it is the same. They take 16 bytes each.
const STACK_FRAMES_MAX: usize = 1 << 24;
/// Inlined functions are looked up only in files that at least this share of the samples goes through. Reading debugging information takes as long for
/// one sample as for all of them. It would be read even for this program's own few samples.
const INLINE_SHARE_MIN: f64 = 0.01;
/// Most processes whose mappings are read for samples that are not walked, where the CPU time for that is used up: some 100 us each.
const LEAVES_PROCESSES_MAX: usize = 64;
/// Maximum number of processes whose mappings are kept.
const PROCESSES_MAX: usize = 1 << 16;
/// Maximum number of processes whose starter is kept, 8 bytes each: those of a minute in which 16 cores start a process in a millisecond each. Pids come again.
const STARTS_MAX: usize = 1 << 20;

/// Maximum number of distinct peers that threads wait for.
const PEERS_MAX: usize = 1 << 10;

/// Whose samples are kept.
#[derive(Debug, Clone, Default)]
pub(crate) enum Wanted {
    #[default]
    All,
    /// These processes and the processes that they start.
    Processes(HashSet<u32>),
    /// Processes in this cgroup or below it, and whether each known process is one of them.
    Cgroup(String, HashMap<u32, bool>),
}

impl Wanted {
    /// `processes`: the processes of the scope that run now.
    pub(crate) fn new(scope: &Scope, processes: HashSet<u32>) -> Self {
        match scope {
            Scope::System => Self::All,
            Scope::Processes(_) => Self::Processes(processes),
            Scope::Cgroup(path) => Self::Cgroup(path.clone(), HashMap::new()),
        }
    }

    fn includes(&mut self, pid: u32) -> bool {
        match self {
            Self::All => true,
            Self::Processes(pids) => pids.contains(&pid),
            Self::Cgroup(path, known) => *known.entry(pid).or_insert_with(|| host::in_cgroup(pid, path)),
        }
    }

    fn inherit(&mut self, parent: u32, pid: u32) {
        match self {
            Self::All => {}
            Self::Processes(pids) => {
                if pids.contains(&parent) {
                    pids.insert(pid);
                }
            }
            Self::Cgroup(_, known) => {
                known.remove(&pid);
            }
        }
    }
}

/// The addresses of a stack, innermost first, and how its walk ended.
type Key = (Box<[Raw]>, StackEnd);

#[derive(Default)]
struct Process {
    mappings: Mappings,
    /// True once its mappings have been read from `/proc`.
    read: bool,
    space: Option<Rc<Space>>,
}

/// What was collected, with names.
#[derive(Debug, Default)]
pub(crate) struct NamedSamples {
    pub(crate) frames: Vec<Frame>,
    pub(crate) stacks: Vec<Stack>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) notes: Vec<String>,
    /// What was left out for its size, in sentences.
    pub(crate) left_out: Vec<String>,
    /// How many processes each process started, itself or through others that began meanwhile.
    pub(crate) starts: BTreeMap<u32, u64>,
    /// All named threads, and the index in `threads` of each thread that has one.
    named: Vec<Thread>,
    numbers: HashMap<u32, u32>,
}

impl NamedSamples {
    /// The index in `threads` of a thread that the collector knows by another number. A thread without samples is added.
    pub(crate) fn number(&mut self, thread: u32) -> Option<u32> {
        if let Some(number) = self.numbers.get(&thread) {
            return Some(*number);
        }
        let known = self.named.get(usize::try_from(thread).ok()?)?.clone();
        let number = u32::try_from(self.threads.len()).ok()?;
        self.threads.push(known);
        self.numbers.insert(thread, number);
        Some(number)
    }
}

#[derive(Default)]
pub(crate) struct Collector {
    wanted: Wanted,
    begin_ns: u64,
    processes: HashMap<u32, Process>,
    /// Of the processes that began since then, the one that was there before and started them, itself or through others.
    starters: HashMap<u32, u32>,
    /// How many processes each of those started.
    starts: BTreeMap<u32, u64>,
    unwinder: Unwinder,
    stacks: HashMap<Key, u32>,
    /// Functions of all of them.
    stack_frames: usize,
    threads: IndexSet<Thread>,
    threads_now: HashMap<(u32, u32), u32>,
    owners: Owners,
    samples: Vec<Sample>,
    pub(crate) lost: u64,
    pub(crate) throttled: u64,
    pub(crate) outside: u64,
    /// What threads wait for, each stored once.
    peers: Vec<Rc<str>>,
    /// What the next sample waits for.
    pub(crate) peer: Option<Rc<str>>,
    /// The most that it holds of other programs' files.
    limit: MemoryLimit,
    /// The processes whose user stacks are walked, with those that they start; all if there are none.
    pub(crate) walked: BTreeSet<u32>,
    /// User stacks are not walked once this thread has used this much CPU time, seconds.
    pub(crate) unwind_cpu_s_max: Option<f64>,
}

impl Collector {
    /// `begin_ns`: sample times count from here, on the monotonic clock.
    pub(crate) fn new(wanted: Wanted, begin_ns: u64) -> Self {
        Self { wanted, begin_ns, ..Self::default() }
    }

    /// Holds no more than this of other programs' files.
    pub(crate) fn within(self, limit: MemoryLimit) -> Self {
        Self { unwinder: Unwinder::within(limit), limit, ..self }
    }

    /// Whether samples of a process are kept.
    pub(crate) fn wants(&mut self, pid: u32) -> bool {
        self.wanted.includes(pid)
    }

    pub(crate) fn samples(&self) -> usize {
        self.samples.len()
    }

    /// The number of a thread. A new thread gets its current name.
    pub(crate) fn thread(&mut self, pid: u32, tid: u32) -> u32 {
        match self.threads_now.get(&(pid, tid)) {
            Some(thread) => *thread,
            None => self.name_thread(pid, tid, None),
        }
    }

    /// Replaces the weights of samples by index. Samples without a new weight are dropped.
    pub(crate) fn reweigh(&mut self, weight: impl Fn(usize) -> Option<u64>) {
        let samples = std::mem::take(&mut self.samples);
        let weighed = samples.into_iter().enumerate().filter_map(|(index, sample)| Some(Sample { weight: weight(index)?, ..sample }));
        self.samples = weighed.collect();
    }

    pub(crate) fn take(&mut self, time: u64, record: Record<'_>) {
        match record {
            Record::Sample(sample) => self.sample(time, &sample),
            Record::Map { pid, start, end, offset, device, inode, path } => {
                let backing = Backing::new(device, inode, &String::from_utf8_lossy(path));
                if self.processes.len() < PROCESSES_MAX || self.processes.contains_key(&pid) {
                    let process = self.processes.entry(pid).or_default();
                    process.mappings.insert(Mapping { start, end, offset, backing });
                    process.space = None;
                }
            }
            Record::Name { pid, tid, exec, name } => {
                if exec {
                    self.processes.remove(&pid);
                }
                if self.threads_now.remove(&(pid, tid)).is_some() || (exec && self.wanted.includes(pid)) {
                    self.name_thread(pid, tid, Some(&String::from_utf8_lossy(name)));
                }
            }
            Record::Fork { pid, parent } => self.inherit(parent, pid),
            Record::Exit { pid, tid } => {
                self.threads_now.remove(&(pid, tid));
                if pid == tid {
                    self.processes.remove(&pid);
                }
            }
            Record::Lost(count) => self.lost = self.lost.saturating_add(count),
            Record::Throttled => self.throttled += 1,
            Record::Switch { .. } | Record::Other => {}
        }
    }

    /// A child starts with its parent's mappings. A new thread belongs to the same process.
    fn inherit(&mut self, parent: u32, pid: u32) {
        if parent == pid {
            return;
        }
        self.wanted.inherit(parent, pid);
        let starter = self.starters.get(&parent).copied().unwrap_or(parent);
        if self.starters.len() < STARTS_MAX {
            self.starters.insert(pid, starter);
        }
        if self.starts.len() < PROCESSES_MAX || self.starts.contains_key(&starter) {
            *self.starts.entry(starter).or_default() += 1;
        }
        let known = self.processes.get(&parent).map(|process| (process.mappings.clone(), process.space.clone()));
        if let Some((mappings, space)) = known
            && self.processes.len() < PROCESSES_MAX
        {
            self.processes.insert(pid, Process { mappings, read: false, space });
        }
    }

    fn sample(&mut self, time: u64, sample: &record::Sample<'_>) {
        if !self.wanted.includes(sample.pid) {
            // Idle time belongs to no process, so it is not counted as outside the scope.
            self.outside += u64::from(sample.pid != 0);
            return;
        }
        let (mut raws, end) = self.walk(sample);
        if let Some(peer) = self.peer.take().and_then(|peer| self.peer_number(peer)) {
            raws.insert(0, Raw::Peer(peer));
        }
        let known = self.stacks.len();
        let key = (raws.into_boxed_slice(), end);
        let is_full = known >= STACKS_MAX || self.stack_frames >= STACK_FRAMES_MAX;
        if self.samples.len() >= SAMPLES_MAX || (is_full && !self.stacks.contains_key(&key)) {
            self.lost += 1;
            return;
        }
        let length = key.0.len();
        let stack = *self.stacks.entry(key).or_insert(u32::try_from(known).unwrap_or(u32::MAX));
        if self.stacks.len() > known {
            self.stack_frames += length;
        }
        let thread = self.thread(sample.pid, sample.tid);
        let time_ms = u32::try_from(time.saturating_sub(self.begin_ns) / 1_000_000).unwrap_or(u32::MAX);
        self.samples.push(Sample { time_ms, cpu: sample.cpu, thread, stack, weight: sample.period });
    }

    /// The number of a peer; none once there are too many.
    fn peer_number(&mut self, peer: Rc<str>) -> Option<u32> {
        let known = self.peers.iter().position(|other| *other == peer);
        if known.is_none() && self.peers.len() >= PEERS_MAX {
            return None;
        }
        let number = known.unwrap_or_else(|| {
            self.peers.push(peer);
            self.peers.len() - 1
        });
        u32::try_from(number).ok()
    }

    /// The addresses of a sample, innermost first.
    fn walk(&mut self, sample: &record::Sample<'_>) -> (Vec<Raw>, StackEnd) {
        let mut raws = Vec::with_capacity(sample.kernel.len() + 16);
        for (index, address) in sample.kernel.iter().enumerate() {
            raws.push(Raw::Kernel(if index == 0 { *address } else { address.saturating_sub(1) }));
        }
        let Some(registers) = sample.registers else {
            let kernel_only = !sample.compat && crate::sampling::event::USER_STACKS;
            return (raws, if kernel_only { StackEnd::Kernel } else { StackEnd::Unread });
        };
        let family = self.starters.get(&sample.pid).copied().unwrap_or(sample.pid);
        if !self.walked.is_empty() && !self.walked.contains(&family) && !self.walked.contains(&sample.pid) {
            return (raws, StackEnd::Kernel);
        }
        if self.unwind_cpu_s_max.is_some_and(|until| thread_cpu_s() > until) {
            // Where it ran costs no walk. Kernel functions are always named, so that without it all of the time would seem to be theirs.
            if raws.is_empty() && (self.processes.len() < LEAVES_PROCESSES_MAX || self.processes.contains_key(&sample.pid)) {
                let space = self.space(sample.pid);
                raws.extend(leaf(&space, registers).map(|place| raw_of(sample.pid, place)));
            }
            return (raws, StackEnd::Unread);
        }
        let space = self.space(sample.pid);
        let memory = host::MemoryWords::of(sample.pid);
        let mut places = Vec::with_capacity(32);
        let end = self.unwinder.walk(&space, registers, sample.stack, |address| memory.word(address), &mut places);
        raws.extend(places.into_iter().map(|place| raw_of(sample.pid, place)));
        (raws, end)
    }

    /// The address space of a process. Its mappings are read at its first sample; records update them from then on.
    fn space(&mut self, pid: u32) -> Rc<Space> {
        if self.processes.len() >= PROCESSES_MAX && !self.processes.contains_key(&pid) {
            self.processes.clear();
        }
        let process = self.processes.entry(pid).or_default();
        if !process.read {
            process.read = true;
            let mappings = host::maps(pid).map(|text| Mappings::parse(&text)).filter(|mappings| !mappings.is_empty());
            if let Some(mappings) = mappings.filter(|mappings| *mappings != process.mappings) {
                process.mappings = mappings;
                process.space = None;
            }
        }
        if let Some(space) = &process.space {
            return Rc::clone(space);
        }
        let space = self.unwinder.space(pid, &process.mappings);
        process.space = Some(Rc::clone(&space));
        space
    }

    /// Adds a thread under its current name.
    fn name_thread(&mut self, pid: u32, tid: u32, name: Option<&str>) -> u32 {
        let thread = if pid == 0 {
            Thread { pid, tid, name: "idle".to_owned(), program: "[idle]".to_owned(), started_by: None }
        } else {
            let name = name.map(str::to_owned).or_else(|| host::comm(pid, tid)).unwrap_or_else(|| format!("{tid} (gone)"));
            let process = if pid == tid { None } else { host::comm(pid, pid) };
            let program = if host::is_kernel_thread(pid) { format!("[{name}]") } else { process.unwrap_or_else(|| name.clone()) };
            self.owners.see(pid);
            Thread { pid, tid, name, program, started_by: self.starters.get(&pid).copied() }
        };
        let (index, _) = self.threads.insert_full(thread);
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        self.threads_now.insert((pid, tid), index);
        index
    }

    /// Names everything that was collected.
    pub(crate) fn finish(self) -> NamedSamples {
        // No more stacks are walked: free the unwind tables before names are read.
        drop(self.processes);
        let (images, without): (Vec<Image>, _) = self.unwinder.finish();
        let mut keys: Vec<_> = self.stacks.into_iter().collect();
        keys.sort_unstable_by_key(|(_, index)| *index);
        let unique: HashSet<Raw> = keys.iter().flat_map(|((raws, _), _)| raws.iter().copied()).collect();
        let through = samples_through(&keys, &self.samples);
        let enough = self.samples.len() as f64 * INLINE_SHARE_MIN;
        let is_worth_inlining = |id: ImageId| through.get(&id).is_some_and(|samples| *samples as f64 >= enough);
        let (named, mut unnamed) = resolve(unique.into_iter(), &images, self.limit, is_worth_inlining);
        unnamed.left_out.extend(without);
        let mut interned = Interned::default();
        let mut stack_of = Vec::with_capacity(keys.len());
        for ((raws, end), _) in &keys {
            let functions: Vec<&Frame> = raws.iter().rev().filter_map(|raw| named.get(raw)).flatten().collect();
            let mut peer = None;
            if let Some(Raw::Peer(number)) = raws.first()
                && Wait::of(&functions).is_for_a_peer()
            {
                peer = usize::try_from(*number).ok().and_then(|number| self.peers.get(number)).map(|peer| peers::frame(peer));
            }
            let frames = functions.into_iter().chain(&peer).map(|frame| interned.frame(frame)).collect();
            stack_of.push(interned.stack(frames, *end, Layer::Unknown));
        }
        let (mut samples, mut other) = (self.samples, 0);
        for sample in &mut samples {
            let index = usize::try_from(sample.stack).ok().and_then(|index| stack_of.get(index)).copied().flatten();
            sample.stack = index.unwrap_or_else(|| {
                other += 1;
                interned.other_stack()
            });
        }
        samples.sort_by_key(|sample| sample.time_ms);
        let mut named_threads: Vec<Thread> = self.threads.into_iter().collect();
        self.owners.tell_apart(&mut named_threads);
        let (threads, numbers) = sampled_threads(&named_threads, &mut samples);
        let (frames, stacks, _) = interned.into_lists();
        let Unnamed { notes, mut left_out } = unnamed;
        left_out.extend(interned::left_out(other));
        NamedSamples { frames, stacks, threads, samples, notes, left_out, starts: self.starts, named: named_threads, numbers }
    }
}

fn raw_of(pid: u32, place: CodeLocation) -> Raw {
    match place {
        CodeLocation::Image(id, address) => Raw::Image(id, address),
        CodeLocation::Memory(address) => Raw::Memory(pid, address),
    }
}

/// The number of samples that went through each file.
fn samples_through(keys: &[(Key, u32)], samples: &[Sample]) -> HashMap<ImageId, u64> {
    let mut of_stack = vec![0_u64; keys.len()];
    for sample in samples {
        if let Some(count) = usize::try_from(sample.stack).ok().and_then(|index| of_stack.get_mut(index)) {
            *count += 1;
        }
    }
    let mut through = HashMap::new();
    for (((raws, _), _), count) in keys.iter().zip(of_stack) {
        let files: HashSet<ImageId> = raws.iter().filter_map(|raw| if let Raw::Image(id, _) = raw { Some(*id) } else { None }).collect();
        for file in files {
            *through.entry(file).or_default() += count;
        }
    }
    through
}

/// The threads that have samples, in the order of their first samples, renumbered. Threads that only started another program are left out.
fn sampled_threads(threads: &[Thread], samples: &mut [Sample]) -> (Vec<Thread>, HashMap<u32, u32>) {
    let mut numbers: HashMap<u32, u32> = HashMap::new();
    let mut sampled_threads = Vec::new();
    for sample in samples {
        let thread = usize::try_from(sample.thread).ok().and_then(|index| threads.get(index));
        sample.thread = *numbers.entry(sample.thread).or_insert_with(|| {
            sampled_threads.extend(thread.cloned());
            u32::try_from(sampled_threads.len().saturating_sub(1)).unwrap_or(u32::MAX)
        });
    }
    (sampled_threads, numbers)
}
