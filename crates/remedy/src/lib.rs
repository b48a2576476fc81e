//! The only writer to the host: journal, apply, verify, undo.
//!
//! A change is journalled and synced to disk before it is made, verified to be in force, and taken back only where the host still holds what
//! was set. Nothing here decides what to change: that comes as [`chokepoint_model::change::Change`].
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
mod cgroup;
mod conflict;
mod error;
mod host;
mod journal;
mod lock;
mod memory;
mod netns;
mod process;
mod record;
mod server;
mod setting;
mod stack;
mod state_dir;
mod store;
mod sysctl;
mod undo;

pub use apply::{Applied, AppliedChange, Consent, Step};
pub use conflict::Forgotten;
pub use error::{ApplyError, RemedyError};
pub use host::{HostChange, HostPending, HostSet};
pub use record::Purpose;
pub use server::{Activating, Plan, Unread, diff, plan};
pub use state_dir::{boot_id, default_state_dir, host_state_dir};
pub use store::{Guard, Pending, PendingState, Store};
pub use undo::{Conflict, Failed, Filter, Gone, Restored, UndoReport, UndoStep};
