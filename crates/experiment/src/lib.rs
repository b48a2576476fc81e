//! Experiments: one thing is changed at a time, trials of the variants take turns, and the paired differences say what the change does.
//!
//! [`Plan::parse`] reads a plan and gives its variants; [`order`] gives the order of their trials; [`analysis`] turns the [`Trial`]s that the caller made
//! into a [`report::Experiment`]. This crate does no input or output and knows no clock.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod order;
pub mod patch;
pub mod plan;
pub mod report;
pub mod trial;

pub use plan::{Plan, PlanError, Variant};
pub use trial::{Disturbance, Metric, Trial};
