//! What the user agreed to beyond the changes themselves.

/// Whether a reload may put in force what the server has not read yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Consent {
    /// Nothing: a server is reloaded only if that puts nothing but the change in force.
    #[default]
    Nothing,
    /// These files and directories, which [`ApplyError::Unread`](crate::ApplyError::Unread) named, may come into force as well.
    Unread(Vec<String>),
    /// Everything that the server has not read may come into force.
    AnyUnread,
}
