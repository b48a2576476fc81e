//! Configuration and logs of the servers on the request's path: read without losing a byte, judged by their own rules of inheritance, and edited in place.
//!
//! This crate is pure: it turns text into structures and edits into text. Which files there are, and what is in them, its callers say through
//! [`Resolve`]; files that are not UTF-8 come in through [`text::decode`] and go out through [`text::encode`].
#![forbid(unsafe_code)]

pub mod diff;
mod edit;
pub mod error_log;
mod glob;
mod include;
pub mod log_format;
pub mod nginx;
pub mod php_fpm;
mod place;
mod quantity;
pub mod sysctl_d;
pub mod text;

pub use edit::{Edited, Replacement};
pub use include::{FILE_BYTES_MAX, FILE_COUNT_MAX, Gap, Resolve, Resolved};
pub use place::{Node, Origin, Place, Setting};
