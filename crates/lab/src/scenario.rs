//! A scenario file: its fields, how it is read, and the scenarios that are built in.

mod document;
mod error;
mod locate;
mod units;
mod validate;

use std::path::Path;

pub use document::{
    CallsExpect, CaptureExpect, Cgroup, Client, Effect, Expect, FileSpec, Host, Kind, Link, LinkEnd, Load, LoadTls, Prefill, Ready,
    Reference, Route, RouteTo, Scenario, Server, Setting, Shape, SocketsExpect,
};
pub use error::{Problem, ScenarioError};
pub use units::{BitRate, ByteSize, Cidr, FileMode, StatusRanges, TimeSpan};

/// Longest scenario text that is read, bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// The scenarios that are built in, by name and text, in the order of their names: each file of `lab/scenarios` (`build.rs`).
const BUILTIN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

impl Scenario {
    /// Reads a scenario's text. `origin` is the file's name as the user knows it; every problem names it with line and column.
    ///
    /// # Errors
    /// [`ScenarioError::Invalid`] with every problem found: not TOML, a field unknown, missing or of the wrong kind, or values that
    /// contradict each other.
    pub fn parse(text: &str, origin: &str) -> Result<Scenario, ScenarioError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(ScenarioError::TooLarge { origin: origin.to_owned(), bytes_max: TEXT_BYTES_MAX });
        }
        // First of all, since the fields of another schema would only seem wrong.
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
    /// Where a built-in file is wrong: our own fault, and a test looks for it.
    pub fn builtin() -> Result<Vec<Scenario>, ScenarioError> {
        BUILTIN.iter().map(|(name, text)| Scenario::parse(text, &format!("built-in {name}"))).collect()
    }

    /// Finds a scenario by the name of a built-in one or by the path of a file. What contains a `/` or ends in `.toml` is a path.
    ///
    /// # Errors
    /// [`ScenarioError::NotFound`] names what is built in; [`ScenarioError::Unreadable`] where a file cannot be read; else as
    /// [`Scenario::parse`].
    pub fn find(name_or_path: &str) -> Result<Scenario, ScenarioError> {
        let is_path = name_or_path.contains('/') || name_or_path.ends_with(".toml");
        if !is_path && let Some((name, text)) = BUILTIN.iter().find(|(name, _)| *name == name_or_path) {
            return Scenario::parse(text, &format!("built-in {name}"));
        }
        let path = Path::new(name_or_path);
        if !is_path && !path.is_file() {
            let known: Vec<&str> = Scenario::builtin_names().collect();
            return Err(ScenarioError::NotFound { wanted: name_or_path.to_owned(), known: known.join(", ") });
        }
        let unreadable = |source| ScenarioError::Unreadable { path: path.to_owned(), source };
        let bytes = read_bounded(path).map_err(unreadable)?;
        if bytes.len() > TEXT_BYTES_MAX {
            return Err(ScenarioError::TooLarge { origin: name_or_path.to_owned(), bytes_max: TEXT_BYTES_MAX });
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| unreadable(std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8 text")))?;
        Scenario::parse(&text, name_or_path)
    }

    /// The text that was read.
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

/// Reads one byte more than is allowed, so that the caller can tell that a file is too large; never waits on what is no regular file.
fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(TEXT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
pub(crate) mod tests;
