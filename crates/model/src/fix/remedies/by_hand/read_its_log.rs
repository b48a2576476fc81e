//! Advice `read-its-log`: why a server answers with errors stands in its log alone.

use crate::facts::traffic::errors::{Behind, ServerErrors};
use crate::fix::change::Activation;
use crate::fix::remedies::definition::{Advice, AdviceDef};
use crate::judge::id::FindingId;
use crate::observation::LogEvent;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const READ_ITS_LOG: AdviceDef = AdviceDef {
    id: "read-its-log",
    finding: FindingId::ANSWERS_ERRORS,
    activation: Activation::Live,
    advise: |ctx, placed| {
        let tier = ctx.only_tier(&placed.owner)?;
        let servers = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid));
        let log = servers.flat_map(|view| view.error_logs.keys()).next();
        let found = ServerErrors::of(ctx).filter(|found| found.tier.id == tier.id);
        let id = match found.as_ref().and_then(|found| Some(&found.reason.as_ref()?.event)) {
            _ if found.as_ref().is_some_and(|found| found.behind == Behind::OutOfService) => "remedy-read-its-log-text-out",
            Some(LogEvent::AnswerHeaderTooBig) => "remedy-read-its-log-text-header",
            Some(LogEvent::NoLiveUpstreams) => "remedy-read-its-log-text-none-live",
            _ => "remedy-read-its-log-text",
        };
        let text = Message::new(id).with("tier", tier.name.as_str()).with("log", log.map_or("none", String::as_str));
        Some(Advice::words(text, "remedy-read-its-log-risk", Lift::Further))
    },
};
