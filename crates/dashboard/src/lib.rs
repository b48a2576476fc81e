//! What `chokepoint watch` shows: a page for people, metrics for Prometheus and a JSON API for programs, over HTTP on loopback or a unix socket. It renders what was
//! recorded and judges nothing.

#![deny(unsafe_code)]

mod accept;
mod amplify;
mod api;
mod board;
mod explain;
mod families;
mod freshness;
mod guard;
mod live;
mod metrics;
mod otlp;
mod page;
mod post;
mod protection;
mod server;
mod shares;
mod stream;
mod text_format;
mod totals;

pub use accept::Format;
pub use api::{Archive, Place, Profiles};
pub use board::{Board, Seen};
pub use freshness::Freshness;
pub use metrics::render;
pub use otlp::deliver;
pub use page::{Parts, parts};
pub use post::{PostError, check, post};
pub use protection::{Protection, ProtectionError};
pub use server::{Listen, ListenError, Server, UserOf};
