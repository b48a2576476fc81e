//! The load generator: HTTP/1.1 (also over TLS) or FastCGI requests at a fixed concurrency or a fixed rate. Each kind of outcome is counted separately.
//!
//! One event loop for each thread, and no allocation for a request (except with TLS): requests are rendered once, a thread has one read buffer, deadlines
//! are kept in a coarse timer wheel. A request costs a write and a read; with a connection of its own also socket, setsockopt, connect, epoll_ctl and close.
//!
//! # What is counted
//! Each request ends in exactly one status or one error: `requests == sum(status) + errors.total()`. A new connection belongs to the request that needed it:
//! its time is part of that request's latency and timeout. In a closed loop latency counts from the start of the request, in an open loop from its intended
//! start. A stalled server therefore cannot hide the requests that it kept from being sent (coordinated omission, G. Tene, "How NOT to Measure Latency"). A
//! request ended by its timeout is in the latency histogram with at least the timeout.
//!
//! Once the load ends, no request starts. Requests in flight are awaited for at most one timeout. They are counted in `requests`, `status` and `good`, and
//! again in `drained` and `drained_good`. Throughput and goodput are the requests that ended while load was offered, divided by that time, so neither the
//! waiting nor the answers during it change them. A request of a warm-up that ends after it is part of these rates (`early`) and of no other number.
//!
//! # Bounds
//! Memory of a connection: 256 bytes, with TLS the session of rustls, plus a head that arrived in pieces (at most [`HEAD_BYTES_MAX`], freed above 4 KiB) and
//! the kernel's socket. Memory of a thread: a read buffer of 64 KiB, six histograms of 200 KB, the timer wheel (at most 144 KB). The result holds one
//! [`chokepoint_model::load::Slice`] for each tenth of a second, at most a day, and at most 6,000 [`chokepoint_model::load::Point`]s. A point covers 10 ms in a
//! load of up to a minute; its length doubles whenever there would be more points. How the slowest requests spread over time takes at most 64 pieces, 8 KB,
//! in each thread. Requests of an open loop that wait for a connection take two numbers in all, since their intended starts follow from their numbers. TCP_INFO
//! (1 KiB) is kept for at most 16 connections of a thread, 64 in all. The rendered requests of all targets take at most 256 MiB.
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
pub use limits::threshold::{Figures, Threshold, ThresholdError, ThresholdResult, Unit};
pub use plan::check::PlanError;
pub use plan::{Options, Plan, Protocol};
pub use protocol::answer::INTERIM_MAX;
pub use protocol::completion::{HEAD_BYTES_MAX, HEADERS_MAX};
pub use protocol::tls::{Tls, Trust};
pub use results::live::{View, Viewer};
pub use results::published::Tenth;
pub use targets::{Order, Target, Targets};
