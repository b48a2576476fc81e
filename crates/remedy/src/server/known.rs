//! What the journal remembers a server's master by, so that an undo in a later process finds that server again and no look-alike.

use std::path::Path;

use chokepoint_foreign::{FileId, Identity};
use serde::{Deserialize, Serialize};

use crate::state_dir::boot_id;

/// A master as it was when its file was edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// The boot in which it ran: namespaces have other numbers in the next one.
    boot_id: String,
    /// The path of its executable file.
    executable: String,
    device: u64,
    inode: u64,
    /// Real, effective, saved and file-system user.
    uids: [u32; 4],
    /// Its network namespace.
    network: u64,
}

impl Known {
    pub(super) fn of(identity: &Identity) -> Self {
        Self {
            boot_id: boot(),
            executable: path_of(identity),
            device: identity.executable.device,
            inode: identity.executable.inode,
            uids: identity.uids,
            network: identity.namespaces.network,
        }
    }

    /// True for a process of the same users that executes the same program in the same network. An upgrade replaces the file at its path. Whether
    /// its mount and user namespaces are the own ones is asked of every master alike.
    pub(super) fn is(&self, identity: &Identity) -> bool {
        let file = FileId { device: self.device, inode: self.inode };
        let same_program = file == identity.executable || self.executable == path_of(identity);
        let same_network = self.boot_id != boot() || self.network == identity.namespaces.network;
        same_program && same_network && self.uids == identity.uids
    }
}

fn boot() -> String {
    boot_id(Path::new("/")).unwrap_or_default()
}

/// The executable's path without the mark that it was replaced.
pub(super) fn path_of(identity: &Identity) -> String {
    let path = identity.executable_path.to_string_lossy();
    path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_of_before_is_read() {
        let backup: crate::record::Backup = serde_json::from_str(r#"{"path":"/x","before":"","after":[]}"#).unwrap();
        assert!(backup.master.is_none() && backup.in_force.is_empty());
    }

    #[test]
    fn another_user_program_or_network_is_another_server() {
        let own = Identity::of(Path::new("/proc"), std::process::id()).unwrap();
        let known = Known::of(&own);
        assert!(known.is(&own));
        let upgraded = Identity { executable: FileId { device: 1, inode: 1 }, ..own.clone() };
        assert!(known.is(&upgraded), "the same path after an upgrade");
        let replaced = Identity { executable_path: format!("{} (deleted)", path_of(&own)).into(), ..own.clone() };
        assert!(known.is(&replaced));
        let copy = Identity { executable_path: "/home/x/nginx".into(), ..upgraded };
        assert!(!known.is(&copy));
        assert!(!known.is(&Identity { uids: own.uids.map(|uid| uid + 1), ..own.clone() }));
        let mut namespaces = own.namespaces;
        namespaces.network += 1;
        let elsewhere = Identity { namespaces, ..own };
        assert!(!known.is(&elsewhere));
        assert!(Known { boot_id: "another".to_owned(), ..known }.is(&elsewhere), "numbers of another boot say nothing");
    }
}
