//! What a profile says: its summary, its parts, the tree of its stacks, and how it differs from another.

pub mod difference;
pub mod parts;
pub mod report;
pub mod tree;
