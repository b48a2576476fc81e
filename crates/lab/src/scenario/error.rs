//! Errors in a scenario file, with line and column, what is allowed, and what was probably meant.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::locate::{Path, line_and_column, locate};
use super::nearest::edit_distance;

/// Why a scenario cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Neither a built-in scenario nor a file.
    #[error(
        "there is no scenario \"{wanted}\". The nearest names are {near}. `chokepoint lab list` shows all; give a file by its path (with a / or the ending .toml)"
    )]
    NotFound {
        /// The given name.
        wanted: String,
        /// The nearest names of built-in scenarios.
        near: String,
    },
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is larger than a scenario may be.
    #[error("{origin}: larger than {bytes_max} bytes, which is more than a scenario may have")]
    TooLarge {
        /// The file.
        origin: String,
        /// The limit.
        bytes_max: usize,
    },
    /// Neither a built-in attack, nor a kind of them, nor a file.
    #[error(
        "there is no attack \"{wanted}\". The nearest names are {near}. `chokepoint lab attack` lists all; give a file by its path (with a / or the ending .toml)"
    )]
    NoAttack {
        /// The given name.
        wanted: String,
        /// The nearest names of built-in attacks and their kinds.
        near: String,
    },
    /// The text is not a valid attack.
    #[error("{origin}: {why}")]
    Attack {
        /// The file as the user knows it.
        origin: String,
        /// What is wrong.
        why: String,
    },
    /// The text is not a valid scenario.
    #[error("{}", list(problems))]
    Invalid {
        /// Every problem in the order of the file; at least one.
        problems: Vec<Problem>,
    },
}

/// One error in a scenario file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}:{line}:{column}: {field}{}{message}", if field.is_empty() { "" } else { ": " })]
pub struct Problem {
    /// The file as the user knows it.
    pub origin: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// The field ("server[2].host"); empty for errors of the text itself.
    pub field: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

fn list(problems: &[Problem]) -> String {
    let mut text = String::new();
    for (index, problem) in problems.iter().enumerate() {
        let _ = write!(text, "{}{problem}", if index == 0 { "" } else { "\n" });
    }
    text
}

/// The error of the TOML parser, with its line and column and, for a misspelt field, the nearest known one.
pub(super) fn from_toml(error: &toml::de::Error, text: &str, origin: &str) -> ScenarioError {
    let (line, column) = line_and_column(text, error.span().map_or(0, |span| span.start));
    let mut message = error.message().trim().replace('\n', ", ");
    if let Some(meant) = nearest_field(&message) {
        let _ = write!(message, "; did you mean `{meant}`?");
    }
    ScenarioError::Invalid { problems: vec![Problem { origin: origin.to_owned(), line, column, field: String::new(), message }] }
}

/// The problems of the validation with line and column, in the order of the file.
pub(super) fn from_problems(problems: Vec<(Path, String)>, text: &str, origin: &str) -> ScenarioError {
    let mut problems: Vec<Problem> = problems
        .into_iter()
        .map(|(path, message)| {
            let (line, column) = line_and_column(text, locate(text, &path));
            Problem { origin: origin.to_owned(), line, column, field: path.to_string(), message }
        })
        .collect();
    problems.sort_by_key(|problem| (problem.line, problem.column));
    ScenarioError::Invalid { problems }
}

/// In "unknown field `a`, expected one of `b`, `c`": the name nearest to `a`, if it is close enough for a typing error.
fn nearest_field(message: &str) -> Option<String> {
    if !message.starts_with("unknown ") {
        return None;
    }
    let mut names = message.split('`').skip(1).step_by(2);
    let wrong = names.next()?;
    let (distance, name) = names.map(|name| (edit_distance(wrong, name), name)).min()?;
    (distance <= 1 + wrong.len() / 4).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_gets_a_suggestion_and_an_unrelated_word_does_not() {
        assert_eq!(nearest_field("unknown field `conections`, expected one of `url`, `connections`"), Some("connections".to_owned()));
        assert_eq!(nearest_field("unknown field `colour`, expected one of `url`, `connections`"), None);
        assert_eq!(nearest_field("missing field `url`"), None);
        assert_eq!(nearest_field("unknown field `"), None);
        assert_eq!((edit_distance("", "abc"), edit_distance("abc", "abc"), edit_distance("kitten", "sitting")), (3, 0, 3));
    }
}
