//! Which requests are answered. A page of another site that the user's browser shows may send requests to loopback, and may give a name of its own that address (DNS
//! rebinding). So the Host must be this server's, and a foreign Origin is refused (RFC 9110, 7.2; RFC 6454). Where others can reach it, each request shows a token.

use std::net::SocketAddr;

use hyper::header::{CONTENT_LENGTH, HOST, ORIGIN, TRANSFER_ENCODING};
use hyper::{HeaderMap, Method, StatusCode};

use crate::protection::Token;
use crate::shares::Client;

/// What every user of the host may read: sums that name no request, and that it lives.
const OPEN: [&str; 2] = ["/metrics", "/healthz"];
/// Where a request comes from, as a browser says it.
const SITE: &str = "sec-fetch-site";
/// The names of this host's loopback.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// How the server is reached.
#[derive(Clone)]
pub(crate) enum Reached {
    /// At a unix socket, which no page can reach.
    Unix,
    /// At this address of loopback; with a token for those who are neither root nor the own user.
    Loopback(SocketAddr, Option<Token>),
    /// By TLS, with this token.
    Protected(Token),
}

type Refusal = (StatusCode, &'static str);

/// True for what every user of the host may read.
pub(crate) fn is_open(path: &str) -> bool {
    OPEN.contains(&path)
}

/// Why a request is refused; nothing if it is answered.
pub(crate) fn refusal(method: &Method, path: &str, headers: &HeaderMap, reached: &Reached, client: Client) -> Option<Refusal> {
    if ![Method::GET, Method::HEAD].contains(method) {
        return Some((StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered"));
    }
    if headers.contains_key(TRANSFER_ENCODING) || headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0") {
        return Some((StatusCode::PAYLOAD_TOO_LARGE, "no request here has a body"));
    }
    match reached {
        Reached::Unix => None,
        Reached::Loopback(at, token) => foreign(headers, "http://", |authority| is_loopback(authority, *at)).or_else(|| {
            let is_refused = token.as_ref().is_some_and(|token| !is_open(path) && !token.is_shown(headers, client));
            is_refused.then_some((StatusCode::UNAUTHORIZED, "root and the user of this program may read this: others open the address with the token once, which it printed at its start"))
        }),
        Reached::Protected(token) => {
            let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
            let is_shown = token.is_shown(headers, client);
            let no_token = (!is_shown)
                .then_some((StatusCode::UNAUTHORIZED, "a token is needed: open /?token=TOKEN, or send it in Authorization: Bearer TOKEN"));
            no_token.or_else(|| foreign(headers, "https://", |authority| !authority.is_empty() && authority == host))
        }
    }
}

/// Refuses a Host or an Origin that is not this server's own.
fn foreign(headers: &HeaderMap, scheme: &str, is_own: impl Fn(&str) -> bool) -> Option<Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    if hosts.next().is_some() || !host.is_some_and(&is_own) {
        return Some((StatusCode::MISDIRECTED_REQUEST, "the Host is not this server's"));
    }
    // A browser says whether another site's page asks (Fetch Metadata, W3C): even an image would open a live view here.
    let is_elsewhere = |site: &hyper::header::HeaderValue| ![&b"same-origin"[..], b"none"].contains(&site.as_bytes());
    if headers.get_all(SITE).iter().any(is_elsewhere) {
        return Some((StatusCode::FORBIDDEN, "another site asks: open this address yourself"));
    }
    let is_foreign =
        |origin: &hyper::header::HeaderValue| !origin.to_str().is_ok_and(|origin| origin.strip_prefix(scheme).is_some_and(&is_own));
    headers.get_all(ORIGIN).iter().any(is_foreign).then_some((StatusCode::FORBIDDEN, "the Origin is another site"))
}

fn is_loopback(authority: &str, at: SocketAddr) -> bool {
    let (name, given) = match authority.rsplit_once(':') {
        Some((name, given)) if !given.ends_with(']') => (name, given.parse().ok()),
        _ => (authority, Some(80)),
    };
    // The address itself is no name that another site could have given to it.
    let is_name = NAMES.contains(&name) || name.trim_start_matches('[').trim_end_matches(']').parse() == Ok(at.ip());
    is_name && given == Some(at.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_at(reached: &Reached, method: &Method, headers: &[(hyper::header::HeaderName, &str)]) -> Option<u16> {
        let headers: HeaderMap = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        refusal(method, "/", &headers, reached, Client::User(7)).map(|(status, _)| status.as_u16())
    }

    fn refused(method: Method, headers: &[(hyper::header::HeaderName, &str)], port: Option<u16>) -> Option<u16> {
        refused_at(&port.map_or(Reached::Unix, |port| Reached::Loopback(([127, 0, 0, 5], port).into(), None)), &method, headers)
    }

    #[test]
    fn only_this_servers_names_are_answered() {
        for host in ["127.0.0.1:9464", "localhost:9464", "[::1]:9464", "127.0.0.5:9464"] {
            assert_eq!(refused(Method::GET, &[(HOST, host)], Some(9464)), None, "{host}");
        }
        for host in ["127.0.0.6:9464", "evil.example:9464", "127.0.0.1", "localhost:80", "127.0.0.1:9464.evil.example", "", "[::1]"] {
            assert_eq!(refused(Method::GET, &[(HOST, host)], Some(9464)), Some(421), "{host}");
        }
        assert_eq!(refused(Method::GET, &[], Some(9464)), Some(421));
        assert_eq!(refused(Method::GET, &[(HOST, "localhost")], Some(80)), None);
        assert_eq!(refused(Method::POST, &[(HOST, "localhost:9464")], Some(9464)), Some(405));
        let from = |origin| refused(Method::GET, &[(HOST, "localhost:9464"), (ORIGIN, origin)], Some(9464));
        assert_eq!([from("http://localhost:9464"), from("http://evil.example"), from("null")], [None, Some(403), Some(403)]);
        assert_eq!(refused(Method::GET, &[(HOST, "anything")], None), None, "a unix socket");
        let asks =
            |site| refused(Method::GET, &[(HOST, "localhost:9464"), (hyper::header::HeaderName::from_static(SITE), site)], Some(9464));
        assert_eq!([asks("none"), asks("same-origin")], [None, None], "typed by the user, and asked by the page itself");
        assert_eq!([asks("cross-site"), asks("same-site"), asks("x")], [Some(403); 3], "an image of another site, or of another port");
    }

    #[test]
    fn another_user_of_the_host_needs_the_token_but_for_sums() {
        let at = SocketAddr::from(([127, 0, 0, 1], 9464));
        let token = Token::for_loopback(9464).unwrap();
        let cookie = token.cookie(Client::User(7)).unwrap();
        assert!(cookie.starts_with("chokepoint-9464=") && cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
        assert!(token.text().len() == 32 && token.text() != Token::for_loopback(9464).unwrap().text());
        let get_as = |uid: u32, path: &str, headers: &[(hyper::header::HeaderName, &str)]| {
            let all = headers.iter().chain(&[(HOST, "localhost:9464")]);
            let headers: HeaderMap = all.map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
            let reached = Reached::Loopback(at, Some(token.clone()));
            refusal(&Method::GET, path, &headers, &reached, Client::User(uid)).map(|(status, _)| status.as_u16())
        };
        let get = |path: &str, headers: &[(hyper::header::HeaderName, &str)]| get_as(7, path, headers);
        assert_eq!([get("/", &[]), get("/api/v1/runs", &[]), get("/metrics/x", &[])], [Some(401); 3]);
        assert_eq!([get("/metrics", &[]), get("/healthz", &[])], [None, None]);
        let shown = cookie.split(';').next().unwrap();
        assert_eq!(get("/api/v1/runs", &[(hyper::header::COOKIE, shown)]), None);
        assert_eq!(get_as(8, "/api/v1/runs", &[(hyper::header::COOKIE, shown)]), Some(401), "a listener at another port was sent it");
        let cookie_of_token = format!("chokepoint-9464={}", token.text());
        assert_eq!(get("/api/v1/runs", &[(hyper::header::COOKIE, &cookie_of_token)]), Some(401), "no cookie has the token itself");
        (0..64).for_each(|_| drop(token.cookie(Client::User(9)).unwrap()));
        assert_eq!(get("/api/v1/runs", &[(hyper::header::COOKIE, shown)]), Some(401), "the oldest is forgotten");
        let cookie = token.cookie(Client::User(7)).unwrap();
        let shown = cookie.split(';').next().unwrap();
        assert_eq!(get("/", &[(hyper::header::COOKIE, shown), (ORIGIN, "http://evil.example")]), Some(403));
    }

    #[test]
    fn others_need_the_token_and_a_body_is_refused() {
        const TOKEN: &str = "0123456789abcdef0123456789abcdef";
        let bearer = format!("Bearer {TOKEN}");
        let protected = Reached::Protected(Token::by_tls(TOKEN));
        let get = |headers: &[(hyper::header::HeaderName, &str)]| refused_at(&protected, &Method::GET, headers);
        let shown = (hyper::header::AUTHORIZATION, bearer.as_str());
        assert_eq!(get(&[(HOST, "server.example:9464")]), Some(401));
        assert_eq!(get(&[(HOST, "server.example:9464"), shown.clone()]), None);
        assert_eq!(get(&[(HOST, "server.example:9464"), shown.clone(), (ORIGIN, "https://server.example:9464")]), None);
        assert_eq!(get(&[(HOST, "server.example:9464"), shown.clone(), (ORIGIN, "https://evil.example")]), Some(403));
        assert_eq!(get(std::slice::from_ref(&shown)), Some(421));
        let body = |name, value| refused(Method::GET, &[(HOST, "localhost:9464"), (name, value)], Some(9464));
        assert_eq!(
            [body(CONTENT_LENGTH, "0"), body(CONTENT_LENGTH, "5"), body(TRANSFER_ENCODING, "chunked")],
            [None, Some(413), Some(413)]
        );
    }
}
