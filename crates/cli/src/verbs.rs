//! The verbs of the command line, a module for each.

pub(crate) mod bench;
pub(crate) mod capacity;
pub(crate) mod diagnose;
pub(crate) mod experiment;
pub(crate) mod explain;
pub(crate) mod incidents;
pub(crate) mod lab;
pub(crate) mod profile;
pub(crate) mod runs;
pub(crate) mod size;
pub(crate) mod streams;
pub(crate) mod tcp;
pub(crate) mod undo;
pub(crate) mod watch;
pub(crate) mod whereabouts;
