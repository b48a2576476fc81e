//! The model: pure functions from readings to the request path, its stations, findings, remedies and the report.
//!
//! This crate does no input or output, reads no clock and starts no thread. Its input is an [`observation::Observation`], its output a [`report::Diagnosis`].
#![forbid(unsafe_code)]

pub mod facts;
pub mod fix;
mod judge;
mod ledger;
pub mod observation;
mod output;
pub mod predict;
pub mod quantity;
mod tools;

pub use facts::path::has_one_lock;
pub use facts::pool::{MemoryMeasure, PoolMemory, Staffing, configured as php_fpm_pools};
pub use facts::{harm, owner, path, profile, spread, traffic, url};
pub use fix::{change, remedies};
pub use judge::{causes, finding, id, location, settle, station, stations};
pub use observation::{load, reading, series};
pub use output::{catalogue, diagnose, explain, message, outcome, readings, report, setting, whereabouts};
pub use tools::{asked, bench, bisect, edge, figures, surroundings, tcp};
