//! The integration tests of this crate, a file for each subject; each file says whether it is live or deterministic.

mod calibration;
mod noise;
