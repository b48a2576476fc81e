//! The integration tests of this crate, a file for each subject; each file says whether it is live or deterministic.

mod bench;
mod bisect;
mod capture;
mod diagnosis_profile;
mod experiment;
mod fix;
mod harness;
mod lab;
mod port_search;
mod profile;
mod recording_bounds;
mod replay;
mod report_files;
mod security;
mod sizing;
mod streams;
mod targets;
mod terminal_views;
mod usage;
mod watching;
