//! What this program put in force itself: afterwards a file is newer than the server's start, and is what the server has read all the same. Kept in the
//! state directory for later runs.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::host;
use crate::process;
use crate::record::Print;

/// Servers that are remembered.
const SERVERS_MAX: usize = 256;
/// The file's name in the state directory, and the version of its format.
const NAME: &str = "in-force.json";
const SCHEMA: &str = "chokepoint/in-force/1";
/// Largest file that is read or written, bytes: a file of a configuration takes some 80.
const BYTES_MAX: u64 = 8 << 20;

/// What a server's configuration was when it was put in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Configuration {
    pid: u32,
    start_ticks: u64,
    main: String,
    /// Paths of its files and directories, and what each was known by.
    prints: Vec<(String, Print)>,
}

/// All that is remembered.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Memory {
    schema: String,
    boot_id: String,
    servers: Vec<Configuration>,
}

/// What this process remembers.
static MEMORY: Mutex<Memory> = Mutex::new(Memory { schema: String::new(), boot_id: String::new(), servers: Vec::new() });

fn memory() -> MutexGuard<'static, Memory> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers that the configuration of a process, known by its number and start, is in force as these prints have it.
pub(crate) fn remember((pid, start_ticks): (u32, u64), main: &str, prints: Vec<(String, Print)>) {
    memory().add(Configuration { pid, start_ticks, main: main.to_owned(), prints });
}

/// True where a path was put in force as this print has it.
pub(crate) fn knows(process: (u32, u64), main: &str, path: &str, print: Print) -> bool {
    let is_it = |seen: &&Configuration| (seen.pid, seen.start_ticks) == process && seen.main == main;
    memory().servers.iter().filter(is_it).any(|seen| seen.prints.iter().any(|(known, then)| known == path && *then == print))
}

/// Takes up what other runs of this boot remembered, while the lock is held: whoever had it last wrote it. Where that cannot be read, less is known, and
/// more is asked.
pub(crate) fn load(dir: &Path, boot_id: &str) {
    let earlier = Memory::read(dir, boot_id).unwrap_or_default();
    let mut memory = memory();
    earlier.servers.into_iter().for_each(|server| memory.add(server));
}

/// Leaves what is remembered to later runs. Where that cannot be written, they ask.
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

    /// The directory is this user's alone (see `state_dir`), and so is the file.
    fn read(dir: &Path, boot_id: &str) -> io::Result<Self> {
        let mut bytes = Vec::new();
        File::open(dir.join(NAME))?.take(BYTES_MAX).read_to_end(&mut bytes)?;
        let memory: Self = serde_json::from_slice(&bytes)?;
        Ok(if memory.schema == SCHEMA && memory.boot_id == boot_id { memory } else { Self::default() })
    }

    /// Servers that ended are left out.
    fn write(&self, dir: &Path, boot_id: &str) -> io::Result<()> {
        let lives = |server: &&Configuration| process::start_ticks(server.pid) == Some(server.start_ticks);
        let servers: Vec<Configuration> = self.servers.iter().filter(lives).cloned().collect();
        if servers.is_empty() && !dir.join(NAME).exists() {
            return Ok(());
        }
        let bytes = serde_json::to_vec(&Self { schema: SCHEMA.to_owned(), boot_id: boot_id.to_owned(), servers })?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        host::replace(dir, NAME, &bytes, 0o600)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_force_is_known_to_later_runs_of_this_boot_while_the_server_lives() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let server = |pid, start_ticks, main: &str| Configuration {
            pid,
            start_ticks,
            main: main.to_owned(),
            prints: vec![("/etc/x".to_owned(), Print::of(b"1"))],
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
