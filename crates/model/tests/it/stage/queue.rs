//! The accept queue of the stage's web server, and a load that suffers from it.

use chokepoint_model::observation::{ListenerAddress, Observation};
use chokepoint_model::reading::Reading;

use super::{SERVER, WINDOW, ip, listener};

/// The server's queue has the limit `limit`, the length `standing` in every sample, and `drops` dropped connections in the window.
pub(crate) fn queue(obs: &mut Observation, limit: u32, standing: u32, drops: u64) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.listeners = Default::default();
    for tick in 0..=220_u64 {
        let at = tick * 50_000;
        let inside = (WINDOW.0..=WINDOW.1).contains(&at);
        let dropped = if at < WINDOW.0 { 0 } else { drops * (at.min(WINDOW.1) - WINDOW.0) / (WINDOW.1 - WINDOW.0) };
        let mut listener = listener(ListenerAddress::Tcp(ip("0.0.0.0"), 80), 100, if inside { standing } else { 0 }, dropped);
        listener.accept_queue_limit = limit;
        view.listeners.push(at, Reading::Ok(vec![listener]));
    }
}

/// The queue has this length in each third sample only, and is empty in the others.
pub(crate) fn at_times(obs: &mut Observation) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners.iter_mut().filter(|_| (at / 50_000) % 3 != 0).for_each(|listener| listener.accept_queue = 0);
        view.listeners.push(at, Reading::Ok(listeners));
    }
}

pub(crate) fn suffer(obs: &mut Observation, connections: u32, good: u64) {
    let load = obs.load.as_mut().unwrap();
    load.shape = chokepoint_model::load::Loop::Closed { connections };
    load.good = good;
    load.requests = good + 200;
    load.errors.connect_timeout = 200;
    load.status = [(200, good)].into();
    load.latency_us.p99 = 1_020_000;
    (load.connect_us.p999, load.connect_us.max) = (1_020_000, 1_030_000);
}
