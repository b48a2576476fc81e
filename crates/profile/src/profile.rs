//! A finished profile: samples by thread, core and time, with named stacks. It is plain data that can be stored, read back and compared.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::layers::layer::Layer;
use crate::sampling::event::Clock;

mod bound;
pub(crate) mod stored;

/// Name and version of the stored form.
pub const SCHEMA: &str = "chokepoint/profile/1";
/// Maximum number of functions in a stack that is read back; sampled stacks have fewer.
pub(crate) const STACK_FRAMES_MAX: usize = 2048;

/// A profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// `SCHEMA`.
    pub schema: String,
    /// What triggered the samples.
    pub clock: Clock,
    /// Sentences for the reader, such as why the cycle counter was not used or that the kernel was left out.
    #[serde(deserialize_with = "stored::list")]
    pub notes: Vec<String>,
    /// What was left out for its size, in sentences: "symbols left out: rustc (140 MiB)".
    #[serde(default, deserialize_with = "stored::list", skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Requested samples a second on each busy core.
    pub frequency_hz: u32,
    /// Time sampled, seconds.
    pub duration_s: f64,
    /// What was sampled, in words: "all processes", "process 17 and its children".
    pub scope: String,
    /// The sampled cores.
    #[serde(deserialize_with = "stored::list")]
    pub cores: Vec<Core>,
    /// Records that the kernel had no room for.
    pub lost: u64,
    /// How often the kernel dropped samples because they took too long.
    pub throttled: u64,
    /// Samples of processes outside the scope.
    pub outside: u64,
    /// CPU time of sampling, unwinding and naming in this program, seconds.
    pub cost_cpu_s: f64,
    /// Functions, each stored once.
    #[serde(deserialize_with = "stored::list")]
    pub frames: Vec<Frame>,
    /// Stacks, each stored once.
    #[serde(deserialize_with = "stored::list")]
    pub stacks: Vec<Stack>,
    /// Threads with samples.
    #[serde(deserialize_with = "stored::list")]
    pub threads: Vec<Thread>,
    /// The samples in time order.
    #[serde(deserialize_with = "stored::list")]
    pub samples: Vec<Sample>,
    /// How many processes began while it was taken, by the process that was there before and started them, itself or through others. It is not stored.
    #[serde(skip)]
    pub starts: BTreeMap<u32, u64>,
}

/// A core and how it spent the time (proc_stat(5), including guests' time).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Core {
    /// Its number.
    pub cpu: u32,
    /// Share of the time in which it was not idle, including stolen time; none if it was not read.
    pub busy: Option<f64>,
    /// Share of the time that the hypervisor gave to others.
    pub stolen: Option<f64>,
}

/// Where a function lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameKind {
    /// In the kernel or one of its modules.
    Kernel,
    /// In a program file.
    User,
    /// In memory written by a just-in-time compiler.
    Jit,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// Its name, or "nginx+0x2d3a0" (the file and where the function begins in it) if it has no symbol.
    pub name: String,
    /// The file's or kernel module's name without directories; "kernel"; "[jit]".
    pub module: String,
    /// Where it lies.
    pub kind: FrameKind,
    /// False if the name is made from an address.
    pub named: bool,
}

/// How the walk up a user stack ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StackEnd {
    /// At the thread's first function.
    Whole,
    /// At the thread's first function, but the sample's copy ended before it. The outer part was read from the process's memory a moment later. The code was
    /// checked to contain the call that joins the two parts.
    Completed,
    /// At the end of the sample's copy; the stack is deeper.
    Deep,
    /// Before the thread's first function.
    Broken,
    /// There is no user stack: a kernel thread or the idle thread. Or nobody asked for it: the process is none of those that were to be walked.
    Kernel,
    /// The stack could not be walked: a 32-bit program, or an unsupported machine.
    Unread,
}

/// A stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stack {
    /// Its functions as indices into `frames`, outermost first.
    #[serde(deserialize_with = "stored::list")]
    pub frames: Vec<u32>,
    /// How the walk ended.
    pub end: StackEnd,
    /// The layer of its time.
    pub layer: Layer,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// The name of its process; for a kernel thread, its own name in brackets.
    pub program: String,
    /// If its process was started while the profile was taken: the one that started it, or the first of a row of those, which was there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<u32>,
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32, u32, u32, u64)", into = "(u32, u32, u32, u32, u64)")]
pub struct Sample {
    /// Milliseconds since the start.
    pub time_ms: u32,
    /// The core.
    pub cpu: u32,
    /// Index into `threads`.
    pub thread: u32,
    /// Index into `stacks`.
    pub stack: u32,
    /// What it stands for: nanoseconds of cpu-clock, cycles, or nanoseconds of waiting.
    pub weight: u64,
}

impl From<(u32, u32, u32, u32, u64)> for Sample {
    fn from((time_ms, cpu, thread, stack, weight): (u32, u32, u32, u32, u64)) -> Self {
        Self { time_ms, cpu, thread, stack, weight }
    }
}

impl From<Sample> for (u32, u32, u32, u32, u64) {
    fn from(sample: Sample) -> Self {
        (sample.time_ms, sample.cpu, sample.thread, sample.stack, sample.weight)
    }
}

/// How complete the stacks and names are. Shares are of samples with user stacks, or of frames weighted by samples.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Quality {
    /// Samples with a user stack.
    pub user_samples: u64,
    /// Share of these whose outer part was read a moment later.
    pub completed: f64,
    /// Share whose stack ends before the thread's first function.
    pub broken: f64,
    /// Share that is deeper than a sample's copy.
    pub deep: f64,
    /// Share that could not be walked.
    pub unread: f64,
    /// Share of user frames without a name.
    pub unnamed_user: f64,
    /// Share of kernel frames without a name.
    pub unnamed_kernel: f64,
}

/// The samples of one stack and thread.
pub(crate) struct SampleGroup<'a> {
    /// The sum of their weights.
    pub(crate) weight: u64,
    /// Their number.
    pub(crate) count: u64,
    pub(crate) stack: &'a Stack,
    pub(crate) thread: &'a Thread,
}

impl Profile {
    /// A profile without samples.
    pub(crate) fn new(clock: Clock, scope: String) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            clock,
            notes: Vec::new(),
            left_out: Vec::new(),
            frequency_hz: 0,
            duration_s: 0.0,
            scope,
            cores: Vec::new(),
            lost: 0,
            throttled: 0,
            outside: 0,
            cost_cpu_s: 0.0,
            frames: Vec::new(),
            stacks: Vec::new(),
            threads: Vec::new(),
            samples: Vec::new(),
            starts: BTreeMap::new(),
        }
    }

    /// The stack of this number.
    pub(crate) fn stack(&self, number: u32) -> Option<&Stack> {
        self.stacks.get(usize::try_from(number).ok()?)
    }

    /// The thread of this number.
    pub(crate) fn thread(&self, number: u32) -> Option<&Thread> {
        self.threads.get(usize::try_from(number).ok()?)
    }

    /// The functions of a stack, outermost first.
    pub fn frames_of(&self, stack: &Stack) -> Vec<&Frame> {
        stack.frames.iter().filter_map(|frame| self.frames.get(usize::try_from(*frame).ok()?)).collect()
    }

    /// The stack and thread of a sample.
    pub fn of(&self, sample: &Sample) -> Option<(&Stack, &Thread)> {
        Some((self.stack(sample.stack)?, self.thread(sample.thread)?))
    }

    /// The samples that are not idle time, with their stacks and threads.
    pub fn busy(&self) -> impl Iterator<Item = (&Sample, &Stack, &Thread)> {
        self.samples.iter().filter_map(|sample| {
            let (stack, thread) = self.of(sample)?;
            (stack.layer != Layer::Idle).then_some((sample, stack, thread))
        })
    }

    /// The wanted samples that are not idle time, grouped by stack and thread in the order of their first sample. A deep stack with a million samples is
    /// visited only once.
    pub(crate) fn busy_groups(&self, wanted: impl Fn(&Sample, &Thread) -> bool) -> Vec<SampleGroup<'_>> {
        let mut all: Vec<SampleGroup<'_>> = Vec::new();
        let mut places: HashMap<(u32, u32), usize> = HashMap::new();
        let mut last = None;
        for (sample, stack, thread) in self.busy().filter(|(sample, _, thread)| wanted(sample, thread)) {
            let key = (sample.stack, sample.thread);
            let place = match last {
                Some((known, place)) if known == key => place,
                _ => *places.entry(key).or_insert_with(|| {
                    all.push(SampleGroup { weight: 0, count: 0, stack, thread });
                    all.len() - 1
                }),
            };
            last = Some((key, place));
            if let Some(group) = all.get_mut(place) {
                (group.weight, group.count) = (group.weight.saturating_add(sample.weight), group.count + 1);
            }
        }
        all
    }

    /// The weight of all samples that are not idle time.
    pub fn weight_busy(&self) -> u64 {
        self.busy().fold(0, |sum, (sample, ..)| sum.saturating_add(sample.weight))
    }

    /// The same profile with only the wanted samples.
    #[must_use]
    pub fn only(&self, wanted: impl Fn(&Sample, &Thread) -> bool) -> Self {
        let samples = self.samples.iter().filter(|sample| self.of(sample).is_some_and(|(_, thread)| wanted(sample, thread)));
        Self { samples: samples.copied().collect(), ..self.clone() }
    }

    /// How complete its stacks and names are.
    pub fn quality(&self) -> Quality {
        let mut ends = [0_u64; 5];
        let mut frames = [[0_u64; 2]; 2];
        for SampleGroup { stack, count, .. } in self.busy_groups(|_, _| true) {
            match stack.end {
                StackEnd::Kernel => {}
                StackEnd::Whole => ends[0] += count,
                StackEnd::Broken => ends[1] += count,
                StackEnd::Deep => ends[2] += count,
                StackEnd::Unread => ends[3] += count,
                StackEnd::Completed => ends[4] += count,
            }
            for frame in self.frames_of(stack) {
                frames[usize::from(frame.kind == FrameKind::Kernel)][usize::from(frame.named)] += count;
            }
        }
        let user_samples = ends.iter().sum();
        let unnamed = |[unnamed, named]: [u64; 2]| share(unnamed, unnamed + named);
        Quality {
            user_samples,
            completed: share(ends[4], user_samples),
            broken: share(ends[1], user_samples),
            deep: share(ends[2], user_samples),
            unread: share(ends[3], user_samples),
            unnamed_user: unnamed(frames[0]),
            unnamed_kernel: unnamed(frames[1]),
        }
    }
}

/// `part` / `whole`, or 0 if `whole` is 0.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
