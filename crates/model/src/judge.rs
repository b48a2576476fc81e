//! What the readings mean: stations and their findings, causes and symptoms, harm, and the verdict.

pub mod causes;
pub mod diagnose;
pub(crate) mod findings;
pub(crate) mod improvements;
pub mod settle;
pub mod stations;
pub(crate) mod watched;
