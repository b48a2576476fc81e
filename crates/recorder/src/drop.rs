//! Drops: when a server began to serve its clients worse than in the recent past.
//!
//! A drop in demand is no drop. By Little's law clients with fewer requests have fewer under way, and each is answered as fast as before; a server that can do less
//! has as many or more under way for each that it answers. So three things are judged, each against its own noise in the recent past: the time of a request
//! (under way / rate), the share of requests that were refused or failed, and whether anything listens at all. Where no past is known yet, some things are bad
//! by themselves: failures, refusals, what is full.

mod block;
mod daily;
mod detector;
mod past;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use daily::Daily;
pub use detector::{Detector, Event};

/// In which way clients are served worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Nothing listens for them any more.
    Gone,
    /// A larger share of the requests is refused or fails.
    Losses,
    /// A queue is full, or all workers are taken while as many requests again wait for them.
    Full,
    /// A request takes longer, and they are not more than before.
    Slower,
}

/// Figures of one span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Answers a second; null if they were not counted.
    pub rate_rps: Option<f64>,
    /// Requests under way.
    pub under_way: Option<f64>,
    /// Mean response time, milliseconds; null if nothing was answered.
    pub response_ms: Option<f64>,
    /// Share of requests that were refused or failed, 0 to 1; null if it was not counted how many were answered.
    pub bad_share: Option<f64>,
    /// Requests a second that were refused or lost; null if nothing was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_per_s: Option<f64>,
}

impl Figures {
    /// The median of each.
    fn medians(all: &[Self]) -> Self {
        let median = |of: &dyn Fn(&Self) -> Option<f64>| {
            let values: Vec<f64> = all.iter().filter_map(of).collect();
            chokepoint_statistics::median(&values)
        };
        Self {
            rate_rps: median(&|figures| figures.rate_rps),
            under_way: median(&|figures| figures.under_way),
            response_ms: median(&|figures| figures.response_ms),
            bad_share: median(&|figures| figures.bad_share),
            lost_per_s: median(&|figures| figures.lost_per_s),
        }
    }
}

/// What a drop is measured by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Against {
    /// The last minutes.
    #[default]
    Minutes,
    /// The same time of day on the days before.
    Days,
    /// Nothing: what was seen is bad whatever was before, and nothing is known of that yet.
    Nothing,
}

/// A drop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Drop {
    /// The server.
    pub target: String,
    /// When it began, seconds since 1970.
    pub since_s: u64,
    /// In which ways, the worst first.
    pub kinds: Vec<Kind>,
    /// What it is measured by.
    #[serde(default)]
    pub against: Against,
    /// Before it: medians of that time.
    pub before: Figures,
    /// Since then: medians.
    pub during: Figures,
}
