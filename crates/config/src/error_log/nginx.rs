//! nginx's error log: `2026/11/20 07:17:47 [error] 12#13: *56 connect() failed (111: Connection refused) while connecting to upstream, client: ...`.

use super::LINE_BYTES_MAX;
use crate::log_format::unsigned;

/// The event that a line reports, if it matters to the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NginxEvent {
    /// connect() to an upstream failed; the errno gives the reason: 99 no free port, 111 nobody listens, 11 a unix socket's queue is full,
    /// 110 timeout.
    ConnectFailed,
    /// The upstream did not accept or answer in time (errno 110); [`NginxLine::phase`] tells which.
    UpstreamTimedOut,
    /// The upstream closed before it had answered.
    UpstreamClosed,
    /// Reading from or writing to a connection failed (104: reset).
    TransferFailed,
    /// The client closed before it had its answer (status 499).
    ClientClosed,
    /// Every server of an upstream is down or was tried.
    NoLiveUpstreams,
    /// `worker_connections` is used up, and nginx refused a connection.
    WorkerConnectionsExhausted,
    /// `worker_connections` is nearly used up. nginx closed kept connections, or connections without a request yet, to make room. It logs
    /// this at most once a second.
    WorkerConnectionsReused,
    /// accept() failed (24: no file descriptor left).
    AcceptFailed,
    /// socket() or another call that makes a descriptor failed (24).
    SocketFailed,
    /// A file could not be opened: 24 if no descriptors are left, 2 if the file does not exist.
    OpenFailed,
    /// `limit_req` refused a request; [`NginxLine::zone`] says by which zone.
    RateLimited,
    /// `limit_req` delayed a request.
    RateDelayed,
    /// `limit_conn` refused a request.
    ConnLimited,
    /// A body or answer went to a temporary file because it did not fit into the buffers.
    BufferedToFile,
    /// A worker ended on a signal or with an error.
    WorkerDied,
    /// bind() or listen() failed.
    BindFailed,
    /// Anything else.
    Other,
}

/// One line, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NginxLine<'l> {
    /// Wall clock of the host without its zone: microseconds since 1970 as if it were UTC; whole seconds.
    pub local_us: u64,
    /// "error", "crit", "warn", ...
    pub level: &'l str,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Serial number of the client's connection.
    pub connection: Option<u64>,
    /// The message, without the fields that describe the request.
    pub message: &'l str,
    /// The event that the line reports.
    pub event: NginxEvent,
    /// The errno in "(99: Cannot assign requested address)".
    pub errno: Option<u32>,
    /// The zone of the limit that acted.
    pub zone: Option<&'l str>,
    /// The phase of the request: "connecting to upstream", "reading response header from upstream".
    pub phase: Option<&'l str>,
    /// Address of the client.
    pub client: Option<&'l str>,
    /// Name of the server block; `None` for one without a name.
    pub server: Option<&'l str>,
    /// First line of the request.
    pub request: Option<&'l str>,
    /// The upstream as a URL: "fastcgi://127.0.0.1:9000", "http://10.0.0.1:80/x".
    pub upstream: Option<&'l str>,
    /// The requested host.
    pub host: Option<&'l str>,
}

impl<'l> NginxLine<'l> {
    /// Parses one line, which may end with its line feed; `None` for a line of another form.
    pub fn parse(line: &'l str) -> Option<Self> {
        let line = line.trim_end_matches(['\n', '\r']);
        if line.len() > LINE_BYTES_MAX {
            return None;
        }
        let local_us = local_us(line.as_bytes().get(..19)?)?;
        let rest = line.get(19..)?.strip_prefix(" [")?;
        let (level, rest) = rest.split_once("] ")?;
        if level.is_empty() || !level.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return None;
        }
        let (ids, rest) = rest.split_once(": ")?;
        let (pid, tid) = ids.split_once('#')?;
        let (connection, text) = match rest.strip_prefix('*').and_then(|rest| rest.split_once(' ')) {
            Some((number, text)) => (Some(unsigned(number.as_bytes())?), text),
            None => (None, rest),
        };
        let (message, fields) = text.find(", client: ").map_or((text, ""), |at| text.split_at(at));
        let errno = errno(message);
        Some(Self {
            local_us,
            level,
            pid: pid.parse().ok()?,
            tid: tid.parse().ok()?,
            connection,
            message,
            // A debug line is no failure: "accept() not ready" follows each accepted connection.
            event: if level == "debug" { NginxEvent::Other } else { event(message) },
            errno,
            zone: zone(message),
            phase: message.rfind(" while ").map(|at| &message[at + " while ".len()..]),
            client: plain_field(fields, ", client: "),
            server: plain_field(fields, ", server: ").filter(|name| !name.is_empty()),
            request: request(fields),
            upstream: quoted_field(fields, ", upstream: \""),
            host: quoted_field(fields, ", host: \""),
        })
    }
}

/// `2026/11/20 07:17:47`.
fn local_us(text: &[u8]) -> Option<u64> {
    if text[4] != b'/' || text[7] != b'/' || text[10] != b' ' {
        return None;
    }
    let clock = crate::log_format::clock(&text[11..19])?;
    crate::log_format::epoch_us(unsigned(&text[..4])?, unsigned(&text[5..7])?, unsigned(&text[8..10])?, clock)
}

/// The name in `by zone "login"`.
fn zone(message: &str) -> Option<&str> {
    message.split_once(" by zone \"")?.1.split_once('"').map(|(name, _)| name)
}

/// The number in the last "(99: text)".
fn errno(message: &str) -> Option<u32> {
    let mut rest = message;
    while let Some(open) = rest.rfind('(') {
        let inner = &rest[open + 1..];
        if let Some((number, _)) = inner.split_once(": ")
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            return number.parse().ok();
        }
        rest = &rest[..open];
    }
    None
}

fn event(message: &str) -> NginxEvent {
    let starts = |heads: &[&str]| heads.iter().any(|head| message.starts_with(head));
    let has = |part: &str| message.contains(part);
    if starts(&["connect() "]) || has("SSL_do_handshake() failed") && has("to upstream") {
        NginxEvent::ConnectFailed
    } else if starts(&["upstream timed out"]) {
        NginxEvent::UpstreamTimedOut
    } else if starts(&["upstream prematurely closed"]) {
        NginxEvent::UpstreamClosed
    } else if has("client prematurely closed connection") {
        NginxEvent::ClientClosed
    } else if starts(&["no live upstreams"]) {
        NginxEvent::NoLiveUpstreams
    } else if has("worker_connections are not enough, reusing") {
        NginxEvent::WorkerConnectionsReused
    } else if has("worker_connections are not enough") {
        NginxEvent::WorkerConnectionsExhausted
    } else if starts(&["accept() ", "accept4() "]) {
        NginxEvent::AcceptFailed
    } else if starts(&["socket() ", "eventfd() ", "pipe() ", "epoll_create() "]) {
        NginxEvent::SocketFailed
    } else if starts(&["bind() ", "listen() "]) || has("still could not bind") {
        NginxEvent::BindFailed
    } else if has(", dry run") && starts(&["limiting ", "delaying "]) {
        // A dry run: the limit did not act.
        NginxEvent::Other
    } else if starts(&["limiting requests"]) {
        NginxEvent::RateLimited
    } else if starts(&["delaying request"]) {
        NginxEvent::RateDelayed
    } else if starts(&["limiting connections"]) {
        NginxEvent::ConnLimited
    } else if has(" buffered to a temporary file") {
        NginxEvent::BufferedToFile
    } else if starts(&["worker process ", "cache manager process ", "cache loader process "]) && has("exited") && !has("exited with code 0")
    {
        NginxEvent::WorkerDied
    } else if starts(&["open() ", "openat() "]) {
        NginxEvent::OpenFailed
    } else if starts(&["recv() ", "readv() ", "send() ", "sendfile() ", "writev() "]) {
        NginxEvent::TransferFailed
    } else {
        NginxEvent::Other
    }
}

/// A value up to the next comma.
fn plain_field<'l>(fields: &'l str, name: &str) -> Option<&'l str> {
    let value = &fields[fields.find(name)? + name.len()..];
    Some(&value[..value.find(", ").unwrap_or(value.len())])
}

/// A value in quotes. The last field of a name counts, because text from the client comes before it and may look like a field.
fn quoted_field<'l>(fields: &'l str, name: &str) -> Option<&'l str> {
    let value = &fields[fields.rfind(name)? + name.len()..];
    Some(&value[..value.find('"').unwrap_or(value.len())])
}

/// The request line. It is logged as received and may contain quotes.
fn request(fields: &str) -> Option<&str> {
    const NAME: &str = ", request: \"";
    let value = &fields[fields.find(NAME)? + NAME.len()..];
    let ends = ["\", subrequest: \"", "\", upstream: \"", "\", host: \"", "\", referrer: \""];
    let end = ends.iter().filter_map(|end| value.find(end)).min();
    Some(end.map_or_else(|| value.strip_suffix('"').unwrap_or(value), |end| &value[..end]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINE: &str = "2026/11/20 07:17:47 [crit] 1234#1235: *56 connect() to 127.0.0.1:9000 failed (99: Cannot assign requested address) while \
        connecting to upstream, client: 10.0.0.2, server: _, request: \"GET /a, \"b\" HTTP/1.1\", upstream: \"fastcgi://127.0.0.1:9000\", \
        host: \"10.0.0.1\"";

    #[test]
    fn a_whole_line() {
        let line = NginxLine::parse(LINE).expect("it is one");
        assert_eq!(line.local_us, 1_795_159_067_000_000);
        assert_eq!((line.level, line.pid, line.tid, line.connection), ("crit", 1234, 1235, Some(56)));
        assert_eq!((line.event, line.errno, line.phase), (NginxEvent::ConnectFailed, Some(99), Some("connecting to upstream")));
        assert_eq!((line.client, line.server), (Some("10.0.0.2"), Some("_")));
        assert_eq!(line.request, Some("GET /a, \"b\" HTTP/1.1"));
        assert_eq!((line.upstream, line.host), (Some("fastcgi://127.0.0.1:9000"), Some("10.0.0.1")));
    }

    #[test]
    fn a_debug_line_is_no_failure() {
        let step = "2026/11/23 07:17:47 [debug] 12#12: *56 accept() not ready (11: Resource temporarily unavailable)";
        let line = NginxLine::parse(step).expect("it is a line");
        assert_eq!((line.level, line.event), ("debug", NginxEvent::Other));
        assert_eq!(NginxLine::parse(&step.replace("debug", "alert")).expect("it is a line").event, NginxEvent::AcceptFailed);
    }

    #[test]
    fn events_are_distinguished() {
        use NginxEvent::*;
        for (message, event, errno) in [
            (
                "connect() to unix:/run/php.sock failed (11: Resource temporarily unavailable) while connecting to upstream",
                ConnectFailed,
                Some(11),
            ),
            ("upstream timed out (110: Connection timed out) while reading response header from upstream", UpstreamTimedOut, Some(110)),
            ("upstream prematurely closed connection while reading response header from upstream", UpstreamClosed, None),
            ("recv() failed (104: Connection reset by peer) while reading response header from upstream", TransferFailed, Some(104)),
            ("no live upstreams while connecting to upstream", NoLiveUpstreams, None),
            ("768 worker_connections are not enough", WorkerConnectionsExhausted, None),
            ("768 worker_connections are not enough while connecting to upstream", WorkerConnectionsExhausted, None),
            ("accept4() failed (24: Too many open files)", AcceptFailed, Some(24)),
            ("socket() failed (24: Too many open files) while connecting to upstream", SocketFailed, Some(24)),
            ("open() \"/srv/(1: x)\" failed (2: No such file or directory)", OpenFailed, Some(2)),
            ("768 worker_connections are not enough, reusing connections", WorkerConnectionsReused, None),
            ("8192 worker_connections exceed open file resource limit: 1024", Other, None),
            ("limiting requests, excess: 5.360 by zone \"login\"", RateLimited, None),
            ("delaying request, excess: 0.360, by zone \"login\"", RateDelayed, None),
            ("limiting requests, dry run, excess: 5.360 by zone \"login\"", Other, None),
            ("limiting connections, dry run, by zone \"addr\"", Other, None),
            ("limiting connections by zone \"addr\"", ConnLimited, None),
            ("an upstream response is buffered to a temporary file /var/lib/nginx/fastcgi/1 while reading upstream", BufferedToFile, None),
            ("worker process 17 exited on signal 9", WorkerDied, None),
            ("worker process 17 exited with code 0", Other, None),
            ("bind() to 0.0.0.0:80 failed (98: Address already in use)", BindFailed, Some(98)),
            ("signal process started", Other, None),
        ] {
            let text = format!("2026/11/20 07:17:47 [error] 1#1: {message}\n");
            let line = NginxLine::parse(&text).expect("it is one");
            assert_eq!((line.event, line.errno, line.connection, line.client), (event, errno, None, None), "{message}");
        }
    }

    #[test]
    fn the_zone_of_a_limit_is_reported() {
        let zone = |message: &str| {
            NginxLine::parse(&format!("2026/11/20 07:17:47 [error] 1#1: {message}")).and_then(|line| line.zone.map(str::to_owned))
        };
        assert_eq!(zone("*5 limiting requests, excess: 5.360 by zone \"login\", client: ::1, server: _").as_deref(), Some("login"));
        assert_eq!(zone("delaying request, excess: 0.360, by zone \"a b\", client: x").as_deref(), Some("a b"));
        assert_eq!(zone("limiting connections by zone \"open"), None);
        assert_eq!(zone("limiting connections, client: by zone \"x\""), None, "what the client sent is no zone");
    }

    #[test]
    fn truncation_at_every_byte_never_panics() {
        for end in 0..LINE.len() {
            let line = NginxLine::parse(&LINE[..end]);
            assert_eq!(line.is_some(), end > LINE.find(": *").expect("it is there") + 1, "{}", &LINE[..end]);
        }
        for bad in [
            "",
            "x",
            "2026-11-20 07:17:47 [error] 1#1: x",
            "2026/13/20 07:17:47 [error] 1#1: x",
            "2026/11/20 07:17:47 [error] x#1: y",
            "ä".repeat(40).as_str(),
        ] {
            assert_eq!(NginxLine::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_line_gives_an_answer(tail in "\\PC{0,60}") {
            let line = format!("2026/11/20 07:17:47 [error] 1#1: {tail}");
            if let Some(parsed) = NginxLine::parse(&line) {
                prop_assert!(line.contains(parsed.message));
            }
            prop_assert!(NginxLine::parse(&tail).is_none_or(|parsed| tail.contains(parsed.message)));
        }
    }
}
