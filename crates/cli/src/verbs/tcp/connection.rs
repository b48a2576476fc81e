//! One connection, as the kernel reports it.

use std::net::SocketAddr;
use std::time::Duration;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_sources::{TcpInfo, TcpInfoField};
use serde_json::{Value, json};

/// Bytes of IP and TCP headers without options.
const HEADERS_V4: u64 = 40;
const HEADERS_V6: u64 = 60;
/// Timestamps take twelve bytes of each segment (RFC 7323). Bit 1 of `tcpi_options` is set if they are in use.
const TIMESTAMPS_BYTES: u64 = 12;
const OPTION_TIMESTAMPS: u64 = 1;

/// The answer to the request.
pub(crate) struct Answer {
    pub(crate) bytes: u64,
    /// From the request to the last byte.
    pub(crate) time: Duration,
    /// True if the peer closed the connection after the answer.
    pub(crate) ended: bool,
    /// The state of the connection after the answer.
    pub(crate) info: TcpInfo,
}

/// A connection that was opened for this verb.
pub(crate) struct Connection {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    pub(crate) control: String,
    /// The state of the connection right after the handshake.
    pub(crate) info: TcpInfo,
    pub(crate) answer: Option<Answer>,
}

/// The maximum segment size and the figures that determine it, bytes.
pub(crate) struct Mss {
    pub(crate) bytes: u64,
    pub(crate) path_mtu: u64,
    pub(crate) headers: u64,
    pub(crate) options: u64,
    /// True if the path allows larger segments than the peer accepts.
    pub(crate) by_peer: bool,
}

impl Connection {
    /// The initial congestion window, segments and bytes.
    pub(crate) fn initial_window(&self) -> Option<(u64, u64)> {
        let segments = self.info.value("snd_cwnd")?;
        Some((segments, segments.saturating_mul(self.info.value("snd_mss")?)))
    }

    /// The maximum segment size; nothing if the kernel does not report it.
    pub(crate) fn mss(&self) -> Option<Mss> {
        let (bytes, path_mtu) = (self.info.value("snd_mss")?, self.info.value("pmtu")?);
        let headers = if self.peer.ip().to_canonical().is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
        let stamps = self.info.value("options")? & OPTION_TIMESTAMPS != 0;
        let options = if stamps { TIMESTAMPS_BYTES } else { 0 };
        Some(Mss { bytes, path_mtu, headers, options, by_peer: bytes + headers + options < path_mtu })
    }

    pub(super) fn json(&self, words: &Catalogue) -> Value {
        let window = self.initial_window();
        json!({
            "schema": "chokepoint/tcp/1",
            "local": self.local.to_string(),
            "peer": self.peer.to_string(),
            "congestion_control": self.control,
            "initial_window": window.map(|(segments, bytes)| json!({ "segments": segments, "bytes": bytes })),
            "mss": self.mss().map(|mss| json!({ "bytes": mss.bytes, "path_mtu": mss.path_mtu, "headers": mss.headers, "options": mss.options, "limited_by": if mss.by_peer { "peer" } else { "path" } })),
            "tcp_info": fields(&self.info, words),
            "tcp_info_unknown_bytes": self.info.unknown_bytes(),
            "answer": self.answer.as_ref().map(|answer| json!({
                "bytes": answer.bytes,
                "seconds": answer.time.as_secs_f64(),
                "ended": answer.ended,
                "tcp_info": fields(&answer.info, words),
            })),
        })
    }
}

/// The meaning of a field, from the catalogue.
pub(crate) fn meaning(field: &TcpInfoField, words: &Catalogue) -> String {
    words.plain(&format!("tcp-field-{}", field.name.replace('_', "-"))).unwrap_or_default()
}

fn fields(info: &TcpInfo, words: &Catalogue) -> Value {
    let field = |(field, value): (&TcpInfoField, Option<u64>)| json!({ "name": field.name, "value": value, "unit": field.unit, "meaning": meaning(field, words) });
    info.values().map(field).collect()
}

#[cfg(test)]
mod tests {
    use chokepoint_sources::{TCP_INFO_FIELDS, read_tcp_info};

    use super::*;

    #[test]
    fn every_field_has_a_meaning() {
        let words = Catalogue::english();
        for field in TCP_INFO_FIELDS {
            assert!(!meaning(field, &words).is_empty(), "{}", field.name);
        }
    }

    #[test]
    fn the_document_of_a_connection_holds_every_field() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        let stream = std::net::TcpStream::connect(peer).unwrap();
        let info = read_tcp_info(&stream).unwrap();
        let connection = Connection { local: stream.local_addr().unwrap(), peer, control: "x".to_owned(), info, answer: None };
        let (segments, bytes) = connection.initial_window().unwrap();
        let mss = connection.mss().unwrap();
        assert_eq!(bytes, segments * mss.bytes);
        let words = Catalogue::english();
        assert_eq!(connection.json(&words)["tcp_info"].as_array().unwrap().len(), TCP_INFO_FIELDS.len());
    }
}
