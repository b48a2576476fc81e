//! Workers that are held: by connections on which nothing is asked, or by a lock.

use chokepoint_model::observation::{
    Identity, Observation, RequestSample, RequestSocket, RequestTimes, SocketAddress, Syscall, TcpState, ThreadCalls,
};
use chokepoint_model::reading::Reading;

use super::pool::{Served, selector};
use super::{SERVER, WINDOW, ip};

/// An accepted connection that carried two segments each way, the last of them so many milliseconds ago.
pub(crate) fn exchanged(address: SocketAddress, cookie: u64, inode: u64, received_ms: u64, sent_ms: u64) -> RequestSocket {
    let times = RequestTimes {
        last_data_recv_ms: received_ms,
        last_data_sent_ms: sent_ms,
        data_segs_in: Some(2),
        data_segs_out: Some(2),
        bytes_received: Some(200),
        bytes_sent: Some(900),
        min_rtt_us: Some(20),
        rtt_us: Some(50),
        ..RequestTimes::default()
    };
    RequestSocket { address, cookie, state: TcpState::Established, inode, receive_queue: 0, send_queue: 0, times: Some(times) }
}

/// The first `idle` of the connections that are held have their response; the others have a request for 8 ms. Each is held for a second.
pub(crate) fn keep(mut obs: Observation, held: u64, idle: u64) -> Observation {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for number in 0..48 {
        let socket = |n: u64| {
            let (received_ms, sent_ms) = if n < idle { (308, 300) } else { (8, 400) };
            let address = SocketAddress::Tcp { local: (ip("127.0.0.1"), 9000), remote: (ip("127.0.0.1"), 40_000 + n as u16) };
            exchanged(address, 1 + n + held * (number / 5), 1_000 + n, received_ms, sent_ms)
        };
        let sockets = (0..held).map(socket).collect();
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets, ..RequestSample::default() };
        view.request_samples.push(WINDOW.0 + 100_000 + number * 200_000, Reading::Ok(sample));
    }
    obs
}

pub(crate) fn watched(mut obs: Observation) -> Observation {
    (obs.load, obs.request.loaded) = (None, false);
    obs
}

/// Watched: a server with 32 threads, all of which have a request, and eight more requests. Of its threads 16 are looked at each second.
pub(crate) fn all_taken(calls: ThreadCalls) -> Observation {
    let mut obs = selector(32, 96, |number| Served { taken: 32, unread: 8, first: 19 * number, requests: 1 });
    let process = obs.processes.get_mut(&42).unwrap();
    let identity = Identity { comm: "gunicorn".to_owned(), ..process.identity.last().unwrap().clone() };
    process.identity = Default::default();
    process.identity.push(0, Reading::Ok(identity));
    process.syscall = Default::default();
    for second in 0..=11_u64 {
        let call = Syscall { call: Some("epoll_wait".to_owned()), threads: calls, ..Syscall::default() };
        process.syscall.push(second * 1_000_000, Reading::Ok(call));
    }
    obs
}

pub(crate) fn calls(locked: u32, untimed: u32, at_one: u32) -> ThreadCalls {
    ThreadCalls { looked: 16, locked, untimed, at_one, ..ThreadCalls::default() }
}
