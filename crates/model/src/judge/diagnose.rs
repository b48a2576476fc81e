//! The verdict: what the stations' readings mean together.

use std::collections::BTreeSet;

use crate::facts::Context;
use crate::facts::harm::{Cost, FAILED_SHARE_NOISE, NOISE_SHARE};
use crate::facts::path::{self, Path};
use crate::facts::suffered::WAKES_US;
use crate::facts::traffic;
use crate::fix::remedies::remedies;
use crate::judge::causes;
use crate::judge::improvements::{Faster, faster};
use crate::judge::settle::{Moment, unsettled};
use crate::judge::stations::{STATIONS, StationDef, StationReading};
use crate::ledger;
use crate::observation::load::{LoadResult, Loop};
use crate::observation::{ListenerAddress, NetnsView, Observation, Socket, SocketAddress};
use crate::output::catalogue::Catalogue;
use crate::output::message::Message;
use crate::output::readings::readings;
use crate::output::report::{
    Cause, Coupling, Diagnosis, Finding, HarmRule, LimitedBy, Mode, Remedy, Role, SourceStatus, Station, StationState, Target, TierReport,
    Verdict,
};
use crate::predict::Scene;

/// Name and version of the report's schema.
pub const SCHEMA: &str = "chokepoint/diagnosis/1";
/// How many times as long as alone an answer may take in a closed loop whose connections are what limits it. At the knee itself it takes up to
/// twice as long, by chance.
const UNLOADED_TIMES: f64 = 3.0;
/// Share of its time that the load generator may wait for a core before the times that it measures are its own.
const GENERATOR_WAITED_MAX: f64 = 0.1;
/// The rule of harm as the report states it.
fn harm_rule(words: &Catalogue) -> HarmRule {
    let text = Message::new("harm-rule").with("goodput", NOISE_SHARE * 100.0).with("requests", FAILED_SHARE_NOISE * 100.0);
    HarmRule { goodput_share: NOISE_SHARE, requests_share: FAILED_SHARE_NOISE, text: words.text(&text) }
}

/// The whole diagnosis of one observation; a pure function of it and of the language.
pub fn diagnose(obs: &Observation, words: &Catalogue) -> Diagnosis {
    by(STATIONS.iter().copied(), obs, words)
}

/// The same without one station, by its id: what is said of a fault that nobody knows yet (docs/measuring.md, "Leave one out").
pub fn diagnose_without(station: &str, obs: &Observation, words: &Catalogue) -> Diagnosis {
    by(STATIONS.iter().copied().filter(|def| def.id != station), obs, words)
}

fn by(table: impl Iterator<Item = &'static StationDef>, obs: &Observation, words: &Catalogue) -> Diagnosis {
    let discovered = path::discover(obs);
    let ctx = Context::new(obs, &discovered, words);
    let mut stations: Vec<StationReading> = Vec::new();
    let mut findings: Vec<Finding> = Vec::new();
    for def in table {
        let read = (def.read)(&ctx);
        findings.extend((def.judge)(&ctx, &read));
        stations.extend(read);
    }
    let target = target(&ctx);
    let path: Vec<Station> = stations.iter().map(|placed| placed.station.clone()).collect();
    let mut couplings = causes::link(&ctx, &stations, &mut findings);
    let Faster { wasted, told: mut improvements } = faster(&ctx, &stations, &findings);
    findings.extend(wasted);
    let places = |name: &str| ctx.owner(name).tiers().iter().map(|tier| tier.0).collect();
    let layout = causes::Layout { tiers: &target.tiers, path: &path, places: &places };
    let order = causes::arrange(&mut findings, &mut couplings, layout, words);
    prescribe(&ctx, &stations, &mut findings);
    prescribe(&ctx, &stations, &mut improvements);
    let judgement = judge(&ctx, &stations, (&findings, &couplings));
    let (ledger, untold) = ledger::of(&ctx).unzip();
    Diagnosis {
        schema: SCHEMA.to_owned(),
        target,
        verdict: judgement.verdict,
        limited_by: judgement.limited_by,
        summary: ctx.text(judgement.summary),
        mode: if obs.request.loaded { Mode::Load } else { Mode::Passive },
        load: traffic::of(&ctx),
        path,
        findings,
        couplings,
        order,
        harm: Some(harm_rule(words)),
        improvements,
        warnings: warnings(&ctx).into_iter().chain(untold.unwrap_or_default()).collect(),
        ledger,
        profile: crate::output::profile::report(&ctx),
        wire: crate::output::wire::report(&ctx),
        readings: readings(obs, &discovered),
        bisect: None,
        rounds: Vec::new(),
    }
}

/// Gives each finding its remedies, with what each should give beside all the others.
fn prescribe(ctx: &Context<'_>, stations: &[StationReading], findings: &mut [Finding]) {
    let scene = Scene { ctx, stations, findings };
    let of = |finding: &Finding| {
        // Tiers that share their cores share one station of them.
        let owner = ctx.owner(&finding.tier);
        let is_its = |tier: &str| ctx.owner(tier).covers(&owner);
        let own = |placed: &&StationReading| {
            placed.station.station == finding.station && placed.station.at == finding.at && is_its(&placed.station.tier)
        };
        stations.iter().find(own).map(|placed| remedies(&scene, finding, placed)).unwrap_or_default()
    };
    let remedies: Vec<Vec<Remedy>> = scene.findings.iter().map(of).collect();
    findings.iter_mut().zip(remedies).for_each(|(finding, remedies)| finding.remedies = remedies);
}

/// A verdict with its sentence.
struct Judgement {
    verdict: Verdict,
    limited_by: Option<LimitedBy>,
    summary: Message,
}

impl Judgement {
    fn unknown(summary: Message) -> Self {
        Self { verdict: Verdict::Unknown, limited_by: None, summary }
    }

    fn healthy(by: LimitedBy, summary: Message) -> Self {
        Self { verdict: Verdict::Healthy, limited_by: Some(by), summary }
    }
}

fn judge(ctx: &Context<'_>, stations: &[StationReading], (findings, couplings): (&[Finding], &[Coupling])) -> Judgement {
    let causes: Vec<&Finding> = findings.iter().filter(|finding| finding.role == Role::Cause).collect();
    if let Some(own) = causes.iter().find(|finding| finding.tier == "client") {
        let summary = Message::new("verdict-client-limited").with("title", own.title.as_str());
        return Judgement { verdict: Verdict::ClientLimited, limited_by: None, summary };
    }
    if let Some(first) = causes.first() {
        let summary = Message::new("verdict-choked").with("title", first.title.as_str()).with("tier", first.tier.as_str());
        return Judgement { verdict: Verdict::Choked, limited_by: None, summary };
    }
    if let Some(unknown) = not_understood(ctx) {
        return Judgement::unknown(unknown);
    }
    // What is refused for want of a core is explained by that.
    let explained = |station: &Station| {
        let own = |finding: &Finding| finding.station == station.station && finding.tier == station.tier && finding.at == station.at;
        couplings.iter().any(|link| matches!(link.cause, Cause::Station(_)) && own(&findings[link.symptom]))
    };
    let refusing = |placed: &&StationReading| placed.station.state == StationState::Refusing && !explained(&placed.station);
    if let Some(placed) = stations.iter().find(refusing) {
        let why = Message::new("verdict-unknown-refusing").with("station", placed.station.station.as_str());
        return Judgement::unknown(why.with("why", placed.station.why.as_str()));
    }
    healthy(ctx, stations)
}

/// Why no verdict about the server can be reached, where none can.
fn not_understood(ctx: &Context<'_>) -> Option<Message> {
    let unreadable = ctx.obs.netns.is_empty() || ctx.obs.netns.values().all(|view| view.listeners.first().is_none());
    if !ctx.path.ambiguous.is_empty() {
        let names: Vec<String> = ctx.path.ambiguous.iter().map(|id| ctx.netns_name(*id)).collect();
        return Some(Message::new("verdict-unknown-ambiguous").with("netns", names.join(", ")));
    }
    if let Some(load) = &ctx.obs.load {
        return wrong_answers(ctx, load).or_else(|| unexplained_failures(load)).or_else(|| unexplained_losses(ctx, load));
    }
    if unreadable {
        return Some(Message::new("verdict-unknown-unreadable"));
    }
    if ctx.path.tiers.is_empty() {
        let request = &ctx.obs.request;
        return Some(match request.unix.first() {
            Some(name) => Message::new("verdict-unknown-no-socket").with("socket", name.as_str()),
            None => Message::new("verdict-unknown-no-listener").with("port", f64::from(request.port)),
        });
    }
    let failed = traffic::server_errors(ctx).and_then(|(failed, requests)| failures(failed, requests));
    failed.or_else(|| (!saw_traffic(ctx)).then(|| Message::new("verdict-unknown-no-traffic")))
}

/// Nothing answered as expected: a wrong URL, or nobody there.
fn wrong_answers(ctx: &Context<'_>, load: &LoadResult) -> Option<Message> {
    if load.good > 0 {
        return None;
    }
    let answered: u64 = load.status.values().sum();
    if load.requests == 0 {
        return Some(Message::new("verdict-unknown-nothing-sent"));
    }
    if load.errors.connect_refused == load.requests {
        let is_unix = !ctx.obs.request.unix.is_empty();
        return Some(Message::new(if is_unix { "verdict-unknown-refused-unix" } else { "verdict-unknown-refused" }));
    }
    if answered == load.requests && load.status.len() == 1 {
        let status = load.status.keys().next().copied().unwrap_or(0);
        return Some(Message::new("verdict-unknown-status").with("status", f64::from(status)));
    }
    Some(Message::new("verdict-unknown-no-good-answer").with("requests", load.requests))
}

/// Requests failed and no station tells why.
fn unexplained_failures(load: &LoadResult) -> Option<Message> {
    failures(load.requests.saturating_sub(load.good), load.requests)
}

fn failures(failed: u64, requests: u64) -> Option<Message> {
    let share = failed as f64 / requests.max(1) as f64;
    let told = || Message::new("verdict-unknown-failures").with("share", share * 100.0).with("failed", failed);
    Cost::of_requests(failed, requests).hurts().then(told)
}

/// Much of the clients' time was lost though half of the requests were answered soon, and no station tells why: some are served while others starve, which busy
/// cores do not explain. Much is what would, served, be more than noise. What is within an objective was asked for; beyond one, nobody knows what is usual.
fn unexplained_losses(ctx: &Context<'_>, load: &LoadResult) -> Option<Message> {
    let lost = load.lost.filter(|_| ctx.obs.request.slo_p99_us.is_none())?;
    let share = load.lost_share().filter(|share| Cost::of_time(*share).hurts())?;
    (load.latency_us.p50 <= lost.patience_us / 2).then(|| {
        let told = Message::new("verdict-unknown-losses").with("share", share * 100.0).with("patience_s", lost.patience_us as f64 / 1e6);
        told.with("median_ms", load.latency_us.p50 as f64 / 1e3)
    })
}

/// True where connections came or bytes moved in the passive window.
fn saw_traffic(ctx: &Context<'_>) -> bool {
    ctx.path.tiers.first().and_then(|tier| ctx.obs.netns.get(&tier.netns)).is_some_and(|view| {
        let grew = |name: &str| ctx.netstat_growth(view, name).is_some_and(|count| count > 0);
        grew("Tcp.PassiveOpens")
            || connections_changed(ctx.path, view)
            || (grew("Tcp.InSegs") && view.sockets.values().flatten().any(|socket| accepted(ctx.path, &socket.address)))
    })
}

/// True where connections at a unix socket of the first tier came or went, or hold bytes that wait. The kernel counts nothing there.
fn connections_changed(path: &Path, view: &NetnsView) -> bool {
    let listeners = path.tiers.first().into_iter().flat_map(|tier| &tier.listeners).map(|placed| &placed.listener.address);
    let names: Vec<&String> =
        listeners.filter_map(|address| if let ListenerAddress::Unix(name) = address { Some(name) } else { None }).collect();
    let own = |socket: &&Socket| matches!(&socket.address, SocketAddress::Unix { path: Some(name), .. } if names.contains(&name));
    let mut seen = view.sockets.values().map(|sockets| sockets.iter().filter(own).collect::<Vec<_>>());
    let inodes = |sockets: &[&Socket]| sockets.iter().map(|socket| socket.inode).collect::<BTreeSet<u64>>();
    let Some(first) = seen.next() else { return false };
    let waits = |sockets: &[&Socket]| sockets.iter().any(|socket| socket.receive_queue > 0 || socket.send_queue > 0);
    waits(&first) || seen.any(|later| waits(&later) || inodes(&later) != inodes(&first))
}

/// True where a socket is an accepted connection of the first tier's TCP listeners.
fn accepted(path: &Path, address: &SocketAddress) -> bool {
    matches!(address, SocketAddress::Tcp { .. }) && path.tiers.first().is_some_and(|tier| tier.accepts(address))
}

fn healthy(ctx: &Context<'_>, stations: &[StationReading]) -> Judgement {
    let saturated =
        |id: &str| stations.iter().find(|placed| placed.station.station == id && placed.station.state == StationState::Saturated);
    let shape = ctx.obs.load.as_ref().map(|load| (load.shape, load.goodput_rps()));
    // An open loop that got all of its answers reached no limit, however busy others kept the cores meanwhile.
    if let Some(load) = ctx.obs.load.as_ref().filter(|load| !load.wants_more())
        && let Loop::Open { rate_per_s, .. } = load.shape
    {
        return Judgement::healthy(LimitedBy::Demand, Message::new("verdict-healthy-demand-open").with("rate", rate_per_s));
    }
    if shape.is_none()
        && let Some(starved) = crate::judge::watched::starved(ctx)
    {
        return Judgement::unknown(starved);
    }
    if let Some(link) = saturated("link") {
        return Judgement::healthy(LimitedBy::Link, Message::new("verdict-healthy-link").with("why", link.station.why.as_str()));
    }
    if let Some(cpu) = saturated("cpu") {
        return Judgement::healthy(LimitedBy::Cpu, Message::new("verdict-healthy-cpu").with("why", cpu.station.why.as_str()));
    }
    let Some((shape, goodput)) = shape else {
        let healthy = || Judgement::healthy(LimitedBy::Demand, Message::new("verdict-healthy-passive"));
        return crate::judge::watched::unexplained(ctx).map_or_else(healthy, Judgement::unknown);
    };
    if ctx.path.tiers.is_empty() {
        return Judgement::unknown(Message::new("verdict-unknown-remote"));
    }
    if stations.iter().any(|placed| placed.station.station == "cpu" && placed.station.state == StationState::Unknown) {
        let tiers: Vec<&path::Tier> = ctx.path.tiers.iter().collect();
        let polls = crate::facts::cores::polling(ctx, &tiers);
        let told = polls.first().map(|one| Message::new("verdict-unknown-polling").with("tier", one.tier.name.as_str()));
        return Judgement::unknown(told.unwrap_or_else(|| Message::new("verdict-unknown-cpu")));
    }
    match shape {
        Loop::Open { rate_per_s, .. } => {
            let why = Message::new("verdict-unknown-short-of-rate").with("rate", rate_per_s);
            Judgement::unknown(why.with("goodput", goodput))
        }
        Loop::Closed { connections } => closed(ctx, stations, connections),
    }
}

/// A closed loop with nothing saturated: too few connections, unless requests wait in front of a server whose cores are idle, or somewhere unseen.
fn closed(ctx: &Context<'_>, stations: &[StationReading], connections: u32) -> Judgement {
    let hurts = |mean: f64| mean > 1.0 && Cost::of_time(mean / f64::from(connections.max(1))).hurts();
    let waits = |placed: &&StationReading| placed.station.station == "accept-queue" && placed.station.waiting.is_some_and(hurts);
    if let Some(queue) = stations.iter().find(waits) {
        let listener = queue.station.at.listener.clone().unwrap_or_default();
        let why = Message::new("verdict-unknown-waiting").with("tier", queue.station.tier.as_str()).with("listener", listener);
        return Judgement::unknown(why.with("mean", queue.station.waiting.unwrap_or(0.0)));
    }
    if let Some(waits) = waits_unseen(ctx) {
        let own = crate::judge::stations::generator_waited(ctx).filter(|share| *share > GENERATOR_WAITED_MAX);
        let waits = own.map_or(waits, |share| Message::new("verdict-unknown-generator-waits").with("share", share * 100.0));
        return Judgement::unknown(waits.with("connections", connections));
    }
    Judgement::healthy(LimitedBy::Demand, Message::new("verdict-healthy-demand").with("connections", connections))
}

/// Answers that take much longer under load than alone although the cores are idle: they wait for something that no station shows (threads of
/// one process, a lock, a limit of connections). Below the knee of a closed loop an answer takes about as long as alone, and more connections
/// would give more; beyond it they would only wait longer (Denning and Buzen, The Operational Analysis of Queueing Network Models, 1978).
pub(crate) fn waits_unseen(ctx: &Context<'_>) -> Option<Message> {
    let (alone, loaded) = ctx.answer_us()?;
    let wakes = WAKES_US * ctx.path.tiers.len() as f64;
    let waits = loaded > UNLOADED_TIMES * alone && loaded > alone + wakes && crate::facts::cores::cores_are_spare(ctx);
    let ms = |us: f64| us / 1e3;
    waits.then(|| {
        let told = Message::new("verdict-unknown-waits").with("alone", ms(alone)).with("loaded", ms(loaded));
        told.with("tier", ctx.path.tiers.last().map_or("", |tier| tier.name.as_str()))
    })
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

fn warnings(ctx: &Context<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for (cores, share) in crate::facts::cores::other_tenants(ctx) {
        warnings.push(ctx.text(Message::new("warning-other-tenants").with("cores", cores).with("share", share * 100.0)));
    }
    if let Some(load) = &ctx.obs.load {
        let generator: Vec<u32> = load.threads.iter().flat_map(|thread| thread.cpus.iter().copied()).collect();
        let shares = |pid: &u32| {
            let identity = ctx.obs.processes.get(pid).and_then(|process| process.identity.first());
            identity.is_some_and(|identity| identity.cpus_allowed.iter().any(|core| generator.contains(core)))
        };
        if ctx.path.tiers.iter().flat_map(|tier| &tier.pids).any(shares) {
            warnings.push(ctx.text(Message::new("warning-shared-cores")));
        }
        if let Some(guard) = &load.stopped_by {
            warnings.push(ctx.text(Message::new("warning-guard").with("guard", guard.as_str())));
        }
        if load.interrupted {
            warnings.push(ctx.text(Message::new("warning-interrupted")));
        }
    }
    if ctx.obs.load.is_some() {
        warnings.extend(unsettled(ctx.obs, ctx.path, Moment::First).into_iter().map(|left| ctx.text(left)));
    }
    for tier in &ctx.path.tiers {
        for upstream in tier.configured.iter().map(|index| &ctx.path.tiers[*index]) {
            let told = Message::new("warning-edge-configured").with("tier", tier.name.as_str()).with("upstream", upstream.name.as_str());
            warnings.push(ctx.text(told));
        }
    }
    for hop in &ctx.path.translated {
        let name = |(ip, port)| ListenerAddress::Tcp(ip, port).to_string();
        let told = Message::new("warning-translated").with("original", name(hop.original)).with("translated", name(hop.translated));
        warnings.push(ctx.text(told.with("netns", ctx.netns_name(hop.netns))));
    }
    if ctx.path.tiers.is_empty() && ctx.path.ambiguous.is_empty() && ctx.obs.load.is_some() {
        warnings.push(ctx.text(Message::new("warning-no-listener")));
    }
    let unread = readings(ctx.obs, ctx.path).iter().filter(|reading| reading.status == SourceStatus::Failed).count();
    if unread > 0 {
        warnings.push(ctx.text(Message::new("warning-failed-readings").with("count", unread as f64)));
    }
    for what in ctx.obs.unplaced.iter().take(3) {
        warnings.push(ctx.text(Message::new("warning-unplaced").with("what", what.as_str())));
    }
    warnings
}
