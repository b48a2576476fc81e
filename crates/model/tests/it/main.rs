//! The integration tests of this crate, by subject; each file says whether it is live or deterministic.

mod bench;
mod bisect;
mod causes;
mod fix;
mod path;
mod predict;
mod profile;
mod properties;
mod servers;
mod shared_namespace;
mod simulator;
mod stage;
mod stations;
mod status_pages;
mod sums;
mod told;
mod turns;
mod unread;
mod verdicts;
mod wasted;
mod watched;
