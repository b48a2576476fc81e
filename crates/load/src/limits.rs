//! Limits of a load: guards that stop it, thresholds that it must meet, and the quantities in both.

pub(crate) mod guard;
pub(crate) mod quantity;
pub(crate) mod threshold;
