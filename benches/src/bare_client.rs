//! A client with one thread and no parser. It counts the bytes of the first answer and assumes the same length for the others. It shows the maximum that a
//! client can reach with these system calls.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

/// One connection, and how much of its answer has arrived.
struct Connection {
    stream: TcpStream,
    received: usize,
}

/// Loads the server for this long and prints the number of answers.
pub(crate) fn run(address: SocketAddr, connections: u32, time: Duration, close: bool) -> Result<()> {
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\n{}\r\n", if close { "Connection: close\r\n" } else { "" });
    let answer_bytes = learn(address, request.as_bytes())?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let open = |token: u64| -> Result<Connection> {
        let mut stream = connected(address)?;
        epoll::add(&poll, &stream, epoll::EventData::new_u64(token), epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        // On loopback the connection is established when connect() returns.
        stream.write_all(request.as_bytes())?;
        Ok(Connection { stream, received: 0 })
    };
    let mut all = (0..u64::from(connections)).map(open).collect::<Result<Vec<_>>>()?;
    let end = Instant::now() + time;
    let (mut answers, mut buffer, mut events) = (0u64, [0; 65536], Vec::with_capacity(1024));
    while Instant::now() < end {
        events.clear();
        epoll::wait(&poll, spare_capacity(&mut events), Some(&rustix::time::Timespec { tv_sec: 1, tv_nsec: 0 }))?;
        for event in &events {
            let token = event.data.u64();
            let connection = &mut all[token as usize];
            let bytes = match connection.stream.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                read => read?,
            };
            connection.received += bytes;
            if close {
                // The server closes first, so that its side has the port in TIME_WAIT.
                if bytes == 0 || (connection.received >= answer_bytes && connection.stream.read(&mut buffer).is_ok_and(|bytes| bytes == 0))
                {
                    ensure!(connection.received == answer_bytes, "an answer of {} bytes", connection.received);
                    answers += 1;
                    *connection = open(token)?;
                }
            } else if connection.received >= answer_bytes {
                answers += 1;
                connection.received = 0;
                connection.stream.write_all(request.as_bytes())?;
            }
        }
    }
    println!("{answers}");
    Ok(())
}

fn connected(address: SocketAddr) -> Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket: OwnedFd = socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    sockopt::set_tcp_nodelay(socket.as_fd(), true)?;
    match connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}

/// Bytes of an answer.
fn learn(address: SocketAddr, request: &[u8]) -> Result<usize> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let bytes = stream.read(&mut buffer)?;
        ensure!(bytes > 0, "the server closed within its answer");
        answer.extend_from_slice(&buffer[..bytes]);
        let Some(head) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&answer[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")).context("an answer without a length")?;
        return Ok(head + 4 + length.trim().parse::<usize>()?);
    }
}
