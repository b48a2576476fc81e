//! Where requests are now: what `chokepoint where` reports once a second.

use serde::{Deserialize, Serialize};

use super::{LedgerClient, LedgerReport, SourceReport, Target};

/// The account of the last few seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Whereabouts {
    /// "chokepoint/where/1".
    pub schema: String,
    /// The seconds that it covers.
    pub window: WhereWindow,
    /// Whose requests these are, and the tiers that they pass.
    pub target: Target,
    /// Where they are; null if no listener of this host answers for the target, or no sample could be taken.
    pub ledger: Option<LedgerReport>,
    /// The clients with the most requests under way at the first tier, as far as connections have addresses.
    pub clients: Vec<LedgerClient>,
    /// What the account cannot show, a sentence each.
    pub warnings: Vec<String>,
    /// Sources of the account that could not be read, with the privilege that they need.
    pub lacking: Vec<SourceReport>,
}

/// A stretch of time, seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WhereWindow {
    /// Its beginning.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
}
