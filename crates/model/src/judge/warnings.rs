//! Things to know that are no findings: what makes the measurement less certain.

use crate::facts::Context;
use crate::facts::believed;
use crate::facts::cores::{OtherTenants, named_tenants};
use crate::facts::harm::{Cost, FAILED_SHARE_NOISE};
use crate::facts::path::{PlacedListener, Tier};
use crate::facts::suffered::{self, others};
use crate::facts::traffic;
use crate::judge::settle::{Moment, unsettled};
use crate::ledger::{Account, left_out, tenths};
use crate::observation::load::LoadResult;
use crate::observation::{Listener, ListenerAddress, Socket, SocketAddress};
use crate::output::message::Message;

/// Connections seen at a unix socket from which it is in use.
const UNIX_CONNECTIONS_MIN: usize = 5;

/// Share of the time asked for that must be missing before watching counts as interrupted: readings begin and end beside it.
const CUT_SHARE_MIN: f64 = 0.05;

/// Upstreams of other sites that are named.
const ELSEWHERE_MAX: usize = 3;

/// Most sources, and most stations, that a sentence names.
const NAMED_MAX: usize = 3;

/// What could not be read, in the words of the report.
pub(crate) struct Unread {
    /// The sources, each with the reason.
    pub(crate) sources: Vec<String>,
    /// The stations whose state is not known.
    pub(crate) unjudged: Vec<String>,
}

impl Unread {
    fn warning(&self) -> Option<Message> {
        let named = |all: &[String]| all.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join("; ");
        let message = Message::new("warning-failed-readings").with("count", self.sources.len() as f64);
        let message = message.with("sources", named(&self.sources)).with("more", self.sources.len().saturating_sub(NAMED_MAX) as f64);
        let message = message.with("unjudged", self.unjudged.len() as f64).with("stations", named(&self.unjudged));
        (!self.sources.is_empty()).then_some(message)
    }
}

/// The warnings of an observation.
pub(crate) fn warnings(ctx: &Context<'_>, unread: &Unread) -> Vec<Message> {
    let mut warnings: Vec<Message> = cut_short(ctx).into_iter().collect();
    warnings.extend(other_clients(ctx));
    for OtherTenants { cores, share, names, yield_all } in named_tenants(ctx) {
        let kind = if names.is_empty() {
            "unnamed"
        } else if yield_all {
            "yield"
        } else {
            "named"
        };
        let warning = Message::new("warning-other-tenants").with("cores", cores).with("share", share * 100.0);
        warnings.push(warning.with("kind", kind).with("names", names.join(", ")));
    }
    if let Some(load) = &ctx.obs.load {
        let generator: Vec<u32> = load.threads.iter().flat_map(|thread| thread.cpus.iter().copied()).collect();
        let shares = |pid: &u32| {
            let identity = ctx.obs.processes.get(pid).and_then(|process| process.identity.first());
            identity.is_some_and(|identity| identity.cpus_allowed.iter().any(|core| generator.contains(core)))
        };
        if ctx.path.tiers.iter().flat_map(|tier| &tier.pids).any(shares) {
            warnings.extend(shared_cores(ctx));
        }
        if let Some(guard) = &load.stopped_by {
            warnings.push(Message::new("warning-guard").with("guard", guard.as_str()));
        }
        warnings.extend(resent(load));
        if load.interrupted {
            warnings.push(Message::new("warning-interrupted"));
        }
    }
    if ctx.obs.load.is_some() {
        warnings.extend(unsettled(ctx.obs, ctx.path, Moment::First));
    }
    for tier in &ctx.path.tiers {
        let configured = tier.configured.iter().map(|index| &ctx.path.tiers[*index]);
        // A request that stands there has taken the edge.
        let has_requests = |upstream: &Tier| ctx.account().is_some_and(|account| account.at_tier(upstream.id.0, false) > 0.0);
        let others = left_out(ctx, tier);
        warnings.extend(others.as_ref().map(|(others, used)| left_out_warning(tier, others, used)));
        let is_told = |upstream: &Tier| others.iter().flat_map(|(others, _)| others).any(|other| other.id == upstream.id);
        let unused = configured.filter(|upstream| !is_connected_to(ctx, upstream) && !has_requests(upstream));
        for upstream in unused.filter(|upstream| !is_told(upstream)) {
            let warning = Message::new("warning-edge-configured").with("tier", tier.name.as_str());
            warnings.push(warning.with("upstream", upstream.name.as_str()));
        }
    }
    warnings.extend(supposed(ctx));
    warnings.extend(believed::notes(ctx));
    warnings.extend(cut_off_by_others(ctx));
    warnings.extend(elsewhere(ctx));
    for hop in &ctx.path.translated {
        let name = |(ip, port)| ListenerAddress::Tcp(ip, port).to_string();
        let warning = Message::new("warning-translated").with("original", name(hop.original)).with("translated", name(hop.translated));
        warnings.push(warning.with("netns", ctx.netns_name(hop.netns)));
    }
    if ctx.path.tiers.is_empty() && ctx.path.ambiguous.is_empty() && ctx.obs.load.is_some() {
        warnings.push(Message::new("warning-no-listener"));
    }
    warnings.extend(unread.warning());
    warnings.extend(untimed(ctx));
    for what in ctx.obs.unplaced.iter().take(3) {
        warnings.push(Message::new("warning-unplaced").with("what", what.as_str()));
    }
    warnings
}

/// Requests that were sent once more, if these are a hundredth of all or more.
pub(crate) fn resent(load: &LoadResult) -> Option<Message> {
    let share = load.resent as f64 / load.requests.max(1) as f64;
    (share >= FAILED_SHARE_NOISE).then(|| Message::new("warning-resent").with("count", load.resent).with("share", 100.0 * share))
}

/// Requests under way that are not the load's.
fn other_clients(ctx: &Context<'_>) -> Option<Message> {
    let account = ctx.account()?;
    let (others, times) = account.others().filter(|(others, _)| tenths(*others) > 0.0)?;
    let told = Message::new("warning-other-clients").with("others", tenths(others)).with("all", tenths(account.under_way()));
    let told = told.with("whose", if ctx.path.calls_itself() { "own" } else { "others" });
    Some(told.with("share", 100.0 * (1.0 - 1.0 / times)))
}

/// The calls that only the user of their connections tells.
fn supposed(ctx: &Context<'_>) -> impl Iterator<Item = Message> {
    let edges = ctx.path.tiers.iter().flat_map(move |tier| tier.supposed.iter().map(move |upstream| (tier, &ctx.path.tiers[*upstream])));
    edges.map(|(tier, upstream)| {
        Message::new("warning-edge-supposed").with("tier", tier.name.as_str()).with("upstream", upstream.name.as_str())
    })
}

/// Watched connections of the server's namespace that ended without an answer, so many that it would be harm, where others had connections there as well and
/// all may be theirs.
fn cut_off_by_others(ctx: &Context<'_>) -> Option<Message> {
    let first = ctx.path.tiers.first().filter(|_| ctx.obs.load.is_none())?;
    let cut = others::cut_off(ctx, first.netns)?;
    let hurts = |count: u64| suffered::turned_away(ctx, Some(first.netns), count).hurts();
    let is_shared = hurts(cut.lasting) && !hurts(cut.own_lasting()) && !cut.is_unaccounted();
    let told = || Message::new("warning-cut-off-shared").with("count", cut.count).with("netns", ctx.netns_name(first.netns));
    is_shared.then(|| told().with("tier", first.name.as_str()))
}

/// That the load takes cores from the servers, unless hardly a thread of theirs waits for one: servers that sleep are not slowed by it.
fn shared_cores(ctx: &Context<'_>) -> Option<Message> {
    let pids = ctx.path.tiers.iter().flat_map(|tier| &tier.pids);
    let waited: Vec<f64> = pids.filter_map(|pid| ctx.clocked(*pid, |used| used.run_delay_ns)).collect();
    if waited.is_empty() {
        return Some(Message::new("warning-shared-cores-unread"));
    }
    let waiting: f64 = waited.iter().sum();
    let all = ctx.account().map_or(0.0, Account::under_way).max(waiting);
    // What is none when it is written says nothing.
    (tenths(waiting) > 0.0 && Cost::of_time(waiting / all).hurts())
        .then(|| Message::new("warning-shared-cores").with("waiting", tenths(waiting)))
}

/// That watching ended before the time that was asked for.
fn cut_short(ctx: &Context<'_>) -> Option<Message> {
    let asked_s = ctx.obs.request.watch_us.filter(|_| ctx.obs.load.is_none())? as f64 / 1e6;
    let told = || Message::new("warning-watch-cut").with("seconds", tenths(ctx.seconds())).with("asked", asked_s);
    (ctx.seconds() < (1.0 - CUT_SHARE_MIN) * asked_s).then(told)
}

/// Where requests of other sites and locations go, and whether they wait there: it is no part of the path, but somebody may look for it.
fn elsewhere(ctx: &Context<'_>) -> Option<Message> {
    let tier = ctx.path.tiers.first().filter(|_| !ctx.path.elsewhere.is_empty())?;
    let most_waiting = |placed: &PlacedListener| {
        let own = |all: &Vec<Listener>| all.iter().find(|one| one.inode == placed.listener.inode).map_or(0, |one| one.accept_queue);
        ctx.obs.netns.get(&placed.netns).into_iter().flat_map(|view| view.listeners.values()).map(own).max().unwrap_or(0)
    };
    let waiting: u32 = ctx.path.elsewhere.iter().map(most_waiting).max().unwrap_or(0);
    let mut names: Vec<String> = ctx.path.elsewhere.iter().map(|placed| placed.listener.address.to_string()).collect();
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(ELSEWHERE_MAX);
    names.truncate(ELSEWHERE_MAX);
    let id = if waiting > 0 { "warning-elsewhere-waiting" } else { "warning-elsewhere" };
    let warning = Message::new(id).with("tier", tier.name.as_str()).with("upstreams", names.join(", ")).with("more", more as f64);
    Some(warning.with("waiting", f64::from(waiting)))
}

/// The response times of watched traffic are not known where its access log has none.
fn untimed(ctx: &Context<'_>) -> Option<Message> {
    let watched = traffic::of(ctx).filter(|watched| ctx.obs.load.is_none() && watched.requests > 0 && watched.latency_us.is_none())?;
    let tier = ctx.path.tiers.first()?;
    let id = if ctx.nginx_of(tier).is_some() { "warning-no-times-nginx" } else { "warning-no-times" };
    Some(Message::new(id).with("tier", tier.name.as_str()).with("requests", watched.requests))
}

/// That a tier passes no request to servers that its configuration has beside the one that gets them.
fn left_out_warning(tier: &Tier, others: &[&Tier], used: &Tier) -> Message {
    let names: Vec<&str> = others.iter().map(|other| other.name.as_str()).collect();
    let warning = Message::new("warning-left-out").with("tier", tier.name.as_str()).with("used", used.name.as_str());
    warning.with("names", names.join(", ")).with("count", names.len() as f64)
}

/// True if connections to a tier's unix socket were seen. They are too short to tell whose they are, so the configuration says that.
fn is_connected_to(ctx: &Context<'_>, tier: &Tier) -> bool {
    let count = |placed: &PlacedListener| {
        let ListenerAddress::Unix(path) = &placed.listener.address else { return 0 };
        let sockets = ctx.obs.netns.get(&placed.netns).into_iter().flat_map(|view| view.sockets.values().flatten());
        let is_its = |socket: &&Socket| matches!(&socket.address, SocketAddress::Unix { path: Some(own), .. } if own == path);
        sockets.filter(is_its).take(UNIX_CONNECTIONS_MIN).count()
    };
    tier.listeners.iter().any(|placed| count(placed) >= UNIX_CONNECTIONS_MIN)
}
