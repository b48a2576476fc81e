//! Runs filters on packets as the kernel does.

use super::*;

/// A packet as the program sees it: the EtherType, and the bytes from the network header.
struct Seen {
    device: u32,
    way: u32,
    kind: u32,
    bytes: Vec<u8>,
}

fn packet(from: &str, to: &str, protocol: u8, options: usize) -> Seen {
    let (from, to): (std::net::SocketAddr, std::net::SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
    let mut bytes = Vec::new();
    let kind = match (from.ip(), to.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            bytes.resize(20 + 4 * options, 0);
            bytes[0] = 0x45 + options as u8;
            bytes[9] = protocol;
            bytes[12..16].copy_from_slice(&source.octets());
            bytes[16..20].copy_from_slice(&destination.octets());
            ETHERTYPE_IPV4
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            bytes.resize(40, 0);
            bytes[6] = protocol;
            bytes[8..24].copy_from_slice(&source.octets());
            bytes[24..40].copy_from_slice(&destination.octets());
            ETHERTYPE_IPV6
        }
        _ => panic!("two versions"),
    };
    bytes.extend_from_slice(&from.port().to_be_bytes());
    bytes.extend_from_slice(&to.port().to_be_bytes());
    bytes.resize(bytes.len() + 16, 0);
    Seen { device: 1, way: PACKET_OUTGOING, kind, bytes }
}

/// Runs a program. A load beyond the packet ends it with 0 (Documentation/networking/filter.rst).
fn run(program: &[Instruction], seen: &Seen) -> u32 {
    let (mut at, mut a, mut x) = (0, 0_u32, 0_u32);
    loop {
        let (code, then, otherwise, constant) = program[at];
        let load = |offset: u32, length: usize| {
            let from = offset.wrapping_sub(NETWORK) as usize;
            seen.bytes.get(from..from + length).map(|bytes| bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
        };
        let loaded = match code {
            LOAD_HALF if constant == PROTOCOL => Some(seen.kind),
            LOAD_HALF if constant == DEVICE => Some(seen.device),
            LOAD_HALF if constant == WAY => Some(seen.way),
            LOAD_HALF => load(constant, 2),
            LOAD_BYTE => load(constant, 1),
            LOAD_WORD => load(constant, 4),
            LOAD_HALF_INDEXED => load(constant.wrapping_add(x), 2),
            AND => Some(a & constant),
            SHIFT_LEFT => Some(a << constant),
            _ => Some(a),
        };
        let Some(loaded) = loaded else { return 0 };
        a = loaded;
        at += 1;
        match code {
            TO_INDEX => x = a,
            JUMP_EQUAL => at += usize::from(if a == constant { then } else { otherwise }),
            JUMP_ANY_BIT => at += usize::from(if a & constant != 0 { then } else { otherwise }),
            RETURN => return constant,
            _ => {}
        }
    }
}

fn passes(filter: &str, seen: &Seen) -> bool {
    let program = filter.parse::<Filter>().unwrap_or_else(|error| panic!("{filter}: {error}")).program(65_535);
    match run(&program, seen) {
        0 => false,
        65_535 => true,
        other => panic!("{other}"),
    }
}

#[test]
fn packets_that_are_wanted_pass_and_no_others() {
    let four = packet("10.0.0.1:5000", "10.0.0.2:80", 6, 0);
    let optioned = packet("10.0.0.1:5000", "10.0.0.2:80", 6, 3);
    let six = packet("[fd00::1]:5000", "[fd00::2]:80", 6, 0);
    let cases = [
        ("", [true, true]),
        ("tcp", [true, true]),
        ("tcp port 80", [true, true]),
        ("port 5000", [true, true]),
        ("src port 80", [false, false]),
        ("dst port 80", [true, true]),
        ("port 81", [false, false]),
        ("port 81 or 80", [true, true]),
        ("not port 80", [false, false]),
        ("!port 81", [true, true]),
        ("host 10.0.0.2", [true, false]),
        ("src host 10.0.0.2", [false, false]),
        ("src 10.0.0.1 and dst port 80", [true, false]),
        ("host fd00::2", [false, true]),
        ("dst net fd00::/64", [false, true]),
        ("net 10.0.0.0/8", [true, false]),
        ("net 11.0.0.0/8", [false, false]),
        ("net 10.0.0.0/31 and not src net 10.0.0.0/31", [false, false]),
        ("net 0.0.0.0/0", [true, false]),
        ("ip", [true, false]),
        ("ip6 port 80", [false, true]),
        ("ip and port 80", [true, false]),
        ("(host 10.0.0.9 or host 10.0.0.2) and (port 81 || port 80)", [true, false]),
        ("port 81 and host 10.0.0.9 or host 10.0.0.2", [true, false]),
        ("host 10.0.0.2 or port 80 and port 81", [false, false]),
    ];
    for (filter, [is_four, is_six]) in cases {
        assert_eq!(passes(filter, &four), is_four, "{filter}");
        assert_eq!(passes(filter, &optioned), is_four, "{filter} with options");
        assert_eq!(passes(filter, &six), is_six, "{filter} over IPv6");
    }
}

#[test]
fn nothing_but_tcp_passes_and_a_fragment_has_no_ports() {
    let mut udp = packet("10.0.0.1:5000", "10.0.0.2:80", 17, 0);
    for filter in ["", "port 80", "not port 81", "host 10.0.0.1", "not host 10.9.9.9"] {
        assert!(!passes(filter, &udp), "{filter}");
    }
    udp.kind = 0x0806;
    assert!(!passes("not port 81", &udp), "no IP at all");
    let mut fragment = packet("10.0.0.1:5000", "10.0.0.2:80", 6, 0);
    fragment.bytes[7] = 9;
    assert!(passes("host 10.0.0.1", &fragment) && !passes("port 80", &fragment));
    let mut short = packet("10.0.0.1:5000", "10.0.0.2:80", 6, 0);
    short.bytes.truncate(18);
    assert!(!passes("host 10.0.0.9", &short));
}

#[test]
fn what_goes_over_loopback_is_taken_once() {
    let mut packet = packet("127.0.0.1:5000", "127.0.0.1:80", 6, 0);
    packet.device = ARPHRD_LOOPBACK;
    assert!(!passes("port 80", &packet));
    packet.way = 0;
    assert!(passes("port 80", &packet));
}

#[test]
fn what_is_not_understood_is_named() {
    for (filter, said) in [
        ("udp", "\"udp\""),
        ("tcp port http", "\"http\""),
        ("port 99999", "\"99999\""),
        ("port", "a port is missing"),
        ("host", "an address is missing"),
        ("host 10.0.0.300", "\"10.0.0.300\""),
        ("net 10.0.0.0/33", "\"10.0.0.0/33\""),
        ("net 10", "\"10\""),
        ("port 80 port 81", "\"port\""),
        ("(port 80", "bracket is missing"),
        ("port 80)", "\")\""),
        ("port 80 and", "an expression is missing"),
        ("tcp[13] & 2 != 0", "\"tcp[13]\""),
        ("port 80 & port 81", "\"&\""),
    ] {
        let error = filter.parse::<Filter>().unwrap_err().to_string();
        assert!(error.contains(said), "{filter}: {error}");
    }
    let long = vec!["port 1"; 90].join(" or ");
    assert_eq!(long.parse::<Filter>(), Err(FilterError::TooLong));
    assert_eq!("not ".repeat(10_000).parse::<Filter>(), Err(FilterError::TooLong));
}

#[test]
fn the_longest_program_that_is_taken_still_reaches_its_end() {
    let seen = packet("10.0.0.1:5000", "10.0.0.2:80", 6, 0);
    let mut taken = 0;
    for ports in 1..40 {
        let mut filter = (1..ports).map(|port| format!("port {port}")).collect::<Vec<_>>().join(" or ");
        filter.push_str(if filter.is_empty() { "port 80" } else { " or port 80" });
        if filter.parse::<Filter>().is_ok() {
            taken = ports;
            assert!(passes(&filter, &seen), "{filter}");
        }
    }
    assert!(taken >= 8, "{taken}");
}

proptest::proptest! {
    #[test]
    fn any_text_is_answered(text in "[a-z0-9./:()!&| ]{0,80}") {
        drop(text.parse::<Filter>());
    }
}
