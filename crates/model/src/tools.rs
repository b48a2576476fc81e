//! The model of verbs other than `diagnose`: a load by itself, each tier by itself, captures, the figures of a
//! measurement, changes that a plan asks for, and the kernel's TCP measurements.

pub mod asked;
pub mod bench;
pub mod bisect;
pub mod edge;
pub mod figures;
pub mod surroundings;
pub mod tcp;
