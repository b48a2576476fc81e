//! What chokepoint knows, as pure functions over data: readings, the request path and its stations, findings, remedies and the report.
//!
//! This crate never does any input or output, reads no clock and starts no thread. Everything that it is told comes in an
//! [`observation::Observation`]; everything that it says goes out in a [`report::Diagnosis`].
#![forbid(unsafe_code)]

pub mod bench;
pub mod bisect;
pub mod catalogue;
pub mod causes;
pub mod change;
pub mod diagnose;
pub mod edge;
pub mod explain;
pub mod facts;
mod findings;
pub mod fix;
pub mod harm;
mod improvements;
mod ledger;
pub mod load;
pub mod message;
pub mod observation;
pub mod path;
pub mod predict;
pub mod profile;
pub mod reading;
pub mod readings;
pub mod remedies;
pub mod report;
pub mod series;
pub mod settle;
pub mod spread;
pub mod stations;
pub mod tcp;
pub mod traffic;
pub mod url;
mod watched;
pub mod whereabouts;
mod wire;
