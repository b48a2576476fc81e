//! The server: HTTP/1.1 in one thread, with bounds on connections, time and size.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, oneshot};

use crate::accept::Format;
use crate::api::{self, Answer, Archive};
use crate::board::Board;
use crate::guard;

/// Connections at a time. Others wait in the accept queue.
const CONNECTIONS_MAX: usize = 32;
/// The longest time to send a request's head, and a connection in all.
const HEAD_MAX: Duration = Duration::from_secs(5);
const CONNECTION_MAX: Duration = Duration::from_secs(60);
/// The longest head, bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Reading the archive may wait for the disk; so many at a time.
const BLOCKING_MAX: usize = 4;

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// An address of loopback.
    Tcp(SocketAddr),
    /// A unix socket, which only its owner may connect to.
    Unix(PathBuf),
}

/// Why it cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address belongs to no loopback.
    #[error(
        "{0} is not on loopback: what is shown there has no protection yet, so listen on 127.0.0.1 or a unix socket behind a proxy with TLS"
    )]
    NotLoopback(SocketAddr),
    /// The socket cannot be made.
    #[error("cannot listen at {place}: {source}")]
    Bind {
        /// The address or path.
        place: String,
        /// The error.
        source: io::Error,
    },
    /// The thread cannot be started.
    #[error("a thread for the server cannot be started: {0}")]
    Thread(io::Error),
}

/// A running server. It ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: Option<SocketAddr>,
    socket: Option<PathBuf>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

#[derive(Clone)]
struct Shown {
    board: Arc<Board>,
    archive: Arc<dyn Archive>,
    port: Option<u16>,
}

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    /// The address is not on loopback, or is taken; no thread could be started.
    pub fn start(listen: &Listen, board: Arc<Board>, archive: Arc<dyn Archive>) -> Result<Self, ListenError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(BLOCKING_MAX).build();
        let runtime = runtime.map_err(ListenError::Thread)?;
        let (listener, address) = runtime.block_on(bind(listen))?;
        let shown = Shown { board, archive, port: address.map(|address| address.port()) };
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, shown) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("dashboard".to_owned()).spawn(serve).map_err(ListenError::Thread)?;
        let socket = if let Listen::Unix(path) = listen { Some(path.clone()) } else { None };
        Ok(Self { address, socket, stop: Some(stop), thread: Some(thread) })
    }

    /// The address; none for a unix socket. With port 0 the kernel chose one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
    }
}

async fn bind(listen: &Listen) -> Result<(Listener, Option<SocketAddr>), ListenError> {
    match listen {
        Listen::Tcp(address) if !address.ip().is_loopback() => Err(ListenError::NotLoopback(*address)),
        Listen::Tcp(address) => {
            let failed = |source| ListenError::Bind { place: address.to_string(), source };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            let address = listener.local_addr().map_err(failed)?;
            Ok((Listener::Tcp(listener), Some(address)))
        }
        Listen::Unix(path) => {
            let failed = |source| ListenError::Bind { place: path.display().to_string(), source };
            let listener = UnixListener::bind(path).map_err(failed)?;
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(path, mode).map_err(failed)?;
            Ok((Listener::Unix(listener), None))
        }
    }
}

async fn serve(listener: Listener, shown: Shown) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let shown = shown.clone();
        let connection = |io: Box<dyn Stream>| {
            let service = service_fn(move |request| respond(request, shown.clone()));
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX).max_buf_size(HEAD_BYTES_MAX);
            let served = builder.serve_connection(TokioIo::new(io), service);
            tokio::spawn(async move {
                // A client that is gone is no error of ours.
                let _ = tokio::time::timeout(CONNECTION_MAX, served).await;
                drop(permit);
            });
        };
        let accepted: io::Result<Box<dyn Stream>> = match &listener {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, _)| Box::new(stream) as Box<dyn Stream>),
            Listener::Unix(listener) => listener.accept().await.map(|(stream, _)| Box::new(stream) as Box<dyn Stream>),
        };
        match accepted {
            Ok(stream) => connection(stream),
            // No descriptor is free: others will be.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// A connection of either kind.
trait Stream: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send {}
impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send> Stream for T {}

async fn respond(request: Request<Incoming>, shown: Shown) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_head = request.method() == Method::HEAD;
    let answer = match guard::refusal(request.method(), request.headers(), shown.port) {
        Some((status, why)) => api::error(status, why),
        None => {
            let (uri, format) = (request.uri().clone(), Format::asked(request.headers()));
            // The archive is read in another thread, so that a slow disk holds up nobody else.
            let answered = tokio::task::spawn_blocking(move || {
                let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                api::answer(uri.path(), uri.query().unwrap_or_default(), format, now_s, &shown.board, &*shown.archive)
            });
            answered.await.unwrap_or_else(|_| api::error(hyper::StatusCode::INTERNAL_SERVER_ERROR, "it stopped unexpectedly"))
        }
    };
    let Answer { status, media_type, body } = answer;
    let mut response = Response::new(Full::new(Bytes::from(if is_head { String::new() } else { body })));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let all = [
        (CONTENT_TYPE, media_type),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    ];
    headers.extend(all.map(|(name, value)| (name, hyper::header::HeaderValue::from_static(value))));
    Ok(response)
}
