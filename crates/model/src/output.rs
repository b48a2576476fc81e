//! What is said to users: the report and its parts, and every sentence of it.

pub mod catalogue;
pub mod diagnose;
pub mod explain;
pub mod message;
pub mod outcome;
mod plural;
pub(crate) mod profile;
pub mod readings;
pub mod report;
pub mod setting;
pub mod whereabouts;
pub(crate) mod wire;
