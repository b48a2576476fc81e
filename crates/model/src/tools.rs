//! The model of verbs other than `diagnose`: a load by itself, each tier by itself, captures, the figures of a
//! measurement, and the kernel's TCP measurements.

pub mod bench;
pub mod bisect;
pub mod edge;
pub mod figures;
pub mod surroundings;
pub mod tcp;
