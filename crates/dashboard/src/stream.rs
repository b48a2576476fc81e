//! A connection, whatever carries it.

use rustix::fd::AsFd;
use tokio::io::{AsyncRead, AsyncWrite};

/// A connection of any kind: TCP, TLS, a unix socket.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection as it was accepted, before a TLS handshake.
pub(crate) trait Accepted: Stream + AsFd {}

impl<T: Stream + AsFd> Accepted for T {}
