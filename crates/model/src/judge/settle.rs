//! Whether the host has settled: what an earlier load left behind that would distort the next measurement.

use crate::facts::path::Path;
use crate::facts::port_range;
use crate::facts::table::KEY_MAX;
use crate::observation::series::Series;
use crate::observation::{NetnsView, Observation};
use crate::output::message::Message;

/// Share of a table or port range that leftovers may still hold.
const LEFT_SHARE_MAX: f64 = 0.5;

/// Which reading is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The first one: the state at the start of a measurement.
    First,
    /// The last one: the state now.
    Last,
}

impl Moment {
    fn of<T>(self, series: &Series<T>) -> Option<&T> {
        match self {
            Moment::First => series.first(),
            Moment::Last => series.last(),
        }
    }
}

/// What is still left, one message each; empty if the host has settled. The levels: no connection in an accept queue of the path, conntrack entries at most
/// half of the limit, TIME_WAIT sockets towards one address and port at most half of the ephemeral ports.
pub fn unsettled(obs: &Observation, path: &Path, moment: Moment) -> Vec<Message> {
    let mut left = Vec::new();
    for tier in &path.tiers {
        for placed in &tier.listeners {
            let listeners = obs.netns.get(&placed.netns).and_then(|view| moment.of(&view.listeners));
            let waiting = listeners.into_iter().flatten().find(|listener| listener.inode == placed.listener.inode);
            if let Some(waiting) = waiting.filter(|listener| listener.accept_queue > 0) {
                let message = Message::new("unsettled-accept-queue").with("count", waiting.accept_queue);
                left.push(message.with("listener", waiting.address.to_string()));
            }
        }
    }
    for (id, view) in &obs.netns {
        let name = || view.name.clone().unwrap_or_else(|| id.to_string());
        if let Some((count, max)) = conntrack(view, moment)
            && max > 0
            && count as f64 > LEFT_SHARE_MAX * max as f64
        {
            let message = Message::new("unsettled-conntrack").with("count", count).with("max", max);
            left.push(message.with("netns", name()));
        }
        // Only sockets of the dialling side keep a port taken, and only towards the same address and port.
        for waiting in moment.of(&view.time_waits).into_iter().flat_map(|waits| &waits.dialled) {
            if waiting.count as f64 > LEFT_SHARE_MAX * ports(view) {
                let message = Message::new("unsettled-time-wait").with("count", waiting.count).with("netns", name());
                left.push(message.with("remote", format!("{}:{}", waiting.remote.0, waiting.remote.1)));
            }
        }
    }
    left
}

fn conntrack(view: &NetnsView, moment: Moment) -> Option<(u64, u64)> {
    Some((*moment.of(&view.conntrack_count)?, view.sysctl_number(KEY_MAX)?))
}

/// Number of ports in the namespace's ephemeral range.
fn ports(view: &NetnsView) -> f64 {
    let (low, high) = port_range::of(view);
    f64::from(high - low) + 1.0
}
