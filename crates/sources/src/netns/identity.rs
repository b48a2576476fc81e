//! The source "netns": the name of a network namespace, and who made it if that is another user.

use chokepoint_model::reading::Reading;
use chokepoint_recording::Outcome;

use super::NetnsRef;
use super::maker::made_by;
use crate::root::reading_of;
use crate::scope::netns_view;
use crate::table::{Cadence, Items, Redact, ScopeKind, Source, only_item};

/// The reading of the source "netns".
pub(crate) fn identity(netns: &NetnsRef) -> Items {
    let mut said = serde_json::json!({ "name": netns.name, "is_host": netns.is_host });
    if let Some(uid) = made_by(&netns.path) {
        said["made_by"] = uid.into();
    }
    let text = said.to_string();
    only_item(Outcome::Ok(text.into_bytes()))
}

/// The name and the maker of a namespace: JSON of `{"name": string or null, "is_host": bool, "made_by": number}`, the last only where another user made it.
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
            made_by: Option<u32>,
        }
        let Some(view) = netns_view(observation, entry) else { return };
        match reading_of(&entry.outcome, |bytes| serde_json::from_slice::<Named>(bytes)) {
            Reading::Ok(named) => (view.name, view.is_host, view.made_by) = (named.name, named.is_host, named.made_by),
            Reading::Absent(_) | Reading::Failed(_) => {}
        }
    },
    redact: Redact::None,
};
