//! The whole diagnosis of one observation: what the judge says in ids and messages, turned into the report with its names and sentences.

use crate::facts::harm::{FAILED_SHARE_NOISE, NOISE_SHARE};
use crate::facts::owner::Owner;
use crate::facts::path;
use crate::facts::{Context, TierId, traffic};
use crate::fix::change::core_list;
use crate::fix::remedy;
use crate::judge::finding::{Coupling, Evidence, Finding, OrderReason};
use crate::judge::location::{EdgeId, Location};
use crate::judge::station::{StationDef, StationReading};
use crate::judge::stations::STATIONS;
use crate::judge::verdict::{JudgedObservation, judge};
use crate::judge::warnings::{Unread, warnings};
use crate::ledger;
use crate::observation::Observation;
use crate::output::catalogue::Catalogue;
use crate::output::message::Message;
use crate::output::readings::readings;
use crate::output::report::{self, At, Diagnosis, HarmRule, Mode, SourceReport, SourceStatus, StationState, Target, TierReport};
use crate::output::{outcome, profile, wire};

/// Name and version of the report's schema.
pub const SCHEMA: &str = "chokepoint/diagnosis/1";

/// The whole diagnosis of one observation; a pure function of the observation and the language.
pub fn diagnose(obs: &Observation, words: &Catalogue) -> Diagnosis {
    by(STATIONS.iter().copied(), obs, words)
}

/// The same without one station, given by id: the diagnosis of a fault that no station knows (docs/measuring.md, "Leave one out").
pub fn diagnose_without(station: &str, obs: &Observation, words: &Catalogue) -> Diagnosis {
    by(STATIONS.iter().copied().filter(|def| def.id.0 != station), obs, words)
}

fn by(table: impl Iterator<Item = &'static StationDef>, obs: &Observation, words: &Catalogue) -> Diagnosis {
    let path = path::discover(obs);
    let ctx = Context::new(obs, &path, words);
    let JudgedObservation { stations, findings, couplings, order, improvements, judgement, notes } = judge(&ctx, table);
    let (ledger, ledger_warnings) = ledger::of(&ctx).unzip();
    let readings = readings(obs, &path);
    let failed = readings.iter().filter(|reading| reading.status == SourceStatus::Failed);
    let unread = Unread { sources: failed.map(told).collect(), unjudged: unjudged(&ctx, &stations) };
    let warnings = warnings(&ctx, &unread).into_iter().chain(notes).map(|warning| ctx.text(warning));
    Diagnosis {
        schema: SCHEMA.to_owned(),
        target: target(&ctx),
        verdict: judgement.verdict,
        limited_by: judgement.limited_by,
        summary: ctx.text(judgement.summary),
        undecided: judgement.undecided,
        mode: if obs.request.loaded { Mode::Load } else { Mode::Passive },
        load: traffic::of(&ctx),
        path: stations.into_iter().map(|reading| ctx.station(reading)).collect(),
        findings: findings.into_iter().map(|finding| ctx.finding(finding)).collect(),
        couplings: couplings.into_iter().map(|link| ctx.coupling(link)).collect(),
        order: order.into_iter().map(|OrderReason { finding, why }| report::CausePosition { finding, why: ctx.text(why) }).collect(),
        harm: Some(harm_rule(words)),
        improvements: improvements.into_iter().map(|finding| ctx.finding(finding)).collect(),
        warnings: warnings.chain(ledger_warnings.unwrap_or_default()).collect(),
        ledger,
        profile: profile::report(&ctx),
        wire: wire::report(&ctx),
        readings,
        bisect: None,
        not_applied: Vec::new(),
        rounds: Vec::new(),
        before: None,
        after: None,
        run: outcome::run(obs),
        fail_if: None,
    }
}

/// A source that failed, and why.
fn told(reading: &SourceReport) -> String {
    reading.why.as_ref().map_or_else(|| reading.source.clone(), |why| format!("{}: {why}", reading.source))
}

/// The stations whose state is not known, each once: "worker pool of php-fpm".
fn unjudged(ctx: &Context<'_>, stations: &[StationReading]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for reading in stations.iter().filter(|reading| reading.state == StationState::Unknown) {
        let name = outcome::station_name(reading.station.0, ctx.words);
        let one = ctx.text(Message::new("limit-station").with("station", name).with("tier", ctx.owner_name(&reading.owner)));
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

impl Context<'_> {
    /// The name of an owner in the report: several tiers are joined by "+".
    pub(crate) fn owner_name(&self, owner: &Owner) -> String {
        let name = |tier: &TierId| self.path.tiers[tier.0].name.as_str();
        match owner {
            Owner::Tiers(tiers) => tiers.iter().map(name).collect::<Vec<_>>().join("+"),
            Owner::Client => "client".to_owned(),
            Owner::Router => "router".to_owned(),
            Owner::Host => "host".to_owned(),
        }
    }

    /// The name of an edge in the report: "nginx->php-fpm".
    pub(crate) fn edge_name(&self, edge: &EdgeId) -> String {
        let name = |tier: &TierId| self.path.tiers[tier.0].name.as_str();
        match edge {
            EdgeId::Tiers(from, to) => format!("{}->{}", name(from), name(to)),
            EdgeId::Elsewhere(from, to) => format!("{}->{to}", name(from)),
            EdgeId::Client(to) => format!("client->{}", name(to)),
            EdgeId::Interface(name) => name.clone(),
        }
    }

    fn at(&self, at: Location) -> At {
        At {
            netns: at.netns.map(|netns| self.netns_name(netns)),
            pid: at.pid,
            listener: at.listener.map(|listener| listener.to_string()),
            edge: at.edge.map(|edge| self.edge_name(&edge)),
            cpu: at.cores.map(|cores| core_list(&cores)),
            cgroup: at.cgroup,
        }
    }

    fn station(&self, reading: StationReading) -> report::Station {
        report::Station {
            tier: self.owner_name(&reading.owner),
            station: reading.station.to_string(),
            at: self.at(reading.at),
            kind: reading.kind,
            limit: reading.limit,
            used: reading.used,
            waiting: reading.waiting,
            refused_per_s: reading.refused_per_s,
            // The kernel keeps one more in a queue than its limit, and a burst is above a rate: the share of a full place is 1.
            utilization: reading.utilization.map(|share| share.clamp(0.0, 1.0)),
            unit: reading.unit.to_owned(),
            ceiling_rps: reading.ceiling_rps,
            state: reading.state,
            why: self.text(reading.why),
        }
    }

    fn finding(&self, finding: Finding) -> report::Finding {
        let evidence = |Evidence { text, source, value, .. }| report::Evidence { text: self.text(text), source, value };
        let explanation: Vec<String> = finding.explanation.into_iter().map(|message| self.text(message)).collect();
        report::Finding {
            id: finding.id.to_string(),
            station: finding.station.to_string(),
            tier: self.owner_name(&finding.owner),
            at: self.at(finding.at),
            role: finding.role,
            symptom_of: finding.symptom_of.iter().map(ToString::to_string).collect(),
            confidence: finding.confidence,
            title: self.text(finding.title),
            evidence: finding.evidence.into_iter().map(evidence).collect(),
            explanation: explanation.join(" "),
            remedies: finding.remedies.into_iter().map(|remedy| self.remedy(remedy)).collect(),
        }
    }

    fn coupling(&self, Coupling { cause, symptom, why }: Coupling) -> report::Coupling {
        report::Coupling { cause, symptom, why: self.text(why) }
    }

    fn steps(&self, steps: Vec<remedy::Step>) -> Vec<report::Step> {
        let step = |remedy::Step { text, command, lines }| report::Step { text: text.map(|text| self.text(text)), command, lines };
        steps.into_iter().map(step).collect()
    }

    fn remedy(&self, remedy: remedy::Remedy) -> report::Remedy {
        report::Remedy {
            id: remedy.id.to_owned(),
            change: remedy.change,
            text: self.text(remedy.text),
            runtime: self.steps(remedy.runtime),
            persistent: self.steps(remedy.persistent),
            activation: remedy.activation,
            risk: remedy.risk.into_iter().map(|message| self.text(message)).collect::<Vec<_>>().join(" "),
            undo: self.steps(remedy.undo),
            signal: match remedy.signal {
                remedy::Signal::Refusals(station) => report::Signal::Refusals { station: station.to_string() },
                remedy::Signal::Goodput => report::Signal::Goodput,
                remedy::Signal::LatencyP99 => report::Signal::LatencyP99,
            },
            prediction: match remedy.prediction {
                remedy::Prediction::Refused { why, at_most, unsaid } => {
                    report::Prediction::Refused { refused: self.text(why), at_most, unsaid }
                }
                remedy::Prediction::Goodput { rps, next_station } => report::Prediction::Goodput {
                    goodput_rps: rps.value,
                    low: rps.low,
                    high: rps.high,
                    next_station: next_station.map(|station| station.to_string()).unwrap_or_default(),
                },
            },
            group: remedy.group.map(str::to_owned),
            starved: remedy.starved.map(|starved| report::Starved { wait_s: starved.wait_s, why: self.text(starved.why) }),
        }
    }
}

/// What a place must cost to be worth a finding.
fn harm_rule(words: &Catalogue) -> HarmRule {
    let text = Message::new("harm-rule").with("goodput", NOISE_SHARE * 100.0).with("requests", FAILED_SHARE_NOISE * 100.0);
    HarmRule { goodput_share: NOISE_SHARE, requests_share: FAILED_SHARE_NOISE, text: words.text(&text) }
}

/// What is diagnosed, with the tiers of its path.
pub(crate) fn target(ctx: &Context<'_>) -> Target {
    let request = &ctx.obs.request;
    let first = ctx.path.tiers.first();
    let name = |index: &usize| ctx.path.tiers[*index].name.clone();
    let tier = |tier: &path::Tier| TierReport {
        name: tier.name.clone(),
        listeners: tier.listeners.iter().map(|placed| placed.listener.address.to_string()).collect(),
        pids: tier.pids.clone(),
        netns: ctx.netns_name(tier.netns),
        upstreams: tier.upstreams.iter().map(name).collect(),
    };
    Target {
        url: request.shown(&request.url),
        addresses: request.addresses.clone(),
        listener: first.and_then(|tier| tier.listeners.first()).map(|placed| placed.listener.address.to_string()),
        netns: first.map(|tier| ctx.netns_name(tier.netns)),
        tiers: ctx.path.tiers.iter().map(tier).collect(),
    }
}
