//! Station `syn-queue`: handshakes that a listener has begun and whose last packet has not come. If it is full and SYN cookies are off, SYNs are dropped.
//!
//! A listener drops a SYN if as many handshakes are open as connections may wait to be accepted, and counts TCPReqQFullDrop. With cookies off it also
//! reserves the last quarter of `tcp_max_syn_backlog` for known peers, and then counts only ListenDrops (net/ipv4/tcp_input.c, `tcp_conn_request`). With
//! cookies on it drops neither: a SYN that finds the queue full is answered without an entry in the queue.

mod proofs;

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::facts::Context;
use crate::facts::path::{PlacedListener, Tier};
use crate::facts::queue::{self, KEY_COOKIES, retries};
use crate::facts::suffered;
use crate::facts::sum::mean;
use crate::judge::finding::Finding;
use crate::judge::graph::{CouplingDef, Relation, Standing};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::observation::{Listener, ListenerAddress, NetnsId, NetnsView, SocketAddress, TcpState};
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["send-syn-cookies", "raise-syn-backlog"],
    graph: &[CouplingDef::judged(FindingId::ACCEPT_QUEUE_FULL, FindingId::SYN_QUEUE_FULL, Relation::Listener, "coupling-syn-queue-accept")],
    standing,
    ..StationDef::new(StationId("syn-queue"), StationKind::Cliff, &[FindingId::SYN_QUEUE_FULL], read, judge)
};

/// Sysctl that limits the handshakes of unknown peers if cookies are off.
pub(crate) const KEY_BACKLOG: &str = "net.ipv4.tcp_max_syn_backlog";
/// Share of its limit from which a queue counts as full if it was seen only once a second.
const FULL_UTILIZATION: f64 = 0.80;
/// Share of the limit from which a queue with counted drops may have been full between two looks. While it is half full or more, the kernel sends fewer
/// SYN-ACKs and gives up handshakes early (net/ipv4/inet_connection_sock.c, `reqsk_timer_handler`). Queues with thousands of handshakes are read most rarely.
const THINNED_UTILIZATION: f64 = 0.50;

/// The open handshakes at one address: those of all listeners that share it (SO_REUSEPORT).
pub(crate) struct Queue<'a> {
    pub(crate) netns: NetnsId,
    view: &'a NetnsView,
    pub(crate) address: &'a ListenerAddress,
    /// Connections that may wait to be accepted, over all its listeners.
    pub(crate) listen_limit: u64,
    /// The handshakes that `tcp_max_syn_backlog` allows unknown peers, if that is the limit.
    pub(crate) backlog_limit: Option<u64>,
    /// Open handshakes at each look; empty if the sockets were not read.
    open: Vec<u64>,
    /// SYNs dropped because the queue was full; `None` if nothing shows it.
    refused: Option<u64>,
    /// Connections of the same listeners that found the accept queue full.
    overflows: u64,
    /// True if that queue was seen at its limit.
    is_accept_full: bool,
}

impl Queue<'_> {
    pub(crate) fn limit(&self) -> u64 {
        self.backlog_limit.unwrap_or(self.listen_limit)
    }

    fn peak(&self) -> Option<u64> {
        self.open.iter().copied().max()
    }

    fn was_full(&self) -> bool {
        self.held(FULL_UTILIZATION)
    }

    fn held(&self, utilization: f64) -> bool {
        let limit = self.limit();
        limit > 0 && self.peak().is_some_and(|peak| peak as f64 >= utilization * limit as f64)
    }

    /// True if the handshakes in this queue wait for room in the accept queue: a handshake whose connection finds that queue full stays open.
    fn waits_for_accept(&self) -> bool {
        self.overflows > 0 && (self.is_accept_full || self.overflows >= self.refused.unwrap_or(0))
    }
}

/// The queues of a tier's TCP listeners, each address once.
fn queues<'a>(ctx: &Context<'a>, tier: &'a Tier) -> Vec<Queue<'a>> {
    let mut groups: BTreeMap<(NetnsId, &ListenerAddress), Vec<&PlacedListener>> = BTreeMap::new();
    for placed in tier.listeners.iter().filter(|placed| matches!(placed.listener.address, ListenerAddress::Tcp(..))) {
        groups.entry((placed.netns, &placed.listener.address)).or_default().push(placed);
    }
    groups.into_values().filter_map(|group| queue(ctx, tier, &group)).collect()
}

fn queue<'a>(ctx: &Context<'a>, tier: &'a Tier, group: &[&'a PlacedListener]) -> Option<Queue<'a>> {
    let (first, count) = (*group.first()?, group.len() as u64);
    let view = ctx.obs.netns.get(&first.netns)?;
    let watched: Vec<(&PlacedListener, queue::Queue)> =
        group.iter().filter_map(|placed| Some((*placed, queue::watch(ctx, view, placed)?))).collect();
    let overflows = watched.iter().filter_map(|(placed, queue)| queue::refused(ctx, tier, placed, view, *queue)).sum();
    let listen_limit = watched.iter().map(|(_, queue)| u64::from(queue.limit)).sum();
    let backlog = view.sysctl_number(KEY_BACKLOG).filter(|_| view.sysctl(KEY_COOKIES) == Some("0"));
    // A SYN is dropped if less than a quarter is left.
    let backlog = backlog.map(|backlog| (backlog - backlog / 4).saturating_add(1).saturating_mul(count));
    let mut queue = Queue {
        netns: first.netns,
        view,
        address: &first.listener.address,
        listen_limit,
        backlog_limit: backlog.filter(|limit| *limit < listen_limit),
        open: looks(ctx, view, &first.listener).map(|look| look.open()).collect(),
        refused: None,
        overflows,
        is_accept_full: watched.iter().any(|(_, queue)| queue.is_full()),
    };
    let own: Option<u64> = watched.iter().map(|(_, queue)| queue.drops).sum();
    let of_others = queue::dropped_by_others(ctx, view, &group.iter().map(|placed| placed.listener.inode).collect::<Vec<_>>());
    queue.refused = refused(ctx, &queue, (own, of_others));
    Some(queue)
}

/// What one look at the sockets of a namespace showed about one listener.
struct Look {
    /// The remote ends of the open handshakes.
    remotes: Vec<IpAddr>,
    /// The share of all handshakes that was read.
    share: f64,
}

impl Look {
    fn open(&self) -> u64 {
        (self.remotes.len() as f64 / self.share) as u64
    }
}

/// Each look of the window at a listener's handshakes: from the namespace's sockets, which are read as often as is affordable, and from the request samples.
fn looks<'a>(ctx: &Context<'_>, view: &'a NetnsView, listener: &'a Listener) -> impl Iterator<Item = Look> + use<'a> {
    let others: Vec<&Listener> = view.listeners.last().into_iter().flatten().collect();
    // A listener bound to this very address takes precedence over one bound to all.
    let has = move |address: &SocketAddress| {
        let nearer = || others.iter().any(|other| other.is_bound_to_one() && other.accepts(address));
        listener.accepts(address) && (listener.is_bound_to_one() || !nearer())
    };
    let begun = move |state: TcpState, address: &SocketAddress| match address {
        SocketAddress::Tcp { remote, .. } if state.is_handshake() && has(address) => Some(remote.0.to_canonical()),
        _ => None,
    };
    let of_sample = begun.clone();
    let all = ctx.in_window(&view.sockets).map(move |(_, sockets)| Look {
        remotes: sockets.iter().filter_map(|socket| begun(socket.state, &socket.address)).collect(),
        share: 1.0,
    });
    all.chain(ctx.in_window(&view.request_samples).map(move |(_, sample)| Look {
        remotes: sample.sockets.iter().filter_map(|socket| of_sample(socket.state, &socket.address)).collect(),
        share: sample.handshake_share,
    }))
}

/// SYNs that found this queue full. The counters belong to the namespace, and a listener's own count gives no reason. If this queue was seen full, it gets
/// what both counts allow; otherwise what neither overflows of accept queues nor the drops of other listeners can explain.
fn refused(ctx: &Context<'_>, queue: &Queue<'_>, (own, of_others): (Option<u64>, u64)) -> Option<u64> {
    let counted = |name: &str| ctx.netstat_growth(queue.view, name);
    let overflows = counted("TcpExt.ListenOverflows");
    let full = if queue.backlog_limit.is_some() && queue.held(THINNED_UTILIZATION) {
        counted("TcpExt.ListenDrops")?.saturating_sub(overflows?)
    } else {
        counted("TcpExt.TCPReqQFullDrop")?
    };
    match own {
        _ if full == 0 => Some(0),
        Some(own) if queue.was_full() => Some(own.min(full)),
        Some(own) => Some(own.saturating_sub(overflows?).min(full.saturating_sub(of_others))),
        None => queue.was_full().then_some(full).filter(|_| ctx.others(queue.netns).had_none()),
    }
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let tiers = ctx.path.tiers.iter().flat_map(|tier| queues(ctx, tier).into_iter().map(move |queue| (tier, queue)));
    tiers.map(|(tier, queue)| reading(ctx, tier, &queue)).collect()
}

fn reading(ctx: &Context<'_>, tier: &Tier, queue: &Queue<'_>) -> StationReading {
    let name = queue.address.to_string();
    let at = Location::at_listener(queue.netns, queue.address.clone());
    let mut station = STATION.reading(tier, at, "handshakes");
    let limit = queue.limit();
    let peak = queue.peak();
    station.limit = Some(limit as f64);
    station.used = peak.map(|peak| peak as f64);
    station.waiting = (!queue.open.is_empty()).then(|| mean(queue.open.iter().copied()));
    station.utilization = peak.filter(|_| limit > 0).map(|peak| peak as f64 / limit as f64);
    station.refused_per_s = queue.refused.map(|count| count as f64 / ctx.seconds().max(1e-6));
    let sent = ctx.netstat_growth(queue.view, "TcpExt.TCPReqQFullDoCookies").filter(|sent| *sent > 0 && queue.was_full());
    let (state, why) = match (queue.refused, sent) {
        (Some(lost @ 1..), _) if harmed(ctx, tier, queue.netns, lost) => (StationState::Refusing, "state-syn-queue-refusing"),
        (Some(1..), _) => (StationState::Near, "state-syn-queue-harmless"),
        (_, Some(_)) => (StationState::Near, "state-syn-queue-cookies"),
        (None, _) => (StationState::Unknown, "state-syn-queue-unknown"),
        (Some(0), _) if queue.was_full() => (StationState::Near, "state-syn-queue-near"),
        (Some(0), _) if peak.is_none() => (StationState::Ok, "state-syn-queue-unseen"),
        (Some(0), _) => (StationState::Ok, "state-syn-queue-ok"),
    };
    let why = Message::new(why).with("listener", name).with("peak", peak.unwrap_or(0)).with("limit", limit);
    station.in_state(state, why.with("count", queue.refused.unwrap_or(0)).with("sent", sent.unwrap_or(0)))
}

/// True if requests suffered like requests whose SYN was dropped: at the first tier those of the load itself, further in those of the calling tier.
fn harmed(ctx: &Context<'_>, tier: &Tier, netns: NetnsId, lost: u64) -> bool {
    let seen = if ctx.path.is_first(tier) { suffered::waited_to_connect } else { suffered::lost_first_packets };
    ctx.obs.load.as_ref().map_or_else(|| suffered::dropped(ctx, netns, lost), seen).hurts()
}

fn judge(ctx: &Context<'_>, read: &[StationReading]) -> Vec<Finding> {
    let refusing = read.iter().filter(|placed| placed.state == StationState::Refusing);
    refusing.filter_map(|placed| Some(finding(ctx, placed, &queue_of(ctx, placed)?))).collect()
}

fn standing(ctx: &Context<'_>, finding: &Finding, own: Option<&StationReading>) -> Standing {
    match own.and_then(|own| queue_of(ctx, own)).filter(Queue::waits_for_accept) {
        Some(queue) => {
            let why = Message::new("finding-syn-queue-full-symptom").with("tier", ctx.owner_name(&finding.owner));
            Standing::Behind(why.with("listener", queue.address.to_string()))
        }
        None => Standing::Alone,
    }
}

/// The queue that a reading is about.
pub(crate) fn queue_of<'a>(ctx: &Context<'a>, placed: &StationReading) -> Option<Queue<'a>> {
    let tier = ctx.only_tier(&placed.owner)?;
    let is_its = |queue: &Queue<'_>| Some(queue.netns) == placed.at.netns && Some(queue.address) == placed.at.listener.as_ref();
    queues(ctx, tier).into_iter().find(is_its)
}

fn finding(ctx: &Context<'_>, placed: &StationReading, queue: &Queue<'_>) -> Finding {
    let (listener, tier) = (queue.address.to_string(), ctx.owner_name(&placed.owner));
    let args =
        |id: &'static str| Message::new(id).with("listener", listener.as_str()).with("limit", queue.limit()).with("tier", tier.as_str());
    Finding {
        confidence: if ctx.obs.load.is_some() && queue.was_full() { Confidence::High } else { Confidence::Medium },
        title: args("finding-syn-queue-full-title"),
        evidence: proofs::proofs(ctx, queue),
        explanation: vec![args("finding-syn-queue-full-explanation").with("again", retries::told(ctx, ctx.only_tier(&placed.owner)))],
        ..placed.finding(FindingId::SYN_QUEUE_FULL)
    }
}
