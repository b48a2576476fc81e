//! The source "netns": the name of a network namespace.

use chokepoint_model::reading::Reading;
use chokepoint_recording::Outcome;

use super::NetnsRef;
use crate::root::reading_of;
use crate::scope::netns_view;
use crate::table::{Cadence, Items, Redact, ScopeKind, Source, only_item};

/// The reading of the source "netns".
pub(crate) fn identity(netns: &NetnsRef) -> Items {
    let text = serde_json::json!({ "name": netns.name, "is_host": netns.is_host }).to_string();
    only_item(Outcome::Ok(text.into_bytes()))
}

/// The name of a namespace: JSON of `{"name": string or null, "is_host": bool}`.
pub(crate) const NETNS: Source = Source {
    name: "netns",
    scope: ScopeKind::Netns,
    cadence: Cadence::Once,
    needs: None,
    read: |context| context.netns.map(identity).unwrap_or_default(),
    put: |observation, entry| {
        #[derive(serde::Deserialize)]
        struct Named {
            name: Option<String>,
            is_host: bool,
        }
        let Some(view) = netns_view(observation, entry) else { return };
        match reading_of(&entry.outcome, |bytes| serde_json::from_slice::<Named>(bytes)) {
            Reading::Ok(named) => (view.name, view.is_host) = (named.name, named.is_host),
            Reading::Absent(_) | Reading::Failed(_) => {}
        }
    },
    redact: Redact::None,
};
