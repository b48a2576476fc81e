//! PostgreSQL configuration (postgresql.conf and postgresql.auto.conf): its lines, includes, and the values in force that bear on how many clients it serves.

mod effective;
mod error;
mod file;
mod hide;
mod tree;

#[cfg(test)]
mod tests;

pub use effective::{Postgresql, READ};
pub use error::{LoadError, Syntax, SyntaxError};
pub use file::{Entry, File, parse};
pub use hide::hide;
pub use tree::Tree;
