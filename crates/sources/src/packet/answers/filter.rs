//! The filter in the kernel (classic BPF, Documentation/networking/filter.rst): of each packet with the beginning of a response or a connection, its first bytes; of all others nothing.

/// Bytes kept of a packet: the headers, a status line, and what PHP logs before it.
pub(super) const KEPT_BYTES: u32 = 1_024;

// Instructions (linux/bpf_common.h): load a byte, half or whole word, at a place or from X on; jump if equal or if bits are set; calculate; return.
const LD_BYTE: u16 = 0x30;
const LD_HALF: u16 = 0x28;
const LD_WORD: u16 = 0x20;
const LD_BYTE_X: u16 = 0x50;
const LD_WORD_X: u16 = 0x40;
const LDX_CONSTANT: u16 = 0x01;
const LDX_IPV4_HEADER: u16 = 0xb1;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_SET: u16 = 0x45;
const AND: u16 = 0x54;
const SHIFT_LEFT: u16 = 0x64;
const SHIFT_RIGHT: u16 = 0x74;
const ADD_X: u16 = 0x0c;
const TO_X: u16 = 0x07;
const RETURN: u16 = 0x06;

/// Where the kernel's own facts on a packet are loaded from (SKF_AD_OFF, linux/filter.h): its direction and interface.
const OWN_FACTS: u32 = 0xffff_f000;
const DIRECTION: u32 = OWN_FACTS + 4;
const INTERFACE: u32 = OWN_FACTS + 8;
/// `PACKET_OUTGOING` (linux/if_packet.h).
const OUTGOING: u32 = 4;
/// The first interface of every namespace.
const LOOPBACK: u32 = 1;
const TCP: u32 = 6;
const FRAGMENT_OFFSET: u32 = 0x1fff;
/// Flags of the packet that accepts a connection.
const SYN_ACK: u32 = super::head::SYN_ACK as u32;
/// How payloads begin: "HTTP", "Stat", and records of FastCGI with output or errors.
const HTTP: u32 = u32::from_be_bytes(*b"HTTP");
const STATUS: u32 = u32::from_be_bytes(*b"Stat");
const FCGI_OUTPUT: u32 = 0x0106;
const FCGI_ERRORS: u32 = 0x0107;

/// The program, as (code, jump if true, jump if false, constant); a jump says how many of the next instructions it leaves out. Packets begin with their network header (SOCK_DGRAM). What is sent over loopback is
/// received there as well: it counts when it is sent.
pub(super) const PROGRAM: [(u16, u8, u8, u32); 33] = [
    (LD_WORD, 0, 0, INTERFACE),
    (JUMP_EQUAL, 0, 2, LOOPBACK),
    (LD_WORD, 0, 0, DIRECTION),
    (JUMP_EQUAL, 0, 27, OUTGOING),
    (LD_BYTE, 0, 0, 0),
    (AND, 0, 0, 0xf0),
    (JUMP_EQUAL, 0, 6, 0x40),
    // IPv4: TCP, not a later fragment; X is the length of its header.
    (LD_BYTE, 0, 0, 9),
    (JUMP_EQUAL, 0, 22, TCP),
    (LD_HALF, 0, 0, 6),
    (JUMP_SET, 20, 0, FRAGMENT_OFFSET),
    (LDX_IPV4_HEADER, 0, 0, 0),
    (JUMP_EQUAL, 4, 4, 0),
    (JUMP_EQUAL, 0, 17, 0x60),
    // IPv6: TCP at once.
    (LD_BYTE, 0, 0, 6),
    (JUMP_EQUAL, 0, 15, TCP),
    (LDX_CONSTANT, 0, 0, 40),
    // A connection begins.
    (LD_BYTE_X, 0, 0, 13),
    (AND, 0, 0, SYN_ACK),
    (JUMP_EQUAL, 12, 0, SYN_ACK),
    // The payload begins after the TCP header, whose length is in words.
    (LD_BYTE_X, 0, 0, 12),
    (SHIFT_RIGHT, 0, 0, 4),
    (SHIFT_LEFT, 0, 0, 2),
    (ADD_X, 0, 0, 0),
    (TO_X, 0, 0, 0),
    (LD_WORD_X, 0, 0, 0),
    (JUMP_EQUAL, 5, 0, HTTP),
    (JUMP_EQUAL, 4, 0, STATUS),
    (SHIFT_RIGHT, 0, 0, 16),
    (JUMP_EQUAL, 2, 0, FCGI_OUTPUT),
    (JUMP_EQUAL, 1, 0, FCGI_ERRORS),
    (RETURN, 0, 0, 0),
    (RETURN, 0, 0, KEPT_BYTES),
];
