//! The verbs that watch traffic and send none.
//!
//! Live: as its files say.

mod hardships;
mod watch;
mod whereabouts;
