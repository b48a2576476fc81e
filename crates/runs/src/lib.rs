//! Kept runs: results of `diagnose`, `bench` and experiments in one SQLite file, with what they were measured on.
//!
//! The file is bounded: [`RUNS_MAX`] runs and [`BYTES_MAX`] bytes, the oldest go first. It knows no verdict and no report: documents are kept as text.

#![deny(unsafe_code)]

pub mod comparison;
mod document;
mod error;
mod place;
mod run;
mod store;

pub use error::RunsError;
pub use run::{Better, Figure, Filter, NewRun, Run, State, Summary, Surroundings};
pub use store::{BYTES_MAX, FILE, RUNS_MAX, Store};
