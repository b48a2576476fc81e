//! Removes private data from a recording: addresses become pseudonyms and secrets become "[redacted]". Everything else stays, so the
//! recording can still be replayed.

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

/// Replaces a secret.
const REDACTED: &[u8] = b"[redacted]";

/// How much is redacted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Public addresses, hardware addresses and secrets. Addresses without a meaning outside the site stay, and a replay gives the same verdict.
    #[default]
    Public,
    /// Also private addresses and host names.
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

/// An unknown redaction level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a redaction level: use public, all or none")]
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

/// The amount redacted, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hidden {
    /// Values in the queries of URLs.
    pub queries: usize,
    /// User information, values of headers and settings, and passwords in commands.
    pub secrets: usize,
    /// Different addresses with a pseudonym.
    pub addresses: usize,
    /// Different host names.
    pub hosts: usize,
}

/// Redacts the entries of one recording. Use one redactor for the whole recording: it gives an address the same pseudonym everywhere.
///
/// Optionally, show everything to [`Redactor::survey`] first. Then no pseudonym equals an address that stays, and at level All a host
/// name is redacted also before the URL that shows that it is one.
#[derive(Debug)]
pub struct Redactor {
    level: Level,
    pseudonyms: Pseudonyms,
    hosts: Hosts,
    surveying: bool,
    /// Without addresses and names, which are counted where they are stored.
    hidden: Hidden,
}

impl Redactor {
    /// A redactor without known addresses or names.
    pub fn new(level: Level) -> Self {
        Self { level, pseudonyms: Pseudonyms::default(), hosts: Hosts::default(), surveying: false, hidden: Hidden::default() }
    }

    /// The amount redacted so far. Surveyed text does not count.
    pub fn hidden(&self) -> Hidden {
        Hidden { addresses: self.pseudonyms.count(), hosts: self.hosts.count(), ..self.hidden }
    }

    /// Its level.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Examines text without redacting it (see the documentation of the type).
    pub fn survey(&mut self, bytes: &[u8]) {
        self.surveying = true;
        self.text(bytes);
        self.surveying = false;
    }

    /// Records that this address occurs. Like [`Redactor::survey`], for addresses from binary entries.
    pub fn survey_address(&mut self, address: IpAddr) {
        self.pseudonyms.take(address);
    }

    /// Records a host name, so that it is redacted at level All. Addresses and "localhost" are not names.
    pub fn survey_host(&mut self, name: &str) {
        if self.level == Level::All {
            self.hosts.learn(name.as_bytes());
        }
    }

    /// The pseudonym of this address. IPv4 stays IPv4 (198.18.0.0/15 of RFC 2544, then 240.0.0.0/4), IPv6 stays IPv6
    /// (2001:db8::/32 of RFC 3849), and an IPv4-mapped or NAT64 address keeps its prefix. Equal addresses stay equal. Level Public does not change
    /// loopback, unspecified, link-local, private, multicast, documentation and reserved addresses. Level All does not change unspecified,
    /// loopback, multicast and reserved addresses and the pseudonyms themselves.
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

    /// Zeroes a hardware address in place. The broadcast address (all ones) stays.
    pub fn hardware(&self, address: &mut [u8]) {
        if self.level != Level::None && address.iter().any(|byte| *byte != 0xff) {
            address.fill(0);
        }
    }

    /// Redacts text: addresses as in [`Redactor::address`], hardware addresses, and secrets in URLs, headers, command lines and
    /// settings; at level All also host names. Other bytes stay as they are, whether they are UTF-8 or not, and JSON stays JSON.
    /// Redacting twice changes nothing more.
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
        // Logs mix lines of JSON with other lines. The others are redacted in one piece, because a command may continue on the next line.
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

    /// Redacts an entry whose bytes are text. Of any other entry, redacts only the words around the bytes.
    pub fn entry(&mut self, entry: &Entry) -> Entry {
        let outcome = match &entry.outcome {
            Outcome::Ok(bytes) => Outcome::Ok(self.text(bytes)),
            Outcome::Absent(why, needs) => Outcome::Absent(self.words(why), needs.clone()),
            Outcome::Failed(why, needs) => Outcome::Failed(self.words(why), needs.clone()),
        };
        Entry { at_us: entry.at_us, source: entry.source.clone(), scope: entry.scope, item: self.words(&entry.item), outcome }
    }

    /// Redacts words of UTF-8.
    pub fn words(&mut self, text: &str) -> String {
        String::from_utf8_lossy(&self.text(text.as_bytes())).into_owned()
    }

    /// Redacts text that is not JSON. Addresses come first, so the later steps work on text whose addresses have their final length. Names change
    /// the length, so secrets are searched before and after them.
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
