//! The terminal: what is printed, asked and drawn on it, and the keys and signals that come from it.

pub(crate) mod interrupt;
pub(crate) mod keys;
pub(crate) mod leaving;
pub(crate) mod live;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod prompt;
pub(crate) mod screen;
pub(crate) mod sheet;
pub(crate) mod suspend;
