//! A part of the path that is loaded by itself.

use crate::observation::NetnsId;
use crate::output::report::PartKind;

/// A tier to load by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its name in the report of the whole.
    pub tier: String,
    /// How to load it.
    pub kind: PartKind,
    /// URL, as on the command line. If `directory` is given, the name of a file in it is appended.
    pub url: String,
    /// Directory of files that the tier serves, as the tier sees it.
    pub directory: Option<String>,
    /// Suffixes of the files.
    pub endings: Vec<String>,
    /// Mean size of an answer of the whole, bytes: a file of about this size is requested.
    pub answer_bytes: u64,
    /// A process of the first tier, if known: the directory is searched in its view of the file system.
    pub pid: Option<u32>,
    /// The processes of the servers behind the first tier that the whole reached. At a unix socket nobody else is asked: its path may lead anywhere by now.
    pub holders: Vec<u32>,
    /// HTTP: the Host header.
    pub host: String,
    /// FastCGI parameters or HTTP header fields. HTTP fields without a value are not sent.
    pub fields: Vec<(String, String)>,
    /// Whether its connections are kept. `None` means as on the command line.
    pub keep_alive: Option<bool>,
    /// True for a part of a part: its result is included in that of its own whole.
    pub is_inner: bool,
    /// Namespace to load it from.
    pub netns: NetnsId,
}

impl Part {
    /// Its key in a recording.
    pub fn id(&self) -> String {
        match self.kind {
            PartKind::Own => format!("{} own", self.tier),
            PartKind::Direct => format!("{} direct", self.tier),
        }
    }
}
