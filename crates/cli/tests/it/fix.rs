//! `diagnose --fix`, `undo` and the journal that both share.
//!
//! Live: real servers, namespaces and load; the tests check changes, files and output, not speed.

mod impostor;
mod journal;
mod steps;
mod stopping;
mod unread;
