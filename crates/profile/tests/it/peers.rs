//! The peer of a wait or a dropped packet on this machine: a slow server of this test, and a port without a listener. What this user or kernel does not
//! allow is skipped with the reason.
//!
//! Live: events on this machine are counted for a while.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chokepoint_profile::drops::Dropping;
use chokepoint_profile::waits::{Wait, waits};
use chokepoint_profile::{Scope, Waiting};

const SPAN: Duration = Duration::from_millis(1500);

/// Repeatedly requests a byte that the server delays.
fn ask(mut server: TcpStream, over: &AtomicBool) {
    let mut byte = [0];
    while !over.load(Ordering::Relaxed) && server.write_all(b"?").is_ok() && server.read_exact(&mut byte).is_ok() {}
}

fn answer(mut client: TcpStream) {
    let mut byte = [0];
    while client.read_exact(&mut byte).is_ok() {
        std::thread::sleep(Duration::from_millis(20));
        if client.write_all(&byte).is_err() {
            return;
        }
    }
}

#[test]
fn a_thread_that_waits_for_a_slow_server_names_it() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let at = listener.local_addr().expect("its address");
    let asking = TcpStream::connect(at).expect("a connection");
    let (asked, _) = listener.accept().expect("a connection");
    let over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&over);
    let threads = [std::thread::spawn(move || ask(asking, &until)), std::thread::spawn(move || answer(asked))];
    let waiting = Waiting::open(Scope::Processes(vec![std::process::id()]));
    let profile = waiting.map(|waiting| waiting.run(|elapsed| elapsed < SPAN).expect("sampling runs"));
    over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("it ends");
    }
    let profile = match profile {
        Ok(profile) => profile,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let shares = waits(&profile);
    if shares.iter().all(|share| share.peer.is_none()) && !may_duplicate_descriptors() {
        return eprintln!("skipped: this kernel or user may not look at another program's sockets (pidfd_getfd)");
    }
    let of = |peer: &str| {
        let ours = shares.iter().filter(|share| share.wait == Wait::PeerData && share.peer.as_deref() == Some(peer));
        ours.map(|share| share.seconds).sum::<f64>()
    };
    // One thread waits for the server all the time. The server waits for it only until the next request.
    let (server, client) = (of(&format!("the server at {at}")), of(&format!("clients of {at}")));
    assert!(server > 0.3 * profile.duration_s && server > 2.0 * client, "{server} {client}: {shares:?}");
}

/// Whether pidfd_getfd(2) is allowed, tried on this process.
fn may_duplicate_descriptors() -> bool {
    // SAFETY: both calls only take numbers; their descriptors are closed with this process.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0);
        process >= 0 && libc::syscall(libc::SYS_pidfd_getfd, process, 0, 0) >= 0
    }
}

#[test]
fn packets_for_a_port_without_a_listener_are_reported_with_the_port() {
    let dropping = match Dropping::open() {
        Ok(dropping) => dropping,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let closed = UdpSocket::bind("127.0.0.1:0").expect("a socket").local_addr().expect("its address");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let refusing = TcpListener::bind("127.0.0.1:0").expect("a socket").local_addr().expect("its address");
    let drops = dropping.run(|elapsed| {
        // Refusals come back as errors. They are expected.
        let _ = (sender.send_to(b"x", closed), TcpStream::connect(refusing));
        elapsed < Duration::from_millis(800)
    });
    let drops = drops.expect("counting runs");
    let reasons =
        |at| drops.drops.iter().filter(|drop| drop.local == Some(at)).map(|drop| (drop.reason.as_str(), drop.count)).collect::<Vec<_>>();
    if drops.drops.iter().all(|drop| drop.local.is_none()) {
        return eprintln!("skipped: no tracepoint of this kernel tells where dropped packets came for (Linux 6.10)");
    }
    for at in [closed, refusing] {
        let reasons = reasons(at);
        assert!(reasons.iter().all(|(reason, _)| *reason == "NO_SOCKET"), "{reasons:?}");
        // Other tests on this machine may use other ports; at this port each try is one packet.
        assert!(reasons.iter().map(|(_, count)| count).sum::<u64>() > 0 || drops.lost > 0, "{at}: {drops:?}");
    }
}
