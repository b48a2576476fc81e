//! The lab: builds a scenario from network namespaces, links and real servers, and removes all of it again.
//!
//! A scenario is one self-contained TOML file (docs/scenarios.md). [`Lab::up`] builds it. Before each step the lab writes what it is about to create
//! to a state file and syncs it, so that [`down()`] can clean up from that file alone, even after the builder was killed. This crate writes to the
//! host. It measures nothing and judges no diagnosis. An [`Attack`] is a scenario as well: what another user does, and what must hold.

pub mod attack;
mod down;
mod error;
mod lab;
mod machine;
mod preflight;
pub mod scenario;
mod server;
mod state;
mod up;

pub use attack::Attack;
pub use down::report::{Conflict, DownReport};
pub use down::{DownOptions, Leftover, LeftoverKind, down, down_all, leftovers};
pub use error::LabError;
pub use lab::{Lab, ServerInfo};
pub use machine::netns::inside;
pub use preflight::{Missing, Tools, preflight};
pub use scenario::{Problem, Scenario, ScenarioError};
pub use state::run_root;
pub use up::builder::Options;
