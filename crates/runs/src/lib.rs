//! Kept runs: results of `diagnose`, `bench` and experiments in one SQLite file, with what they were measured on.
//!
//! The samples and incidents of `watch` are in a file of their own, `History`.
//!
//! The file of the runs is bounded: [`RUNS_MAX`] runs and [`BYTES_MAX`] bytes, the oldest go first. It knows no verdict and no report: documents are kept as text.

#![deny(unsafe_code)]

pub mod comparison;
mod database;
mod document;
mod error;
mod history;
mod place;
mod run;
mod store;

pub use error::RunsError;
pub use history::{History, INCIDENTS_MAX, Incident, KeptProfiles, KeptSample, Retention, SamplePlace};
pub use run::{Better, Figure, Filter, NewRun, Run, State, Summary, Surroundings};
pub use store::{BYTES_MAX, FILE, RUNS_MAX, Store};
