//! A tree of files that stands for a host, and changes to it.

use std::fs;
use std::path::PathBuf;

use chokepoint_model::change::Change;
use chokepoint_model::observation::NetnsId;
use chokepoint_remedy::{Purpose, Store};

pub(crate) const MAX: &str = "net.netfilter.nf_conntrack_max";
pub(crate) const SOMAXCONN: &str = "net.core.somaxconn";
pub(crate) const PORTS: &str = "net.ipv4.ip_local_port_range";

pub(crate) struct Host {
    pub(crate) dir: PathBuf,
    _owned: Option<tempfile::TempDir>,
}

impl Host {
    pub(crate) fn new() -> Self {
        let owned = tempfile::tempdir().unwrap();
        let host = Self { dir: owned.path().to_owned(), _owned: Some(owned) };
        for (key, value) in [(MAX, "200"), (SOMAXCONN, "128"), (PORTS, "32768\t60999")] {
            fs::create_dir_all(host.file(key).parent().unwrap()).unwrap();
            host.set(key, value);
        }
        host
    }

    /// The same host, from another process.
    pub(crate) fn at(dir: PathBuf) -> Self {
        Self { dir, _owned: None }
    }

    pub(crate) fn file(&self, key: &str) -> PathBuf {
        self.dir.join("proc/sys").join(key.replace('.', "/"))
    }

    pub(crate) fn get(&self, key: &str) -> String {
        fs::read_to_string(self.file(key)).unwrap().trim_end().to_owned()
    }

    pub(crate) fn set(&self, key: &str, value: &str) {
        fs::write(self.file(key), format!("{value}\n")).unwrap();
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.dir.join("state")
    }

    pub(crate) fn store(&self) -> Store {
        self.store_in_boot("boot-1")
    }

    pub(crate) fn store_in_boot(&self, boot_id: &str) -> Store {
        Store::open(&self.state_dir(), &self.dir, boot_id.to_owned()).unwrap()
    }
}

pub(crate) fn change(key: &str, from: &str, to: &str) -> Change {
    Change::Sysctl { key: key.into(), netns: NetnsId(7), netns_name: "host".into(), from: from.into(), to: to.into() }
}

pub(crate) fn purpose(owner: &str) -> Purpose {
    Purpose { finding: "conntrack-table-full".into(), remedy: "raise-conntrack-max".into(), owner: owner.into() }
}
