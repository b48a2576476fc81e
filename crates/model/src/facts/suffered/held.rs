//! Requests under way whose connection was found in some state: the share of the clients' time, as the sampled sockets show it.

use chokepoint_statistics::wilson;

use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::facts::sum::mean;
use crate::ledger::{is_left, path_end};
use crate::observation::{NetnsId, SocketAddress, TcpSample};

/// Connections of the path in one namespace that were found in some state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    /// Their mean number.
    pub(crate) connections: f64,
    /// Mean number of requests under way on all that were sampled.
    pub(crate) under_way: f64,
    /// Number of connections sampled, in all samples together.
    count: u64,
}

/// The connections of the path in one namespace, in each sample of the window. `None` if the namespace was not read.
pub(super) fn of_path<'a>(ctx: &Context<'a>, netns: NetnsId) -> Option<Vec<Vec<&'a TcpSample>>> {
    let view = ctx.obs.netns.get(&netns)?;
    let is_own = |sample: &&TcpSample| {
        let ends = SocketAddress::Tcp { local: sample.local, remote: sample.remote };
        path_end(ctx, netns, &ends).is_some() && !is_left(ctx, netns, &ends, sample.state)
    };
    Some(ctx.in_window(&view.tcp_samples).map(|(_, samples)| samples.iter().filter(is_own).collect()).collect())
}

impl Held {
    /// `None` if no request under way is known.
    pub(crate) fn of(ctx: &Context<'_>, netns: NetnsId, is_so: impl Fn(&TcpSample) -> bool) -> Option<Self> {
        let own = of_path(ctx, netns)?;
        let connections = mean(own.iter().map(|samples| samples.iter().filter(|sample| is_so(sample)).count() as u64));
        let sampled = mean(own.iter().map(|samples| samples.len() as u64));
        // Of very many connections a part is sampled, those that send first.
        let under_way = ctx.account()?.under_way().min(sampled).max(connections);
        (under_way > 0.0).then(|| Self { connections, under_way, count: own.iter().map(Vec::len).sum::<usize>() as u64 })
    }

    /// Share of the requests' time.
    pub(crate) fn share(&self) -> f64 {
        self.connections / self.under_way
    }

    /// What it costs, by the lower end of the share's interval, which follows from the number of connections sampled.
    pub(crate) fn cost(&self) -> Cost {
        Cost::of_time(wilson(self.share(), self.count).0)
    }
}
