//! What a load gave: outcomes, latencies, their course over time, and what is shown while it runs.

pub(crate) mod histogram;
pub(crate) mod live;
pub(crate) mod outcome;
pub(crate) mod series;
pub(crate) mod tails;
pub(crate) mod tally;
