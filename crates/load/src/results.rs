//! The results of a load: outcomes, latencies, their course over time, and what a viewer sees while it runs.

pub(crate) mod histogram;
pub(crate) mod live;
pub(crate) mod outcome;
pub(crate) mod published;
pub(crate) mod series;
pub(crate) mod tails;
pub(crate) mod tally;
