//! `chokepoint tcp`: all that the kernel knows of one connection that is made for it, or of those that the host has.

pub(crate) mod cycles;
pub(crate) mod edge_filter;
pub(crate) mod live;
pub(crate) mod watch;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_sources::{TcpInfo, TcpInfoField, read_congestion_control, read_tcp_info};
use serde_json::{Value, json};

use crate::Usage;
use crate::args::Tcp;
use crate::run::interrupt::Interrupt;
use crate::run::settings;
use crate::terminal::output;

/// An answer is read no further than this, bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Bytes of IP and TCP headers without options.
const HEADERS_V4: u64 = 40;
const HEADERS_V6: u64 = 60;
/// Timestamps take twelve bytes of each segment (RFC 7323); bit 1 of `tcpi_options` says that they are in use.
const TIMESTAMPS_BYTES: u64 = 12;
const OPTION_TIMESTAMPS: u64 = 1;

/// What came for the request.
pub(crate) struct Answered {
    /// Bytes.
    pub(crate) bytes: u64,
    /// Until the last of them.
    pub(crate) time: Duration,
    /// The peer closed behind them.
    pub(crate) ended: bool,
    /// The connection then.
    pub(crate) info: TcpInfo,
}

/// One connection.
pub(crate) struct Connection {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    pub(crate) control: String,
    /// The connection right after the handshake.
    pub(crate) info: TcpInfo,
    pub(crate) answered: Option<Answered>,
}

/// Why a segment carries what it carries.
pub(crate) struct Mss {
    pub(crate) bytes: u64,
    pub(crate) path: u64,
    pub(crate) headers: u64,
    pub(crate) options: u64,
    /// The path would carry more: the peer asked for less.
    pub(crate) by_peer: bool,
}

/// Connects, asks where that is wanted, and prints what the kernel says.
pub(crate) fn run(args: &Tcp, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    if args.live {
        return live::run(args, words, interrupt);
    }
    if args.edge.is_some() || args.duration.is_some() {
        return Err(Usage("--edge and -z are for what --live reads".to_owned()).into());
    }
    let target = args.target.as_deref().ok_or_else(|| Usage("where to connect to is missing: HOST:PORT".to_owned()))?;
    let timeout = settings::duration(&args.timeout).map_err(|error| Usage(error.to_string()))?;
    if timeout.is_zero() {
        return Err(Usage("--timeout must be longer than nothing".to_owned()).into());
    }
    if let Some(path) = &args.get
        && (!path.starts_with('/') || path.chars().any(|character| character.is_control() || character == ' '))
    {
        return Err(Usage(format!("--get {path:?} is no path: it begins with / and has no spaces")).into());
    }
    let mut stream = connect(target, timeout)?;
    if args.watch {
        let request = args.get.as_deref().map(|path| request(path, target));
        return watch::run(args, stream, request, timeout, words, interrupt);
    }
    let read = |stream: &TcpStream| read_tcp_info(stream).context("TCP_INFO cannot be read");
    let mut connection = Connection {
        local: stream.local_addr()?,
        peer: stream.peer_addr()?,
        control: read_congestion_control(&stream).unwrap_or_else(|_| "?".to_owned()),
        info: read(&stream)?,
        answered: None,
    };
    if let Some(path) = &args.get {
        let begin = Instant::now();
        let (bytes, ended) = ask(&mut stream, path, target, timeout)?;
        connection.answered = Some(Answered { bytes, time: begin.elapsed(), ended, info: read(&stream)? });
    }
    if args.json {
        output::print_json(&format!("{:#}\n", connection.json(words)))?;
    } else {
        output::print_painted(&crate::report::text::tcp_text(&connection, &output::style(), words))?;
    }
    Ok(true)
}

fn connect(target: &str, timeout: Duration) -> Result<TcpStream> {
    let Ok(addresses) = target.to_socket_addrs() else {
        if target.rsplit_once(':').is_none_or(|(host, port)| host.is_empty() || port.parse::<u16>().is_err()) {
            return Err(Usage(format!("\"{target}\" is not HOST:PORT")).into());
        }
        bail!("the name in {target} cannot be resolved");
    };
    let mut last = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))?;
                return Ok(stream);
            }
            Err(error) => last = Some(error.to_string()),
        }
    }
    bail!("cannot connect to {target}: {}", last.unwrap_or_else(|| "the name has no address".to_owned()))
}

fn request(path: &str, host: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: chokepoint\r\nConnection: close\r\n\r\n")
}

/// Sends a request and reads until the peer closes; true where it did before the bound.
fn ask(stream: &mut TcpStream, path: &str, host: &str, timeout: Duration) -> Result<(u64, bool)> {
    stream.write_all(request(path, host).as_bytes()).context("the request cannot be sent")?;
    let (mut bytes, mut buffer, begin) = (0_u64, vec![0_u8; 64 << 10], Instant::now());
    while bytes < ANSWER_BYTES_MAX && begin.elapsed() < timeout {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok((bytes, true)),
            Ok(read) => bytes += read as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(error) => return Err(error).context("the answer cannot be read"),
        }
    }
    if bytes == 0 {
        bail!("no answer came within {timeout:?}");
    }
    Ok((bytes, false))
}

impl Connection {
    /// Segments of the initial congestion window, and the bytes that they carry.
    pub(crate) fn initial_window(&self) -> Option<(u64, u64)> {
        let segments = self.info.value("snd_cwnd")?;
        Some((segments, segments.saturating_mul(self.info.value("snd_mss")?)))
    }

    /// The MSS and where it comes from.
    pub(crate) fn mss(&self) -> Option<Mss> {
        let (bytes, path) = (self.info.value("snd_mss")?, self.info.value("pmtu")?);
        let headers = if self.peer.ip().to_canonical().is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
        let stamps = self.info.value("options")? & OPTION_TIMESTAMPS != 0;
        let options = if stamps { TIMESTAMPS_BYTES } else { 0 };
        Some(Mss { bytes, path, headers, options, by_peer: bytes + headers + options < path })
    }

    fn json(&self, words: &Catalogue) -> Value {
        let window = self.initial_window();
        json!({
            "schema": "chokepoint/tcp/1",
            "local": self.local.to_string(),
            "peer": self.peer.to_string(),
            "congestion_control": self.control,
            "initial_window": window.map(|(segments, bytes)| json!({ "segments": segments, "bytes": bytes })),
            "mss": self.mss().map(|mss| json!({ "bytes": mss.bytes, "path_mtu": mss.path, "headers": mss.headers, "options": mss.options, "limited_by": if mss.by_peer { "peer" } else { "path" } })),
            "tcp_info": fields(&self.info, words),
            "tcp_info_unknown_bytes": self.info.unknown_bytes(),
            "answer": self.answered.as_ref().map(|answered| json!({
                "bytes": answered.bytes,
                "seconds": answered.time.as_secs_f64(),
                "ended": answered.ended,
                "tcp_info": fields(&answered.info, words),
            })),
        })
    }
}

/// What a field means, out of the catalogue.
pub(crate) fn meaning(field: &TcpInfoField, words: &Catalogue) -> String {
    words.plain(&format!("tcp-field-{}", field.name.replace('_', "-"))).unwrap_or_default()
}

fn fields(info: &TcpInfo, words: &Catalogue) -> Value {
    let field = |(field, value): (&TcpInfoField, Option<u64>)| json!({ "name": field.name, "value": value, "unit": field.unit, "meaning": meaning(field, words) });
    info.values().map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_sources::TCP_INFO_FIELDS;

    #[test]
    fn every_field_has_a_meaning() {
        let words = Catalogue::english();
        for field in TCP_INFO_FIELDS {
            assert!(!meaning(field, &words).is_empty(), "{}", field.name);
        }
    }

    #[test]
    fn a_connection_is_described_whole() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        let stream = connect(&peer.to_string(), Duration::from_secs(5)).unwrap();
        let info = read_tcp_info(&stream).unwrap();
        let connection = Connection { local: stream.local_addr().unwrap(), peer, control: "x".to_owned(), info, answered: None };
        let (segments, bytes) = connection.initial_window().unwrap();
        let mss = connection.mss().unwrap();
        assert_eq!(bytes, segments * mss.bytes);
        let words = Catalogue::english();
        assert_eq!(connection.json(&words)["tcp_info"].as_array().unwrap().len(), TCP_INFO_FIELDS.len());
        let style = crate::report::text::Style { width: 100, color: false, unicode: true };
        let text = crate::report::text::tcp_text(&connection, &style, &words);
        assert!(text.contains("snd_cwnd") && !text.contains("[tcp-"), "{text}");
    }

    #[test]
    fn targets_that_make_no_sense_are_refused() {
        for target in ["", "localhost", ":80", "127.0.0.1:99999", "127.0.0.1:http x"] {
            assert!(connect(target, Duration::from_secs(1)).unwrap_err().is::<Usage>(), "{target}");
        }
    }
}
