//! The keepalive verdict on one edge from the life cycles of its sockets, with reasons as far as these and the servers' configuration show them.

use super::verdict::{ConnectionReuse, GAIN_MIN, Gain, KEPT_SHARE, Keepalive, REQUEST_LIMIT_FINE, Reason, SHARE_MIN, most};
use crate::observation::Origin;
use crate::output::message::Message;

/// Segments with data that each side sends for a TLS handshake, besides those of requests and answers (RFC 8446: a hello, a finished message, and as many for
/// alerts or tickets).
const TLS_TURNS: u64 = 3;
/// Up to this many turns on a connection may be one request with a TLS handshake, if it is unknown whether TLS is used.
const TURNS_OPEN_MAX: u64 = 4;
/// Fewer requests than this allow no verdict.
const REQUESTS_MIN: u64 = 10;
/// After this time without data, the end of a connection is not part of the last answer, ms.
const IDLE_MS: f64 = 500.0;
/// Tolerance of a server's request limit counted by segments: part of a handshake, or a request in two segments.
const LIMIT_NEAR: u64 = 4;
/// Fewest connections that end after the same number of requests for that number to be a limit.
const LIMIT_ENDS_MIN: u64 = 3;

/// The sockets of an edge over some seconds, seen at one end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SocketFacts {
    /// Length of the observation, s.
    pub seconds: f64,
    /// Connections with their first answer in that time.
    pub opened: u64,
    /// Connections that ended in that time: pairs of turns per connection (the smaller of both sides' data segments) and number of connections.
    pub ended: Vec<(u64, u64)>,
    /// Turns of these connections before that time.
    pub before: u64,
    /// Like `ended`, for connections still open at the end: turns in that time.
    pub open: Vec<(u64, u64)>,
    /// Connections in TIME_WAIT at the client's end, which closed first.
    pub client_first: u64,
    /// The same at the server's end. `None` if that end was not seen.
    pub server_first: Option<u64>,
    /// Median time without data before the end, ms.
    pub idle_ms: Option<f64>,
    /// Mean of the shortest round trips, the duration of the TCP handshake, ms.
    pub setup_ms: Option<f64>,
    /// Mean time from the first SYN to the end, ms.
    pub lifetime_ms: Option<f64>,
}

/// The client's (a proxy's) configuration of its connections to the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientKeeps {
    /// Position of the directive that passes requests on.
    pub origin: Origin,
    /// TLS to the server.
    pub tls: bool,
    /// It keeps idle connections.
    pub pool: bool,
    /// It asks the server to close: `Connection: close`, or FastCGI without FCGI_KEEP_CONN.
    pub asks_to_close: bool,
    /// It speaks HTTP/1.0.
    pub http10: bool,
    /// FastCGI, not HTTP.
    pub fastcgi: bool,
}

/// The server's configuration of the connections that it accepts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerKeeps {
    /// Position of the directive, or of the server block.
    pub origin: Origin,
    /// Idle time after which connections are closed, s; 0 after each answer.
    pub idle_s: f64,
    /// Number of requests after which connections are closed.
    pub requests: u64,
}

/// Sums behind the verdict.
struct Sums {
    requests: u64,
    ended: u64,
    /// Share of the requests that used an existing connection.
    share: f64,
    /// The number of requests after which most connections ended, and how many did.
    limit: Option<(u64, u64)>,
}

impl Sums {
    fn of(facts: &SocketFacts, tls: bool) -> Self {
        let carried = |turns: u64| if tls { turns.saturating_sub(TLS_TURNS).max(1) } else { turns };
        let ended = facts.ended.iter().filter(|(turns, _)| *turns > 0);
        let requests: u64 = ended.clone().map(|(turns, count)| carried(*turns) * count).sum();
        let requests = requests.saturating_sub(facts.before);
        let open = facts.open.iter().filter(|(turns, _)| *turns > 0);
        // A handshake before the observation is not among its turns. At most as many were missed as there are new connections.
        let requests = requests + open.map(|(turns, count)| turns * count).sum::<u64>();
        let opened = facts.opened.min(requests);
        let share = if requests > 0 { 1.0 - opened as f64 / requests as f64 } else { 0.0 };
        let count = ended.clone().map(|(_, count)| count).sum();
        let limit = ended.max_by_key(|(_, count)| *count).filter(|(_, most_of)| most(*most_of, count));
        Self { requests, ended: count, share, limit: limit.map(|(turns, count)| (carried(*turns), *count)) }
    }
}

/// The keepalive verdict on an edge from its sockets. The configuration decides between reasons that look alike from outside. If it was not read,
/// [`Keepalive::open`] says that one of the given reasons applies.
pub fn keepalive_of_sockets(facts: &SocketFacts, client: Option<&ClientKeeps>, server: Option<&ServerKeeps>) -> Keepalive {
    let sums = Sums::of(facts, client.is_some_and(|client| client.tls));
    let few = |limit: Option<(u64, u64)>| limit.is_some_and(|(turns, _)| (2..=TURNS_OPEN_MAX).contains(&turns));
    let kept = if sums.requests < REQUESTS_MIN || client.is_none() && few(sums.limit) && sums.share < KEPT_SHARE {
        ConnectionReuse::Unknown
    } else if sums.share < 0.01 {
        if sums.ended == 0 { ConnectionReuse::Unknown } else { ConnectionReuse::Not }
    } else {
        ConnectionReuse::InForce
    };
    let (mut why, mut reasons, mut open) = (Vec::new(), Vec::new(), false);
    match kept {
        ConnectionReuse::Not => (reasons, open) = each_answer(facts, &sums, client, server, &mut why),
        ConnectionReuse::InForce => reasons = now_and_then(facts, &sums, server, &mut why),
        ConnectionReuse::Partly | ConnectionReuse::Unknown => {}
    }
    let partly = kept == ConnectionReuse::InForce && (sums.share < SHARE_MIN || !reasons.is_empty());
    let kept = if partly { ConnectionReuse::Partly } else { kept };
    let mut lines: Vec<Message> = Vec::new();
    for reason in &reasons {
        let line = Message::new(reason.ids().1);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let summary = Message::new(match kept {
        ConnectionReuse::InForce => "keepalive-sockets-in-force",
        ConnectionReuse::Partly => "keepalive-sockets-partly",
        ConnectionReuse::Not => "keepalive-sockets-not",
        ConnectionReuse::Unknown => "keepalive-sockets-unknown",
    })
    .with("requests", sums.requests)
    .with("opened", facts.opened)
    .with("ended", sums.ended)
    .with("seconds", facts.seconds)
    .with("share", sums.share * 100.0);
    let gain = matches!(kept, ConnectionReuse::Not | ConnectionReuse::Partly).then(|| gain(facts, &sums)).flatten();
    Keepalive { kept, reasons, open, summary, why, lines, gain }
}

/// Who closed connections first: the client, the server, or unknown (more than half were reset, or neither end is known).
fn first(facts: &SocketFacts, ended: u64) -> Option<bool> {
    match facts.server_first {
        Some(server) if most(server, server + facts.client_first) => Some(false),
        _ if most(facts.client_first, ended) => Some(true),
        // The side that closes first enters TIME_WAIT. If that is not the client, it was the server, or the connection was reset.
        None if ended > 0 => Some(false),
        Some(_) | None => None,
    }
}

/// For connections that end with each answer.
fn each_answer(
    facts: &SocketFacts,
    sums: &Sums,
    client: Option<&ClientKeeps>,
    server: Option<&ServerKeeps>,
    why: &mut Vec<Message>,
) -> (Vec<Reason>, bool) {
    let by_client = first(facts, sums.ended);
    let said = Message::new(match by_client {
        Some(true) => "keepalive-sockets-client-first",
        Some(false) => "keepalive-sockets-server-first",
        None => "keepalive-sockets-neither-first",
    });
    let said = said.with("ended", sums.ended).with("client", facts.client_first).with("server", facts.server_first.unwrap_or(0));
    why.push(said.with("idle", facts.idle_ms.unwrap_or(0.0)));
    let mut reasons = Vec::new();
    if let Some(client) = client {
        let at = || client.origin.to_string();
        if client.asks_to_close {
            let (reason, id) = if client.fastcgi {
                (Reason::KeepConnUnset, "keepalive-configured-keep-conn-unset")
            } else {
                (Reason::CloseRequested, "keepalive-configured-close")
            };
            reasons.push(reason);
            why.push(Message::new(id).with("place", at()));
        } else if client.http10 {
            reasons.push(Reason::Http10);
            why.push(Message::new("keepalive-configured-http10").with("place", at()));
        }
        if !reasons.is_empty() {
            return (reasons, false);
        }
    }
    let server_closes = server.is_some_and(|server| server.idle_s == 0.0 || server.requests == 1);
    if let Some(server) = server.filter(|_| server_closes) {
        why.push(Message::new("keepalive-configured-server-closes").with("place", server.origin.to_string()));
    }
    if server_closes || client.is_some() && by_client != Some(true) {
        reasons.push(Reason::ServerCloses);
    }
    if let Some(client) = client.filter(|client| !client.pool) {
        why.push(Message::new("keepalive-configured-no-pool").with("place", client.origin.to_string()));
        reasons.push(Reason::ClientCloses);
    } else if by_client == Some(true) && reasons.is_empty() {
        reasons.push(Reason::ClientCloses);
    }
    if !reasons.is_empty() && (client.is_some() || by_client == Some(true)) {
        return (reasons, false);
    }
    // The client asks for it, or the server does it on its own: a socket shows no headers.
    why.push(Message::new("keepalive-sockets-open"));
    let mut candidates = vec![Reason::CloseRequested, Reason::Http10];
    candidates.extend((!reasons.contains(&Reason::ServerCloses)).then_some(Reason::ServerCloses));
    candidates.extend(reasons);
    (candidates, true)
}

/// For connections that carry several requests each, some of which end.
fn now_and_then(facts: &SocketFacts, sums: &Sums, server: Option<&ServerKeeps>, why: &mut Vec<Message>) -> Vec<Reason> {
    let by_server = first(facts, sums.ended) == Some(false);
    let idle = facts.idle_ms.is_some_and(|ms| ms >= IDLE_MS);
    if sums.ended == 0 || !by_server {
        return Vec::new();
    }
    if idle {
        let message =
            Message::new("keepalive-sockets-server-idle").with("ended", sums.ended).with("idle", facts.idle_ms.unwrap_or(0.0) / 1e3);
        why.push(message);
        return vec![Reason::ServerIdle];
    }
    let Some((limit, count)) = sums.limit.filter(|(limit, count)| *limit > 1 && *limit < REQUEST_LIMIT_FINE && *count >= LIMIT_ENDS_MIN)
    else {
        return Vec::new();
    };
    let configured = server.filter(|server| server.requests.abs_diff(limit) <= LIMIT_NEAR);
    let limit = configured.map_or(limit, |server| server.requests);
    why.push(Message::new("keepalive-sockets-request-limit").with("limit", limit).with("count", count));
    if let Some(server) = configured {
        why.push(Message::new("keepalive-configured-requests").with("place", server.origin.to_string()).with("limit", limit));
    }
    vec![Reason::RequestLimit]
}

/// The saved set-up time as a share of the rest of a connection's life.
fn gain(facts: &SocketFacts, sums: &Sums) -> Option<Gain> {
    let (setup_ms, lifetime_ms) = (facts.setup_ms?, facts.lifetime_ms?);
    let requests_each = (sums.requests as f64 / facts.opened.max(1) as f64).max(1.0);
    let request_ms = (lifetime_ms - setup_ms) / requests_each;
    if request_ms <= 0.0 {
        return None;
    }
    let factor = (request_ms + setup_ms / requests_each) / request_ms;
    if factor < GAIN_MIN {
        return None;
    }
    let text = Message::new("keepalive-gain").with("setup", setup_ms).with("request", request_ms);
    Some(Gain { factor, text: text.with("percent", (factor - 1.0) * 100.0).with("factor", factor) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::catalogue::Catalogue;

    /// A thousand connections with one request each, all closed first by the server.
    fn churning() -> SocketFacts {
        SocketFacts {
            seconds: 5.0,
            opened: 1000,
            ended: vec![(1, 1000)],
            server_first: Some(990),
            idle_ms: Some(0.0),
            setup_ms: Some(20.0),
            lifetime_ms: Some(41.0),
            ..SocketFacts::default()
        }
    }

    fn kept() -> SocketFacts {
        SocketFacts { opened: 0, ended: Vec::new(), open: vec![(100, 20)], server_first: Some(0), ..churning() }
    }

    fn pool() -> ClientKeeps {
        ClientKeeps { pool: true, ..ClientKeeps::default() }
    }

    const STAYS: ServerKeeps = ServerKeeps { origin: Origin { file: String::new(), line: 1 }, idle_s: 300.0, requests: 100_000 };

    fn closes() -> ServerKeeps {
        ServerKeeps { idle_s: 0.0, ..STAYS }
    }

    fn said(verdict: &Keepalive) -> String {
        let words = Catalogue::english();
        let gain = verdict.gain.iter().map(|gain| &gain.text);
        let all = [&verdict.summary].into_iter().chain(&verdict.why).chain(&verdict.lines).chain(gain);
        let text: String = all.map(|message| words.text(message) + "\n").collect();
        assert!(!text.contains("[keepalive") && !text.contains("{$"), "{text}");
        text
    }

    #[test]
    fn the_five_configurations_are_told_apart_with_their_files() {
        let by_client = SocketFacts { client_first: 990, server_first: Some(0), ..churning() };
        let (asks, bare) = (ClientKeeps { asks_to_close: true, http10: true, ..ClientKeeps::default() }, ClientKeeps::default());
        let cases = [
            (churning(), &asks, closes(), vec![Reason::CloseRequested]),
            (churning(), &ClientKeeps { http10: true, ..pool() }, STAYS, vec![Reason::Http10]),
            (churning(), &ClientKeeps { asks_to_close: true, fastcgi: true, ..pool() }, STAYS, vec![Reason::KeepConnUnset]),
            (churning(), &bare, closes(), vec![Reason::ServerCloses, Reason::ClientCloses]),
            (by_client, &bare, STAYS, vec![Reason::ClientCloses]),
            (churning(), &pool(), closes(), vec![Reason::ServerCloses]),
        ];
        for (facts, client, server, reasons) in cases {
            let verdict = keepalive_of_sockets(&facts, Some(client), Some(&server));
            assert_eq!((verdict.kept, &verdict.reasons, verdict.open), (ConnectionReuse::Not, &reasons, false));
            assert!(!verdict.lines.is_empty(), "{}", said(&verdict));
        }
        let verdict = keepalive_of_sockets(&kept(), Some(&pool()), Some(&STAYS));
        assert_eq!((verdict.kept, verdict.reasons.len(), verdict.gain), (ConnectionReuse::InForce, 0, None));
    }

    #[test]
    fn without_files_what_looks_alike_stays_open() {
        let verdict = keepalive_of_sockets(&churning(), None, None);
        let open = vec![Reason::CloseRequested, Reason::Http10, Reason::ServerCloses];
        assert_eq!((verdict.kept, &verdict.reasons, verdict.open), (ConnectionReuse::Not, &open, true));
        assert!(said(&verdict).contains("20"), "{}", said(&verdict));
        // The server would close, but the client may have asked for it as well.
        assert!(keepalive_of_sockets(&churning(), None, Some(&closes())).open);
        // The socket alone shows who closes first without being asked.
        let by_client = SocketFacts { client_first: 990, server_first: None, ..churning() };
        let verdict = keepalive_of_sockets(&by_client, None, None);
        assert_eq!((verdict.reasons, verdict.open), (vec![Reason::ClientCloses], false));
    }

    #[test]
    fn a_limit_of_requests_and_an_idle_timeout_make_it_partly() {
        let limited = SocketFacts { opened: 10, ended: vec![(299, 1), (300, 9)], server_first: Some(10), ..kept() };
        let server = ServerKeeps { requests: 300, ..STAYS };
        for server in [Some(&server), None] {
            let verdict = keepalive_of_sockets(&limited, Some(&pool()), server);
            assert_eq!((verdict.kept, &verdict.reasons), (ConnectionReuse::Partly, &vec![Reason::RequestLimit]));
            assert!(said(&verdict).contains("300"), "{}", said(&verdict));
        }
        let idle = SocketFacts { idle_ms: Some(2000.0), ..limited.clone() };
        assert_eq!(keepalive_of_sockets(&idle, None, None).reasons, [Reason::ServerIdle]);
        // The client closes connections that it does not need, after any number of requests.
        let by_client = SocketFacts { client_first: 10, server_first: Some(0), ..limited };
        assert_eq!(keepalive_of_sockets(&by_client, Some(&pool()), None).kept, ConnectionReuse::InForce);
    }

    #[test]
    fn a_handshake_of_tls_is_no_request() {
        let facts = SocketFacts { ended: vec![(3, 1000)], ..churning() };
        let tls = ClientKeeps { tls: true, asks_to_close: true, ..ClientKeeps::default() };
        assert_eq!(keepalive_of_sockets(&facts, Some(&tls), None).kept, ConnectionReuse::Not);
        assert_eq!(keepalive_of_sockets(&facts, None, None).kept, ConnectionReuse::Unknown, "three requests, or one and a handshake");
        let many = SocketFacts { ended: vec![(50, 20)], opened: 20, ..churning() };
        assert_ne!(keepalive_of_sockets(&many, Some(&tls), None).kept, ConnectionReuse::Not);
    }

    #[test]
    fn too_little_allows_no_verdict() {
        assert_eq!(keepalive_of_sockets(&SocketFacts::default(), None, None).kept, ConnectionReuse::Unknown);
        let open = SocketFacts { ended: Vec::new(), open: vec![(1, 1000)], ..churning() };
        assert_eq!(keepalive_of_sockets(&open, None, None).kept, ConnectionReuse::Unknown, "none of them has ended");
    }

    #[test]
    fn the_gain_is_the_set_up_that_is_spared() {
        let gain = keepalive_of_sockets(&SocketFacts { lifetime_ms: Some(40.0), ..churning() }, None, None).gain;
        assert!((gain.unwrap().factor - 2.0).abs() < 1e-9);
        assert!(keepalive_of_sockets(&SocketFacts { lifetime_ms: None, ..churning() }, None, None).gain.is_none());
        assert!(keepalive_of_sockets(&SocketFacts { lifetime_ms: Some(19.0), ..churning() }, None, None).gain.is_none());
    }
}
