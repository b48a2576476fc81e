//! A server with one thread and no parser. Everything up to an empty line is a request, and the answer is always the same. `/count` returns the number of
//! answered requests.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use anyhow::Result;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;

const KEPT: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: bare\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello";
const CLOSED: &[u8] = b"HTTP/1.1 200 OK\r\nServer: bare\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
/// Token of the listener.
const LISTENER: u64 = u64::MAX;

/// Prints its address and serves until it is killed.
pub(crate) fn run() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    // A longer queue than the standard library's, for a thousand connections at once.
    rustix::net::listen(&listener, 4096)?;
    listener.set_nonblocking(true)?;
    println!("{}", listener.local_addr()?);
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    let mut streams: HashMap<u64, TcpStream> = HashMap::new();
    let mut events = Vec::with_capacity(1024);
    let mut buffer = [0; 4096];
    let mut answered: u64 = 0;
    loop {
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), None)?;
        for event in &events {
            let token = event.data.u64();
            if token == LISTENER {
                accept(&listener, &poll, &mut streams)?;
                continue;
            }
            let Some(stream) = streams.get_mut(&token) else { continue };
            if !serve(stream, &mut buffer, &mut answered) {
                streams.remove(&token);
            }
        }
    }
}

fn accept(listener: &TcpListener, poll: &impl std::os::fd::AsFd, streams: &mut HashMap<u64, TcpStream>) -> Result<()> {
    while let Ok((stream, _)) = listener.accept() {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let token = stream.as_raw_fd() as u64;
        epoll::add(poll, &stream, epoll::EventData::new_u64(token), epoll::EventFlags::IN)?;
        streams.insert(token, stream);
    }
    Ok(())
}

/// Answers what has arrived; false if the connection is finished.
fn serve(stream: &mut TcpStream, buffer: &mut [u8], answered: &mut u64) -> bool {
    let bytes = match stream.read(buffer) {
        Ok(0) => return false,
        Ok(bytes) => &buffer[..bytes],
        Err(error) => return error.kind() == ErrorKind::WouldBlock,
    };
    if !bytes.ends_with(b"\r\n\r\n") {
        return true;
    }
    *answered += 1;
    if bytes.starts_with(b"GET /count") {
        let body = answered.to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        let _ = stream.write_all(answer.as_bytes());
        return false;
    }
    let closes = bytes.windows(17).any(|window| window.eq_ignore_ascii_case(b"connection: close"));
    stream.write_all(if closes { CLOSED } else { KEPT }).is_ok() && !closes
}
