//! nginx configuration: a parser that accepts and refuses what nginx itself does and keeps every byte, the values in force, and edits in place.

mod asked;
mod directives;
mod dump;
mod edit;
mod effective;
mod error;
mod file;
mod hide;
mod kept;
mod lexer;
mod limits;
mod listen;
mod location;
mod logs;
mod lua;
mod own;
mod pass;
mod pattern;
mod quote;
mod reuse;
mod route;
mod select;
mod server;
mod server_name;
mod settings;
mod tree;
mod upstream;
mod version;

#[cfg(test)]
mod tests;

pub use asked::{Asked, Asking, Unasked};
pub use edit::{EditError, Editor, Position};
pub use effective::{Http, Main, Nginx, Problem, Stream, StreamServer, WorkerProcesses};
pub use error::{LoadError, Syntax, SyntaxError};
pub use file::{Body, Directive, File, Word, parse};
pub use hide::hide;
pub use limits::{ConnLimit, Delay, LimitZone, RateLimit};
pub use listen::{Address, Backlog, Listen, ListenAddress, ListenSocket, SoKeepalive};
pub use location::{Condition, Location, Matcher};
pub use logs::{AccessLog, AccessLogs, Destination, ErrorLog, LogFormat};
pub use own::OwnAnswer;
pub use pass::{Pass, PassKind, Reuse, Target};
pub use pattern::{Match, Pattern};
pub use quote::quoted;
pub use reuse::{FastcgiReuse, NoReuse, fastcgi_reuse, keep_fastcgi};
pub use route::{Candidate, Query, Sought, Step};
pub use select::{LocalAddress, Selection};
pub use server::Server;
pub use server_name::ServerName;
pub use settings::{Occurrence, Settings};
pub use tree::Tree;
pub use upstream::{Balance, Keepalive, Upstream, UpstreamServer};
pub use version::Version;
