//! Remedy `log-errors-alone`: sets error logs that record each step of a request to record errors only, which is nginx's default.

use super::raise_worker_connections::nginx_of;
use super::servers::tiers;
use crate::facts::Context;
use crate::fix::change::{Activation, Change, ServerSetting};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedy::Signal;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::observation::NginxDebugLog;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "log-errors-alone", finding: FindingId::DEBUG_LOG, activation: Activation::Reload, propose };

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let written = |log: &&NginxDebugLog| !log.is_memory;
    let mut all = tiers(ctx, placed).into_iter().filter_map(|tier| nginx_of(ctx, tier));
    let (server, nginx) = all.find(|(_, nginx)| nginx.debug_logs.iter().any(|log| written(&log)))?;
    let logs: Vec<&NginxDebugLog> = nginx.debug_logs.iter().filter(written).collect();
    let change = |log: &&NginxDebugLog| -> Change {
        server.change(ServerSetting::NginxErrorLogLevels { to: log.to.clone() }, &log.levels, &log.quiet, Activation::Reload)
    };
    let told = |of: fn(&NginxDebugLog) -> &str| logs.iter().map(|log| of(log)).collect::<Vec<_>>().join("; ");
    let text = Message::new("remedy-log-errors-alone-text").with("to", told(|log| &log.to)).with("quiet", told(|log| &log.quiet));
    Some(Proposal {
        reload: None,
        change: logs.iter().map(change).collect(),
        text: text.with("levels", told(|log| &log.levels)),
        risk: Message::new("remedy-log-errors-alone-risk"),
        signal: Signal::Goodput,
        lifts: Lift::Cost,
    })
}
