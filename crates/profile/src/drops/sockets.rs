//! Counts drops with their sockets: loads `socket.bpf.c` into the kernel and reads its counts. Everything disappears with its descriptors.

use std::time::{Duration, Instant};

use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, MapError};
use aya::programs::{ProgramError, RawTracePoint};

use super::named::DropCounts;
use super::reasons::DropTracepoint;
use super::record::{COUNTED_BYTES, KIND_BYTES, read};
use crate::error::Error;
use crate::sampling::event::is_refusal;

/// The BPF program, compiled by clang when this crate is built.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/socket.o"));
/// The kernel's own types, by which fields are found.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Time between two calls of `go_on`.
const GO_ON_EVERY: Duration = Duration::from_millis(100);
/// Maximum number of kinds, as `KINDS_MAX` of the BPF program. Iterating over a map that changes meanwhile might not end otherwise.
const KINDS_MAX: usize = 16_384;

/// A loaded program that is not attached yet.
#[derive(Debug)]
pub(super) struct Sockets {
    object: Ebpf,
    program: &'static str,
}

impl Sockets {
    /// Loads the program.
    ///
    /// # Errors
    /// If the kernel does not describe its types, or refuses: privileges, lockdown, no BPF support.
    pub(super) fn open(drop_tracepoint: &DropTracepoint) -> Result<Self, Error> {
        if let Some(missing) = missing_types() {
            return Err(Error::Missing(missing));
        }
        let mut object = Ebpf::load(OBJECT).map_err(|error| refused(&error))?;
        let map = object.map_mut("ordinary").ok_or_else(absent)?;
        let mut no_loss: HashMap<&mut MapData, u32, u32> = HashMap::try_from(map).map_err(|error| refused(&error))?;
        for (number, _) in &drop_tracepoint.no_loss {
            no_loss.insert(u32::try_from(*number).unwrap_or(u32::MAX), 1, 0).map_err(|error| refused(&error))?;
        }
        // The kernel refuses a program that reads more arguments than the tracepoint has.
        let knows_sockets = drop_tracepoint.format.fields.iter().any(|field| field.name == "rx_sk");
        let program = if knows_sockets { "dropped_for_socket" } else { "dropped" };
        let mut sockets = Self { object, program };
        sockets.program()?.load().map_err(|error| refused(&error))?;
        // Attaching may be refused even if loading was not. Try it now; drops count from `run` on.
        let link = sockets.program()?.attach("kfree_skb").map_err(|error| refused(&error))?;
        sockets.program()?.detach(link).map_err(|error| refused(&error))?;
        Ok(sockets)
    }

    fn program(&mut self) -> Result<&mut RawTracePoint, Error> {
        let program = self.object.program_mut(self.program).ok_or_else(absent)?;
        program.try_into().map_err(|error: ProgramError| refused(&error))
    }

    /// Counts while `go_on` returns true.
    pub(super) fn run(mut self, begin: Instant, mut go_on: impl FnMut(Duration) -> bool) -> Result<DropCounts, Error> {
        let link = self.program()?.attach("kfree_skb").map_err(|error| refused(&error))?;
        while go_on(begin.elapsed()) {
            std::thread::sleep(GO_ON_EVERY);
        }
        let duration = begin.elapsed();
        self.program()?.detach(link).map_err(|error| refused(&error))?;
        self.counted(duration).map_err(|error| refused(&error))
    }

    fn counted(&self, duration: Duration) -> Result<DropCounts, MapError> {
        let map = |name: &'static str| self.object.map(name).ok_or(MapError::InvalidName { name: name.to_owned() });
        let drops: HashMap<&MapData, [u8; KIND_BYTES], [u8; COUNTED_BYTES]> = HashMap::try_from(map("drops")?)?;
        let lost: Array<&MapData, u64> = Array::try_from(map("lost")?)?;
        let kinds = drops.iter().take(KINDS_MAX).map(|entry| entry.map(|(kind, counted)| read(&kind, &counted)));
        Ok(DropCounts { kinds: kinds.collect::<Result<_, _>>()?, lost: lost.get(&0, 0)?, duration })
    }
}

/// What the kernel lacks if it does not describe its types.
pub(super) fn missing_types() -> Option<String> {
    (!crate::host::exists(BTF)).then(|| format!("this kernel does not describe its types for BPF ({BTF}, CONFIG_DEBUG_INFO_BTF)"))
}

/// Why the kernel refuses, with all causes, and the capability if it is a matter of privilege.
fn refused(error: &(dyn std::error::Error + 'static)) -> Error {
    let mut text = format!("BPF: {error}");
    let mut cause = Some(error);
    let mut is_privilege = false;
    while let Some(behind) = cause {
        is_privilege |= behind.downcast_ref::<std::io::Error>().is_some_and(is_refusal);
        let found = behind.to_string();
        if !text.contains(&found) {
            text = format!("{text}: {found}");
        }
        cause = behind.source();
    }
    // The verifier's log has many lines; the first one states the error.
    let first = text.lines().next().unwrap_or_default();
    Error::Missing(format!("{first}{}", if is_privilege { "; it needs CAP_BPF and CAP_PERFMON" } else { "" }))
}

fn absent() -> Error {
    Error::Missing("BPF: the program in the kernel differs from the built one".to_owned())
}

#[cfg(test)]
mod live {
    use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

    use super::super::named::DropKey;
    use super::*;

    /// The counts while packets go to ports without a listener, of both families and protocols, and those ports.
    fn refusals(knows_sockets: bool) -> Option<(DropCounts, Vec<(&'static str, SocketAddr)>)> {
        let mut drop_tracepoint = match DropTracepoint::find() {
            Ok((_, drop_tracepoint)) => drop_tracepoint,
            Err(error) => {
                eprintln!("skipped: {error}");
                return None;
            }
        };
        if !knows_sockets {
            drop_tracepoint.format.fields.retain(|field| field.name != "rx_sk");
        }
        let sockets = match Sockets::open(&drop_tracepoint) {
            Ok(sockets) => sockets,
            Err(error) => {
                eprintln!("skipped: {error}");
                return None;
            }
        };
        // Ports that are in use by connected sockets: no other process gets them, and nobody there accepts strangers.
        let (mut closed, mut taken) = (Vec::new(), Vec::new());
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let (Ok(listener), Ok(socket)) = (TcpListener::bind(host), UdpSocket::bind(host)) else { continue };
            let (asking, at) = (TcpStream::connect(listener.local_addr().unwrap()).unwrap(), socket.local_addr().unwrap());
            socket.connect(at).unwrap();
            closed.extend([("tcp", asking.local_addr().unwrap()), ("udp", at)]);
            taken.push((listener, asking, socket));
        }
        let senders: Vec<UdpSocket> = ["127.0.0.1:0", "[::1]:0"].iter().filter_map(|host| UdpSocket::bind(host).ok()).collect();
        let counted = sockets.run(Instant::now(), |elapsed| {
            for (transport, at) in &closed {
                // Refusals come back as errors. They are expected.
                match *transport {
                    "tcp" => drop(TcpStream::connect(at)),
                    _ => senders.iter().for_each(|sender| drop(sender.send_to(b"x", at))),
                }
            }
            elapsed < Duration::from_millis(300)
        });
        Some((counted.expect("counting runs"), closed))
    }

    #[test]
    fn a_packet_without_a_socket_has_its_destination() {
        // Before Linux 6.11 the tracepoint has no socket. The program for those kernels runs on all.
        for knows_sockets in [true, false] {
            let Some((counted, closed)) = refusals(knows_sockets) else { return };
            for (transport, at) in closed {
                let there = |kind: &&DropKey| kind.end.local == Some(at) && kind.end.transport == Some(transport);
                let found: Vec<&DropKey> = counted.kinds.iter().map(|(kind, _)| kind).filter(there).collect();
                assert!(!found.is_empty() || counted.lost > 0, "{transport} {at}: {counted:?}");
                assert!(found.iter().all(|kind| kind.socket == knows_sockets.then_some(false) && kind.end.remote.is_none()), "{found:?}");
            }
        }
    }
}
