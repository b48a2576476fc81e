//! Writes a large capture of HTTP over TCP to stdout: many short connections, some of them kept alive, with occasional losses.
//! Usage: generate CONNECTIONS [REQUESTS-PER-CONNECTION] [BODY-BYTES] [OPEN-AT-ONCE] > FILE

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];
const FIN: u8 = 1;
const SYN: u8 = 2;
const PUSH: u8 = 8;
const ACK: u8 = 16;
const SEGMENT_BYTES: usize = 1448;
/// Default number of connections open at once.
const OPEN: u64 = 64;

/// A capture being written: its clock, microseconds.
struct Out<W> {
    to: W,
    at_us: u64,
    packets: u64,
}

/// One connection: the client's port and address, and the sequence numbers of both sides.
struct Connection {
    client: [u8; 4],
    port: u16,
    next: [u32; 2],
}

impl<W: Write> Out<W> {
    fn segment(&mut self, connection: &mut Connection, from_client: bool, flags: u8, payload: &[u8]) -> io::Result<()> {
        let side = usize::from(!from_client);
        let options: &[u8] = if flags & SYN != 0 { &[2, 4, 5, 180, 1, 3, 3, 7, 4, 2, 1, 1] } else { &[] };
        let header = 20 + options.len();
        let length = 14 + 20 + header + payload.len();
        let mut packet = Vec::with_capacity(length + 16);
        for word in [(self.at_us / 1_000_000) as u32, (self.at_us % 1_000_000) as u32, length as u32, length as u32] {
            packet.extend_from_slice(&word.to_le_bytes());
        }
        packet.extend_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        packet.extend_from_slice(&[0x45, 0]);
        packet.extend_from_slice(&((length - 14) as u16).to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
        let (from, to) = if from_client { (connection.client, SERVER) } else { (SERVER, connection.client) };
        packet.extend_from_slice(&from);
        packet.extend_from_slice(&to);
        let ports = if from_client { [connection.port, 80] } else { [80, connection.port] };
        ports.iter().for_each(|port| packet.extend_from_slice(&port.to_be_bytes()));
        packet.extend_from_slice(&connection.next[side].to_be_bytes());
        packet.extend_from_slice(&(if flags & ACK != 0 { connection.next[1 - side] } else { 0 }).to_be_bytes());
        packet.extend_from_slice(&[(header as u8 / 4) << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend_from_slice(options);
        packet.extend_from_slice(payload);
        self.to.write_all(&packet)?;
        let taken = payload.len() as u32 + u32::from(flags & (SYN | FIN) != 0);
        connection.next[side] = connection.next[side].wrapping_add(taken);
        self.at_us += 3;
        self.packets += 1;
        Ok(())
    }

    fn request(&mut self, connection: &mut Connection, answer: &[u8], lose: bool) -> io::Result<()> {
        self.segment(
            connection,
            true,
            ACK | PUSH,
            b"GET /index.html HTTP/1.1\r\nHost: example.com\r\nUser-Agent: generate\r\nAccept: */*\r\n\r\n",
        )?;
        for (place, piece) in answer.chunks(SEGMENT_BYTES).enumerate() {
            self.segment(connection, false, ACK, piece)?;
            if lose && place == 0 {
                connection.next[1] = connection.next[1].wrapping_sub(piece.len() as u32);
                self.segment(connection, false, ACK, piece)?;
            }
            if place % 2 == 1 {
                self.segment(connection, true, ACK, b"")?;
            }
        }
        self.segment(connection, true, ACK, b"")
    }
}

fn main() -> io::Result<()> {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let connections = numbers.first().copied().unwrap_or(60_119);
    let (requests, body) = (numbers.get(1).copied().unwrap_or(1), numbers.get(2).copied().unwrap_or(5_000));
    let open_at_once = numbers.get(3).copied().unwrap_or(OPEN);
    let packets = write_capture(io::stdout().lock(), connections, requests, body, open_at_once)?;
    eprintln!("{packets} packets, {connections} connections");
    Ok(())
}

/// Writes a capture with this many connections, requests per connection and answer bytes. Returns the number of packets.
pub(crate) fn write_capture(to: impl Write, connections: u64, requests: u64, body: u64, open_at_once: u64) -> io::Result<u64> {
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {body}\r\n\r\n").into_bytes();
    answer.resize(answer.len() + usize::try_from(body).unwrap_or(0), b'x');
    let mut out = Out { to: BufWriter::with_capacity(1 << 20, to), at_us: 1_700_000_000_000_000, packets: 0 };
    out.to.write_all(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0])?;
    let mut open = VecDeque::new();
    for number in 0..connections + open_at_once {
        if number < connections {
            let [a, b, ..] = (number / 28_000 % 60_000).to_le_bytes();
            let client = if number < 28_000 { CLIENT } else { [10, 1, a, b] };
            let mut connection =
                Connection { client, port: 32_768 + (number % 28_000) as u16, next: [number as u32 * 7, number as u32 * 11] };
            out.segment(&mut connection, true, SYN, b"")?;
            out.segment(&mut connection, false, SYN | ACK, b"")?;
            out.segment(&mut connection, true, ACK, b"")?;
            open.push_back(connection);
        }
        if number >= open_at_once
            && let Some(mut connection) = open.pop_front()
        {
            for request in 0..requests {
                out.request(&mut connection, &answer, number % 100 == 0 && request == 0)?;
            }
            out.segment(&mut connection, false, FIN | ACK, b"")?;
            out.segment(&mut connection, true, FIN | ACK, b"")?;
            out.segment(&mut connection, false, ACK, b"")?;
        }
    }
    out.to.flush()?;
    Ok(out.packets)
}
