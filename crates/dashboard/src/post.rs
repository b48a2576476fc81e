//! Sends a document to another program: one POST over HTTP/1.1, with TLS where the URL says https, within a time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::stream::Stream;

/// Why it was not delivered.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// It is no URL that can be posted to.
    #[error("\"{0}\" is no http:// or https:// URL")]
    Url(String),
    /// The connection failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The other side does not speak HTTP, or ended the connection.
    #[error("{0}")]
    Http(#[from] hyper::Error),
    /// It was refused.
    #[error("it answered with status {0}")]
    Status(u16),
    /// No answer came in time.
    #[error("no answer came in {0:?}")]
    Late(Duration),
}

/// The URL, checked: "http" or "https" and a host.
///
/// # Errors
/// [`PostError::Url`].
pub fn check(url: &str) -> Result<(), PostError> {
    parsed(url).map(drop)
}

fn parsed(url: &str) -> Result<Uri, PostError> {
    let wrong = || PostError::Url(url.to_owned());
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    (matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()).then_some(uri).ok_or_else(wrong)
}

/// Posts JSON, and waits for the answer.
///
/// # Errors
/// Why it was not delivered.
pub fn post(url: &str, json: String, patience: Duration) -> Result<(), PostError> {
    let uri = parsed(url)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let posted =
        runtime.block_on(async { tokio::time::timeout(patience, posted(&uri, json)).await.unwrap_or(Err(PostError::Late(patience))) });
    // The search for an address cannot be broken off (getaddrinfo(3)): nobody waits for it.
    runtime.shutdown_background();
    posted
}

async fn posted(uri: &Uri, json: String) -> Result<(), PostError> {
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let stream = connected(uri).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::post(path).header(HOST, authority).header(CONTENT_TYPE, "application/json").body(Full::new(Bytes::from(json)));
    let request = request.map_err(|_| PostError::Url(uri.to_string()))?;
    // It carries the request and its answer. Its error is that of the request.
    tokio::spawn(connection);
    let answer = sender.send_request(request).await?;
    if answer.status().is_success() { Ok(()) } else { Err(PostError::Status(answer.status().as_u16())) }
}

async fn connected(uri: &Uri) -> Result<Box<dyn Stream>, PostError> {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let is_secure = uri.scheme_str() == Some("https");
    let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 }))).await?;
    if !is_secure {
        return Ok(Box::new(stream));
    }
    // The authorities of this system; SSL_CERT_FILE names others.
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|_| PostError::Url(uri.to_string()))?;
    Ok(Box::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// The address of a server that answers once with this, and what it got.
    fn server(answer: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/api/v2/alerts?x=1", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut got = vec![0; 4096];
            let mut length = 0;
            while !String::from_utf8_lossy(&got[..length]).contains("[1]") {
                length += connection.read(&mut got[length..]).unwrap();
            }
            connection.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&got[..length]).into_owned()
        });
        (url, thread)
    }

    #[test]
    fn a_document_is_delivered_or_the_error_says_why_not() {
        let patience = Duration::from_secs(5);
        let (url, got) = server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        post(&url, "[1]".to_owned(), patience).unwrap();
        let got = got.join().unwrap();
        assert!(got.starts_with("POST /api/v2/alerts?x=1 HTTP/1.1\r\n") && got.contains("content-type: application/json"), "{got}");
        let (url, _) = server("HTTP/1.1 503 no\r\nContent-Length: 0\r\n\r\n");
        assert!(matches!(post(&url, "[1]".to_owned(), patience), Err(PostError::Status(503))));
        let (url, _) = server("");
        assert!(post(&url, "[1]".to_owned(), patience).is_err());
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", silent.local_addr().unwrap());
        assert!(matches!(post(&url, "[1]".to_owned(), Duration::from_millis(200)), Err(PostError::Late(_))));
        for url in ["ftp://a/", "a", "http://", "https:///x", "/x"] {
            assert!(matches!(check(url), Err(PostError::Url(_))), "{url}");
        }
    }
}
