//! Many clients at once: those who do not read, who hold connections, and who follow the events. The others are answered all the same.
//!
//! Live: it listens on loopback.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chokepoint_dashboard::{Board, Listen, Server};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use crate::{Kept, SAMPLE_BYTES, SAMPLES, Samples, get, status};

/// A server for which the clients of 127.0.0.N are user N; root are those of 127.0.0.1.
fn server() -> (Server, SocketAddr, String) {
    let users = |client: SocketAddr, _: SocketAddr| match client.ip() {
        IpAddr::V4(address) => Some(u32::from(address.octets()[3]) - 1),
        IpAddr::V6(_) => None,
    };
    let listen = Listen::Tcp("127.0.0.1:0".parse().unwrap());
    let server = Server::start_among(&listen, None, Some(Arc::new(users)), Arc::new(Board::default()), Arc::new(Kept::default())).unwrap();
    let address = server.address().unwrap();
    let token = server.token().unwrap_or_default().to_owned();
    (server, address, token)
}

fn connected(user: u8, address: SocketAddr) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from((Ipv4Addr::new(127, 0, 0, user + 1), 0))).unwrap();
    connect(&socket, &address).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(4))).unwrap();
    stream
}

fn ask(stream: &mut TcpStream, path: &str, address: SocketAddr, token: &str) {
    // Whoever is turned away may be so before the request is written.
    let _ = stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n").as_bytes());
}

/// The status of what is answered first; nothing if the connection was closed, or there is no answer.
fn first_status(stream: &mut TcpStream) -> String {
    let mut head = [0; 64];
    let length = stream.read(&mut head).unwrap_or(0);
    status(&String::from_utf8_lossy(&head[..length])).to_owned()
}

#[test]
fn for_clients_that_do_not_read_little_is_read() {
    const READERS: usize = 32;
    let samples = Arc::new(Samples::default());
    let kept = Arc::new(Kept { samples: Some(Arc::clone(&samples)) });
    let listen = Listen::Tcp("127.0.0.1:0".parse().unwrap());
    let server = Server::start(&listen, None, Arc::new(Board::default()), kept).unwrap();
    let address = server.address().unwrap();
    let mut readers: Vec<TcpStream> = (0..READERS).map(|_| connected(0, address)).collect();
    readers.iter_mut().for_each(|reader| ask(reader, "/api/v1/series", address, ""));
    // Until each was answered, and nothing more is read for any.
    readers.iter_mut().for_each(|reader| assert_eq!(first_status(reader), "200"));
    let (mut given, begin) = (0, Instant::now());
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let now = samples.given.load(Ordering::SeqCst);
        if now == given && now > 0 || begin.elapsed() > Duration::from_secs(9) {
            break;
        }
        given = now;
    }
    let (given, all) = (given * SAMPLE_BYTES, READERS * usize::try_from(SAMPLES).unwrap() * SAMPLE_BYTES);
    // The kernel holds some of it: 64 KiB here and 128 KiB there for each, which it may count twice (socket(7)).
    assert!(given < READERS * (512 << 10) && given < all / 10, "{given} of {all} bytes");
    // Somebody who reads gets all of it, and what everybody may have is answered.
    assert_eq!(status(&get(address, "/metrics", &format!("Host: {address}\r\n"))), "200");
    drop(readers);
    // Their places are free once the server has seen their ends.
    let mut whole = get(address, "/api/v1/series", &format!("Host: {address}\r\n"));
    while status(&whole) == "503" && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
        whole = get(address, "/api/v1/series", &format!("Host: {address}\r\n"));
    }
    assert_eq!(status(&whole), "200");
    let text = |chunked: &str| -> String {
        let mut rest = chunked.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let mut text = String::new();
        while let Some((length, chunk)) = rest.split_once("\r\n") {
            let Some(piece) = usize::from_str_radix(length, 16).ok().and_then(|length| chunk.get(..length)) else { break };
            text.push_str(piece);
            rest = chunk[piece.len()..].trim_start_matches("\r\n");
        }
        text
    };
    let document: serde_json::Value = serde_json::from_str(&text(&whole)).unwrap();
    let numbers: Vec<i64> = document["samples"].as_array().unwrap().iter().filter_map(|sample| sample["number"].as_i64()).collect();
    assert_eq!(numbers, (0..SAMPLES).collect::<Vec<_>>());
}

#[test]
fn one_user_leaves_places_to_follow_the_events() {
    let (_server, address, token) = server();
    let follow = |user: u8| {
        let mut stream = connected(user, address);
        ask(&mut stream, "/api/v1/live", address, &token);
        let status = first_status(&mut stream);
        (stream, status)
    };
    let crowd: Vec<(TcpStream, String)> = (0..9).map(|_| follow(33)).collect();
    let statuses: Vec<&str> = crowd.iter().map(|(_, status)| status.as_str()).collect();
    assert_eq!(statuses, ["200", "200", "200", "200", "503", "503", "503", "503", "503"]);
    assert_eq!([follow(34).1, follow(0).1], ["200", "200"], "another user, and root");
    drop(crowd);
}

#[test]
fn metrics_have_places_of_their_own() {
    let (_server, address, token) = server();
    // Six users take all usual places: each follows events, so that the connection lasts, or sends nothing yet.
    let crowd: Vec<TcpStream> = (10..16).flat_map(|user| (0..14).map(move |_| connected(user, address))).collect();
    std::thread::sleep(Duration::from_millis(300));
    let answer = |path: &str| {
        let mut stream = connected(99, address);
        ask(&mut stream, path, address, &token);
        first_status(&mut stream)
    };
    assert_eq!(["/metrics", "/healthz", "/api/v1/about"].map(answer), ["200", "200", "503"]);
    // Who has as many connections as one user may have is told so, even for what all may have.
    let mut more = connected(10, address);
    ask(&mut more, "/metrics", address, &token);
    assert_eq!(first_status(&mut more), "503");
    let mut root = connected(0, address);
    ask(&mut root, "/api/v1/about", address, "");
    assert_eq!(first_status(&mut root), "200", "root has places of its own");
    drop(crowd);
}
