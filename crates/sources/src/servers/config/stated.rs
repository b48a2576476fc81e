//! Configurations in the model's words that hold for any kind of server, a file for each kind.

pub(super) mod haproxy;
pub(super) mod postgresql;

use chokepoint_config::Setting;
use chokepoint_model::observation::{LimitOf, LimitScope, StatedLimit};

use super::super::origin::origin;

/// A limit by its value alone: more has to wait, without a lower value, places that are kept, or a time after which it gives up. A reload puts it in force.
fn limit(scope: LimitScope, of: LimitOf, found: &Setting<u64>) -> StatedLimit {
    StatedLimit {
        scope,
        of,
        value: found.value,
        least: None,
        kept: 0,
        is_refused: false,
        needs_restart: false,
        setting: String::new(),
        owner: String::new(),
        line: String::new(),
        at: Vec::new(),
        is_asked: Some(true),
        gives_up_ms: None,
        gives_up_status: None,
        change: None,
        origin: origin(&found.origin),
    }
}
