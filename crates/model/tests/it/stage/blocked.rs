//! Workers of the stage's pool that wait for another server.

use chokepoint_model::observation::{Address, ListenerAddress, NetnsId, NetnsView, Observation, Socket, Syscall};
use chokepoint_model::reading::Reading;

use super::pool::{pool, process, tcp};
use super::{SERVER, ip, listener};

pub(crate) const DATABASE: NetnsId = NetnsId(9);

/// The address that the pool's workers wait for.
pub(crate) const AWAY: &str = "192.0.2.7";
pub(crate) const BEHIND: &str = "10.0.1.2";

/// Five busy workers. In every sample each is in this call on this socket. Worker N's own socket is 2,000 + N.
pub(crate) fn waiting(call: &str, socket: impl Fn(u64) -> Vec<u64>) -> Observation {
    let mut obs = pool(5, 5, 60);
    for n in 0..5_u64 {
        let view = obs.processes.get_mut(&(51 + n as u32)).unwrap();
        for second in 1..=10_u64 {
            view.syscall
                .push(second * 1_000_000, Reading::Ok(Syscall { call: Some(call.to_owned()), sockets: socket(n), ..Syscall::default() }));
        }
    }
    obs
}

/// The same with connections to a server at this address.
pub(crate) fn towards(address: &str) -> Observation {
    let mut obs = waiting("poll", |n| vec![2_000 + n]);
    sockets(&mut obs, |n| tcp(2_000 + n, (ip("10.0.0.2"), 30_000 + n as u16), (ip(address), 5432)));
    obs
}

/// Adds a socket of each worker to every sample and to the worker's open files.
pub(crate) fn sockets(obs: &mut Observation, made: impl Fn(u64) -> Socket) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.sockets.points().to_vec();
    view.sockets = Default::default();
    for (at, mut sockets) in points {
        sockets.extend((0..5).map(&made));
        view.sockets.push(at, Reading::Ok(sockets));
    }
    for n in 0..5_u64 {
        let files = &mut obs.processes.get_mut(&(51 + n as u32)).unwrap().files;
        let mut held = files.last().cloned().unwrap();
        held.sockets.push(made(n).inode);
        files.push(1, Reading::Ok(held));
    }
}

/// A server with this many processes in another namespace. Each process holds this many of the pool's connections.
pub(crate) fn behind(obs: &mut Observation, processes: u32, busy: u32, waiting: u32) {
    let mut view = NetnsView { name: Some("database".into()), ..NetnsView::default() };
    view.addresses.push(0, Reading::Ok(vec![Address { ip: ip(BEHIND), prefix_bits: 24, link: 2 }]));
    for tick in 0..=220_u64 {
        let listener = listener(ListenerAddress::Tcp(ip("0.0.0.0"), 5432), 700, waiting, 0);
        view.listeners.push(tick * 50_000, Reading::Ok(vec![listener]));
    }
    for second in 1..=10_u64 {
        let accepted = |n: u32| tcp(3_000 + u64::from(n), (ip(BEHIND), 5432), (ip("10.0.0.2"), 30_000 + n as u16));
        view.sockets.push(second * 1_000_000, Reading::Ok((0..busy).map(accepted).collect()));
    }
    obs.netns.insert(DATABASE, view);
    process(obs, 80, 1, "database", &[700]);
    for n in 1..processes {
        process(obs, 80 + n, 80, "database", &[700]);
    }
}
