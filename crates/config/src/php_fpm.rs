//! php-fpm configuration: its ini dialect, read as php-fpm 8.2 reads it, the values in force for each pool, and edits in place.

mod edit;
mod effective;
mod error;
mod file;
mod hide;
mod listen;
mod scanner;
mod tree;

#[cfg(test)]
mod tests;

pub use edit::socket::{NoPoolSocket, PoolSocket, pool_listen, second_pool, second_pool_name};
pub use edit::{EditError, Editor};
pub use effective::{Fpm, Global, Manager, Pool, Problem, Version};
pub use error::{LoadError, Syntax, SyntaxError};
pub use file::{Entry, File, Kind, parse};
pub use hide::hide;
pub use listen::{Listen, parse_listen};
pub use tree::Tree;
