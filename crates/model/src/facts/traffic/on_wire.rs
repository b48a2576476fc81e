//! Statuses of the responses that left a tier, as packets showed them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::traffic::{errors_among, failures_among, main_error};
use crate::observation::{NetnsView, SocketAddress, WireAnswers};

/// Responses of one tier that were counted on the wire.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Answered {
    /// Number by status.
    pub(crate) by_status: BTreeMap<u16, u64>,
    /// Time in which they were counted, seconds; less where some found no room.
    pub(crate) seconds: f64,
}

/// A part of what was counted.
type Which = fn(&WireAnswers) -> &BTreeMap<SocketAddr, BTreeMap<u16, u64>>;

/// All that left.
const LEFT: [Which; 2] = [|counted| &counted.servers, |counted| &counted.kept];

impl Answered {
    /// Those of a tier; `None` if not one was seen: that it gives none, or that its responses cannot be read on the wire. The clients of the first tier are anybody: on their older
    /// connections nothing is sure, unless it answers a load of this program, which knows what it got. Those of the others are servers of the path.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let is_first = ctx.path.tiers.first().is_some_and(|first| first.id == tier.id);
        Self::of_which(ctx, tier, if is_first && ctx.obs.load.is_none() { &[|counted| &counted.servers] } else { &LEFT })
    }

    /// That it sent none: where its responses can be read, as one at any other time shows, and not one was seen while these were counted. `None` if it sent some, or may have.
    pub(crate) fn none_of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let view = ctx.obs.netns.get(&tier.netns)?;
        let counted = Self::counted(ctx, view, &LEFT, |server| sends(tier, server));
        let all = view.answers.points().iter().flat_map(|(_, counted)| LEFT.iter().flat_map(|of| of(counted)));
        let is_readable = all.filter(|(server, _)| sends(tier, server)).any(|(_, statuses)| !statuses.is_empty());
        (is_readable && counted.all() == 0 && counted.seconds > 0.0).then_some(counted)
    }

    /// With what is not sure: packets of older connections that begin like responses, and may be pieces of one that quotes them.
    pub(crate) fn perhaps(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        Self::of_which(ctx, tier, &LEFT)
    }

    fn of_which(ctx: &Context<'_>, tier: &Tier, which: &[Which]) -> Option<Self> {
        let view = ctx.obs.netns.get(&tier.netns)?;
        Some(Self::counted(ctx, view, which, |server| sends(tier, server))).filter(|found| found.all() > 0 && found.seconds > 0.0)
    }

    fn counted(ctx: &Context<'_>, view: &NetnsView, which: &[Which], is_wanted: impl Fn(&SocketAddr) -> bool) -> Self {
        let mut found = Self::default();
        for (_, counted) in ctx.in_window(&view.answers) {
            let all = [&counted.servers, &counted.kept, &counted.came].into_iter().flat_map(BTreeMap::values);
            let seen: u64 = all.flat_map(BTreeMap::values).sum::<u64>() + counted.left_out;
            // What found no room came while these were counted, and is anybody's.
            let kept = if counted.lost == 0 { 1.0 } else { seen as f64 / (seen + counted.lost) as f64 };
            found.seconds += kept * counted.open_us as f64 / 1e6;
            let wanted = which.iter().flat_map(|of| of(counted)).filter(|(server, _)| is_wanted(server));
            for (status, count) in wanted.flat_map(|(_, statuses)| statuses) {
                *found.by_status.entry(*status).or_default() += count;
            }
        }
        found
    }

    /// Server errors a second that reached or left the tier's namespace and are those of no server of the path: of other hosts, or of servers that nobody was seen to ask.
    pub(crate) fn errors_beside_rps(ctx: &Context<'_>, tier: &Tier) -> f64 {
        let Some(view) = ctx.obs.netns.get(&tier.netns) else { return 0.0 };
        let is_on_path = |server: &SocketAddr| ctx.path.tiers.iter().any(|tier| sends(tier, server));
        let left = Self::counted(ctx, view, &LEFT, |server| !is_on_path(server));
        let came = Self::counted(ctx, view, &[|counted| &counted.came], |server| !is_on_path(server));
        if left.seconds > 0.0 { left.errors_rps() + came.errors_rps() } else { 0.0 }
    }

    /// All of them.
    pub(crate) fn all(&self) -> u64 {
        self.by_status.values().sum()
    }

    /// Server errors.
    pub(crate) fn errors(&self) -> u64 {
        errors_among(&self.by_status)
    }

    /// Server errors, and answers that one request is too many.
    pub(crate) fn failures(&self) -> u64 {
        failures_among(&self.by_status)
    }

    /// The most frequent status among the errors.
    pub(crate) fn main_error(&self) -> Option<u16> {
        main_error(&self.by_status)
    }

    /// Responses a second with this status.
    pub(crate) fn rps_of(&self, status: u16) -> f64 {
        self.by_status.get(&status).map_or(0.0, |count| *count as f64 / self.seconds)
    }

    /// Responses a second.
    pub(crate) fn all_rps(&self) -> f64 {
        self.all() as f64 / self.seconds
    }

    /// Server errors a second.
    pub(crate) fn errors_rps(&self) -> f64 {
        self.errors() as f64 / self.seconds
    }
}

/// True if responses from this address are those of a tier.
fn sends(tier: &Tier, server: &SocketAddr) -> bool {
    let local = (server.ip(), server.port());
    // Which client it went to decides nothing.
    tier.accepts(&SocketAddress::Tcp { local, remote: local })
}
