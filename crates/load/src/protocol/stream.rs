//! A connected TCP or unix socket, or one with TLS. Each call costs one branch and nothing else.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::host::address::Address;
use crate::host::bind;
use crate::protocol::tls::{Client, TlsStream};

/// A non-blocking socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream>),
}

impl Stream {
    /// Calls connect(). A unix socket is connected at once or not at all: EAGAIN means that its accept queue is full (unix(7)).
    ///
    /// `from`: the source address, if the kernel shall not choose.
    pub(crate) fn connect(address: &Address, from: Option<IpAddr>, tls: Option<&Client>) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => {
                let stream = match from {
                    Some(from) => bind::connect(from, *address)?,
                    None => TcpStream::connect(*address)?,
                };
                stream.set_nodelay(true)?;
                match tls {
                    Some(tls) => tls.connect(stream).map(Stream::Tls),
                    None => Ok(Stream::Tcp(stream)),
                }
            }
            Address::Unix(address) => UnixStream::connect_addr(address).map(Stream::Unix),
            Address::Listening { socket, .. } => Ok(Stream::Unix(UnixStream::from_std(socket.connect()?.into()))),
        }
    }

    /// Registers for read events, and for write events if `writes` is set.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token, writes: bool) -> io::Result<()> {
        let interest = if writes { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        match self {
            Stream::Tcp(stream) => registry.register(stream, token, interest),
            Stream::Unix(stream) => registry.register(stream, token, interest),
            Stream::Tls(stream) => registry.register(&mut stream.socket, token, interest),
        }
    }

    /// Registers for write events too.
    pub(crate) fn watch_writes(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self {
            Stream::Tcp(stream) => registry.reregister(stream, token, interest),
            Stream::Unix(stream) => registry.reregister(stream, token, interest),
            Stream::Tls(stream) => registry.reregister(&mut stream.socket, token, interest),
        }
    }

    #[inline(always)]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => receive(stream, buffer),
            Stream::Unix(stream) => receive(stream, buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }

    #[inline(always)]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => Ok(send(stream, bytes, SendFlags::NOSIGNAL)?),
            Stream::Unix(stream) => Ok(send(stream, bytes, SendFlags::NOSIGNAL)?),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    /// Sends what a write accepted but could not send yet.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => Ok(()),
            Stream::Tls(stream) => stream.flush(),
        }
    }

    /// The TCP socket; none for a unix socket.
    pub(crate) fn tcp(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Stream::Tcp(stream) => Some(stream.as_fd()),
            Stream::Tls(stream) => Some(stream.socket.as_fd()),
            Stream::Unix(_) => None,
        }
    }

    /// The TLS session, if any.
    pub(crate) fn tls(&mut self) -> Option<&mut TlsStream> {
        match self {
            Stream::Tls(stream) => Some(stream),
            Stream::Tcp(_) | Stream::Unix(_) => None,
        }
    }

    /// Whether a read would return something that no event announces.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, Stream::Tls(stream) if stream.has_ended())
    }
}

/// The plain system call. In a process with several threads, the C library's function also handles thread cancellation, which costs more than everything
/// that is done here with an answer.
#[inline(always)]
fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let (bytes, _) = recv(socket, buffer, RecvFlags::empty())?;
    Ok(bytes)
}
