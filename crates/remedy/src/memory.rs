//! Configurations that this program has put in force. Such a file is newer than the server's start, and yet the server has read it. They are kept in
//! the state directory for later runs.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::process;
use crate::record::Checksum;
use crate::state_dir;

/// Most servers remembered.
const SERVERS_MAX: usize = 256;
/// Name of the file in the state directory, and version of its format.
const NAME: &str = "in-force.json";
const SCHEMA: &str = "chokepoint/in-force/1";
/// Largest file, bytes. A file of a configuration takes some 80.
const BYTES_MAX: u64 = 8 << 20;

/// A server's configuration when it was put in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Configuration {
    pid: u32,
    start_ticks: u64,
    main: String,
    /// Its files and directories with their checksums.
    #[serde(rename = "prints")]
    checksums: Vec<(String, Checksum)>,
}

/// All remembered configurations.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Memory {
    schema: String,
    boot_id: String,
    servers: Vec<Configuration>,
}

/// The configurations that this process remembers.
static MEMORY: Mutex<Memory> = Mutex::new(Memory { schema: String::new(), boot_id: String::new(), servers: Vec::new() });

fn memory() -> MutexGuard<'static, Memory> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers that the process with this PID and start time has loaded its configuration with these checksums.
pub(crate) fn remember((pid, start_ticks): (u32, u64), main: &str, checksums: Vec<(String, Checksum)>) {
    memory().add(Configuration { pid, start_ticks, main: main.to_owned(), checksums });
}

/// True where the process has loaded a path with this checksum.
pub(crate) fn is_in_force(process: (u32, u64), main: &str, path: &str, checksum: Checksum) -> bool {
    let is_it = |seen: &&Configuration| (seen.pid, seen.start_ticks) == process && seen.main == main;
    memory().servers.iter().filter(is_it).any(|seen| seen.checksums.iter().any(|(known, then)| known == path && *then == checksum))
}

/// Loads what other runs of this boot remembered. The caller holds the lock, under which it was written. If it cannot be read, the user is asked more
/// often.
pub(crate) fn load(dir: &Path, boot_id: &str) {
    let earlier = Memory::read(dir, boot_id).unwrap_or_default();
    let mut memory = memory();
    earlier.servers.into_iter().for_each(|server| memory.add(server));
}

/// Saves what is remembered for later runs. If it cannot be written, the user is asked more often.
pub(crate) fn save(dir: &Path, boot_id: &str) {
    drop(memory().write(dir, boot_id));
}

impl Memory {
    fn add(&mut self, server: Configuration) {
        self.servers.retain(|seen| seen.main != server.main);
        if self.servers.len() < SERVERS_MAX {
            self.servers.push(server);
        }
    }

    /// Reads the file. Only this user can write it (see `state_dir`).
    fn read(dir: &Path, boot_id: &str) -> io::Result<Self> {
        let mut bytes = Vec::new();
        File::open(dir.join(NAME))?.take(BYTES_MAX).read_to_end(&mut bytes)?;
        let memory: Self = serde_json::from_slice(&bytes)?;
        Ok(if memory.schema == SCHEMA && memory.boot_id == boot_id { memory } else { Self::default() })
    }

    /// Writes the file, without servers that have ended.
    fn write(&self, dir: &Path, boot_id: &str) -> io::Result<()> {
        let is_alive = |server: &&Configuration| process::start_ticks(server.pid) == Some(server.start_ticks);
        let servers: Vec<Configuration> = self.servers.iter().filter(is_alive).cloned().collect();
        if servers.is_empty() && !dir.join(NAME).exists() {
            return Ok(());
        }
        let bytes = serde_json::to_vec(&Self { schema: SCHEMA.to_owned(), boot_id: boot_id.to_owned(), servers })?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        state_dir::replace(dir, NAME, &bytes, 0o600)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_runs_of_this_boot_remember_a_configuration_while_its_server_lives() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let server = |pid, start_ticks, main: &str| Configuration {
            pid,
            start_ticks,
            main: main.to_owned(),
            checksums: vec![("/etc/x".to_owned(), Checksum::of(b"1"))],
        };
        let lives = server(own, process::start_ticks(own).unwrap(), "/etc/a");
        let mut memory = Memory::default();
        memory.write(dir.path(), "boot").unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing to remember");
        memory.add(lives.clone());
        memory.add(server(own, 1, "/etc/b"));
        memory.write(dir.path(), "boot").unwrap();
        assert_eq!(Memory::read(dir.path(), "boot").unwrap().servers, [lives]);
        assert_eq!(Memory::read(dir.path(), "another").unwrap(), Memory::default());
        std::fs::write(dir.path().join(NAME), "{").unwrap();
        assert!(Memory::read(dir.path(), "boot").is_err());
        let mut many = Memory::default();
        (0..=SERVERS_MAX).for_each(|n| many.add(server(own, 1, &n.to_string())));
        assert_eq!(many.servers.len(), SERVERS_MAX);
    }
}
