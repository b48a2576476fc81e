//! What a profile says of the path's tiers: where their CPU time went, and the most that each layer's removal could give.

mod bounds;
mod told;

use std::collections::BTreeMap;

use chokepoint_statistics::wilson;

use crate::facts::Context;
use crate::facts::cores::Limiting;
use crate::facts::path::Tier;
use crate::observation::{CpuProfile, ProfilePart};

pub(crate) use bounds::limit_name;
pub(crate) use told::report;

/// Samples of what limits below which a share of them says nothing: at 100 the 95 % interval of a half is 20 points wide.
pub(crate) const SAMPLES_MIN: u64 = 100;

/// Share of the kernel's functions without a name (kernel.kptr_restrict, no CAP_SYSLOG) from which a layer of the kernel's that is not seen may be there
/// all the same.
const UNNAMED_MAX: f64 = 0.1;

/// Layers and aspects that findings are about, by the ids that the profiler gives them.
pub(crate) const PORT_SEARCH: &str = "port-search";
pub(crate) const CONNECTION: &str = "connection";
pub(crate) const ALLOCATOR: &str = "allocator";
pub(crate) const COMPRESSION: &str = "compression";
pub(crate) const LOCK: &str = "lock";
pub(crate) const TLS_HANDSHAKE: &str = "tls-handshake";
pub(crate) const TLS_SIGNATURE: &str = "tls-signature";
pub(crate) const SCRIPT_COMPILE: &str = "script-compile";
pub(crate) const ERROR_LOG: &str = "error-log";
pub(crate) const SOFTIRQ: &str = "softirq";
pub(crate) const POLLING: &str = "polling";
/// Every layer and aspect that the model knows by name: the profiler must have each (tested where both are known).
pub const NAMED: &[&str] =
    &[PORT_SEARCH, CONNECTION, ALLOCATOR, COMPRESSION, LOCK, TLS_HANDSHAKE, TLS_SIGNATURE, SCRIPT_COMPILE, ERROR_LOG, SOFTIRQ, POLLING];

/// A part of the samples of what limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    /// Its share of the CPU time.
    pub(crate) value: f64,
    /// The 95 % interval, by the number of samples (Wilson 1927).
    pub(crate) low: f64,
    /// Its upper end.
    pub(crate) high: f64,
    /// Samples of the whole.
    pub(crate) of: u64,
}

impl Share {
    /// A part of it.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor, ..self }
    }

    /// Together with another share of the same whole; the interval is wider than that of both would be if they were counted as one.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { value: self.value + other.value, low: self.low + other.low, high: self.high + other.high, ..self }
    }
}

/// A profile, seen from the path's tiers.
#[derive(Clone, Copy)]
pub(crate) struct Profiled<'a> {
    profile: &'a CpuProfile,
}

impl<'a> Profiled<'a> {
    /// The observation's profile; nothing where none was taken, or nothing ran while it was.
    pub(crate) fn of(ctx: &Context<'a>) -> Option<Self> {
        let profile = ctx.obs.profile.last()?;
        (profile.seconds() > 0.0 && profile.frequency_hz > 0 && !profile.parts.is_empty()).then_some(Self { profile })
    }

    /// The share of what is wanted in the CPU time of what limits; nothing where too few samples tell.
    pub(crate) fn share(&self, limiting: &Limiting<'_, '_>, wanted: impl Fn(&ProfilePart) -> bool) -> Option<Share> {
        // Threads that are too few limit by their own time, on whichever core they run; cores by all that runs on them.
        let counts = |part: &&ProfilePart| match limiting.threads {
            Some(_) => limiting.tiers.iter().any(|tier| tier.pids.contains(&part.pid)),
            None => limiting.group.cores.contains(&part.cpu),
        };
        self.share_of(counts, wanted)
    }

    /// The share of a layer or aspect in all that a tier ran, on whichever core; nothing where too few samples tell.
    pub(crate) fn share_within(&self, tier: &Tier, what: &str) -> Option<Share> {
        self.share_of(|part| tier.pids.contains(&part.pid), |part| is_of(part, what))
    }

    fn share_of(&self, counts: impl Fn(&&ProfilePart) -> bool, wanted: impl Fn(&ProfilePart) -> bool) -> Option<Share> {
        let (mut part, mut whole, mut of) = (0_u64, 0_u64, 0_u64);
        for counted in self.profile.parts.iter().filter(counts) {
            (whole, of) = (whole.saturating_add(counted.weight), of.saturating_add(counted.samples));
            if wanted(counted) {
                part = part.saturating_add(counted.weight);
            }
        }
        let value = part as f64 / whole.max(1) as f64;
        let (low, high) = wilson(value, of);
        (of >= SAMPLES_MIN && whole > 0).then_some(Share { value, low, high, of })
    }

    /// The function that ran most of a layer in these processes' programs.
    pub(crate) fn hottest(&self, tier: &Tier, layer: &str) -> Option<&'a str> {
        let own: Vec<&str> =
            self.profile.parts.iter().filter(|part| tier.pids.contains(&part.pid)).map(|part| part.program.as_str()).collect();
        let mut functions = self.profile.functions.iter();
        functions
            .find(|function| function.layer == layer && own.contains(&function.program.as_str()))
            .map(|function| function.name.as_str())
    }

    /// How many cores so many samples kept busy: one stands for a core's time between two of them, whatever made it.
    fn cores_of(&self, samples: u64) -> f64 {
        samples as f64 / (self.profile.seconds() * f64::from(self.profile.frequency_hz))
    }

    /// True where the kernel's functions have names, so that what is not seen was not there.
    pub(crate) fn names_kernel(&self) -> bool {
        self.profile.unnamed_kernel <= UNNAMED_MAX
    }

    /// Cores that a tier kept busy on average.
    pub(crate) fn cores_used(&self, tier: &Tier) -> f64 {
        self.cores_of(self.profile.parts.iter().filter(|part| tier.pids.contains(&part.pid)).map(|part| part.samples).sum())
    }

    /// Each core with how busy it was and the share of an aspect in that.
    pub(crate) fn cores_with(&self, aspect: &str) -> BTreeMap<u32, (f64, Option<Share>)> {
        let of = |cpu: u32| {
            let here = |part: &&ProfilePart| part.cpu == cpu;
            let samples = self.profile.parts.iter().filter(here).map(|part| part.samples).sum();
            (self.cores_of(samples).min(1.0), self.share_of(here, |part| is_of(part, aspect)))
        };
        self.profile.cores.iter().map(|cpu| (*cpu, of(*cpu))).collect()
    }

    /// How the samples came about, in words for a proof.
    pub(crate) fn source(&self) -> String {
        format!("profile ({}, {} Hz, {:.1} s)", self.profile.clock, self.profile.frequency_hz, self.profile.seconds())
    }
}

/// True where a part is of a layer, or of something that goes across layers.
pub(crate) fn is_of(part: &ProfilePart, what: &str) -> bool {
    part.layer == what || part.aspects.iter().any(|aspect| aspect == what)
}
