//! Drops with their sockets: the program `socket.bpf.c` in the kernel, which counts by kind, and what it counted. All of it goes with its descriptors.

use std::time::{Duration, Instant};

use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, MapError};
use aya::programs::{ProgramError, RawTracePoint};

use super::Reasons;
use super::named::Counted;
use super::record::{COUNTED_BYTES, KIND_BYTES, read};
use crate::error::Error;
use crate::sampler::is_refusal;

/// The program as clang made it when this crate was built.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/socket.o"));
/// The kernel's own types, by which fields are found.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Time between two questions whether to go on.
const TICK: Duration = Duration::from_millis(100);
/// Kinds at most, as `KINDS_MAX` of the program: a walk through a map that changes meanwhile need not end.
const KINDS_MAX: usize = 16_384;

/// A program that is in the kernel and not attached yet.
#[derive(Debug)]
pub(super) struct Sockets {
    object: Ebpf,
    program: &'static str,
}

impl Sockets {
    /// Loads it.
    ///
    /// # Errors
    /// Where the kernel does not describe its types, or refuses: privileges, lockdown, a build without BPF.
    pub(super) fn open(reasons: &Reasons) -> Result<Self, Error> {
        if let Some(missing) = no_types() {
            return Err(Error::Missing(missing));
        }
        let mut object = Ebpf::load(OBJECT).map_err(|error| refused(&error))?;
        let map = object.map_mut("ordinary").ok_or_else(absent)?;
        let mut ordinary: HashMap<&mut MapData, u32, u32> = HashMap::try_from(map).map_err(|error| refused(&error))?;
        for (number, _) in &reasons.ordinary {
            ordinary.insert(u32::try_from(*number).unwrap_or(u32::MAX), 1, 0).map_err(|error| refused(&error))?;
        }
        // The number of arguments is the tracepoint's; one too many and the kernel refuses.
        let tells_sockets = reasons.format.fields.iter().any(|field| field.name == "rx_sk");
        let program = if tells_sockets { "dropped_for_socket" } else { "dropped" };
        let mut sockets = Self { object, program };
        sockets.program()?.load().map_err(|error| refused(&error))?;
        // What may not be attached may be refused here alone; drops count from `run` on.
        let link = sockets.program()?.attach("kfree_skb").map_err(|error| refused(&error))?;
        sockets.program()?.detach(link).map_err(|error| refused(&error))?;
        Ok(sockets)
    }

    fn program(&mut self) -> Result<&mut RawTracePoint, Error> {
        let program = self.object.program_mut(self.program).ok_or_else(absent)?;
        program.try_into().map_err(|error: ProgramError| refused(&error))
    }

    /// Counts for as long as `go_on` says so.
    pub(super) fn run(mut self, begin: Instant, mut go_on: impl FnMut(Duration) -> bool) -> Result<Counted, Error> {
        let link = self.program()?.attach("kfree_skb").map_err(|error| refused(&error))?;
        while go_on(begin.elapsed()) {
            std::thread::sleep(TICK);
        }
        let duration = begin.elapsed();
        self.program()?.detach(link).map_err(|error| refused(&error))?;
        self.counted(duration).map_err(|error| refused(&error))
    }

    fn counted(&self, duration: Duration) -> Result<Counted, MapError> {
        let map = |name: &'static str| self.object.map(name).ok_or(MapError::InvalidName { name: name.to_owned() });
        let drops: HashMap<&MapData, [u8; KIND_BYTES], [u8; COUNTED_BYTES]> = HashMap::try_from(map("drops")?)?;
        let lost: Array<&MapData, u64> = Array::try_from(map("lost")?)?;
        let kinds = drops.iter().take(KINDS_MAX).map(|entry| entry.map(|(kind, counted)| read(&kind, &counted)));
        Ok(Counted { kinds: kinds.collect::<Result<_, _>>()?, lost: lost.get(&0, 0)?, duration })
    }
}

/// What a kernel lacks that does not describe its types.
pub(super) fn no_types() -> Option<String> {
    (!crate::host::exists(BTF)).then(|| format!("this kernel does not describe its types for BPF ({BTF}, CONFIG_DEBUG_INFO_BTF)"))
}

/// Why the kernel refuses, with what is behind it, and what it takes where it is a privilege.
fn refused(error: &(dyn std::error::Error + 'static)) -> Error {
    let mut text = format!("BPF: {error}");
    let mut cause = Some(error);
    let mut is_privilege = false;
    while let Some(behind) = cause {
        is_privilege |= behind.downcast_ref::<std::io::Error>().is_some_and(is_refusal);
        let told = behind.to_string();
        if !text.contains(&told) {
            text = format!("{text}: {told}");
        }
        cause = behind.source();
    }
    // The verifier's log has many lines; the first says what it is about.
    let first = text.lines().next().unwrap_or_default();
    Error::Missing(format!("{first}{}", if is_privilege { "; it takes CAP_BPF and CAP_PERFMON" } else { "" }))
}

fn absent() -> Error {
    Error::Missing("BPF: the program in the kernel is not as it was built".to_owned())
}

#[cfg(test)]
mod live {
    use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

    use super::super::named::Kind;
    use super::*;

    /// What was counted while packets went to ports where nobody listens, of both families and protocols, and those ports.
    fn refusals(tells_sockets: bool) -> Option<(Counted, Vec<(&'static str, SocketAddr)>)> {
        let mut reasons = match Reasons::find() {
            Ok((_, reasons)) => reasons,
            Err(error) => {
                eprintln!("skipped: {error}");
                return None;
            }
        };
        if !tells_sockets {
            reasons.format.fields.retain(|field| field.name != "rx_sk");
        }
        let sockets = match Sockets::open(&reasons) {
            Ok(sockets) => sockets,
            Err(error) => {
                eprintln!("skipped: {error}");
                return None;
            }
        };
        // Ports that are taken, so that nobody else gets them, and where nobody hears a stranger: those of connections.
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
                // Refusals come back as errors, which is what is asked for.
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
    fn a_packet_without_a_socket_tells_where_it_was_to_go() {
        // Before Linux 6.11 the tracepoint tells no socket: that program is for those kernels, and runs on all.
        for tells_sockets in [true, false] {
            let Some((counted, closed)) = refusals(tells_sockets) else { return };
            for (transport, at) in closed {
                let there = |kind: &&Kind| kind.end.local == Some(at) && kind.end.transport == Some(transport);
                let told: Vec<&Kind> = counted.kinds.iter().map(|(kind, _)| kind).filter(there).collect();
                assert!(!told.is_empty() || counted.lost > 0, "{transport} {at}: {counted:?}");
                assert!(told.iter().all(|kind| kind.socket == tells_sockets.then_some(false) && kind.end.remote.is_none()), "{told:?}");
            }
        }
    }
}
