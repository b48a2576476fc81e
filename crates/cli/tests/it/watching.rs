//! The verbs that watch traffic and send none.
//!
//! Live: as its files say.

mod hardships;
mod page;
mod prometheus;
mod service;
mod watch;
mod whereabouts;
