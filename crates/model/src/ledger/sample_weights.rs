//! The samples of a namespace behind the account, and their weights.

use crate::facts::Context;
use crate::observation::{NetnsView, RequestSample};

/// Samples on each side of a sample whose polls of the load generator are averaged. Fewer would be random; more would smooth over a load that changes within
/// seconds.
const NEIGHBOURS: usize = 8;

/// The samples of a namespace in chronological order, including the awaited ones.
pub(super) fn samples<'s>(ctx: &Context<'_>, view: &'s NetnsView) -> Vec<&'s (u64, RequestSample)> {
    let mut all: Vec<_> = ctx.in_window(&view.request_samples).chain(ctx.in_window(&view.awaited_samples)).collect();
    all.sort_by_key(|(at_us, _)| *at_us);
    all
}

/// For each sample the share of time around it in which a request was under way, from the polls of the load generator, of which each sample is one; zero for a
/// sample without a request. `None` if no sample was awaited: then all samples were taken on schedule.
pub(super) fn busy_shares(samples: &[&(u64, RequestSample)]) -> Option<Vec<f64>> {
    samples.iter().any(|(_, sample)| !sample.is_at_any_time()).then(|| {
        let has_met = |sample: &RequestSample| !sample.is_at_any_time() || sample.under_way.is_some_and(|number| number > 0.0);
        let share = |at: usize| {
            let near = &samples[at.saturating_sub(NEIGHBOURS)..samples.len().min(at + NEIGHBOURS + 1)];
            let looks: u64 = near.iter().map(|(_, sample)| u64::from(sample.looks.max(1))).sum();
            near.iter().filter(|(_, sample)| has_met(sample)).count() as f64 / looks as f64
        };
        samples.iter().enumerate().map(|(at, (_, sample))| if has_met(sample) { share(at) } else { 0.0 }).collect()
    })
}

/// For each of these times, the share of the time span that is nearest to it.
pub(super) fn time_shares(times_us: &[u64], (from_us, to_us): (u64, u64)) -> Vec<f64> {
    let middles = times_us.windows(2).map(|two| two[0].midpoint(two[1]));
    let edges: Vec<u64> = std::iter::once(from_us).chain(middles).chain([to_us]).collect();
    let length = to_us.saturating_sub(from_us).max(1) as f64;
    edges.windows(2).map(|two| two[1].saturating_sub(two[0]) as f64 / length).collect()
}
