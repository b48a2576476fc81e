//! One request to a local server over HTTP/1.0 or FastCGI, with limits for its time and for the bytes of the response.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use chokepoint_foreign::ListeningSocket;

/// Most bytes of a response. A status page has less than 1 KiB.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// Most bytes of an answer to a command: HAProxy has some 600 for each server.
const COMMAND_ANSWER_BYTES_MAX: u64 = 1 << 20;
/// Bytes of the header of a FastCGI record: version, type, request (2), length (2), padding, one unused (FastCGI specification 1.0, section 3.3).
const RECORD_HEAD_BYTES: usize = 8;
const FCGI_BEGIN_REQUEST: u8 = 1;
const FCGI_END_REQUEST: u8 = 3;
const FCGI_PARAMS: u8 = 4;
const FCGI_STDIN: u8 = 5;
const FCGI_STDOUT: u8 = 6;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    /// The connection failed, or no response came in time.
    #[error("{0}")]
    System(#[from] io::Error),
    /// Another status than 200.
    #[error("it answered with status {0}")]
    Status(u16),
    /// The connection was closed before a response.
    #[error("it closed the connection without a response")]
    Closed,
    /// A malformed response.
    #[error("its response {0}")]
    Broken(&'static str),
}

/// Where a server is asked.
pub(super) enum Place {
    Tcp(IpAddr, u16),
    /// A unix socket of the server's own.
    Unix(ListeningSocket),
}

/// The body of a page over HTTP/1.0: the response ends with the connection and has no chunks (RFC 1945).
pub(super) fn http(at: &Place, host: &str, path_and_query: &str, time: Duration) -> Result<Vec<u8>, AskError> {
    let host = if host.is_empty() { String::new() } else { format!("Host: {host}\r\n") };
    let agent = concat!("chokepoint-status/", env!("CARGO_PKG_VERSION"));
    let request = format!("GET {path_and_query} HTTP/1.0\r\n{host}User-Agent: {agent}\r\nConnection: close\r\n\r\n");
    http_body(&exchange(at, (request.as_bytes(), ANSWER_BYTES_MAX), Instant::now() + time)?)
}

/// The body of a page over FastCGI.
pub(super) fn fastcgi(at: &Place, path: &str, query: &str, time: Duration) -> Result<Vec<u8>, AskError> {
    fastcgi_body(&exchange(at, (&fastcgi_request(path, query), ANSWER_BYTES_MAX), Instant::now() + time)?)
}

/// What a server answers to a line of text, until it closes.
pub(super) fn command(at: &Place, line: &str, time: Duration) -> Result<Vec<u8>, AskError> {
    let answer = exchange(at, (format!("{line}\n").as_bytes(), COMMAND_ANSWER_BYTES_MAX), Instant::now() + time)?;
    if answer.is_empty() { Err(AskError::Closed) } else { Ok(answer) }
}

/// Addresses to try for a listener's address, which may be a wildcard. `::` usually accepts IPv4 too, and an allow list usually has loopback.
fn reachable(ip: IpAddr) -> Vec<IpAddr> {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => vec![Ipv4Addr::LOCALHOST.into()],
        IpAddr::V6(ip) if ip.is_unspecified() => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        ip => vec![ip],
    }
}

/// A request, and the most bytes of its response.
type Asked<'a> = (&'a [u8], u64);

/// Sends a request and reads until the server closes the connection.
fn exchange(at: &Place, request: Asked<'_>, until: Instant) -> Result<Vec<u8>, AskError> {
    match at {
        Place::Tcp(ip, port) => {
            let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
            for ip in reachable(*ip) {
                match TcpStream::connect_timeout(&SocketAddr::new(ip, *port), left(until)?) {
                    Ok(stream) => return talk(stream, request, until, TcpStream::set_read_timeout, TcpStream::set_write_timeout),
                    Err(error) => failed = error,
                }
            }
            Err(failed.into())
        }
        Place::Unix(socket) => {
            let stream = UnixStream::from(socket.connect()?);
            stream.set_nonblocking(false)?;
            talk(stream, request, until, UnixStream::set_read_timeout, UnixStream::set_write_timeout)
        }
    }
}

/// The time that is left; an error if none is.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

type SetTimeout<S> = fn(&S, Option<Duration>) -> io::Result<()>;

fn talk<S: Read + Write>(
    mut stream: S,
    (request, most): Asked<'_>,
    until: Instant,
    read_timeout: SetTimeout<S>,
    write_timeout: SetTimeout<S>,
) -> Result<Vec<u8>, AskError> {
    write_timeout(&stream, Some(left(until)?))?;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while (answer.len() as u64) < most {
        read_timeout(&stream, Some(left(until)?))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(answer),
            Ok(length) => answer.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The server closed without reading the request.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Err(AskError::Closed),
            Err(error) => return Err(error.into()),
        }
    }
    Err(AskError::Broken("is longer than a status page"))
}

/// The body of a response with status 200.
fn http_body(answer: &[u8]) -> Result<Vec<u8>, AskError> {
    if answer.is_empty() {
        return Err(AskError::Closed);
    }
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or(AskError::Broken("has a head without an end"))?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let status = head.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
    match status.ok_or(AskError::Broken("is no HTTP"))? {
        200 => Ok(answer[end + 4..].to_vec()),
        other => Err(AskError::Status(other)),
    }
}

/// A GET of FastCGI's responder (specification section 6.2), without a body.
fn fastcgi_request(path: &str, query: &str) -> Vec<u8> {
    let uri = format!("{path}?{query}");
    let parameters = [
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SERVER_PROTOCOL", "HTTP/1.0"),
        ("REQUEST_METHOD", "GET"),
        ("REQUEST_URI", &uri),
        // The status page responds if this is its whole path. No script is run.
        ("SCRIPT_NAME", path),
        ("SCRIPT_FILENAME", path),
        ("QUERY_STRING", query),
        ("CONTENT_LENGTH", "0"),
        ("REMOTE_ADDR", "127.0.0.1"),
        ("HTTP_USER_AGENT", concat!("chokepoint-status/", env!("CARGO_PKG_VERSION"))),
    ];
    let mut pairs = Vec::new();
    for (name, value) in parameters {
        for length in [name.len(), value.len()] {
            // A length below 128 is one byte, else four with the highest bit set (section 3.4).
            match u8::try_from(length) {
                Ok(short) if short < 0x80 => pairs.push(short),
                _ => pairs.extend_from_slice(&(length as u32 | 0x8000_0000).to_be_bytes()),
            }
        }
        pairs.extend_from_slice(name.as_bytes());
        pairs.extend_from_slice(value.as_bytes());
    }
    // Role "responder"; the server closes the connection after the response.
    let mut request = record(FCGI_BEGIN_REQUEST, &[0, 1, 0, 0, 0, 0, 0, 0]);
    pairs.chunks(usize::from(u16::MAX)).for_each(|chunk| request.extend(record(FCGI_PARAMS, chunk)));
    request.extend(record(FCGI_PARAMS, &[]));
    request.extend(record(FCGI_STDIN, &[]));
    request
}

/// One record of request 1; `content` is at most 65,535 bytes.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap_or(u16::MAX).to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}

/// The body of a response with status 200: the content of its standard output records after the header.
fn fastcgi_body(answer: &[u8]) -> Result<Vec<u8>, AskError> {
    if answer.is_empty() {
        return Err(AskError::Closed);
    }
    let mut output = Vec::new();
    let mut rest = answer;
    loop {
        let Some((&[version, kind, _, _, high, low, padding, _], behind)) = rest.split_first_chunk::<RECORD_HEAD_BYTES>() else {
            return Err(AskError::Broken("was cut"));
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (Some(content), 1) = (behind.get(..length), version) else { return Err(AskError::Broken("is not FastCGI, or was cut off")) };
        match kind {
            FCGI_END_REQUEST => break,
            FCGI_STDOUT => output.extend_from_slice(content),
            _ => {}
        }
        rest = behind.get(length + usize::from(padding)..).ok_or(AskError::Broken("was cut"))?;
    }
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").ok_or(AskError::Broken("has a head without an end"))?;
    let head = String::from_utf8_lossy(&output[..end]);
    let status = head.lines().find_map(|line| line.strip_prefix("Status:")?.split_ascii_whitespace().next()?.parse().ok());
    match status.unwrap_or(200) {
        200 => Ok(output[end + 4..].to_vec()),
        other => Err(AskError::Status(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reason<T: std::fmt::Debug>(result: Result<T, AskError>) -> String {
        result.unwrap_err().to_string()
    }

    fn fastcgi_answer(output: &[u8]) -> Vec<u8> {
        [record(7, b"a warning"), record(FCGI_STDOUT, output), record(FCGI_STDOUT, &[]), record(FCGI_END_REQUEST, &[0; 8])].concat()
    }

    #[test]
    fn only_a_complete_response_with_status_200_has_a_body() {
        assert_eq!(http_body(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody").unwrap(), b"body");
        assert!(reason(http_body(b"HTTP/1.1 403 Forbidden\r\n\r\nno")).contains("status 403"));
        assert!(reason(http_body(b"")).contains("closed") && reason(http_body(b"SSH-2.0\r\n\r\n")).contains("no HTTP"));
        assert_eq!(fastcgi_body(&fastcgi_answer(b"Content-type: text/plain\r\n\r\nbody")).unwrap(), b"body");
        assert!(reason(fastcgi_body(&fastcgi_answer(b"Status: 404 Not Found\r\n\r\nFile not found."))).contains("status 404"));
        assert!(reason(fastcgi_body(&fastcgi_answer(b"no head"))).contains("a head without an end"));
        assert!(reason(fastcgi_body(b"HTTP/1.1 400 Bad Request\r\n\r\n")).contains("not FastCGI"));
    }

    #[test]
    fn a_cut_response_is_an_error() {
        let answer = fastcgi_answer(b"A: b\r\n\r\n{\"pool\":\"www\"}");
        for end in 0..answer.len() - 8 {
            assert!(fastcgi_body(&answer[..end]).is_err(), "{end}");
        }
        let answer = b"HTTP/1.1 200 OK\r\n\r\n";
        for end in 0..answer.len() {
            assert!(http_body(&answer[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn a_fastcgi_request_has_short_and_long_lengths() {
        let path = format!("/{}", "p".repeat(300));
        let request = fastcgi_request(&path, "json");
        let name = b"SCRIPT_NAME";
        let at = request.windows(name.len()).position(|window| window == name).unwrap();
        assert_eq!(request[at - 5..at], [11, 0x80, 0, 1, 45], "eleven, and 301 in four bytes");
        assert!(request.ends_with(&[1, FCGI_PARAMS, 0, 1, 0, 0, 0, 0, 1, FCGI_STDIN, 0, 1, 0, 0, 0, 0]));
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0_u8..12) {
            let _ = (http_body(&bytes), fastcgi_body(&bytes), fastcgi_body(&record(kind, &bytes)));
            let _ = fastcgi_body(&fastcgi_answer(&bytes));
            let _ = http_body(&[b"HTTP/1.1 ".as_slice(), &bytes].concat());
        }
    }

    mod live {
        use std::net::TcpListener;

        use super::*;

        #[test]
        fn a_silent_or_endless_server_is_given_up_in_time() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let at = listener.local_addr().unwrap();
            let at = Place::Tcp(at.ip(), at.port());
            let silent = http(&at, "", "/", Duration::from_millis(50)).unwrap_err();
            assert!(
                matches!(&silent, AskError::System(error) if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)),
                "{silent}"
            );
            let endless = std::thread::spawn(move || {
                // The first connection is the silent one's.
                let (_, (mut stream, _)) = (listener.accept().unwrap(), listener.accept().unwrap());
                while stream.write_all(&[b'x'; 4096]).is_ok() {}
            });
            assert!(reason(http(&at, "", "/", Duration::from_secs(20))).contains("longer than"));
            endless.join().unwrap();
        }
    }
}
