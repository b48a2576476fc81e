//! nginx configuration: a parser that accepts and refuses the same files as nginx and keeps every byte, the values in force, and edits in
//! place.

mod dump;
mod edit;
mod effective;
mod hide;
mod parser;
mod request;
mod tree;

#[cfg(test)]
mod tests;

pub use edit::address::{fastcgi_address, move_fastcgi};
pub use edit::debug_log::{DebugLog, LogLevels, NoLevels, set_log_levels};
pub use edit::reuse::{FastcgiReuse, NoReuse, fastcgi_reuse, keep_fastcgi};
pub use edit::sessions::{NoSessionCache, SessionCache, TlsSessions, set_session_cache};
pub use edit::{EditError, Editor, Position};
pub use effective::limits::{ConnLimit, Delay, LimitZone, RateLimit};
pub use effective::listen::{Address, Backlog, Listen, ListenAddress, ListenSocket, SoKeepalive};
pub use effective::location::{Condition, Location, Matcher};
pub use effective::logs::{AccessLog, AccessLogs, Destination, ErrorLog, LogFormat};
pub use effective::pass::{Pass, PassKind, Target};
pub use effective::pattern::{Match, Pattern};
pub use effective::scope::Problem;
pub use effective::server::Server;
pub use effective::server_name::ServerName;
pub use effective::settings::{Occurrence, Settings};
pub use effective::upstream::{Balance, Keepalive, Upstream, UpstreamServer};
pub use effective::upstream_reuse::Reuse;
pub use effective::version::Version;
pub use effective::{Http, Main, Nginx, Stream, StreamServer, WorkerProcesses};
pub use hide::hide;
pub use parser::error::{Syntax, SyntaxError};
pub use parser::file::{Body, Directive, File, parse};
pub use parser::lexer::Word;
pub use parser::quote::quoted;
pub use request::own_answer::OwnAnswer;
pub use request::reach::ReachedPass;
pub use request::route::{Candidate, Query, RoutedUri, Step};
pub use request::select::{LocalAddress, Selection};
pub use request::upstream_request::{ClientRequest, UnknownRequest, UpstreamRequest};
pub use tree::{LoadError, Tree};
