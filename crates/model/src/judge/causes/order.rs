//! The order in which several causes are fixed, so that no step lowers goodput in the end, and the reason for each.
//!
//! Raising a station's limit sends more requests to the stations behind it. If one of those fails or holds requests, more of them fail or wait, and failed
//! answers take CPU from good ones. So the cause closest to the backend comes first. The exception is a cause that starves all others: nothing behind it is
//! seen under its real load, and so little is answered that nothing can be lost.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::STARVING;
use crate::facts::owner::Owner;
use crate::judge::finding::{Coupling, Finding, OrderReason};
use crate::judge::station::StationReading;
use crate::judge::stations::STATIONS;
use crate::output::message::Message;
use crate::output::report::{Cause, Role};

/// The distance of each tier from the client: the longest way without cycles.
pub(super) struct Depths(Vec<usize>);

impl Depths {
    /// Computes the depths from the tiers that each tier calls, by index.
    pub(super) fn of(upstreams: &[Vec<usize>]) -> Self {
        let count = upstreams.len();
        let reached: Vec<Vec<bool>> = (0..count).map(|from| reached(upstreams, from)).collect();
        // Tiers on a cycle are not behind each other.
        let forward = |from: usize, to: usize| to < count && !reached[to][from];
        let mut depths = vec![0; count];
        // A way without cycles has fewer steps than there are tiers.
        for _ in 1..count.max(1) {
            for (from, to) in upstreams.iter().enumerate().flat_map(|(from, all)| all.iter().map(move |to| (from, *to))) {
                if forward(from, to) {
                    depths[to] = depths[to].max(depths[from] + 1);
                }
            }
        }
        Self(depths)
    }

    /// The depth of a tier: the number of tiers before it.
    pub(super) fn of_tier(&self, index: usize) -> usize {
        self.0.get(index).copied().unwrap_or(0)
    }
}

/// The tiers that one tier calls, directly or not.
fn reached(upstreams: &[Vec<usize>], from: usize) -> Vec<bool> {
    let mut reached = vec![false; upstreams.len()];
    let mut open = upstreams[from].clone();
    while let Some(next) = open.pop() {
        if next < reached.len() && !std::mem::replace(&mut reached[next], true) {
            open.extend(&upstreams[next]);
        }
    }
    reached
}

/// The findings that cause this one, with the links between them, the nearest first.
pub(super) fn ancestors(links: &[Coupling], symptom: usize) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut next = 0;
    let mut at = (symptom, 0);
    loop {
        for link in links.iter().filter(|link| link.symptom == at.0) {
            if let Cause::Finding(cause) = link.cause
                && cause != symptom
                && !found.iter().any(|(known, _)| *known == cause)
            {
                found.push((cause, at.1 + 1));
            }
        }
        let Some(following) = found.get(next) else { return found };
        (at, next) = (*following, next + 1);
    }
}

/// The position of a cause; positions are compared from the backend outwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    /// False if it starves all the others.
    is_fed: bool,
    /// The depth of its tier. A cause outside any tier comes before all tiers.
    depth: Reverse<usize>,
    /// Its tier among those of the same depth, by what they refuse.
    tier: usize,
    /// The position of its station in the tier.
    station: Reverse<usize>,
}

/// What the findings belong to: tiers, stations and owners.
#[derive(Clone, Copy)]
pub struct Layout<'a> {
    /// The tiers that each tier of the path calls, by index.
    pub upstreams: &'a [Vec<usize>],
    /// The readings of the path's stations, which show how much each refuses.
    pub stations: &'a [StationReading],
    /// The name of an owner. It decides between tiers that are otherwise equal, so that the order is always the same.
    pub name: &'a dyn Fn(&Owner) -> String,
}

/// The indices of the findings in the order in which they are reported and fixed: causes, then symptoms, those closest to their causes first. `couplings`
/// name findings by their index.
pub fn order(findings: &[Finding], couplings: &[Coupling], layout: Layout<'_>) -> Vec<usize> {
    let positions = positions(findings, layout);
    let far = |index: usize| ancestors(couplings, index).into_iter().map(|(_, links)| links).max().unwrap_or(0);
    let mut order: Vec<usize> = (0..findings.len()).collect();
    order.sort_by(|a, b| {
        let is_symptom = |index: usize| findings[index].role == Role::Symptom;
        let place = |index: usize| if is_symptom(index) { (true, far(index), None) } else { (false, 0, Some(positions[index])) };
        let more = || refused(&findings[*b], layout).total_cmp(&refused(&findings[*a], layout));
        place(*a).cmp(&place(*b)).then_with(more)
    });
    order
}

fn positions(findings: &[Finding], layout: Layout<'_>) -> Vec<Position> {
    let depths = Depths::of(layout.upstreams);
    let depth = |owner: &Owner| owner.tiers().iter().map(|tier| depths.of_tier(tier.0) + 1).max().unwrap_or(0);
    let mut most: BTreeMap<String, f64> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.role == Role::Cause) {
        let all = most.entry((layout.name)(&finding.owner)).or_insert(0.0);
        *all = all.max(refused(finding, layout));
    }
    let mut ranked: Vec<(String, f64)> = most.into_iter().collect();
    // The sort is stable: of tiers that refuse the same amount, the first by name comes first.
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    let position = |finding: &Finding| Position {
        is_fed: !STARVING.contains(&finding.id),
        depth: Reverse(depth(&finding.owner)),
        tier: ranked.iter().position(|(name, _)| *name == (layout.name)(&finding.owner)).unwrap_or(ranked.len()),
        station: Reverse(STATIONS.iter().position(|def| def.id == finding.station).unwrap_or(0)),
    };
    findings.iter().map(position).collect()
}

/// What a finding's station refuses per second; zero if that is not known.
fn refused(finding: &Finding, layout: Layout<'_>) -> f64 {
    let own = layout.stations.iter().find(|reading| reading.is_of(finding));
    own.and_then(|reading| reading.refused_per_s).unwrap_or(0.0)
}

/// Sorts findings and updates the links to match. Returns the reason for the position of each cause, if there are several.
pub fn arrange(findings: &mut Vec<Finding>, couplings: &mut [Coupling], layout: Layout<'_>) -> Vec<OrderReason> {
    let order = order(findings, couplings, layout);
    let place = |old: usize| order.iter().position(|index| *index == old).unwrap_or(old);
    for link in couplings.iter_mut() {
        link.symptom = place(link.symptom);
        if let Cause::Finding(cause) = &mut link.cause {
            *cause = place(*cause);
        }
    }
    couplings.sort_by_key(|link| match link.cause {
        Cause::Finding(index) => (link.symptom, false, index),
        Cause::Station(index) => (link.symptom, true, index),
    });
    let mut old: Vec<Option<Finding>> = std::mem::take(findings).into_iter().map(Some).collect();
    findings.extend(order.iter().filter_map(|index| old.get_mut(*index).and_then(Option::take)));
    reasons(findings, layout)
}

/// The reason for the position of each cause, if there are several. The causes must already be in order.
fn reasons(findings: &[Finding], layout: Layout<'_>) -> Vec<OrderReason> {
    let positions = positions(findings, layout);
    let causes: Vec<usize> = (0..findings.len()).filter(|index| findings[*index].role == Role::Cause).collect();
    if causes.len() < 2 {
        return Vec::new();
    }
    // "accept-queue-full (nginx)".
    let name = |finding: &Finding| format!("{} ({})", finding.id, (layout.name)(&finding.owner));
    let why = |place: usize| {
        let index = causes[place];
        let Some(next) = causes.get(place + 1).copied() else {
            let before = causes[place - 1];
            // What either may come before spoils nothing.
            let is_beside =
                positions[index] == positions[before] && refused(&findings[index], layout) == refused(&findings[before], layout);
            let id = if is_beside { "order-last-beside" } else { "order-last" };
            return Message::new(id).with("other", name(&findings[before]));
        };
        let (own, other) = (positions[index], positions[next]);
        let id = if own.is_fed != other.is_fed {
            "order-starves"
        } else if own.depth != other.depth || (own.tier == other.tier && own.station != other.station) {
            "order-inner"
        } else if refused(&findings[index], layout) > refused(&findings[next], layout) {
            "order-more"
        } else {
            "order-beside"
        };
        Message::new(id).with("other", name(&findings[next]))
    };
    causes.iter().enumerate().map(|(place, index)| OrderReason { finding: *index, why: why(place) }).collect()
}
