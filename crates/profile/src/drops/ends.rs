//! At which address and port of this host a packet was dropped: skb:kfree_skb tells neither, but other tracepoints tell both of the same packet a moment
//! before it is dropped. Packets of which none does remain without.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use crate::peers::socket_address;
use crate::tracefs::{Format, Tracefs};

/// Time between what told of a packet and its drop at most, nanoseconds: both happen in one go, and its memory is used again soon after.
const APART_NS_MAX: u64 = 100_000;
/// Packets at most that are remembered; of one core, so that few are under way.
const REMEMBERED_MAX: usize = 16;

/// A tracepoint that tells of packets which are dropped next.
struct Telling {
    category: &'static str,
    name: &'static str,
    /// The field with the packet's address in the kernel; without one it is the next packet that the core drops.
    packet: Option<&'static str>,
    local: Local,
}

/// Where the address and port of this host's end are.
enum Local {
    /// A `struct sockaddr_in` or `sockaddr_in6` in this field.
    Socket(&'static str),
    /// An IPv4 address in the order of the network, and a port in the order of this machine.
    Fields(&'static str, &'static str),
}

/// Those of include/trace/events/tcp.h (of packets without a socket since Linux 6.10), icmp.h (6.11) and udp.h (with addresses since 6.10). All of them
/// happen where something goes wrong, so that they cost nothing else.
const TELLING: &[Telling] = &[
    Telling { category: "tcp", name: "tcp_send_reset", packet: Some("skbaddr"), local: Local::Socket("saddr") },
    Telling { category: "icmp", name: "icmp_send", packet: Some("skbaddr"), local: Local::Fields("daddr", "dport") },
    Telling { category: "udp", name: "udp_fail_queue_rcv_skb", packet: None, local: Local::Socket("daddr") },
];

/// The tracepoints of this kernel that tell, by their numbers.
#[derive(Default)]
pub(super) struct Ends(Vec<(u64, Format, &'static Telling)>);

impl std::fmt::Debug for Ends {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.0.iter().map(|(_, _, telling)| telling.name)).finish()
    }
}

impl Ends {
    /// Those that this kernel has in a form that is known.
    pub(super) fn find(tracefs: &Tracefs) -> Self {
        let found = TELLING.iter().filter_map(|telling| {
            let (id, format) = (tracefs.id(telling.category, telling.name)?, tracefs.format(telling.category, telling.name)?);
            Self::fits(&format, telling).then_some((id, format, telling))
        });
        Self(found.collect())
    }

    fn fits(format: &Format, telling: &Telling) -> bool {
        let has = |name: &str, size: usize| format.fields.iter().any(|field| field.name == name && field.size == size);
        let local = match &telling.local {
            Local::Socket(field) => has(field, SOCKET_ADDRESS_BYTES),
            Local::Fields(address, port) => has(address, 4) && has(port, 2),
        };
        local && telling.packet.is_none_or(|packet| has(packet, 8))
    }

    /// Their numbers.
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|(id, ..)| *id)
    }

    /// What the data of one of them tells: the packet, and the end on this host; none for other tracepoints.
    fn told(&self, id: u64, data: &[u8]) -> Option<(Option<u64>, SocketAddr)> {
        let (_, format, telling) = self.0.iter().find(|(known, ..)| *known == id)?;
        let end = match &telling.local {
            Local::Socket(field) => socket_address(format.bytes(field, data)?)?,
            Local::Fields(address, port) => {
                let address: [u8; 4] = format.bytes(address, data)?.try_into().ok()?;
                SocketAddr::new(Ipv4Addr::from(address).into(), u16::try_from(format.number(port, data)?).ok()?)
            }
        };
        let packet = match telling.packet {
            Some(field) => Some(format.number(field, data)?),
            None => None,
        };
        (end.port() != 0).then_some((packet, end))
    }
}

/// Bytes of the address fields: those of a `struct sockaddr_in6`.
const SOCKET_ADDRESS_BYTES: usize = 28;

/// What was told on one core and not dropped yet.
#[derive(Debug, Default)]
pub(super) struct SocketsOfDrops(VecDeque<(u64, Option<u64>, SocketAddr)>);

impl SocketsOfDrops {
    /// Remembers what a tracepoint tells; false where it is not one that does.
    pub(super) fn take(&mut self, ends: &Ends, time: u64, id: u64, data: &[u8]) -> bool {
        if !ends.0.iter().any(|(known, ..)| *known == id) {
            return false;
        }
        if let Some((packet, end)) = ends.told(id, data) {
            if self.0.len() >= REMEMBERED_MAX {
                self.0.pop_front();
            }
            self.0.push_back((time, packet, end));
        }
        true
    }

    /// The end of a packet that is dropped now.
    pub(super) fn of(&mut self, time: u64, packet: u64) -> Option<SocketAddr> {
        self.0.retain(|(told, ..)| time.saturating_sub(*told) <= APART_NS_MAX);
        let last = self.0.len().checked_sub(1);
        let found = self.0.iter().position(|(_, known, _)| *known == Some(packet));
        // One that names no packet is the last thing before the drop.
        let found = found.or_else(|| last.filter(|last| self.0.get(*last).is_some_and(|(_, known, _)| known.is_none())))?;
        self.0.remove(found).map(|(.., end)| end)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;

    /// The three as Linux 6.18 writes them, with the numbers 1, 2 and 3.
    fn ends() -> Ends {
        let texts = [
            "\tfield:const void * skbaddr;\toffset:8;\tsize:8;\n\tfield:__u8 saddr[28];\toffset:32;\tsize:28;\n",
            "\tfield:const void * skbaddr;\toffset:8;\tsize:8;\n\tfield:__u8 daddr[4];\toffset:28;\tsize:4;\n\tfield:__u16 dport;\toffset:34;\tsize:2;\n",
            "\tfield:__u8 daddr[28];\toffset:46;\tsize:28;\n",
        ];
        let formats = texts.iter().map(|text| Format::parse(text));
        Ends((1..).zip(formats).zip(TELLING).map(|((id, format), telling)| (id, format, telling)).collect())
    }

    fn data(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut data = vec![0; 80];
        for (at, bytes) in parts {
            data[*at..*at + bytes.len()].copy_from_slice(bytes);
        }
        data
    }

    #[test]
    fn a_packet_that_was_told_of_has_an_end_once_and_soon() {
        let (ends, mut told) = (ends(), SocketsOfDrops::default());
        assert!(ends.0.iter().all(|(_, format, telling)| Ends::fits(format, telling)));
        let reset = data(&[(8, &7_u64.to_ne_bytes()), (32, &[2, 0, 0, 80, 10, 78, 0, 2])]);
        let icmp = data(&[(8, &9_u64.to_ne_bytes()), (28, &[127, 0, 0, 1]), (34, &53_u16.to_ne_bytes())]);
        assert!(told.take(&ends, 1000, 1, &reset) && told.take(&ends, 1001, 2, &icmp) && !told.take(&ends, 1002, 4, &icmp));
        assert_eq!(told.of(1100, 8), None);
        assert_eq!(told.of(1100, 7), Some("10.78.0.2:80".parse().unwrap()));
        assert_eq!(told.of(1100, 7), None);
        assert_eq!(told.of(1001 + APART_NS_MAX + 1, 9), None);
        // Without a packet it is the next drop alone.
        let mut six = vec![10, 0, 0, 53, 0, 0, 0, 0];
        six.extend(Ipv6Addr::LOCALHOST.octets());
        told.take(&ends, 200_000, 3, &data(&[(46, &six)]));
        assert_eq!(told.of(200_010, 5), Some("[::1]:53".parse().unwrap()));
        assert_eq!(told.of(200_010, 5), None);
    }

    #[test]
    fn a_form_that_is_not_known_is_left_out() {
        let odd = Format::parse("\tfield:const void * skbaddr;\toffset:8;\tsize:8;\n\tfield:__u8 saddr[4];\toffset:32;\tsize:4;\n");
        assert!(!Ends::fits(&odd, &TELLING[0]) && !Ends::fits(&Format::default(), &TELLING[2]));
    }

    proptest! {
        #[test]
        fn any_data_is_taken(id in 0u64..5, bytes in proptest::collection::vec(any::<u8>(), 0..90), packet: u64) {
            let (ends, mut told) = (ends(), SocketsOfDrops::default());
            for time in 0..40 {
                told.take(&ends, time, id, &bytes);
            }
            prop_assert!(told.0.len() <= REMEMBERED_MAX);
            told.of(40, packet);
        }
    }
}
