//! What `chokepoint watch` shows to other programs: metrics for Prometheus and a JSON API, over HTTP on loopback or a unix socket. It renders what was recorded and
//! judges nothing.

#![deny(unsafe_code)]

mod accept;
mod amplify;
mod api;
mod board;
mod families;
mod guard;
mod metrics;
mod otlp;
mod post;
mod server;
mod text_format;
mod totals;

pub use accept::Format;
pub use api::Archive;
pub use board::{Board, Seen};
pub use metrics::render;
pub use otlp::deliver;
pub use post::{PostError, check, post};
pub use server::{Listen, ListenError, Server};
