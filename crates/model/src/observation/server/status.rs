//! What servers say of themselves, and of those behind them.

/// The counts on a server's status page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerStatus {
    /// nginx's `stub_status`.
    Nginx(NginxStatus),
    /// php-fpm's `pm.status_path`.
    PhpFpm(PhpFpmStatus),
    /// The servers behind a proxy, as it sees them (HAProxy's `show stat`).
    Proxied(Vec<ProxiedServer>),
}

/// nginx's counts over all workers, including our own request (ngx_http_stub_status_module).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NginxStatus {
    /// Client connections now, including idle ones.
    pub active: u64,
    /// Connections accepted since start. A reload keeps the counts.
    pub accepts: u64,
    /// Accepted connections that were served. The others were closed at once because no connection of `worker_connections` was free.
    pub handled: u64,
    /// Requests since start.
    pub requests: u64,
    /// Connections with a request being read.
    pub reading: u64,
    /// Connections with an answer being prepared or sent.
    pub writing: u64,
    /// Kept-alive connections without a request.
    pub waiting: u64,
}

/// The counts of one pool of php-fpm (fpm_status.c).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhpFpmStatus {
    /// Name.
    pub pool: String,
    /// Requests taken since start.
    pub accepted: u64,
    /// Connections waiting to be accepted; always 0 on a unix socket, where php-fpm cannot read it.
    pub listen_queue: u64,
    /// The most waiting since start; always 0 on a unix socket.
    pub max_listen_queue: u64,
    /// The limit of the queue; always 0 on a unix socket.
    pub listen_queue_len: u64,
    /// Workers that wait for a request.
    pub idle: u64,
    /// Workers with a request, without the worker that served the status page.
    pub active: u64,
    /// Workers.
    pub total: u64,
    /// The most active since start, including workers that served the status page.
    pub max_active: u64,
    /// Times that `pm.max_children` prevented a new worker; always 0 with `pm = static`.
    pub max_children_reached: u64,
    /// Requests slower than `request_slowlog_timeout`.
    pub slow_requests: u64,
}

impl ServerStatus {
    /// The servers behind a proxy; `None` if it is a page of another kind.
    pub fn proxied(&self) -> Option<&[ProxiedServer]> {
        match self {
            Self::Proxied(servers) => Some(servers),
            Self::Nginx(_) | Self::PhpFpm(_) => None,
        }
    }
}

/// A server behind a proxy, as the proxy sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxiedServer {
    /// As the configuration names it: "app/a" ([`crate::observation::StatedPass::to`]).
    pub name: String,
    /// Whether it gets requests.
    pub state: ProxiedState,
    /// Seconds since that changed.
    pub since_s: Option<u64>,
    /// What its last check found, in the proxy's word: "L7STS"; empty without one.
    pub check: String,
    /// The status that the check got.
    pub code: Option<u64>,
    /// Requests that wait for it in the proxy's queue.
    pub waiting: Option<u64>,
    /// Requests, or connections, that it works on.
    pub in_use: Option<u64>,
}

/// Whether a proxy gives requests to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ProxiedState {
    Up,
    Unchecked,
    Down,
    Maintenance,
    Draining,
}

impl ProxiedState {
    /// True if it gets requests.
    pub fn is_in_service(self) -> bool {
        matches!(self, Self::Up | Self::Unchecked)
    }
}
