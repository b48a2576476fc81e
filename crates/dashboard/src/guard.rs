//! Which requests are answered. A page of another site that the user's browser shows may send requests to loopback, and may give a name of its own that address (DNS
//! rebinding). So the Host must be this server's, and a foreign Origin is refused (RFC 9110, 7.2; RFC 6454).

use hyper::header::{HOST, ORIGIN};
use hyper::{HeaderMap, Method, StatusCode};

/// The names of this host's loopback.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Why a request is refused; nothing if it is answered. `port`: the one that is listened at; none for a unix socket, which no page can reach.
pub(crate) fn refusal(method: &Method, headers: &HeaderMap, port: Option<u16>) -> Option<(StatusCode, &'static str)> {
    if ![Method::GET, Method::HEAD].contains(method) {
        return Some((StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered"));
    }
    let port = port?;
    let is_own = |authority: &str| {
        let (name, given) = match authority.rsplit_once(':') {
            Some((name, given)) if !given.ends_with(']') => (name, given.parse().ok()),
            _ => (authority, Some(80)),
        };
        NAMES.contains(&name) && given == Some(port)
    };
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    if hosts.next().is_some() || !host.is_some_and(is_own) {
        return Some((StatusCode::MISDIRECTED_REQUEST, "the Host is not this server's"));
    }
    let is_foreign =
        |origin: &hyper::header::HeaderValue| !origin.to_str().is_ok_and(|origin| origin.strip_prefix("http://").is_some_and(is_own));
    headers.get_all(ORIGIN).iter().any(is_foreign).then_some((StatusCode::FORBIDDEN, "the Origin is another site"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(method: Method, headers: &[(hyper::header::HeaderName, &str)], port: Option<u16>) -> Option<u16> {
        let headers: HeaderMap = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        refusal(&method, &headers, port).map(|(status, _)| status.as_u16())
    }

    #[test]
    fn only_this_servers_names_are_answered() {
        for host in ["127.0.0.1:9464", "localhost:9464", "[::1]:9464"] {
            assert_eq!(refused(Method::GET, &[(HOST, host)], Some(9464)), None, "{host}");
        }
        for host in ["evil.example:9464", "127.0.0.1", "localhost:80", "127.0.0.1:9464.evil.example", "", "[::1]"] {
            assert_eq!(refused(Method::GET, &[(HOST, host)], Some(9464)), Some(421), "{host}");
        }
        assert_eq!(refused(Method::GET, &[], Some(9464)), Some(421));
        assert_eq!(refused(Method::GET, &[(HOST, "localhost")], Some(80)), None);
        assert_eq!(refused(Method::POST, &[(HOST, "localhost:9464")], Some(9464)), Some(405));
        let from = |origin| refused(Method::GET, &[(HOST, "localhost:9464"), (ORIGIN, origin)], Some(9464));
        assert_eq!([from("http://localhost:9464"), from("http://evil.example"), from("null")], [None, Some(403), Some(403)]);
        assert_eq!(refused(Method::GET, &[(HOST, "anything")], None), None, "a unix socket");
    }
}
