//! CPU profiles: samples of running code with complete stacks and names, sorted into layers, summarised and drawn.
//!
//! A `Sampler` produces a `Profile`. `layers` gives the kind of work of each sample, `analysis` sums up, `output` shows the result. Only the samplers and
//! the code that they call read the host. Nothing here writes to it.

pub mod analysis;
mod counting;
pub mod drops;
mod error;
mod host;
#[cfg(test)]
mod hostile;
pub mod layers;
mod naming;
pub mod output;
mod profile;
mod sampling;
mod tracefs;
mod unwinding;
mod waiting;

use chokepoint_confined::Format;

pub use counting::count::{COUNTS_SCHEMA, Count, Counting, Counts, ProgramCount};
pub use counting::probe::{DEFAULT, What, WhatError, counters, lacking};
pub use counting::text as counts_text;
pub use error::Error;
pub use profile::stored::ReadError;
pub use profile::{Core, Frame, FrameKind, Profile, Quality, SCHEMA, Sample, Stack, StackEnd, Thread};
pub use sampling::event::Clock;
pub use sampling::sampler::{FREQUENCY_HZ_MAX, Options, START_CPU_S, Sampler};
pub use sampling::scope::Scope;
pub use waiting::sampler::Waiting;
pub use waiting::{text as waits_text, waits};

/// The reader of program files and their debugging information.
pub const FUNCTION_READER: Format = Format::of::<naming::functions::FunctionReader>();
/// The reader of perf maps.
pub const PERF_MAP_READER: Format = Format::of::<naming::perf_map::PerfMapReader>();
