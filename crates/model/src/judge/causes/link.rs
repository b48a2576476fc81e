//! Walks the cause graph over the findings of one observation: which are symptoms, and of what.

use super::order::{Depths, ancestors};
use super::{Attribution, CouplingDef, Relation, Source, Standing, couplings};
use crate::facts::Context;
use crate::facts::owner::Owner;
use crate::facts::path::Tier;
use crate::judge::findings::POOL_BLOCKED;
use crate::judge::stations::{STATIONS, StationReading, waited_for};
use crate::output::message::Message;
use crate::output::report::{At, Cause, Coupling, Finding, Role, StationState};

/// Names the causes of each symptom and gives the links between them, findings and stations by their place in the slices.
///
/// What brings a finding about within its own tier is settled first. A tier that waits for others is the symptom of what is a cause there by then,
/// the innermost first: what that is the symptom of decides for those that wait for it.
pub(crate) fn link(ctx: &Context<'_>, stations: &[StationReading], findings: &mut [Finding]) -> Vec<Coupling> {
    let standings: Vec<Standing> = findings.iter().map(|finding| standing(ctx, stations, finding)).collect();
    let judged: Vec<bool> = standings.iter().map(|standing| *standing != Standing::Alone).collect();
    for (finding, standing) in findings.iter_mut().zip(&standings) {
        if let Standing::Behind(explanation) = standing {
            finding.explanation = ctx.text(explanation.clone());
        }
        finding.role = if *standing == Standing::Alone { Role::Cause } else { Role::Symptom };
    }
    let mut links: Vec<Coupling> = Vec::new();
    for symptom in 0..findings.len() {
        let near = |def: &CouplingDef, spot: &Spot<'_>| is_near((ctx, stations), def.place, spot, &findings[symptom]);
        links.extend(links_to(ctx, stations, findings, (symptom, judged[symptom]), near));
    }
    settle(findings, &links);
    let depths = Depths::of(&ctx.path.tiers.iter().map(|tier| tier.upstreams.clone()).collect::<Vec<_>>());
    let mut tiers: Vec<(usize, &Tier)> = ctx.path.tiers.iter().enumerate().collect();
    tiers.sort_by_key(|(index, _)| std::cmp::Reverse(depths.of_tier(*index)));
    for (_, tier) in tiers {
        let Some(symptom) = findings.iter().position(|finding| finding.id == POOL_BLOCKED && finding.tier == tier.name) else { continue };
        let awaited = waited_for(ctx, &tier.name);
        let there = |def: &CouplingDef, spot: &Spot<'_>| {
            let is_cause = !matches!(spot.cause, Cause::Finding(at) if findings[at].role == Role::Symptom);
            def.place == Relation::Awaited && is_cause && spot.owner.tiers().iter().any(|tier| awaited.contains(&tier.0))
        };
        let found = links_to(ctx, stations, findings, (symptom, judged[symptom]), there);
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

/// What a finding's own station says of it.
fn standing(ctx: &Context<'_>, stations: &[StationReading], finding: &Finding) -> Standing {
    let is_own = |placed: &&StationReading| {
        let station = &placed.station;
        station.station == finding.station && station.tier == finding.tier && station.at == finding.at
    };
    let def = STATIONS.iter().find(|def| def.id == finding.station);
    def.map_or(Standing::Alone, |def| (def.standing)(ctx, finding, stations.iter().find(is_own)))
}

/// Something that may be a cause, and where it is.
struct Spot<'a> {
    cause: Cause,
    owner: Owner,
    station: &'a str,
    at: &'a At,
}

/// Everything on the path that a line of the graph can begin with.
fn spots<'a>(
    ctx: &Context<'_>,
    source: Source,
    stations: &'a [StationReading],
    (findings, symptom): (&'a [Finding], usize),
) -> Vec<Spot<'a>> {
    let spot =
        |(at, it): (usize, &'a Finding)| Spot { cause: Cause::Finding(at), owner: ctx.owner(&it.tier), station: &it.station, at: &it.at };
    match source {
        Source::Finding(id) => findings.iter().enumerate().filter(|(_, finding)| finding.id == id).map(spot).collect(),
        Source::Any => findings.iter().enumerate().filter(|(at, _)| *at != symptom).map(spot).collect(),
        Source::Station(id) => {
            let at_limit = |placed: &StationReading| placed.station.station == id && placed.station.state == StationState::Saturated;
            let full = stations.iter().enumerate().filter(|(_, placed)| at_limit(placed));
            let spot = |(at, placed): (usize, &'a StationReading)| {
                let it = &placed.station;
                Spot { cause: Cause::Station(at), owner: ctx.owner(&it.tier), station: &it.station, at: &it.at }
            };
            full.map(spot).collect()
        }
    }
}

/// The links to one finding from whatever is where its lines of the graph ask for it; with whether its own station took it for a symptom.
fn links_to(
    ctx: &Context<'_>,
    stations: &[StationReading],
    findings: &[Finding],
    (symptom, is_judged): (usize, bool),
    is_there: impl Fn(&CouplingDef, &Spot<'_>) -> bool,
) -> Vec<Coupling> {
    let told = |def: &&CouplingDef| def.told == Attribution::Found || is_judged;
    let lines = couplings().filter(|def| def.symptom == findings[symptom].id).filter(told);
    let linked = |def: &CouplingDef| -> Vec<Coupling> {
        let there = spots(ctx, def.cause, stations, (findings, symptom)).into_iter().filter(|spot| is_there(def, spot));
        there.map(|spot| Coupling { cause: spot.cause, symptom, why: ctx.text(Message::new(def.why)) }).collect()
    };
    lines.flat_map(linked).collect()
}

/// True where a cause is at the place that a line of the graph asks for; those in awaited tiers are looked for later.
fn is_near((ctx, stations): (&Context<'_>, &[StationReading]), place: Relation, spot: &Spot<'_>, symptom: &Finding) -> bool {
    let same_tier = || spot.owner.shares(&ctx.owner(&symptom.tier));
    match place {
        Relation::Tier => same_tier(),
        Relation::Station => same_tier() && spot.station == symptom.station && *spot.at == symptom.at,
        Relation::Listener => same_tier() && spot.at.netns == symptom.at.netns && spot.at.listener == symptom.at.listener,
        Relation::Behind => same_tier() || is_behind(ctx, spot, symptom),
        Relation::Path => !spot.owner.tiers().is_empty(),
        Relation::Cores => same_tier() || share_busy_cores(ctx, stations, spot, symptom),
        Relation::Edge => is_passed(ctx, spot, symptom),
        Relation::Awaited => false,
    }
}

/// True where a tier of the cause is called from one of the symptom's, directly or not.
fn is_behind(ctx: &Context<'_>, spot: &Spot<'_>, symptom: &Finding) -> bool {
    let owner = ctx.owner(&symptom.tier);
    let behind = owner.tiers().iter().flat_map(|tier| ctx.behind(&ctx.path.tiers[tier.0]));
    behind.into_iter().any(|tier| spot.owner.has(tier.id))
}

/// True where a tier of the cause and one of the symptom run on the same cores, and those are busy.
fn share_busy_cores(ctx: &Context<'_>, stations: &[StationReading], spot: &Spot<'_>, symptom: &Finding) -> bool {
    let symptom = ctx.owner(&symptom.tier);
    let busy = |placed: &&StationReading| {
        placed.station.station == "cpu" && matches!(placed.station.state, StationState::Near | StationState::Saturated)
    };
    stations.iter().filter(busy).any(|placed| {
        let running = ctx.owner(&placed.station.tier);
        running.shares(&spot.owner) && running.shares(&symptom)
    })
}

/// True where connections of the symptom's tier to its upstreams pass the cause's network namespace: it is the one that they leave, or arrive in.
fn is_passed(ctx: &Context<'_>, spot: &Spot<'_>, symptom: &Finding) -> bool {
    let Some(tier) = ctx.tier(&symptom.tier) else { return false };
    let upstreams = tier.upstreams.iter().map(|index| &ctx.path.tiers[*index]);
    let arrives = upstreams.flat_map(|upstream| &upstream.listeners).map(|placed| placed.netns);
    let mut passed = arrives.chain([tier.netns]).map(|netns| ctx.netns_name(netns));
    !tier.upstreams.is_empty() && passed.any(|name| spot.at.netns.as_deref() == Some(name.as_str()))
}

/// Gives each finding that something leads to its role and the names of what brings it about, the root first.
fn settle(findings: &mut [Finding], links: &[Coupling]) {
    let ids: Vec<String> = findings.iter().map(|finding| finding.id.clone()).collect();
    for (at, finding) in findings.iter_mut().enumerate() {
        let whys: Vec<&str> = links.iter().filter(|link| link.symptom == at).map(|link| link.why.as_str()).collect();
        if whys.is_empty() {
            continue;
        }
        // What was judged to be a cause explains itself as one.
        if finding.role == Role::Cause {
            finding.explanation.clear();
            finding.role = Role::Symptom;
        }
        for why in whys.into_iter().filter(|why| !finding.explanation.contains(why)).collect::<Vec<_>>() {
            if !finding.explanation.is_empty() {
                finding.explanation.push(' ');
            }
            finding.explanation.push_str(why);
        }
        let mut named: Vec<String> = Vec::new();
        for cause in ancestors(links, at).into_iter().rev().map(|(cause, _)| &ids[cause]) {
            if !named.contains(cause) {
                named.push(cause.clone());
            }
        }
        finding.symptom_of = named;
    }
}
