//! A finished profile: what was sampled, by thread, core and time, with named stacks. It is data: it can be stored, read back and compared.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::sampling::event::Clock;
pub(crate) mod stored;

use crate::layers::layer::Layer;

/// Name and version of the stored form.
pub const SCHEMA: &str = "chokepoint/profile/1";
/// Functions of one stack at most when it is read back; a sampled one has fewer.
pub(crate) const STACK_FRAMES_MAX: usize = 2048;

/// A profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// `SCHEMA`.
    pub schema: String,
    /// What made the samples.
    pub clock: Clock,
    /// Why it was not the hardware's cycle counter, or that the kernel was left out, and the like; sentences for the reader.
    pub notes: Vec<String>,
    /// Samples a second on each busy core, as asked for.
    pub frequency_hz: u32,
    /// Time sampled, seconds.
    pub duration_s: f64,
    /// What was sampled, in words: "all processes", "process 17 and its children".
    pub scope: String,
    /// The cores that were sampled.
    pub cores: Vec<Core>,
    /// Records that the kernel had no room for.
    pub lost: u64,
    /// Times that the kernel left samples out because they took too long.
    pub throttled: u64,
    /// Samples that fell on processes outside the scope.
    pub outside: u64,
    /// CPU time that gathering, unwinding and naming took in this program, seconds.
    pub cost_cpu_s: f64,
    /// Functions, each once.
    pub frames: Vec<Frame>,
    /// Stacks, each once.
    pub stacks: Vec<Stack>,
    /// Threads that were seen.
    pub threads: Vec<Thread>,
    /// The samples in the order of their times.
    pub samples: Vec<Sample>,
}

/// A core and how it spent the time (proc_stat(5); guests' time is in it).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Core {
    /// Its number.
    pub cpu: u32,
    /// Share of the time in which it was not idle, stolen time included; none where it was not read.
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
    /// In memory that a just-in-time compiler wrote.
    Jit,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// Its name; "nginx+0x2d3a0" (where the function begins in its file) where the file tells none.
    pub name: String,
    /// The file's or kernel module's name without directories; "kernel"; "[jit]".
    pub module: String,
    /// Where it lies.
    pub kind: FrameKind,
    /// False where the name is made up of an address.
    pub named: bool,
}

/// How the walk up a user stack ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StackEnd {
    /// At the thread's first function.
    Whole,
    /// At the thread's first function, of which the outer part was read from the process's memory a moment after the sample: what a sample
    /// carries ended before it. That the one part calls the other was checked in the program's code.
    Completed,
    /// At the end of what a sample carries; the stack is deeper.
    Deep,
    /// Before the thread's first function.
    Broken,
    /// There is no user stack: a thread of the kernel, or the idle one.
    Kernel,
    /// It could not be walked at all: a 32-bit program, or a machine for which this is not made.
    Unread,
}

/// A stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stack {
    /// Its functions as indices into `frames`, the outermost first.
    pub frames: Vec<u32>,
    /// How the walk ended.
    pub end: StackEnd,
    /// The layer that its time belongs to.
    pub layer: Layer,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Itself.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// The name of its process; of a thread of the kernel its own in brackets.
    pub program: String,
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32, u32, u32, u64)", into = "(u32, u32, u32, u32, u64)")]
pub struct Sample {
    /// Milliseconds since the beginning.
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

/// How whole the stacks are and how many functions have names, as shares of the samples of user stacks, and of frames weighted by samples.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Quality {
    /// Samples with a user stack.
    pub user_samples: u64,
    /// Of these, the share whose outer part was read a moment later.
    pub completed: f64,
    /// The share whose stack ends before the thread's first function.
    pub broken: f64,
    /// The share that is deeper than what a sample carries.
    pub deep: f64,
    /// The share that could not be walked at all.
    pub unread: f64,
    /// Share of user frames without a name.
    pub unnamed_user: f64,
    /// Share of kernel frames without a name.
    pub unnamed_kernel: f64,
}

/// Samples of one stack and thread.
pub(crate) struct Together<'a> {
    /// Their weights, added up.
    pub(crate) weight: u64,
    /// How many they are.
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
        }
    }

    /// The functions of a stack, the outermost first.
    pub fn frames_of(&self, stack: &Stack) -> Vec<&Frame> {
        stack.frames.iter().filter_map(|frame| self.frames.get(usize::try_from(*frame).ok()?)).collect()
    }

    /// The stack and thread of a sample.
    pub fn of(&self, sample: &Sample) -> Option<(&Stack, &Thread)> {
        let at = |index: u32| usize::try_from(index).ok();
        Some((self.stacks.get(at(sample.stack)?)?, self.threads.get(at(sample.thread)?)?))
    }

    /// The samples that are no idle time, with their stacks and threads.
    pub fn busy(&self) -> impl Iterator<Item = (&Sample, &Stack, &Thread)> {
        self.samples.iter().filter_map(|sample| {
            let (stack, thread) = self.of(sample)?;
            (stack.layer != Layer::Idle).then_some((sample, stack, thread))
        })
    }

    /// The samples that are wanted and no idle time, those of one stack and thread together, in the order of their first: a million samples of one
    /// deep stack are looked at once.
    pub(crate) fn busy_together(&self, wanted: impl Fn(&Sample, &Thread) -> bool) -> Vec<Together<'_>> {
        let mut all: Vec<Together<'_>> = Vec::new();
        let mut places: HashMap<(u32, u32), usize> = HashMap::new();
        let mut last = None;
        for (sample, stack, thread) in self.busy().filter(|(sample, _, thread)| wanted(sample, thread)) {
            let key = (sample.stack, sample.thread);
            let place = match last {
                Some((known, place)) if known == key => place,
                _ => *places.entry(key).or_insert_with(|| {
                    all.push(Together { weight: 0, count: 0, stack, thread });
                    all.len() - 1
                }),
            };
            last = Some((key, place));
            if let Some(together) = all.get_mut(place) {
                (together.weight, together.count) = (together.weight.saturating_add(sample.weight), together.count + 1);
            }
        }
        all
    }

    /// The weight of all samples that are no idle time.
    pub fn weight_busy(&self) -> u64 {
        self.busy().fold(0, |sum, (sample, ..)| sum.saturating_add(sample.weight))
    }

    /// The same samples, of programs or cores that are wanted alone.
    #[must_use]
    pub fn only(&self, wanted: impl Fn(&Sample, &Thread) -> bool) -> Self {
        let samples = self.samples.iter().filter(|sample| self.of(sample).is_some_and(|(_, thread)| wanted(sample, thread)));
        Self { samples: samples.copied().collect(), ..self.clone() }
    }

    /// How whole and how named it is.
    pub fn quality(&self) -> Quality {
        let mut ends = [0_u64; 5];
        let mut frames = [[0_u64; 2]; 2];
        for Together { stack, count, .. } in self.busy_together(|_, _| true) {
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

/// A part of a whole, 0 where there is none.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
