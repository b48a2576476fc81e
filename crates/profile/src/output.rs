//! A profile as text, as flame graphs, and in the forms of other programs.

mod escape;
pub mod firefox;
pub mod flame;
pub mod folded;
pub mod pprof;
pub mod svg;
mod table;
pub mod text;
