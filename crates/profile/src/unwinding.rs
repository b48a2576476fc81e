//! User stacks: mappings of processes, program files with their unwind tables, and the walk up the stack.

pub(crate) mod expressions;
pub(crate) mod image;
pub(crate) mod mappings;
pub(crate) mod sections;
pub(crate) mod tables;
pub(crate) mod unwinder;
