//! The page and its events, as a browser meets them.
//!
//! Live: it listens on loopback.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use chokepoint_dashboard::{Board, Listen, Seen, Server};
use chokepoint_recorder::Sample;

use super::{Kept, get, status};

fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next()?;
    head.lines().find_map(|line| line.split_once(": ").filter(|(found, _)| found.eq_ignore_ascii_case(name))).map(|(_, value)| value)
}

#[test]
fn a_browser_gets_the_page_under_a_strict_policy() {
    let (_server, address) = super::server();
    let host = format!("Host: {address}\r\n");
    let page = get(address, "/", &format!("{host}Accept: text/html\r\n"));
    assert_eq!((status(&page), header(&page, "content-type")), ("200", Some("text/html; charset=utf-8")));
    let policy = header(&page, "content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{policy}");
    assert!(page.contains("<div id=\"page\">") && header(&page, "content-encoding").is_none());
    assert_eq!(page.matches("content-security-policy").count(), 1);
    for file in ["/page.js", "/page.css"] {
        let packed = get(address, file, &format!("{host}Accept-Encoding: gzip\r\n"));
        assert_eq!((status(&packed), header(&packed, "content-encoding")), ("200", Some("gzip")), "{file}");
    }
    let text = get(address, "/", &host);
    assert!(text.contains("/metrics") && header(&text, "content-security-policy").unwrap().starts_with("default-src 'none'; frame"));
    // The page of another site, and a name that another site gave this address.
    assert_eq!(status(&get(address, "/page.js", "Host: evil.example\r\n")), "421");
    assert_eq!(status(&get(address, "/api/v1/live", &format!("{host}Origin: http://evil.example\r\n"))), "403");
}

/// Opens the events, and reads up to a line that begins so.
fn follow(address: std::net::SocketAddr) -> BufReader<TcpStream> {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(connection, "GET /api/v1/live HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    BufReader::new(connection)
}

fn until(reader: &mut BufReader<TcpStream>, begins: &str) -> String {
    let mut line = String::new();
    while !line.starts_with(begins) {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "it ended before a line with {begins}");
    }
    line.trim_end().to_owned()
}

#[test]
fn a_page_hears_how_old_the_newest_second_is_though_none_comes_any_more() {
    let board = Arc::new(Board::default());
    let server = Server::start(&Listen::Tcp("127.0.0.1:0".parse().unwrap()), None, Arc::clone(&board), Arc::new(Kept::default())).unwrap();
    let sample = Sample { at_s: 20, span_s: 1, ..Sample::default() };
    board.see(Seen { sample, age: Some(Duration::from_secs(8)), ..Seen::default() });
    let mut page = follow(server.address().unwrap());
    // The first with the second, the others without any.
    let mut ages = Vec::new();
    for _ in 0..3 {
        until(&mut page, "event: age");
        let age = until(&mut page, "data: ");
        let age: serde_json::Value = serde_json::from_str(age.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!((&age["newest_s"], &age["stale"]), (&12.into(), &true.into()), "{age}");
        ages.push(age["age_s"].as_f64().unwrap());
    }
    assert!(ages[0] >= 8.0 && ages.windows(2).all(|pair| pair[1] > pair[0]), "{ages:?}");
}

#[test]
fn each_second_comes_as_events_and_too_many_pages_are_refused() {
    let board = Arc::new(Board::default());
    let server = Server::start(&Listen::Tcp("127.0.0.1:0".parse().unwrap()), None, Arc::clone(&board), Arc::new(Kept::default())).unwrap();
    let address = server.address().unwrap();
    let mut first = follow(address);
    assert_eq!(until(&mut first, "HTTP/1.1"), "HTTP/1.1 200 OK");
    assert_eq!(until(&mut first, "retry: "), "retry: 2000");
    let second =
        |at_s| Seen { sample: Sample { at_s, span_s: 1, ..Sample::default() }, said: format!("{{\"at_s\":{at_s}}}"), ..Seen::default() };
    for at_s in 1..4 {
        board.see(second(at_s));
        assert_eq!(until(&mut first, "data: {\"at_s\""), format!("data: {{\"at_s\":{at_s},\"span_s\":1,\"targets\":[]}}"));
        assert_eq!(until(&mut first, "data: {\"at_s\""), format!("data: {{\"at_s\":{at_s}}}"));
    }
    let mut others: Vec<_> = (0..7).map(|_| follow(address)).collect();
    for other in &mut others {
        assert_eq!(until(other, "HTTP/1.1"), "HTTP/1.1 200 OK");
    }
    assert_eq!(until(&mut follow(address), "HTTP/1.1"), "HTTP/1.1 503 Service Unavailable");
    // A page that is closed makes room, at the latest when the next event finds it gone.
    drop(others);
    let is_open = |at_s: u64| {
        board.see(second(at_s));
        until(&mut follow(address), "HTTP/1.1") == "HTTP/1.1 200 OK"
    };
    assert!((10..400).any(|at_s| {
        std::thread::sleep(Duration::from_millis(50));
        is_open(at_s)
    }));
}
