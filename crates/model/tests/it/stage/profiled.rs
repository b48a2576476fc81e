//! A profile of the stage's cores.

use chokepoint_model::observation::{CpuProfile, Observation, ProfileFunction, ProfilePart};
use chokepoint_model::reading::Reading;

/// Samples of a process on a core in a layer, and the other aspects they count for.
pub(crate) type Counted<'a> = (u32, u32, &'a str, &'a [&'a str], u64);

/// Length of the profile in seconds. At 100 Hz this many hundred samples fill a core.
pub(crate) const SECONDS: u64 = 4;

/// The last third of the load was sampled, at 100 Hz on both cores.
pub(crate) fn profile(obs: &mut Observation, counted: &[Counted<'_>]) {
    let part = |(pid, cpu, layer, aspects, samples): &Counted<'_>| ProfilePart {
        pid: *pid,
        is_started: false,
        program: if *pid == 42 { "nginx".into() } else { format!("program {pid}") },
        cpu: *cpu,
        layer: (*layer).into(),
        aspects: aspects.iter().map(|aspect| (*aspect).to_owned()).collect(),
        samples: *samples,
        weight: samples * 10_000_000,
    };
    let function = |name: &str, layer: &str| ProfileFunction { program: "nginx".into(), layer: layer.into(), name: name.into(), weight: 1 };
    let profile = CpuProfile {
        clock: "cpu-clock".into(),
        frequency_hz: 100,
        span_us: (6_500_000, 6_500_000 + SECONDS * 1_000_000),
        cores: vec![0, 1],
        parts: counted.iter().map(part).collect(),
        functions: vec![function("__inet_check_established", "port-search"), function("deflate_slow", "compression")],
        ..CpuProfile::default()
    };
    obs.profile = Default::default();
    obs.profile.push(10_600_000, Reading::Ok(profile));
}
