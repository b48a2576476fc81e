//! What is read on behalf of other processes: their files, rights and identity, none of them trusted.
//!
//! A process may belong to another user. It chooses its command line, its root directory, what lies at every path that it can write, and when all
//! of that changes. So files are opened through [`Files`] alone, read with the [`Rights`] of who owns the reading, a process is known by its
//! [`Identity`] and not by its words, and [`trusted`] says whether nobody else can change a file before root executes it.
//!
//! Reads only.

#![deny(unsafe_code)]

mod files;
mod identity;
mod rights;
mod text;
mod trust;
mod within;

pub use files::{Files, open_link, open_link_if, read_bounded};
pub use identity::{FileId, Identity, Namespaces};
pub use rights::Rights;
pub use text::{printable, printable_json, printable_lines, steers};
pub use trust::{Untrusted, other_writer, trusted, visit};
pub use within::within;
