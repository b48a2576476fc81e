//! What the kernel's reasons for dropping a packet mean (include/net/dropreason-core.h), for the reasons that servers meet.

use crate::error::Error;
use crate::tracefs::{Format, Tracefs};

/// DropTracepoint that are no loss: buffers freed in the no_loss course, and drops without a stated reason.
const NO_LOSS: &[&str] = &["NOT_SPECIFIED", "QUEUE_PURGE", "CONSUMED", "SKB_CONSUMED", "NOT_DROPPED_YET"];

const MEANINGS: &[(&str, &str)] = &[
    ("NO_SOCKET", "nobody listens there, or the connection is closed"),
    ("SOCKET_CLOSE", "the socket was closed with unread data"),
    ("SOCKET_FILTER", "a filter of the socket rejected it"),
    ("SOCKET_RCVBUFF", "the socket's receive buffer is full"),
    ("SOCKET_BACKLOG", "the socket's backlog is full: its program does not read fast enough"),
    ("TCP_CSUM", "wrong TCP checksum"),
    ("UDP_CSUM", "wrong UDP checksum"),
    ("NETFILTER_DROP", "the firewall, or a full connection tracking table"),
    ("OTHERHOST", "addressed to another host"),
    ("IP_RPFILTER", "the reverse path leads elsewhere (rp_filter)"),
    ("PROTO_MEM", "no memory left for the protocol (net.ipv4.tcp_mem)"),
    ("TCP_FLAGS", "flags that make no sense in this state"),
    ("TCP_ZEROWINDOW", "the receive window is zero: the program does not read"),
    ("TCP_OLD_DATA", "data that had been received before: a spurious retransmission"),
    ("TCP_OVERWINDOW", "beyond the receive window"),
    ("TCP_OFOMERGE", "data that is already in the out-of-order queue"),
    ("TCP_RFC7323_PAWS", "an old timestamp (RFC 7323)"),
    ("TCP_RFC7323_TW_PAWS", "an old timestamp for a connection in TIME_WAIT (RFC 7323)"),
    ("TCP_LISTEN_OVERFLOW", "the accept queue is full"),
    ("TCP_OLD_SEQUENCE", "a sequence number from before the window"),
    ("TCP_INVALID_SEQUENCE", "a sequence number outside the window"),
    ("TCP_INVALID_END_SEQUENCE", "it ends outside the window"),
    ("TCP_RESET", "a valid reset"),
    ("TCP_INVALID_SYN", "an unexpected SYN"),
    ("TCP_CLOSE", "the connection is closed"),
    ("TCP_OLD_ACK", "an acknowledgement that is old"),
    ("TCP_TOO_OLD_ACK", "an acknowledgement that is too old"),
    ("TCP_ACK_UNSENT_DATA", "an acknowledgement of data that was not sent"),
    ("TCP_OFO_QUEUE_PRUNE", "out of memory for out-of-order segments"),
    ("TCP_OFO_DROP", "no memory for an out-of-order segment"),
    ("TCP_ABORT_ON_DATA", "data after the program had closed: answered by a reset"),
    ("IP_OUTNOROUTES", "no route for a packet to be sent"),
    ("IP_INNOROUTES", "no route for a received packet"),
    ("NEIGH_FAILED", "the neighbour does not answer ARP or neighbour discovery"),
    ("NEIGH_QUEUEFULL", "too many packets wait for a neighbour's link address"),
    ("QDISC_DROP", "the queueing discipline of the interface dropped it"),
    ("QDISC_OVERLIMIT", "the queue of the interface is full"),
    ("QDISC_CONGESTED", "the queueing discipline signalled congestion"),
    ("FQ_FLOW_LIMIT", "too many packets of one flow wait (fq)"),
    ("FQ_HORIZON_LIMIT", "its send time is too far in the future (fq)"),
    ("CPU_BACKLOG", "the receive queue of a core is full (net.core.netdev_max_backlog)"),
    ("XDP", "an XDP program dropped it"),
    ("TC_INGRESS", "a tc filter on ingress dropped it"),
    ("TC_EGRESS", "a tc filter on egress dropped it"),
    ("UNHANDLED_PROTO", "no handler for its protocol"),
    ("FULL_RING", "the ring of a tap or packet socket is full"),
    ("NOMEM", "no memory"),
    ("PKT_TOO_BIG", "larger than the path MTU, and not to be fragmented"),
    ("IPV6DISABLED", "IPv6 is off"),
];

/// The tracepoint's number and layout, and the numbers of the reasons that are no loss.
#[derive(Debug)]
pub(super) struct DropTracepoint {
    pub(super) id: u64,
    pub(super) format: Format,
    pub(super) no_loss: Vec<(u64, String)>,
}

impl DropTracepoint {
    /// Opens tracefs and reads them.
    pub(super) fn find() -> Result<(Tracefs, Self), Error> {
        let tracefs = Tracefs::open().map_err(|none| Error::Missing(none.to_string()))?;
        let reasons = Self::read(&tracefs)?;
        Ok((tracefs, reasons))
    }

    fn read(tracefs: &Tracefs) -> Result<Self, Error> {
        let id = tracefs.id("skb", "kfree_skb").ok_or_else(|| Error::Missing("this kernel has no tracepoint skb:kfree_skb".to_owned()))?;
        let format = tracefs.format("skb", "kfree_skb").unwrap_or_default();
        if !format.fields.iter().any(|field| field.name == "reason") {
            return Err(Error::Missing("this kernel gives no drop reasons: that needs Linux 5.17".to_owned()));
        }
        let no_loss = format.symbols.iter().filter(|(_, name)| NO_LOSS.contains(&name.as_str())).cloned().collect();
        Ok(Self { id, format, no_loss })
    }
}

pub(super) fn meaning(reason: &str) -> Option<&'static str> {
    MEANINGS.iter().find(|(name, _)| *name == reason).map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_listed_once() {
        for (index, (name, meaning)) in MEANINGS.iter().enumerate() {
            assert!(!meaning.is_empty() && !NO_LOSS.contains(name), "{name}");
            assert!(MEANINGS[index + 1..].iter().all(|(other, _)| other != name), "{name}");
        }
        assert_eq!(meaning("X"), None);
    }
}
