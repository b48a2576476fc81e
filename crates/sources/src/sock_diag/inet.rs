//! TCP sockets as sock_diag(7) gives them: `struct inet_diag_req_v2`, `struct inet_diag_msg` and their attributes (linux/inet_diag.h).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chokepoint_model::observation::{TcpState, Wait};

use super::crowd::CrowdedPort;
use super::protocol::{AF_INET, AF_INET6, DiagError, DumpRequest, DumpRequests, SOCK_DIAG_BY_FAMILY, TCPDIAG_GETSOCK};
use crate::netlink::wire::{ATTRIBUTE_HEADER_BYTES, Message, attributes, u32_at};

/// Bytes of `struct inet_diag_msg`.
pub(super) const MESSAGE_BYTES: usize = 72;
/// Offset and length of its `id` (`struct inet_diag_sockid`: ports, addresses, interface and cookie).
pub(super) const ID_AT: usize = 4;
pub(super) const ID_BYTES: usize = 48;
/// Offset of its `idiag_wqueue`.
pub(super) const SEND_QUEUE_AT: usize = 60;
/// Offsets of its addresses: `id.idiag_src` and `id.idiag_dst`, sixteen bytes each.
pub(crate) const ADDRESSES_AT: [usize; 2] = [8, 24];
const INET_DIAG_REQ_BYTECODE: u16 = 1;
pub(super) const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_SKMEMINFO: u16 = 7;
const INET_DIAG_SKV6ONLY: u16 = 11;
/// `SK_MEMINFO_SNDBUF` and `SK_MEMINFO_WMEM_QUEUED`: the fourth and the sixth word (linux/sock_diag.h).
const SK_MEMINFO_SNDBUF: usize = 3;
const SK_MEMINFO_WMEM_QUEUED: usize = 5;
/// `SK_MEMINFO_DROPS`: the ninth word (linux/sock_diag.h).
const SK_MEMINFO_DROPS: usize = 8;
/// `idiag_timer` of a socket in TIME_WAIT (net/ipv4/inet_diag.c, inet_twsk_diag_fill).
const TIMER_TIME_WAIT: u8 = 3;

/// `idiag_ext` for struct tcp_info and the memory of buffers.
const EXTENSIONS_INFO: u8 = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_SKMEMINFO - 1);

/// All states but LISTEN and TIME_WAIT: 1 to 5, 7 to 9, 11 and 12.
const STATES_CONNECTED: u32 = 0b1_1011_1011_1110;
/// The same without handshakes, which have no struct tcp_info.
const STATES_WITH_INFO: u32 = STATES_CONNECTED & !STATES_SHAKING;
/// Handshakes at the accepting side.
const STATES_SHAKING: u32 = 1 << TcpState::SynRecv as u32 | 1 << TcpState::NewSynRecv as u32;
/// The other states that can hold a request: a connection before its response, also while one side has closed.
const STATES_WITH_REQUESTS: u32 = 1 << TcpState::Established as u32
    | 1 << TcpState::SynSent as u32
    | 1 << TcpState::FinWait1 as u32
    | 1 << TcpState::FinWait2 as u32
    | 1 << TcpState::CloseWait as u32;
const STATES_TIME_WAIT: u32 = 1 << TcpState::TimeWait as u32;
const STATES_LISTEN: u32 = 1 << TcpState::Listen as u32;

/// Requests listening sockets of both families, each with its dropped connections.
pub(super) fn listeners() -> DumpRequests {
    parts(1 << (INET_DIAG_SKMEMINFO - 1), STATES_LISTEN)
}

/// Requests all UDP sockets of a family, each with its dropped packets.
pub(super) fn udp(family: u8) -> Vec<u8> {
    let mut body = request(family, 1 << (INET_DIAG_SKMEMINFO - 1), u32::MAX);
    body[1] = libc::IPPROTO_UDP as u8;
    body
}

/// Requests all other sockets of both families, without those in TIME_WAIT.
pub(super) fn sockets() -> DumpRequests {
    parts(0, STATES_CONNECTED)
}

/// Requests the same without handshakes, each with its struct tcp_info and the memory of its buffers.
pub(super) fn sockets_with_info() -> DumpRequests {
    parts(EXTENSIONS_INFO, STATES_WITH_INFO)
}

/// Requests the sockets that can hold a request, each with its struct tcp_info.
pub(super) fn sockets_with_requests() -> DumpRequests {
    parts(1 << (INET_DIAG_INFO - 1), STATES_WITH_REQUESTS | STATES_SHAKING)
}

/// Requests the sockets that can hold a request: either the handshakes or the others, and only those that pass the filter, if there is one.
pub(super) fn sockets_with_requests_within(are_shaking: bool, program: Option<&[u8]>) -> DumpRequests {
    let states = if are_shaking { STATES_SHAKING } else { STATES_WITH_REQUESTS };
    let mut body = request_both(1 << (INET_DIAG_INFO - 1), states);
    let Some(program) = program else { return parts(1 << (INET_DIAG_INFO - 1), states) };
    append_filter(&mut body, program);
    DumpRequests { first: DumpRequest { label: "TCP", kind: TCPDIAG_GETSOCK, body }, fallback: Vec::new() }
}

/// Port that splits all sockets into two halves: those with both ports below it, and the others. The middle of Linux's default range of ephemeral ports
/// splits the connections of most servers and clients evenly.
const HALVES_AT: u16 = 46_884;

/// Requests one half of [`sockets_with_info`]: the upper one or the lower one.
pub(super) fn half_with_info(upper: bool) -> DumpRequests {
    let mut body = request_both(EXTENSIONS_INFO, STATES_WITH_INFO);
    append_filter(&mut body, &half(upper));
    DumpRequests { first: DumpRequest { label: "TCP", kind: TCPDIAG_GETSOCK, body }, fallback: Vec::new() }
}

/// The filter of one half: two comparisons, each followed by its port, as in [`excluding`]. For the upper half a failed comparison leads to the end, and a jump
/// beyond the end follows. The kernel accepts a filter only if the path of successful comparisons leads through all of it.
fn half(upper: bool) -> Vec<u8> {
    const JUMP: u8 = 1;
    const LOCAL_PORT_TO: u8 = 3;
    const REMOTE_PORT_TO: u8 = 5;
    let below = HALVES_AT - 1;
    let mut operations = vec![(LOCAL_PORT_TO, 8, 20_u16), (0, 0, below), (REMOTE_PORT_TO, 8, 12), (0, 0, below)];
    if upper {
        operations.push((JUMP, 4_u8, 8));
    }
    operations.iter().flat_map(|(code, yes, no)| [[*code, *yes], u16::to_ne_bytes(*no)].concat()).collect()
}

/// Appends a filter to a request: `struct nlattr` with its length and its kind, and the program.
fn append_filter(body: &mut Vec<u8>, program: &[u8]) {
    body.extend_from_slice(&u16::try_from(ATTRIBUTE_HEADER_BYTES + program.len()).unwrap_or(u16::MAX).to_ne_bytes());
    body.extend_from_slice(&INET_DIAG_REQ_BYTECODE.to_ne_bytes());
    body.extend_from_slice(program);
}

/// Requests all connected sockets except those at these ports. Handshakes at these ports are included.
pub(super) fn sockets_beside(ports: &[CrowdedPort]) -> DumpRequests {
    let mut body = request_both(0, STATES_CONNECTED);
    append_filter(&mut body, &excluding(ports));
    DumpRequests { first: DumpRequest { label: "TCP", kind: TCPDIAG_GETSOCK, body }, fallback: Vec::new() }
}

/// The filter that excludes connections at these ports, made of `struct inet_diag_bc_op` {code, yes, no}. `yes` and `no` are the distances to the next
/// operation. A socket passes if it arrives exactly at the end, and fails four bytes beyond it (net/ipv4/inet_diag.c, inet_diag_bc_run). Cgroup zero
/// identifies handshakes: they have no cgroup, unlike every socket of a process. A kernel that does not know an operation refuses the request (EINVAL).
fn excluding(ports: &[CrowdedPort]) -> Vec<u8> {
    const LOCAL_PORT_IS: u8 = 11;
    const REMOTE_PORT_IS: u8 = 12;
    const CGROUP_IS: u8 = 13;
    /// The comparison of the port, the port in the place of an operation, the comparison of the cgroup, and its 64 bits.
    const RULE_BYTES: usize = 20;
    let mut program = Vec::new();
    for (done, port) in ports.iter().enumerate() {
        let (code, number) = match port {
            CrowdedPort::Local(number) => (LOCAL_PORT_IS, *number),
            CrowdedPort::Remote(number) => (REMOTE_PORT_IS, *number),
        };
        let next = u16::try_from(RULE_BYTES).unwrap_or(u16::MAX);
        let excluded = u16::try_from((ports.len() - done) * RULE_BYTES - 8 + 4).unwrap_or(u16::MAX);
        let operations = [(code, 8, next), (0, 0, number), (CGROUP_IS, 12, excluded), (0, 0, 0), (0, 0, 0)];
        for (code, yes, no) in operations {
            program.extend_from_slice(&[code, yes]);
            program.extend_from_slice(&u16::to_ne_bytes(no));
        }
    }
    program
}

/// Requests sockets of both families in TIME_WAIT.
pub(super) fn time_waits() -> DumpRequests {
    parts(0, STATES_TIME_WAIT)
}

/// One request for both families, and one for each family on kernels that refuse it. The former is the older interface, but it walks the host's table of
/// connections only once, which is most of the cost with few sockets.
fn parts(extensions: u8, states: u32) -> DumpRequests {
    let both = DumpRequest { label: "TCP", kind: TCPDIAG_GETSOCK, body: request_both(extensions, states) };
    let one = |label, family| DumpRequest { label, kind: SOCK_DIAG_BY_FAMILY, body: request(family, extensions, states) };
    DumpRequests { first: both, fallback: vec![one("TCP over IPv4", AF_INET), one("TCP over IPv6", AF_INET6)] }
}

/// `struct inet_diag_req`: family, address lengths, extensions, an id of 48 bytes, states, and an id of a database that is not used.
fn request_both(extensions: u8, states: u32) -> Vec<u8> {
    let mut body = vec![AF_INET, 0, 0, extensions];
    body.resize(52, 0);
    body.extend_from_slice(&states.to_ne_bytes());
    body.resize(60, 0);
    body
}

/// `struct inet_diag_req_v2`: family, protocol, extensions, padding, states, and an id of 48 bytes that a dump leaves empty.
fn request(family: u8, extensions: u8, states: u32) -> Vec<u8> {
    let mut body = vec![family, libc::IPPROTO_TCP as u8, extensions, 0];
    body.extend_from_slice(&states.to_ne_bytes());
    body.resize(56, 0);
    body
}

/// Requests one socket by its addresses (`struct inet_diag_req_v2`), with its struct tcp_info and the memory of its buffers. Its cookie is not known
/// (INET_DIAG_NOCOOKIE).
pub(super) fn one_with_info(local: (IpAddr, u16), remote: (IpAddr, u16)) -> Vec<u8> {
    let family = if local.0.is_ipv4() && remote.0.is_ipv4() { AF_INET } else { AF_INET6 };
    let mut body = vec![family, libc::IPPROTO_TCP as u8, EXTENSIONS_INFO, 0];
    body.extend_from_slice(&STATES_WITH_INFO.to_ne_bytes());
    body.extend_from_slice(&local.1.to_be_bytes());
    body.extend_from_slice(&remote.1.to_be_bytes());
    for address in [local.0, remote.0] {
        let mut bytes = [0; 16];
        match address {
            IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => bytes = address.octets(),
        }
        body.extend_from_slice(&bytes);
    }
    body.extend_from_slice(&[0; 4]);
    body.extend_from_slice(&[0xff; 8]);
    body
}

/// Requests the same of a socket by the id that a dump gave. The id's cookie is unique, so no other socket with the same addresses matches.
pub(super) fn this_one_with_info(family: u8, id: &[u8; ID_BYTES]) -> Vec<u8> {
    let mut body = vec![family, libc::IPPROTO_TCP as u8, EXTENSIONS_INFO, 0];
    body.extend_from_slice(&STATES_WITH_INFO.to_ne_bytes());
    body.extend_from_slice(id);
    body
}

/// One TCP socket.
pub(super) struct InetSocket {
    pub(super) state: TcpState,
    pub(super) local: (IpAddr, u16),
    pub(super) remote: (IpAddr, u16),
    pub(super) receive_queue: u32,
    pub(super) send_queue: u32,
    pub(super) inode: u64,
    pub(super) uid: u32,
    pub(super) wait: Option<Wait>,
    pub(super) drops: Option<u64>,
    pub(super) v6_only: bool,
}

/// The sending side of a socket, from its attributes.
#[derive(Default)]
pub(super) struct SocketInfo<'a> {
    /// Bytes of struct tcp_info; empty if the socket has none.
    pub(super) info: &'a [u8],
    /// Limit and content of its send buffer, bytes with the kernel's overhead.
    pub(super) send_buffer: Option<(u32, u32)>,
}

/// Parses the attributes that [`sockets_with_info`] requests.
pub(super) fn measured<'a>(message: &Message<'a>) -> Result<SocketInfo<'a>, DiagError> {
    let (_, rest) = message.split("inet_diag_msg", MESSAGE_BYTES)?;
    let mut measured = SocketInfo::default();
    for attribute in attributes(rest) {
        let attribute = attribute?;
        let word = |place: usize| u32_at(attribute.value, 4 * place);
        match attribute.kind {
            INET_DIAG_INFO => measured.info = attribute.value,
            INET_DIAG_SKMEMINFO => measured.send_buffer = word(SK_MEMINFO_SNDBUF).zip(word(SK_MEMINFO_WMEM_QUEUED)),
            _ => {}
        }
    }
    Ok(measured)
}

/// The unique number of the socket (`idiag_cookie`); zero if the message is cut.
pub(super) fn cookie(message: &Message<'_>) -> u64 {
    let id = message.body.get(ID_AT..ID_AT + ID_BYTES);
    id.and_then(|id| id.last_chunk()).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// A TCP state by the kernel's number (include/net/tcp_states.h).
pub(super) fn state_of(number: u8) -> Option<TcpState> {
    use TcpState::*;
    const ALL: [TcpState; 12] =
        [Established, SynSent, SynRecv, FinWait1, FinWait2, TimeWait, Close, CloseWait, LastAck, Listen, Closing, NewSynRecv];
    ALL.into_iter().find(|state| *state as u8 == number)
}

pub(super) fn parse(message: &Message<'_>) -> Result<InetSocket, DiagError> {
    let (fixed, rest) = message.split("inet_diag_msg", MESSAGE_BYTES)?;
    let family = fixed[0];
    let word = |at| u32_at(fixed, at).unwrap_or(0);
    let port = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let mut socket = InetSocket {
        state: state_of(fixed[1]).ok_or(DiagError::State(fixed[1]))?,
        local: (address(family, fixed, ADDRESSES_AT[0]), port(4)),
        remote: (address(family, fixed, ADDRESSES_AT[1]), port(6)),
        receive_queue: word(56),
        send_queue: word(SEND_QUEUE_AT),
        inode: u64::from(word(68)),
        uid: word(64),
        wait: (fixed[2] == TIMER_TIME_WAIT).then(|| Wait { left_ms: word(52) }),
        drops: None,
        v6_only: false,
    };
    for attribute in attributes(rest) {
        let attribute = attribute?;
        match attribute.kind {
            INET_DIAG_SKMEMINFO => socket.drops = u32_at(attribute.value, 4 * SK_MEMINFO_DROPS).map(u64::from),
            INET_DIAG_SKV6ONLY => socket.v6_only = attribute.value.first().is_some_and(|flag| *flag != 0),
            _ => {}
        }
    }
    Ok(socket)
}

/// An address of sixteen bytes; IPv4 uses the first four. IPv4 traffic on a dual-stack socket has mapped addresses (`::ffff:a.b.c.d`, RFC 4291 2.5.5.2). They
/// are returned as IPv4.
fn address(family: u8, fixed: &[u8], at: usize) -> IpAddr {
    let bytes: [u8; 16] = fixed.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
    if family == AF_INET6 {
        IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
    } else {
        IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::wire::{messages, request as message_of};
    use crate::sock_diag::listeners::parse_listeners;
    use crate::sock_diag::sockets::parse_sockets;
    use chokepoint_model::observation::{ListenerAddress, SocketAddress};

    fn body(family: u8, state: u8, local: [u8; 16], remote: [u8; 16]) -> Vec<u8> {
        let mut body = vec![family, state, 0, 0, 0x1f, 0x90, 0x30, 0x39];
        body.extend_from_slice(&local);
        body.extend_from_slice(&remote);
        body.resize(MESSAGE_BYTES, 0);
        body[56..60].copy_from_slice(&11_u32.to_ne_bytes());
        body[60..64].copy_from_slice(&10_u32.to_ne_bytes());
        body[68..72].copy_from_slice(&4242_u32.to_ne_bytes());
        body
    }

    fn v4(a: u8, b: u8, c: u8, d: u8) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&[a, b, c, d]);
        bytes
    }

    #[test]
    fn a_listener_has_queue_limit_drops_and_v6_only() {
        let mut bytes = body(AF_INET6, 10, [0; 16], [0; 16]);
        bytes.extend_from_slice(&[40, 0, 7, 0]);
        for word in 0..9_u32 {
            bytes.extend_from_slice(&(word * 100).to_ne_bytes());
        }
        bytes.extend_from_slice(&[5, 0, 11, 0, 1, 0, 0, 0]);
        let listeners = parse_listeners(&message_of(SOCK_DIAG_BY_FAMILY, 2, 1, &bytes)).unwrap();
        let listener = &listeners[0];
        assert_eq!(listener.address, ListenerAddress::Tcp(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 8080));
        assert_eq!((listener.accept_queue, listener.accept_queue_limit, listener.drops), (11, 10, Some(800)));
        assert_eq!((listener.inode, listener.v6_only), (4242, true));
    }

    #[test]
    fn a_kernel_without_the_drop_counter_gives_none() {
        let mut bytes = body(AF_INET, 10, v4(127, 0, 0, 1), [0; 16]);
        bytes.extend_from_slice(&[36, 0, 7, 0]);
        bytes.extend_from_slice(&[0; 32]); // Eight words: kernels before 4.7.
        assert_eq!(parse_listeners(&message_of(SOCK_DIAG_BY_FAMILY, 2, 1, &bytes)).unwrap()[0].drops, None);
    }

    #[test]
    fn mapped_addresses_are_ipv4() {
        let mut mapped = [0; 16];
        mapped[10..].copy_from_slice(&[0xff, 0xff, 10, 1, 2, 3]);
        let sockets = parse_sockets(&message_of(SOCK_DIAG_BY_FAMILY, 2, 1, &body(AF_INET6, 1, mapped, mapped))).unwrap();
        let ip = IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3));
        assert_eq!(sockets[0].address, SocketAddress::Tcp { local: (ip, 8080), remote: (ip, 12345) });
    }

    #[test]
    fn time_wait_has_the_time_that_is_left() {
        let mut bytes = body(AF_INET, 6, v4(10, 0, 0, 1), v4(10, 0, 0, 2));
        bytes[2] = 3;
        bytes[52..56].copy_from_slice(&59_000_u32.to_ne_bytes());
        let sockets = parse_sockets(&message_of(SOCK_DIAG_BY_FAMILY, 2, 1, &bytes)).unwrap();
        assert_eq!((sockets[0].state, sockets[0].wait), (TcpState::TimeWait, Some(Wait { left_ms: 59_000 })));
    }

    /// Runs a filter like the kernel.
    fn passes(program: &[u8], local: u16, remote: u16, cgroup: u64) -> bool {
        let mut at = 0;
        while at < program.len() {
            let number = |at: usize| u16::from_ne_bytes([program[at], program[at + 1]]);
            let is = match program[at] {
                1 => false,
                3 => local <= number(at + 6),
                5 => remote <= number(at + 6),
                11 => local == number(at + 6),
                12 => remote == number(at + 6),
                13 => cgroup == u64::from_ne_bytes(program[at + 4..at + 12].try_into().unwrap()),
                other => panic!("operation {other}"),
            };
            at += if is { usize::from(program[at + 1]) } else { usize::from(number(at + 2)) };
        }
        at == program.len()
    }

    #[test]
    fn a_filter_excludes_the_connections_at_its_ports_and_nothing_else() {
        for ports in [
            &[CrowdedPort::Local(80)][..],
            &[CrowdedPort::Remote(443)],
            &[CrowdedPort::Local(80), CrowdedPort::Remote(443), CrowdedPort::Local(81)],
        ] {
            let program = excluding(ports);
            for (local, remote) in [(80, 5), (81, 5), (443, 5), (5, 443), (5, 80), (80, 443), (1, 2)] {
                let is_excluded = ports.contains(&CrowdedPort::Local(local)) || ports.contains(&CrowdedPort::Remote(remote));
                assert_eq!(passes(&program, local, remote, 1), !is_excluded, "{ports:?} {local} {remote}");
            }
        }
        assert!(excluding(&[]).is_empty());
        assert!(passes(&excluding(&[CrowdedPort::Local(80)]), 80, 5, 0), "a handshake");
    }

    #[test]
    fn each_socket_is_in_exactly_one_half() {
        for (local, remote, upper) in
            [(80, 50_000, true), (50_000, 80, true), (80, 40_000, false), (40_000, 80, false), (HALVES_AT, 1, true)]
        {
            assert_eq!(
                (passes(&half(true), local, remote, 1), passes(&half(false), local, remote, 1)),
                (upper, !upper),
                "{local} {remote}"
            );
        }
    }

    #[test]
    fn every_cut_and_every_state_gives_a_socket_or_an_error() {
        let bytes = body(AF_INET, 1, v4(10, 0, 0, 1), v4(10, 0, 0, 2));
        for cut in 0..bytes.len() {
            let message = message_of(SOCK_DIAG_BY_FAMILY, 2, 1, &bytes[..cut]);
            assert!(parse(&messages(&message).next().unwrap().unwrap()).is_err(), "cut at {cut}");
        }
        for state in 0..=255 {
            let message = message_of(SOCK_DIAG_BY_FAMILY, 2, 1, &body(AF_INET, state, v4(1, 1, 1, 1), v4(1, 1, 1, 1)));
            assert_eq!(parse(&messages(&message).next().unwrap().unwrap()).is_ok(), (1..=12).contains(&state), "state {state}");
        }
    }
}
