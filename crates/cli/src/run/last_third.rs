//! The profile of a diagnosis, taken in the last third of its window in a separate thread: counts of samples without stacks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chokepoint_model::observation::{CpuProfile, ProfileFunction, ProfilePart};
use chokepoint_profile::analysis::parts;
use chokepoint_profile::{Error, Options, Profile, Sampler, Scope, StackEnd};
use chokepoint_recording::Outcome;
use chokepoint_sources::PathSoFar;

use crate::run::background_task::BackgroundTask;

/// Samples a second on each core: 99 avoids lockstep with work at 100 Hz, and costs less than 1 % of a core.
const FREQUENCY_HZ: u32 = 99;
/// Share of a core that sampling may take. Above it (for example while compilers run) user stacks are left out, and the report says so.
const SHARE_MAX: f64 = 0.03;
/// The shortest time worth sampling.
const SPAN_MIN: Duration = Duration::from_millis(300);
/// The most parts and functions that are kept: a recording holds them, and a report lists the largest.
const PARTS_MAX: usize = 4096;
const FUNCTIONS_MAX: usize = 64;
/// Most processes that started others, those with the most starts first: a host has few of them at a time.
const STARTERS_MAX: usize = 256;
/// Time between two checks whether the load ended early.
const POLL: Duration = Duration::from_millis(20);

/// Samples the last third of a window that begins now. `begin_us`: now, by the observation's clock. `bytes_max`: the most that is held of other programs' files.
pub(crate) fn start(window: Duration, begin_us: u64, bytes_max: Option<u64>, path: PathSoFar) -> BackgroundTask {
    BackgroundTask::start("profile", move |stop| take(window, begin_us, (bytes_max, &path), stop))
}

fn take(window: Duration, begin_us: u64, (bytes_max, path): (Option<u64>, &PathSoFar), stop: &AtomicBool) -> Outcome {
    let begin = Instant::now();
    let early = || Outcome::Absent("the load ended before its last third".to_owned(), None);
    let third = window / 3;
    if third < SPAN_MIN {
        return Outcome::Absent(format!("the last third is shorter than {} ms", SPAN_MIN.as_millis()), None);
    }
    while begin.elapsed() < window - third {
        if stop.load(Ordering::Relaxed) {
            return early();
        }
        std::thread::sleep(POLL.min((window - third).saturating_sub(begin.elapsed())));
    }
    let at_us = |since: Duration| begin_us.saturating_add(u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
    let from_us = at_us(begin.elapsed());
    match sampled(bytes_max, path.processes(), || begin.elapsed() < window && !stop.load(Ordering::Relaxed)) {
        Ok(profile) if profile.duration_s < SPAN_MIN.as_secs_f64() => early(),
        Ok(profile) => match serde_json::to_vec(&counted(&profile, from_us)) {
            Ok(json) => Outcome::Ok(json),
            Err(error) => Outcome::Failed(error.to_string(), None),
        },
        Err(Error::Privilege { what, needs, .. }) => {
            Outcome::Absent(format!("{what} is not allowed for this user"), Some(needs.to_owned()))
        }
        Err(error @ Error::Unsupported(_)) => Outcome::Absent(error.to_string(), None),
        Err(error) => Outcome::Failed(error.to_string(), None),
    }
}

/// Samples all cores while this is true, with the user stacks of these processes and of those that they start; of all if there are none. `bytes_max`: the most that is
/// held of other programs' files.
pub(crate) fn sampled(bytes_max: Option<u64>, walked: BTreeSet<u32>, goes_on: impl Fn() -> bool) -> Result<Profile, Error> {
    let sampler = Sampler::open(Options { scope: Scope::System, cores: None, frequency_hz: FREQUENCY_HZ })?.with_stacks_of(walked);
    let sampler = match bytes_max {
        Some(bytes) => sampler.with_memory_limit(bytes),
        None => sampler,
    };
    sampler.with_cpu_limit(SHARE_MAX).run(|_| goes_on())
}

/// A profile without its stacks.
pub(crate) fn counted(profile: &Profile, from_us: u64) -> CpuProfile {
    let lasted_us = Duration::try_from_secs_f64(profile.duration_s).map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    let (mut user_samples, mut broken) = (0, 0);
    for (_, stack, _) in profile.busy().filter(|(_, stack, _)| stack.end != StackEnd::Kernel) {
        user_samples += 1;
        broken += u64::from(matches!(stack.end, StackEnd::Broken | StackEnd::Unread));
    }
    let part = |part: parts::Part| ProfilePart {
        pid: part.pid,
        is_started: part.is_started,
        program: part.program,
        cpu: part.cpu,
        layer: part.layer.def().id.to_owned(),
        aspects: part.aspects.into_iter().map(str::to_owned).collect(),
        samples: part.samples,
        weight: part.weight,
    };
    let function = |function: parts::Function| ProfileFunction {
        program: function.program,
        layer: function.layer.def().id.to_owned(),
        name: function.name,
        weight: function.weight,
    };
    CpuProfile {
        clock: profile.clock.name().to_owned(),
        frequency_hz: profile.frequency_hz,
        span_us: (from_us, from_us.saturating_add(lasted_us)),
        lost: profile.lost,
        throttled: profile.throttled,
        user_samples,
        broken,
        unnamed_kernel: profile.quality().unnamed_kernel,
        cost_cpu_s: profile.cost_cpu_s,
        left_out: profile.left_out.clone(),
        cores: profile.cores.iter().map(|core| core.cpu).collect(),
        parts: parts::parts(profile, PARTS_MAX).into_iter().map(part).collect(),
        functions: parts::functions(profile, FUNCTIONS_MAX).into_iter().map(function).collect(),
        starts: Some(most_starts(profile)),
    }
}

/// How many processes each process started, of those that started the most.
fn most_starts(profile: &Profile) -> BTreeMap<u32, u64> {
    let mut starts: Vec<(u32, u64)> = profile.starts.iter().map(|(pid, count)| (*pid, *count)).collect();
    starts.sort_by_key(|(pid, count)| (Reverse(*count), *pid));
    starts.into_iter().take(STARTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use chokepoint_model::catalogue::Catalogue;
    use chokepoint_model::profile::NAMED;
    use chokepoint_profile::analysis::report::aspects;
    use chokepoint_profile::layers::LAYERS;
    use chokepoint_profile::output::folded;

    use super::*;

    #[test]
    fn every_layer_has_a_message_and_the_layers_that_the_model_names_exist() {
        let words = Catalogue::english();
        let known: Vec<&str> = LAYERS.iter().map(|def| def.id).chain(aspects()).collect();
        for id in &known {
            assert!(words.plain(&format!("layer-{id}")).is_some(), "{id} has no message");
        }
        assert!(NAMED.iter().all(|id| known.contains(id)));
    }

    #[test]
    fn a_profile_is_counted_and_survives_a_round_trip_through_json() {
        let mut profile = folded::read("nginx;main;__inet_check_established_[k] 30\nnginx;main 10\n").unwrap();
        (profile.duration_s, profile.frequency_hz) = (2.5, 99);
        let counted = counted(&profile, 7_000_000);
        assert_eq!(counted.span_us, (7_000_000, 9_500_000));
        let layers: Vec<(&str, u64)> = counted.parts.iter().map(|part| (part.layer.as_str(), part.samples)).collect();
        assert_eq!(layers, [("port-search", 30), ("application", 10)]);
        assert_eq!(counted.functions[0].name, "__inet_check_established");
        let back: CpuProfile = serde_json::from_slice(&serde_json::to_vec(&counted).unwrap()).unwrap();
        assert_eq!(back, counted);
    }

    #[test]
    fn a_window_that_is_too_short_or_ends_early_gives_an_absent_profile() {
        let outcome = take(Duration::from_millis(30), 0, (None, &PathSoFar::default()), &AtomicBool::new(false));
        assert!(matches!(outcome, Outcome::Absent(ref why, None) if why.contains("third")), "{outcome:?}");
        let waiting = start(Duration::from_secs(600), 0, None, PathSoFar::default());
        assert!(matches!(waiting.finish(), Outcome::Absent(ref why, None) if why.contains("ended before")));
    }
}
