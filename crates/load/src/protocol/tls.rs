//! TLS on a connection (RFC 8446, RFC 5246, with rustls): the handshake, and non-blocking reads and writes.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use chokepoint_model::load::{LoadExchange, TlsFailure};
use mio::net::TcpStream;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConnection, Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, HandshakeKind, RootCertStore, SignatureScheme};

use crate::engine::exchanges::{Exchange, Exchanges};

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
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?;
        let verifier: Arc<dyn ServerCertVerifier> = match roots(&tls.trust)? {
            Some((roots, given)) => {
                let by_authority = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
                Arc::new(Given { by_authority: by_authority.map_err(|error| error.to_string())?, given })
            }
            None => Arc::new(Unverified(provider)),
        };
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
        Ok(Box::new(TlsStream { exchange, socket, session, is_connected: false, connected_ns: 0, has_ended: false, failed: None }))
    }
}

/// The trusted authorities, and the certificates that were given for them; nothing if nothing is verified.
fn roots(trust: &Trust) -> Result<Option<(RootCertStore, Vec<CertificateDer<'static>>)>, String> {
    let (mut roots, mut given) = (RootCertStore::empty(), Vec::new());
    match trust {
        Trust::Anybody => return Ok(None),
        Trust::System => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err("this system has no certificates of certificate authorities".to_owned());
            }
        }
        Trust::Authorities(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate =
                    certificate.map_err(|error| format!("the certificates of certificate authorities cannot be read: {error}"))?;
                given.push(certificate.clone());
                roots.add(certificate).map_err(|error| format!("the certificate of a certificate authority cannot be used: {error}"))?;
            }
            if roots.is_empty() {
                return Err("it contains no certificate of a certificate authority".to_owned());
            }
        }
    }
    Ok(Some((roots, given)))
}

/// Why a handshake failed.
pub(crate) fn failure(error: &io::Error) -> TlsFailure {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(certificate)) = tls else { return TlsFailure::Handshake };
    match certificate {
        // A self-signed certificate of an authority that the server shows as its own (webpki's CaUsedAsEndEntity) is signed by nobody else.
        CertificateError::UnknownIssuer | CertificateError::Other(_) => TlsFailure::UnknownAuthority,
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFailure::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => TlsFailure::NotYetValid,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => TlsFailure::WrongName,
        _ => TlsFailure::Certificate,
    }
}

/// What is wrong with the certificate, in words; nothing if something else is wrong.
pub(crate) fn wrong_certificate(failure: TlsFailure) -> Option<&'static str> {
    Some(match failure {
        TlsFailure::UnknownAuthority => "the certificate is signed by an authority that is not trusted",
        TlsFailure::Expired => "the certificate has expired",
        TlsFailure::NotYetValid => "the certificate is not valid yet",
        TlsFailure::WrongName => "the certificate is for another name",
        TlsFailure::Certificate | TlsFailure::Handshake => return None,
    })
}

/// Accepts what the authorities signed, and the certificates of the authorities themselves for the names in them. A self-signed certificate is often one of an
/// authority, which is no certificate for a server by the rules of the web (RFC 5280, 4.2.1.9). Whoever gives it as trusted means the server.
#[derive(Debug)]
struct Given {
    by_authority: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Given {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.by_authority.verify_server_cert(own, between, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_))) if self.given.iter().any(|given| given == own) => {
                verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_authority.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_authority.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

/// Accepts every certificate. That the server has its key is still checked.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
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
            self.flush()?;
            if !self.session.is_handshaking() {
                break;
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
