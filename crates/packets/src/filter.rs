//! Compiles live capture filters, a useful subset of pcap-filter(7), to programs for the kernel (classic BPF).

mod parse;

use std::net::IpAddr;
use std::str::FromStr;

pub use parse::FilterError;

/// One instruction of classic BPF (linux/filter.h, `struct sock_filter`): code, jump targets for true and false, and a constant.
pub type Instruction = (u16, u8, u8, u32);

/// Most instructions of a program: jumps reach no further.
const PROGRAM_MAX: usize = 255;

/// Loads of one, two and four bytes at an offset; of two bytes after the index register; and the other instructions in use.
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF: u16 = 0x28;
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF_INDEXED: u16 = 0x48;
const AND: u16 = 0x54;
const SHIFT_LEFT: u16 = 0x64;
const TO_INDEX: u16 = 0x07;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// `SKF_AD_OFF + SKF_AD_PROTOCOL`: the EtherType, for any link layer.
const PROTOCOL: u32 = (-0x1000_i32) as u32;
/// `SKF_AD_OFF` with `SKF_AD_PKTTYPE` and `SKF_AD_HATYPE`: the direction of a packet, and the type of the device.
const WAY: u32 = (-0x1000_i32 + 4) as u32;
const DEVICE: u32 = (-0x1000_i32 + 28) as u32;
const PACKET_OUTGOING: u32 = 4;
const ARPHRD_LOOPBACK: u32 = 772;
/// `SKF_NET_OFF`: the network header.
const NETWORK: u32 = (-0x10_0000_i32) as u32;
const ETHERTYPE_IPV4: u32 = 0x0800;
const ETHERTYPE_IPV6: u32 = 0x86dd;
const TCP: u32 = 6;

/// The end of a packet that a term refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketEnd {
    Source,
    Destination,
    Either,
}

impl PacketEnd {
    /// The ends that it covers: 0 is the source, 1 the destination.
    fn places(self) -> &'static [u32] {
        match self {
            PacketEnd::Source => &[0],
            PacketEnd::Destination => &[1],
            PacketEnd::Either => &[0, 1],
        }
    }
}

/// A condition on packets.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expression {
    /// All of TCP.
    Tcp,
    /// IPv4, or IPv6 if true.
    Version(bool),
    Port(PacketEnd, u16),
    /// An address, and the number of its first bits that must match.
    Net(PacketEnd, IpAddr, u8),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
}

/// A packet filter. Only TCP ever passes: over IPv4, and over IPv6 without extension headers. Only the head of a packet is
/// examined, so of fragments only the first can match a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    expression: Expression,
}

impl Default for Filter {
    /// All of TCP.
    fn default() -> Self {
        Self { expression: Expression::Tcp }
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let filter = Self { expression: parse::parse(text)? };
        if filter.compiled(0).len() > PROGRAM_MAX {
            return Err(FilterError::TooLong);
        }
        Ok(filter)
    }
}

impl Filter {
    /// The program returns `snap_bytes` for a matching packet and 0 for any other. It uses the kernel's own header offsets, so
    /// it is the same for every link layer.
    pub fn program(&self, snap_bytes: u32) -> Vec<Instruction> {
        self.compiled(snap_bytes)
    }

    fn compiled(&self, snap_bytes: u32) -> Vec<Instruction> {
        let mut code = Code::default();
        let (keep, drop, more) = (code.label(), code.label(), code.label());
        // A packet sent over loopback is also received there. It counts once.
        let (loopback, once) = (code.label(), code.label());
        code.put(LOAD_HALF, DEVICE);
        code.jump(JUMP_EQUAL, ARPHRD_LOOPBACK, loopback, once);
        code.place(loopback);
        code.put(LOAD_HALF, WAY);
        code.jump(JUMP_EQUAL, PACKET_OUTGOING, drop, once);
        code.place(once);
        code.expression(&Expression::Tcp, more, drop);
        code.place(more);
        code.expression(&self.expression, keep, drop);
        code.place(keep);
        code.put(RETURN, snap_bytes);
        code.place(drop);
        code.put(RETURN, 0);
        code.finish()
    }
}

/// A position in the program that is not known yet.
type Label = usize;

/// An instruction with labels as jump targets.
type Open = (u16, Option<(Label, Label)>, u32);

/// A program being compiled.
#[derive(Default)]
struct Code {
    instructions: Vec<Open>,
    labels: Vec<usize>,
}

impl Code {
    fn label(&mut self) -> Label {
        self.labels.push(0);
        self.labels.len() - 1
    }

    fn place(&mut self, label: Label) {
        self.labels[label] = self.instructions.len();
    }

    fn put(&mut self, code: u16, constant: u32) {
        self.instructions.push((code, None, constant));
    }

    fn jump(&mut self, code: u16, constant: u32, then: Label, otherwise: Label) {
        self.instructions.push((code, Some((then, otherwise)), constant));
    }

    /// Jumps to `then` if the loaded value equals this one, else falls through.
    fn accept(&mut self, constant: u32, then: Label) {
        let next = self.label();
        self.jump(JUMP_EQUAL, constant, then, next);
        self.place(next);
    }

    /// Jumps to `otherwise` unless the loaded value equals this one.
    fn require(&mut self, constant: u32, otherwise: Label) {
        let next = self.label();
        self.jump(JUMP_EQUAL, constant, next, otherwise);
        self.place(next);
    }

    /// Jumps unconditionally.
    fn go(&mut self, to: Label) {
        self.jump(JUMP_EQUAL, 0, to, to);
    }

    /// The code of an expression. It jumps to `yes` or `no` and never falls through.
    fn expression(&mut self, expression: &Expression, yes: Label, no: Label) {
        match expression {
            Expression::Not(inner) => self.expression(inner, no, yes),
            Expression::And(first, second) => {
                let more = self.label();
                self.expression(first, more, no);
                self.place(more);
                self.expression(second, yes, no);
            }
            Expression::Or(first, second) => {
                let more = self.label();
                self.expression(first, yes, more);
                self.place(more);
                self.expression(second, yes, no);
            }
            Expression::Version(six) => {
                self.put(LOAD_HALF, PROTOCOL);
                self.jump(JUMP_EQUAL, if *six { ETHERTYPE_IPV6 } else { ETHERTYPE_IPV4 }, yes, no);
            }
            Expression::Tcp => self.by_version(no, &mut |code, six| {
                code.put(LOAD_BYTE, NETWORK.wrapping_add(if six { 6 } else { 9 }));
                code.jump(JUMP_EQUAL, TCP, yes, no);
            }),
            Expression::Port(end, port) => self.by_version(no, &mut |code, six| code.port(*end, *port, six, yes, no)),
            Expression::Net(end, address, bits) => self.by_version(no, &mut |code, six| {
                if six == address.is_ipv6() {
                    code.net(*end, *address, *bits, yes, no);
                } else {
                    code.go(no);
                }
            }),
        }
    }

    /// Code for IPv4 and code for IPv6. Any other protocol jumps to `no`.
    fn by_version(&mut self, no: Label, each: &mut dyn FnMut(&mut Self, bool)) {
        let (four, six) = (self.label(), self.label());
        self.put(LOAD_HALF, PROTOCOL);
        self.accept(ETHERTYPE_IPV4, four);
        self.jump(JUMP_EQUAL, ETHERTYPE_IPV6, six, no);
        self.place(four);
        each(self, false);
        self.place(six);
        each(self, true);
    }

    fn port(&mut self, end: PacketEnd, port: u16, six: bool, yes: Label, no: Label) {
        if six {
            for place in end.places() {
                self.put(LOAD_HALF, NETWORK.wrapping_add(40 + 2 * place));
                self.accept(u32::from(port), yes);
            }
            return self.go(no);
        }
        // Only the first fragment has ports.
        let whole = self.label();
        self.put(LOAD_HALF, NETWORK.wrapping_add(6));
        self.jump(JUMP_ANY_BIT, 0x1fff, no, whole);
        self.place(whole);
        self.put(LOAD_BYTE, NETWORK);
        self.put(AND, 0xf);
        self.put(SHIFT_LEFT, 2);
        self.put(TO_INDEX, 0);
        for place in end.places() {
            self.put(LOAD_HALF_INDEXED, NETWORK.wrapping_add(2 * place));
            self.accept(u32::from(port), yes);
        }
        self.go(no);
    }

    fn net(&mut self, end: PacketEnd, address: IpAddr, bits: u8, yes: Label, no: Label) {
        let (words, first): (Vec<u32>, [u32; 2]) = match address {
            IpAddr::V4(address) => (vec![u32::from(address)], [12, 16]),
            IpAddr::V6(address) => ((0..4).map(|word| (u128::from(address) >> (96 - 32 * word)) as u32).collect(), [8, 24]),
        };
        for end in end.places() {
            let next = self.label();
            for (place, word) in words.iter().enumerate() {
                let left = u32::from(bits).saturating_sub(32 * place as u32).min(32);
                if left == 0 {
                    break;
                }
                let mask = u32::MAX << (32 - left);
                self.put(LOAD_WORD, NETWORK.wrapping_add(first[*end as usize] + 4 * place as u32));
                if mask != u32::MAX {
                    self.put(AND, mask);
                }
                self.require(word & mask, next);
            }
            self.go(yes);
            self.place(next);
        }
        self.go(no);
    }

    /// All jumps lead forward. A jump that is too far does not matter here, because a program that long is refused.
    fn finish(self) -> Vec<Instruction> {
        let reach = |from: usize, label: Label| u8::try_from(self.labels[label].saturating_sub(from + 1)).unwrap_or(u8::MAX);
        let resolve = |(at, (code, jumps, constant)): (usize, &Open)| {
            let (then, otherwise) = jumps.map_or((0, 0), |(then, otherwise)| (reach(at, then), reach(at, otherwise)));
            (*code, then, otherwise, *constant)
        };
        self.instructions.iter().enumerate().map(resolve).collect()
    }
}

#[cfg(test)]
mod tests;
