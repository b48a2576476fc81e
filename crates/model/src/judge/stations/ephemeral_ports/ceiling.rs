//! The ceiling of an edge's ports: the number of ports over the time that a request keeps one taken.

use super::Ports;
use crate::facts::Context;
use crate::facts::ceiling::ceiling_between;
use crate::observation::NetnsView;
use crate::output::report::Ceiling;

/// Seconds that a port stays in TIME_WAIT (include/net/tcp.h, TCP_TIMEWAIT_LEN).
const TIME_WAIT_S: f64 = 60.0;
/// Milliseconds after which a port in TIME_WAIT may be taken over if the kernel does not report it (ip-sysctl.rst, tcp_tw_reuse_delay).
const REUSE_DELAY_MS: u64 = 1000;
/// Sysctl with that time, on kernels that have it.
const KEY_REUSE_DELAY: &str = "net.ipv4.tcp_tw_reuse_delay";
/// Share of the connections left in TIME_WAIT below which the upstream is assumed to close first. The dialling side always closes a few, for example if a
/// client went away.
const CLOSES_FIRST_MIN: f64 = 0.05;

/// Ports over the life of a connection, without its wait in the queues behind it, plus its TIME_WAIT as far as the dialling side closes first. `None` if not
/// every connection could be seen, or too few answers were good.
pub(super) fn of(ctx: &Context<'_>, ports: &Ports) -> Option<Ceiling> {
    let answers_rps = ctx.answers_rps().filter(|_| ctx.can_divide_by_good())?;
    let view = ctx.obs.netns.get(&ports.netns)?;
    if view.sockets_left_out.last().is_some() || ports.live_mean <= 0.0 {
        return None;
    }
    // If there are several upstream addresses, each carries its share of the requests.
    let share = ports.live_mean / ports.live_all.max(ports.live_mean);
    let rate = answers_rps * share;
    let life_s = (ports.live_mean - ports.queued * share).max(0.0) / rate;
    let wait_s = match ports.reuses {
        true => reuse_delay_s(view),
        false => TIME_WAIT_S,
    };
    let taken_s = life_s + closes_first(ports, rate * ctx.seconds()) * wait_s;
    let most = f64::from(ports.usable) / taken_s / share;
    ceiling_between(most, most, most)
}

/// Seconds after which a port in TIME_WAIT may be taken over.
pub(super) fn reuse_delay_s(view: &NetnsView) -> f64 {
    view.sysctl_number(KEY_REUSE_DELAY).unwrap_or(REUSE_DELAY_MS) as f64 / 1e3
}

/// Share of this many connections that the dialling side closed first: those that left a socket in TIME_WAIT on its side. If ports are taken over, there are
/// never more such sockets than ports.
fn closes_first(ports: &Ports, connections: f64) -> f64 {
    let room = if ports.reuses { connections.min(f64::from(ports.usable)) } else { connections };
    let share = (ports.time_wait_grown as f64 / room.max(1.0)).min(1.0);
    if share < CLOSES_FIRST_MIN { 0.0 } else { share }
}
