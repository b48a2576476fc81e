//! `chokepoint tcp`: what the kernel reports about a connection opened for this verb, or about the existing connections of the host.

mod connection;
pub(super) mod cycles;
pub(super) mod edge_filter;
mod live;
mod local_end;
mod sender;
mod text;
mod watch;

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_sources::{read_congestion_control, read_tcp_info};

use crate::Usage;
use crate::args::Tcp;
use crate::run::listeners;
use crate::run::settings;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::leaving::Leaving;
use crate::terminal::output;
use connection::{Answer, Connection};

/// An answer is read up to this size, bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Opens a connection, sends the request of `--get`, and prints what the kernel reports.
pub(crate) fn run(args: &Tcp, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let leaving = Leaving::hold_while_preparing(interrupt);
    if args.live {
        return live::run(args, leaving, words, interrupt);
    }
    if args.edge.is_some() || args.duration.is_some() {
        return Err(Usage("--edge and -z need --live".to_owned()).into());
    }
    let target =
        args.target.as_deref().ok_or_else(|| Usage("the server to connect to is missing: give HOST:PORT, or --live".to_owned()))?;
    let timeout = settings::duration(&args.timeout).map_err(|error| Usage(error.to_string()))?;
    if timeout.is_zero() {
        return Err(Usage("--timeout must be longer than 0".to_owned()).into());
    }
    if let Some(path) = &args.get
        && (!path.starts_with('/') || path.chars().any(|character| character.is_control() || character == ' '))
    {
        return Err(Usage(format!("--get {path:?} is not a path: a path begins with / and has no spaces")).into());
    }
    let mut stream = connect(target, timeout)?;
    if args.watch {
        drop(leaving);
        let request = args.get.as_deref().map(|path| request(path, target));
        return watch::run(args, stream, request, timeout, words, interrupt);
    }
    let read = |stream: &TcpStream| read_tcp_info(stream).context("TCP_INFO cannot be read");
    let mut connection = Connection {
        local: stream.local_addr()?,
        peer: stream.peer_addr()?,
        control: read_congestion_control(&stream).unwrap_or_else(|_| "?".to_owned()),
        info: read(&stream)?,
        answer: None,
    };
    if let Some(path) = &args.get {
        let begin = Instant::now();
        let (bytes, ended) = fetch(&mut stream, path, target, timeout)?;
        connection.answer = Some(Answer { bytes, time: begin.elapsed(), ended, info: read(&stream)? });
    }
    if args.json {
        output::print_json(&format!("{:#}\n", connection.json(words)))?;
    } else {
        output::print_painted(&text::render(&connection, &output::style(), words))?;
    }
    Ok(true)
}

fn connect(target: &str, timeout: Duration) -> Result<TcpStream> {
    let Ok(addresses) = target.to_socket_addrs() else {
        if target.rsplit_once(':').is_none_or(|(host, port)| host.is_empty() || port.parse::<u16>().is_err()) {
            return Err(Usage(format!("\"{target}\" is not HOST:PORT: write 127.0.0.1:80, or [::1]:80 for IPv6")).into());
        }
        bail!("the name in {target} cannot be resolved: check the name, or give an address");
    };
    let mut last = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))?;
                return Ok(stream);
            }
            Err(error) => last = Some((address, error)),
        }
    }
    let Some((address, error)) = last else { bail!("cannot connect to {target}: the name has no address") };
    let listening = Some(address).filter(|_| error.kind() == ErrorKind::ConnectionRefused).and_then(listeners::of_this_host);
    match listening {
        Some(named) => bail!("cannot connect to {target}: {error} (TCP listeners here: {named})"),
        None => bail!("cannot connect to {target}: {error}"),
    }
}

fn request(path: &str, host: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: chokepoint\r\nConnection: close\r\n\r\n")
}

/// Sends a request and reads its answer. Returns its bytes, and true if the peer closed within the bounds.
fn fetch(stream: &mut TcpStream, path: &str, host: &str, timeout: Duration) -> Result<(u64, bool)> {
    stream.write_all(request(path, host).as_bytes()).context("the request cannot be sent")?;
    let (mut bytes, mut buffer, begin) = (0_u64, vec![0_u8; 64 << 10], Instant::now());
    while bytes < ANSWER_BYTES_MAX && begin.elapsed() < timeout {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok((bytes, true)),
            Ok(read) => bytes += read as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(error) => return Err(error).context("the response cannot be read"),
        }
    }
    if bytes == 0 {
        bail!("no response within {timeout:?}: wait longer with -t, or see what requests wait for with `chokepoint where`");
    }
    Ok((bytes, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_make_no_sense_are_refused() {
        for target in ["", "localhost", ":80", "127.0.0.1:99999", "127.0.0.1:http x"] {
            assert!(connect(target, Duration::from_secs(1)).unwrap_err().is::<Usage>(), "{target}");
        }
    }

    mod live {
        use std::net::TcpListener;

        use super::*;

        #[test]
        fn where_a_port_is_closed_the_listeners_are_named() {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
            let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port is free");
            let error = connect(&closed.to_string(), Duration::from_secs(5)).expect_err("nothing listens there").to_string();
            assert!(error.contains("refused") && error.contains(" (TCP listeners here: port "), "{error}");
            drop(listener);
        }
    }
}
