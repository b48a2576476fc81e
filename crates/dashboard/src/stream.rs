//! A connection, whatever carries it.

use tokio::io::{AsyncRead, AsyncWrite};

/// A connection of any kind: TCP, TLS, a unix socket.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}
