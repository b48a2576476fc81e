//! Processes of a server that are stopped (SIGSTOP, a debugger, a frozen control group) all the time, and the requests that wait for them.

use std::collections::BTreeSet;

use super::{WAITED_SHARE, waited_share, worker_pids};
use crate::facts::Context;
use crate::facts::cores::cores_are_spare;
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::queue::halted::stopped;
use crate::observation::{RequestSample, RequestSocket, TcpState};
use crate::output::report::LedgerPlaceKind as Place;

/// The stopped ones among the processes of a tier that serve.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoppedProcesses {
    /// Their ids.
    pub(crate) pids: Vec<u32>,
    /// Number of all processes that serve.
    pub(crate) of: usize,
    /// Mean number of requests on connections that they accepted, which nobody else can answer.
    pub(crate) held: f64,
    /// Mean number of connections that wait to be accepted, while the processes that are not stopped have no time for more.
    pub(crate) queued: f64,
}

impl StoppedProcesses {
    /// `None` if none is stopped, or only those that are told already.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier, told: &[u32]) -> Option<Self> {
        let serving = worker_pids(ctx, tier);
        let all = stopped(ctx, serving);
        let pids: Vec<u32> = all.iter().copied().filter(|pid| !told.contains(pid)).collect();
        if pids.is_empty() {
            return None;
        }
        let of = Self { held: held(ctx, tier, &pids), queued: 0.0, of: serving.len(), pids };
        // Where all are stopped, nobody accepts. Else the others serve what waits, if only for a while: on full cores they would have no more time if these went on.
        let waits = waited_share(&ctx.queued(tier)) >= WAITED_SHARE;
        let lacks_them = if all.len() == serving.len() { waits } else { Cost::of_time(of.share()).hurts() && cores_are_spare(ctx) };
        let at_door = |place: Place| matches!(place, Place::Connecting | Place::Handshake | Place::AcceptQueue);
        let queued = ctx.account().filter(|_| lacks_them).map_or(0.0, |account| account.at_places(tier.id.0, at_door));
        Some(Self { queued, ..of })
    }

    /// Share of the processes that serve.
    fn share(&self) -> f64 {
        self.pids.len() as f64 / self.of.max(1) as f64
    }

    /// True if enough of the requests under way wait for them.
    pub(crate) fn hurt(&self, ctx: &Context<'_>) -> bool {
        let under_way = ctx.account().map_or(0.0, |account| account.under_way());
        under_way > 0.0 && Cost::of_time(((self.held + self.queued) / under_way).min(1.0)).hurts()
    }
}

/// Mean number of connections with an unanswered request that only these processes have open.
fn held(ctx: &Context<'_>, tier: &Tier, pids: &[u32]) -> f64 {
    let open = |pid: &u32| ctx.obs.processes.get(pid).and_then(|process| process.files.last());
    let sockets =
        |pids: &[u32]| -> BTreeSet<u64> { pids.iter().filter_map(open).flat_map(|files| files.sockets.iter().copied()).collect() };
    let others: Vec<u32> = tier.pids.iter().copied().filter(|pid| !pids.contains(pid)).collect();
    let (own, others) = (sockets(pids), sockets(&others));
    let is_theirs =
        |socket: &RequestSocket| own.contains(&socket.inode) && !others.contains(&socket.inode) && tier.accepts(&socket.address);
    let Some(view) = ctx.obs.netns.get(&tier.netns) else { return 0.0 };
    let waiting = |sample: &RequestSample| -> f64 {
        let asked = sample.sockets.iter().filter(|socket| is_theirs(socket) && is_unanswered(socket));
        asked.map(|socket| sample.weight(socket)).sum()
    };
    let samples: Vec<f64> = ctx.in_window(&view.request_samples).map(|(_, sample)| waiting(sample)).collect();
    samples.iter().sum::<f64>() / samples.len().max(1) as f64
}

/// True if a request stands on a connection that its client has not ended, read or not.
fn is_unanswered(socket: &RequestSocket) -> bool {
    let is_read = || socket.times.is_some_and(|times| !times.never_received() && times.received_last() == Some(true));
    socket.state == TcpState::Established && (socket.receive_queue > 0 || is_read())
}
