//! Finding `answers-errors`: a server answers with errors of its own.

use crate::facts::Context;
use crate::facts::traffic::errors::{Behind, ServerErrors};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::location::Location;
use crate::output::message::Message;
use crate::output::report::Confidence;

use super::STATION;

pub(super) fn judge(ctx: &Context<'_>) -> Option<Finding> {
    let found = ServerErrors::of(ctx)?;
    let tier = found.tier;
    let packets = format!("packet(7) ({})", ctx.netns_name(tier.netns));
    let own = args(&found, "evidence-answers-errors-own").with("own", found.own.errors()).with("own_all", found.own.all());
    let own = Evidence::new(own, packets, Some(found.own.errors() as f64));
    let behind = match found.behind {
        Behind::Answers(errors, all) => {
            let text = args(&found, "evidence-answers-errors-behind").with("behind_errors", errors).with("behind_all", all);
            Some(Evidence::new(text, "packet(7)", Some(errors as f64)))
        }
        Behind::Nobody | Behind::Unread => None,
    };
    let clients = Evidence::new(args(&found, "evidence-answers-errors-clients"), found.source, Some(found.clients.0 as f64));
    Some(Finding {
        confidence: if found.behind == Behind::Unread { Confidence::Medium } else { Confidence::High },
        title: args(&found, "finding-answers-errors-title"),
        evidence: [Some(clients), Some(own), behind].into_iter().flatten().collect(),
        explanation: vec![args(&found, "finding-answers-errors-explanation")],
        ..STATION.finding(FindingId::ANSWERS_ERRORS, tier, Location::in_netns(tier.netns))
    })
}

/// A message with the arguments of the sentences.
pub(super) fn args(found: &ServerErrors<'_>, id: &'static str) -> Message {
    let (errors, all) = found.clients;
    let behind = match found.behind {
        Behind::Nobody => "nobody",
        Behind::Answers(..) => "answers",
        Behind::Unread => "unread",
    };
    let message = Message::new(id).with("tier", found.tier.name.as_str()).with("status", found.status.to_string());
    let message = message.with("share", 100.0 * errors as f64 / all.max(1) as f64).with("errors", errors).with("requests", all);
    message.with("behind", behind)
}
