//! The block format of Wireshark (draft-ietf-opsawg-pcapng): sections of either byte order, interfaces with their own clocks, and packets.

use super::input::{Input, RECORD_BYTES_MAX};
use super::{CaptureError, Packet, fill, record, u16_at, u32_at};

/// Section header block. It reads the same in both byte orders.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE: u32 = 1;
const PACKET_OLD: u32 = 2;
const PACKET_SIMPLE: u32 = 3;
pub(super) const PACKET: u32 = 6;
pub(super) const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Type and length before the body, and the length again after it.
const BLOCK_BYTES_MIN: usize = 12;
pub(super) const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;
/// Most interfaces accepted in one section.
const INTERFACES_MAX: usize = 65_536;

/// One interface of a section.
#[derive(Debug, Clone, Copy)]
struct Interface {
    link: u16,
    snap_bytes: u32,
    clock: Clock,
}

/// The meaning of an interface's timestamps.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Units per second.
    per_second: u64,
    offset_s: i64,
}

impl Clock {
    const DEFAULT: Self = Self { per_second: 1_000_000, offset_s: 0 };

    /// Option if_tsresol: a power of ten, or a power of two if the highest bit is set.
    fn resolution(byte: u8) -> u64 {
        let power = u32::from(byte & 0x7f);
        let base: u64 = if byte & 0x80 == 0 { 10 } else { 2 };
        base.checked_pow(power).unwrap_or(u64::MAX)
    }

    fn nanoseconds(self, stamp: u64) -> i64 {
        let ns = match self.per_second {
            1_000_000 => u128::from(stamp) * 1000,
            1_000_000_000 => u128::from(stamp),
            per_second => u128::from(stamp) * 1_000_000_000 / u128::from(per_second),
        };
        i64::try_from(ns).unwrap_or(i64::MAX).saturating_add(self.offset_s.saturating_mul(1_000_000_000))
    }
}

/// The reader's position.
#[derive(Debug, Default)]
pub(super) struct Reader {
    big: bool,
    interfaces: Vec<Interface>,
}

/// A packet's position in the available block.
struct Found {
    block_bytes: usize,
    at: usize,
    kept: usize,
    wire_bytes: u32,
    at_ns: i64,
    link: u16,
}

impl Reader {
    pub(super) fn packet<'a>(&mut self, input: &'a mut Input<'_>) -> Result<Option<Packet<'a>>, CaptureError> {
        let found = loop {
            if fill(input, BLOCK_BYTES_MIN)? == 0 {
                return Ok(None);
            }
            record(input, BLOCK_BYTES_MIN)?;
            if let Some(found) = self.block(input)? {
                break found;
            }
        };
        let block = input.take(found.block_bytes);
        let bytes = block.get(found.at..found.at + found.kept).unwrap_or_default();
        Ok(Some(Packet { at_ns: found.at_ns, link: found.link, wire_bytes: found.wire_bytes, bytes }))
    }

    /// Reads one block: consumes it, or returns the position of its packet.
    fn block(&mut self, input: &mut Input<'_>) -> Result<Option<Found>, CaptureError> {
        let at = input.position();
        let damaged = |what| CaptureError::Damaged { at, what };
        let head = input.available();
        if u32_at(head, 0, true) == SECTION {
            self.big = match (u32_at(head, 8, true), u32_at(head, 8, false)) {
                (BYTE_ORDER, _) => true,
                (_, BYTE_ORDER) => false,
                _ => return Err(damaged("a section without a byte order")),
            };
            self.interfaces.clear();
        }
        let kind = u32_at(head, 0, self.big);
        let length = u32_at(head, 4, self.big);
        let bytes = usize::try_from(length).unwrap_or(usize::MAX).next_multiple_of(4);
        if bytes < BLOCK_BYTES_MIN {
            return Err(damaged("a block is shorter than its own header"));
        }
        if !matches!(kind, INTERFACE | PACKET_OLD | PACKET_SIMPLE | PACKET) || bytes > RECORD_BYTES_MAX {
            if matches!(kind, INTERFACE | PACKET_OLD | PACKET_SIMPLE | PACKET) {
                return Err(damaged("a record is longer than 1 MiB"));
            }
            // Names, statistics, secrets and comments are skipped, whatever their size.
            let whole = input.skip(bytes as u64).map_err(|error| CaptureError::Io { at, error })?;
            return if whole { Ok(None) } else { Err(CaptureError::CutOff(at)) };
        }
        record(input, bytes)?;
        let block = &input.available()[..bytes];
        if u32_at(block, bytes - 4, self.big) != length {
            return Err(damaged("the two lengths of a block differ"));
        }
        let body = &block[8..bytes - 4];
        if kind == INTERFACE {
            self.interface(body).map_err(damaged)?;
            input.consume(bytes);
            return Ok(None);
        }
        self.find(kind, body, bytes).map(Some).map_err(damaged)
    }

    fn interface(&mut self, body: &[u8]) -> Result<(), &'static str> {
        if body.len() < 8 {
            return Err("an interface block is too short");
        }
        if self.interfaces.len() >= INTERFACES_MAX {
            return Err("more than 65,536 interfaces");
        }
        let mut clock = Clock::DEFAULT;
        let mut options = &body[8..];
        while let [_, _, _, _, rest @ ..] = options {
            let (code, length) = (u16_at(options, 0, self.big), usize::from(u16_at(options, 2, self.big)));
            let Some(value) = rest.get(..length) else { break };
            match (code, value) {
                (0, _) => break,
                (OPTION_TIME_RESOLUTION, [byte, ..]) => clock.per_second = Clock::resolution(*byte),
                (OPTION_TIME_OFFSET, [_, _, _, _, _, _, _, _, ..]) => {
                    let (first, second) = (u32_at(value, 0, self.big), u32_at(value, 4, self.big));
                    let (high, low) = if self.big { (first, second) } else { (second, first) };
                    clock.offset_s = (u64::from(high) << 32 | u64::from(low)) as i64;
                }
                _ => {}
            }
            options = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        self.interfaces.push(Interface { link: u16_at(body, 0, self.big), snap_bytes: u32_at(body, 4, self.big), clock });
        Ok(())
    }

    fn find(&self, kind: u32, body: &[u8], block_bytes: usize) -> Result<Found, &'static str> {
        let word = |at| u32_at(body, at, self.big);
        let header = if kind == PACKET_SIMPLE { 4 } else { 20 };
        if body.len() < header {
            return Err("a packet block is too short");
        }
        let number = match kind {
            PACKET => word(0) as usize,
            PACKET_OLD => usize::from(u16_at(body, 0, self.big)),
            _ => 0,
        };
        let interface = self.interfaces.get(number).ok_or("a packet belongs to an interface that was not described")?;
        let (kept, wire_bytes, stamp) = if kind == PACKET_SIMPLE {
            let snap = if interface.snap_bytes == 0 { u32::MAX } else { interface.snap_bytes };
            let room = u32::try_from(body.len() - header).unwrap_or(u32::MAX);
            (word(0).min(snap).min(room), word(0), None)
        } else {
            (word(12), word(16), Some(u64::from(word(4)) << 32 | u64::from(word(8))))
        };
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        if kept > body.len() - header {
            return Err("a packet is longer than its block");
        }
        let at_ns = stamp.map_or(0, |stamp| interface.clock.nanoseconds(stamp));
        Ok(Found { block_bytes, at: 8 + header, kept, wire_bytes, at_ns, link: interface.link })
    }
}
