//! What a load must keep to: guards that stop it, thresholds that it is held against, and the quantities in which both are written.

pub(crate) mod guard;
pub(crate) mod quantity;
pub(crate) mod threshold;
