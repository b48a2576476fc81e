//! The status at the beginning of a response: HTTP/1 (RFC 9112, section 4), FastCGI and SCGI (both with the header "Status", RFC 3875, section 6.3.3).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::turns::{Packet, What};

/// Kinds of records (FastCGI specification, section 8).
const FCGI_STDOUT: u8 = 6;
const FCGI_STDERR: u8 = 7;
const FCGI_HEADER_BYTES: usize = 8;
/// A gateway without the header "Status" means this one (RFC 3875, section 6.3.3).
const OK: u16 = 200;
/// Longest name of a header by which a gateway's answer without a status is recognised.
const NAME_BYTES_MAX: usize = 40;
const TCP: u8 = 6;

/// Flags of the packet that accepts a connection (RFC 9293, section 3.1): SYN and ACK.
pub(super) const SYN_ACK: u8 = 0x12;
/// Headers of a response are looked through for its length up to here.
const HEAD_BYTES_MAX: usize = 1_024;

/// A packet that begins with its network header, if it accepts a connection, or if its payload begins with a response.
pub(super) fn packet(packet: &[u8]) -> Option<Packet> {
    let address = |at: usize| IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?)).into();
    let address6 = |at: usize| IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?)).into();
    let (source, target, segment): (Option<IpAddr>, Option<IpAddr>, &[u8]) = match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet[0] & 0xf) * 4;
            let is_tcp = *packet.get(9)? == TCP;
            (address(12), address(16), packet.get(header..).filter(|_| is_tcp && header >= 20)?)
        }
        6 => {
            let is_tcp = *packet.get(6)? == TCP;
            (address6(8), address6(24), packet.get(40..).filter(|_| is_tcp)?)
        }
        _ => return None,
    };
    let port = |at: usize| Some(u16::from_be_bytes(segment.get(at..at + 2)?.try_into().ok()?));
    let number = |at: usize| Some(u32::from_be_bytes(segment.get(at..at + 4)?.try_into().ok()?));
    let what = if *segment.get(13)? & SYN_ACK == SYN_ACK {
        What::Accepts
    } else {
        let payload = segment.get(usize::from(segment.get(12)? >> 4) * 4..)?;
        What::Response { status: status(payload)?, bytes: bytes(payload) }
    };
    let connection = (SocketAddr::new(source?, port(0)?), SocketAddr::new(target?, port(2)?));
    Some(Packet { connection, sequence: number(4)?, acknowledged: number(8)?, what })
}

/// The bytes of an HTTP/1 response whose head is here and says the length of its body (RFC 9112, section 6.3).
fn bytes(payload: &[u8]) -> Option<u64> {
    let head = payload.get(..payload.len().min(HEAD_BYTES_MAX)).filter(|head| head.starts_with(b"HTTP/1."))?;
    let end = head.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let line = |line: &&[u8]| line.get(..LENGTH.len()).is_some_and(|name| name.eq_ignore_ascii_case(LENGTH));
    let value = head[..end].split(|byte| *byte == b'\n').find(line)?.get(LENGTH.len()..)?;
    let length: u64 = std::str::from_utf8(value).ok()?.trim().parse().ok()?;
    Some(length.saturating_add(end as u64))
}

const LENGTH: &[u8] = b"content-length:";

/// The final status of a response: 1xx precede it (RFC 9110, section 15.2).
fn status(payload: &[u8]) -> Option<u16> {
    let found = match payload.strip_prefix(b"HTTP/1.") {
        Some(line) => number(line.get(1..)?),
        None => gateway(payload).or_else(|| fast_cgi(payload)),
    };
    found.filter(|status| (200..600).contains(status))
}

/// Three digits after a blank, and no fourth.
fn number(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b" ")?;
    let (number, rest) = digits.split_at_checked(3)?;
    let is_end = rest.first().is_none_or(|next| !next.is_ascii_digit());
    let is_number = number.iter().all(u8::is_ascii_digit) && is_end;
    is_number.then(|| number.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0')))
}

fn gateway(payload: &[u8]) -> Option<u16> {
    number(payload.strip_prefix(b"Status:")?)
}

/// The first record of a response's output. Records of the error stream, where PHP writes why a script failed, precede it.
fn fast_cgi(payload: &[u8]) -> Option<u16> {
    let mut rest = payload;
    loop {
        let header = rest.get(..FCGI_HEADER_BYTES).filter(|header| header[0] == 1)?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        match header[1] {
            FCGI_STDOUT => {
                let output = rest.get(FCGI_HEADER_BYTES..)?;
                let output = &output[..length.min(output.len())];
                return gateway(output).or_else(|| begins_with_a_header(output).then_some(OK));
            }
            FCGI_STDERR => rest = rest.get(FCGI_HEADER_BYTES + length + usize::from(header[6])..)?,
            _ => return None,
        }
    }
}

/// True for "Name: ". Further output of the same response begins with the page.
fn begins_with_a_header(output: &[u8]) -> bool {
    let name = output.iter().take(NAME_BYTES_MAX).take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
    name > 0 && output.get(name..).is_some_and(|rest| rest.starts_with(b": "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Server and status.
    fn response(bytes: &[u8]) -> Option<(SocketAddr, u16)> {
        match packet(bytes)? {
            Packet { connection: (server, _), what: What::Response { status, .. }, .. } => Some((server, status)),
            Packet { what: What::Accepts, .. } => None,
        }
    }

    #[test]
    fn a_packet_says_where_in_its_connection_it_is() {
        let mut whole = v4(80, b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-LENGTH: 1000\r\n\r\nbody");
        whole[16..20].copy_from_slice(&[10, 0, 0, 9]);
        whole[22..24].copy_from_slice(&40_000_u16.to_be_bytes());
        whole[24..28].copy_from_slice(&7_u32.to_be_bytes());
        whole[28..32].copy_from_slice(&9_u32.to_be_bytes());
        let connection = ("127.0.0.5:80".parse().unwrap(), "10.0.0.9:40000".parse().unwrap());
        let what = What::Response { status: 200, bytes: Some(52 + 1_000) };
        assert_eq!(packet(&whole), Some(Packet { connection, sequence: 7, acknowledged: 9, what }));
        whole[33] = SYN_ACK;
        assert_eq!(packet(&whole).unwrap().what, What::Accepts);
        for (head, says_it) in [("content-length: 5", true), ("X-Content-Length: 5", false), ("Content-Length: x", false)] {
            let whole = format!("HTTP/1.1 200\r\n{head}\r\n\r\n");
            assert_eq!(bytes(whole.as_bytes()), says_it.then_some(whole.len() as u64 + 5), "{head}");
        }
        assert_eq!(bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"), None, "its head is not all here");
    }

    fn segment(port: u16, payload: &[u8]) -> Vec<u8> {
        let mut segment = vec![0; 32];
        segment[..2].copy_from_slice(&port.to_be_bytes());
        segment[12] = 8 << 4;
        segment.extend(payload);
        segment
    }

    fn v4(port: u16, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        (packet[0], packet[9]) = (0x45, TCP);
        packet[12..16].copy_from_slice(&[127, 0, 0, 5]);
        packet.extend(segment(port, payload));
        packet
    }

    fn v6(port: u16, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[6], packet[23]) = (0x60, TCP, 1);
        packet.extend(segment(port, payload));
        packet
    }

    fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
        let length = (content.len() as u16).to_be_bytes();
        let mut record = vec![1, kind, 0, 1, length[0], length[1], padding, 0];
        record.extend(content);
        record.resize(record.len() + usize::from(padding), 0);
        record
    }

    #[test]
    fn a_response_is_its_servers_with_its_status() {
        assert_eq!(response(&v4(80, b"HTTP/1.1 502 Bad Gateway\r\n")), Some(("127.0.0.5:80".parse().unwrap(), 502)));
        assert_eq!(response(&v6(8080, b"HTTP/1.0 200\r\n")), Some(("[::1]:8080".parse().unwrap(), 200)));
        for none in [
            &b"HTTP/1.1 100 Continue"[..],
            b"HTTP/1.1 2000",
            b"HTTP/1.1 20",
            b"HTTP/2 200",
            b"HTTP/1.1 999 x",
            b"GET / HTTP/1.1",
            b"",
            b"<p>HTTP/1.1 200 ",
        ] {
            assert_eq!(response(&v4(80, none)), None, "{}", String::from_utf8_lossy(none));
        }
    }

    #[test]
    fn gateways_say_it_in_a_header_after_what_they_log() {
        let told = |payload: Vec<u8>| response(&v4(9000, &payload)).map(|(_, status)| status);
        let failed = b"Status: 500 Internal Server Error\r\nContent-type: text/html\r\n\r\n";
        assert_eq!(told(failed.to_vec()), Some(500));
        assert_eq!(told(record(FCGI_STDOUT, failed, 3)), Some(500));
        assert_eq!(told([record(FCGI_STDERR, b"PHP message: no", 1), record(FCGI_STDOUT, failed, 0)].concat()), Some(500));
        assert_eq!(told(record(FCGI_STDOUT, b"X-Powered-By: PHP\r\n\r\nStatus: 500", 0)), Some(200));
        assert_eq!(told(record(FCGI_STDOUT, b"<html>Note: this</html>", 0)), None);
        assert_eq!(told(record(3, b"Status: 500", 0)), None);
        assert_eq!(told(record(FCGI_STDERR, &[b'x'; 60_000], 0)[..900].to_vec()), None, "its output was not kept");
    }

    proptest! {
        #[test]
        fn any_bytes_and_any_cut_are_read_within_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200, six: bool) {
            response(&bytes);
            let whole = if six { v6(80, &bytes) } else { v4(80, &bytes) };
            response(&whole[..cut.min(whole.len())]);
            let records = v4(80, &[record(FCGI_STDERR, &bytes, 1), record(FCGI_STDOUT, b"Status: 503", 0)].concat());
            response(&records[..cut.min(records.len())]);
        }
    }
}
