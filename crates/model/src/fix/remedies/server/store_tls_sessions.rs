//! Remedy `store-tls-sessions`: a cache that all workers share, for a server that issues no tickets and was not told to store nothing.

use super::raise_worker_connections::nginx_of;
use super::servers::tiers;
use crate::facts::Context;
use crate::fix::change::{Activation, ServerSetting};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedy::Signal;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::observation::NginxTlsSessions;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "store-tls-sessions", finding: FindingId::TLS_HANDSHAKE_HOT, activation: Activation::Reload, propose };

/// The cache: zone name and size, in the syntax of nginx's manual.
const CACHE: &str = "shared:chokepoint:10m";
/// Sessions that it holds: about 4,000 per megabyte (ngx_http_ssl_module, ssl_session_cache).
const SESSIONS: u32 = 40_000;

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let mut all = tiers(ctx, placed).into_iter().filter_map(|tier| nginx_of(ctx, tier));
    let (server, _) = all.find(|(_, nginx)| nginx.tls_sessions.as_ref().is_some_and(NginxTlsSessions::refuses_unasked))?;
    Some(Proposal {
        reload: None,
        change: vec![server.change(ServerSetting::NginxTlsSessionCache, ServerSetting::UNSET, CACHE, Activation::Reload)],
        text: Message::new("remedy-store-tls-sessions-text").with("cache", CACHE),
        risk: Message::new("remedy-store-tls-sessions-risk").with("sessions", SESSIONS),
        signal: Signal::Goodput,
        lifts: Lift::Cost,
    })
}
