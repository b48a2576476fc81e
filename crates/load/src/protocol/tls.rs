//! TLS on a connection (RFC 8446, RFC 5246, with rustls): the handshake, and non-blocking reads and writes.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use chokepoint_model::load::LoadExchange;
use mio::net::TcpStream;
use rustls::client::{ClientConnection, Resumption};
use rustls::pki_types::ServerName;
use rustls::{CipherSuite, ClientConfig, HandshakeKind};

use crate::engine::exchanges::{Exchange, Exchanges};
use crate::protocol::certificates;

/// How to use TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The name that the server's certificate must have: a host name or an IP address. It is also sent to the server (server name indication).
    pub server_name: String,
    /// Whom to trust.
    pub trust: Trust,
    /// Resumes sessions if the server allows it.
    pub resume: bool,
}

/// Which certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those signed by the system's authorities.
    System,
    /// Those signed by these authorities, given as certificates in PEM.
    Authorities(Vec<u8>),
    /// All: nothing is verified.
    Anybody,
}

/// What is prepared once for a load.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    exchanges: Option<Exchanges>,
}

impl Client {
    /// `exchanges`: where the connections tell whose turn it is. The error says what is wrong with the name or the authorities.
    pub(crate) fn new(tls: &Tls, exchanges: Option<Exchanges>) -> Result<Self, String> {
        let bare = tls.server_name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(bare).map_err(|_| format!("{:?} is not the name of a server", tls.server_name))?;
        let mut provider = rustls::crypto::ring::default_provider();
        // First, as browsers have it: servers that leave the choice to the client (nginx by default) do what they do for most clients.
        provider.cipher_suites.sort_by_key(|one| !is_aes_128(one.suite()));
        let provider = Arc::new(provider);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?;
        let verifier = certificates::verifier(&tls.trust, provider)?;
        let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if !tls.resume {
            config.resumption = Resumption::disabled();
        }
        Ok(Client { config: Arc::new(config), name, exchanges })
    }

    /// Starts TLS on a socket for which connect() was called.
    pub(crate) fn connect(&self, socket: TcpStream) -> io::Result<Box<TlsStream>> {
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone()).map_err(io::Error::other)?;
        let exchange = self.exchanges.as_ref().zip(socket.local_addr().ok()).map(|(all, local)| all.open(local.port()));
        Ok(Box::new(TlsStream {
            exchange,
            socket,
            session,
            is_connected: false,
            connected_ns: 0,
            has_ended: false,
            is_peer_closed: false,
            failed: None,
        }))
    }
}

fn is_aes_128(suite: CipherSuite) -> bool {
    matches!(
        suite,
        CipherSuite::TLS13_AES_128_GCM_SHA256
            | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
            | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
    )
}

/// A connection with its session.
#[derive(Debug)]
pub(crate) struct TlsStream {
    /// Whose turn it is. It ends before the socket, whose port may be another connection's at once.
    exchange: Option<Exchange>,
    pub(crate) socket: TcpStream,
    session: ClientConnection,
    /// The socket accepted a first byte: the connection is established.
    is_connected: bool,
    /// When that happened.
    pub(crate) connected_ns: u64,
    has_ended: bool,
    /// The peer closed its side of the socket.
    is_peer_closed: bool,
    /// An error that came after data. The next read returns it.
    failed: Option<io::Error>,
}

impl TlsStream {
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Whether the handshake resumed an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        self.session.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Whether a read would return something that no event announces.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended || self.failed.is_some()
    }

    /// The peer closed its side of the socket. It needs no close_notify, and would answer one with a reset if it has closed the other side too.
    pub(crate) fn note_peer_closed(&mut self) {
        self.is_peer_closed = true;
    }

    /// Reads until the buffer is full or the socket is empty.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut filled = 0;
        while filled < buffer.len() && !self.has_ended {
            match self.session.reader().read(&mut buffer[filled..]) {
                Ok(0) => self.has_ended = true,
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => match self.receive() {
                    Ok(_) => {}
                    Err(error) if filled == 0 => return Err(error),
                    Err(error) => {
                        self.failed = Some(error).filter(|error| error.kind() != ErrorKind::WouldBlock);
                        break;
                    }
                },
                // Many servers close without the alert for it. The answer's own framing decides whether it is complete.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => self.has_ended = true,
                Err(error) => return Err(error),
            }
        }
        self.tell(filled, LoadExchange::Answered);
        Ok(filled)
    }

    /// Tells whose turn it is once bytes of a request or an answer have moved.
    fn tell(&self, bytes: usize, exchange: LoadExchange) {
        if let Some(told) = self.exchange.as_ref().filter(|_| bytes > 0) {
            told.set(exchange);
        }
    }

    /// Reads records from the socket. Returns the number of its bytes.
    fn receive(&mut self) -> io::Result<usize> {
        let bytes = self.session.read_tls(&mut self.socket)?;
        self.is_peer_closed |= bytes == 0;
        let taken = self.session.process_new_packets();
        taken.map(|_| bytes).map_err(|error| {
            // Send the alert that tells the server why. If it cannot be sent, nothing changes.
            let _ = self.session.write_tls(&mut self.socket);
            io::Error::new(ErrorKind::InvalidData, error)
        })
    }

    /// Continues the handshake, and writes once it is complete.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        while self.session.is_handshaking() {
            let begins = !self.is_connected;
            self.flush()?;
            if !self.session.is_handshaking() {
                break;
            }
            // The server sends nothing before it has the client's first message.
            if begins {
                return Err(ErrorKind::WouldBlock.into());
            }
            if self.receive()? == 0 {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "closed during the handshake"));
            }
        }
        let taken = self.session.writer().write(bytes)?;
        self.tell(taken, LoadExchange::Waiting);
        match self.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock || taken == 0 => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends the pending records.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.socket)?;
            self.is_connected = true;
        }
        Ok(())
    }
}

/// As other clients do, it says that nothing more will come (close_notify, RFC 8446 section 6.1): a server may wait for that.
impl Drop for TlsStream {
    fn drop(&mut self) {
        if !self.session.is_handshaking() && !self.is_peer_closed {
            self.session.send_close_notify();
            // If the socket takes nothing more, its end must do.
            let _ = self.flush();
        }
    }
}
