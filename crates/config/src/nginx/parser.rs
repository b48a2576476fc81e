//! One file of an nginx configuration: nginx's own tokens, and a tree over the text that keeps every byte.

pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod lexer;
mod lua;
pub(crate) mod quote;
