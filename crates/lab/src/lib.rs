//! The lab: builds a scenario out of network namespaces, links and real servers, and takes every bit of it away again.
//!
//! A scenario is one TOML file, complete in itself (docs/scenarios.md). [`Lab::up`] builds it; what it is about to create is written to a
//! state file and synced before each step, so that [`down()`] can clean up from that file alone, even after the builder was killed.
//! This crate writes to the host. It measures and judges nothing.

mod cgroup;
mod cores;
mod down;
mod error;
mod names;
mod netns;
mod network;
mod placeholder;
mod prefill;
mod preflight;
mod process;
mod ready;
pub mod scenario;
mod server;
mod spawn;
mod state;
mod sysctl;
mod topology;
mod up;

pub use down::{Conflict, DownOptions, DownReport, Leftover, LeftoverKind, down, down_all, leftovers};
pub use error::LabError;
pub use netns::inside;
pub use preflight::{Missing, Tools, preflight};
pub use scenario::{Problem, Scenario, ScenarioError};
pub use state::run_root;
pub use up::{Lab, Options, ServerInfo};
