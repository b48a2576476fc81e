//! Reports as text for a terminal. This module draws and never judges.

mod bench;
mod brief;
mod capacity;
mod diagnosis;
mod experiment;
mod explain;
pub(crate) mod incidents;
pub(crate) mod page;
pub(crate) mod runs;
mod size;
mod whereabouts;
mod wrap;

#[cfg(test)]
mod tests;

pub(crate) use bench::bench_text;
pub(crate) use brief::{Again, NOT_CONFIRMED, brief, brief_of};
pub(crate) use capacity::capacity_text;
pub(crate) use diagnosis::render;
pub(crate) use experiment::experiment;
pub(crate) use explain::page_text;
pub(crate) use size::size_text;
pub(crate) use whereabouts::{lacking, whereabouts_text};
pub(crate) use wrap::columns;
