//! Packet capture on an interface: a ring shared with the kernel (packet(7), TPACKET_V3), with a filter in the kernel.

pub(crate) mod answers;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::netlink::wire::{u16_at, u32_at};
use crate::netns::enter::spawn_inside;
use crate::netns::{NetnsError, NetnsRef};
use crate::root::Root;

/// Size and number of the ring's blocks. A capture needs no other memory here.
const BLOCK_BYTES: usize = 1 << 20;
const BLOCKS: usize = 32;
/// The kernel hands over a partly filled block after this time, ms.
const RETIRE_MS: u32 = 100;
/// Link-layer header types (<https://www.tcpdump.org/linktypes.html>).
const LINK_ETHERNET: u16 = 1;
const LINK_SLL2: u16 = 276;
/// Bytes of a header of LINKTYPE_LINUX_SLL2.
const SLL2_BYTES: usize = 20;
/// Offsets in `struct tpacket_block_desc` and `struct tpacket3_hdr` (linux/if_packet.h).
const BLOCK_STATUS: usize = 8;
const BLOCK_PACKETS: usize = 12;
const BLOCK_FIRST: usize = 16;
const PACKET_ADDRESS: usize = 48;
const STATUS_USER: u32 = 1;
const STATUS_VLAN: u32 = 1 << 4;
const STATUS_VLAN_KIND: u32 = 1 << 6;
const OUTGOING: u8 = 4;

/// Why no packets can be captured.
#[derive(Debug, thiserror::Error)]
pub enum CaptureStartError {
    /// The namespace cannot be entered.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// There is no such interface.
    #[error("there is no interface \"{0}\" in this network namespace")]
    Interface(String),
    /// A privilege is missing.
    #[error("this user may not capture packets (needs CAP_NET_RAW)")]
    Privilege,
    /// The kernel refuses.
    #[error("{what}: {error}")]
    System {
        /// What it refuses.
        what: &'static str,
        /// The reason.
        error: io::Error,
    },
}

/// One packet. It borrows from its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivePacket<'a> {
    /// Time of capture, ns since 1970-01-01 UTC.
    pub at_ns: i64,
    /// Link-layer header type: Ethernet, or Linux "cooked" version 2 for any other interface and for all of them together.
    pub link: u16,
    /// Its length on the wire, bytes.
    pub wire_bytes: u32,
    /// The bytes that the filter keeps.
    pub bytes: &'a [u8],
}

/// A running capture.
#[derive(Debug)]
pub struct PacketRing {
    socket: OwnedFd,
    ring: NonNull<u8>,
    next: usize,
    cooked: bool,
    /// Packets that passed the filter, and those of them that did not fit into the ring, until the last call of `counts`.
    counts: (u64, u64),
    scratch: Vec<u8>,
}

// SAFETY: only this value uses the mapping behind the pointer and unmaps it, from any thread.
unsafe impl Send for PacketRing {}

impl PacketRing {
    /// Blocks of the ring. After the last read, captured packets are in at most this many blocks.
    pub const BLOCKS: usize = BLOCKS;

    /// Begins a capture on an interface, or on "any", of the given network namespace or the own one. `program` is a filter in classic BPF.
    ///
    /// # Errors
    /// The interface or namespace does not exist, the kernel refuses, or a privilege is missing.
    pub fn open(root: &Root, netns: Option<NetnsRef>, interface: &str, program: &[(u16, u8, u8, u32)]) -> Result<Self, CaptureStartError> {
        let (name, program) = (interface.to_owned(), program.to_vec());
        let (socket, cooked) = match netns {
            None => open(&name, &program)?,
            // A socket stays in the namespace of the thread that created it.
            Some(netns) => {
                let thread = spawn_inside(netns, root.clone(), move |inside| {
                    inside?;
                    open(&name, &program)
                })?;
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?
            }
        };
        // SAFETY: a new mapping of the ring, which was set up with this size. It is unmapped when this value is dropped.
        let ring = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), BLOCK_BYTES * BLOCKS, access, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        let ring = if ring == libc::MAP_FAILED { None } else { NonNull::new(ring.cast()) };
        let ring = ring.ok_or_else(|| refused("the ring cannot be mapped"))?;
        Ok(Self { socket, ring, next: 0, cooked, counts: (0, 0), scratch: Vec::new() })
    }

    /// Waits for packets, for the given time at most. A signal also ends the wait.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn wait(&self, time: Duration) -> io::Result<()> {
        let mut polled = [PollFd::new(&self.socket, PollFlags::IN | PollFlags::ERR)];
        let time = Timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut polled, Some(&time)) {
            Ok(_) if polled[0].revents().contains(PollFlags::ERR) => Err(rustix::net::sockopt::socket_error(&self.socket)?
                .err()
                .map_or_else(|| io::Error::other("the interface is down"), io::Error::from)),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Passes the packets of the next block to `each` and returns the block to the kernel; false if no block is ready.
    pub fn block(&mut self, each: &mut dyn FnMut(&LivePacket<'_>)) -> bool {
        // SAFETY: within the mapping. The kernel writes this word atomically and hands over the rest of the block with it.
        let (status, block) = unsafe {
            let begin = self.ring.as_ptr().add(self.next * BLOCK_BYTES);
            let status = AtomicU32::from_ptr(begin.add(BLOCK_STATUS).cast());
            if status.load(Ordering::Acquire) & STATUS_USER == 0 {
                return false;
            }
            (status, std::slice::from_raw_parts(begin.add(BLOCK_PACKETS), BLOCK_BYTES - BLOCK_PACKETS))
        };
        walk(block, self.cooked, &mut self.scratch, each);
        status.store(0, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
        true
    }

    /// Packets that passed the filter since the capture began, and those of them lost because the ring was full.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn counts(&mut self) -> io::Result<(u64, u64)> {
        // struct tpacket_stats_v3: packets, drops, freezes of the queue.
        let words: [u32; 3] = statistics(&self.socket)?;
        // Each call resets the kernel's counters.
        self.counts = (self.counts.0 + u64::from(words[0]), self.counts.1 + u64::from(words[1]));
        Ok(self.counts)
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: the mapping that `open` created. Nothing refers to it any more.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), BLOCK_BYTES * BLOCKS) };
    }
}

/// Passes on the packets of a block, whose bytes begin with the number of packets. No offset in it is trusted.
fn walk(block: &[u8], cooked: bool, scratch: &mut Vec<u8>, each: &mut dyn FnMut(&LivePacket<'_>)) {
    let packets = u32_at(block, 0).unwrap_or(0);
    let mut at = u32_at(block, BLOCK_FIRST - BLOCK_PACKETS).unwrap_or(0) as usize;
    let mut header = at.checked_sub(BLOCK_PACKETS);
    for _ in 0..packets {
        let Some(bytes) = header.and_then(|at| block.get(at..)) else { return };
        let Some(next) = one(bytes, cooked, scratch, each) else { return };
        at = next as usize;
        if at == 0 {
            return;
        }
        header = header.and_then(|header| header.checked_add(at));
    }
}

/// Passes on one packet and returns the distance to the next one, 0 after the last.
fn one(header: &[u8], cooked: bool, scratch: &mut Vec<u8>, each: &mut dyn FnMut(&LivePacket<'_>)) -> Option<u32> {
    let word = |at| u32_at(header, at);
    let (next, seconds, nanoseconds, kept, wire_bytes, status) = (word(0)?, word(4)?, word(8)?, word(12)?, word(16)?, word(20)?);
    let (link_at, network_at) = (usize::from(u16_at(header, 24)?), usize::from(u16_at(header, 26)?));
    let address = header.get(PACKET_ADDRESS..PACKET_ADDRESS + 20)?;
    let (device, kind) = (u16_at(address, 8)?, address[10]);
    // A packet that is sent over loopback is also received there. It counts once.
    if device == libc::ARPHRD_LOOPBACK && kind == OUTGOING {
        return Some(next);
    }
    let at_ns = i64::from(seconds) * 1_000_000_000 + i64::from(nanoseconds);
    let begin = if cooked { network_at } else { link_at };
    let bytes = header.get(begin..begin.checked_add(kept as usize)?)?;
    let mut packet = LivePacket { at_ns, link: LINK_ETHERNET, wire_bytes, bytes };
    scratch.clear();
    if cooked {
        // Protocol, nothing, interface, device type, packet type, length of the address, address.
        scratch.extend_from_slice(&address[2..4]);
        scratch.extend_from_slice(&[0; 2]);
        scratch.extend_from_slice(&u32_at(address, 4)?.to_be_bytes());
        scratch.extend_from_slice(&device.to_be_bytes());
        scratch.extend_from_slice(&[kind, address[11].min(8)]);
        scratch.extend_from_slice(&address[12..20]);
        scratch.extend_from_slice(bytes);
        packet = LivePacket { link: LINK_SLL2, wire_bytes: wire_bytes.saturating_add(SLL2_BYTES as u32), bytes: scratch, ..packet };
    } else if status & STATUS_VLAN != 0 && bytes.len() >= 12 {
        // The kernel takes a VLAN tag out of the frame and reports it separately.
        let tag_kind = if status & STATUS_VLAN_KIND != 0 { u16_at(header, 36)? } else { 0x8100 };
        scratch.extend_from_slice(&bytes[..12]);
        scratch.extend_from_slice(&tag_kind.to_be_bytes());
        scratch.extend_from_slice(&(word(32)? as u16).to_be_bytes());
        scratch.extend_from_slice(&bytes[12..]);
        packet = LivePacket { wire_bytes: wire_bytes.saturating_add(4), bytes: scratch, ..packet };
    }
    each(&packet);
    Some(next)
}

fn refused(what: &'static str) -> CaptureStartError {
    refusal(what, io::Error::last_os_error())
}

fn refusal(what: &'static str, error: io::Error) -> CaptureStartError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => CaptureStartError::Privilege,
        _ => CaptureStartError::System { what, error },
    }
}

/// A socket in the calling thread's namespace with filter and ring; true if the link layer is left out.
fn open(interface: &str, program: &[(u16, u8, u8, u32)]) -> Result<(OwnedFd, bool), CaptureStartError> {
    if interface == "any" {
        return Ok((prepared(libc::SOCK_DGRAM, 0, program)?.0, true));
    }
    let name = std::ffi::CString::new(interface).map_err(|_| CaptureStartError::Interface(interface.to_owned()))?;
    // SAFETY: the name ends with a NUL.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(CaptureStartError::Interface(interface.to_owned()));
    }
    let (socket, device) = prepared(libc::SOCK_RAW, index, program)?;
    if matches!(device, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) {
        return Ok((socket, false));
    }
    Ok((prepared(libc::SOCK_DGRAM, index, program)?.0, true))
}

/// A bound socket and the type of its device. It has no protocol until it is set up, so that no unfiltered packet gets in.
fn prepared(kind: libc::c_int, index: u32, program: &[(u16, u8, u8, u32)]) -> Result<(OwnedFd, u16), CaptureStartError> {
    let socket = unbound(kind).map_err(|error| refusal("the packet socket cannot be created", error))?;
    attach(&socket, program).map_err(|error| refusal("the kernel refuses the filter", error))?;
    set(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as libc::c_int))
        .ok_or_else(|| refused("this kernel has no TPACKET_V3 ring"))?;
    let ring = libc::tpacket_req3 {
        tp_block_size: BLOCK_BYTES as u32,
        tp_block_nr: BLOCKS as u32,
        tp_frame_size: 2048,
        tp_frame_nr: (BLOCKS * BLOCK_BYTES / 2048) as u32,
        tp_retire_blk_tov: RETIRE_MS,
        tp_sizeof_priv: 0,
        tp_feature_req_word: 0,
    };
    set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &ring).ok_or_else(|| refused("the kernel refuses the ring"))?;
    let device = bind(&socket, index).map_err(|error| refusal("the interface cannot be captured on", error))?;
    Ok((socket, device))
}

/// A packet socket of the calling thread's namespace. Until it is bound it gets no packets.
fn unbound(kind: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: a system call without pointers; a descriptor that it gives is ours.
    unsafe {
        let descriptor = libc::socket(libc::AF_PACKET, kind | libc::SOCK_CLOEXEC, 0);
        if descriptor < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(descriptor)) }
    }
}

/// Gives it a filter in classic BPF.
fn attach(socket: &OwnedFd, program: &[(u16, u8, u8, u32)]) -> io::Result<()> {
    let mut filter: Vec<libc::sock_filter> =
        program.iter().map(|(code, jt, jf, k)| libc::sock_filter { code: *code, jt: *jt, jf: *jf, k: *k }).collect();
    let filter = libc::sock_fprog { len: u16::try_from(filter.len()).unwrap_or(u16::MAX), filter: filter.as_mut_ptr() };
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter).ok_or_else(io::Error::last_os_error)
}

/// Binds it to an interface, 0 for all of them. Returns the type of the device.
fn bind(socket: &OwnedFd, index: u32) -> io::Result<u16> {
    // SAFETY: all zeros are a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = i32::try_from(index).unwrap_or(0);
    let mut length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: both calls get a sockaddr_ll and its size, and write no more than that.
    let bound = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) == 0
            && libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length) == 0
    };
    if bound { Ok(address.sll_hatype) } else { Err(io::Error::last_os_error()) }
}

/// The kernel's counters since the last call: packets that passed the filter, those of them that found no room, and what else its version of them has (linux/if_packet.h).
fn statistics<const N: usize>(socket: &OwnedFd) -> io::Result<[u32; N]> {
    let mut words = [0_u32; N];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into an array of that size.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, words.as_mut_ptr().cast(), &raw mut length)
    };
    if result == 0 { Ok(words) } else { Err(io::Error::last_os_error()) }
}

fn set<T>(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> Option<()> {
    // SAFETY: the kernel reads as many bytes as the value has, and what it points to outlives the call.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const *value).cast(), size_of::<T>() as libc::socklen_t) };
    (result == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A block with one packet of Ethernet: its header, its address, its bytes.
    fn block(status: u32, device: u16, kind: u8, bytes: &[u8]) -> Vec<u8> {
        let mut header = vec![0; PACKET_ADDRESS + 20];
        for (at, word) in [(4, 7), (8, 9), (12, bytes.len() as u32), (16, 1500), (20, status), (32, 5)] {
            header[at..at + 4].copy_from_slice(&u32::to_ne_bytes(word));
        }
        let begin = header.len() as u16;
        header[24..26].copy_from_slice(&begin.to_ne_bytes());
        header[26..28].copy_from_slice(&(begin + 14).to_ne_bytes());
        let address = &mut header[PACKET_ADDRESS..];
        address[2..4].copy_from_slice(&0x0800_u16.to_be_bytes());
        address[4] = 3;
        address[8..10].copy_from_slice(&device.to_ne_bytes());
        address[10] = kind;
        header.extend_from_slice(bytes);
        let mut block = vec![0; 36];
        block[..4].copy_from_slice(&1_u32.to_ne_bytes());
        block[4..8].copy_from_slice(&48_u32.to_ne_bytes());
        block.extend(header);
        block
    }

    fn packets(block: &[u8], cooked: bool) -> Vec<(i64, u16, u32, Vec<u8>)> {
        let mut found = Vec::new();
        walk(block, cooked, &mut Vec::new(), &mut |packet| {
            found.push((packet.at_ns, packet.link, packet.wire_bytes, packet.bytes.to_vec()));
        });
        found
    }

    #[test]
    fn a_frame_is_unchanged_and_its_vlan_tag_is_restored() {
        let bytes: Vec<u8> = (0..60).collect();
        assert_eq!(packets(&block(1, 1, 0, &bytes), false), [(7_000_000_009, 1, 1500, bytes.clone())]);
        let tagged = &packets(&block(1 | STATUS_VLAN, 1, 0, &bytes), false)[0];
        assert_eq!(
            (tagged.2, &tagged.3[..12], &tagged.3[12..16], &tagged.3[16..]),
            (1504, &bytes[..12], &[0x81, 0, 0, 5][..], &bytes[12..])
        );
        assert!(packets(&block(1, libc::ARPHRD_LOOPBACK, OUTGOING, &bytes), false).is_empty());
    }

    #[test]
    fn any_block_is_read_within_its_bounds() {
        let whole = block(1, 1, 0, &[1; 40]);
        for cut in 0..whole.len() {
            assert!(packets(&whole[..cut], false).len() <= 1, "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..400), cooked: bool) {
            packets(&bytes, cooked);
        }
    }

    mod live {
        use super::*;

        #[test]
        fn a_packet_on_loopback_is_captured_once() {
            let all = [(0x06, 0, 0, 65_535)];
            let mut ring = match PacketRing::open(&Root::default(), None, "lo", &all) {
                Ok(ring) => ring,
                Err(error @ CaptureStartError::Privilege) => return println!("skipped: {error}"),
                Err(error) => panic!("{error}"),
            };
            let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let marker: Vec<u8> = (0..200).map(|place| place ^ 0x5a).collect();
            receiver.send_to(&marker, receiver.local_addr().unwrap()).unwrap();
            let mut seen = 0;
            // The kernel hands a block over within RETIRE_MS.
            while seen == 0 {
                ring.wait(Duration::from_secs(10)).unwrap();
                while ring.block(&mut |packet| seen += usize::from(packet.bytes.ends_with(&marker) && packet.link == LINK_ETHERNET)) {}
            }
            assert_eq!(seen, 1);
            let (passed, lost) = ring.counts().unwrap();
            assert!(passed >= 1 && lost <= passed);
            assert!(matches!(PacketRing::open(&Root::default(), None, "none0", &all), Err(CaptureStartError::Interface(_))));
        }
    }
}
