//! Station `ephemeral-ports`: the local ports from which a tier can dial one upstream address and port. Each connection takes one for its life, and for its
//! TIME_WAIT if the dialling side closes first.

mod ceiling;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use crate::facts::Context;
use crate::facts::cores::limiting;
use crate::facts::cores::{kernel_share, utilization_of};
use crate::facts::harm::Cost;
use crate::facts::path::{PlacedListener, Tier};
use crate::facts::port_range::{self, KEY_RANGE, KEY_RESERVED};
use crate::facts::profile::{PORT_SEARCH, ProfileShare, Profiled, is_of};
use crate::facts::suffered::{answers_with, turned_away};
use crate::facts::traffic::errors::ServerErrors;
use crate::facts::{Logged, TierId};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{CouplingDef, Relation};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::location::{EdgeId, Location};
use crate::judge::station::{StationDef, StationReading};
use crate::observation::{ListenerAddress, LogEvent, NetnsId, NetnsView, SocketAddress, TimeWaits};
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["widen-port-range", "reuse-time-wait"],
    graph: &[CouplingDef::found(FindingId::TABLE_FULL, FindingId::PORTS_EXHAUSTED, Relation::Edge, "coupling-ports-table")],
    ..StationDef::new(
        StationId("ephemeral-ports"),
        StationKind::Rate,
        &[FindingId::PORTS_EXHAUSTED, FindingId::TIME_WAIT_SEARCH],
        read,
        judge,
    )
};

/// Sysctl that lets a new connection take a port over from one in TIME_WAIT.
pub(crate) const KEY_REUSE: &str = "net.ipv4.tcp_tw_reuse";
const KEY_TIMESTAMPS: &str = "net.ipv4.tcp_timestamps";
/// Share of the ports that counts as all of them: sockets are read about once a second and change in between.
const FULL_SHARE: f64 = 0.9;
/// Share from which the headroom is reported as small.
const NEAR_SHARE: f64 = 0.8;
/// Share of the ports that must have been seen taken if the server's log says that none was left but not for which upstream.
const LOGGED_SHARE: f64 = 0.5;
/// connect() failed with EADDRNOTAVAIL.
const NO_PORT: LogEvent = LogEvent::ConnectFailed(Some(99));
/// Statuses with which a gateway answers when it cannot reach its upstream.
const GATEWAY_ERRORS: &[u16] = &[500, 502, 503];
/// Busy share of the dialling tier's cores from which the search for a free port can be what keeps them busy.
const SEARCH_CPU_SHARE: f64 = 0.9;
/// Share of those cores that the dialling tier itself must use in the kernel, where the search runs. The search costs differ between kernels, and other tiers
/// share the cores. A tier that does little besides passing requests on stays below this if it does not search.
const SEARCH_KERNEL_SHARE_MIN: f64 = 0.1;

/// The ports of one edge.
pub(crate) struct Ports {
    /// Namespace of the dialling tier.
    pub(crate) netns: NetnsId,
    /// The tier that dials.
    pub(crate) from: TierId,
    /// The upstream.
    pub(crate) to: TierId,
    /// The upstream's address and port.
    pub(crate) remote: ListenerAddress,
    /// Its addresses with connections, live or in TIME_WAIT, and its port.
    dialled: BTreeSet<IpAddr>,
    port: u16,
    /// First and last port of the range.
    pub(crate) range: (u32, u32),
    /// Usable ports: the range without the reserved ones.
    pub(crate) usable: u32,
    /// Most live connections seen from one local address.
    pub(crate) live: u64,
    /// The same on average over the window.
    live_mean: f64,
    /// Mean number of all live connections of the tier to this upstream, from and to every address.
    live_all: f64,
    /// Mean number of the live ones that wait in the queues of the upstream and of the tiers behind it.
    queued: f64,
    /// Most sockets in TIME_WAIT seen from one local address on the dialling side.
    pub(crate) time_wait: u64,
    /// By how much these grew in the window.
    time_wait_grown: u64,
    /// True if a port in TIME_WAIT can be taken over for this remote address.
    pub(crate) reuses: bool,
    /// True if so many connections are made in this namespace that each port is wanted again before it may be taken over.
    outruns_reuse: bool,
    /// Failed connects for lack of a port (errno 99, EADDRNOTAVAIL) in the dialling tier's error log, if they can only be about this edge.
    pub(crate) logged: Option<Logged>,
    /// True if that log names an address to which other connections were made meanwhile. Such an address is reachable, so connect(2) can only return
    /// EADDRNOTAVAIL because all ports were taken.
    is_named: bool,
    /// True if that log was read completely: what it does not mention did not happen.
    is_told: bool,
    /// True if no other edge of the dialling tier has a larger share of its ports taken. Samples do not tell edges apart.
    is_fullest: bool,
}

impl Ports {
    /// Where they are.
    pub(crate) fn edge(&self) -> EdgeId {
        EdgeId::Tiers(self.from, self.to)
    }

    fn used(&self) -> u64 {
        // A port in TIME_WAIT that can be taken over is free, but only after a second (tcp_twsk_unique()). If the server found no port left, they were not
        // free, and neither are they if as many are wanted in that time.
        let waiting = if self.reuses && self.logged.is_none() && !self.outruns_reuse { 0 } else { self.time_wait };
        // Both are the most that were seen, at different moments.
        (self.live + waiting).min(u64::from(self.usable).max(self.live))
    }

    fn share(&self) -> f64 {
        self.used() as f64 / f64::from(self.usable.max(1))
    }

    /// True if the server itself logged that no port was left, or if all are taken and a gateway failed. Sockets are read about once a second and the ports
    /// may have been full in between, so a logged errno without an address counts from half of them on.
    fn is_exhausted(&self, ctx: &Context<'_>) -> bool {
        let is_this = self.is_named || self.share() >= LOGGED_SHARE;
        let is_logged = |logged: &Logged| is_this && turned_away(ctx, None, logged.count).hurts();
        self.logged.as_ref().is_some_and(is_logged) || (!self.is_told && self.share() >= FULL_SHARE && refused(ctx))
    }

    /// Connects that failed for lack of a port: the number that the server logged, or, if all ports were taken, the number of gateway errors. `None` if
    /// neither was read.
    fn refused(&self, ctx: &Context<'_>) -> Option<u64> {
        let answered = || ctx.obs.load.as_ref().map(|load| if self.share() >= FULL_SHARE { answers_with(load, GATEWAY_ERRORS) } else { 0 });
        self.logged.as_ref().filter(|_| self.is_exhausted(ctx)).map(|logged| logged.count).or_else(answered)
    }

    /// True if a line of nginx's error log is about a connection to this upstream (ngx_event_connect.c: "connect() to ADDRESS failed").
    fn is_in(&self, line: &str) -> bool {
        self.dialled.iter().any(|ip| line.contains(&format!("connect() to {} failed", SocketAddr::new(ip.to_canonical(), self.port))))
    }

    /// True if connects have to search. connect() prefers ports of one parity and tries all of them before the other parity (net/ipv4/inet_hashtables.c,
    /// `__inet_hash_connect`). If that many are in TIME_WAIT, each connect walks them all.
    fn searches(&self) -> bool {
        !self.reuses && self.time_wait as f64 >= FULL_SHARE * f64::from(self.usable) / 2.0
    }
}

/// The ports of every TCP edge of the path.
pub(crate) fn all(ctx: &Context<'_>) -> Vec<Ports> {
    let mut ports = Vec::new();
    for tier in &ctx.path.tiers {
        let from = ports.len();
        for upstream in tier.upstreams.iter().map(|index| &ctx.path.tiers[*index]) {
            let edge = ports.len();
            for placed in &upstream.listeners {
                if let Some(found) = of(ctx, tier, upstream, placed) {
                    ports.push(found);
                }
            }
            let live_all = ports[edge..].iter().map(|ports: &Ports| ports.live_all).sum();
            ports[edge..].iter_mut().for_each(|ports| ports.live_all = live_all);
        }
        let fullest = ports[from..].iter_mut().max_by(|a: &&mut Ports, b| a.share().total_cmp(&b.share()));
        if let Some(fullest) = fullest {
            fullest.is_fullest = true;
        }
        if let Some(logged) = ctx.logged(tier, &NO_PORT) {
            let named = ports[from..].iter().position(|ports| ports.is_in(&logged.line));
            let fullest = || ports[from..].iter().position(|ports| ports.is_fullest);
            if let Some(at) = named.or_else(fullest) {
                (ports[from + at].logged, ports[from + at].is_named) = (Some(logged), named.is_some());
            }
        }
        let is_told = is_told(ctx, tier);
        ports[from..].iter_mut().for_each(|ports| ports.is_told = is_told);
    }
    ports
}

fn of(ctx: &Context<'_>, tier: &Tier, upstream: &Tier, placed: &PlacedListener) -> Option<Ports> {
    let ListenerAddress::Tcp(bound, port) = placed.listener.address else { return None };
    let view = ctx.obs.netns.get(&tier.netns)?;
    let is_remote =
        |remote: &(IpAddr, u16)| remote.1 == port && (bound.is_unspecified() || bound.to_canonical() == remote.0.to_canonical());
    let (mut live, mut live_sum, mut live_all, mut samples) = (0, 0, 0, 0_u32);
    let mut dialled: BTreeSet<IpAddr> = BTreeSet::new();
    for (_, sockets) in ctx.in_window(&view.sockets) {
        let mut from: std::collections::BTreeMap<(IpAddr, IpAddr), u64> = std::collections::BTreeMap::new();
        for socket in sockets {
            if let SocketAddress::Tcp { local, remote } = &socket.address
                && is_remote(remote)
            {
                *from.entry((local.0, remote.0)).or_default() += 1;
                dialled.insert(remote.0);
            }
        }
        let fullest = from.values().copied().max().unwrap_or(0);
        (live, live_sum) = (live.max(fullest), live_sum + fullest);
        (live_all, samples) = (live_all + from.values().sum::<u64>(), samples + 1);
    }
    let waits = view.time_waits.values().flat_map(|waits| &waits.dialled).filter(|wait| is_remote(&wait.remote)).collect::<Vec<_>>();
    let time_wait = waits.iter().map(|wait| wait.count).max().unwrap_or(0);
    dialled.extend(waits.iter().map(|wait| wait.remote.0));
    if live == 0 && time_wait == 0 {
        return None;
    }
    let mean = |sum: u64| sum as f64 / f64::from(samples.max(1));
    let range = port_range::of(view);
    let usable = port_range::usable(view, range);
    let loopback = dialled.iter().all(IpAddr::is_loopback);
    Some(Ports {
        netns: tier.netns,
        from: tier.id,
        to: upstream.id,
        remote: placed.listener.address.clone(),
        range,
        usable,
        live,
        live_mean: mean(live_sum),
        live_all: mean(live_all),
        queued: ctx.queued_mean([upstream]) + ctx.queued_mean(ctx.behind(upstream)),
        time_wait,
        time_wait_grown: time_wait_grown(ctx, view, is_remote),
        reuses: reuses(view, loopback),
        outruns_reuse: opened_per_s(ctx, view)
            .is_some_and(|opened| opened * ceiling::reuse_delay_s(view) >= FULL_SHARE * f64::from(usable)),
        dialled,
        port,
        logged: None,
        is_named: false,
        is_told: false,
        is_fullest: false,
    })
}

/// Connections a second that a namespace opened. `None` if it was not read.
fn opened_per_s(ctx: &Context<'_>, view: &NetnsView) -> Option<f64> {
    let (first, last, elapsed_us) = ctx.inside(&view.netstat)?;
    let grown = last.get("Tcp.ActiveOpens")?.saturating_sub(*first.get("Tcp.ActiveOpens")?);
    Some(grown as f64 * 1e6 / elapsed_us as f64)
}

/// True if every error log of a tier's nginx was read completely, and there is at least one. nginx logs a connect() that failed for lack of a port as
/// critical (ngx_event_connect.c), so hardly any level hides it. Nothing is known about other servers.
fn is_told(ctx: &Context<'_>, tier: &Tier) -> bool {
    let servers = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)).filter(|server| server.nginx().is_some());
    let mut logs = servers.flat_map(|server| server.error_logs.values()).filter_map(|log| log.last()).peekable();
    logs.peek().is_some() && logs.all(|log| log.extent.is_whole())
}

/// By how much the largest group of TIME_WAIT sockets towards a remote grew in the window.
fn time_wait_grown(ctx: &Context<'_>, view: &NetnsView, is_remote: impl Fn(&(IpAddr, u16)) -> bool) -> u64 {
    let Some((first, last, _)) = ctx.around(&view.time_waits) else { return 0 };
    let most = |waits: &TimeWaits| waits.dialled.iter().filter(|wait| is_remote(&wait.remote)).map(|wait| wait.count).max().unwrap_or(0);
    most(last).saturating_sub(most(first))
}

/// tcp_tw_reuse: 1 for all, 2 (the default) only for loopback, and only with timestamps (ip-sysctl.rst).
pub(crate) fn reuses(view: &NetnsView, loopback: bool) -> bool {
    let allowed = match view.sysctl_number(KEY_REUSE) {
        Some(1) => true,
        Some(2) => loopback,
        Some(_) => false,
        // Not read, so ports in TIME_WAIT prove nothing.
        None => true,
    };
    is_stamped(view) && allowed
}

/// True unless TCP timestamps are off, without which no port in TIME_WAIT is taken over.
fn is_stamped(view: &NetnsView) -> bool {
    view.sysctl_number(KEY_TIMESTAMPS).is_none_or(|value| value != 0)
}

/// The value of tcp_tw_reuse that keeps ports in TIME_WAIT.
fn no_reuse(ctx: &Context<'_>, ports: &Ports, netns: &str) -> Option<Evidence> {
    let view = ctx.obs.netns.get(&ports.netns)?;
    let value = view.sysctl_number(KEY_REUSE)?;
    let why = match (is_stamped(view), value) {
        (_, 0) => "off",
        (true, _) => "loopback",
        (false, _) => "timestamps",
    };
    let text = Message::new("evidence-ports-no-reuse").with("value", value).with("why", why);
    Some(Evidence::new(text, format!("{KEY_REUSE} ({netns})"), Some(value as f64)))
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    all(ctx).iter().map(|ports| reading(ctx, ports)).collect()
}

fn reading(ctx: &Context<'_>, ports: &Ports) -> StationReading {
    let at = Location { edge: Some(ports.edge()), ..Location::at_listener(ports.netns, ports.remote.clone()) };
    let mut station = STATION.reading(ports.from, at, "ports");
    station.limit = Some(f64::from(ports.usable));
    station.used = Some(ports.used() as f64);
    station.utilization = Some(ports.share());
    station.refused_per_s = ports.refused(ctx).map(|count| count as f64 / ctx.seconds().max(1e-6));
    station.ceiling_rps = ceiling::of(ctx, ports);
    let args = |id: &'static str| {
        let message = Message::new(id).with("used", ports.used()).with("usable", ports.usable).with("remote", ports.remote.to_string());
        message.with("waiting", ports.time_wait)
    };
    let (state, why) = if ports.is_exhausted(ctx) {
        (StationState::Refusing, args("state-ports-refusing"))
    } else if is_searching(ctx, ports) {
        (StationState::Saturated, args("state-ports-searching"))
    } else if ports.share() >= NEAR_SHARE {
        (StationState::Near, args("state-ports-near"))
    } else {
        (StationState::Ok, args("state-ports-ok"))
    };
    station.in_state(state, why)
}

/// True if connects to an upstream failed: the gateway answered 502 or similar. Full ports alone refuse nobody yet.
fn refused(ctx: &Context<'_>) -> bool {
    match &ctx.obs.load {
        Some(load) => Cost::of_requests(answers_with(load, GATEWAY_ERRORS), load.requests).hurts(),
        None => ServerErrors::of(ctx).is_some_and(|errors| GATEWAY_ERRORS.contains(&errors.status)),
    }
}

/// The search in a profile: its share of the CPU time that limits the dialling tier.
fn sampled(ctx: &Context<'_>, ports: &Ports) -> Option<(ProfileShare, String)> {
    let profiled = Profiled::of(ctx).filter(Profiled::names_kernel)?;
    limiting(ctx).iter().find_map(|limiting| {
        let tier = limiting.tiers.iter().find(|tier| tier.id == ports.from)?;
        let share = profiled.share(limiting, |part| tier.pids.contains(&part.pid) && is_of(part, PORT_SEARCH))?;
        Some((share, profiled.hottest(tier, PORT_SEARCH).unwrap_or("inet_hash_connect").to_owned()))
    })
}

/// True if the dialling tier's cores are busy with its own work in the kernel, as far as that was read. Pages that compute keep cores busy as well.
fn is_searching(ctx: &Context<'_>, ports: &Ports) -> bool {
    if !ports.is_fullest && !ports.searches() {
        return false;
    }
    // Kernels differ in the cost and the triggers of the search. If it was sampled, the samples decide, unless they are too few to stand out from noise.
    if let Some((share, _)) = sampled(ctx, ports) {
        if Cost::of_time(share.low).hurts() {
            return ports.is_fullest;
        }
        if !Cost::of_time(share.high).hurts() {
            return false;
        }
    }
    if !ports.searches() {
        return false;
    }
    let tier = &ctx.path.tiers[ports.from.0];
    let busy = utilization_of(ctx, tier).is_some_and(|share| share >= SEARCH_CPU_SHARE);
    busy && kernel_share(ctx, tier).is_none_or(|share| share >= SEARCH_KERNEL_SHARE_MIN)
}

fn judge(ctx: &Context<'_>, read: &[StationReading]) -> Vec<Finding> {
    let pairs = all(ctx).into_iter().zip(read);
    pairs
        .filter_map(|(ports, placed)| match placed.state {
            StationState::Refusing => Some(finding(ctx, placed, &ports, FindingId::PORTS_EXHAUSTED)),
            StationState::Saturated => Some(finding(ctx, placed, &ports, FindingId::TIME_WAIT_SEARCH)),
            _ => None,
        })
        .collect()
}

fn finding(ctx: &Context<'_>, placed: &StationReading, ports: &Ports, id: FindingId) -> Finding {
    let exhausted = id == FindingId::PORTS_EXHAUSTED;
    let (title, explanation) = match exhausted {
        true => ("finding-ephemeral-ports-exhausted-title", "finding-ephemeral-ports-exhausted-explanation"),
        false if !ports.searches() => ("finding-time-wait-port-search-title", "finding-time-wait-port-search-explanation-sampled"),
        false => ("finding-time-wait-port-search-title", "finding-time-wait-port-search-explanation"),
    };
    let (tier, edge, remote) = (ctx.owner_name(&placed.owner), ctx.edge_name(&ports.edge()), ports.remote.to_string());
    let args = |id: &'static str| {
        let message = Message::new(id).with("edge", edge.as_str()).with("usable", ports.usable).with("remote", remote.as_str());
        let message = message.with("tier", tier.as_str()).with("live", ports.live).with("waiting", ports.time_wait);
        message.with("reuses", if ports.reuses { "yes" } else { "no" })
    };
    let netns = ctx.netns_name(ports.netns);
    let used =
        Message::new("evidence-ports-used").with("live", ports.live).with("waiting", ports.time_wait).with("remote", remote.as_str());
    let range = Message::new("evidence-ports-range").with("low", ports.range.0.to_string());
    let range = range.with("high", ports.range.1.to_string()).with("usable", ports.usable);
    let mut proofs = vec![
        Evidence::new(used, format!("sock_diag ({netns})"), Some(ports.used() as f64)),
        Evidence::new(range, format!("{KEY_RANGE}, {KEY_RESERVED} ({netns})"), Some(f64::from(ports.usable))),
    ];
    let logged = ports.logged.as_ref().filter(|_| exhausted);
    proofs.extend(logged.map(|logged| logged.proof()));
    if exhausted && let Some(load) = &ctx.obs.load {
        let gateway = answers_with(load, GATEWAY_ERRORS);
        let text = Message::new("evidence-ports-gateway").with("count", gateway).with("requests", load.requests);
        proofs.push(Evidence::new(text, "load", Some(gateway as f64)));
    }
    let mut is_sampled = false;
    if !exhausted {
        if !ports.reuses {
            proofs.extend(no_reuse(ctx, ports, &netns));
        }
        if let Some((share, function)) = sampled(ctx, ports) {
            is_sampled = Cost::of_time(share.low).hurts();
            let text = Message::new("evidence-ports-search").with("share", share.value * 100.0).with("function", function);
            let text = text.with("low", share.low * 100.0).with("high", share.high * 100.0).with("samples", share.of);
            proofs.push(Evidence::new(text.with("tier", tier.as_str()), "profile", Some(share.value)));
        }
    }
    Finding {
        // The errno of the failed connect is in the server's log and in no counter. Without it, 502s and full ports together are the evidence.
        confidence: if logged.is_some() || is_sampled { Confidence::High } else { Confidence::Medium },
        title: args(title),
        evidence: proofs,
        explanation: vec![args(explanation)],
        ..placed.finding(id)
    }
}
