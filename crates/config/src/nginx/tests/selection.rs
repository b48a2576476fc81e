//! Which server and location answer, and where a request may be passed on.

use super::*;

fn local(port: u16) -> LocalAddress {
    LocalAddress::Ip([127, 0, 0, 1].into(), port)
}

/// Port of the address that the likeliest candidate connects to, "app" for an upstream.
fn target(http: &Http, port: u16, host: &str, path: &str) -> Vec<String> {
    let selection = http.select(&local(port), host, path).expect("it listens");
    let targets = selection.candidates();
    targets.iter().map(|candidate| candidate.pass.text.clone()).collect()
}

#[test]
fn locations_in_nginxs_order() {
    let http = http(include_str!("../../../tests/data/nginx/good/selection.conf"));
    let first = |path: &str| target(&http, 8102, "site.example", path).first().cloned();
    assert_eq!(first("/").as_deref(), Some("http://app"));
    assert_eq!(first("/index.html").as_deref(), Some("http://app/default"));
    assert_eq!(first("/documents/a.html").as_deref(), Some("http://127.0.0.1:4000"));
    assert_eq!(first("/images/1.gif").as_deref(), Some("http://127.0.0.1:4001"));
    assert_eq!(first("/documents/1.JPG?x=1").as_deref(), Some("http://127.0.0.1:4002"));
    assert_eq!(first("/api/a.json").as_deref(), Some("http://api"));
    assert_eq!(first("/api/v2/a").as_deref(), Some("http://127.0.0.1:4004"));
    assert_eq!(first("/named/x").as_deref(), Some("http://127.0.0.1:4005"));
    assert_eq!(first("/old/x").as_deref(), Some("http://127.0.0.1:4004"));
    assert_eq!(first("/if/x").as_deref(), Some("http://127.0.0.1:4006"));
}

#[test]
fn what_only_pcre_can_judge_is_flagged() {
    let http = http(include_str!("../../../tests/data/nginx/good/selection.conf"));
    let selection = http.select(&local(8102), "site.example", "/documents/x").expect("it listens");
    assert!(!selection.is_certain());
    assert_eq!(selection.locations_possible.len(), 1);
    let candidates = selection.candidates();
    assert_eq!(candidates[0].via, []);
    assert!(matches!(candidates[1].via[..], [Step::MayMatch(_)]));
    let exact = http.select(&local(8102), "site.example", "/").expect("it listens");
    assert!(exact.is_certain());
}

#[test]
fn servers_by_name_and_default() {
    let http = http(include_str!("../../../tests/data/nginx/good/listens.conf"));
    let line = |port: u16, host: &str| http.select(&local(port), host, "/").map(|selection| selection.server.place.line);
    for (host, expected) in
        [("a", 3), ("b", 4), ("x.b.example", 4), ("c.example", 4), ("d.anything", 4), ("e12", 4), ("", 4), ("other", 3), ("A:8090", 3)]
    {
        assert_eq!(line(8090, host), Some(expected), "{host}");
    }
    assert_eq!(line(8091, "f"), Some(5));
    assert_eq!(line(8093, "x"), Some(7), "localhost is this machine");
    assert_eq!(line(8099, "x"), Some(9), "an IPv6 wildcard with ipv6only=off takes IPv4");
    assert_eq!(line(9, "x"), None);
    let v6 = http.select(&LocalAddress::Ip("::1".parse().expect("an address"), 8091), "x", "/").expect("it listens");
    assert_eq!(v6.socket.address.to_string(), "[::]:8091");
    let unix = http.select(&LocalAddress::Unix("nginx.sock".to_owned()), "x", "/").expect("it listens");
    assert_eq!(unix.server.place.line, 7);
}

#[test]
fn php_behind_try_files_and_index() {
    let http = http(include_str!("../../../tests/data/nginx/good/wordpress.conf"));
    let selection = http.select(&local(8080), "domain.tld", "/a-post/?p=1").expect("it listens");
    assert_eq!(selection.location.and_then(Location::path), Some("/"));
    let candidates = selection.candidates();
    assert_eq!(candidates.len(), 1, "{candidates:?}");
    assert_eq!(candidates[0].pass.text, "php");
    assert!(matches!(&candidates[0].via[..], [Step::TryFiles(_, to)] if to == "/index.php?$args"));
    assert_eq!(target(&http, 8080, "domain.tld", "/x.php"), ["php"]);
    assert_eq!(target(&http, 8080, "domain.tld", "/x.css"), [] as [&str; 0]);
}

#[test]
fn debian_serves_files_and_php() {
    let nginx = Nginx::of(&debian(), Version(1, 22, 1));
    let http = nginx.http.expect("http");
    assert_eq!(target(&http, 80, "x", "/index.php"), ["unix:/run/php/php8.2-fpm.sock"]);
    assert_eq!(target(&http, 80, "x", "/"), [] as [&str; 0], "no index.php is configured");
    assert_eq!(target(&http, 80, "www.shop.example.com", "/"), ["http://shop"]);
}

#[test]
fn redirects_in_a_circle_end() {
    let text = "http { server { location / { try_files $uri /a; } location /a { rewrite ^ /b last; } location /b { rewrite . /a last; error_page 404 @x; }
        location @x { try_files /n @x; proxy_pass http://127.0.0.1:1; } } }";
    let http = http(text);
    assert_eq!(target(&http, 80, "x", "/q"), ["http://127.0.0.1:1"]);
}
