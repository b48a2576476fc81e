//! Packets that a packet filter takes, and that are sent again or refused: the reason is a rule, not a bad line.

use std::net::IpAddr;

use super::{STATION, Sent, harm, innocent};
use crate::facts::Context;
use crate::facts::cores::cores_are_spare;
use crate::facts::harm::Cost;
use crate::facts::path::is_local;
use crate::facts::suffered::held::Held;
use crate::facts::suffered::takers::Taker;
use crate::facts::suffered::undelivered::{Undelivered, is_kept};
use crate::facts::suffered::{SENT_AGAIN_US, lost_first_packets};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::ledger::{Unreached, unreached};
use crate::observation::{FilterRule, NetnsId};
use crate::output::message::Message;
use crate::output::report::{Confidence, LedgerPlaceKind as Place};

/// What was sent again, kept or refused on the path: at most as often as packets of it were taken.
#[derive(Debug, Clone, Copy, Default)]
struct Missed {
    /// SYNs that were sent again.
    syns: u64,
    /// Other segments that were lost and sent again.
    segments: u64,
    /// Data that could not leave its namespace, each for a fifth of a second: TCP does not count that.
    kept: u64,
    /// Connections of the load that were refused.
    refused: u64,
}

impl Missed {
    fn of(ctx: &Context<'_>, senders: &[Sent<'_>], taken: &[Undelivered]) -> Self {
        let again = |netns: &NetnsId| ctx.netstat_growth(ctx.obs.netns.get(netns)?, "TcpExt.TCPSynRetrans");
        Self {
            syns: senders.iter().filter_map(|sent| again(&sent.netns)).fold(0, u64::saturating_add),
            segments: senders.iter().map(|sent| sent.lost).fold(0, u64::saturating_add),
            kept: taken.iter().filter_map(|taken| kept(ctx, taken)).map(|held| times(ctx, held.connections)).sum(),
            refused: ctx.obs.load.as_ref().map_or(0, |load| load.errors.connect_refused),
        }
    }

    fn all(self) -> u64 {
        self.syns.saturating_add(self.segments).saturating_add(self.kept).saturating_add(self.refused)
    }
}

/// The connections of the path whose data does not leave a namespace, however little: where none of its packets are taken that may be corked data.
fn kept(ctx: &Context<'_>, taken: &Undelivered) -> Option<Held> {
    taken.sent.filter(|sent| *sent > 0)?;
    Held::of(ctx, taken.netns, |sample| is_kept(sample, 1))
}

/// How often so many connections on average can have stood for as long as TCP waits before it tries again.
fn times(ctx: &Context<'_>, connections: f64) -> u64 {
    (connections * ctx.seconds() * 1e6 / SENT_AGAIN_US as f64) as u64
}

/// Rules that are told where none counts what it takes.
const RULES_TOLD: usize = 3;

/// A namespace whose packet filter takes packets of the path.
pub(super) struct Filtered<'s, 'a> {
    pub(super) sent: &'s Sent<'a>,
    taken: Undelivered,
    /// The rules that took them or may have.
    takers: Vec<Taker<'a>>,
    /// Of all namespaces of the path, this one among them.
    everywhere: Vec<Undelivered>,
    missed: Missed,
    /// True if requests of the load were seen to suffer as taken packets make them suffer.
    is_measured: bool,
}

/// The namespace with most packets taken, if a rule took watched packets of the path alone, or if three things hold.
/// 1. What was missed on the path is at most twice what was taken: strangers, whose packets a filter is there to drop, send theirs again elsewhere.
/// 2. Nothing else on this host explains it: a full queue or table, a shaper.
/// 3. It did harm: to the load's own requests, to those that were watched, or as an upstream of this host, or one to which packets do not leave it, that answers no SYN.
pub(super) fn worst<'s, 'a>(ctx: &Context<'a>, senders: &'s [Sent<'a>]) -> Option<Filtered<'s, 'a>> {
    let of = |sent: &Sent<'_>| Undelivered::of(ctx, sent.netns, ctx.obs.netns.get(&sent.netns)?);
    let everywhere: Vec<Undelivered> = senders.iter().filter_map(of).collect();
    let taken = *everywhere.iter().max_by_key(|taken| taken.all())?;
    let sent = senders.iter().find(|sent| sent.netns == taken.netns)?;
    let missed = Missed::of(ctx, senders, &everywhere);
    let takers = ctx.obs.netns.get(&taken.netns).map(|view| Taker::all(ctx, view, &taken)).unwrap_or_default();
    if ruled_cost(ctx, &taken, &takers).hurts() {
        return Some(Filtered { sent, taken, takers, everywhere, missed, is_measured: false });
    }
    let is_enough = missed.all() > 0 && 2 * sum(&everywhere) >= missed.all();
    if !is_enough || innocent::explains(ctx, senders.iter().map(|sent| sent.netns), missed.all()) {
        return None;
    }
    let waits = harm::of(ctx, senders);
    let is_measured = load_cost(ctx).hurts() || waits.as_ref().is_some_and(harm::Harm::is_measured);
    let is_unreached = || unreached(ctx).iter().any(|of| is_kept_from(ctx, of, sent, &taken));
    let does_harm = is_measured || waits.is_some() || seen_cost(ctx, senders, missed).hurts() || is_unreached();
    does_harm.then_some(Filtered { sent, taken, takers, everywhere, missed, is_measured })
}

/// What the load lost by connections that came late, not at all, or were refused. Time that full cores had no use for is none.
fn load_cost(ctx: &Context<'_>) -> Cost {
    let Some(load) = &ctx.obs.load else { return Cost::default() };
    let missing = load.without_connection().map_or(0.0, |(missing, connections)| missing / f64::from(connections.max(1)));
    let refused = Cost::of_requests(load.errors.connect_refused, load.requests);
    let cost = lost_first_packets(load).or(refused).or(Cost::share_of_requests(missing));
    if cores_are_spare(ctx) { cost } else { Cost { time: 0.0, ..cost } }
}

/// What rules take of watched packets that ask for a port of the path and for no sender: what their clients did then is not seen on another host. A load tells by its own requests.
fn ruled_cost(ctx: &Context<'_>, taken: &Undelivered, takers: &[Taker<'_>]) -> Cost {
    let arrived = ctx.obs.netns.get(&taken.netns).and_then(|view| ctx.netstat_growth(view, "Tcp.InSegs"));
    let Some(arrived) = arrived.filter(|_| ctx.obs.load.is_none()) else { return Cost::default() };
    let ruled: u64 = takers.iter().filter(|taker| taker.is_of_path()).filter_map(|taker| taker.taken).fold(0, u64::saturating_add);
    Cost::of_requests(ruled, ruled.saturating_add(arrived))
}

/// What watched requests lose: those whose SYN is not answered stand there, each wait for lost data takes a fifth of a second at least, and data that cannot leave stands.
fn seen_cost(ctx: &Context<'_>, senders: &[Sent<'_>], missed: Missed) -> Cost {
    let Some(account) = ctx.account().filter(|_| cores_are_spare(ctx)) else { return Cost::default() };
    let under_way = account.under_way().max(f64::MIN_POSITIVE);
    // A server may try in vain to reach what no request waits for: only its clients' connections count.
    let first = ctx.path.tiers.first().filter(|_| missed.syns > 0);
    let connecting = first.map_or(0.0, |first| account.at_places(first.id.0, |place| place == Place::Connecting));
    let waits: u64 = senders.iter().map(|sent| sent.waits).sum::<u64>() + missed.kept;
    let waiting = waits as f64 * SENT_AGAIN_US as f64 / 1e6 / ctx.seconds().max(1e-6);
    Cost::of_time(((connecting + waiting) / under_way).min(1.0))
}

fn sum(taken: &[Undelivered]) -> u64 {
    taken.iter().map(|taken| taken.all()).fold(0, u64::saturating_add)
}

/// True if this namespace's filter may keep a tier from a server: one of this namespace, or of another host if as many packets did not leave as connections were tried. What arrives and is taken
/// may be anybody's.
fn is_kept_from(ctx: &Context<'_>, of: &Unreached, sent: &Sent<'_>, taken: &Undelivered) -> bool {
    let is_here = |ip: IpAddr| ctx.obs.netns.get(&sent.netns).is_some_and(|view| is_local(view, true, ip));
    let is_its = ctx.path.tiers.get(of.tier).is_some_and(|tier| tier.netns == sent.netns);
    let leaves = taken.sent.is_some_and(|sent| 2 * sent >= of.how.connections());
    is_its && of.remote.is_some_and(|(ip, _)| leaves || is_here(ip))
}

impl<'a> Filtered<'_, 'a> {
    /// Packets that were taken.
    pub(super) fn taken(&self) -> u64 {
        self.taken.all()
    }

    pub(super) fn finding(&self, ctx: &Context<'_>) -> Finding {
        let args = |id: &'static str| self.sent.args(ctx, id).with("taken", self.taken()).with("seconds", ctx.seconds());
        // Many more than were missed on the path may be others'.
        let is_path_only = sum(&self.everywhere) <= 2 * self.missed.all();
        let title = match self.rule() {
            Some(rule) => args("finding-packets-filtered-title-rule").with("rule", rule.name()),
            None => args("finding-packets-filtered-title"),
        };
        Finding {
            confidence: if self.is_measured && is_path_only { Confidence::High } else { Confidence::Medium },
            title,
            evidence: self.proofs(ctx),
            explanation: vec![args("finding-packets-filtered-explanation")],
            ..STATION.finding(FindingId::PACKETS_FILTERED, self.sent.tier, self.sent.at())
        }
    }

    /// The rule that took most of them.
    fn rule(&self) -> Option<&'a FilterRule> {
        Taker::most_of(&self.takers, self.taken())
    }

    /// The rules that took them; where none counts, those that may have.
    fn ruled(&self) -> impl Iterator<Item = Evidence> {
        let is_known = self.takers.iter().any(|taker| taker.taken.is_some());
        let told = self.takers.iter().filter(move |taker| taker.taken.is_some() || !is_known).take(RULES_TOLD);
        told.map(|taker| {
            let id = match (taker.taken, taker.is_counted) {
                (Some(_), true) => "evidence-filtered-rule",
                (Some(_), false) => "evidence-filtered-rule-rest",
                (None, _) => "evidence-filtered-rule-may",
            };
            let text = Message::new(id).with("rule", taker.rule.to_string()).with("count", taker.taken.unwrap_or(0));
            Evidence::new(text, "nf_tables", taker.taken.map(|taken| taken as f64))
        })
    }

    fn proofs(&self, ctx: &Context<'_>) -> Vec<Evidence> {
        let mut proofs: Vec<Evidence> = self.ruled().collect();
        let mut counted = |id: &'static str, count: u64, netns: &str, source: &str| {
            let text = Message::new(id).with("count", count).with("netns", netns).with("ms", SENT_AGAIN_US as f64 / 1e3);
            proofs.extend((count > 0).then(|| Evidence::new(text, source, Some(count as f64))));
        };
        for taken in &self.everywhere {
            let netns = ctx.netns_name(taken.netns);
            counted("evidence-filtered-came", taken.came, &netns, "/proc/net/snmp InReceives, InDelivers");
            counted("evidence-filtered-left", taken.sent.unwrap_or(0), &netns, "/proc/net/snmp OutRequests, OutTransmits");
        }
        counted("evidence-filtered-syns", self.missed.syns, "", "/proc/net/netstat TCPSynRetrans");
        counted("evidence-filtered-segments", self.missed.segments, "", "/proc/net/snmp RetransSegs");
        counted("evidence-filtered-kept", self.missed.kept, "", "sock_diag struct tcp_info");
        counted("evidence-filtered-refused", self.missed.refused, "", "load");
        proofs
    }
}
