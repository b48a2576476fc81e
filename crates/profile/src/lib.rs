//! Where the CPU goes: samples of what runs, with whole stacks and names, put into layers, bounded and drawn.
//!
//! `Sampler` gathers a `Profile`; everything else is made of that: `layers` says what kind of work each sample is, `tree`, `folded` and the
//! pictures show it. Only the sampler and what it calls read the host; nothing here writes to it.

mod calibrate;
mod collector;
mod count;
pub mod counts_text;
pub mod difference;
pub mod drops;
pub mod drops_text;
mod error;
mod event;
pub mod folded;
mod host;
#[cfg(test)]
mod hostile;
mod image;
mod inline;
mod jit;
mod kernel;
pub mod layers;
mod maps;
mod names;
pub mod parts;
mod peers;
pub mod pictures;
mod probe;
mod profile;
mod record;
pub mod report;
mod ring;
mod sampler;
mod tables;
pub mod text;
mod tracefs;
pub mod tree;
mod unwind;
mod waiting;
pub mod waits;
pub mod waits_text;

pub use count::{COUNTS_SCHEMA, Count, Counting, Counts, ProgramCount};
pub use error::Error;
pub use event::Clock;
pub use probe::{DEFAULT, What, WhatError, counters, lacking};
pub use profile::{Core, Frame, FrameKind, Profile, Quality, ReadError, SCHEMA, Sample, Stack, StackEnd, Thread};

pub use sampler::{BEGIN_S, FREQUENCY_HZ_MAX, Options, Sampler, Scope};
pub use waiting::Waiting;
