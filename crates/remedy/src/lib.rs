//! The only writer to the host: journal, apply, verify, undo.
//!
//! Each change is journalled and synced to disk before it is made, and verified to be in force. It is taken back only if the host still holds the
//! value that was set. This crate does not decide what to change: the caller passes [`chokepoint_model::change::Change`]s.
//!
//! ```no_run
//! use chokepoint_remedy::{Filter, Purpose, Store, boot_id, default_state_dir};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let changes = [];
//! let root = std::path::Path::new("/");
//! let dir = default_state_dir(0, |name| std::env::var_os(name)).ok_or("no state directory")?;
//! let store = Store::open(&dir, root, boot_id(root)?)?;
//! let mut guard = store.lock()?;
//! let purpose = Purpose { finding: "conntrack-table-full".into(), remedy: "raise-conntrack-max".into(), owner: "diagnose".into() };
//! let applied = guard.apply(&changes, &purpose, &mut |_| {})?;
//! assert!(guard.undo(&Filter::Id(applied.id)).is_clean());
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

mod apply;
mod claim;
mod conflict;
mod consent;
mod error;
mod host;
mod journal;
mod lock;
mod memory;
mod netns;
mod owner;
mod process;
mod record;
mod server;
mod setting;
mod stack;
mod state_dir;
mod store;
mod undo;

pub use apply::{Applied, Step};
pub use conflict::Forgotten;
pub use consent::Consent;
pub use error::{ApplyError, RemedyError};
pub use host::{HostChange, HostPending, HostSet};
pub use owner::Running;
pub use process::family;
pub use record::{AppliedChange, Purpose};
pub use server::plan::{Activating, Plan, Unread, diff, plan};
pub use state_dir::{boot_id, default_state_dir, host_state_dir};
pub use store::{Guard, Pending, PendingState, Store};
pub use undo::{Conflict, Failed, Filter, Gone, Restored, UndoReport, UndoStep};
