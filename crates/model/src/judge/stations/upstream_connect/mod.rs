//! Station `upstream-connect`: the connections that a tier opens to an upstream. One per request costs the time of a handshake and CPU at both ends. Kept
//! connections are opened once.

mod race;
mod repeated;
mod unreachable;

use std::collections::BTreeMap;

use crate::facts::Context;
use crate::facts::cores::{NEAR_UTILIZATION, utilization_of};
use crate::facts::harm::Cost;
use crate::facts::path::{PlacedListener, Tier};
use crate::facts::traffic;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{CouplingDef, Relation};
use crate::judge::id::{FindingId, StationId};
use crate::judge::location::{EdgeId, Location};
use crate::judge::station::{StationDef, StationReading};
use crate::observation::load::{INITIAL_RTO_S, Loop};
use crate::observation::{ListenerAddress, NginxConfig, NginxPass, SocketAddress, TcpState};
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &[
        "move-to-unix-socket",
        "reuse-upstream-connections-short",
        "reuse-upstream-connections-medium",
        "reuse-upstream-connections-long",
        "reuse-upstream-connections",
        "move-to-unix-socket-by-hand",
        "keep-idle-longer",
        "leave-it-out",
        "bound-retries",
    ],
    graph: &[
        CouplingDef::found(FindingId::UNREACHABLE, FindingId::CHURN, Relation::Tier, "coupling-unreachable"),
        CouplingDef::found(FindingId::REPEATED, FindingId::ANSWERS_NONE, Relation::Tier, "coupling-repeated"),
    ],
    ..StationDef::new(StationId("upstream-connect"), StationKind::Rate, &FINDINGS, read, judge)
};

const FINDINGS: [FindingId; 4] = [FindingId::CHURN, FindingId::CLOSE_RACE, FindingId::UNREACHABLE, FindingId::REPEATED];

/// Connections per request from which each request counts as having its own. The counters are read up to a sampling interval apart.
const EACH_MIN: f64 = 0.9;
/// Connections per request from which most requests have their own, although some are kept.
const MANY_MIN: f64 = 0.5;
/// Samples of the sockets below which nothing is said about the time. They are read about once a second.
const SAMPLES_MIN: usize = 3;

/// The connection from one tier to one upstream, as configured.
pub(crate) struct Edge<'a> {
    /// The tier that dials.
    pub(crate) tier: &'a Tier,
    /// The tier that answers, if it is on this host.
    pub(crate) upstream: Option<&'a Tier>,
    /// The dialled address.
    pub(crate) address: &'a ListenerAddress,
    /// The passes that lead there; empty for a server whose configuration was not read.
    pub(crate) passes: Vec<&'a NginxPass>,
    /// Connections opened in the dialling namespace per request; `None` if no counter shows it (unix sockets have none).
    pub(crate) opened: Option<f64>,
    /// False if only the configuration says that requests go there.
    is_seen: bool,
}

impl Edge<'_> {
    /// True if each request has its own connection: it is configured that way, and the counters do not contradict.
    pub(crate) fn churns(&self) -> bool {
        let counted = match (self.address, self.opened) {
            (ListenerAddress::Tcp(..), opened) => opened.is_some_and(|opened| opened >= EACH_MIN),
            (ListenerAddress::Unix(_), _) => self.is_seen,
        };
        !self.is_kept() && counted
    }

    /// True if connections are reused: as configured, or, without a known configuration, as counted.
    fn is_kept(&self) -> bool {
        match self.passes.as_slice() {
            [] => self.opened.is_some_and(|opened| opened < EACH_MIN),
            passes => passes.iter().any(|pass| pass.reuses),
        }
    }

    /// True if this reading is about this edge.
    pub(crate) fn is_at(&self, placed: &StationReading) -> bool {
        placed.at == self.at() && placed.owner == self.tier.into()
    }

    fn name(&self) -> String {
        let to = self.upstream.map_or_else(|| self.address.to_string(), |upstream| upstream.name.clone());
        format!("{}->{to}", self.tier.name)
    }

    /// Where it is.
    fn at(&self) -> Location {
        let edge = match self.upstream {
            Some(upstream) => EdgeId::Tiers(self.tier.id, upstream.id),
            None => EdgeId::Elsewhere(self.tier.id, self.address.clone()),
        };
        Location { edge: Some(edge), ..Location::at_listener(self.tier.netns, self.address.clone()) }
    }

    /// A message with the arguments of the sentences.
    pub(crate) fn args(&self, id: &'static str) -> Message {
        let message = Message::new(id).with("tier", self.tier.name.as_str()).with("remote", self.address.to_string());
        message.with("edge", self.name()).with("opened", self.opened.unwrap_or(0.0))
    }

    /// The evidence that nothing is reused.
    pub(crate) fn proofs(&self, ctx: &Context<'_>) -> Vec<Evidence> {
        let configured = |pass: &&NginxPass| {
            let text = self.args("evidence-churn-configured").with("kind", pass.kind.as_str());
            Evidence::new(text, pass.origin.to_string(), None)
        };
        let mut proofs: Vec<Evidence> = self.passes.iter().map(configured).collect();
        if let (ListenerAddress::Tcp(..), Some(opened)) = (self.address, self.opened) {
            let source = format!("/proc/net/snmp Tcp.ActiveOpens ({})", ctx.netns_name(self.tier.netns));
            proofs.push(Evidence::new(self.args("evidence-churn-opened"), source, Some(opened)));
        }
        proofs
    }

    /// The finding, used if it has consequences.
    pub(crate) fn finding(&self, proofs: Vec<Evidence>, explanation: &'static str) -> Finding {
        Finding {
            // For a unix socket only the configuration shows it.
            confidence: if self.opened.is_some() { Confidence::High } else { Confidence::Medium },
            title: self.args("finding-upstream-connection-churn-title"),
            evidence: proofs,
            explanation: vec![self.args(explanation)],
            ..STATION.finding(FindingId::CHURN, self.tier, self.at())
        }
    }
}

/// Every edge of the path that a known configuration shows and that can reuse its connections. For other servers, the edge that a counter shows.
pub(crate) fn edges<'a>(ctx: &Context<'a>) -> Vec<Edge<'a>> {
    let mut found = Vec::new();
    for (index, tier) in ctx.path.tiers.iter().enumerate() {
        let mut known = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)?.nginx()).peekable();
        if known.peek().is_none() {
            found.extend(counted(ctx, tier));
        }
        for nginx in known {
            found.extend(edges_of(ctx, index, tier, nginx));
        }
    }
    found
}

/// The edge of an unknown server, if only this server opens TCP connections in its namespace, and only to one other server. Then the connections that the
/// namespace counts are the edge's. `None` if requests failed, because they may never have reached the upstream.
fn counted<'a>(ctx: &Context<'a>, tier: &'a Tier) -> Option<Edge<'a>> {
    // Of watched traffic it is not known how many connections the clients opened.
    ctx.failed_share().filter(|share| ctx.obs.load.is_some() && !Cost::share_of_requests(*share).hurts())?;
    Some(()).filter(|()| ctx.others(tier.netns).made_none())?;
    let here = || ctx.path.tiers.iter().filter(|other| other.netns == tier.netns);
    let dialled = here().flat_map(|dialling| dialling.upstreams.iter().map(|upstream| &ctx.path.tiers[*upstream]));
    let is_tcp = |placed: &&PlacedListener| matches!(placed.listener.address, ListenerAddress::Tcp(..));
    let mut ends = dialled.filter_map(|upstream| Some((upstream, upstream.listeners.iter().find(is_tcp)?)));
    let (upstream, placed) = ends.next().filter(|_| ends.next().is_none())?;
    let opened = opened(ctx, tier).filter(|_| tier.upstreams.iter().any(|index| ctx.path.tiers[*index].id == upstream.id))?;
    let address = &placed.listener.address;
    Some(Edge { tier, upstream: Some(upstream), address, passes: Vec::new(), opened: Some(opened), is_seen: true })
}

fn edges_of<'a>(ctx: &Context<'a>, index: usize, tier: &'a Tier, nginx: &'a NginxConfig) -> Vec<Edge<'a>> {
    let mut passes: BTreeMap<&ListenerAddress, Vec<&NginxPass>> = BTreeMap::new();
    for pass in nginx.passes.iter().filter(|pass| ["fastcgi", "proxy"].contains(&pass.kind.as_str())) {
        for address in &pass.servers {
            passes.entry(address).or_default().push(pass);
        }
    }
    let opened = opened(ctx, tier);
    let mut edges: Vec<Edge<'a>> = Vec::new();
    for (address, passes) in passes {
        let upstream = answering(ctx, index, tier, address);
        let is_dialled =
            upstream.is_some_and(|upstream| !tier.configured.contains(&upstream)) || dialled(ctx, tier, address).next().is_some();
        // An upstream on another host counts if connections to it were seen. One on this host is either on the path or not.
        if upstream.is_none() && !is_dialled {
            continue;
        }
        let upstream = upstream.map(|upstream| &ctx.path.tiers[upstream]);
        // Two addresses of one listener ("localhost") are one edge.
        if let Some(upstream) = upstream
            && edges.iter().any(|edge| edge.upstream == Some(upstream) && edge.passes == passes)
        {
            continue;
        }
        edges.push(Edge { tier, upstream, address, passes, opened, is_seen: is_dialled });
    }
    edges
}

/// The tier of the path that answers at an address, by index.
fn answering(ctx: &Context<'_>, index: usize, tier: &Tier, address: &ListenerAddress) -> Option<usize> {
    let answers = |upstream: &&usize| ctx.path.tiers[**upstream].is_named(ctx.obs, tier.netns, address);
    tier.upstreams.iter().filter(|upstream| **upstream != index).find(answers).copied()
}

/// The sockets of a tier's namespace that are connected to an address, sample by sample.
fn dialled<'c, 'a>(
    ctx: &'c Context<'a>,
    tier: &Tier,
    address: &'c ListenerAddress,
) -> impl Iterator<Item = &'c crate::observation::Socket> + use<'c, 'a> {
    let view = ctx.obs.netns.get(&tier.netns);
    let sockets = view.into_iter().flat_map(|view| ctx.in_window(&view.sockets)).flat_map(|(_, sockets)| sockets);
    sockets.filter(move |socket| match (&socket.address, address) {
        (SocketAddress::Tcp { remote, .. }, ListenerAddress::Tcp(ip, port)) => {
            remote.1 == *port && remote.0.to_canonical() == ip.to_canonical()
        }
        _ => false,
    })
}

/// Connections opened in a tier's namespace per request. Those of a generator in the same namespace are not the tier's. Where traffic is watched, clients may be
/// in the same namespace, so the number is the most that the tier can have opened.
fn opened(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let all = ctx.netstat_growth(ctx.obs.netns.get(&tier.netns)?, "Tcp.ActiveOpens")? as f64;
    let Some(load) = &ctx.obs.load else {
        let requests = traffic::of(ctx).map(|traffic| traffic.requests as f64);
        let requests = requests.or_else(|| Some(ctx.account()?.rate_rps()? * ctx.seconds()));
        return requests.filter(|requests| *requests > 0.0).map(|requests| all / requests);
    };
    let load = Some(load).filter(|load| load.requests > 0)?;
    let own = if ctx.obs.request.client_netns == tier.netns { load.connections as f64 } else { 0.0 };
    Some((all - own).max(0.0) / load.requests as f64)
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let unreached = unreachable::readings(ctx);
    let is_told = |reading: &StationReading| unreached.iter().any(|told| told.is_same(reading));
    let mut readings: Vec<StationReading> = edges(ctx).iter().map(|edge| reading(ctx, edge)).filter(|reading| !is_told(reading)).collect();
    readings.extend(unreached);
    readings.extend(repeated::readings(ctx));
    readings
}

fn reading(ctx: &Context<'_>, edge: &Edge<'_>) -> StationReading {
    let mut station = STATION.reading(edge.tier, edge.at(), "connects/s");
    let is_tcp = matches!(edge.address, ListenerAddress::Tcp(..));
    let opened = edge.opened.filter(|_| is_tcp);
    station.used = opened.and_then(|opened| Some(opened * traffic::of(ctx)?.throughput_rps));
    if let Some(race) = race::of(ctx, edge) {
        station.refused_per_s = Some(race.met as f64 / ctx.seconds().max(1e-6));
        return station.in_state(StationState::Refusing, race::state(edge, &race));
    }
    let why = match (!edge.is_kept(), opened) {
        (true, Some(_)) => "state-upstream-connect-each",
        (true, None) => "state-upstream-connect-each-configured",
        (false, Some(_)) => "state-upstream-connect-kept",
        (false, None) => "state-upstream-connect-kept-configured",
    };
    station.in_state(StationState::Ok, edge.args(why))
}

/// Churn is a cause only if it holds the server back whatever its cores do: with a distant upstream, whose connects take a large part of a closed loop's
/// response time.
fn judge(ctx: &Context<'_>, _: &[StationReading]) -> Vec<Finding> {
    let far = edges(ctx).into_iter().filter_map(|edge| Some((time_share(ctx, &edge)?, edge)));
    let far = far.filter(|(share, edge)| Cost::of_time(*share).hurts() && edge.churns() && is_idle(ctx, edge.tier));
    far.map(|(share, edge)| {
        let mut proofs = edge.proofs(ctx);
        let text = edge.args("evidence-churn-time").with("share", share * 100.0);
        proofs.push(Evidence::new(text, format!("sock_diag SYN-SENT ({})", ctx.netns_name(edge.tier.netns)), Some(share)));
        edge.finding(proofs, "finding-upstream-connection-churn-explanation-far")
    })
    .chain(race::findings(ctx))
    .chain(unreachable::findings(ctx))
    .chain(repeated::findings(ctx))
    .collect()
}

/// Tiers that keep fewer connections than they use at once, so that they open and close one for most requests. What that costs is spread over the program and the kernel at both ends, where no
/// profile tells it from other work.
pub(crate) fn notes(ctx: &Context<'_>, findings: &[Finding]) -> Vec<Message> {
    let is_told = |edge: &Edge<'_>| findings.iter().any(|finding| finding.id == FindingId::CHURN && finding.at == edge.at());
    let opens = |edge: &Edge<'_>| edge.is_kept() && edge.opened.is_some_and(|opened| opened >= MANY_MIN);
    // Of watched traffic it is not known how many connections the clients opened.
    let edges = if ctx.obs.load.is_some() { edges(ctx) } else { Vec::new() };
    let many = edges.into_iter().filter(|edge| opens(edge) && !is_told(edge));
    many.map(|edge| edge.args("warning-upstream-opens")).chain(repeated::notes(ctx)).collect()
}

fn is_idle(ctx: &Context<'_>, tier: &Tier) -> bool {
    utilization_of(ctx, tier).is_some_and(|share| share < NEAR_UTILIZATION)
}

/// Share of the response time that a request waits for its connection, by Little's law: the mean number in SYN-SENT over all requests under way. `None` if
/// lost SYNs are harm, because the wait then is for the next SYN. The wait of the few that are always lost is subtracted.
fn time_share(ctx: &Context<'_>, edge: &Edge<'_>) -> Option<f64> {
    let load = ctx.obs.load.as_ref().filter(|_| ctx.can_divide_by_good())?;
    let Loop::Closed { connections } = load.shape else { return None };
    let view = ctx.obs.netns.get(&edge.tier.netns)?;
    let samples = ctx.in_window(&view.sockets).count();
    let retried = ctx.netstat_growth(view, "TcpExt.TCPSynRetrans")? as f64;
    let opened = ctx.netstat_growth(view, "Tcp.ActiveOpens")? as f64;
    // A retransmitted SYN waited at least for the first retransmission timeout.
    let lost = retried * INITIAL_RTO_S / ctx.seconds().max(1e-6);
    let lost = Cost { requests: retried / opened.max(1.0), time: lost / f64::from(connections.max(1)) };
    if samples < SAMPLES_MIN || lost.hurts() {
        return None;
    }
    let connecting = dialled(ctx, edge.tier, edge.address).filter(|socket| socket.state == TcpState::SynSent).count();
    Some((connecting as f64 / samples as f64 / f64::from(connections.max(1)) - lost.time).max(0.0))
}
