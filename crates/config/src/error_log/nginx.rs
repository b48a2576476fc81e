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
    /// The header of an upstream's answer is larger than the buffer for it.
    AnswerHeaderTooBig,
    /// An upstream's answer breaks its protocol.
    AnswerInvalid,
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
        let errno = if OPENED.iter().any(|head| message.starts_with(head)) { errno_of_open(text) } else { errno(message) };
        Some(Self {
            local_us,
            level,
            pid: pid.parse().ok()?,
            tid: tid.parse().ok()?,
            connection,
            message,
            event: event(level, message, errno),
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
        if let Some(number) = number_of(&rest[open + 1..]) {
            return Some(number);
        }
        rest = &rest[..open];
    }
    None
}

/// The number in "99: text".
fn number_of(inner: &str) -> Option<u32> {
    let (number, _) = inner.split_once(": ")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_number)
}

/// The number in `open() "PATH" failed (24: text)`. A client chooses the path and what follows: where the line has more than one such end, none counts.
fn errno_of_open(text: &str) -> Option<u32> {
    let mut ends = text.split("\" failed (").skip(1);
    let number = number_of(ends.next()?)?;
    ends.next().is_none().then_some(number)
}

/// How nginx begins the message of an event, and the levels that it gives such a line.
type Beginning = (&'static [&'static str], &'static [&'static str], NginxEvent);

/// Levels of a connection that failed (`ngx_connection_error` of ngx_connection.c).
const OF_CONNECTIONS: &[&str] = &["info", "error", "crit", "alert"];
/// Levels of what a server cannot do without.
const GRAVE: &[&str] = &["crit", "alert", "emerg"];
/// Levels that `limit_req_log_level` and `limit_conn_log_level` may name, and the one below it, which a delay has (ngx_http_limit_req_module.c).
const OF_LIMITS: &[&str] = &["info", "notice", "warn", "error"];

/// Beginnings of a message about a file, whose path follows.
const OPENED: &[&str] = &["open() \"", "openat() \""];

/// Messages that begin with words of nginx's own. What a client sends stands behind such a beginning, never before it.
const BEGINNINGS: &[Beginning] = &[
    (&["connect() to ", "connect() failed ("], &["error", "crit", "alert"], NginxEvent::ConnectFailed),
    (&["upstream timed out"], &["info", "error"], NginxEvent::UpstreamTimedOut),
    (&["upstream prematurely closed "], &["error"], NginxEvent::UpstreamClosed),
    (
        &[
            "client prematurely closed connection",
            "epoll_wait() reported that client prematurely closed connection",
            "kevent() reported that client prematurely closed connection",
        ],
        &["info"],
        NginxEvent::ClientClosed,
    ),
    (&["no live upstreams"], &["error"], NginxEvent::NoLiveUpstreams),
    (&["upstream sent too big header"], &["error"], NginxEvent::AnswerHeaderTooBig),
    (
        &[
            "upstream sent no valid HTTP",
            "upstream sent invalid ",
            "upstream sent unsupported ",
            "upstream sent unexpected ",
            "upstream sent duplicate header line",
        ],
        &["error"],
        NginxEvent::AnswerInvalid,
    ),
    (&["accept() failed (", "accept4() failed ("], &["error", "crit", "alert"], NginxEvent::AcceptFailed),
    (&["socket() failed (", "eventfd() failed (", "pipe() failed (", "epoll_create() failed ("], GRAVE, NginxEvent::SocketFailed),
    (&["bind() to ", "listen() to ", "bind() failed (", "listen() failed (", "still could not bind"], GRAVE, NginxEvent::BindFailed),
    (&["limiting requests, excess: "], OF_LIMITS, NginxEvent::RateLimited),
    (&["delaying request, excess: "], OF_LIMITS, NginxEvent::RateDelayed),
    (&["limiting connections by zone "], OF_LIMITS, NginxEvent::ConnLimited),
    (
        &["an upstream response is buffered to a temporary file", "a client request body is buffered to a temporary file"],
        &["warn"],
        NginxEvent::BufferedToFile,
    ),
    (OPENED, &["error", "crit", "alert", "emerg"], NginxEvent::OpenFailed),
    (
        &["recv() failed (", "readv() failed (", "send() failed (", "sendfile() failed (", "writev() failed ("],
        OF_CONNECTIONS,
        NginxEvent::TransferFailed,
    ),
];

/// EMFILE and ENFILE. nginx logs them as critical or worse where it opens a file (ngx_http_static_module.c).
const NO_DESCRIPTOR: [u32; 2] = [24, 23];

/// The event of a line. Anybody who sends a request writes into the log what they like, so a message counts only where it begins as nginx begins it, at a level that nginx gives it.
fn event(level: &str, message: &str, errno: Option<u32>) -> NginxEvent {
    if let Some(event) = without_connection(level, message).or_else(|| ended_worker(level, message)) {
        return event;
    }
    if message.starts_with("SSL_do_handshake() failed (") && message.ends_with(" while SSL handshaking to upstream") {
        return if OF_CONNECTIONS.contains(&level) { NginxEvent::ConnectFailed } else { NginxEvent::Other };
    }
    let begins = |(heads, levels, _): &&Beginning| levels.contains(&level) && heads.iter().any(|head| message.starts_with(head));
    let event = BEGINNINGS.iter().find(begins).map_or(NginxEvent::Other, |(.., event)| *event);
    let is_told = match event {
        NginxEvent::ConnectFailed => message.contains(" failed (") && errno.is_some(),
        NginxEvent::OpenFailed => level != "error" || errno.is_none_or(|errno| !NO_DESCRIPTOR.contains(&errno)),
        _ => true,
    };
    if is_told { event } else { NginxEvent::Other }
}

/// "768 worker_connections are not enough" (`ngx_get_connection` and `ngx_drain_connections` of ngx_connection.c).
fn without_connection(level: &str, message: &str) -> Option<NginxEvent> {
    let (number, rest) = message.split_once(' ')?;
    let rest = rest.strip_prefix("worker_connections are not enough")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match (level, rest) {
        ("alert", rest) if is_number && (rest.is_empty() || rest.starts_with(" while ")) => Some(NginxEvent::WorkerConnectionsExhausted),
        ("warn", rest) if is_number && rest.starts_with(", reusing connections") => Some(NginxEvent::WorkerConnectionsReused),
        _ => None,
    }
}

/// "worker process 17 exited on signal 9" (`ngx_process_get_status` of ngx_process.c).
fn ended_worker(level: &str, message: &str) -> Option<NginxEvent> {
    let rest = ["worker process ", "cache manager process ", "cache loader process "].iter().find_map(|name| message.strip_prefix(name))?;
    let (pid, rest) = rest.split_once(' ')?;
    let is_bad = rest.starts_with("exited ") && rest != "exited with code 0";
    (["alert", "notice"].contains(&level) && pid.parse::<u32>().is_ok() && is_bad).then_some(NginxEvent::WorkerDied)
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
        let failed = step.replace("debug", "alert").replace("not ready", "failed");
        assert_eq!(NginxLine::parse(&failed).expect("it is a line").event, NginxEvent::AcceptFailed);
    }

    #[test]
    fn events_are_distinguished() {
        use NginxEvent::*;
        for (level, message, event, errno) in [
            (
                "error",
                "connect() to unix:/run/php.sock failed (11: Resource temporarily unavailable) while connecting to upstream",
                ConnectFailed,
                Some(11),
            ),
            (
                "error",
                "upstream timed out (110: Connection timed out) while reading response header from upstream",
                UpstreamTimedOut,
                Some(110),
            ),
            ("error", "upstream prematurely closed connection while reading response header from upstream", UpstreamClosed, None),
            (
                "error",
                "recv() failed (104: Connection reset by peer) while reading response header from upstream",
                TransferFailed,
                Some(104),
            ),
            ("error", "no live upstreams while connecting to upstream", NoLiveUpstreams, None),
            ("error", "upstream sent too big header while reading response header from upstream", AnswerHeaderTooBig, None),
            ("error", "upstream sent invalid header: \"a b: c\" while reading response header from upstream", AnswerInvalid, None),
            ("error", "upstream sent no valid HTTP/1.0 header while reading response header from upstream", AnswerInvalid, None),
            ("info", "upstream sent too big header while reading response header from upstream", Other, None),
            ("alert", "768 worker_connections are not enough", WorkerConnectionsExhausted, None),
            ("alert", "768 worker_connections are not enough while connecting to upstream", WorkerConnectionsExhausted, None),
            ("crit", "accept4() failed (24: Too many open files)", AcceptFailed, Some(24)),
            ("alert", "socket() failed (24: Too many open files) while connecting to upstream", SocketFailed, Some(24)),
            ("error", "open() \"/srv/(1: x)\" failed (2: No such file or directory)", OpenFailed, Some(2)),
            ("warn", "768 worker_connections are not enough, reusing connections", WorkerConnectionsReused, None),
            ("warn", "8192 worker_connections exceed open file resource limit: 1024", Other, None),
            ("error", "limiting requests, excess: 5.360 by zone \"login\"", RateLimited, None),
            ("warn", "delaying request, excess: 0.360, by zone \"login\"", RateDelayed, None),
            ("error", "limiting requests, dry run, excess: 5.360 by zone \"login\"", Other, None),
            ("error", "limiting connections, dry run, by zone \"addr\"", Other, None),
            ("error", "limiting connections by zone \"addr\"", ConnLimited, None),
            (
                "warn",
                "an upstream response is buffered to a temporary file /var/lib/nginx/fastcgi/1 while reading upstream",
                BufferedToFile,
                None,
            ),
            ("alert", "worker process 17 exited on signal 9", WorkerDied, None),
            ("notice", "worker process 17 exited with code 0", Other, None),
            ("emerg", "bind() to 0.0.0.0:80 failed (98: Address already in use)", BindFailed, Some(98)),
            ("notice", "signal process started", Other, None),
        ] {
            let text = format!("2026/11/20 07:17:47 [{level}] 1#1: {message}\n");
            let line = NginxLine::parse(&text).expect("it is one");
            assert_eq!((line.event, line.errno, line.connection, line.client), (event, errno, None, None), "{message}");
        }
    }

    /// What a client of a file server sends as its path, its host and its referrer, as nginx writes it.
    fn of_client(level: &str, path: &str, host: &str, referrer: &str) -> String {
        format!(
            "2026/11/20 07:17:47 [{level}] 12#12: *7 open() \"/srv/{path}\" failed (2: No such file or directory), client: 10.0.0.9, server: _, \
             request: \"GET /{path} HTTP/1.1\", host: \"{host}\", referrer: \"{referrer}\""
        )
    }

    /// Messages of nginx that a client would like to write.
    const WANTED: &[&str] = &[
        "512 worker_connections are not enough",
        "512 worker_connections are not enough, reusing connections",
        "accept4() failed (24: Too many open files)",
        "socket() failed (24: Too many open files) while connecting to upstream",
        "connect() to 127.0.0.1:9000 failed (99: Cannot assign requested address) while connecting to upstream",
        "limiting requests, excess: 5.360 by zone \"login\"",
        "delaying request, excess: 0.360, by zone \"login\"",
        "limiting connections by zone \"addr\"",
        "an upstream response is buffered to a temporary file /x",
        "upstream timed out (110: Connection timed out) while reading response header from upstream",
        "no live upstreams while connecting to upstream",
        "worker process 17 exited on signal 9",
        "client prematurely closed connection",
        "SSL_do_handshake() failed (SSL: error) while SSL handshaking to upstream",
    ];

    #[test]
    fn text_of_a_client_is_no_event() {
        for wanted in WANTED {
            for (path, host, referrer) in [(*wanted, "a", "b"), ("x", wanted, "b"), ("x", "a", wanted)] {
                for form in [path.to_owned(), format!("x {path}"), format!("{path}, client: 1"), format!("x\" {path}, client: ")] {
                    let line = of_client("error", &form, host, referrer);
                    let parsed = NginxLine::parse(&line).expect("it is a line");
                    assert_eq!(parsed.event, NginxEvent::OpenFailed, "{line}");
                    assert!(matches!(parsed.errno, Some(2) | None), "{line}");
                }
            }
        }
    }

    #[test]
    fn a_path_does_not_make_a_failure_of_descriptors() {
        for path in ["x\" failed (24: Too many open files)", "x\" failed (24: Too many open files), client: 1", "(24: Too many open files)"]
        {
            for level in ["error", "crit"] {
                let line = of_client(level, path, "a", "b");
                let parsed = NginxLine::parse(&line).expect("it is a line");
                assert_ne!((parsed.event, parsed.errno), (NginxEvent::OpenFailed, Some(24)), "{line}");
            }
        }
        let line = of_client("crit", "x", "a", "b").replace("(2: No such file or directory)", "(24: Too many open files)");
        let parsed = NginxLine::parse(&line).expect("it is a line");
        assert_eq!((parsed.event, parsed.errno), (NginxEvent::OpenFailed, Some(24)));
        assert_eq!(NginxLine::parse(&line.replace("[crit]", "[error]")).map(|line| line.event), Some(NginxEvent::Other));
    }

    #[test]
    fn what_follows_a_line_feed_is_no_line_unless_it_has_the_whole_form() {
        for wanted in WANTED {
            let line = of_client("error", &format!("x\n{wanted}\ny"), "a", "b");
            let parsed: Vec<_> = line.lines().filter_map(NginxLine::parse).map(|line| line.event).collect();
            assert_eq!(parsed, [NginxEvent::OpenFailed], "{line}");
            for head in
                ["[alert] 1#1: ", "2026/11/20 07:17:47 [alert] ", "2026/11/20 07:17:47 [alert] 1#1 ", " 2026/11/20 07:17:47 [alert] 1#1: "]
            {
                assert_eq!(NginxLine::parse(&format!("{head}{wanted}")), None, "{head}{wanted}");
            }
        }
    }

    #[test]
    fn an_event_has_the_level_that_the_server_gives_it() {
        for (message, levels) in [
            ("512 worker_connections are not enough", &["alert"][..]),
            ("512 worker_connections are not enough, reusing connections", &["warn"]),
            ("x 512 worker_connections are not enough", &[]),
            ("512 worker_connections are not enough for all", &[]),
            (" worker_connections are not enough", &[]),
            ("accept4() failed (24: Too many open files)", &["error", "crit", "alert"]),
            ("connect() to 127.0.0.1:9000 failed (99: Cannot assign requested address)", &["error", "crit", "alert"]),
            ("connect() to nobody", &[]),
            ("limiting requests, excess: 5.360 by zone \"login\"", &["info", "notice", "warn", "error"]),
            ("worker process 17 exited on signal 9", &["notice", "alert"]),
            ("worker process of mine exited on signal 9", &[]),
        ] {
            for level in ["debug", "info", "notice", "warn", "error", "crit", "alert", "emerg", "loud"] {
                let line = format!("2026/11/20 07:17:47 [{level}] 1#1: *3 {message}");
                let event = NginxLine::parse(&line).expect("it is a line").event;
                assert_eq!(event != NginxEvent::Other, levels.contains(&level), "{line}");
            }
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
