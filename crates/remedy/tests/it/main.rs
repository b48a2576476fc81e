//! The integration tests of this crate, a file for each subject; each file says whether it is live or deterministic.

mod affinity;
mod cgroup;
mod crash;
mod disk;
mod haproxy;
mod host;
mod impostor;
mod live;
mod server;
mod servers;
mod store;
mod support;
mod unix_socket;
mod unread;
