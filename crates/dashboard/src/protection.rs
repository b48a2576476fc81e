//! What protects the page where others can reach it: TLS, and a token that every request shows.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, COOKIE};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::shares::Client;

/// Characters that a token has at least: as many as 16 random bytes in hexadecimal.
const TOKEN_MIN: usize = 32;
/// The most bytes of a certificate's, a key's and a token's file.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Read permission of everybody.
const READ_OTHERS: u32 = 0o004;
/// The cookie in which a browser keeps the token. The prefix makes browsers demand TLS for it (RFC 6265bis, section 4.1.3).
const COOKIE_NAME: &str = "__Host-chokepoint";
/// Most browsers that keep a cookie of one without TLS. Whoever is the first to be forgotten opens the address with the token again.
const VISITS_MAX: usize = 64;

/// The files that protect an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    /// Certificates in PEM, the server's own first.
    pub certificate: PathBuf,
    /// Its key in PEM.
    pub key: PathBuf,
    /// A file with the token.
    pub token: PathBuf,
}

/// Why an address cannot be protected.
#[derive(Debug, thiserror::Error)]
pub enum ProtectionError {
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Everybody can read a secret.
    #[error("every user of this host can read {}: chmod o-r it, and make a new one", .0.display())]
    Readable(PathBuf),
    /// A file is no PEM, or has nothing of the kind that is needed.
    #[error("{} has no {what} in PEM", path.display())]
    NoPem {
        /// The file.
        path: PathBuf,
        /// What it should have.
        what: &'static str,
    },
    /// Certificate and key do not fit each other.
    #[error("the certificate and its key cannot be used: {0}")]
    Tls(rustls::Error),
    /// The token can be guessed.
    #[error("the token in {} has {length} characters; {TOKEN_MIN} are needed: openssl rand -hex 32 makes one", path.display())]
    ShortToken {
        /// The file.
        path: PathBuf,
        /// Its length.
        length: usize,
    },
    /// The token cannot be sent in a header.
    #[error("the token in {} has characters other than letters, digits, \"-\", \".\", \"_\" and \"~\"", .0.display())]
    OddToken(PathBuf),
}

/// A protected address.
#[derive(Clone)]
pub(crate) struct Protected {
    pub(crate) tls: TlsAcceptor,
    pub(crate) token: Token,
}

impl fmt::Debug for Protected {
    /// Without key and token.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Protected").finish_non_exhaustive()
    }
}

/// The token that requests show.
#[derive(Clone)]
pub(crate) struct Token {
    text: Arc<str>,
    /// The name of the cookie in which a browser keeps it, and whether it is sent by TLS alone.
    cookie: Arc<str>,
    is_secure: bool,
    /// Without TLS: what stands in the cookies instead of the token, and whose browser each was given to; the oldest first. Browsers send a cookie of one port of
    /// this host to all its ports (RFC 6265, section 8.5), where other users may listen: there it is worth nothing.
    visits: Arc<Mutex<VecDeque<(String, Client)>>>,
}

impl fmt::Debug for Token {
    /// Without its text.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Token").finish_non_exhaustive()
    }
}

impl Protected {
    pub(crate) fn of(files: &Protection) -> Result<Self, ProtectionError> {
        let no_pem = |path: &Path, what| ProtectionError::NoPem { path: path.to_owned(), what };
        let pem = read(&files.certificate, false)?;
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let certificates = certificates.ok().filter(|all| !all.is_empty()).ok_or_else(|| no_pem(&files.certificate, "certificate"))?;
        let key = PrivateKeyDer::from_pem_slice(&read(&files.key, true)?).map_err(|_| no_pem(&files.key, "private key"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(ProtectionError::Tls)?;
        let config = config.with_no_client_auth().with_single_cert(certificates, key).map_err(ProtectionError::Tls)?;
        let token = String::from_utf8_lossy(&read(&files.token, true)?).trim().to_owned();
        if token.len() < TOKEN_MIN {
            return Err(ProtectionError::ShortToken { path: files.token.clone(), length: token.len() });
        }
        if !token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)) {
            return Err(ProtectionError::OddToken(files.token.clone()));
        }
        Ok(Self { tls: TlsAcceptor::from(Arc::new(config)), token: Token::by_tls(&token) })
    }
}

fn read(path: &Path, is_secret: bool) -> Result<Vec<u8>, ProtectionError> {
    let failed = |source| ProtectionError::Read { path: path.to_owned(), source };
    let (bytes, meta) = chokepoint_foreign::read_own(path, FILE_BYTES_MAX).map_err(failed)?;
    if is_secret && meta.mode() & READ_OTHERS != 0 {
        return Err(ProtectionError::Readable(path.to_owned()));
    }
    Ok(bytes)
}

impl Token {
    /// One that is sent by TLS alone.
    pub(crate) fn by_tls(text: &str) -> Self {
        Self { text: text.into(), cookie: COOKIE_NAME.into(), is_secure: true, visits: Arc::default() }
    }

    /// A new one for a port of loopback, where nobody listens in.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub(crate) fn for_loopback(port: u16) -> Result<Self, rustls::crypto::GetRandomFailed> {
        Ok(Self { text: random()?.into(), cookie: format!("chokepoint-{port}").into(), is_secure: false, visits: Arc::default() })
    }

    /// The token itself, to be told to its owner.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// True if a request of this client shows the token: in its `Authorization` (RFC 6750), or in the cookie that it was given.
    pub(crate) fn is_shown(&self, headers: &HeaderMap, client: Client) -> bool {
        let texts = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let mut bearer = texts(AUTHORIZATION).filter_map(|text| text.strip_prefix("Bearer "));
        let cookies = texts(COOKIE).flat_map(|text| text.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
        let mut own = cookies.filter(|(name, _)| **name == *self.cookie).map(|(_, value)| value);
        bearer.any(|shown| is_same(&self.text, shown)) || own.any(|shown| self.is_cookie(shown, client))
    }

    fn is_cookie(&self, shown: &str, client: Client) -> bool {
        if self.is_secure {
            return is_same(&self.text, shown);
        }
        let visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        visits.iter().any(|(given, to)| *to == client && is_same(given, shown))
    }

    /// True if a query shows the token: the address that a browser opens first.
    pub(crate) fn is_in(&self, query: &str) -> bool {
        query.split('&').filter_map(|pair| pair.strip_prefix("token=")).any(|shown| is_same(&self.text, shown))
    }

    /// The cookie that the browser of this client is to keep.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub(crate) fn cookie(&self, client: Client) -> Result<String, rustls::crypto::GetRandomFailed> {
        if self.is_secure {
            return Ok(format!("{}={}; Path=/; Secure; HttpOnly; SameSite=Strict", self.cookie, self.text));
        }
        let given = random()?;
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        if visits.len() >= VISITS_MAX {
            visits.pop_front();
        }
        visits.push_back((given.clone(), client));
        Ok(format!("{}={given}; Path=/; HttpOnly; SameSite=Strict", self.cookie))
    }
}

/// Nobody guesses it.
fn random() -> Result<String, rustls::crypto::GetRandomFailed> {
    let mut bytes = [0; TOKEN_MIN / 2];
    rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares in a time that tells nothing of how much is alike.
fn is_same(own: &str, shown: &str) -> bool {
    let (own, shown) = (own.as_bytes(), shown.as_bytes());
    own.len() == shown.len() && own.iter().zip(shown).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderName;

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn is_shown(headers: &[(HeaderName, String)]) -> bool {
        let headers: HeaderMap = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        Token::by_tls(TOKEN).is_shown(&headers, Client::User(7))
    }

    #[test]
    fn the_token_is_shown_in_a_header_or_the_cookie() {
        assert!(is_shown(&[(AUTHORIZATION, format!("Bearer {TOKEN}"))]));
        assert!(is_shown(&[(COOKIE, format!("a=b; {COOKIE_NAME}={TOKEN}; c=d"))]));
        for (name, value) in [
            (AUTHORIZATION, format!("Basic {TOKEN}")),
            (AUTHORIZATION, format!("Bearer {TOKEN}0")),
            (AUTHORIZATION, "Bearer ".to_owned()),
            (AUTHORIZATION, format!("Bearer {}", TOKEN.to_uppercase())),
            (COOKIE, format!("chokepoint={TOKEN}")),
            (COOKIE, format!("{COOKIE_NAME}=")),
        ] {
            assert!(!is_shown(&[(name, value.clone())]), "{value}");
        }
        assert!(!is_shown(&[]));
        let token = Token::by_tls(TOKEN);
        assert!(token.is_in(&format!("a=1&token={TOKEN}")) && !token.is_in("token=") && !token.is_in(TOKEN));
        assert!(token.cookie(Client::User(7)).unwrap().ends_with("Secure; HttpOnly; SameSite=Strict"));
    }

    #[test]
    fn what_does_not_protect_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let files = Protection { certificate: write("c", "no PEM"), key: write("k", ""), token: write("t", "short\n") };
        let why = |files: &Protection| Protected::of(files).err().unwrap().to_string();
        assert!(why(&files).ends_with("has no certificate in PEM"), "{}", why(&files));
        let missing = Protection { certificate: directory.path().join("none"), ..files };
        assert!(why(&missing).contains("cannot be read"));
    }
}
