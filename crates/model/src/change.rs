//! Change intents: what a remedy would change, without saying how it is done. `remedy` carries them out.

use serde::{Deserialize, Serialize};

use crate::observation::NetnsId;

/// One change to one setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Change {
    /// A kernel parameter (sysctl(8)).
    Sysctl {
        /// Dotted name, "net.netfilter.nf_conntrack_max".
        key: String,
        /// The namespace in which it is set; host-only keys name the host's.
        netns: NetnsId,
        /// That namespace's name for the report ("host" for the one of process 1).
        netns_name: String,
        /// The value found when the change was proposed.
        from: String,
        /// The value to set.
        to: String,
    },
}

/// When a change takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// At once.
    Live,
    /// After the server reloaded its configuration.
    Reload,
    /// After the server was restarted.
    Restart,
}
