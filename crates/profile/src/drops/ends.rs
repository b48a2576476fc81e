//! The local address and port of dropped packets. skb:kfree_skb has neither, but other tracepoints report both for some packets a moment before they are
//! dropped.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use crate::tracefs::{Format, Tracefs};
use crate::waiting::peers::socket_address;

/// Maximum time between such a report and the drop, nanoseconds. Both happen in one call, and the packet's memory is reused soon after.
const REPORT_AGE_NS_MAX: u64 = 100_000;
/// Maximum number of remembered reports, for each core.
const REPORTS_MAX: usize = 16;

/// A tracepoint that reports packets which are about to be dropped.
struct ReportingTracepoint {
    category: &'static str,
    name: &'static str,
    /// The field with the packet's kernel address. Without it, the report is about the next packet that the core drops.
    packet: Option<&'static str>,
    local: Local,
}

/// Where the local address and port are.
enum Local {
    /// A `struct sockaddr_in` or `sockaddr_in6` in this field.
    Socket(&'static str),
    /// An IPv4 address in network byte order, and a port in this machine's byte order.
    Fields(&'static str, &'static str),
}

/// From include/trace/events/tcp.h (for packets without a socket since Linux 6.10), icmp.h (6.11) and udp.h (with addresses since 6.10). They only fire when
/// something goes wrong, so they cost nothing otherwise.
const REPORTING: &[ReportingTracepoint] = &[
    ReportingTracepoint { category: "tcp", name: "tcp_send_reset", packet: Some("skbaddr"), local: Local::Socket("saddr") },
    ReportingTracepoint { category: "icmp", name: "icmp_send", packet: Some("skbaddr"), local: Local::Fields("daddr", "dport") },
    ReportingTracepoint { category: "udp", name: "udp_fail_queue_rcv_skb", packet: None, local: Local::Socket("daddr") },
];

/// The reporting tracepoints of this kernel, by their numbers.
#[derive(Default)]
pub(super) struct ReportingTracepoints(Vec<(u64, Format, &'static ReportingTracepoint)>);

impl std::fmt::Debug for ReportingTracepoints {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.0.iter().map(|(_, _, tracepoint)| tracepoint.name)).finish()
    }
}

impl ReportingTracepoints {
    /// Finds those that this kernel has in a known layout.
    pub(super) fn find(tracefs: &Tracefs) -> Self {
        let found = REPORTING.iter().filter_map(|tracepoint| {
            let (id, format) = (tracefs.id(tracepoint.category, tracepoint.name)?, tracefs.format(tracepoint.category, tracepoint.name)?);
            Self::fits(&format, tracepoint).then_some((id, format, tracepoint))
        });
        Self(found.collect())
    }

    fn fits(format: &Format, tracepoint: &ReportingTracepoint) -> bool {
        let has = |name: &str, size: usize| format.fields.iter().any(|field| field.name == name && field.size == size);
        let local = match &tracepoint.local {
            Local::Socket(field) => has(field, SOCKET_ADDRESS_BYTES),
            Local::Fields(address, port) => has(address, 4) && has(port, 2),
        };
        local && tracepoint.packet.is_none_or(|packet| has(packet, 8))
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|(id, ..)| *id)
    }

    /// The packet and its local end from the data of a reporting tracepoint; none for other tracepoints.
    fn reports(&self, id: u64, data: &[u8]) -> Option<(Option<u64>, SocketAddr)> {
        let (_, format, tracepoint) = self.0.iter().find(|(known, ..)| *known == id)?;
        let end = match &tracepoint.local {
            Local::Socket(field) => socket_address(format.bytes(field, data)?)?,
            Local::Fields(address, port) => {
                let address: [u8; 4] = format.bytes(address, data)?.try_into().ok()?;
                SocketAddr::new(Ipv4Addr::from(address).into(), u16::try_from(format.number(port, data)?).ok()?)
            }
        };
        let packet = match tracepoint.packet {
            Some(field) => Some(format.number(field, data)?),
            None => None,
        };
        (end.port() != 0).then_some((packet, end))
    }
}

/// Bytes of the address fields: a `struct sockaddr_in6`.
const SOCKET_ADDRESS_BYTES: usize = 28;

/// The reports of one core whose packets have not been dropped yet: time, packet, local end.
#[derive(Debug, Default)]
pub(super) struct DropReports(VecDeque<(u64, Option<u64>, SocketAddr)>);

impl DropReports {
    /// Remembers a report; false if the tracepoint is not a reporting one.
    pub(super) fn take(&mut self, ends: &ReportingTracepoints, time: u64, id: u64, data: &[u8]) -> bool {
        if !ends.0.iter().any(|(known, ..)| *known == id) {
            return false;
        }
        if let Some((packet, end)) = ends.reports(id, data) {
            if self.0.len() >= REPORTS_MAX {
                self.0.pop_front();
            }
            self.0.push_back((time, packet, end));
        }
        true
    }

    /// The local end of a packet that is dropped now.
    pub(super) fn of(&mut self, time: u64, packet: u64) -> Option<SocketAddr> {
        self.0.retain(|(reports, ..)| time.saturating_sub(*reports) <= REPORT_AGE_NS_MAX);
        let last = self.0.len().checked_sub(1);
        let found = self.0.iter().position(|(_, known, _)| *known == Some(packet));
        // A report without a packet is the last event before the drop.
        let found = found.or_else(|| last.filter(|last| self.0.get(*last).is_some_and(|(_, known, _)| known.is_none())))?;
        self.0.remove(found).map(|(.., end)| end)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;

    /// The three tracepoints as Linux 6.18 describes them, numbered 1, 2 and 3.
    fn ends() -> ReportingTracepoints {
        let texts = [
            "\tfield:const void * skbaddr;\toffset:8;\tsize:8;\n\tfield:__u8 saddr[28];\toffset:32;\tsize:28;\n",
            "\tfield:const void * skbaddr;\toffset:8;\tsize:8;\n\tfield:__u8 daddr[4];\toffset:28;\tsize:4;\n\tfield:__u16 dport;\toffset:34;\tsize:2;\n",
            "\tfield:__u8 daddr[28];\toffset:46;\tsize:28;\n",
        ];
        let formats = texts.iter().map(|text| Format::parse(text));
        ReportingTracepoints((1..).zip(formats).zip(REPORTING).map(|((id, format), tracepoint)| (id, format, tracepoint)).collect())
    }

    fn data(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut data = vec![0; 80];
        for (at, bytes) in parts {
            data[*at..*at + bytes.len()].copy_from_slice(bytes);
        }
        data
    }

    #[test]
    fn a_report_names_the_end_of_one_packet_for_a_short_time() {
        let (ends, mut reports) = (ends(), DropReports::default());
        assert!(ends.0.iter().all(|(_, format, tracepoint)| ReportingTracepoints::fits(format, tracepoint)));
        let reset = data(&[(8, &7_u64.to_ne_bytes()), (32, &[2, 0, 0, 80, 10, 78, 0, 2])]);
        let icmp = data(&[(8, &9_u64.to_ne_bytes()), (28, &[127, 0, 0, 1]), (34, &53_u16.to_ne_bytes())]);
        assert!(reports.take(&ends, 1000, 1, &reset) && reports.take(&ends, 1001, 2, &icmp) && !reports.take(&ends, 1002, 4, &icmp));
        assert_eq!(reports.of(1100, 8), None);
        assert_eq!(reports.of(1100, 7), Some("10.78.0.2:80".parse().unwrap()));
        assert_eq!(reports.of(1100, 7), None);
        assert_eq!(reports.of(1001 + REPORT_AGE_NS_MAX + 1, 9), None);
        // Without a packet, a report is only about the next drop.
        let mut six = vec![10, 0, 0, 53, 0, 0, 0, 0];
        six.extend(Ipv6Addr::LOCALHOST.octets());
        reports.take(&ends, 200_000, 3, &data(&[(46, &six)]));
        assert_eq!(reports.of(200_010, 5), Some("[::1]:53".parse().unwrap()));
        assert_eq!(reports.of(200_010, 5), None);
    }

    #[test]
    fn tracepoints_with_unknown_layouts_are_skipped() {
        let odd = Format::parse("\tfield:const void * skbaddr;\toffset:8;\tsize:8;\n\tfield:__u8 saddr[4];\toffset:32;\tsize:4;\n");
        assert!(!ReportingTracepoints::fits(&odd, &REPORTING[0]) && !ReportingTracepoints::fits(&Format::default(), &REPORTING[2]));
    }

    proptest! {
        #[test]
        fn arbitrary_data_is_read(id in 0u64..5, bytes in proptest::collection::vec(any::<u8>(), 0..90), packet: u64) {
            let (ends, mut reports) = (ends(), DropReports::default());
            for time in 0..40 {
                reports.take(&ends, time, id, &bytes);
            }
            prop_assert!(reports.0.len() <= REPORTS_MAX);
            reports.of(40, packet);
        }
    }
}
