//! The verbs that watch traffic and send none.
//!
//! Live: as its files say.

mod ending;
mod hardships;
mod page;
mod prometheus;
mod service;
mod staleness;
mod watch;
mod whereabouts;
