//! The profile by tier: shares of CPU time, and the cores that samples stand for.

use std::collections::{BTreeMap, BTreeSet};

use chokepoint_statistics::wilson;

use crate::facts::Context;
use crate::facts::cores::Limiting;
use crate::facts::path::Tier;
use crate::observation::{CpuProfile, ProfilePart};

/// The layer of samples of which no stack was recorded.
pub(crate) const NO_STACK: &str = "unknown";
/// Fewest samples for a share: with 100 samples the 95 % interval of a half is 20 points wide.
pub(crate) const SAMPLES_MIN: u64 = 100;
/// Fewest samples for a share whose interval is no wider than that: what takes nearly all of the time, or nearly none, shows in fewer. With 30 samples, all of one kind, it is 11 points wide.
const FEW_SAMPLES_MIN: u64 = 30;

/// Share of kernel functions without a name (kernel.kptr_restrict, no CAP_SYSLOG) from which a kernel layer may be present although no sample shows it.
const UNNAMED_MAX: f64 = 0.1;

/// Layers and aspects that findings use, by the profiler's ids.
pub(crate) const PORT_SEARCH: &str = "port-search";
pub(crate) const CONNECTION: &str = "connection";
pub(crate) const ALLOCATOR: &str = "allocator";
pub(crate) const COMPRESSION: &str = "compression";
pub(crate) const LOCK: &str = "lock";
pub(crate) const TLS_HANDSHAKE: &str = "tls-handshake";
pub(crate) const TLS_SIGNATURE: &str = "tls-signature";
pub(crate) const SCRIPT_COMPILE: &str = "script-compile";
pub(crate) const ERROR_LOG: &str = "error-log";
pub(crate) const PAGE_FAULT: &str = "page-fault";
pub(crate) const PROCESS_START: &str = "process-start";
pub(crate) const SOFTIRQ: &str = "softirq";
pub(crate) const POLLING: &str = "polling";
pub(crate) const GARBAGE: &str = "garbage-collection";
/// Every layer and aspect that the model knows by name. A test checks that the profiler has each.
pub const NAMED: &[&str] = &[
    PORT_SEARCH,
    CONNECTION,
    ALLOCATOR,
    COMPRESSION,
    LOCK,
    TLS_HANDSHAKE,
    TLS_SIGNATURE,
    SCRIPT_COMPILE,
    ERROR_LOG,
    PAGE_FAULT,
    PROCESS_START,
    SOFTIRQ,
    POLLING,
    GARBAGE,
];

/// A share of the CPU time in the samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ProfileShare {
    /// The share.
    pub(crate) value: f64,
    /// 95 % interval from the number of samples (Wilson 1927): lower end.
    pub(crate) low: f64,
    /// Upper end.
    pub(crate) high: f64,
    /// Number of samples of the whole.
    pub(crate) of: u64,
}

impl ProfileShare {
    /// A fraction of it.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor, ..self }
    }

    /// The sum with another share of the same whole. Its interval is wider than one computed from both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { value: self.value + other.value, low: self.low + other.low, high: self.high + other.high, ..self }
    }
}

/// What the samples of one process weigh.
#[derive(Default)]
struct Weights {
    wanted: f64,
    others: f64,
    /// Of these no stack was recorded.
    unknown: f64,
}

impl Weights {
    /// What is wanted, if the samples without a stack are as the others.
    fn likely(&self) -> f64 {
        let known = self.wanted + self.others;
        self.wanted + if known > 0.0 { self.unknown * self.wanted / known } else { 0.0 }
    }

    /// The same, if all of them are wanted, of a process of which others are.
    fn most(&self) -> f64 {
        self.wanted + if self.wanted > 0.0 { self.unknown } else { 0.0 }
    }
}

/// A profile with questions about the path's tiers.
#[derive(Clone, Copy)]
pub(crate) struct Profiled<'a> {
    pub(crate) profile: &'a CpuProfile,
}

impl<'a> Profiled<'a> {
    /// The observation's profile. `None` if there is none, or if nothing ran.
    pub(crate) fn of(ctx: &Context<'a>) -> Option<Self> {
        let profile = ctx.obs.profile.last()?;
        (profile.seconds() > 0.0 && profile.frequency_hz > 0 && !profile.parts.is_empty()).then_some(Self { profile })
    }

    /// Share of `wanted` in the CPU time that is the limit. `None` with too few samples.
    pub(crate) fn share(&self, limiting: &Limiting<'_, '_>, wanted: impl Fn(&ProfilePart) -> bool) -> Option<ProfileShare> {
        // If threads are the limit, their own time on any core counts; if cores are, all that runs on them counts, but for other programs: these have their part in any case.
        let is_own = |part: &&ProfilePart| limiting.tiers.iter().any(|tier| tier.pids.contains(&part.pid));
        match (limiting.threads, limiting.own_part) {
            (Some(_), _) => self.share_of(is_own, wanted),
            (None, Some(own_part)) => Some(self.share_of(is_own, wanted)?.times(own_part)),
            (None, None) => self.share_of(|part| limiting.group.cores.contains(&part.cpu), wanted),
        }
    }

    /// Share of a layer or aspect in all that a tier ran, on any core. `None` with too few samples.
    pub(crate) fn share_within(&self, tier: &Tier, what: &str) -> Option<ProfileShare> {
        self.share_of(|part| tier.pids.contains(&part.pid), |part| is_of(part, what))
    }

    /// Samples without a stack are taken for what the others of the same process are. At least, they are nothing of what is asked for, and at most all of them are.
    fn share_of(&self, counts: impl Fn(&&ProfilePart) -> bool, wanted: impl Fn(&ProfilePart) -> bool) -> Option<ProfileShare> {
        let (mut whole, mut of) = (0_u64, 0_u64);
        let mut processes: BTreeMap<u32, Weights> = BTreeMap::new();
        for counted in self.profile.parts.iter().filter(counts) {
            (whole, of) = (whole.saturating_add(counted.weight), of.saturating_add(counted.samples));
            let weights = processes.entry(counted.pid).or_default();
            match counted.layer.as_str() {
                NO_STACK => weights.unknown += counted.weight as f64,
                _ if wanted(counted) => weights.wanted += counted.weight as f64,
                _ => weights.others += counted.weight as f64,
            }
        }
        let share = |weight: fn(&Weights) -> f64| processes.values().map(weight).sum::<f64>() / whole.max(1) as f64;
        let (value, least, most) = (share(Weights::likely), share(|weights| weights.wanted), share(Weights::most));
        let (low, high) = (wilson(least, of).0, wilson(most.min(1.0), of).1);
        let (least, most) = wilson(0.5, SAMPLES_MIN);
        let is_enough = of >= SAMPLES_MIN || of >= FEW_SAMPLES_MIN && high - low <= most - least;
        (is_enough && whole > 0).then_some(ProfileShare { value, low, high, of })
    }

    /// Mean number of cores that processes kept busy which began in the profile's time, and were started by one of these, itself or through others. `None` if it was not read.
    pub(crate) fn cores_of_started(&self, pids: &BTreeSet<u32>) -> Option<f64> {
        self.profile.starts.as_ref()?;
        let is_theirs = |part: &&ProfilePart| part.is_started && pids.contains(&part.pid);
        Some(self.cores_of(self.profile.parts.iter().filter(is_theirs).map(|part| part.samples).sum()))
    }

    /// Processes that a tier started, itself or through others, each second. `None` if that was not read.
    pub(crate) fn starts_per_s(&self, tier: &Tier) -> Option<f64> {
        let starts = self.profile.starts.as_ref()?;
        let own: u64 = tier.pids.iter().filter_map(|pid| starts.get(pid)).fold(0, |sum, count| sum.saturating_add(*count));
        Some(own as f64 / self.profile.seconds())
    }

    /// The hottest function of a layer in the tier's programs.
    pub(crate) fn hottest(&self, tier: &Tier, layer: &str) -> Option<&'a str> {
        let own: Vec<&str> =
            self.profile.parts.iter().filter(|part| tier.pids.contains(&part.pid)).map(|part| part.program.as_str()).collect();
        let mut functions = self.profile.functions.iter();
        functions
            .find(|function| function.layer == layer && own.contains(&function.program.as_str()))
            .map(|function| function.name.as_str())
    }

    /// Mean number of cores that so many samples stand for. Each sample stands for one sampling interval of a core.
    pub(crate) fn cores_of(&self, samples: u64) -> f64 {
        samples as f64 / (self.profile.seconds() * f64::from(self.profile.frequency_hz))
    }

    /// True if kernel functions have names, so that a layer without samples is absent.
    pub(crate) fn names_kernel(&self) -> bool {
        self.profile.unnamed_kernel <= UNNAMED_MAX
    }

    /// Mean number of cores that a tier kept busy.
    pub(crate) fn cores_used(&self, tier: &Tier) -> f64 {
        self.cores_of(self.profile.parts.iter().filter(|part| tier.pids.contains(&part.pid)).map(|part| part.samples).sum())
    }

    /// For each core its busy share and the share of an aspect in it.
    pub(crate) fn cores_with(&self, aspect: &str) -> BTreeMap<u32, (f64, Option<ProfileShare>)> {
        let of = |cpu: u32| {
            let here = |part: &&ProfilePart| part.cpu == cpu;
            let samples = self.profile.parts.iter().filter(here).map(|part| part.samples).sum();
            (self.cores_of(samples).min(1.0), self.share_of(here, |part| is_of(part, aspect)))
        };
        self.profile.cores.iter().map(|cpu| (*cpu, of(*cpu))).collect()
    }

    /// The source of the samples, for evidence.
    pub(crate) fn source(&self) -> String {
        format!("profile ({}, {} Hz, {:.1} s)", self.profile.clock, self.profile.frequency_hz, self.profile.seconds())
    }
}

/// True if a part belongs to this layer or aspect.
pub(crate) fn is_of(part: &ProfilePart, what: &str) -> bool {
    part.layer == what || part.aspects.iter().any(|aspect| aspect == what)
}
