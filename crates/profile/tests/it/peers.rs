//! Which other end a wait or a dropped packet belongs to, on this machine: a server of this test's own that is slow, and a port where nobody listens. What
//! this user or kernel does not allow is skipped with the reason.
//!
//! Live: what happens on this machine for a while is counted.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chokepoint_profile::drops::Dropping;
use chokepoint_profile::waits::{Wait, waits};
use chokepoint_profile::{Scope, Waiting};

const SPAN: Duration = Duration::from_millis(1500);

/// Asks again and again for a byte that the server takes its time for.
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
fn a_slow_server_is_named_by_what_waits_for_it() {
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
    if shares.iter().all(|share| share.peer.is_none()) && !may_look_at_descriptors() {
        return eprintln!("skipped: this kernel or user may not look at another program's sockets (pidfd_getfd)");
    }
    let of = |peer: &str| {
        let ours = shares.iter().filter(|share| share.wait == Wait::PeerData && share.peer.as_deref() == Some(peer));
        ours.map(|share| share.seconds).sum::<f64>()
    };
    // The one waits all of the time for the server; the server for it only as long as it takes to ask again.
    let (server, client) = (of(&format!("the server at {at}")), of(&format!("clients of {at}")));
    assert!(server > 0.3 * profile.duration_s && server > 2.0 * client, "{server} {client}: {shares:?}");
}

/// Whether pidfd_getfd(2) is to be had, on this very process.
fn may_look_at_descriptors() -> bool {
    // SAFETY: both calls take numbers alone; the descriptors that they give go with this process.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0);
        process >= 0 && libc::syscall(libc::SYS_pidfd_getfd, process, 0, 0) >= 0
    }
}

#[test]
fn packets_for_a_port_where_nobody_listens_are_told_with_it() {
    let dropping = match Dropping::open() {
        Ok(dropping) => dropping,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let closed = UdpSocket::bind("127.0.0.1:0").expect("a socket").local_addr().expect("its address");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let refusing = TcpListener::bind("127.0.0.1:0").expect("a socket").local_addr().expect("its address");
    let drops = dropping.run(|elapsed| {
        // Refusals come back as errors, which is what is asked for.
        let _ = (sender.send_to(b"x", closed), TcpStream::connect(refusing));
        elapsed < Duration::from_millis(800)
    });
    let drops = drops.expect("counting runs");
    let told =
        |at| drops.drops.iter().filter(|drop| drop.local == Some(at)).map(|drop| (drop.reason.as_str(), drop.count)).collect::<Vec<_>>();
    if drops.drops.iter().all(|drop| drop.local.is_none()) {
        return eprintln!("skipped: no tracepoint of this kernel tells where dropped packets came for (Linux 6.10)");
    }
    for at in [closed, refusing] {
        let told = told(at);
        assert!(told.iter().all(|(reason, _)| *reason == "NO_SOCKET"), "{told:?}");
        // Other tests of this machine may be at other ports; at this one each try is a packet.
        assert!(told.iter().map(|(_, count)| count).sum::<u64>() > 0 || drops.lost > 0, "{at}: {drops:?}");
    }
}
