//! The values in force: the last line that sets each, unless the command line gives it.

use super::tree::Tree;
use crate::{Origin, Setting};

/// The settings whose values are read.
pub const READ: [&str; 6] =
    ["max_connections", "superuser_reserved_connections", "reserved_connections", "port", "listen_addresses", "unix_socket_directories"];

/// What bears on how many clients are served, with PostgreSQL's defaults (src/backend/utils/misc/guc_tables.c).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Postgresql {
    /// Connections of clients at a time. More are refused.
    pub max_connections: Setting<u64>,
    /// Those of them that only superusers get.
    pub superuser_reserved: u64,
    /// Those of the others that only members of pg_use_reserved_connections get (since PostgreSQL 16).
    pub reserved: u64,
    /// The port of its sockets.
    pub port: u16,
    /// Where it listens over TCP: names and addresses, or "*".
    pub listen_addresses: Vec<String>,
    /// Directories of its unix sockets. `None`: those that were chosen when it was built.
    pub unix_directories: Option<Vec<String>>,
}

impl Postgresql {
    /// The values in force. `given`: settings of the command line, which count more than files.
    pub fn of(tree: &Tree, given: &[(String, String)]) -> Self {
        let value = |name: &str| -> Option<Setting<String>> {
            let own = given.iter().rfind(|(known, _)| known == name);
            let own = own.map(|(_, value)| Setting { value: value.clone(), origin: Origin::CommandLine });
            own.or_else(|| tree.last(name).map(|(entry, place)| Setting::set(entry.value.clone(), place)))
        };
        let number = |name: &str, default: u64| {
            let set = value(name).and_then(|found| Some(Setting { value: whole(&found.value)?, origin: found.origin }));
            set.unwrap_or(Setting { value: default, origin: Origin::Default })
        };
        let list =
            |text: String| text.split(',').map(|part| part.trim().trim_matches('"').to_owned()).filter(|part| !part.is_empty()).collect();
        Self {
            max_connections: number("max_connections", 100),
            superuser_reserved: number("superuser_reserved_connections", 3).value,
            reserved: number("reserved_connections", 0).value,
            port: u16::try_from(number("port", 5432).value).unwrap_or(5432),
            listen_addresses: list(value("listen_addresses").map_or_else(|| "localhost".to_owned(), |found| found.value)),
            unix_directories: value("unix_socket_directories").map(|found| list(found.value)),
        }
    }

    /// Connections that a client without privileges can have.
    pub fn for_all(&self) -> u64 {
        self.max_connections.value.saturating_sub(self.superuser_reserved).saturating_sub(self.reserved)
    }
}

/// A number as PostgreSQL reads it (`parse_int`).
fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
