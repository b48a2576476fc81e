//! Sizing: which load to offer next, where the knee is, the capacity at an objective, how many workers it takes, and what watched traffic leaves in reserve.
//!
//! Pure functions of measured steps and diagnoses: no input or output, no clock. `cli` measures; this crate plans, answers and writes the reports.
#![forbid(unsafe_code)]

pub mod answer;
pub mod capacity;
pub mod growth;
pub mod interval;
pub mod knee;
pub mod law;
pub mod objective;
pub mod reading;
pub mod report;
pub mod reserve;
pub mod search;
pub mod step;
pub mod workers;
