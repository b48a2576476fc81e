//! Files, rights and identity of other processes, none of them trusted.
//!
//! A process may belong to another user. It controls its command line, its root directory, the content of every path that it can write, and when all of that
//! changes. So files are opened only through [`Files`] and read with the [`Rights`] of the responsible user. A process is identified by its [`Identity`] and
//! not by its command line. [`trusted`] checks that nobody else can change a file before root executes it. A unix socket that a configuration names is connected
//! to only as a [`ListeningSocket`].
//!
//! Reads only.

#![deny(unsafe_code)]

mod delay;
mod files;
mod holder;
mod identity;
mod made_up;
mod rights;
mod socket;
mod status;
mod text;
mod trust;
mod writers;

pub use delay::{left_out, of_file, of_process, thread_cpu};
pub use files::{
    Files, open_link, open_link_if, open_named, open_named_regular, path_of, read_bounded, read_kernel, read_own, read_own_or_roots,
};
pub use holder::Holder;
pub use identity::{FileId, Identity, Namespaces, command_line};
pub use rights::{Rights, as_caller};
pub use socket::{ListeningSocket, SocketAtPath, SocketFile, known_socket_file, try_connecting};
pub use text::{printable, printable_json, printable_lines, steers};
pub use trust::{Untrusted, other_writer, trusted, visit};
pub use writers::{Writers, users_of};
