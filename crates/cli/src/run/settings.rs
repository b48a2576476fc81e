//! Parses the values of flags: URLs, durations, statuses, objectives and core lists.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use chokepoint_load::{Address, Protocol};
use chokepoint_model::observation::Request;
use chokepoint_model::quantity::{split_unit, unit_ns};
use chokepoint_model::url::without_values;

use crate::run::route::Route;

/// A target, parsed and resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) scheme: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) path_and_query: String,
    pub(crate) addresses: Vec<IpAddr>,
    /// The port to connect to; it differs from that of the URL with `--connect-to`.
    pub(crate) connect_port: u16,
    /// The unix socket, in place of addresses and a port: its name as given, and its resolved path if that differs.
    pub(crate) unix: Vec<String>,
}

/// The time now, seconds since 1970; nothing if the clock is set before that.
fn started_s() -> Option<i64> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

impl Target {
    /// Parses a URL. "HOST[:PORT][/PATH]" without a scheme is http. A unix socket has no host: "http+unix:SOCKET:/PATH", as in the configuration of nginx.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Self::parse_routed(text, &Route::default())
    }

    /// [`Self::parse`], with other addresses than the resolver's where the route has some.
    pub(crate) fn parse_routed(text: &str, route: &Route) -> Result<Self> {
        let target = match text.split_once(':') {
            Some((scheme @ ("http+unix" | "fcgi+unix"), rest)) => Self::parse_unix(text, scheme, rest)?,
            _ => Self::parse_tcp(text, route)?,
        };
        if target.is_fastcgi() && target.path_and_query.split('?').next() == Some("/") {
            bail!("\"{}\" names no script: give its file, for example fcgi://127.0.0.1:9000/srv/app/index.php", without_values(text));
        }
        Ok(target)
    }

    fn parse_unix(text: &str, scheme: &str, rest: &str) -> Result<Self> {
        let example = format!("write {scheme}:/run/app.sock:/path, or {scheme}:@name:/path for an abstract name");
        // "///path" is a URL without a host. After two slashes there would be a host.
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let without_fragment = rest.split('#').next().unwrap_or(rest);
        let (name, path) = without_fragment.split_once(":/").unwrap_or((without_fragment, ""));
        if !name.starts_with(['/', '@']) {
            bail!("\"{}\" does not give the whole path of a unix socket: {example}", without_values(text));
        }
        let address = Address::unix(name).with_context(|| format!("\"{name}\" is not a unix socket: {example}"))?;
        let path_and_query = format!("/{path}");
        path_and_query
            .parse::<http::uri::PathAndQuery>()
            .with_context(|| format!("\"{}\" is not a path", without_values(&path_and_query)))?;
        let mut unix = vec![name.to_owned()];
        if let Address::Unix(address) = &address
            && let Some(led_to) = address.as_pathname().and_then(|path| path.canonicalize().ok())
        {
            unix.push(led_to.to_string_lossy().into_owned());
        }
        unix.dedup();
        let (url, host) = (format!("{scheme}:{rest}"), "localhost".to_owned());
        Ok(Self { url, scheme: scheme.to_owned(), host, port: 0, path_and_query, addresses: Vec::new(), connect_port: 0, unix })
    }

    fn parse_tcp(text: &str, route: &Route) -> Result<Self> {
        let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", text));
        let scheme = scheme.to_owned();
        let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
        if authority.is_empty() {
            bail!("\"{}\" has no host: give a URL like http://127.0.0.1/", without_values(text));
        }
        let without_fragment = url.split('#').next().unwrap_or(&url);
        let uri: http::Uri = without_fragment.parse().with_context(|| format!("\"{}\" is not a URL", without_values(text)))?;
        let default_port = match scheme.as_str() {
            "http" => 80,
            "https" => 443,
            // FastCGI has no assigned port. The documentation of the servers uses this one.
            "fcgi" => 9000,
            other => bail!("scheme \"{other}\" is not supported: give a URL like http://127.0.0.1/"),
        };
        let authority = uri.authority().with_context(|| format!("\"{}\" has no host", without_values(text)))?;
        if authority.as_str().contains('@') {
            bail!("user information in the URL is not sent: give it as a header (-H 'Authorization: ...')");
        }
        let host = authority.host().to_owned();
        let port = match authority.port() {
            Some(port) => port.as_str().parse().with_context(|| format!("\"{port}\" is not a port (1 to 65535)"))?,
            None if authority.as_str().ends_with(':') || authority.as_str().len() == host.len() => default_port,
            None => bail!("\"{}\" is not a port (1 to 65535)", authority.as_str().rsplit(':').next().unwrap_or_default()),
        };
        if port == 0 {
            bail!("0 is not a port (1 to 65535)");
        }
        let path_and_query = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let (peer, connect_port) = route.peer(&host, port);
        let addresses = match route.addresses(&peer, connect_port) {
            Some(addresses) => addresses.to_vec(),
            None => resolve(&peer, connect_port)?,
        };
        Ok(Self { url, scheme, host, port, path_and_query, addresses, connect_port, unix: Vec::new() })
    }

    /// The request of the report; the caller completes it.
    pub(crate) fn request(&self) -> Request {
        let as_given = Request {
            url: self.url.clone(),
            scheme: self.scheme.clone(),
            host: self.host.clone(),
            port: self.port,
            addresses: self.addresses.clone(),
            unix: self.unix.clone(),
            started_s: started_s(),
            by_uid: Some(rustix::process::geteuid().as_raw()),
            tool: Some(env!("CARGO_PKG_VERSION").to_owned()),
            ..Request::default()
        };
        // The server is found by the port of the connection, and is told that of the URL.
        match self.connect_port == self.port {
            true => as_given,
            false => Request { sent_host: Some(as_given.host_header()), port: self.connect_port, ..as_given },
        }
    }

    /// Where to connect.
    pub(crate) fn address(&self) -> Result<Address> {
        match self.unix.first() {
            Some(name) => Ok(Address::unix(name)?),
            None => Ok(SocketAddr::new(*self.addresses.first().context("the target has no address")?, self.connect_port).into()),
        }
    }

    /// True for a FastCGI target.
    pub(crate) fn is_fastcgi(&self) -> bool {
        self.scheme.starts_with("fcgi")
    }

    /// The protocol of the target. `params`: parameters of FastCGI, refused for HTTP.
    pub(crate) fn protocol(&self, params: Vec<(String, String)>) -> Result<Protocol> {
        match self.is_fastcgi() {
            true => Ok(Protocol::FastCgi { params }),
            false if params.is_empty() => Ok(Protocol::Http),
            false => bail!("--fcgi-param needs a fcgi URL, and {} is not one", without_values(&self.url)),
        }
    }
}

fn resolve(host: &str, port: u16) -> Result<Vec<IpAddr>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(vec![ip]);
    }
    let found = (bare, port)
        .to_socket_addrs()
        .with_context(|| format!("host \"{host}\" cannot be resolved: check the name, or give its address"))?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found.map(|address| address.ip()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        bail!("host \"{host}\" has no address");
    }
    Ok(addresses)
}

/// "10s", "500ms", "2m", "1.5s", "250us"; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration> {
    let text = text.trim();
    let wrong = || format!("\"{text}\" is not a time: write 10s, 500ms or 2m");
    let (number, unit) = split_unit(text).with_context(wrong)?;
    let unit_ns = match unit.trim() {
        "" => 1e9,
        "h" => 3600e9,
        unit => unit_ns(unit).with_context(wrong)?,
    };
    let seconds = number * unit_ns / 1e9;
    if !(1e-6..=7.0 * 86400.0).contains(&seconds) {
        bail!("\"{text}\" is out of range: at least 1us and at most 7 days");
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// "2xx,3xx", "200,301-302" as ranges that include both ends.
pub(crate) fn statuses(text: &str) -> Result<Vec<(u16, u16)>> {
    let part = |part: &str| -> Option<(u16, u16)> {
        let part = part.trim();
        if let Some(class) = part.strip_suffix("xx") {
            let class: u16 = class.parse().ok().filter(|class| (1..=9).contains(class))?;
            return Some((class * 100, class * 100 + 99));
        }
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        (low <= high && (100..=999).contains(&low) && high <= 999).then_some((low, high))
    };
    text.split(',').map(|one| part(one).with_context(|| format!("\"{one}\" is not a status: write 2xx, 200 or 200-299"))).collect()
}

/// "p99<1s" or "1s" as microseconds.
pub(crate) fn objective(text: &str) -> Result<u64> {
    let wrong = || format!("\"{text}\" is not an objective: write p99<1s, or 1s");
    let limit = match text.trim().strip_prefix("p99").map(str::trim_start) {
        Some(rest) => rest.strip_prefix('<').with_context(wrong)?.trim_start_matches('='),
        None => text,
    };
    let limit = duration(limit).with_context(wrong)?;
    Ok(u64::try_from(limit.as_micros()).unwrap_or(u64::MAX))
}

/// "0,2-3" as core numbers.
pub(crate) fn cores(text: &str) -> Result<Vec<u32>> {
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let range = low.trim().parse::<u32>().ok().zip(high.trim().parse::<u32>().ok()).filter(|(low, high)| low <= high && *high < 8192);
        let (low, high) = range.with_context(|| format!("\"{part}\" is not a core or a range of cores: write 0 or 0,2-3"))?;
        cores.extend(low..=high);
    }
    Ok(cores)
}

/// "NAME=VALUE" as its two parts.
pub(crate) fn param(text: &str) -> Result<(String, String)> {
    let (name, value) = text.split_once('=').with_context(|| format!("\"{text}\" is not a parameter: write NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// "Name: value" as its two parts.
pub(crate) fn header(text: &str) -> Result<(String, String)> {
    let (name, value) = text.split_once(':').with_context(|| format!("\"{text}\" is not a header: write 'Name: value'"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_or_refused() {
        let target = Target::parse("http://127.0.0.1:8080/a?b=c#d").unwrap();
        assert_eq!(
            (target.port, target.path_and_query.as_str(), target.request().host_header().as_str()),
            (8080, "/a?b=c", "127.0.0.1:8080")
        );
        let target = Target::parse("[::1]").unwrap();
        assert_eq!((target.port, target.request().host_header().as_str()), (80, "[::1]"));
        assert_eq!(target.addresses, ["::1".parse::<IpAddr>().unwrap()]);
        assert_eq!(Target::parse("https://127.0.0.1").unwrap().port, 443);
        for wrong in [
            "http://",
            "http:///x",
            "",
            "ftp://127.0.0.1/",
            "http://127.0.0.1:0/",
            "http://127.0.0.1:99999/",
            "http://u:p@127.0.0.1/",
            "http://a b/",
        ] {
            assert!(Target::parse(wrong).is_err(), "{wrong} was accepted");
        }
    }

    #[test]
    fn urls_of_fastcgi_and_unix_sockets_are_parsed_or_refused() {
        let target = Target::parse("fcgi://[::1]/srv/app/index.php?a=b").unwrap();
        assert_eq!(
            (target.port, target.path_and_query.as_str(), target.request().host_header().as_str()),
            (9000, "/srv/app/index.php?a=b", "[::1]")
        );
        assert!(matches!(target.protocol(Vec::new()), Ok(Protocol::FastCgi { .. })));
        for (text, name, path) in [
            ("http+unix:/run/a.sock", "/run/a.sock", "/"),
            ("http+unix:///run/a.sock:/b?c=http://d:/e#f", "/run/a.sock", "/b?c=http://d:/e"),
            ("http+unix:/run/a:b.sock:/", "/run/a:b.sock", "/"),
            ("fcgi+unix:@app:/x.php", "@app", "/x.php"),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!((target.unix[0].as_str(), target.path_and_query.as_str(), target.port), (name, path, 0), "{text}");
            assert_eq!(
                (target.address().unwrap().to_string(), target.request().host_header()),
                (format!("unix:{name}"), "localhost".to_owned())
            );
        }
        for wrong in [
            "http+unix:",
            "http+unix:a.sock:/",
            "http+unix:@:/",
            "http+unix://host/x",
            "fcgi+unix:/run/a.sock",
            "fcgi+unix:/run/a.sock:/?x",
            "fcgi://127.0.0.1:9000",
            "fcgi://127.0.0.1:9000/?x",
            "http+unix:/a.sock:/b c",
            &format!("http+unix:/{}:/", "x".repeat(120)),
        ] {
            assert!(Target::parse(wrong).is_err(), "{wrong} was accepted");
        }
        assert!(Target::parse("http://127.0.0.1/").unwrap().protocol(vec![("A".into(), "b".into())]).is_err());
        assert_eq!(param("A=b=c").unwrap(), ("A".to_owned(), "b=c".to_owned()));
        assert!(param("A").is_err());
    }

    #[test]
    fn a_link_to_a_socket_has_both_names() {
        let directory = tempfile::tempdir().unwrap();
        let (socket, link) = (directory.path().join("real.sock"), directory.path().join("link.sock"));
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::os::unix::fs::symlink(&socket, &link).unwrap();
        let names = |path: &std::path::Path| Target::parse(&format!("http+unix:{}:/", path.display())).unwrap().unix.len();
        assert_eq!((names(&link), names(&socket)), (2, 1));
    }

    #[test]
    fn times_statuses_objectives_and_cores_are_parsed_or_refused() {
        assert_eq!(duration("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(duration("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(duration("2").unwrap(), Duration::from_secs(2));
        assert!(["", "s", "0s", "-1s", "1y", "1e9h", "nan"].iter().all(|wrong| duration(wrong).is_err()));
        assert_eq!(statuses("2xx, 301-302").unwrap(), [(200, 299), (301, 302)]);
        assert!(["", "xx", "0xx", "99", "300-200", "2xx,"].iter().all(|wrong| statuses(wrong).is_err()));
        assert_eq!(objective("p99 < 1s").unwrap(), 1_000_000);
        assert_eq!([objective("1s").unwrap(), objective("p99<=500ms").unwrap(), objective("2").unwrap()], [1_000_000, 500_000, 2_000_000]);
        assert!(["p50<1s", "p99>1s", "p99", "fast"].iter().all(|wrong| objective(wrong).is_err()));
        assert_eq!(cores("0,2-3").unwrap(), [0, 2, 3]);
        assert!(["", "a", "3-2", "0-99999999"].iter().all(|wrong| cores(wrong).is_err()));
    }
}
