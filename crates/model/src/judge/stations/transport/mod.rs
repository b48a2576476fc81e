//! Station `transport`: what TCP had to retransmit on the request's path, by sending namespace.

mod filtered;
mod harm;
mod innocent;

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::suffered::standing::Standing;
use crate::facts::suffered::{others, segments};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{CouplingDef, Relation};
use crate::judge::id::{FindingId, StationId};
use crate::judge::location::{EdgeId, Location};
use crate::judge::station::{StationDef, StationReading};
use crate::ledger::tenths;
use crate::observation::{NetnsId, NetnsView};
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["find-lossy-link", "let-packets-pass"],
    graph: &[CouplingDef::found(FindingId::PACKETS_FILTERED, FindingId::UNREACHABLE, Relation::Path, "coupling-packets-filtered")],
    ..StationDef::new(StationId("transport"), StationKind::Cliff, &[FindingId::PACKETS_FILTERED, FindingId::PACKET_LOSS], read, judge)
};

/// Lost segments that are needed before loss is reported.
const LOST_MIN: u64 = 20;

/// What one namespace of the path sent in the window.
struct Sent<'a> {
    netns: NetnsId,
    /// The tier whose connections these are; for the client's namespace, the first tier.
    tier: &'a Tier,
    /// True for the client's namespace if no tier is in it.
    is_client: bool,
    /// Segments sent, without retransmissions.
    segments: u64,
    /// Segments of the path's connections that were retransmitted because they were lost, as far as counters show it: without SYNs, which full queues lose too, and without those that
    /// the peer reports as duplicates (RFC 2883).
    lost: u64,
    /// How often a sender waited for a timeout or a probe and the data was really lost; without SYNs.
    waits: u64,
}

impl Sent<'_> {
    fn share(&self) -> f64 {
        self.lost as f64 / self.segments.max(1) as f64
    }

    fn at(&self) -> Location {
        Location { edge: self.is_client.then_some(EdgeId::Client(self.tier.id)), ..Location::in_netns(self.netns) }
    }

    fn args(&self, ctx: &Context<'_>, id: &'static str) -> Message {
        let message = Message::new(id).with("netns", ctx.netns_name(self.netns)).with("tier", self.tier.name.as_str());
        message.with("lost", self.lost).with("segments", self.segments).with("share", self.share() * 100.0).with("waits", self.waits)
    }
}

/// Every namespace that contains the client or a tier of the path, if all of its counters were read.
fn senders<'a>(ctx: &Context<'a>) -> Vec<Sent<'a>> {
    let Some(first) = ctx.path.tiers.first() else { return Vec::new() };
    let mut found: Vec<Sent<'a>> = Vec::new();
    // A namespace that contains both belongs to the tier.
    let own = ctx.path.tiers.iter().map(|tier| (tier.netns, tier, false));
    for (netns, tier, is_client) in own.chain([(ctx.obs.request.client_netns, first, true)]) {
        if found.iter().all(|sent| sent.netns != netns) {
            let view = ctx.obs.netns.get(&netns);
            found.extend(view.and_then(|view| Some(Sent { is_client, ..sent(ctx, netns, tier, view)? })));
        }
    }
    found
}

fn sent<'a>(ctx: &Context<'a>, netns: NetnsId, tier: &'a Tier, view: &'a NetnsView) -> Option<Sent<'a>> {
    let count = |name: &str| ctx.netstat_growth(view, name);
    let (segments, lost) = segments(ctx, view)?;
    let timeouts = count("TcpExt.TCPTimeouts")?.saturating_sub(count("TcpExt.TCPSynRetrans")?);
    let waits = timeouts.saturating_add(count("TcpExt.TCPLossProbes").unwrap_or(0)).min(lost);
    let own = |all: u64| (all as f64 * others::lost_share(ctx, netns, view)) as u64;
    Some(Sent { netns, tier, is_client: false, segments, lost: own(lost), waits: own(waits) })
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let senders = senders(ctx);
    // The worst namespace, and its packets that did not arrive.
    let lost = |sent: &Sent<'_>| (sent.netns, sent.lost);
    let worst = filtered::worst(ctx, &senders)
        .map(|filtered| (filtered.sent.netns, filtered.taken()))
        .or_else(|| of_size(ctx, &senders).map(|(sent, _)| lost(sent)))
        .or_else(|| culprit(ctx, &senders).map(|(worst, _)| lost(worst)));
    senders.iter().map(|sent| reading(ctx, sent, worst.filter(|(netns, _)| *netns == sent.netns).map(|(_, lost)| lost))).collect()
}

/// The reading of a namespace; `refused`: its packets that did not arrive, if that is a cause.
fn reading(ctx: &Context<'_>, sent: &Sent<'_>, refused: Option<u64>) -> StationReading {
    let mut station = STATION.reading(sent.tier, sent.at(), "segments/s");
    let seconds = ctx.seconds().max(1e-6);
    station.used = Some(sent.segments as f64 / seconds);
    station.refused_per_s = refused.map(|lost| lost as f64 / seconds);
    let state = if refused.is_some() { StationState::Refusing } else { StationState::Ok };
    let id = if sent.lost == 0 { "state-transport-none" } else { "state-transport-again" };
    station.in_state(state, sent.args(ctx, id))
}

/// The namespace with the most lost segments, and the harm; `None` if there was no harm or something else explains it.
fn culprit<'s, 'a>(ctx: &Context<'_>, senders: &'s [Sent<'a>]) -> Option<(&'s Sent<'a>, harm::Harm)> {
    let worst = senders.iter().max_by_key(|sent| sent.lost)?;
    let lost: u64 = senders.iter().map(|sent| sent.lost).sum();
    if lost < LOST_MIN || innocent::explains(ctx, senders.iter().map(|sent| sent.netns), lost) {
        return None;
    }
    Some((worst, harm::of(ctx, senders)?))
}

/// Full packets of the path that do not arrive, with what their namespace sent.
fn of_size<'s, 'a>(ctx: &Context<'_>, senders: &'s [Sent<'a>]) -> Option<(&'s Sent<'a>, Standing)> {
    let standing = Standing::of(ctx).filter(Standing::is_of_size)?;
    Some((senders.iter().find(|sent| sent.netns == standing.netns)?, standing))
}

fn judge(ctx: &Context<'_>, _: &[StationReading]) -> Vec<Finding> {
    let senders = senders(ctx);
    if let Some(filtered) = filtered::worst(ctx, &senders) {
        return vec![filtered.finding(ctx)];
    }
    if let Some((sent, standing)) = of_size(ctx, &senders) {
        return vec![too_large(ctx, sent, &standing)];
    }
    let Some((worst, harm)) = culprit(ctx, &senders) else { return Vec::new() };
    let mut proofs: Vec<Evidence> = senders.iter().filter(|sent| sent.lost > 0).map(|sent| counted(ctx, sent)).collect();
    proofs.push(harm.proof());
    proofs.extend(innocent::dropped_here(ctx, senders.iter().map(|sent| sent.netns)));
    vec![Finding {
        confidence: match harm.is_measured() {
            // A full shaper that was not read, or whose server was not, may have dropped them.
            _ if !innocent::are_shapers_excluded(ctx, senders.iter().map(|sent| sent.netns)) => Confidence::Low,
            true => Confidence::High,
            false => Confidence::Medium,
        },
        title: worst.args(ctx, "finding-packet-loss-title"),
        evidence: proofs,
        explanation: vec![worst.args(ctx, harm.explanation())],
        ..STATION.finding(FindingId::PACKET_LOSS, worst.tier, worst.at())
    }]
}

/// The finding of packets that are too large for a part of the way, which nobody tells their sender (RFC 2923, "TCP Problems with Path MTU Discovery", 2.1).
fn too_large(ctx: &Context<'_>, sent: &Sent<'_>, standing: &Standing) -> Finding {
    let args = |id: &'static str| {
        let message = sent.args(ctx, id).with("mss", standing.mss).with("opened", standing.opened as f64);
        let message = message.with("connections", tenths(standing.held.connections));
        message.with("under_way", tenths(standing.held.under_way)).with("time", 100.0 * standing.held.share())
    };
    let sockets = format!("sock_diag struct tcp_info ({})", ctx.netns_name(sent.netns));
    let stand = Evidence::new(args("evidence-loss-standing"), sockets.clone(), Some(standing.held.share()));
    let opened = Evidence::new(args("evidence-loss-standing-opened"), sockets, Some(standing.opened as f64));
    Finding {
        // A filter that drops whatever a server sends on an open connection looks the same, unless small responses arrive.
        confidence: Confidence::Medium,
        title: args("finding-packet-loss-title-size"),
        evidence: vec![stand, opened, counted(ctx, sent)],
        explanation: vec![args("finding-packet-loss-explanation-size")],
        ..STATION.finding(FindingId::PACKET_LOSS, sent.tier, sent.at())
    }
}

fn counted(ctx: &Context<'_>, sent: &Sent<'_>) -> Evidence {
    let source = format!("/proc/net/snmp Tcp.RetransSegs, /proc/net/netstat ({})", ctx.netns_name(sent.netns));
    Evidence::new(sent.args(ctx, "evidence-loss-counted"), source, Some(sent.lost as f64))
}
