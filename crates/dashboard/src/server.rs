//! The server: HTTP/1.1 in one thread, with bounds on connections, time and size, all of which are shared between the clients.

mod answers;
mod pace;
mod series;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY, SET_COOKIE,
    VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::fd::AsFd;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio_rustls::TlsAcceptor;

use crate::accept::Format;
use crate::api::{self, Answer, Archive, Content};
use crate::board::Board;
use crate::freshness::Freshness;
use crate::guard::{self, Reached};
use crate::live::{self, PAGES_MAX, PAGES_OF_ONE, PAGES_OWN_MAX};
use crate::page::{self, File};
use crate::protection::{Protected, Protection, ProtectionError, Token};
use crate::shares::{Client, Part, Shares};
use crate::stream::{Accepted, Stream};
use answers::{Pieces, Room};
use pace::Pace;

/// Connections at a time.
const CONNECTIONS_MAX: usize = 64;
/// Those of one client: a browser opens six to one server, and one more for each page that follows the events.
const CONNECTIONS_OF_ONE: usize = 12;
/// Those of root and of the own user, beside them.
const CONNECTIONS_OWN: usize = 32;
/// Places beside them for a client that finds none: it gets what every user of the host may have, in one answer. Who finds none of these either is turned away.
const NARROW_MAX: usize = 16;
const NARROW_OF_ONE: usize = 2;
/// The longest time of such a connection.
const NARROW_TIME_MAX: Duration = Duration::from_secs(5);
/// What the kernel holds for a client that does not read, bytes (socket(7), SO_SNDBUF).
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// A client that takes nothing of what is read for it for so long is gone.
const STALLED_MAX: Duration = Duration::from_secs(10);
/// How long a request waits for those that read a document.
const DOCUMENT_WAIT_MAX: Duration = Duration::from_secs(10);
/// The longest time to send a request's head, and a connection in all.
const HEAD_MAX: Duration = Duration::from_secs(5);
const CONNECTION_MAX: Duration = Duration::from_secs(60);
/// The longest head, bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Where a page follows the events of each second.
const LIVE: &str = "/api/v1/live";
/// The newest second that was measured, and whether it is too old to be now.
const NEWEST: HeaderName = HeaderName::from_static("chokepoint-newest");
const STALE: HeaderName = HeaderName::from_static("chokepoint-stale");
/// What may be done with an answer that is no page: nothing.
const NO_PAGE: &str = "default-src 'none'; frame-ancestors 'none'";
/// Reading the archive may wait for the disk; so many at a time.
const BLOCKING_MAX: usize = 4;

/// Tells the user who holds the far end of a connection on this host: `None` if that is not known. The first address is the client's, the second the own.
pub type UserOf = dyn Fn(SocketAddr, SocketAddr) -> Option<u32> + Send + Sync;

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// An address: of loopback, or protected.
    Tcp(SocketAddr),
    /// A unix socket, which only its owner may connect to.
    Unix(PathBuf),
}

/// Why it cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address belongs to no loopback, and is not protected.
    #[error("{0} is not on loopback: others can reach it, so it needs tls_certificate, tls_key and token_file in the configuration")]
    NotLoopback(SocketAddr),
    /// It cannot be protected.
    #[error(transparent)]
    Protection(#[from] ProtectionError),
    /// The socket cannot be made.
    #[error("cannot listen at {place}: {source}")]
    Bind {
        /// The address or path.
        place: String,
        /// The error.
        source: io::Error,
    },
    /// The kernel gives no random bytes.
    #[error("no token for other users could be made: the kernel gives no random bytes")]
    NoToken,
    /// The thread cannot be started.
    #[error("a thread for the server cannot be started: {0}")]
    Thread(io::Error),
}

/// A running server. It ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: Option<SocketAddr>,
    socket: Option<PathBuf>,
    /// What protects it. New connections take it from here.
    protected: watch::Sender<Option<Protected>>,
    /// What other users of the host show.
    token: Option<Token>,
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
    reached: Reached,
    /// Pages that are open on all connections: of root and the own user, and of others.
    pages: [Shares; 2],
    /// What answers take.
    room: Room,
    /// One document is read at a time, because it may be large before it is an answer.
    documents: Arc<Semaphore>,
    /// Whose the connections of loopback are.
    users: Option<Arc<UserOf>>,
    /// How often others than root and the own user are answered.
    pace: Pace,
}

/// Whose a connection is, and what it is given.
#[derive(Debug, Clone, Copy)]
struct Guest {
    client: Client,
    /// True for root, who may read everything anyway, and for the user of this program.
    is_own: bool,
    /// True if no usual place is left: it gets only what every user of the host may have.
    is_narrow: bool,
}

/// The places for connections.
struct Places {
    own: Shares,
    usual: Shares,
    narrow: Shares,
}

type Body = BoxBody<Bytes, io::Error>;

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    /// The address is not on loopback and not protected, or is taken; no thread could be started.
    pub fn start(
        listen: &Listen,
        protection: Option<&Protection>,
        board: Arc<Board>,
        archive: Arc<dyn Archive>,
    ) -> Result<Self, ListenError> {
        Self::start_among(listen, protection, None, board, archive)
    }

    /// [`Server::start`] where clients of loopback are told apart: only root and the own user may read all, others with a token.
    ///
    /// # Errors
    /// As of [`Server::start`].
    pub fn start_among(
        listen: &Listen,
        protection: Option<&Protection>,
        users: Option<Arc<UserOf>>,
        board: Arc<Board>,
        archive: Arc<dyn Archive>,
    ) -> Result<Self, ListenError> {
        let protected = protection.filter(|_| matches!(listen, Listen::Tcp(_))).map(Protected::of).transpose()?;
        if let Listen::Tcp(address) = listen
            && !address.ip().is_loopback()
            && protected.is_none()
        {
            return Err(ListenError::NotLoopback(*address));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(BLOCKING_MAX).build();
        let runtime = runtime.map_err(ListenError::Thread)?;
        let (listener, address) = runtime.block_on(bind(listen))?;
        let token = address.filter(|_| protected.is_none() && users.is_some()).map(|address| Token::for_loopback(address.port()));
        let token = token.transpose().map_err(|_| ListenError::NoToken)?;
        let reached = address.map_or(Reached::Unix, |address| Reached::Loopback(address, token.clone()));
        let (protected, protects) = watch::channel(protected);
        let pages = [Shares::new(PAGES_OWN_MAX, PAGES_OWN_MAX), Shares::new(PAGES_MAX, PAGES_OF_ONE)];
        let shown = Shown {
            board,
            archive,
            reached,
            pages,
            room: Room::new(),
            documents: Arc::new(Semaphore::new(1)),
            users,
            pace: Pace::default(),
        };
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, protects, shown) => {}
                    _ = stopped => {}
                }
            });
            // A disk that hangs must not hold up those who end it.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("dashboard".to_owned()).spawn(serve).map_err(ListenError::Thread)?;
        let socket = if let Listen::Unix(path) = listen { Some(path.clone()) } else { None };
        Ok(Self { address, socket, protected, token, stop: Some(stop), thread: Some(thread) })
    }

    /// True if it answers by TLS, and to those with the token.
    pub fn is_protected(&self) -> bool {
        self.protected.borrow().is_some()
    }

    /// What other users of the host than root and the own one show, by which the page opens for them.
    pub fn token(&self) -> Option<&str> {
        self.token.as_ref().map(Token::text)
    }

    /// Reads certificate, key and token again: new connections take them, those that are open keep theirs.
    ///
    /// # Errors
    /// They cannot be used; what was in force stays so.
    pub fn renew(&self, files: &Protection) -> Result<(), ProtectionError> {
        self.protected.send_replace(Some(Protected::of(files)?));
        Ok(())
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
        Listen::Tcp(address) => {
            let failed = |source| ListenError::Bind { place: address.to_string(), source };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            let address = listener.local_addr().map_err(failed)?;
            Ok((Listener::Tcp(listener), Some(address)))
        }
        Listen::Unix(path) => {
            let failed = |source| ListenError::Bind { place: path.display().to_string(), source };
            let listener = match UnixListener::bind(path) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left_over(path) => {
                    std::fs::remove_file(path).and_then(|()| UnixListener::bind(path))
                }
                bound => bound,
            };
            let listener = listener.map_err(failed)?;
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(path, mode).map_err(failed)?;
            Ok((Listener::Unix(listener), None))
        }
    }
}

/// True for an own socket at which nobody listens any more: who listened there was killed.
fn is_left_over(path: &Path) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let is_own = |meta: std::fs::Metadata| meta.file_type().is_socket() && meta.uid() == rustix::process::geteuid().as_raw();
    let refuses = || std::os::unix::net::UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    std::fs::symlink_metadata(path).is_ok_and(is_own) && refuses()
}

impl Places {
    fn new() -> Self {
        Self {
            own: Shares::new(CONNECTIONS_OWN, CONNECTIONS_OWN),
            usual: Shares::new(CONNECTIONS_MAX, CONNECTIONS_OF_ONE),
            narrow: Shares::new(NARROW_MAX, NARROW_OF_ONE),
        }
    }

    /// Waits for any place, whosever it is: only while all are taken do clients wait in the accept queue. Whose a connection is, is known once it is accepted.
    async fn wait(&self) {
        tokio::select! {
            () = self.own.wait() => {}
            () = self.usual.wait() => {}
            () = self.narrow.wait() => {}
        }
    }

    /// A place for a client, and whether it is a narrow one; nothing if it has as many as it may have.
    fn take(&self, client: Client, is_own: bool) -> Option<(Part, bool)> {
        let usual = if is_own { &self.own } else { &self.usual };
        usual.take(client).map(|place| (place, false)).or_else(|| self.narrow.take(client).map(|place| (place, true)))
    }
}

async fn serve(listener: Listener, protects: watch::Receiver<Option<Protected>>, shown: Shown) {
    let places = Places::new();
    loop {
        places.wait().await;
        let mut ends = None;
        let accepted: io::Result<Box<dyn Accepted>> = match &listener {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, client)| {
                // A kernel that refuses holds more for it.
                let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER_BYTES);
                ends = stream.local_addr().ok().map(|own| (client, own));
                Box::new(stream) as Box<dyn Accepted>
            }),
            Listener::Unix(listener) => listener.accept().await.map(|(stream, _)| Box::new(stream) as Box<dyn Accepted>),
        };
        let Ok(stream) = accepted else {
            // No descriptor is free: others will be.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (tls, mut shown) = (protects.borrow().clone(), shown.clone());
        let tls = tls.map(|Protected { tls, token }| {
            shown.reached = Reached::Protected(token);
            tls
        });
        let (client, is_own) = client_of(ends, shown.users.as_deref());
        if let Reached::Loopback(_, token) = &mut shown.reached
            && is_own
        {
            *token = None;
        }
        let Some((place, is_narrow)) = places.take(client, is_own) else {
            // Before a handshake nothing can be said.
            if tls.is_none() {
                turn_away(&stream);
            }
            continue;
        };
        tokio::spawn(async move {
            if let Some(stream) = secured(stream, tls).await {
                converse(stream, shown, Guest { client, is_own, is_narrow }).await;
            }
            drop(place);
        });
    }
}

/// Whose a connection is, and whether it is root or the own user. `ends`: of a connection by an address, the client's first.
fn client_of(ends: Option<(SocketAddr, SocketAddr)>, users: Option<&UserOf>) -> (Client, bool) {
    let own = rustix::process::geteuid().as_raw();
    match ends.map(|(client, at)| (client.ip(), users.and_then(|user_of| user_of(client, at)))) {
        Some((_, Some(uid))) => (Client::User(uid), uid == 0 || uid == own),
        // Clients of loopback are told apart only by their users.
        Some((address, None)) if users.is_some() || !address.is_loopback() => (Client::Address(address), false),
        // A unix socket is its owner's only.
        Some(_) | None => (Client::User(own), true),
    }
}

/// The connection after its TLS handshake, if there is to be one.
async fn secured(stream: Box<dyn Accepted>, tls: Option<TlsAcceptor>) -> Option<Box<dyn Stream>> {
    let Some(tls) = tls else { return Some(stream) };
    let secured = tokio::time::timeout(HEAD_MAX, tls.accept(stream)).await.ok()?.ok()?;
    Some(Box::new(secured))
}

/// Tells a client that there is no place for it, without waiting: a send buffer that is empty takes that much. What it has asked by then is read first, since a
/// socket that is closed with unread bytes resets the connection (RFC 1122, 4.2.2.13).
fn turn_away(stream: &impl AsFd) {
    let mut asked = [0_u8; 4096];
    let _ = recv(stream, &mut asked[..], RecvFlags::DONTWAIT);
    let Content::Text(body) = api::error(StatusCode::SERVICE_UNAVAILABLE, "all connections are taken: try it again").body else { return };
    let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length";
    let _ = send(stream, format!("{head}: {}\r\n\r\n{body}", body.len()).as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// Answers the requests of one connection.
async fn converse(stream: Box<dyn Stream>, shown: Shown, guest: Guest) {
    // Taken while a page follows the events on this connection.
    let live = Arc::new(Semaphore::new(1));
    let own = Arc::clone(&live);
    let service = service_fn(move |request| respond(request, shown.clone(), guest, Arc::clone(&own)));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX).max_buf_size(HEAD_BYTES_MAX).keep_alive(!guest.is_narrow);
    tokio::select! {
        // A client that is gone is no error of ours.
        _ = builder.serve_connection(TokioIo::new(stream), service) => {}
        () = overdue(&live) => {}
        () = tokio::time::sleep(NARROW_TIME_MAX), if guest.is_narrow => {}
    }
}

/// Waits until a connection has lasted long enough. One that follows the events of a page may last.
async fn overdue(live: &Semaphore) {
    loop {
        tokio::time::sleep(CONNECTION_MAX).await;
        if live.available_permits() > 0 {
            return;
        }
    }
}

async fn respond(request: Request<Incoming>, shown: Shown, guest: Guest, live: Arc<Semaphore>) -> Result<Response<Body>, Infallible> {
    // Whoever waits here keeps only places of its own.
    if !guest.is_own {
        tokio::time::sleep(shown.pace.wait(guest.client, Instant::now())).await;
    }
    let is_head = request.method() == Method::HEAD;
    let (path, headers) = (request.uri().path(), request.headers());
    let refusal = guard::refusal(request.method(), path, headers, &shown.reached, guest.client);
    if refusal.is_none_or(|(status, _)| status == StatusCode::UNAUTHORIZED)
        && let Some(signed_in) = sign_in(&request, &shown.reached, guest.client)
    {
        return Ok(signed_in);
    }
    let is_open = guard::is_open(path);
    let crowded = (guest.is_narrow && !is_open)
        .then_some((StatusCode::SERVICE_UNAVAILABLE, "all connections are taken: only /metrics and /healthz are answered now"));
    if let Some((status, why)) = refusal.or(crowded) {
        return Ok(refused(status, why));
    }
    if path == LIVE && !is_head {
        let pages = &shown.pages[usize::from(!guest.is_own)];
        let (Ok(own), Some(all)) = (live.try_acquire_owned(), pages.take(guest.client)) else {
            return Ok(refused(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open"));
        };
        let events = live::events(&shown.board, (own, all)).map_err(|never| match never {}).boxed();
        return Ok(with_headers(Response::new(events), &[(CONTENT_TYPE, "text/event-stream")]));
    }
    if let Some(file) = File::at(path, headers) {
        return Ok(file_response(file, page::takes_gzip(headers), is_head, &shown.room, guest.client));
    }
    let is_document = ["/api/v1/runs", "/api/v1/incidents"].iter().any(|documents| path.starts_with(documents));
    let document = tokio::time::timeout(DOCUMENT_WAIT_MAX, async { if is_document { shown.documents.acquire().await.ok() } else { None } });
    let Ok(_reading) = document.await else { return Ok(refused(StatusCode::SERVICE_UNAVAILABLE, BUSY)) };
    let (uri, format) = (request.uri().clone(), Format::asked(headers));
    let (board, archive) = (Arc::clone(&shown.board), Arc::clone(&shown.archive));
    // The archive is read in another thread, so that a slow disk holds up nobody else.
    let answered = tokio::task::spawn_blocking(move || {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        api::answer(uri.path(), uri.query().unwrap_or_default(), format, now_s, &board, &*archive)
    });
    let answer = answered.await.unwrap_or_else(|_| api::error(StatusCode::INTERNAL_SERVER_ERROR, "it stopped unexpectedly"));
    let Answer { status, media_type, body, freshness } = answer;
    let body = match body {
        _ if is_head => Pieces::short(Bytes::new()).boxed(),
        Content::Samples(walk) => series::body(Arc::clone(&shown.archive), walk).boxed(),
        Content::Text(text) => match shown.room.answer(guest.client, is_open, Bytes::from(text)) {
            Some(pieces) => pieces.boxed(),
            None => return Ok(refused(StatusCode::SERVICE_UNAVAILABLE, BUSY)),
        },
    };
    Ok(response(status, media_type, freshness, body))
}

/// What is said where answers that are not read take all the memory that there is for answers.
const BUSY: &str = "too much is being read already: try it again";

fn refused(status: StatusCode, why: &str) -> Response<Body> {
    let Answer { status, media_type, body, freshness } = api::error(status, why);
    let text = if let Content::Text(text) = body { text } else { String::new() };
    response(status, media_type, freshness, Pieces::short(Bytes::from(text)).boxed())
}

/// For a browser that was given the token in its address: it keeps the token in a cookie, and the address without it is opened.
fn sign_in(request: &Request<Incoming>, reached: &Reached, client: Client) -> Option<Response<Body>> {
    let (Reached::Protected(token) | Reached::Loopback(_, Some(token))) = reached else { return None };
    let is_asked = request.uri().path() == "/" && token.is_in(request.uri().query().unwrap_or_default());
    if !is_asked {
        return None;
    }
    let cookie = HeaderValue::from_str(&token.cookie(client).ok()?).ok()?;
    let mut response = with_headers(Response::new(Pieces::short(Bytes::new()).boxed()), &[(LOCATION, "/")]);
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(SET_COOKIE, cookie);
    Some(response)
}

fn response(status: StatusCode, media_type: &'static str, freshness: Option<Freshness>, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let mut response = with_headers(response, &[(CONTENT_TYPE, media_type)]);
    if let Some(Freshness { newest_s, stale, .. }) = freshness {
        response.headers_mut().insert(STALE, HeaderValue::from_static(if stale { "true" } else { "false" }));
        newest_s.map(|newest_s| response.headers_mut().insert(NEWEST, HeaderValue::from(newest_s)));
    }
    response
}

fn file_response(file: File, compressed: bool, is_head: bool, room: &Room, client: Client) -> Response<Body> {
    let body = match (is_head, compressed) {
        (true, _) => Some(Pieces::short(Bytes::new())),
        // It is in the program.
        (_, true) => Some(Pieces::short(Bytes::from_static(file.compressed))),
        (_, false) => room.answer(client, false, Bytes::from(file.plain())),
    };
    let Some(body) = body else { return refused(StatusCode::SERVICE_UNAVAILABLE, BUSY) };
    let encoding: &[_] = if compressed { &[(CONTENT_ENCODING, "gzip")] } else { &[] };
    let own = [(CONTENT_TYPE, file.media_type), (CONTENT_SECURITY_POLICY, page::POLICY), (VARY, "accept-encoding")];
    with_headers(Response::new(body.boxed()), &[&own, encoding].concat())
}

/// Adds headers, and those that every response has unless they are given.
fn with_headers(mut response: Response<Body>, own: &[(HeaderName, &'static str)]) -> Response<Body> {
    let all = [
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CONTENT_SECURITY_POLICY, NO_PAGE),
    ];
    for (name, value) in all.into_iter().chain(own.iter().cloned()) {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
