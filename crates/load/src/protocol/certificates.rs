//! Which certificates of servers are accepted, and what is wrong with those that are not.

use std::io;
use std::sync::{Arc, Mutex};

use chokepoint_model::load::TlsFailure;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::engine::control::lock;
use crate::protocol::tls::Trust;

/// What decides on certificates. The error says what is wrong with the authorities.
pub(crate) fn verifier(trust: &Trust, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let Some((roots, given)) = roots(trust)? else { return Ok(Arc::new(Unverified(provider))) };
    let by_authority = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    Ok(Arc::new(Verified { by_authority: by_authority.map_err(|error| error.to_string())?, given, accepted: Mutex::default() }))
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
        TlsFailure::UnknownAuthority => "this system does not trust the authority that signed the certificate",
        TlsFailure::Expired => "the certificate has expired",
        TlsFailure::NotYetValid => "the certificate is not valid yet",
        TlsFailure::WrongName => "the certificate is for another name",
        TlsFailure::Certificate | TlsFailure::Handshake => return None,
    })
}

/// Accepts what the authorities signed, and the certificates of the authorities themselves for the names in them. A self-signed certificate is often one of an
/// authority, which is no certificate for a server by the rules of the web (RFC 5280, 4.2.1.9). Whoever gives it as trusted means the server.
#[derive(Debug)]
struct Verified {
    by_authority: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
    /// The certificates that were accepted last, the server's own first: all connections of a load have one server, which shows the same ones each time.
    accepted: Mutex<Vec<CertificateDer<'static>>>,
}

impl Verified {
    fn verify(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        match self.by_authority.verify_server_cert(own, between, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_))) if self.given.iter().any(|given| given == own) => {
                verify_server_name(&ParsedCertificate::try_from(own)?, name)
            }
            verified => verified.map(drop),
        }
    }
}

impl ServerCertVerifier for Verified {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let shown = || std::iter::once(own).chain(between);
        if !lock(&self.accepted).iter().eq(shown()) {
            self.verify(own, between, name, ocsp, now)?;
            *lock(&self.accepted) = shown().map(|certificate| certificate.clone().into_owned()).collect();
        }
        Ok(ServerCertVerified::assertion())
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

/// Accepts every certificate. That the server has its key is not checked either: it would prove nothing about a server that may be anybody, for a quarter of the
/// time of a full handshake.
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
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
