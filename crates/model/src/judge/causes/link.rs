//! Walks the cause graph over the findings of one observation, to find which are symptoms and of what.

use super::order::{Depths, ancestors};
use super::{Attribution, CouplingDef, Relation, Source, Standing, couplings};
use crate::facts::Context;
use crate::facts::owner::Owner;
use crate::facts::path::Tier;
use crate::judge::finding::{Coupling, Finding};
use crate::judge::id::{FindingId, StationId};
use crate::judge::location::Location;
use crate::judge::station::StationReading;
use crate::judge::stations::{STATIONS, waited_for};
use crate::output::message::Message;
use crate::output::report::{Cause, Role, StationState};

/// Names the causes of each symptom and returns the links between them. Links name findings and stations by their index in the slices.
///
/// Links within a tier are settled first. Then come tiers that wait for others, the innermost first: a tier's wait is a symptom of the findings that are
/// still causes in the tiers that it waits for.
pub(crate) fn link(ctx: &Context<'_>, stations: &[StationReading], findings: &mut [Finding]) -> Vec<Coupling> {
    let standings: Vec<Standing> = findings.iter().map(|finding| standing(ctx, stations, finding)).collect();
    let judged: Vec<bool> = standings.iter().map(|standing| *standing != Standing::Alone).collect();
    for (finding, standing) in findings.iter_mut().zip(&standings) {
        if let Standing::Behind(explanation) = standing {
            finding.explanation = vec![explanation.clone()];
        }
        finding.role = if *standing == Standing::Alone { Role::Cause } else { Role::Symptom };
    }
    let mut links: Vec<Coupling> = Vec::new();
    for symptom in 0..findings.len() {
        // What is itself behind something else is the cause of what a line names, and not of whatever there is.
        let is_behind = |origin: &Origin<'_>| matches!(origin.cause, Cause::Finding(at) if matches!(standings[at], Standing::Behind(_)));
        let is_named = |def: &CouplingDef| !matches!(def.cause, Source::Any | Source::AnyBut(_));
        let near = |def: &CouplingDef, origin: &Origin<'_>| {
            (is_named(def) || !is_behind(origin)) && is_near((ctx, stations), def.relation, origin, &findings[symptom])
        };
        links.extend(links_to(stations, findings, (symptom, judged[symptom]), near));
    }
    settle(findings, &links);
    let depths = Depths::of(&ctx.path.tiers.iter().map(|tier| tier.upstreams.clone()).collect::<Vec<_>>());
    let mut tiers: Vec<(usize, &Tier)> = ctx.path.tiers.iter().enumerate().collect();
    tiers.sort_by_key(|(index, _)| std::cmp::Reverse(depths.of_tier(*index)));
    for (_, tier) in tiers {
        let is_its_wait = |finding: &Finding| finding.id == FindingId::POOL_BLOCKED && finding.owner == tier.into();
        let Some(symptom) = findings.iter().position(is_its_wait) else { continue };
        let awaited = waited_for(ctx, tier);
        let there = |def: &CouplingDef, origin: &Origin<'_>| {
            let is_cause = !matches!(origin.cause, Cause::Finding(at) if findings[at].role == Role::Symptom);
            def.relation == Relation::Awaited && is_cause && origin.owner.tiers().iter().any(|tier| awaited.contains(&tier.0))
        };
        let found = links_to(stations, findings, (symptom, judged[symptom]), there);
        links.extend(found);
        settle(findings, &links);
    }
    for (at, finding) in findings.iter_mut().enumerate() {
        if standings[at] == Standing::Perhaps && links.iter().all(|link| link.symptom != at) {
            finding.role = Role::Cause;
        }
    }
    links
}

/// What a finding's own station says about it.
fn standing(ctx: &Context<'_>, stations: &[StationReading], finding: &Finding) -> Standing {
    let def = STATIONS.iter().find(|def| def.id == finding.station);
    def.map_or(Standing::Alone, |def| (def.standing)(ctx, finding, stations.iter().find(|reading| reading.is_of(finding))))
}

/// A possible cause, and where it is.
struct Origin<'a> {
    cause: Cause,
    owner: &'a Owner,
    station: StationId,
    at: &'a Location,
}

/// Everything on the path that a line of the graph can start from.
fn origins<'a>(source: Source, stations: &'a [StationReading], (findings, symptom): (&'a [Finding], usize)) -> Vec<Origin<'a>> {
    let of_finding =
        |(index, it): (usize, &'a Finding)| Origin { cause: Cause::Finding(index), owner: &it.owner, station: it.station, at: &it.at };
    match source {
        Source::Finding(id) => findings.iter().enumerate().filter(|(_, finding)| finding.id == id).map(of_finding).collect(),
        Source::Any => findings.iter().enumerate().filter(|(index, _)| *index != symptom).map(of_finding).collect(),
        Source::AnyBut(id) => {
            let others = findings.iter().enumerate().filter(|(index, finding)| *index != symptom && finding.id != id);
            others.map(of_finding).collect()
        }
        Source::Station(id) => {
            let is_full = |reading: &StationReading| reading.station == id && reading.state == StationState::Saturated;
            let full = stations.iter().enumerate().filter(|(_, reading)| is_full(reading));
            full.map(|(index, it)| Origin { cause: Cause::Station(index), owner: &it.owner, station: it.station, at: &it.at }).collect()
        }
    }
}

/// The links to one finding from every origin whose place matches its lines of the graph. `is_judged` says whether its own station took it for a symptom.
fn links_to(
    stations: &[StationReading],
    findings: &[Finding],
    (symptom, is_judged): (usize, bool),
    is_there: impl Fn(&CouplingDef, &Origin<'_>) -> bool,
) -> Vec<Coupling> {
    let holds = |def: &&CouplingDef| def.attribution == Attribution::Found || is_judged;
    let lines = couplings().filter(|def| def.symptom == findings[symptom].id).filter(holds);
    let linked = |def: &CouplingDef| -> Vec<Coupling> {
        let there = origins(def.cause, stations, (findings, symptom)).into_iter().filter(|origin| is_there(def, origin));
        there.map(|origin| Coupling { cause: origin.cause, symptom, why: Message::new(def.why) }).collect()
    };
    lines.flat_map(linked).collect()
}

/// True if a cause is at the place that a line of the graph requires. Awaited tiers are checked later.
fn is_near((ctx, stations): (&Context<'_>, &[StationReading]), relation: Relation, origin: &Origin<'_>, symptom: &Finding) -> bool {
    let same_tier = || origin.owner.shares(&symptom.owner);
    match relation {
        Relation::Tier => same_tier(),
        Relation::Station => same_tier() && origin.station == symptom.station && *origin.at == symptom.at,
        Relation::Listener => same_tier() && origin.at.netns == symptom.at.netns && origin.at.listener == symptom.at.listener,
        Relation::Behind => same_tier() || is_behind(ctx, origin, symptom),
        Relation::Path => !origin.owner.tiers().is_empty(),
        Relation::Cores => same_tier() || share_busy_cores(stations, origin, symptom),
        Relation::Edge => is_passed(ctx, origin, symptom),
        Relation::Awaited => false,
    }
}

/// True if a tier of the symptom calls a tier of the cause, directly or not.
fn is_behind(ctx: &Context<'_>, origin: &Origin<'_>, symptom: &Finding) -> bool {
    let behind = symptom.owner.tiers().iter().flat_map(|tier| ctx.behind(&ctx.path.tiers[tier.0]));
    behind.into_iter().any(|tier| origin.owner.has(tier.id))
}

/// True if a tier of the cause and one of the symptom run on the same cores, and these are busy.
fn share_busy_cores(stations: &[StationReading], origin: &Origin<'_>, symptom: &Finding) -> bool {
    let is_busy = |reading: &&StationReading| {
        reading.station == StationId::CPU && matches!(reading.state, StationState::Near | StationState::Saturated)
    };
    stations.iter().filter(is_busy).any(|cores| cores.owner.shares(origin.owner) && cores.owner.shares(&symptom.owner))
}

/// True if connections from the symptom's tier to its upstreams leave the cause's network namespace or arrive in it.
fn is_passed(ctx: &Context<'_>, origin: &Origin<'_>, symptom: &Finding) -> bool {
    let Some(tier) = ctx.only_tier(&symptom.owner) else { return false };
    let upstreams = tier.upstreams.iter().map(|index| &ctx.path.tiers[*index]);
    let arrives = upstreams.flat_map(|upstream| &upstream.listeners).map(|listener| listener.netns);
    !tier.upstreams.is_empty() && arrives.chain([tier.netns]).any(|netns| origin.at.netns == Some(netns))
}

/// Gives each linked finding its role, the names of its causes (the root first) and the reasons.
fn settle(findings: &mut [Finding], links: &[Coupling]) {
    let ids: Vec<FindingId> = findings.iter().map(|finding| finding.id).collect();
    for (index, finding) in findings.iter_mut().enumerate() {
        let mut whys = links.iter().filter(|link| link.symptom == index).map(|link| &link.why).peekable();
        if whys.peek().is_none() {
            continue;
        }
        // The explanation of a cause does not hold for a symptom.
        if finding.role == Role::Cause {
            finding.explanation.clear();
            finding.role = Role::Symptom;
        }
        let new: Vec<Message> = whys.filter(|why| !finding.explanation.contains(why)).cloned().collect();
        finding.explanation.extend(new);
        finding.symptom_of.clear();
        for (cause, _) in ancestors(links, index).into_iter().rev() {
            if !finding.symptom_of.contains(&ids[cause]) {
                finding.symptom_of.push(ids[cause]);
            }
        }
    }
}
