//! Finding `answers-errors`: a server answers with errors of its own.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::traffic::errors::{Behind, Reason, ServerErrors};
use crate::facts::traffic::out_of_service::{COMMAND, OutOfService};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::location::Location;
use crate::ledger::Failing;
use crate::observation::LogEvent;
use crate::output::message::Message;
use crate::output::report::Confidence;

use super::STATION;

pub(super) fn judge(ctx: &Context<'_>) -> Option<Finding> {
    let found = ServerErrors::of(ctx)?;
    let tier = found.tier;
    let packets = format!("packet(7) ({})", ctx.netns_name(tier.netns));
    let own = found.own.as_ref().map(|own| {
        let text = args(&found, "evidence-answers-errors-own").with("own", own.errors()).with("own_all", own.all());
        Evidence::new(text, packets, Some(own.errors() as f64))
    });
    let logged = found.reason.as_ref().map(|reason| logged(&found, reason));
    let behind = match found.behind {
        Behind::NotAsked(seen) => {
            let text = args(&found, "evidence-answers-errors-none-behind").with("seen", seen);
            Some(Evidence::new(text, "packet(7), sock_diag", Some(seen as f64)))
        }
        Behind::Answers(errors, all) => {
            let text = args(&found, "evidence-answers-errors-behind").with("behind_errors", errors).with("behind_all", all);
            Some(Evidence::new(text, "packet(7)", Some(errors as f64)))
        }
        Behind::Nobody | Behind::Unread | Behind::OutOfService => None,
    };
    let siblings = found.siblings.iter().map(|(name, errors, all)| {
        let text = args(&found, "evidence-answers-errors-sibling").with("name", *name).with("own", *errors).with("own_all", *all);
        Evidence::new(text, "packet(7)", Some(*errors as f64))
    });
    let clients = Evidence::new(args(&found, "evidence-answers-errors-clients"), found.source, Some(found.clients.0 as f64));
    let explanation = match found.reason.as_ref().map(|reason| &reason.event) {
        Some(LogEvent::AnswerHeaderTooBig) => "finding-answers-errors-explanation-header",
        Some(LogEvent::NoLiveUpstreams) => "finding-answers-errors-explanation-none-live",
        Some(_) => "finding-answers-errors-explanation-logged",
        None if found.behind == Behind::OutOfService => "finding-answers-errors-explanation-none-live",
        None => "finding-answers-errors-explanation",
    };
    Some(Finding {
        confidence: if found.behind == Behind::Unread || found.own.is_none() && found.behind != Behind::OutOfService {
            Confidence::Medium
        } else {
            Confidence::High
        },
        title: args(&found, "finding-answers-errors-title"),
        evidence: std::iter::once(clients)
            .chain(out_of_service(ctx, tier))
            .chain([logged, own, behind].into_iter().flatten())
            .chain(repeated(ctx, tier))
            .chain(siblings)
            .collect(),
        explanation: vec![args(&found, explanation)],
        ..STATION.finding(FindingId::ANSWERS_ERRORS, tier, Location::in_netns(tier.netns))
    })
}

/// How often it is asked for each request, where a call that fails is made again.
fn repeated(ctx: &Context<'_>, tier: &Tier) -> Option<Evidence> {
    let found = ctx.repeated().iter().find(|found| found.how == Failing::Error && found.asked.contains(&tier.id.0))?;
    Some(Evidence::new(found.args(ctx, "evidence-calls-repeated-errors"), "packet(7)", Some(found.seen as f64)))
}

/// Which servers behind it are out of service, as it says itself.
fn out_of_service(ctx: &Context<'_>, tier: &Tier) -> Vec<Evidence> {
    let Some(out) = OutOfService::of(ctx, tier) else { return Vec::new() };
    let all = Evidence::new(out.counted("evidence-out-of-service", tier), COMMAND, Some(out.out.len() as f64));
    std::iter::once(all).chain(out.told().into_iter().map(|server| Evidence::new(server, COMMAND, None))).collect()
}

/// What its error log says of most of them, and of others.
fn logged(found: &ServerErrors<'_>, reason: &Reason) -> Evidence {
    let others: Vec<String> = reason.others.iter().map(|(event, count)| format!("{count} x {event}")).collect();
    let text = args(found, "evidence-answers-errors-logged").with("count", reason.logged.count).with("event", reason.event.to_string());
    let text = text.with("line", reason.logged.line.as_str()).with("others", others.join(", "));
    let text = text.with("has_others", if others.is_empty() { "no" } else { "yes" });
    Evidence::new(text, reason.logged.path.as_str(), Some(reason.logged.count as f64))
}

/// A message with the arguments of the sentences.
pub(super) fn args(found: &ServerErrors<'_>, id: &'static str) -> Message {
    let (errors, all) = found.clients;
    let behind = match found.behind {
        Behind::Nobody => "nobody",
        Behind::NotAsked(_) => "silent",
        Behind::Answers(..) => "answers",
        Behind::OutOfService => "out",
        Behind::Unread => "unread",
    };
    // Whoever asks nobody behind it has nobody to ask.
    let unsaid = match behind {
        "out" => "none-live",
        "silent" => "none-asked",
        _ => "none",
    };
    // What a server behind another one answers is not what the clients get: that one may ask again, or make an error of its own of it.
    let inner = found.own.as_ref().filter(|_| !found.is_first).and_then(|own| Some((own.main_error()?, own.errors(), own.all())));
    let (status, own_errors, own_all) = inner.unwrap_or((found.status, errors, all));
    let message = Message::new(id).with("tier", found.tier.name.as_str()).with("status", status.to_string());
    let message = message.with("share", 100.0 * own_errors as f64 / own_all.max(1) as f64).with("errors", errors).with("requests", all);
    let message = message.with("whose", if inner.is_some() { "its" } else { "all" }).with("clients_status", found.status.to_string());
    message.with("behind", behind).with("reason", found.reason.as_ref().map_or(unsaid, Reason::word))
}
