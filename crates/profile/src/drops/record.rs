//! Parses the records of `socket.bpf.c`: a kind of drops (`struct kind`) and its count (`struct counted`).

use std::net::{Ipv6Addr, SocketAddr};

use super::named::{DropKey, DropSocket};

/// Bytes of `struct kind` and `struct counted`.
pub(super) const KIND_BYTES: usize = 80;
pub(super) const COUNTED_BYTES: usize = 16;

/// `flags` of a kind.
const FOR_SOCKET: u8 = 1;
const KNOWS_SOCKETS: u8 = 2;
const KERNEL_THREAD: u8 = 4;
const IDLE: u8 = 8;
/// The lowest number of a namespace. The initial ones are just below 0xf0000000, all others above (linux/proc_ns.h). A lower number is not a namespace: the
/// packet's field for the interface holds other data while it waits in a queue.
const NAMESPACE_MIN: u32 = 0xefff_fff0;

/// Names of include/net/tcp_states.h, starting with 1.
const STATES: &[&str] = &[
    "ESTABLISHED",
    "SYN_SENT",
    "SYN_RECV",
    "FIN_WAIT1",
    "FIN_WAIT2",
    "TIME_WAIT",
    "CLOSE",
    "CLOSE_WAIT",
    "LAST_ACK",
    "LISTEN",
    "CLOSING",
    "NEW_SYN_RECV",
];

/// A kind of drops and its number of packets.
pub(super) fn read(kind: &[u8; KIND_BYTES], counted: &[u8; COUNTED_BYTES]) -> (DropKey, u64) {
    let flags = kind[28];
    let word = |at: usize| u32::from_ne_bytes(field(kind, at));
    let half = |at: usize| u16::from_ne_bytes(field(kind, at));
    let namespace = |at: usize| Some(word(at)).filter(|number| *number >= NAMESPACE_MIN).map(u64::from);
    let address = |at: usize, port: u16| (port != 0).then(|| SocketAddr::new(Ipv6Addr::from(field::<16>(kind, at)).to_canonical(), port));
    let transport = match kind[26] {
        6 => Some("tcp"),
        17 => Some("udp"),
        _ => None,
    };
    let state = usize::from(kind[27]).checked_sub(1).filter(|_| transport == Some("tcp")).and_then(|at| STATES.get(at).copied());
    let (program, program_namespace) = match (flags & IDLE, flags & KERNEL_THREAD) {
        (0, 0) => (name(kind), namespace(12)),
        (0, _) => (format!("[{}]", name(kind)), None),
        _ => ("[idle]".to_owned(), None),
    };
    let read = DropKey {
        reason: word(8).into(),
        location: u64::from_ne_bytes(field(kind, 0)),
        protocol: half(20).into(),
        socket: if flags & FOR_SOCKET != 0 { Some(true) } else { (flags & KNOWS_SOCKETS != 0).then_some(false) },
        program,
        program_namespace,
        end: DropSocket {
            transport,
            state,
            namespace: namespace(16),
            local: address(32, half(22)),
            remote: address(48, half(24)),
            inode: Some(u64::from_ne_bytes(field(counted, 8))).filter(|inode| *inode != 0),
        },
    };
    (read, u64::from_ne_bytes(field(counted, 0)))
}

/// The bytes of a field; zeros beyond the end.
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes.get(at + index).copied().unwrap_or(0))
}

/// The program's name, up to its first NUL.
fn name(kind: &[u8; KIND_BYTES]) -> String {
    let bytes = field::<16>(kind, 64);
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind(parts: &[(usize, &[u8])]) -> [u8; KIND_BYTES] {
        let mut kind = [0; KIND_BYTES];
        for (at, bytes) in parts {
            kind[*at..*at + bytes.len()].copy_from_slice(bytes);
        }
        kind
    }

    fn mapped(address: [u8; 4]) -> [u8; 16] {
        std::net::Ipv4Addr::from(address).to_ipv6_mapped().octets()
    }

    #[test]
    fn all_fields_of_a_server_connection_are_read() {
        let (here, there) = (mapped([10, 0, 0, 1]), mapped([10, 0, 0, 2]));
        let parts: [(usize, &[u8]); 11] = [
            (0, &0xffff_ffff_8100_0010_u64.to_ne_bytes()),
            (8, &6_u32.to_ne_bytes()),
            (12, &0xf000_0001_u32.to_ne_bytes()),
            (16, &0xefff_fff9_u32.to_ne_bytes()),
            (20, &0x0800_u16.to_ne_bytes()),
            (22, &80_u16.to_ne_bytes()),
            (24, &4000_u16.to_ne_bytes()),
            (26, &[6, 1, FOR_SOCKET | KNOWS_SOCKETS]),
            (32, &here),
            (48, &there),
            (64, b"nginx\0x"),
        ];
        let counted = [7_u64.to_ne_bytes(), 4711_u64.to_ne_bytes()].concat().try_into().unwrap();
        let (kind, count) = read(&kind(&parts), &counted);
        let end = DropSocket {
            transport: Some("tcp"),
            state: Some("ESTABLISHED"),
            namespace: Some(0xefff_fff9),
            local: "10.0.0.1:80".parse().ok(),
            remote: "10.0.0.2:4000".parse().ok(),
            inode: Some(4711),
        };
        let expected = DropKey {
            reason: 6,
            location: 0xffff_ffff_8100_0010,
            protocol: 0x0800,
            socket: Some(true),
            program: "nginx".to_owned(),
            program_namespace: Some(0xf000_0001),
            end,
        };
        assert_eq!((kind, count), (expected, 7));
    }

    #[test]
    fn unknown_fields_are_absent() {
        let (empty, count) = read(&[0; KIND_BYTES], &[0; COUNTED_BYTES]);
        assert_eq!((empty, count), (DropKey::default(), 0));
        // A field that is no namespace, an IPv6 wildcard address without a remote end, a kernel thread, and a kernel that knows there is no socket.
        let odd = kind(&[
            (16, &17_u32.to_ne_bytes()),
            (22, &53_u16.to_ne_bytes()),
            (26, &[17, 7, KNOWS_SOCKETS | KERNEL_THREAD]),
            (64, b"ksoftirqd/0"),
        ]);
        let (odd, _) = read(&odd, &[0; COUNTED_BYTES]);
        assert_eq!((odd.socket, odd.program.as_str(), odd.end.namespace), (Some(false), "[ksoftirqd/0]", None));
        assert_eq!((odd.end.local, odd.end.remote, odd.end.transport, odd.end.state), ("[::]:53".parse().ok(), None, Some("udp"), None));
        assert_eq!(read(&kind(&[(28, &[IDLE])]), &[0; COUNTED_BYTES]).0.program, "[idle]");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_read(kind: [u8; KIND_BYTES], counted: [u8; COUNTED_BYTES]) {
            let (read, count) = read(&kind, &counted);
            prop_assert_eq!(count, u64::from_ne_bytes(counted[..8].try_into().unwrap()));
            prop_assert!(read.end.state.is_none() || read.end.transport == Some("tcp"));
            prop_assert!(read.end.local.is_none_or(|local| local.port() != 0));
        }
    }
}
