//! Writes packets as a capture in Wireshark's block format (draft-ietf-opsawg-pcapng), little-endian, with times in nanoseconds.

use super::Packet;
use super::pcapng::{BYTE_ORDER, INTERFACE, OPTION_TIME_RESOLUTION, PACKET, SECTION};

const STATISTICS: u32 = 5;
const OPTION_RECEIVED: u16 = 4;
const OPTION_DROPPED: u16 = 5;

/// Writes blocks. Each link layer becomes an interface of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PcapngWriter {
    begun: bool,
    links: Vec<u16>,
}

impl PcapngWriter {
    /// Appends a packet, preceded by the blocks that it needs.
    pub fn packet(&mut self, out: &mut Vec<u8>, packet: &Packet<'_>) {
        self.begin(out);
        let interface = self.links.iter().position(|link| *link == packet.link).unwrap_or_else(|| {
            let mut body = Vec::new();
            body.extend_from_slice(&packet.link.to_le_bytes());
            // Reserved field, and no snap length.
            body.extend_from_slice(&[0; 6]);
            option(&mut body, OPTION_TIME_RESOLUTION, &[9]);
            option(&mut body, 0, &[]);
            block(out, INTERFACE, &body);
            self.links.push(packet.link);
            self.links.len() - 1
        });
        let at_ns = packet.at_ns as u64;
        let kept = u32::try_from(packet.bytes.len()).unwrap_or(u32::MAX);
        let mut body = Vec::with_capacity(packet.bytes.len() + 24);
        for word in [interface as u32, (at_ns >> 32) as u32, at_ns as u32, kept, packet.wire_bytes] {
            body.extend_from_slice(&word.to_le_bytes());
        }
        body.extend_from_slice(packet.bytes);
        block(out, PACKET, &body);
    }

    /// Appends the final counts: packets that passed the filter, and those of them that were lost.
    pub fn end(&mut self, out: &mut Vec<u8>, at_ns: i64, received: u64, dropped: u64) {
        self.begin(out);
        if self.links.is_empty() {
            return;
        }
        let mut body = vec![0; 4];
        for word in [(at_ns as u64 >> 32) as u32, at_ns as u32] {
            body.extend_from_slice(&word.to_le_bytes());
        }
        option(&mut body, OPTION_RECEIVED, &received.to_le_bytes());
        option(&mut body, OPTION_DROPPED, &dropped.to_le_bytes());
        option(&mut body, 0, &[]);
        block(out, STATISTICS, &body);
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.begun, true) {
            // Byte order, version 1.0, and a section of unknown length.
            let mut body = BYTE_ORDER.to_le_bytes().to_vec();
            body.extend_from_slice(&[1, 0, 0, 0]);
            body.extend_from_slice(&[0xff; 8]);
            block(out, SECTION, &body);
        }
    }
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

fn block(out: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let length = u32::try_from(body.len().next_multiple_of(4) + 12).unwrap_or(u32::MAX);
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(body);
    out.resize(out.len() + body.len().next_multiple_of(4) - body.len(), 0);
    out.extend_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Capture;

    #[test]
    fn a_written_capture_can_be_read() {
        let bytes: Vec<Vec<u8>> = (0..20).map(|length| (0..length).collect()).collect();
        let packets: Vec<Packet<'_>> = (bytes.iter().enumerate())
            .map(|(place, bytes)| Packet {
                at_ns: 1_700_000_000_123_456_789 + place as i64,
                link: if place % 3 == 0 { 276 } else { 1 },
                wire_bytes: 1500,
                bytes,
            })
            .collect();
        let (mut writer, mut out) = (PcapngWriter::default(), Vec::new());
        for packet in &packets {
            writer.packet(&mut out, packet);
        }
        writer.end(&mut out, 1_700_000_001_000_000_000, 25, 5);
        let mut capture = Capture::open(&out[..]).unwrap();
        for packet in &packets {
            assert_eq!(capture.packet().unwrap().as_ref(), Some(packet));
        }
        assert_eq!(capture.packet().unwrap(), None);
    }

    #[test]
    fn a_capture_without_packets_is_a_capture() {
        let (mut writer, mut out) = (PcapngWriter::default(), Vec::new());
        writer.end(&mut out, 0, 0, 0);
        assert_eq!(Capture::open(&out[..]).unwrap().packet().unwrap(), None);
    }
}
