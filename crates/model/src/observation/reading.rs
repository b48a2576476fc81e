//! A reading that may be missing. A value that was not read is never taken for zero.

use serde::{Deserialize, Serialize};

/// Why a value is missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lack {
    /// One clause in plain English, without a full stop: "the file does not exist", "permission denied".
    pub why: String,
    /// The privilege that would make the value readable, if any: "CAP_SYS_ADMIN", "CAP_SYS_PTRACE".
    pub needs: Option<String>,
}

impl Lack {
    /// A lack that no privilege would remove.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), needs: None }
    }

    /// A lack that this capability would remove.
    pub fn needing(why: impl Into<String>, capability: impl Into<String>) -> Self {
        Self { why: why.into(), needs: Some(capability.into()) }
    }
}

/// One reading: a value, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// The value.
    Ok(T),
    /// This host does not have it (no such file, feature or privilege). This is normal, and it is not zero.
    Absent(Lack),
    /// It should exist and could not be read or parsed.
    Failed(Lack),
}

impl<T> Reading<T> {
    /// The value, if there is one.
    pub fn ok(&self) -> Option<&T> {
        match self {
            Reading::Ok(value) => Some(value),
            _ => None,
        }
    }

    /// The reason, if there is no value.
    pub fn lack(&self) -> Option<&Lack> {
        match self {
            Reading::Ok(_) => None,
            Reading::Absent(lack) | Reading::Failed(lack) => Some(lack),
        }
    }

    /// The same reading with its value mapped.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Reading::Ok(value) => Reading::Ok(change(value)),
            Reading::Absent(lack) => Reading::Absent(lack),
            Reading::Failed(lack) => Reading::Failed(lack),
        }
    }
}
