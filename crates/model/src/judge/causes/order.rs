//! The order in which several causes are mended, so that no step lowers the goodput in the end; with the reason for each.
//!
//! A station passes on what it lets through. To lift one is to send more to those behind it: to one that fails or holds requests there that is so
//! much more to fail or to wait, and failed answers take the CPU from good ones. So the one nearest to the answer comes first, and what stands before it
//! is lifted when all behind it has room. What starves everything is the exception: nothing behind it is seen at its load, and so little is answered
//! that nothing can be lost.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::STARVING;
use crate::judge::stations::STATIONS;
use crate::output::catalogue::Catalogue;
use crate::output::message::Message;
use crate::output::report::{Cause, Coupling, Finding, Role, Station, TierReport, Turn};

/// How far each tier lies from the client: the longest way there, rings left out.
pub(super) struct Depths(Vec<usize>);

impl Depths {
    /// From the tiers that each tier calls, by their places.
    pub(super) fn of(upstreams: &[Vec<usize>]) -> Self {
        let count = upstreams.len();
        let reached: Vec<Vec<bool>> = (0..count).map(|from| reached(upstreams, from)).collect();
        // On a ring none is farther in than the other.
        let forward = |from: usize, to: usize| to < count && !reached[to][from];
        let mut depths = vec![0; count];
        // A way without a ring has fewer steps than there are tiers.
        for _ in 1..count.max(1) {
            for (from, to) in upstreams.iter().enumerate().flat_map(|(from, all)| all.iter().map(move |to| (from, *to))) {
                if forward(from, to) {
                    depths[to] = depths[to].max(depths[from] + 1);
                }
            }
        }
        Self(depths)
    }

    fn of_report(tiers: &[TierReport]) -> Self {
        let place = |name: &String| tiers.iter().position(|tier| tier.name == *name);
        Self::of(&tiers.iter().map(|tier| tier.upstreams.iter().filter_map(place).collect()).collect::<Vec<_>>())
    }

    /// Tiers before this one.
    pub(super) fn of_tier(&self, index: usize) -> usize {
        self.0.get(index).copied().unwrap_or(0)
    }
}

/// Which tiers are called from one, directly or not.
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

/// The findings that bring one about, with the links between, the nearest first.
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

/// Where a cause lies; it is compared from the answer outwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    /// False where it starves all the others.
    is_fed: bool,
    /// The depth of its tier; what belongs to no tier lies before all of them.
    depth: Reverse<usize>,
    /// Its tier among those of the same depth, by what they turn away.
    tier: usize,
    /// The place of its station in the tier.
    station: Reverse<usize>,
}

/// What the findings lie on.
#[derive(Clone, Copy)]
pub struct Layout<'a> {
    /// The path's tiers.
    pub tiers: &'a [TierReport],
    /// The readings of its stations, which tell what each turns away.
    pub path: &'a [Station],
    /// The places of the tiers that a name of the report stands for: several where they share cores or a quota, none of who is outside of the path.
    pub places: &'a dyn Fn(&str) -> Vec<usize>,
}

/// The places of these findings in the order in which they are told and mended: causes, then symptoms, the nearest to their causes first.
/// `couplings` link them by their places in `findings`.
pub fn order(findings: &[Finding], couplings: &[Coupling], layout: Layout<'_>) -> Vec<usize> {
    let positions = positions(findings, layout);
    let path = layout.path;
    let far = |at: usize| ancestors(couplings, at).into_iter().map(|(_, links)| links).max().unwrap_or(0);
    let mut order: Vec<usize> = (0..findings.len()).collect();
    order.sort_by(|a, b| {
        let symptom = |at: usize| findings[at].role == Role::Symptom;
        let place = |at: usize| if symptom(at) { (true, far(at), None) } else { (false, 0, Some(positions[at])) };
        let more = || refused(&findings[*b], path).total_cmp(&refused(&findings[*a], path));
        place(*a).cmp(&place(*b)).then_with(more)
    });
    order
}

fn positions(findings: &[Finding], layout: Layout<'_>) -> Vec<Position> {
    let (depths, path) = (Depths::of_report(layout.tiers), layout.path);
    let depth = |tier: &str| (layout.places)(tier).into_iter().map(|index| depths.of_tier(index) + 1).max().unwrap_or(0);
    let mut most: BTreeMap<&str, f64> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.role == Role::Cause) {
        let all = most.entry(finding.tier.as_str()).or_insert(0.0);
        *all = all.max(refused(finding, path));
    }
    let mut ranked: Vec<(&str, f64)> = most.into_iter().collect();
    // Of tiers that turn away as much, the first by name: the same each time.
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    let position = |finding: &Finding| Position {
        is_fed: !STARVING.contains(&finding.id.as_str()),
        depth: Reverse(depth(&finding.tier)),
        tier: ranked.iter().position(|(name, _)| *name == finding.tier).unwrap_or(ranked.len()),
        station: Reverse(STATIONS.iter().position(|def| def.id == finding.station).unwrap_or(0)),
    };
    findings.iter().map(position).collect()
}

/// What a finding's station turns away a second; zero where nothing tells.
fn refused(finding: &Finding, path: &[Station]) -> f64 {
    let own = |station: &&Station| station.station == finding.station && station.tier == finding.tier && station.at == finding.at;
    path.iter().find(own).and_then(|station| station.refused_per_s).unwrap_or(0.0)
}

/// Puts findings into their order and the links with them, and says why each of several causes has its turn.
pub fn arrange(findings: &mut Vec<Finding>, couplings: &mut [Coupling], layout: Layout<'_>, words: &Catalogue) -> Vec<Turn> {
    let order = order(findings, couplings, layout);
    let place = |old: usize| order.iter().position(|at| *at == old).unwrap_or(old);
    for link in couplings.iter_mut() {
        link.symptom = place(link.symptom);
        if let Cause::Finding(cause) = &mut link.cause {
            *cause = place(*cause);
        }
    }
    couplings.sort_by_key(|link| (link.symptom, matches!(link.cause, Cause::Station(_)), origin(link.cause)));
    let mut old: Vec<Option<Finding>> = std::mem::take(findings).into_iter().map(Some).collect();
    findings.extend(order.iter().filter_map(|at| old.get_mut(*at).and_then(Option::take)));
    turns(findings, layout, words)
}

fn origin(cause: Cause) -> usize {
    match cause {
        Cause::Finding(at) | Cause::Station(at) => at,
    }
}

/// Why each of several causes has its turn; they stand in their order.
fn turns(findings: &[Finding], layout: Layout<'_>, words: &Catalogue) -> Vec<Turn> {
    let (positions, path) = (positions(findings, layout), layout.path);
    let causes: Vec<usize> = (0..findings.len()).filter(|at| findings[*at].role == Role::Cause).collect();
    if causes.len() < 2 {
        return Vec::new();
    }
    let why = |place: usize| {
        let at = causes[place];
        let Some(next) = causes.get(place + 1).copied() else {
            return Message::new("order-last").with("other", name(&findings[causes[place - 1]]));
        };
        let (own, other) = (positions[at], positions[next]);
        let id = if own.is_fed != other.is_fed {
            "order-starves"
        } else if own.depth != other.depth || (own.tier == other.tier && own.station != other.station) {
            "order-inner"
        } else if refused(&findings[at], path) > refused(&findings[next], path) {
            "order-more"
        } else {
            "order-beside"
        };
        Message::new(id).with("other", name(&findings[next]))
    };
    causes.iter().enumerate().map(|(place, at)| Turn { finding: *at, why: words.text(&why(place)) }).collect()
}

/// "accept-queue-full (nginx)".
fn name(finding: &Finding) -> String {
    format!("{} ({})", finding.id, finding.tier)
}
