//! What chokepoint knows, as pure functions over data: readings, the request path and its stations, findings, remedies and the report.
//!
//! This crate never does any input or output, reads no clock and starts no thread. Everything that it is told comes in an
//! [`observation::Observation`]; everything that it says goes out in a [`report::Diagnosis`].
#![forbid(unsafe_code)]

pub mod facts;
pub mod fix;
mod judge;
mod ledger;
pub mod observation;
mod output;
pub mod predict;
mod tools;

pub use facts::{path, profile, spread, traffic, url};
pub use fix::{change, remedies};
pub use judge::{causes, diagnose, harm, settle, stations};
pub use observation::{load, reading, series};
pub use output::{catalogue, explain, message, readings, report, whereabouts};
pub use tools::{bench, bisect, edge, tcp};
