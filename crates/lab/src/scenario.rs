//! Scenario files: their fields, reading them, and the built-in scenarios.

pub(crate) mod document;
mod error;
mod https;
mod locate;
pub(crate) mod names;
pub(crate) mod nearest;
pub(crate) mod placeholder;
pub(crate) mod topology;
mod units;
mod validate;

use std::path::Path;

pub use document::{
    CallsExpect, CaptureExpect, Cgroup, Client, Effect, Expect, FileSpec, Host, Link, LinkEnd, Load, LoadTls, Prefill, ProgramKind, Ready,
    Reference, Route, RouteTo, Scenario, Server, Setting, Shape, SocketsExpect,
};
pub use error::{Problem, ScenarioError};
pub use units::{BitRate, ByteSize, Cidr, FileMode, StatusRanges, TimeSpan};

/// Longest scenario text that is read, bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Name and text of the built-in scenarios, in the order of their names. `build.rs` collects them from `lab/scenarios`.
const BUILTIN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

impl Scenario {
    /// Reads a scenario's text. `origin` is the file's name as the user knows it. Every problem names it with line and column.
    ///
    /// # Errors
    /// [`ScenarioError::Invalid`] with every problem: not TOML, a field unknown, missing or of the wrong kind, or contradictory values.
    pub fn parse(text: &str, origin: &str) -> Result<Scenario, ScenarioError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(ScenarioError::TooLarge { origin: origin.to_owned(), bytes_max: TEXT_BYTES_MAX });
        }
        // The schema comes first, because fields of another schema would all seem wrong.
        validate::check_schema(text).map_err(|problem| error::from_problems(vec![problem], text, origin))?;
        let mut scenario: Scenario = toml::from_str(text).map_err(|error| error::from_toml(&error, text, origin))?;
        scenario.text = text.to_owned();
        scenario.origin = origin.to_owned();
        let problems = validate::validate(&scenario);
        if problems.is_empty() { Ok(scenario) } else { Err(error::from_problems(problems, text, origin)) }
    }

    /// Names of the built-in scenarios, in the order of their names.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// The built-in scenarios, in the order of their names.
    ///
    /// # Errors
    /// Where a built-in file is not valid: a bug, which a test looks for.
    pub fn builtin() -> Result<Vec<Scenario>, ScenarioError> {
        BUILTIN.iter().map(|(name, text)| Scenario::parse(text, &format!("built-in {name}"))).collect()
    }

    /// Finds a scenario by a built-in name or by the path of a file. A name with a `/` or the ending `.toml` is a path.
    ///
    /// # Errors
    /// [`ScenarioError::NotFound`] with the nearest built-in names; [`ScenarioError::Unreadable`] where a file cannot be read; else as [`Scenario::parse`].
    pub fn find(name_or_path: &str) -> Result<Scenario, ScenarioError> {
        let is_path = name_or_path.contains('/') || name_or_path.ends_with(".toml");
        if !is_path && let Some((name, text)) = BUILTIN.iter().find(|(name, _)| *name == name_or_path) {
            return Scenario::parse(text, &format!("built-in {name}"));
        }
        let path = Path::new(name_or_path);
        if !is_path && !path.is_file() {
            let near = nearest::nearest(name_or_path, Scenario::builtin_names()).join(", ");
            return Err(ScenarioError::NotFound { wanted: name_or_path.to_owned(), near });
        }
        Scenario::parse(&read_text(path, name_or_path)?, name_or_path)
    }

    /// The text of the file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where the text came from, as the user knows it.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The host of that name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }
}

/// The text of a file. `origin` is its name as the user knows it.
pub(crate) fn read_text(path: &Path, origin: &str) -> Result<String, ScenarioError> {
    let unreadable = |source| ScenarioError::Unreadable { path: path.to_owned(), source };
    let bytes = read_bounded(path).map_err(unreadable)?;
    if bytes.len() > TEXT_BYTES_MAX {
        return Err(ScenarioError::TooLarge { origin: origin.to_owned(), bytes_max: TEXT_BYTES_MAX });
    }
    String::from_utf8(bytes).map_err(|_| unreadable(std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8 text")))
}

/// Reads at most one byte more than is allowed, so that the caller sees that a file is too large. Refuses anything but a regular file, which might block.
fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    chokepoint_foreign::open_named_regular(path)?.take(TEXT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
pub(crate) mod tests;
