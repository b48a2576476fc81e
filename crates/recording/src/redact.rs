//! Hiding what a recording must not carry away: addresses become pseudonyms, secrets become "[redacted]", and all else stays, so that the
//! recording still replays.

mod address;
mod host;
mod json;
mod scan;
mod secret;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::entry::{Entry, Outcome};
use address::Pseudonyms;
use host::Hosts;

/// What stands where a secret stood.
const REDACTED: &[u8] = b"[redacted]";

/// How much is hidden.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Public addresses, hardware addresses and secrets. Addresses that say nothing outside the site stay, and a replay judges as before.
    #[default]
    Public,
    /// Private addresses and host names too.
    All,
    /// Nothing.
    None,
}

impl Level {
    /// The level's name on the command line and in recordings.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Public => "public",
            Level::All => "all",
            Level::None => "none",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no redaction level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no redaction level: public, all or none")]
pub struct UnknownLevel(String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLevel> {
        [Level::Public, Level::All, Level::None]
            .into_iter()
            .find(|level| level.as_str() == name)
            .ok_or_else(|| UnknownLevel(name.to_owned()))
    }
}

/// How much was hidden, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hidden {
    /// Values of queries in URLs.
    pub queries: usize,
    /// User information, values of headers and settings, passwords of commands.
    pub secrets: usize,
    /// Different addresses that have a pseudonym.
    pub addresses: usize,
    /// Different host names.
    pub hosts: usize,
}

/// Rewrites the entries of one recording. One redactor for the whole recording: the same address gets the same pseudonym everywhere.
///
/// Everything may first be shown to [`Redactor::survey`]; then no pseudonym equals an address that stays as it is, and at level All a host
/// name is hidden also where it stands before the URL that tells that it is one.
#[derive(Debug)]
pub struct Redactor {
    level: Level,
    pseudonyms: Pseudonyms,
    hosts: Hosts,
    surveying: bool,
    /// Without addresses and names, which are counted where they are kept.
    hidden: Hidden,
}

impl Redactor {
    /// A redactor that has seen nothing yet.
    pub fn new(level: Level) -> Self {
        Self { level, pseudonyms: Pseudonyms::default(), hosts: Hosts::default(), surveying: false, hidden: Hidden::default() }
    }

    /// What was hidden until now; what was only surveyed does not count.
    pub fn hidden(&self) -> Hidden {
        Hidden { addresses: self.pseudonyms.count(), hosts: self.hosts.count(), ..self.hidden }
    }

    /// Its level.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Looks at text without rewriting it (see the type's description).
    pub fn survey(&mut self, bytes: &[u8]) {
        self.surveying = true;
        self.text(bytes);
        self.surveying = false;
    }

    /// Tells that this address occurs: the same as [`Redactor::survey`] for addresses out of binary entries.
    pub fn survey_address(&mut self, address: IpAddr) {
        self.pseudonyms.take(address);
    }

    /// Makes a host name known, so that it is hidden at level All. Addresses and "localhost" are not names.
    pub fn survey_host(&mut self, name: &str) {
        if self.level == Level::All {
            self.hosts.learn(name.as_bytes());
        }
    }

    /// The address that stands for this one. IPv4 stays IPv4 (198.18.0.0/15 of RFC 2544, then 240.0.0.0/4), IPv6 stays IPv6
    /// (2001:db8::/32 of RFC 3849), an IPv4-mapped or NAT64 address keeps its prefix; equal addresses stay equal. Level Public leaves
    /// loopback, unspecified, link-local, private, multicast, documentation and reserved addresses as they are, level All the unspecified,
    /// loopback, multicast and reserved ones and the pseudonyms themselves.
    pub fn address(&mut self, address: IpAddr) -> IpAddr {
        if self.level == Level::None {
            return address;
        }
        if self.surveying {
            self.pseudonyms.take(address);
            return address;
        }
        self.pseudonyms.of(address, self.level == Level::All)
    }

    /// Zeroes a hardware address in place; the broadcast address (all ones) stays.
    pub fn hardware(&self, address: &mut [u8]) {
        if self.level != Level::None && address.iter().any(|byte| *byte != 0xff) {
            address.fill(0);
        }
    }

    /// Rewrites text: addresses as [`Redactor::address`] does, hardware addresses, and what is secret in URLs, headers, command lines and
    /// settings; at level All host names. Bytes that are none of these stay as they are, be they UTF-8 or not, and JSON stays JSON.
    /// Rewriting twice changes nothing more.
    pub fn text(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.level == Level::None {
            return bytes.to_vec();
        }
        if let Some(rewritten) = json::rewrite(bytes, self) {
            return rewritten;
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut plain_from = 0;
        let mut at = 0;
        // Logs hold lines of JSON among other lines; the others are rewritten in one piece, for a command may go on in the next line.
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if let Some(rewritten) = json::rewrite(line, self) {
                out.extend_from_slice(&self.plain(&bytes[plain_from..at]));
                out.extend_from_slice(&rewritten);
                plain_from = at + line.len();
            }
            at += line.len();
        }
        out.extend_from_slice(&self.plain(&bytes[plain_from..]));
        out
    }

    /// Rewrites an entry whose bytes are text; of any entry, the words around the bytes.
    pub fn entry(&mut self, entry: &Entry) -> Entry {
        let outcome = match &entry.outcome {
            Outcome::Ok(bytes) => Outcome::Ok(self.text(bytes)),
            Outcome::Absent(why, needs) => Outcome::Absent(self.words(why), needs.clone()),
            Outcome::Failed(why, needs) => Outcome::Failed(self.words(why), needs.clone()),
        };
        Entry { at_us: entry.at_us, source: entry.source.clone(), scope: entry.scope, item: self.words(&entry.item), outcome }
    }

    /// Rewrites words of UTF-8.
    pub fn words(&mut self, text: &str) -> String {
        String::from_utf8_lossy(&self.text(text.as_bytes())).into_owned()
    }

    /// Rewrites text that is not JSON. Addresses come first: what the later steps look at no longer changes its length. Names change theirs, so
    /// that secrets are looked for before and behind them.
    fn plain(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut counts = Hidden::default();
        let mut hidden = secret::rewrite(&scan::rewrite(bytes, self), &mut counts);
        if self.level == Level::All {
            hidden = secret::rewrite(&self.hosts.rewrite(&hidden), &mut counts);
        }
        if !self.surveying {
            self.hidden.queries += counts.queries;
            self.hidden.secrets += counts.secrets;
        }
        hidden
    }
}

#[cfg(test)]
mod tests;
