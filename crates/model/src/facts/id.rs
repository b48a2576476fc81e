//! Ids of what an observation shows: they are compared, names are for the report alone.

/// A tier of the path, by its place there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TierId(pub usize);

/// Cores on which the same tiers may run, by their place among the path's groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreGroupId(pub usize);
