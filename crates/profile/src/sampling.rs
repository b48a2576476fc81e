//! Sampling the CPUs: events, their rings and records, and the collected samples.

pub(crate) mod collector;
pub(crate) mod event;
pub(crate) mod interned;
mod owners;
pub(crate) mod record;
pub(crate) mod ring;
pub(crate) mod sampler;
pub(crate) mod scope;
