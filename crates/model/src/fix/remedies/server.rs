//! Remedies that change a server's configuration or limits.

mod demand;
pub(super) mod listen_again;
pub(super) mod log_errors_alone;
pub(super) mod move_to_unix_socket;
pub(super) mod raise_accept_backlog;
pub(super) mod raise_max_children;
pub(super) mod raise_nofile;
pub(super) mod raise_nofile_by_hand;
pub(super) mod raise_worker_connections;
pub(super) mod reload_configuration;
pub(super) mod reuse_upstream_connections;
pub(super) mod servers;
pub(super) mod store_tls_sessions;
