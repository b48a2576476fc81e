//! The integration tests of this crate: the search and the answers on synthetic servers.
//!
//! Deterministic: pure functions.

mod advice;
mod queues;
mod reserves;
mod searches;
