//! A connected socket of either family, or one with TLS, behind one face: a branch at each call and nothing else.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::host::address::Address;
use crate::host::bind;
use crate::protocol::tls::{Client, TlsStream};

/// A socket that does not block.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream>),
}

impl Stream {
    /// Calls connect(). A unix socket is connected at once or not at all: EAGAIN says that its accept queue is full (unix(7)).
    ///
    /// `from`: the address to come from, where it is not the kernel's choice.
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
        }
    }

    /// Has the kernel tell of what can be read, and of what can be written where that is asked for.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token, writes: bool) -> io::Result<()> {
        let interest = if writes { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        match self {
            Stream::Tcp(stream) => registry.register(stream, token, interest),
            Stream::Unix(stream) => registry.register(stream, token, interest),
            Stream::Tls(stream) => registry.register(&mut stream.socket, token, interest),
        }
    }

    /// Has the kernel tell of what can be written, too.
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

    /// Sends what a write took and could not send yet.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => Ok(()),
            Stream::Tls(stream) => stream.flush(),
        }
    }

    /// The socket of TCP; a unix socket is none.
    pub(crate) fn tcp(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Stream::Tcp(stream) => Some(stream.as_fd()),
            Stream::Tls(stream) => Some(stream.socket.as_fd()),
            Stream::Unix(_) => None,
        }
    }

    /// The session, where there is one.
    pub(crate) fn tls(&mut self) -> Option<&mut TlsStream> {
        match self {
            Stream::Tls(stream) => Some(stream),
            Stream::Tcp(_) | Stream::Unix(_) => None,
        }
    }

    /// True where no event will tell of what a read would give.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, Stream::Tls(stream) if stream.has_ended())
    }
}

/// The system call itself: in a process of several threads the C library's has a thread's cancellation to see to, which costs more than all
/// that is done here with an answer.
#[inline(always)]
fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let (bytes, _) = recv(socket, buffer, RecvFlags::empty())?;
    Ok(bytes)
}
