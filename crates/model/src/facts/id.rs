//! Ids of what an observation shows. Code compares ids; names are for the report only.

/// A tier by its index on the path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TierId(pub usize);

/// A group of cores with the same tiers, by its index among the path's groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreGroupId(pub usize);
