//! Connections on which nothing arrives any more: TCP sends the first lost segment again after ever longer pauses, and no acknowledgement comes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::held::{Held, of_path};
use crate::facts::Context;
use crate::observation::{NetnsId, NetnsView, RequestSocket, SocketAddress, TcpSample};

/// The congestion control's state after a timeout: TCP_CA_Loss (include/uapi/linux/tcp.h).
const AFTER_TIMEOUT: u64 = 4;
/// The shortest timeout (TCP_RTO_MIN, include/net/tcp.h). Whoever has sent nothing for that long after a timeout waits for the next one: what it sent again was lost as well.
const TIMEOUT_MS: u64 = 200;
/// Share of a segment's largest size from which segments are full, on average.
const FULL_SHARE: f64 = 0.9;
/// Share of the requests under way from which nothing else is under way.
const ALL_SHARE: f64 = 0.9;

/// Such connections of one namespace that hurt.
pub(crate) struct Standing {
    pub(crate) netns: NetnsId,
    pub(crate) held: Held,
    /// Largest data size of their segments, bytes: the largest that was seen.
    pub(crate) mss: u64,
    /// Connections that their peers opened while these stood, and on which a request came.
    pub(crate) opened: usize,
    /// True if all of them have a full segment out, and no peer of theirs acknowledged one.
    is_of_full: bool,
}

fn is_standing(sample: &TcpSample) -> bool {
    sample.loss_state == AFTER_TIMEOUT && sample.unacked > 0 && sample.last_data_sent_ms >= TIMEOUT_MS
}

impl Standing {
    /// In the namespace with most of them. `None` if they do not hurt.
    pub(crate) fn of(ctx: &Context<'_>) -> Option<Self> {
        let of = |(netns, view): (NetnsId, &NetnsView)| {
            let held = Held::of(ctx, netns, is_standing).filter(|held| held.cost().hurts())?;
            Some(Self::seen(ctx, (netns, view), held))
        };
        ctx.netns_on_path().into_iter().filter_map(of).max_by(|a, b| a.held.connections.total_cmp(&b.held.connections))
    }

    fn seen(ctx: &Context<'_>, (netns, view): (NetnsId, &NetnsView), held: Held) -> Self {
        let standing: Vec<&TcpSample> = of_path(ctx, netns).into_iter().flatten().flatten().filter(|sample| is_standing(sample)).collect();
        let mss = standing.iter().map(|sample| sample.mss).max().unwrap_or(0);
        let peers: BTreeSet<IpAddr> = standing.iter().map(|sample| sample.remote.0.to_canonical()).collect();
        let has_full_out = |sample: &&TcpSample| u64::from(sample.send_queue).saturating_sub(sample.unsent.unwrap_or(0)) >= sample.mss;
        let of_peers = Connections::of(ctx, view, &peers);
        let is_of_full = standing.iter().all(has_full_out) && !of_peers.have_full(mss);
        Self { netns, held, mss, opened: of_peers.opened(), is_of_full }
    }

    /// True if only full packets are lost: their peers open connections and send requests meanwhile.
    pub(crate) fn is_of_size(&self) -> bool {
        self.is_of_full && self.opened > 0
    }

    /// True if nothing else is under way.
    pub(crate) fn is_all(&self) -> bool {
        self.held.share() >= ALL_SHARE
    }
}

/// The connections of some peers, each in all samples that have it.
struct Connections<'a>(Vec<(bool, Vec<&'a RequestSocket>)>);

impl<'a> Connections<'a> {
    fn of(ctx: &Context<'_>, view: &'a NetnsView, peers: &BTreeSet<IpAddr>) -> Self {
        let mut seen: BTreeMap<u64, (bool, Vec<&RequestSocket>)> = BTreeMap::new();
        for (number, (_, sample)) in ctx.in_window(&view.request_samples).enumerate() {
            let is_theirs = |socket: &&RequestSocket| matches!(socket.address, SocketAddress::Tcp { remote, .. } if peers.contains(&remote.0.to_canonical()));
            for socket in sample.sockets.iter().filter(|socket| socket.cookie != 0).filter(is_theirs) {
                let (_, all) = seen.entry(socket.cookie).or_insert((number > 0, Vec::new()));
                all.push(socket);
            }
        }
        Self(seen.into_values().collect())
    }

    /// Those that were opened meanwhile, and on which something came.
    fn opened(&self) -> usize {
        let came = |socket: &&RequestSocket| socket.times.is_some_and(|times| times.bytes_received.is_some_and(|bytes| bytes > 0));
        self.0.iter().filter(|(is_new, all)| *is_new && all.iter().any(came)).count()
    }

    /// True if one of them acknowledged segments of nearly this size.
    fn have_full(&self, mss: u64) -> bool {
        let counts = |socket: &RequestSocket| {
            let times = socket.times?;
            Some((times.bytes_acked?, times.data_segs_out?))
        };
        let grew = |(is_new, all): &(bool, Vec<&RequestSocket>)| {
            let (first, last) = all.first().zip(all.last())?;
            let (from, to) = (if *is_new { (0, 0) } else { counts(first)? }, counts(last)?);
            let (bytes, segments) = (to.0.saturating_sub(from.0), to.1.saturating_sub(from.1));
            Some(bytes as f64 >= FULL_SHARE * mss as f64 * segments.max(1) as f64)
        };
        self.0.iter().any(|connection| grew(connection) == Some(true))
    }
}
