//! Counts how often something happens: tracepoints, probes and counters of the processor.

pub(crate) mod calibrate;
pub(crate) mod count;
pub(crate) mod counter;
pub(crate) mod probe;
pub mod text;
