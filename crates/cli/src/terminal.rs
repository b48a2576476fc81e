//! The terminal: what is printed, asked, and drawn again and again while something runs.

pub(crate) mod live;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod prompt;
