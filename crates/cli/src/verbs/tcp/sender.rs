//! Fields of struct tcp_info that describe the sending side of a connection.

use chokepoint_model::tcp::Sender;
use chokepoint_sources::TcpInfoPlace;

macro_rules! fields {
    ($($constant:ident = $name:literal),* $(,)?) => { $(const $constant: TcpInfoPlace = TcpInfoPlace::of($name);)* };
}

fields! {
    RETRANSMITS = "retransmits", SND_MSS = "snd_mss", UNACKED = "unacked", SACKED = "sacked", LOST = "lost", RETRANS = "retrans",
    LAST_DATA_SENT = "last_data_sent", LAST_DATA_RECV = "last_data_recv", LAST_ACK_RECV = "last_ack_recv", RTT = "rtt", SND_CWND = "snd_cwnd",
    TOTAL_RETRANS = "total_retrans", BYTES_ACKED = "bytes_acked", NOTSENT_BYTES = "notsent_bytes", BUSY_TIME = "busy_time", RWND_LIMITED = "rwnd_limited", SNDBUF_LIMITED = "sndbuf_limited", BYTES_SENT = "bytes_sent",
    BYTES_RETRANS = "bytes_retrans", SND_WND = "snd_wnd", TOTAL_RTO_TIME = "total_rto_time",
}

/// The sending side of a connection. `buffer`: limit and fill of its send buffer, bytes.
pub(super) fn sender(info: &[u8], buffer: Option<(u32, u32)>) -> Sender {
    let of = |place: TcpInfoPlace| place.read(info).unwrap_or(0);
    let bytes = BYTES_SENT.read(info).zip(BYTES_RETRANS.read(info)).zip(BYTES_ACKED.read(info));
    Sender {
        unacked: of(UNACKED),
        left: of(SACKED) + of(LOST),
        retrans: of(RETRANS),
        retransmits: of(RETRANSMITS),
        cwnd: of(SND_CWND),
        mss: of(SND_MSS),
        rtt_us: of(RTT),
        last_ack_ms: of(LAST_ACK_RECV),
        notsent: NOTSENT_BYTES.read(info),
        window: SND_WND.read(info),
        bytes: bytes.map(|((sent, again), acknowledged)| (sent, again, acknowledged)),
        buffer: buffer.map(|(limit, held)| (u64::from(limit), u64::from(held))),
        total_retrans: of(TOTAL_RETRANS),
        rwnd_limited_us: RWND_LIMITED.read(info),
        sndbuf_limited_us: SNDBUF_LIMITED.read(info),
        rto_time_ms: TOTAL_RTO_TIME.read(info),
    }
}

/// Milliseconds since the connection last sent or received data.
pub(super) fn idle_ms(info: &[u8]) -> u64 {
    LAST_DATA_SENT.read(info).unwrap_or(0).min(LAST_DATA_RECV.read(info).unwrap_or(0))
}

/// Microseconds with data in flight. `None` on kernels that do not tell.
pub(super) fn busy_us(info: &[u8]) -> Option<u64> {
    BUSY_TIME.read(info)
}
