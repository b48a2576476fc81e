//! The load generator: HTTP/1.1 (also through TLS) or FastCGI requests at a fixed concurrency or a fixed rate, every outcome counted apart.
//!
//! One event loop a thread, no allocation a request (but in TLS): the request's bytes are prepared once, a thread has one read buffer, deadlines live in a
//! coarse wheel. A request costs a write and a read, and with a connection of its own also socket, setsockopt, connect, epoll_ctl and close.
//!
//! # What is counted
//! Each request ends in exactly one status or one error: `requests == sum(status) + errors.total()`. A new connection belongs to the request
//! that needed it: its time is in that request's latency and in its timeout. In a closed loop latency counts from the start of the request,
//! in an open loop from its intended start, so that a stalled server cannot hide the requests that it kept from being sent (coordinated
//! omission, G. Tene, "How NOT to Measure Latency"). A request ended by its timeout is in the latency histogram with at least the timeout.
//!
//! At the end of the offering no request starts; those under way are waited for at most one timeout. They are counted in `requests`, `status`
//! and `good`, and once more in `drained` and `drained_good`: throughput and goodput are what ended while load was offered, divided by that
//! time, so neither waiting nor the answers that came meanwhile change them.
//!
//! # Bounds
//! Memory a connection: 256 bytes, with TLS the session of rustls, plus a head that arrived in pieces (at most [`HEAD_BYTES_MAX`], given back above 4 KiB) and the kernel's
//! socket. Memory a thread: a read buffer of 64 KiB, six histograms of 200 KB, the timeout wheel (at most 144 KB). The result holds one
//! [`chokepoint_model::load::Slice`] for each tenth of a second, at most a day, and at most 6,000 [`chokepoint_model::load::Point`]s, of 10 ms in
//! a load of up to a minute and of twice that whenever they would be more. How the slowest requests spread over the time is kept in at most 64 pieces a thread, 8 KB. Requests of an open loop that wait for a connection are two
//! numbers, whatever their count, because their intended starts follow from their numbers. Of at most 16 connections a thread, 64 in all, the kernel's account (1 KiB) is kept. The prepared requests of all targets are at most 256 MiB.
#![deny(unsafe_code)]

mod engine;
mod host;
mod limits;
mod plan;
mod protocol;
mod results;
mod targets;

pub use engine::control::{Control, Progress};
pub use engine::run::{LoadError, measure, run};
pub use engine::stages::{Stage, Stages, StagesError};
pub use host::address::Address;
pub use host::warmth;
pub use limits::guard::{Guard, GuardError};
pub use limits::threshold::{Judged, Threshold, ThresholdError, Unit};
pub use plan::{Options, Plan, PlanError, Protocol};
pub use protocol::answer::{HEAD_BYTES_MAX, HEADERS_MAX, INTERIM_MAX};
pub use protocol::tls::{Tls, Trust};
pub use results::live::{Tenth, View, Viewer};
pub use targets::{Order, Target, Targets};
