//! Drops at this test's sockets, counted in the kernel (BPF): a connection that refuses all data, and a buffer that nobody reads. What this user, kernel or
//! build does not allow is skipped with the reason.
//!
//! Live: packets are dropped while they are counted.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use chokepoint_profile::drops::{Drop, Dropping, Drops, Means};

const SPAN: Duration = Duration::from_millis(600);

/// The drops at a local address.
fn at(drops: &Drops, local: SocketAddr) -> Vec<&Drop> {
    drops.drops.iter().filter(|drop| drop.local == Some(local)).collect()
}

/// Opens a counter that knows sockets, or prints why it cannot.
fn open() -> Option<Dropping> {
    match Dropping::open() {
        Ok(dropping) if dropping.means() == Means::Bpf => Some(dropping),
        Ok(dropping) => {
            eprintln!("skipped: {}", dropping.notes().join("; "));
            None
        }
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Drops everything that arrives at the socket from now on (socket(7), SO_ATTACH_FILTER): each segment and each retransmission is a drop.
fn refuse_all(socket: &TcpStream) {
    // "Keep no byte": BPF_RET | BPF_K of linux/filter.h.
    let mut keep_nothing = libc::sock_filter { code: 6, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut keep_nothing };
    set(socket, libc::SO_ATTACH_FILTER, &program);
}

fn set<T>(socket: &impl AsRawFd, option: libc::c_int, value: &T) {
    let size = libc::socklen_t::try_from(size_of::<T>()).expect("it is small");
    // SAFETY: the descriptor is open; the kernel copies the value and what a filter points to, both of which live through the call.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, std::ptr::from_ref(value).cast(), size) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Both ends of a connection: the client's and the accepted one.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let asking = TcpStream::connect(listener.local_addr().expect("its address")).expect("a connection");
    (asking, listener.accept().expect("a connection").0)
}

/// Counts while one end of a connection sends data that the other end refuses.
fn send_refused_data(dropping: Dropping, asking: &mut TcpStream, deaf: &TcpStream) -> Drops {
    refuse_all(deaf);
    let mut is_sent = false;
    let drops = dropping.run(|elapsed| {
        if !is_sent {
            asking.write_all(b"unheard").expect("it is sent");
            is_sent = true;
        }
        elapsed < SPAN
    });
    drops.expect("counting runs")
}

#[test]
fn drops_of_an_established_connection_are_reported_with_both_ends() {
    let Some(dropping) = open() else { return };
    let (mut asking, deaf) = connection();
    let drops = send_refused_data(dropping, &mut asking, &deaf);
    let local = deaf.local_addr().expect("its address");
    // One line for each program that ran: the sender, and whatever was interrupted by a retransmission.
    let drops_there = at(&drops, local);
    assert!(!drops_there.is_empty() || drops.lost > 0, "{drops:?}");
    let inode = std::fs::metadata(format!("/proc/self/fd/{}", deaf.as_raw_fd())).expect("an open descriptor").ino();
    for drop in drops_there {
        assert_eq!((drop.reason.as_str(), drop.transport, drop.state), ("SOCKET_FILTER", Some("tcp"), Some("ESTABLISHED")));
        assert_eq!((drop.remote, drop.ends, drop.for_socket), (asking.local_addr().ok(), 1, Some(true)));
        assert!(drop.inodes.iter().eq([&inode]) && drop.count > 0, "{inode} {drop:?}");
    }
    assert!(drops.notes.iter().all(|note| !note.contains("BPF")), "{:?}", drops.notes);
}

#[test]
fn samples_of_the_tracepoint_have_no_port_for_such_drops() {
    let dropping = match Dropping::open_tracepoint() {
        Ok(dropping) => dropping,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let (mut asking, deaf) = connection();
    let drops = send_refused_data(dropping, &mut asking, &deaf);
    assert_eq!(drops.means, Means::Tracepoint);
    assert!(at(&drops, deaf.local_addr().expect("its address")).is_empty(), "{drops:?}");
    assert!(drops.drops.iter().any(|drop| drop.reason == "SOCKET_FILTER") || drops.lost > 0, "{drops:?}");
}

#[test]
fn a_full_buffer_is_reported_with_its_socket_in_both_families() {
    let Some(dropping) = open() else { return };
    let sockets: Vec<UdpSocket> = ["127.0.0.1:0", "[::1]:0"].iter().filter_map(|address| UdpSocket::bind(address).ok()).collect();
    assert!(!sockets.is_empty());
    // A buffer smaller than two packets.
    sockets.iter().for_each(|socket| set(socket, libc::SO_RCVBUF, &4096));
    let packet = [0; 8000];
    let drops = dropping.run(|elapsed| {
        for socket in &sockets {
            let address = socket.local_addr().expect("its address");
            for _ in 0..20 {
                // If the sender's own buffer is full for a moment, a later packet gets through.
                let _ = socket.send_to(&packet, address);
            }
        }
        elapsed < SPAN
    });
    let drops = drops.expect("counting runs");
    for socket in &sockets {
        let local = socket.local_addr().expect("its address");
        let drops_there = at(&drops, local);
        let full = drops_there.iter().any(|drop| drop.reason == "SOCKET_RCVBUFF" && drop.transport == Some("udp"));
        assert!(full || drops.lost > 0, "{local}: {drops:?}");
        assert!(drops_there.iter().all(|drop| drop.state.is_none() && drop.remote.is_none()), "{drops_there:?}");
    }
}
