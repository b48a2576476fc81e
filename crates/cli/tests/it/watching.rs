//! The verbs that watch traffic and send none.
//!
//! Live: as its files say.

mod prometheus;
mod watch;
mod whereabouts;
