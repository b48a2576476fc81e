//! Shapers on the interfaces that the path's connections leave through. The interface through which the answers leave the first tier belongs to [`egress`]: its
//! shaper is told here as well once it is full, because its rate is a limit that somebody set, unlike that of the wire.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::egress::{NEAR_UTILIZATION, egress};
use crate::facts::harm::Cost;
use crate::facts::path::{Tier, is_local};
use crate::facts::sum::mean;
use crate::facts::{Context, TierId};
use crate::ledger::path_end;
use crate::observation::{Link, ListenerAddress, NetnsId, NetnsView, Qdisc, SocketAddress, TcpSample};

/// Kinds of queueing discipline whose whole queue waits for the rate. The queue of netem waits for its delay as well, so its length says nothing about its rate.
const KINDS: &[&str] = &["tbf", "htb", "cake"];
/// Share of its rate from which a link or its shaper counts as full. Goodput read from a socket buffer runs ahead of the wire by more than that in short windows (8 to
/// 29 % were measured), and framing takes the rest. A token bucket passes its rate as long as a packet waits, to the size of its bucket
/// (tbf_dequeue in net/sched/sch_tbf.c), so less than that means that it had nothing to send for a twentieth of the time.
pub(crate) const FULL_UTILIZATION: f64 = 0.95;
/// Share of the looks that must find a packet waiting for the queue to stand. Looks are a second or more apart, and a queue of a burst is gone before the next one.
const STANDING_SHARE: f64 = 0.5;
/// Looks at a queue below which nothing is said about it. They are made about once a second.
const LOOKS_MIN: usize = 3;
/// Bytes of a full packet on Ethernet.
const PACKET_BYTES: u64 = 1514;
/// Most classes from a class of htb to its root: TC_HTB_MAXDEPTH (linux/pkt_sched.h).
const DEPTH_MAX: usize = 8;

/// The fullest shaper of one interface.
pub(crate) struct Shaper<'a> {
    /// The namespace of the interface.
    pub(crate) netns: NetnsId,
    /// The interface.
    pub(crate) link: &'a Link,
    /// The qdisc, or the class of htb, as last read.
    pub(crate) qdisc: &'a Qdisc,
    /// True for a class of htb.
    pub(crate) is_class: bool,
    /// The tiers whose connections leave here; empty if they are the client's.
    pub(crate) tiers: Vec<TierId>,
    /// Its limit, bits a second.
    pub(crate) rate_bits_per_s: f64,
    /// What it did in the window. `None` if it was not read twice, or was replaced meanwhile.
    pub(crate) passed: Option<Passed>,
}

/// What a shaper did in the window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed {
    /// Bits passed a second.
    pub(crate) bits_per_s: f64,
    /// Bytes passed in the whole window.
    pub(crate) bytes: u64,
    /// Packets dropped.
    pub(crate) drops: u64,
    /// Times that sending was deferred because the rate was used up.
    pub(crate) overlimits: u64,
    /// Seconds of these counts.
    pub(crate) seconds: f64,
    /// Looks at the queue in the window.
    pub(crate) looks: usize,
    /// Looks that found a packet waiting.
    pub(crate) looks_waiting: usize,
    /// Mean number of packets waiting.
    pub(crate) packets_waiting: f64,
    /// Mean number of bytes waiting.
    pub(crate) bytes_waiting: f64,
}

impl Passed {
    /// True if the queue stands.
    pub(crate) fn stands(&self) -> bool {
        self.looks >= LOOKS_MIN && self.looks_waiting as f64 >= STANDING_SHARE * self.looks as f64
    }

    /// True if each look found a packet waiting.
    fn is_never_empty(&self) -> bool {
        self.looks >= LOOKS_MIN && self.looks_waiting == self.looks
    }

    /// True if it dropped so many packets that requests suffer: packets are at most full ones.
    fn drops_many(&self) -> bool {
        let sent = (self.bits_per_s * self.seconds / 8.0) as u64 / PACKET_BYTES;
        Cost::of_requests(self.drops, sent.saturating_add(self.drops)).hurts()
    }
}

impl Shaper<'_> {
    /// True if it holds packets back or drops them because its rate is used up. All counts are growth in the window: what it dropped or held earlier is no
    /// matter. What it passed is no measure alone: bursts, and the edges of the window, leave a part of its rate unused.
    pub(crate) fn is_full(&self) -> bool {
        let Some(passed) = self.passed.filter(|passed| passed.overlimits > 0) else { return false };
        let share = self.utilization().unwrap_or(0.0);
        let at_rate = share >= FULL_UTILIZATION && (passed.stands() || passed.drops > 0);
        at_rate || passed.is_never_empty() || (share >= NEAR_UTILIZATION && passed.drops_many())
    }

    /// Share of its rate that it passed.
    pub(crate) fn utilization(&self) -> Option<f64> {
        Some(self.passed?.bits_per_s / self.rate_bits_per_s)
    }

    /// Mean number of the path's connections that leave here and have sent, or want to send, what the other end has not acknowledged.
    pub(crate) fn sending_mean(&self, ctx: &Context<'_>) -> f64 {
        let Some(view) = ctx.obs.netns.get(&self.netns) else { return 0.0 };
        let addresses = view.addresses.last().map_or(&[][..], Vec::as_slice);
        let is_here = |ip: IpAddr| addresses.iter().any(|own| own.link == self.link.index && own.ip.to_canonical() == ip.to_canonical());
        let is_held = |sample: &&TcpSample| {
            let ends = SocketAddress::Tcp { local: sample.local, remote: sample.remote };
            sample.send_queue > 0 && is_here(sample.local.0) && path_end(ctx, self.netns, &ends).is_some()
        };
        mean(ctx.in_window(&view.tcp_samples).map(|(_, samples)| samples.iter().filter(is_held).count() as u64))
    }

    /// Mean time that a byte waits in the queue, microseconds: bytes waiting over the rate at which they leave (Little, 1961).
    pub(crate) fn wait_us(&self) -> f64 {
        self.passed.map_or(0.0, |passed| passed.bytes_waiting * 8.0 / self.rate_bits_per_s * 1e6)
    }
}

/// The shapers of the path by namespace and interface, the fullest of each interface.
pub(crate) fn shapers<'a>(ctx: &Context<'a>) -> Vec<Shaper<'a>> {
    let mut found = Vec::new();
    let told = egress(ctx).map(|(tier, flow)| (tier.netns, flow.link.index));
    for (netns, view) in ctx.netns_on_path() {
        // Where it is not known which interface the answers leave through, it may be any of these.
        let is_first = ctx.path.tiers.first().is_some_and(|first| first.netns == netns);
        if is_first && told.is_none() {
            continue;
        }
        let (Some(links), Some(qdiscs)) = (view.links.last(), view.qdiscs.last()) else { continue };
        if !qdiscs.iter().any(|qdisc| KINDS.contains(&qdisc.kind.as_str()) && qdisc.rate_bits_per_s.is_some()) {
            continue;
        }
        for (index, tiers) in carrying(ctx, netns, view) {
            let link = links.iter().find(|link| link.index == index && told != Some((netns, index)));
            let fullest = link.and_then(|link| fullest(ctx, (netns, view), link, qdiscs));
            found.extend(fullest.map(|shaper| Shaper { tiers: tiers.into_iter().collect(), ..shaper }));
        }
    }
    found.extend(of_answers(ctx).filter(Shaper::is_full));
    found
}

/// The fullest shaper of the interface through which the answers leave.
pub(crate) fn of_answers<'a>(ctx: &Context<'a>) -> Option<Shaper<'a>> {
    let (tier, flow) = egress(ctx)?;
    let view = ctx.obs.netns.get(&tier.netns)?;
    let fullest = fullest(ctx, (tier.netns, view), flow.link, view.qdiscs.last()?)?;
    Some(Shaper { tiers: vec![tier.id], ..fullest })
}

fn fullest<'a>(ctx: &Context<'_>, at: (NetnsId, &'a NetnsView), link: &'a Link, qdiscs: &'a [Qdisc]) -> Option<Shaper<'a>> {
    // Of two that are equally full the last one counts.
    on(ctx, at, link, qdiscs).into_iter().max_by(|a, b| a.utilization().unwrap_or(-1.0).total_cmp(&b.utilization().unwrap_or(-1.0)))
}

/// Every shaper on one interface: qdiscs with a rate, and each class of htb in place of its qdisc.
fn on<'a>(ctx: &Context<'_>, (netns, view): (NetnsId, &'a NetnsView), link: &'a Link, qdiscs: &'a [Qdisc]) -> Vec<Shaper<'a>> {
    let own = qdiscs.iter().filter(|qdisc| qdisc.link == link.index && KINDS.contains(&qdisc.kind.as_str()));
    let parts = own.flat_map(|qdisc| {
        let itself = qdisc.classes.is_empty().then_some((qdisc, qdisc));
        itself.into_iter().chain(qdisc.classes.iter().map(move |class| (qdisc, class)))
    });
    let shaper = |(owner, part): (&'a Qdisc, &'a Qdisc)| {
        let rate_bits_per_s = part.rate_bits_per_s.filter(|rate| *rate > 0)? as f64;
        let is_class = !std::ptr::eq(owner, part);
        let passed = passed(ctx, view, (owner, is_class.then_some(part)));
        Some(Shaper { netns, link, qdisc: part, is_class, tiers: Vec::new(), rate_bits_per_s, passed })
    };
    parts.filter_map(shaper).collect()
}

/// Counters of a qdisc or of a class.
#[derive(Default, Clone, Copy)]
struct Counts {
    bytes: u64,
    drops: u64,
    overlimits: u64,
    packets_waiting: u64,
    bytes_waiting: u64,
}

/// The counters of a part in one reading. A class of htb counts its own bytes and overlimits, but queue and drops are counted at the classes without children
/// alone (htb_dump_class_stats in net/sched/sch_htb.c), so those of all classes below it are added. Kernels before 4.20 count overlimits at the qdisc alone.
fn counts(qdiscs: &[Qdisc], (owner, class): (&Qdisc, Option<&Qdisc>)) -> Option<Counts> {
    let same = |a: &Qdisc, b: &Qdisc| (a.link, a.handle, a.parent, &a.kind) == (b.link, b.handle, b.parent, &b.kind);
    let now = qdiscs.iter().find(|other| same(other, owner))?;
    let Some(class) = class else {
        return Some(Counts {
            bytes: now.bytes,
            drops: now.drops,
            overlimits: now.overlimits,
            packets_waiting: u64::from(now.queue_length),
            bytes_waiting: u64::from(now.backlog_bytes),
        });
    };
    let itself = now.classes.iter().find(|other| same(other, class))?;
    let mut sum = Counts { bytes: itself.bytes, overlimits: itself.overlimits.max(now.overlimits), ..Counts::default() };
    for below in now.classes.iter().filter(|other| is_below(&now.classes, other, class.handle)) {
        sum.drops += below.drops;
        sum.packets_waiting += u64::from(below.queue_length);
        sum.bytes_waiting += u64::from(below.backlog_bytes);
    }
    Some(sum)
}

/// True if a class is the one with this handle, or below it.
fn is_below(classes: &[Qdisc], class: &Qdisc, handle: u32) -> bool {
    let mut at = Some(class);
    for _ in 0..DEPTH_MAX {
        let Some(here) = at else { return false };
        if here.handle == handle {
            return true;
        }
        at = classes.iter().find(|other| other.handle == here.parent);
    }
    false
}

/// The rate is that between the first and the last reading inside the window: the seconds beside it have no load and would dilute it.
fn passed(ctx: &Context<'_>, view: &NetnsView, part: (&Qdisc, Option<&Qdisc>)) -> Option<Passed> {
    let (first, last, elapsed_us) = ctx.inside(&view.qdiscs)?;
    let (before, after) = (counts(first, part)?, counts(last, part)?);
    let seconds = elapsed_us as f64 / 1e6;
    let bytes = after.bytes.checked_sub(before.bytes)?;
    let whole = ctx.around(&view.qdiscs).and_then(|(first, last, _)| counts(last, part)?.bytes.checked_sub(counts(first, part)?.bytes));
    let looks: Vec<Counts> = ctx.in_window(&view.qdiscs).filter_map(|(_, qdiscs)| counts(qdiscs, part)).collect();
    Some(Passed {
        bits_per_s: bytes as f64 * 8.0 / seconds,
        bytes: whole.unwrap_or(bytes),
        drops: after.drops.saturating_sub(before.drops),
        overlimits: after.overlimits.saturating_sub(before.overlimits),
        seconds,
        looks: looks.len(),
        looks_waiting: looks.iter().filter(|look| look.packets_waiting > 0).count(),
        packets_waiting: mean(looks.iter().map(|look| look.packets_waiting)),
        bytes_waiting: mean(looks.iter().map(|look| look.bytes_waiting)),
    })
}

/// The interfaces of a namespace that connections of the path leave through, with the tiers whose connections these are. A connection leaves through the
/// interface with its local address, or through the loopback device if the other end is in the same namespace.
fn carrying(ctx: &Context<'_>, netns: NetnsId, view: &NetnsView) -> BTreeMap<u32, BTreeSet<TierId>> {
    let mut found: BTreeMap<u32, BTreeSet<TierId>> = BTreeMap::new();
    let addresses = view.addresses.last().map_or(&[][..], Vec::as_slice);
    let loopback = view.links.last().and_then(|links| links.iter().find(|link| link.name == "lo")).map(|link| link.index);
    let here: Vec<(&Tier, BTreeSet<u64>)> =
        ctx.path.tiers.iter().filter(|tier| listens_in(tier, netns)).map(|tier| (tier, held(ctx, tier))).collect();
    let mut note = |local: IpAddr, remote: IpAddr, tier: Option<TierId>| {
        let own = addresses.iter().find(|address| address.ip.to_canonical() == local.to_canonical()).map(|address| address.link);
        let link = if is_local(view, true, remote.to_canonical()) { loopback } else { own };
        if let Some(link) = link {
            found.entry(link).or_default().extend(tier);
        }
    };
    let request = &ctx.obs.request;
    let is_client = netns == request.client_netns;
    let asks = |remote: &(IpAddr, u16)| {
        is_client && remote.1 == request.port && request.addresses.iter().any(|ip| ip.to_canonical() == remote.0.to_canonical())
    };
    for socket in view.sockets.values().flatten() {
        let SocketAddress::Tcp { local, remote } = &socket.address else { continue };
        for (tier, held) in &here {
            let holds = socket.inode != 0 && held.contains(&socket.inode);
            if holds || tier.accepts(&socket.address) || calls(ctx, tier, *remote) {
                note(local.0, remote.0, Some(tier.id));
            }
        }
        if asks(remote) {
            note(local.0, remote.0, None);
        }
    }
    for waits in view.time_waits.values().flat_map(|waits| &waits.dialled) {
        for (tier, _) in here.iter().filter(|(tier, _)| calls(ctx, tier, waits.remote)) {
            note(waits.local, waits.remote.0, Some(tier.id));
        }
        if asks(&waits.remote) {
            note(waits.local, waits.remote.0, None);
        }
    }
    found
}

fn listens_in(tier: &Tier, netns: NetnsId) -> bool {
    tier.netns == netns || tier.listeners.iter().any(|placed| placed.netns == netns)
}

/// The inodes of the sockets that a tier's processes were seen to hold.
fn held(ctx: &Context<'_>, tier: &Tier) -> BTreeSet<u64> {
    let processes = tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid));
    processes.flat_map(|process| process.files.values()).flat_map(|files| files.sockets.iter().copied()).collect()
}

/// True if an address is that of a listener of one of a tier's upstreams in another namespace.
fn calls(ctx: &Context<'_>, tier: &Tier, (ip, port): (IpAddr, u16)) -> bool {
    let listeners = tier.upstreams.iter().flat_map(|index| &ctx.path.tiers[*index].listeners);
    listeners.into_iter().any(|placed| {
        let is_there = ctx.obs.netns.get(&placed.netns).is_some_and(|view| is_local(view, placed.netns == tier.netns, ip.to_canonical()));
        matches!(placed.listener.address, ListenerAddress::Tcp(_, bound) if bound == port) && is_there
    })
}
