//! What the readings mean: stations and their findings, causes and symptoms, harm, and the verdict.

mod at_limit;
pub mod causes;
mod ended;
mod few_samples;
pub mod finding;
mod graph;
pub mod id;
pub(crate) mod improvements;
pub mod location;
pub mod settle;
mod starts;
pub mod station;
pub mod stations;
pub(crate) mod unseen;
pub(crate) mod verdict;
pub(crate) mod warnings;
pub(crate) mod watched;
