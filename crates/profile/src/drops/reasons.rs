//! What the kernel's reasons for dropping a packet mean (include/net/dropreason-core.h), for the reasons that servers meet.

use crate::error::Error;
use crate::tracefs::{Format, Tracefs};

/// DropTracepoint that are no loss: buffers freed in the no_loss course, and drops without a stated reason.
const NO_LOSS: &[&str] = &["NOT_SPECIFIED", "QUEUE_PURGE", "CONSUMED", "SKB_CONSUMED", "NOT_DROPPED_YET"];

const MEANINGS: &[(&str, &str)] = &[
    ("NO_SOCKET", "nobody listens there, or the connection is no more"),
    ("SOCKET_CLOSE", "the socket was closed with data in it"),
    ("SOCKET_FILTER", "a filter of the socket's refused it"),
    ("SOCKET_RCVBUFF", "the socket's receive buffer is full"),
    ("SOCKET_BACKLOG", "the socket's backlog is full: its program is not quick enough"),
    ("TCP_CSUM", "wrong TCP checksum"),
    ("UDP_CSUM", "wrong UDP checksum"),
    ("NETFILTER_DROP", "the firewall, or a full connection tracking table"),
    ("OTHERHOST", "meant for another host"),
    ("IP_RPFILTER", "the way back leads elsewhere (rp_filter)"),
    ("PROTO_MEM", "no memory left for the protocol (net.ipv4.tcp_mem)"),
    ("TCP_FLAGS", "flags that make no sense in this state"),
    ("TCP_ZEROWINDOW", "the receive window is zero: the program does not read"),
    ("TCP_OLD_DATA", "data that was received before: a needless retransmission"),
    ("TCP_OVERWINDOW", "beyond the receive window"),
    ("TCP_OFOMERGE", "data that is in the queue of early segments already"),
    ("TCP_RFC7323_PAWS", "an old timestamp (RFC 7323)"),
    ("TCP_RFC7323_TW_PAWS", "an old timestamp at a connection in TIME_WAIT (RFC 7323)"),
    ("TCP_LISTEN_OVERFLOW", "the accept queue is full"),
    ("TCP_OLD_SEQUENCE", "a sequence number from before the window"),
    ("TCP_INVALID_SEQUENCE", "a sequence number outside the window"),
    ("TCP_INVALID_END_SEQUENCE", "it ends outside the window"),
    ("TCP_RESET", "a reset that was heeded"),
    ("TCP_INVALID_SYN", "a SYN where none belongs"),
    ("TCP_CLOSE", "the connection is closed"),
    ("TCP_OLD_ACK", "an acknowledgement that is old"),
    ("TCP_TOO_OLD_ACK", "an acknowledgement that is too old"),
    ("TCP_ACK_UNSENT_DATA", "an acknowledgement of what was not sent"),
    ("TCP_OFO_QUEUE_PRUNE", "memory ran out for early segments"),
    ("TCP_OFO_DROP", "no memory for an early segment"),
    ("TCP_ABORT_ON_DATA", "data after the program had closed: answered by a reset"),
    ("IP_OUTNOROUTES", "no route to send it by"),
    ("IP_INNOROUTES", "no route for what came in"),
    ("NEIGH_FAILED", "the neighbour does not answer ARP or neighbour discovery"),
    ("NEIGH_QUEUEFULL", "too many packets wait for a neighbour's address"),
    ("QDISC_DROP", "the queueing discipline of the interface dropped it"),
    ("QDISC_OVERLIMIT", "the queue of the interface is full"),
    ("QDISC_CONGESTED", "the queueing discipline signalled congestion"),
    ("FQ_FLOW_LIMIT", "too many packets of one flow wait (fq)"),
    ("FQ_HORIZON_LIMIT", "to be sent too far in the future (fq)"),
    ("CPU_BACKLOG", "a core's queue of packets is full (net.core.netdev_max_backlog)"),
    ("XDP", "an XDP program dropped it"),
    ("TC_INGRESS", "a tc filter dropped it on its way in"),
    ("TC_EGRESS", "a tc filter dropped it on its way out"),
    ("UNHANDLED_PROTO", "no handler for its protocol"),
    ("FULL_RING", "the ring of a tap or packet socket is full"),
    ("NOMEM", "no memory"),
    ("PKT_TOO_BIG", "larger than the path takes, and not to be split"),
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
            return Err(Error::Missing("this kernel tells no reasons of drops: that takes Linux 5.17".to_owned()));
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
