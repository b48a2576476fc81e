//! The scenario in which an attack runs: what its file says, the attacker's home, and the programs that the attackers share.

use toml::{Table, Value};

use super::document::{ATTACKER, Attack};
use crate::scenario::{Scenario, ScenarioError};

/// What attacks written in Python share.
const PYTHON: &str = include_str!("../../data/attacker.py");
/// The source of a program that looks like a server.
const LOOK_ALIKE: &str = include_str!("../../data/look_alike.c");
/// The only host, unless the attack has its own.
const HOST: &str = "host";

impl Attack {
    /// The scenario. `chokepoint` is the path of the binary under attack.
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub(crate) fn scene(&self, chokepoint: &str) -> Result<Scenario, ScenarioError> {
        let hosts = if self.hosts.is_empty() { vec![table([("name", HOST.into())])] } else { self.hosts.clone() };
        let file =
            |path: &str, text: &str, user: u32| table([("path", path.into()), ("user", user.to_string().into()), ("content", text.into())]);
        let shared = [file("lib/attacker.py", PYTHON, 0), file("home/look_alike.c", LOOK_ALIKE, ATTACKER)];
        let on_host = |mut server: Table| {
            server.entry("host").or_insert_with(|| HOST.into());
            server
        };
        let scene = table([
            ("schema", Value::Integer(1)),
            ("name", self.lab_name().into()),
            ("title", format!("Another user {}", self.does).into()),
            ("host", tables(hosts)),
            ("link", tables(self.links.clone())),
            ("file", tables(shared.into_iter().chain(self.files.clone()))),
            ("server", tables(self.servers.iter().cloned().map(on_host))),
            ("client", table([("host", HOST.into())]).into()),
            ("load", table([("url", "http://127.0.0.1/".into())]).into()),
        ]);
        let origin = format!("attack {}", self.name);
        let text = toml::to_string(&scene).map_err(|error| ScenarioError::Attack { origin: origin.clone(), why: error.to_string() })?;
        Scenario::parse(&text.replace("{chokepoint}", chokepoint), &origin)
    }
}

fn table<const N: usize>(fields: [(&str, Value); N]) -> Table {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn tables(tables: impl IntoIterator<Item = Table>) -> Value {
    Value::Array(tables.into_iter().map(Value::Table).collect())
}
