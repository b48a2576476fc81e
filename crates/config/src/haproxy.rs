//! HAProxy configuration: its lines of words, read as HAProxy 2.6 reads them, the sections with their defaults, and the values in force for each proxy.

mod address;
mod edit;
mod effective;
mod error;
mod file;
mod hide;
mod proxy;
mod time;
mod tree;
mod words;

#[cfg(test)]
mod tests;

pub use address::Address;
pub use edit::{EditError, LimitPlace, limit, section_of, set_limit};
pub use effective::{Global, Haproxy};
pub use error::{LoadError, Syntax, SyntaxError};
pub use file::{Entry, File, parse};
pub use hide::hide;
pub use proxy::{Bind, Proxy, ProxyKind, Refusal, Server, Use};
pub use tree::Tree;
pub use words::Word;
