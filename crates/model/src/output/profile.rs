//! A profile for the report: CPU time of each tier by layer, in cores and per request, and the quality of the samples.

use std::collections::BTreeMap;

mod bounds;

pub(crate) use bounds::{limit_name, own_work};

use crate::facts::cores::{other_tenants, polling};
use crate::facts::profile::Profiled;
use crate::facts::traffic;
use crate::facts::{Context, GOOD_MIN};
use crate::observation::ProfilePart;
use crate::observation::load::SLICE_US;
use crate::output::message::Message;
use crate::output::report::{ProfileCore, ProfileLayer, ProfileReport, ProfileTier};

/// Samples below which nothing is said of where the time went: a share of a few samples is chance.
const SAMPLES_MIN: u64 = 30;

/// The report's part on the profile. `None` if none was taken.
pub(crate) fn report(ctx: &Context<'_>) -> Option<ProfileReport> {
    let profiled = Profiled::of(ctx)?;
    let profile = profiled.profile;
    let samples: u64 = profile.parts.iter().map(|part| part.samples).sum();
    let rate = good_per_s(ctx, profile.span_us);
    let mut tiers: Vec<ProfileTier> = Vec::new();
    for tier in &ctx.path.tiers {
        let own: Vec<&ProfilePart> = profile.parts.iter().filter(|part| tier.pids.contains(&part.pid)).collect();
        // A polling tier runs with or without requests.
        let rate = rate.filter(|_| polling(ctx, &[tier]).is_empty());
        tiers.extend(of(ctx, &profiled, &tier.name, &own, rate));
    }
    let served = |part: &&ProfilePart| ctx.path.tiers.iter().any(|tier| tier.pids.contains(&part.pid));
    let others: Vec<&ProfilePart> = profile.parts.iter().filter(|part| !served(part)).collect();
    let others = of(ctx, &profiled, &ctx.text(Message::new("profile-others")), &others, None);
    let on_core = |cpu: &u32| {
        let own: Vec<&ProfilePart> = profile.parts.iter().filter(|part| part.cpu == *cpu).collect();
        let told = of(ctx, &profiled, "", &own, None);
        ProfileCore {
            cpu: *cpu,
            busy: told.as_ref().map_or(0.0, |core| core.cores),
            layers: told.map_or_else(Vec::new, |core| core.layers),
        }
    };
    let broken = profile.broken as f64 / profile.user_samples.max(1) as f64;
    let quality = Message::new("profile-quality").with("samples", samples).with("seconds", profile.seconds());
    let quality = quality.with("clock", profile.clock.as_str()).with("lost", profile.lost).with("broken", broken * 100.0);
    let is_few = samples < SAMPLES_MIN;
    let bounds = if is_few { Vec::new() } else { bounds::bounds(ctx, &profiled) };
    let polls = polling(ctx, &ctx.path.tiers.iter().collect::<Vec<_>>());
    let no_bound = match polls.first() {
        _ if is_few => Message::new("profile-few").with("samples", samples).with("least", SAMPLES_MIN),
        Some(one) => Message::new("profile-no-bound-polling").with("tier", one.tier.name.as_str()),
        None if let Some(told) = bounds::of_own_work(ctx) => told,
        None if !other_tenants(ctx).is_empty() => Message::new("profile-no-bound-others"),
        None => Message::new("profile-no-bound"),
    };
    let no_bound = bounds.is_empty().then(|| ctx.text(no_bound));
    Some(ProfileReport {
        clock: profile.clock.clone(),
        frequency_hz: profile.frequency_hz,
        duration_s: profile.seconds(),
        samples,
        lost: profile.lost,
        throttled: profile.throttled,
        user_samples: profile.user_samples,
        broken,
        cost_cpu_s: profile.cost_cpu_s,
        quality: profile.left_out.iter().fold(ctx.text(quality), |told, left_out| format!("{told} {left_out}.")),
        tiers,
        others,
        cores: profile.cores.iter().map(on_core).collect(),
        bounds,
        no_bound,
    })
}

fn of(ctx: &Context<'_>, profiled: &Profiled<'_>, name: &str, parts: &[&ProfilePart], rate: Option<f64>) -> Option<ProfileTier> {
    let (mut layers, mut samples, mut whole): (BTreeMap<&str, u64>, _, _) = (BTreeMap::new(), 0_u64, 0_u64);
    for part in parts {
        *layers.entry(&part.layer).or_default() += part.weight;
        (samples, whole) = (samples + part.samples, whole.saturating_add(part.weight));
    }
    let cores = profiled.cores_of(samples);
    let us = rate.map(|rate| cores * 1e6 / rate);
    let mut layers: Vec<ProfileLayer> = (layers.into_iter())
        .map(|(id, weight)| {
            let share = weight as f64 / whole.max(1) as f64;
            ProfileLayer { layer: id.to_owned(), title: bounds::title(ctx, id), share, cpu_us_per_request: us.map(|us| us * share) }
        })
        .collect();
    layers.sort_by(|a, b| b.share.total_cmp(&a.share));
    (samples >= SAMPLES_MIN).then(|| ProfileTier { tier: name.to_owned(), samples, cores, cpu_us_per_request: us, layers })
}

/// Good answers per second during sampling, or in the whole window if slices are missing. `None` if there are too few for a cost per answer.
fn good_per_s(ctx: &Context<'_>, (begin_us, end_us): (u64, u64)) -> Option<f64> {
    let rate = |good: u64, seconds: f64| (good >= GOOD_MIN && seconds > 0.0).then(|| good as f64 / seconds);
    let Some(load) = &ctx.obs.load else {
        let watched = traffic::of(ctx)?;
        return rate((watched.goodput_rps * watched.duration_s) as u64, watched.duration_s);
    };
    let at = |us: u64| usize::try_from(us.saturating_sub(ctx.window_us.0) / SLICE_US).unwrap_or(usize::MAX);
    let slices = load.slices.get(at(begin_us)..at(end_us).min(load.slices.len())).unwrap_or_default();
    if slices.is_empty() {
        return rate(load.good, load.duration_us as f64 / 1e6).filter(|_| ctx.can_divide_by_good());
    }
    let (good, bad) = slices
        .iter()
        .fold((0, 0), |(good, bad), slice| (good + u64::from(slice.good), bad + u64::from(slice.wrong) + u64::from(slice.failed)));
    // Failures cost CPU time too: if there are more failures than good answers, neither cost is known.
    rate(good, slices.len() as f64 * SLICE_US as f64 / 1e6).filter(|_| good >= bad)
}
