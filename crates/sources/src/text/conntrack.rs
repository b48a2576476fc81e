//! Files of the connection tracking of a network namespace.

pub(crate) mod entries;
pub(crate) mod states;
pub(crate) mod table;
pub(crate) mod translations;
