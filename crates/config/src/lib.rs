//! Configuration and logs of the servers on the request's path: read without losing a byte, evaluated by their own rules of inheritance,
//! and edited in place.
//!
//! This crate is pure: it turns text into structures and edits into text. Callers provide the files and their contents through [`Resolve`].
//! Files that are not UTF-8 come in through [`text::decode`] and go out through [`text::encode`].
//!
//! ```
//! use chokepoint_config::nginx::{Address, Editor, Nginx, Tree, Version};
//!
//! let text = "http {\n    server {\n        listen 80 backlog=10; # small\n    }\n}\n";
//! let mut disk = |path: &str| vec![(path.to_owned(), Ok(text.to_owned()))];
//! let tree = Tree::load("/etc/nginx/nginx.conf", None, &mut disk)?;
//! let nginx = Nginx::of(&tree, Version(1, 22, 1));
//! let socket = nginx.http.as_ref().and_then(|http| http.socket(&Address::Ip([0, 0, 0, 0].into(), 80))).expect("it listens");
//! assert_eq!((socket.backlog.value, socket.backlog.origin.to_string().as_str()), (10, "/etc/nginx/nginx.conf:3"));
//!
//! let mut editor = Editor::new(&tree);
//! editor.set_option(socket.option_node().expect("it has a listen"), "backlog", "8192")?;
//! let edited = &editor.finish()?[0];
//! assert_eq!(edited.after, text.replace("backlog=10", "backlog=8192"));
//! assert!(edited.diff().contains("+        listen 80 backlog=8192; # small\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod budget;
pub mod diff;
pub mod dump;
mod edit;
pub mod error_log;
pub mod glob;
pub mod haproxy;
mod hidden;
mod include;
pub mod merge;
pub mod nginx;
pub mod php_fpm;
mod piece;
pub mod postgresql;
mod quantity;
pub mod server_setting;
mod source_line;
pub mod syntax;
pub mod sysctl_d;
pub mod text;

pub use budget::PARSED_BYTES_MAX;
/// The lines of access logs. A crate of its own: it is read for each request.
pub use chokepoint_log_format as log_format;
pub use edit::{Edited, Replacement};
pub use hidden::{HIDDEN, Hidden};
pub use include::{FILE_BYTES_MAX, FILE_COUNT_MAX, Gap, Resolve, Resolved};
pub use source_line::{Node, Origin, Setting, SourceLine};
