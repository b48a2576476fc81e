//! A reading that may be missing: a value that was not read is never mistaken for zero.

use serde::{Deserialize, Serialize};

/// Why a value is not there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lack {
    /// One clause in plain English, without a full stop: "the file does not exist", "permission denied".
    pub why: String,
    /// The privilege that would give the value, where one would: "CAP_SYS_ADMIN", "CAP_SYS_PTRACE".
    pub needs: Option<String>,
}

impl Lack {
    /// A lack that no privilege would mend.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), needs: None }
    }

    /// A lack that the named capability would mend.
    pub fn needing(why: impl Into<String>, capability: impl Into<String>) -> Self {
        Self { why: why.into(), needs: Some(capability.into()) }
    }
}

/// One reading: a value, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// The value.
    Ok(T),
    /// This host does not have it (no such file, feature or privilege): normal, and not zero.
    Absent(Lack),
    /// It should be there and could not be read or understood.
    Failed(Lack),
}

impl<T> Reading<T> {
    /// The value, where there is one.
    pub fn ok(&self) -> Option<&T> {
        match self {
            Reading::Ok(value) => Some(value),
            _ => None,
        }
    }

    /// Why there is no value, where there is none.
    pub fn lack(&self) -> Option<&Lack> {
        match self {
            Reading::Ok(_) => None,
            Reading::Absent(lack) | Reading::Failed(lack) => Some(lack),
        }
    }

    /// The same reading with its value changed.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Reading::Ok(value) => Reading::Ok(change(value)),
            Reading::Absent(lack) => Reading::Absent(lack),
            Reading::Failed(lack) => Reading::Failed(lack),
        }
    }
}
