//! Prefills: UDP flows, each from its own port. Each becomes one entry in every conntrack table on its way.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use super::builder::Builder;
use crate::error::LabError;
use crate::machine::netns;
use crate::scenario::placeholder;

/// Source ports are taken from the top down; servers listen on low ports.
const PORT_MAX: u16 = 65_535;
const PORT_MIN: u16 = 1024;
/// Every datagram is sent in each round: one may be lost during neighbour discovery, and a repetition adds no entry.
const ROUNDS: u32 = 2;
/// Datagrams before a pause of a millisecond, which keeps them below a CPU's receive queue (net.core.netdev_max_backlog, 1000).
const BURST: usize = 200;

/// The next free port by host and target. Two prefills to one target must not share ports.
#[derive(Default)]
pub(crate) struct Ports(BTreeMap<(String, SocketAddr), u16>);

impl Ports {
    /// Opens `flows` flows from the namespace to `to`.
    pub(crate) fn send(&mut self, host: &str, netns_path: &Path, to: SocketAddr, flows: u32) -> io::Result<()> {
        let next = self.0.entry((host.to_owned(), to)).or_insert(PORT_MAX);
        let first = *next;
        *next = netns::inside(netns_path, || send_all(to, flows, first))??;
        Ok(())
    }
}

fn send_all(to: SocketAddr, flows: u32, first: u16) -> io::Result<u16> {
    let mut ports = Vec::new();
    let mut port = first;
    for round in 0..ROUNDS {
        let mut sent = 0;
        while round == 0 && sent < flows as usize || round > 0 && sent < ports.len() {
            let source = if round == 0 { port } else { ports[sent] };
            if send_one(source, to)? {
                if round == 0 {
                    ports.push(source);
                }
                sent += 1;
            } else if round > 0 {
                // Another socket took the port after the first round. The entry exists already.
                sent += 1;
            }
            if round == 0 {
                port = port.checked_sub(1).filter(|port| *port >= PORT_MIN).ok_or_else(no_port)?;
            }
            if sent % BURST == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
    Ok(port)
}

fn no_port() -> io::Error {
    io::Error::new(io::ErrorKind::AddrNotAvailable, "there are not enough source ports for so many flows to one address")
}

/// Sends one byte from a port. False where the port is in use.
fn send_one(port: u16, to: SocketAddr) -> io::Result<bool> {
    let own = match to {
        SocketAddr::V4(_) => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port),
        SocketAddr::V6(_) => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
    };
    let socket = match UdpSocket::bind(own) {
        Ok(socket) => socket,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Ok(false),
        Err(error) => return Err(error),
    };
    socket.send_to(b".", to).map(|_| true)
}

impl Builder<'_, '_> {
    pub(super) fn prefills(&mut self) -> Result<(), LabError> {
        let scenario = self.scenario;
        let mut ports = Ports::default();
        for prefill in &scenario.prefills {
            let to = placeholder::expand(&prefill.to, &self.values("", None)).map_err(LabError::Scenario)?;
            let address = to.parse().map_err(|_| LabError::Scenario(format!("prefill: \"{to}\" is not an address with a port")))?;
            self.step(&format!("{} flows from {} to {to}", prefill.flows, prefill.host), |_| ())?;
            let failed = |error| LabError::Scenario(format!("prefill from host \"{}\" to {to}: {error}", prefill.host));
            ports.send(&prefill.host, &self.netns_path(&prefill.host), address, prefill.flows).map_err(failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_flow_has_a_port_of_its_own_and_prefills_do_not_overlap() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let to = receiver.local_addr().unwrap();
        let mut ports = Ports::default();
        for _ in 0..2 {
            match ports.send("h", Path::new("/proc/self/ns/net"), to, 50) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    println!("skipped: entering a namespace needs CAP_SYS_ADMIN");
                    return;
                }
                other => other.unwrap(),
            }
        }
        let mut sources = BTreeSet::new();
        let mut byte = [0; 8];
        while let Ok((_, from)) = receiver.recv_from(&mut byte) {
            sources.insert(from.port());
        }
        assert_eq!(sources.len(), 100);
    }

    #[test]
    fn more_flows_than_ports_are_refused() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let error = send_all(receiver.local_addr().unwrap(), 10, PORT_MIN + 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }
}
