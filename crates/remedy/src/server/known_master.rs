//! The journal's record of a server's master, by which a later undo finds that server again and no look-alike.

use std::path::Path;

use chokepoint_foreign::{FileId, Identity};
use serde::{Deserialize, Serialize};

use crate::state_dir::boot_id;

/// A master at the time of the edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownMaster {
    /// Its boot: namespaces have other numbers in the next one.
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

impl KnownMaster {
    pub(crate) fn of(identity: &Identity) -> Self {
        Self {
            boot_id: boot(),
            executable: path_of(identity),
            device: identity.executable.device,
            inode: identity.executable.inode,
            uids: identity.uids,
            network: identity.namespaces.network,
        }
    }

    /// True for a process of the same users that executes the same program in the same network namespace. An upgrade may have replaced the program's file.
    /// Mount and user namespaces are checked elsewhere, for every master.
    pub(crate) fn matches(&self, identity: &Identity) -> bool {
        let file = FileId { device: self.device, inode: self.inode };
        let same_program = file == identity.executable || self.executable == path_of(identity);
        let same_network = self.boot_id != boot() || self.network == identity.namespaces.network;
        same_program && same_network && self.uids == identity.uids
    }
}

fn boot() -> String {
    boot_id(Path::new("/")).unwrap_or_default()
}

/// The executable's path without " (deleted)".
pub(super) fn path_of(identity: &Identity) -> String {
    let path = identity.executable_path.to_string_lossy();
    path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_of_an_earlier_version_is_read() {
        let backup: crate::record::Backup = serde_json::from_str(r#"{"path":"/x","before":"","after":[]}"#).unwrap();
        assert!(backup.master.is_none() && backup.in_force.is_empty());
    }

    #[test]
    fn another_user_program_or_network_is_another_server() {
        let own = Identity::of(Path::new("/proc"), std::process::id()).unwrap();
        let known = KnownMaster::of(&own);
        assert!(known.matches(&own));
        let upgraded = Identity { executable: FileId { device: 1, inode: 1 }, ..own.clone() };
        assert!(known.matches(&upgraded), "the same path after an upgrade");
        let replaced = Identity { executable_path: format!("{} (deleted)", path_of(&own)).into(), ..own.clone() };
        assert!(known.matches(&replaced));
        let copy = Identity { executable_path: "/home/x/nginx".into(), ..upgraded };
        assert!(!known.matches(&copy));
        assert!(!known.matches(&Identity { uids: own.uids.map(|uid| uid + 1), ..own.clone() }));
        let mut namespaces = own.namespaces;
        namespaces.network += 1;
        let elsewhere = Identity { namespaces, ..own };
        assert!(!known.matches(&elsewhere));
        assert!(KnownMaster { boot_id: "another".to_owned(), ..known }.matches(&elsewhere), "numbers of another boot say nothing");
    }
}
