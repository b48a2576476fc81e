//! Where requests stand now: what `chokepoint where` tells once a second.

use serde::{Deserialize, Serialize};

use super::{LedgerClient, LedgerReport, SourceReport, Target};

/// The account of the last few seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Whereabouts {
    /// "chokepoint/where/1".
    pub schema: String,
    /// Which seconds.
    pub window: WhereWindow,
    /// Whose requests, and the tiers that they pass.
    pub target: Target,
    /// Where they stand; null where no listener of this host answers for the target, or no sample could be taken.
    pub ledger: Option<LedgerReport>,
    /// The clients with most requests under way at the first tier, as far as connections have addresses.
    pub clients: Vec<LedgerClient>,
    /// What the account cannot tell, a sentence each.
    pub warnings: Vec<String>,
    /// What could not be read of that from which the account is made, with the privilege that would give it.
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
