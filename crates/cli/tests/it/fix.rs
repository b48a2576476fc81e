//! `diagnose --fix`, `undo` and the journal that both share.
//!
//! Live: real servers, namespaces and load.

mod impostor;
mod journal;
mod stopping;
mod unread;
