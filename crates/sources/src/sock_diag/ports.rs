//! The sockets of the host that receive packets outside of TCP connections: TCP listeners and UDP sockets, each with its drops and its program.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use chokepoint_foreign::Holder;
use chokepoint_model::observation::NetnsId;

use super::inet;
use super::message::{DiagSocket, parse_socket};
use super::protocol::{AF_INET, AF_INET6, DumpRequest, DumpRequests, SOCK_DIAG_BY_FAMILY};
use super::tcp::{ReadError, walk};
use crate::netlink::Sockets;
use crate::netns::enter::spawn_inside;
use crate::netns::maker::made_by;
use crate::netns::{self, NetnsError};
use crate::observer::Stop;
use crate::observer::socket_owners::{PidsBySocket, SocketOwners};
use crate::root::Root;

/// Most sockets of one namespace. Further ones are left out.
const SOCKETS_MAX: usize = 100_000;
/// Bytes of a program's name (proc_pid_comm(5): 15 and a line break).
const NAME_BYTES_MAX: usize = 64;

/// A TCP listener or a UDP socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSocket {
    /// Its namespace.
    pub netns: NetnsId,
    /// That namespace's name below /run/netns, if it has one.
    pub netns_name: Option<String>,
    /// True for UDP, false for TCP.
    pub udp: bool,
    /// Its address and port.
    pub local: (IpAddr, u16),
    /// Packets, or connections refused by a full queue, that it dropped since its creation (`sk_drops`), if the kernel reports them.
    pub drops: Option<u64>,
    /// Its inode number, unique among the sockets of the host.
    pub inode: u64,
    /// The user who made it.
    pub uid: u32,
    /// To whom it is charged that it is there.
    pub holder: Holder,
    /// True in a network namespace that a user made without the host's leave: all of them are that user's.
    pub netns_is_users: bool,
    /// The name of the process that holds it, of several the one with the lowest pid; none if it is not visible.
    pub program: Option<String>,
}

/// Reads the sockets of all network namespaces. Namespaces that cannot be read are left out.
///
/// # Errors
/// The namespaces cannot be listed.
pub fn read_port_sockets(root: &Root) -> Result<Vec<PortSocket>, NetnsError> {
    let mut all = read_sockets(root, true)?;
    let inodes: BTreeSet<u64> = all.iter().map(|socket| socket.inode).filter(|inode| *inode != 0).collect();
    let mut socket_owners = SocketOwners::default();
    name(root, &mut all, socket_owners.refresh(root, &inodes, usize::MAX, &Stop::default()));
    Ok(all)
}

/// The sockets of all namespaces, without their programs.
fn read_sockets(root: &Root, with_udp: bool) -> Result<Vec<PortSocket>, NetnsError> {
    let mut all = Vec::new();
    for netns in netns::list(root)?.found {
        let named = netns.clone();
        let maker = made_by(&netns.path).map(Holder::of_user);
        let thread = spawn_inside(netns, root.clone(), move |inside| of_namespace(inside?.sockets(), with_udp));
        let Ok(Ok(Ok(sockets))) = thread.map(std::thread::JoinHandle::join) else { continue };
        all.extend(sockets.into_iter().take(SOCKETS_MAX).map(|(udp, socket)| PortSocket {
            netns: named.id,
            netns_name: named.name.clone(),
            udp,
            local: socket.local,
            drops: socket.drops,
            inode: socket.inode,
            uid: socket.uid,
            holder: maker.unwrap_or_else(|| Holder::of_user(socket.uid)),
            netns_is_users: maker.is_some(),
            program: None,
        }));
    }
    Ok(all)
}

/// Sets their programs, and whose these are.
fn name(root: &Root, sockets: &mut [PortSocket], holding: &PidsBySocket) {
    for socket in sockets {
        let Some(pid) = holding.get(&socket.inode).and_then(|pids| pids.first()) else { continue };
        socket.program = program(root, *pid);
        // What root made is root's, also where a process without rights serves; and nobody's socket becomes root's because a process of root's holds it.
        let holder = Holder::of_process(&root.path("proc"), *pid);
        if !socket.netns_is_users && !socket.holder.is_own() && !holder.is_own() && holder != Holder::Unknown {
            socket.holder = holder;
        }
    }
}

fn program(root: &Root, pid: u32) -> Option<String> {
    match root.read_process(pid, "comm", NAME_BYTES_MAX, None) {
        chokepoint_recording::Outcome::Ok(name) => {
            // A name may have anything in it, and it goes into lines.
            let name = String::from_utf8_lossy(&name);
            Some(chokepoint_foreign::printable(name.strip_suffix('\n').unwrap_or(&name)).into_owned())
        }
        _ => None,
    }
}

/// Most descriptors to look at in one of the later searches of [`PortSearch`]: about 20 ms.
const LINKS_MAX: usize = 10_000;

/// The TCP listeners of the host, again and again. What is known of the processes that hold them is kept: a later search looks only at those that are new, and a part of
/// the others where a listener is.
#[derive(Debug, Default)]
pub struct PortSearch {
    owners: SocketOwners,
    has_searched: bool,
}

impl PortSearch {
    /// The listeners now, those of UDP left out. Namespaces that cannot be read are left out, and of a new listener the program may be missing at first.
    ///
    /// # Errors
    /// The namespaces cannot be listed.
    pub fn listeners(&mut self, root: &Root) -> Result<Vec<PortSocket>, NetnsError> {
        let mut all = read_sockets(root, false)?;
        let inodes: BTreeSet<u64> = all.iter().map(|socket| socket.inode).filter(|inode| *inode != 0).collect();
        let links_max = if self.has_searched { LINKS_MAX } else { usize::MAX };
        self.has_searched = true;
        let holding = self.owners.refresh(root, &inodes, links_max, &Stop::default());
        name(root, &mut all, holding);
        Ok(all)
    }
}

/// The names of the processes that hold sockets, by the sockets' inode numbers; of several processes the one with the lowest pid. Sockets without a visible
/// process are left out.
pub fn read_socket_programs(root: &Root, inodes: &BTreeSet<u64>) -> BTreeMap<u64, String> {
    let mut socket_owners = SocketOwners::default();
    let holding = socket_owners.refresh(root, inodes, usize::MAX, &Stop::default());
    inodes.iter().filter_map(|inode| Some((*inode, program(root, *holding.get(inode)?.first()?)?))).collect()
}

fn of_namespace(sockets: &Sockets, with_udp: bool) -> Result<Vec<(bool, inet::InetSocket)>, ReadError> {
    let mut found = Vec::new();
    // UDP may not be listable (INET_UDP_DIAG is a separate module). TCP counts anyway.
    collect(sockets, &inet::listeners(), false, &mut found)?;
    for family in [AF_INET, AF_INET6].into_iter().filter(|_| with_udp) {
        let part = DumpRequest { label: "UDP", kind: SOCK_DIAG_BY_FAMILY, body: inet::udp(family) };
        let _ = collect(sockets, &DumpRequests { first: part, fallback: Vec::new() }, true, &mut found);
    }
    Ok(found)
}

fn collect(sockets: &Sockets, parts: &DumpRequests, udp: bool, found: &mut Vec<(bool, inet::InetSocket)>) -> Result<(), ReadError> {
    walk(sockets.diag(), parts, &mut |message| {
        if let DiagSocket::Inet(socket) = parse_socket(message)? {
            found.push((udp, socket));
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_sockets_are_found_with_their_program_and_drops_of_a_full_buffer() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let full = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let (tcp, udp) = (listener.local_addr().unwrap(), full.local_addr().unwrap());
        let read = || read_port_sockets(&Root::default()).unwrap();
        let find = |all: &[PortSocket], udp: bool, at: std::net::SocketAddr| {
            let own = netns::own().unwrap();
            all.iter().find(|socket| socket.udp == udp && socket.local == (at.ip(), at.port()) && socket.netns == own).cloned()
        };
        let before = read();
        let found = find(&before, false, tcp).expect("the listener");
        let name = std::fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!((found.program.as_deref(), found.drops), (Some(name.trim_end()), Some(0)));
        let Some(first) = find(&before, true, udp) else {
            return eprintln!("skipped: this kernel cannot list UDP sockets (INET_UDP_DIAG)");
        };
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..4000 {
            sender.send_to(&[0; 1000], udp).unwrap();
        }
        let last = find(&read(), true, udp).expect("the socket");
        assert!(last.drops > first.drops, "{first:?} {last:?}");
    }

    #[test]
    fn listeners_are_found_again_with_their_program() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut search = PortSearch::default();
        let name = std::fs::read_to_string("/proc/self/comm").unwrap();
        let mut program = |address: std::net::SocketAddr| {
            let found = search.listeners(&Root::default()).unwrap();
            let at =
                found.into_iter().find(|socket| socket.local == (address.ip(), address.port()) && socket.netns == netns::own().unwrap());
            at.map(|socket| socket.program)
        };
        let own = || Some(Some(name.trim_end().to_owned()));
        assert_eq!([program(listener.local_addr().unwrap()), program(listener.local_addr().unwrap())], [own(), own()]);
        assert_eq!(program(udp.local_addr().unwrap()), None);
        // This process is known, so that it is searched for another one once that has stayed.
        let second = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
        assert_eq!(program(second.unwrap()), None, "it is gone");
        let third = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!([program(third.local_addr().unwrap()), program(third.local_addr().unwrap())], [Some(None), own()]);
    }
}
